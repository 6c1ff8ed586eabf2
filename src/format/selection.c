#include "format/selection.h"

#include "base/checked.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { FLAG_REGULAR = 1 };

static int damaged(const struct h5_reader *r, const char *what)
{
	return h5_fail(-EUCLEAN, h5_reader_address(r), "selection: %s", what);
}

static int read_rank(struct h5_reader *r, struct h5_selection *s)
{
	uint32_t rank = h5_read_u32(r);

	if (!r->err && (!rank || rank > H5_RANK_MAX))
		return damaged(r, "number of dimensions");
	s->rank = rank;
	return 0;
}

static int read_width(struct h5_reader *r, unsigned *width)
{
	*width = h5_read_u8(r);
	if (!r->err && *width != 2 && *width != 4 && *width != 8)
		return damaged(r, "encoding size");
	return 0;
}

/* A count, then for each point or block `per_item` x rank coordinates. */
static int read_coordinates(struct h5_reader *r, unsigned width, unsigned per_item, struct h5_selection *s)
{
	uint64_t count = h5_read_uint(r, width), n;
	int rc = h5_reader_check(r, "selection");

	if (rc)
		return rc;
	if (!h5_mul(count, (uint64_t)per_item * s->rank, &n) || n > h5_reader_left(r) / width)
		return damaged(r, "more coordinates than bytes");
	if (n > H5_SELECTION_COORDINATES_MAX)
		return h5_fail(-EFBIG, r->address, "selection: %ju coordinates", (uintmax_t)n);
	s->coordinates = malloc((size_t)n * sizeof *s->coordinates + 1);
	if (!s->coordinates)
		return -ENOMEM;
	s->count = count;
	for (uint64_t i = 0; i < n; i++)
		s->coordinates[i] = h5_read_uint(r, width);
	return 0;
}

/* Version 1:                       Version 2:
 *
 *   4  reserved                      1  encoding size (width)
 *   4  length of what follows        4  rank
 *   4  rank                          w  number of points
 *   4  number of points              w  coordinates
 *   4  coordinates */
static int decode_points(struct h5_reader *r, uint32_t version, struct h5_selection *s)
{
	unsigned width = 4;
	int rc = 0;

	if (version == 1)
		h5_reader_skip(r, 8);
	else if (version == 2)
		rc = read_width(r, &width);
	else
		return damaged(r, "version of points");
	if (!rc)
		rc = read_rank(r, s);
	if (!rc)
		rc = read_coordinates(r, width, 1, s);
	return rc;
}

static int check_blocks(const struct h5_reader *r, const struct h5_selection *s)
{
	for (uint64_t b = 0; b < s->count; b++) {
		const uint64_t *first = s->coordinates + 2 * s->rank * b, *last = first + s->rank;

		for (unsigned i = 0; i < s->rank; i++)
			if (first[i] > last[i] || last[i] == UINT64_MAX)
				return damaged(r, "block that ends before it begins");
	}
	return 0;
}

/* All ones mean unlimited, also in fewer than eight bytes. */
static uint64_t read_limited(struct h5_reader *r, unsigned width)
{
	uint64_t v = h5_read_uint(r, width);

	return width < 8 && v == ((uint64_t)1 << 8 * width) - 1 ? H5_UNLIMITED : v;
}

static bool is_unlimited(const struct h5_hyperslab *slab)
{
	return slab->count == H5_UNLIMITED || slab->block == H5_UNLIMITED;
}

/* Also sets the end. */
static bool slab_is_valid(struct h5_hyperslab *slab)
{
	slab->end = UINT64_MAX;
	if (!slab->stride || (slab->count > 1 && (slab->block > slab->stride || slab->block == H5_UNLIMITED)))
		return false;
	if (is_unlimited(slab))
		return slab->count != slab->block && slab->start != UINT64_MAX;
	if (!slab->count || !slab->block) {
		slab->end = slab->start;
		return true;
	}
	return h5_mul(slab->count - 1, slab->stride, &slab->end) &&
	       h5_add(slab->end, slab->block, &slab->end) && h5_add(slab->end, slab->start, &slab->end);
}

static int read_slabs(struct h5_reader *r, unsigned width, struct h5_selection *s)
{
	unsigned unlimited = 0;
	int rc;

	for (unsigned i = 0; i < s->rank; i++) {
		struct h5_hyperslab *slab = &s->slabs[i];

		slab->start = h5_read_uint(r, width);
		slab->stride = h5_read_uint(r, width);
		slab->count = read_limited(r, width);
		slab->block = read_limited(r, width);
		unlimited += is_unlimited(slab);
	}
	rc = h5_reader_check(r, "selection");
	if (rc)
		return rc;
	for (unsigned i = 0; i < s->rank; i++)
		if (!slab_is_valid(&s->slabs[i]))
			return damaged(r, "hyperslab that cannot be");
	return unlimited > 1 ? damaged(r, "more than one unlimited dimension") : 0;
}

/* Version 1:                 Version 2:                      Version 3:
 *
 *   4  reserved                1  flags (bit 0: regular)       1  flags
 *   4  length                  4  length                       1  encoding size (width)
 *   4  rank                    4  rank                         4  rank
 *   width 4, blocks            width 8                         slabs or blocks
 *
 * Slabs: start, stride, count, block for each dimension. Blocks: their number, then first and last element of
 * each. */
static int decode_hyperslab(struct h5_reader *r, uint32_t version, struct h5_selection *s)
{
	unsigned width = version == 1 ? 4 : 8;
	uint8_t flags = 0;
	int rc = 0;

	if (version < 1 || version > 3)
		return damaged(r, "version of a hyperslab");
	if (version == 1)
		h5_reader_skip(r, 4);
	else
		flags = h5_read_u8(r);
	if (version == 3)
		rc = read_width(r, &width);
	else
		h5_reader_skip(r, 4);
	if (!rc)
		rc = read_rank(r, s);
	if (rc)
		return rc;
	s->regular = flags & FLAG_REGULAR;
	if (s->regular)
		return read_slabs(r, width, s);
	rc = read_coordinates(r, width, 2, s);
	return rc ? rc : check_blocks(r, s);
}

/*   0  4  type    4  4  version    8  what the type and version need
 *
 * None and all: 8 bytes without a meaning (reserved, length). */
int h5_selection_decode(struct h5_reader *r, struct h5_selection *s)
{
	uint32_t kind = h5_read_u32(r), version = h5_read_u32(r);
	int rc = h5_reader_check(r, "selection");

	memset(s, 0, sizeof *s);
	if (rc)
		return rc;
	s->kind = (enum h5_selection_kind)kind;
	switch (kind) {
	case H5_SELECT_NONE:
	case H5_SELECT_ALL:
		if (version != 1)
			return damaged(r, "version");
		h5_reader_skip(r, 8);
		break;
	case H5_SELECT_POINTS:
		rc = decode_points(r, version, s);
		break;
	case H5_SELECT_HYPERSLAB:
		rc = decode_hyperslab(r, version, s);
		break;
	default:
		return damaged(r, "unknown type");
	}
	if (!rc)
		rc = h5_reader_check(r, "selection");
	if (rc)
		h5_selection_release(s);
	return rc;
}

void h5_selection_release(struct h5_selection *s)
{
	free(s->coordinates);
	s->coordinates = NULL;
	s->count = 0;
}

bool h5_selection_is_unlimited(const struct h5_selection *s)
{
	for (unsigned i = 0; s->regular && i < s->rank; i++)
		if (is_unlimited(&s->slabs[i]))
			return true;
	return false;
}

void h5_selection_clip(struct h5_selection *s, const uint64_t *dims)
{
	for (unsigned i = 0; s->regular && i < s->rank; i++) {
		struct h5_hyperslab *slab = &s->slabs[i];
		uint64_t left = dims[i] > slab->start ? dims[i] - slab->start : 0;

		if (!is_unlimited(slab))
			continue;
		slab->end = dims[i];
		if (slab->block == H5_UNLIMITED)
			slab->block = left;
		else
			slab->count = left / slab->stride + (left % slab->stride != 0);
	}
}

static int visit_slabs(const struct h5_selection *s, h5_selection_visit *visit, void *arg)
{
	uint64_t index[H5_RANK_MAX] = {0}, first[H5_RANK_MAX], last[H5_RANK_MAX];
	unsigned i;

	for (i = 0; i < s->rank; i++)
		if (!s->slabs[i].count || !s->slabs[i].block)
			return 0;
	do {
		int rc;

		for (i = 0; i < s->rank; i++) {
			const struct h5_hyperslab *slab = &s->slabs[i];
			uint64_t at = slab->start + index[i] * slab->stride;

			first[i] = at;
			last[i] = at + h5_min(slab->block, slab->end - at) - 1;
		}
		rc = visit(arg, s->rank, first, last);
		if (rc)
			return rc;
		/* the next block: the last dimension changes fastest */
		for (i = s->rank; i-- && ++index[i] == s->slabs[i].count;)
			index[i] = 0;
	} while (i < s->rank);
	return 0;
}

int h5_selection_blocks(const struct h5_selection *s, h5_selection_visit *visit, void *arg)
{
	int rc = 0;

	if (s->regular)
		return visit_slabs(s, visit, arg);
	for (uint64_t b = 0; b < s->count && !rc; b++) {
		const uint64_t *first = s->coordinates + 2 * s->rank * b;

		rc = visit(arg, s->rank, first, first + s->rank);
	}
	return rc;
}
