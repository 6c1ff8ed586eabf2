#include "store/window.h"

#include "base/checked.h"

#include <stdlib.h>

enum {
	SIZE_MOST = 1 << 16,
	/* Reading so many bytes for nothing costs no more than another call. */
	GAP = 1 << 12,
};

void h5_window_init(struct h5_window *window, struct h5_file *file)
{
	*window = (struct h5_window){.file = file};
}

void h5_window_release(struct h5_window *window)
{
	free(window->bytes);
	window->bytes = NULL;
	window->size = 0;
}

/* Bytes from the first address to the end of the last structure that lies close behind; 0: there is none. */
static size_t find_run(const uint64_t *addresses, size_t n, size_t each)
{
	size_t size = each, i = 1;

	for (; i < n && addresses[i] >= addresses[i - 1]; i++) {
		uint64_t distance = addresses[i] - addresses[0];

		if (distance > size + GAP || distance + each > SIZE_MOST)
			break;
		size = (size_t)distance + each;
	}
	return i > 1 ? size : 0;
}

void h5_window_move(struct h5_window *window, const uint64_t *addresses, size_t n, size_t each)
{
	uint64_t end = h5_file_end(window->file), address = addresses[0];
	size_t held, size;

	if (address >= end ||
	    (h5_window_at(window, address, &held) && held >= (size_t)h5_min(each, end - address)))
		return;
	window->size = 0;
	size = find_run(addresses, n, each);
	if (!size || size > SIZE_MOST)
		return;
	if (!window->bytes)
		window->bytes = malloc(SIZE_MOST);
	window->number = h5_file_number(window->file);
	window->address = address;
	if (window->bytes && h5_file_read_some(window->file, address, window->bytes, size, &window->size))
		window->size = 0;
}

const uint8_t *h5_window_at(const struct h5_window *window, uint64_t address, size_t *n)
{
	if (!window || address < window->address || address - window->address >= window->size ||
	    window->number != h5_file_number(window->file))
		return NULL;
	*n = window->size - (size_t)(address - window->address);
	return window->bytes + (address - window->address);
}
