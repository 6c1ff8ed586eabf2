#include "format/dataspace.h"

#include "base/checked.h"
#include "base/error.h"

#include <string.h>

/* Offset of the dimension sizes. */
static unsigned sizes_at(unsigned version)
{
	return version == 1 ? 8 : 4;
}

/* Version 1:                          Version 2:
 *
 *   0  1  version                       0  1  version
 *   1  1  dimensionality (rank)         1  1  dimensionality (rank)
 *   2  1  flags                         2  1  flags
 *   3  5  reserved                      3  1  type (enum h5_dataspace_kind)
 *   8  L  sizes, rank of them           4  L  sizes, rank of them
 *      L  maximum sizes (flag bit 0)       L  maximum sizes (flag bit 0)
 *      L  permutation (flag bit 1; never implemented, so it is not read) */
int h5_dataspace_decode(struct h5_reader *r, struct h5_dataspace *space)
{
	uint8_t version = h5_read_u8(r), rank = h5_read_u8(r), flags = h5_read_u8(r), kind = h5_read_u8(r);
	int rc = h5_reader_check(r, "dataspace message");

	if (rc)
		return rc;
	if (version != 1 && version != 2)
		return h5_fail(-EUCLEAN, r->address, "dataspace message: version %u", version);
	if (rank > H5_RANK_MAX)
		return h5_fail(-EUCLEAN, r->address, "dataspace message: %u dimensions", rank);
	if (version == 2 && kind > H5_SPACE_NULL)
		return h5_fail(-EUCLEAN, r->address, "dataspace message: type %u", kind);
	if (version == 2 && kind != H5_SPACE_SIMPLE && rank)
		return h5_fail(-EUCLEAN, r->address, "dataspace message: %u dimensions in type %u", rank,
			       kind);
	*space = (struct h5_dataspace){.rank = rank, .kind = rank ? H5_SPACE_SIMPLE : H5_SPACE_SCALAR};
	if (version == 2 && kind == H5_SPACE_NULL)
		space->kind = H5_SPACE_NULL;
	h5_reader_skip(r, sizes_at(version) - 4);
	for (unsigned i = 0; i < rank; i++)
		space->max[i] = space->dims[i] = h5_read_length(r);
	space->has_max = flags & 1;
	for (unsigned i = 0; space->has_max && i < rank; i++)
		space->max[i] = h5_read_length(r);
	if (space->kind == H5_SPACE_NULL)
		space->elements = 0;
	else if (!h5_product(space->dims, rank, &space->elements))
		space->elements = UINT64_MAX;
	return h5_reader_check(r, "dataspace message");
}

void h5_dataspace_encode(struct h5_writer *w, const struct h5_dataspace *space)
{
	unsigned rank = space->kind == H5_SPACE_SIMPLE ? space->rank : 0;
	bool has_max =
		rank && (space->has_max || memcmp(space->dims, space->max, rank * sizeof *space->dims));

	h5_write_u8(w, 2);
	h5_write_u8(w, (uint8_t)rank);
	h5_write_u8(w, has_max);
	h5_write_u8(w, (uint8_t)space->kind);
	for (unsigned i = 0; i < rank; i++)
		h5_write_length(w, space->dims[i]);
	for (unsigned i = 0; i < rank && has_max; i++)
		h5_write_length(w, space->max[i]);
}

int h5_dataspace_update(uint8_t *body, size_t n, uint8_t size_of_lengths, const struct h5_dataspace *space)
{
	struct h5_reader r = h5_reader_init(body, n, H5_UNDEF, 8, size_of_lengths);
	struct h5_writer w = h5_writer_init(body, n, 8, size_of_lengths);
	struct h5_dataspace old;
	int rc = h5_dataspace_decode(&r, &old);

	if (rc)
		return rc;
	if (old.rank != space->rank)
		return h5_fail(-EUCLEAN, H5_UNDEF, "dataspace message: %u dimensions, not %u", old.rank,
			       space->rank);
	w.p += sizes_at(body[0]);
	for (unsigned i = 0; i < space->rank; i++)
		h5_write_length(&w, space->dims[i]);
	return h5_writer_check(&w, "dataspace message");
}
