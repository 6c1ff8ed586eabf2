#include "store/cache_image.h"

#include "base/checked.h"
#include "base/error.h"
#include "format/cache_image.h"
#include "store/block.h"

#include <stdlib.h>
#include <string.h>

struct h5_cache_image {
	void *block; /* the bytes of the image */
	uint32_t count;
	struct h5_cache_image_entry *entries; /* by address, without overlaps; into block */
};

enum {
	ENTRY_MIN = 18,	     /* bytes of the smallest entry: with addresses and sizes of 2 bytes */
	IMAGE_MAX = 1 << 26, /* many times what a cache of metadata has */
};

static int by_address(const void *a, const void *b)
{
	const struct h5_cache_image_entry *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static int decode_entries(struct h5_cache_image *image, struct h5_reader *r)
{
	uint32_t count;
	int rc = h5_cache_image_decode(r, &count);

	if (rc)
		return rc;
	if (count > h5_reader_left(r) / ENTRY_MIN)
		return h5_fail(-EUCLEAN, r->address, "cache image: %u entries do not fit", count);
	image->entries = calloc((size_t)count + 1, sizeof *image->entries);
	if (!image->entries)
		return h5_fail(-ENOMEM, r->address, "cache image: out of memory");
	while (!rc && image->count < count)
		rc = h5_cache_image_entry_decode(r, &image->entries[image->count++]);
	if (rc)
		return rc;
	qsort(image->entries, count, sizeof *image->entries, by_address);
	for (uint32_t i = 1; i < count; i++)
		if (image->entries[i].address - image->entries[i - 1].address < image->entries[i - 1].size)
			return h5_fail(-EUCLEAN, r->address, "cache image: entries overlap");
	return 0;
}

int h5_cache_image_open(struct h5_file *file, const struct h5_header *extension, struct h5_cache_image **out)
{
	const struct h5_message *m = h5_header_find(extension, H5_MSG_CACHE_IMAGE);
	struct h5_cache_image_message message;
	struct h5_cache_image *image;
	struct h5_reader r;
	int rc;

	*out = NULL;
	if (!m)
		return 0;
	r = h5_file_reader(file, m->data, m->size, m->address);
	rc = h5_cache_image_message_decode(&r, &message);
	if (rc || message.address == H5_UNDEF)
		return rc;
	if (message.size > IMAGE_MAX)
		return h5_fail(-ENOTSUP, message.address, "cache image: %ju bytes", (uintmax_t)message.size);
	image = calloc(1, sizeof *image);
	if (!image)
		return h5_fail(-ENOMEM, message.address, "cache image: out of memory");
	rc = h5_block_read(file, message.address, 0, message.size, "cache image", &image->block);
	if (!rc) {
		r = h5_file_reader(file, image->block, (size_t)message.size, message.address);
		rc = decode_entries(image, &r);
	}
	if (rc) {
		h5_cache_image_close(image);
		return rc;
	}
	*out = image;
	return 0;
}

void h5_cache_image_close(struct h5_cache_image *image)
{
	if (!image)
		return;
	free(image->entries);
	free(image->block);
	free(image);
}

void h5_cache_image_apply(const struct h5_cache_image *image, uint64_t address, uint8_t *buf, size_t n)
{
	uint32_t low = 0, high = image->count;

	/* The first entry that does not end before the address. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct h5_cache_image_entry *e = &image->entries[middle];

		if (e->address <= address && address - e->address >= e->size)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < image->count; low++) {
		const struct h5_cache_image_entry *e = &image->entries[low];
		uint64_t from = e->address < address ? address - e->address : 0;
		uint64_t to = e->address < address ? 0 : e->address - address;

		if (to >= n)
			break;
		memcpy(buf + to, e->data + from, (size_t)h5_min(e->size - from, n - to));
	}
}
