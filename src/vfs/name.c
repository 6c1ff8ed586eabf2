#include "vfs/name.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
	KEPT = 200,    /* bytes of a cut name that stay */
	MARK_SIZE = 18 /* bytes of "%~" and 16 hex digits */
};

/* FNV-1a, 64 bits. */
static uint64_t hash(const char *name, size_t size)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < size; i++)
		h = (h ^ (uint8_t)name[i]) * 0x100000001b3;
	return h;
}

/* The byte that two characters after a `%` stand for; -1: they are no escape. Few pairs are, and only with
 * upper-case digits, so that most names with a `%` need no escape. */
static int escaped_byte(const char digits[2])
{
	static const struct {
		char digits[3], byte;
	} escapes[] = {{"2F", '/'}, {"00", 0}, {"25", '%'}, {"2E", '.'}};

	for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
		if (!memcmp(escapes[i].digits, digits, 2))
			return escapes[i].byte;
	return -1;
}

/* True: the `%` at i looks like the begin of an escape, or of the mark of a cut name. */
static bool reads_as_escape(const char *name, size_t size, size_t i)
{
	if (i + 1 < size && name[i + 1] == '~')
		return true;
	return i + 2 < size && escaped_byte(name + i + 1) >= 0;
}

static bool is_escaped(const char *name, size_t size, size_t i)
{
	if (name[i] == '/' || !name[i])
		return true;
	if (name[i] == '%')
		return size == 1 || reads_as_escape(name, size, i);
	return name[i] == '.' && (size == 1 || (size == 2 && name[0] == '.' && name[1] == '.'));
}

static size_t cut(char out[H5_NAME_MAX + 1], size_t kept, const char *name, size_t size)
{
	return kept +
	       (size_t)snprintf(out + kept, H5_NAME_MAX + 1 - kept, "%%~%016" PRIx64, hash(name, size));
}

size_t h5_name_escape_within(const char *name, size_t size, size_t limit, char out[H5_NAME_MAX + 1])
{
	size_t n = 0, kept = 0;

	if (!size)
		out[n++] = '%';
	for (size_t i = 0; i < size; i++) {
		bool escaped = is_escaped(name, size, i);

		if (n + (escaped ? 3 : 1) > limit)
			return cut(out, kept, name, size);
		if (escaped)
			n += (size_t)snprintf(out + n, 4, "%%%02X", (uint8_t)name[i]);
		else
			out[n++] = name[i];
		if (n <= KEPT)
			kept = n;
	}
	out[n] = 0;
	return n;
}

size_t h5_name_escape(const char *name, size_t size, char out[H5_NAME_MAX + 1])
{
	return h5_name_escape_within(name, size, H5_NAME_MAX, out);
}

size_t h5_name_unescape(const char *file_name, char *out)
{
	size_t n = 0;

	if (!strcmp(file_name, "%"))
		return 0;
	for (const char *p = file_name; *p; p++) {
		int byte = *p == '%' && p[1] ? escaped_byte(p + 1) : -1;

		if (byte >= 0) {
			out[n++] = (char)byte;
			p += 2;
		} else {
			out[n++] = *p;
		}
	}
	return n;
}

bool h5_name_is_cut(const char *name)
{
	size_t n = strlen(name);

	return n >= MARK_SIZE && name[n - MARK_SIZE] == '%' && name[n - MARK_SIZE + 1] == '~';
}

bool h5_name_can_be_new(const char *file_name)
{
	char name[H5_NAME_MAX + 1], again[H5_NAME_MAX + 1];
	size_t n = h5_name_unescape(file_name, name);

	h5_name_escape(name, n, again);
	return n && !memchr(name, 0, n) && !h5_name_is_cut(file_name) && !strcmp(again, file_name);
}

size_t h5_name_of_attribute(const char *name, char out[H5_NAME_MAX + 1])
{
	int n = snprintf(out, H5_NAME_MAX + 1, "user.%s", name);

	return n <= H5_NAME_MAX ? (size_t)n : cut(out, KEPT, name, strlen(name));
}

void h5_path_escape(struct h5_buf *out, const char *path, size_t size)
{
	const char *end = path + size;
	char name[H5_NAME_MAX + 1];

	while (path < end) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		size_t n = (size_t)((slash ? slash : end) - path);

		if (n && !(n == 1 && *path == '.')) {
			if (out->size && out->data[out->size - 1] != '/')
				h5_buf_byte(out, '/');
			h5_buf_add(out, name, h5_name_escape(path, n, name));
		}
		path += n + (slash != NULL);
	}
}
