#include "filter/planes.h"

#include "base/checked.h"

#include <string.h>

enum {
	TILE = 16,  /* elements that are merged or split at once */
	BLOCK = 64, /* elements of which each plane is in a line of the cache */
};

#define INLINE static inline __attribute__((always_inline))

/* Merges k = 2^bits bytes, up to 8, of each of sixteen elements. Elements lie `size` bytes apart, planes n.
 */
INLINE void merge_tile(const uint8_t *planes, size_t n, unsigned bits, uint8_t *out, size_t size)
{
	const unsigned k = 1u << bits;
	uint8_t tile[8 * TILE];
	h5_bytes v[8];

	H5_UNROLL
	for (unsigned i = 0; i < k; i++)
		memcpy(&v[i], planes + i * n, TILE);
	H5_UNROLL
	for (unsigned i = 0; i < bits; i++)
		h5_zip(v, k);
	H5_UNROLL
	for (unsigned i = 0; i < k; i++)
		memcpy((size == k ? out : tile) + TILE * i, &v[i], TILE);
	if (size == k)
		return;
	H5_UNROLL
	for (unsigned i = 0; i < TILE; i++)
		memcpy(out + i * size, tile + i * k, k);
}

INLINE void split_tile(const uint8_t *in, size_t size, unsigned bits, uint8_t *planes, size_t n)
{
	const unsigned k = 1u << bits;
	uint8_t tile[8 * TILE];
	h5_bytes v[8];

	if (size != k) {
		H5_UNROLL
		for (unsigned i = 0; i < TILE; i++)
			memcpy(tile + i * k, in + i * size, k);
		in = tile;
	}
	H5_UNROLL
	for (unsigned i = 0; i < k; i++)
		memcpy(&v[i], in + TILE * i, TILE);
	H5_UNROLL
	for (unsigned i = 0; i < 4; i++)
		h5_zip(v, k);
	H5_UNROLL
	for (unsigned i = 0; i < k; i++)
		memcpy(planes + i * n, &v[i], TILE);
}

/* Merges `run` elements, a multiple of a tile. */
INLINE void merge_run(const uint8_t *planes, size_t n, size_t run, unsigned bits, uint8_t *out, size_t size)
{
	for (size_t e = 0; e < run; e += TILE)
		merge_tile(planes + e, n, bits, out + e * size, size);
}

INLINE void split_run(const uint8_t *in, size_t size, size_t run, unsigned bits, uint8_t *planes, size_t n)
{
	for (size_t e = 0; e < run; e += TILE)
		split_tile(in + e * size, size, bits, planes + e, n);
}

/* Merges elements of any size. */
static void merge_block(const uint8_t *planes, size_t n, size_t run, uint8_t *out, size_t size)
{
	size_t b = 0;

	for (; size - b >= 8; b += 8)
		merge_run(planes + b * n, n, run, 3, out + b, size);
	if (size - b >= 4) {
		merge_run(planes + b * n, n, run, 2, out + b, size);
		b += 4;
	}
	if (size - b >= 2) {
		merge_run(planes + b * n, n, run, 1, out + b, size);
		b += 2;
	}
	if (size > b)
		merge_run(planes + b * n, n, run, 0, out + b, size);
}

static void split_block(const uint8_t *in, size_t size, size_t run, uint8_t *planes, size_t n)
{
	size_t b = 0;

	for (; size - b >= 8; b += 8)
		split_run(in + b, size, run, 3, planes + b * n, n);
	if (size - b >= 4) {
		split_run(in + b, size, run, 2, planes + b * n, n);
		b += 4;
	}
	if (size - b >= 2) {
		split_run(in + b, size, run, 1, planes + b * n, n);
		b += 2;
	}
	if (size > b)
		split_run(in + b, size, run, 0, planes + b * n, n);
}

void h5_planes_merge(const uint8_t *planes, size_t distance, size_t n, size_t size, uint8_t *out)
{
	size_t whole = n / TILE * TILE;

	switch (size) {
	case 2:
		merge_run(planes, distance, whole, 1, out, 2);
		break;
	case 4:
		merge_run(planes, distance, whole, 2, out, 4);
		break;
	case 8:
		merge_run(planes, distance, whole, 3, out, 8);
		break;
	default:
		for (size_t at = 0; at < whole; at += BLOCK)
			merge_block(planes + at, distance, (size_t)h5_min(BLOCK, whole - at), out + at * size,
				    size);
	}
	for (size_t b = 0; b < size && whole < n; b++)
		for (size_t e = whole; e < n; e++)
			out[e * size + b] = planes[b * distance + e];
}

void h5_planes_split(const uint8_t *in, size_t n, size_t size, uint8_t *planes)
{
	size_t whole = n / TILE * TILE;

	switch (size) {
	case 2:
		split_run(in, 2, whole, 1, planes, n);
		break;
	case 4:
		split_run(in, 4, whole, 2, planes, n);
		break;
	case 8:
		split_run(in, 8, whole, 3, planes, n);
		break;
	default:
		for (size_t at = 0; at < whole; at += BLOCK)
			split_block(in + at * size, size, (size_t)h5_min(BLOCK, whole - at), planes + at, n);
	}
	for (size_t b = 0; b < size && whole < n; b++)
		for (size_t e = whole; e < n; e++)
			planes[b * n + e] = in[e * size + b];
}
