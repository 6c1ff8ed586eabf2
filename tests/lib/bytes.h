/* Bytes of a file built by hand, little-endian. */
#ifndef H5_TESTS_BYTES_H
#define H5_TESTS_BYTES_H

#include "base/lookup3.h"
#include "store/file_set.h"
#include "unit.h"

#include <stdbool.h>
#include <string.h>

struct bytes {
	uint8_t data[8192];
	size_t n;
};

static inline void put(struct bytes *b, uint64_t v, unsigned width)
{
	for (unsigned i = 0; i < width; i++)
		b->data[b->n++] = (uint8_t)(i < 8 ? v >> (8 * i) : 0);
}

static inline void put_all(struct bytes *b, const uint64_t *v, size_t n, unsigned width)
{
	for (size_t i = 0; i < n; i++)
		put(b, v[i], width);
}

/* A string with its NUL, if asked for padded to a multiple of eight bytes. */
static inline void put_name(struct bytes *b, const char *name, bool padded)
{
	size_t n = strlen(name) + 1;

	memcpy(b->data + b->n, name, n);
	b->n += n;
	for (; padded && n % 8; n++)
		put(b, 0, 1);
}

/* A version 2 superblock, 48 bytes, with 8-byte offsets and lengths; of a root group that is not there. */
static inline void put_superblock(struct bytes *b)
{
	put(b, 0x0a1a0a0d46444889, 8);
	put(b, 2 | 8 << 8 | 8 << 16, 4);
	put(b, 0, 8);
	put(b, UINT64_MAX, 8);
	put(b, sizeof b->data, 8);
	put(b, 48, 8);
	put(b, h5_lookup3(b->data, b->n, 0), 4);
}

/* A file of these bytes, which begin with a superblock. */
static inline struct h5_file_set *open_bytes(const struct bytes *b)
{
	struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};
	struct h5_file_set *set;

	ck_assert_int_eq(h5_file_set_open_memory(b->data, sizeof b->data, &options, &set), 0);
	return set;
}

#endif
