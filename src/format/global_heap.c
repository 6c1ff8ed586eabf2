#include "format/global_heap.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"

#include <stdlib.h>

enum { INDEXES_MAX = UINT16_MAX };

static uint64_t aligned(uint64_t n)
{
	return (n + 7) & ~UINT64_C(7);
}

/*   size  field
 *      4  signature GCOL
 *      1  version, 1
 *      3  reserved
 *      L  size of the collection
 *         up to a multiple of 8; then objects */
int h5_global_heap_size(struct h5_reader *prefix, uint64_t *size)
{
	bool is_collection = h5_read_signature(prefix, "GCOL");
	uint8_t version = h5_read_u8(prefix);

	if (!is_collection)
		return h5_fail(-EUCLEAN, prefix->address, "global heap collection: wrong signature");
	if (version != 1)
		return h5_fail(-EUCLEAN, prefix->address, "global heap collection: version %u", version);
	h5_reader_skip(prefix, 3);
	*size = h5_read_length(prefix);
	return h5_reader_check(prefix, "global heap collection");
}

static int by_index(const void *a, const void *b)
{
	const struct h5_global_heap_object *x = a, *y = b;

	if (x->index != y->index)
		return h5_compare(x->index, y->index);
	return h5_compare(x->offset, y->offset);
}

/* Object.
 *
 *   size  field
 *      2  index; 0: free space, up to the end
 *      2  reference count
 *      4  reserved
 *      L  size of the data
 *         up to a multiple of 8; data, up to a multiple of 8
 *
 * Decoding stops at an object that passes the end of the collection. The objects before it are good. */
int h5_global_heap_decode(struct h5_reader *r, struct h5_global_heap_object **objects, unsigned *count)
{
	size_t field = 8u + r->size_of_lengths, header = (size_t)aligned(field), capacity = 0;
	int rc = 0;

	*objects = NULL;
	*count = 0;
	h5_reader_skip(r, header);
	while (!rc && *count < INDEXES_MAX && h5_reader_left(r) >= header) {
		struct h5_global_heap_object object;

		object.index = h5_read_u16(r);
		object.references = h5_read_u16(r);
		h5_reader_skip(r, 4);
		object.size = h5_read_length(r);
		h5_reader_skip(r, header - field);
		object.offset = h5_reader_at(r);
		if (!object.index || object.size > h5_reader_left(r))
			break;
		rc = h5_array_reserve(objects, &capacity, *count + 1u, NULL);
		if (!rc)
			(*objects)[(*count)++] = object;
		h5_reader_skip(r, h5_min(aligned(object.size), h5_reader_left(r)));
	}
	if (rc) {
		free(*objects);
		*objects = NULL;
	} else if (*count) {
		qsort(*objects, *count, sizeof **objects, by_index);
	}
	return rc;
}

size_t h5_global_heap_header(uint8_t size_of_lengths)
{
	return (size_t)aligned(8u + size_of_lengths);
}

int h5_global_heap_next(struct h5_reader *r, uint64_t left, struct h5_global_heap_object *object)
{
	const uint64_t address = h5_reader_address(r);
	const size_t header = h5_global_heap_header(r->size_of_lengths);
	int rc;

	object->index = h5_read_u16(r);
	object->references = h5_read_u16(r);
	h5_reader_skip(r, 4);
	object->size = h5_read_length(r);
	h5_reader_skip(r, header - 8u - r->size_of_lengths);
	object->offset = h5_reader_at(r);
	rc = h5_reader_check(r, "global heap collection");
	if (rc)
		return rc;
	if (!object->index && object->size != left)
		return h5_fail(-EUCLEAN, address, "global heap collection: free space of %ju bytes, not %ju",
			       (uintmax_t)object->size, (uintmax_t)left);
	/* All is aligned, so the padding fits if the data do. */
	if (object->index && object->size > left - header)
		return h5_fail(-EUCLEAN, address,
			       "global heap collection: an object of %ju bytes passes the end",
			       (uintmax_t)object->size);
	return 0;
}

int h5_global_heap_check_size(uint64_t address, uint64_t size)
{
	if (size < H5_GLOBAL_HEAP_LEAST || size % 8)
		return h5_fail(-EUCLEAN, address, "global heap collection: a size of %ju bytes",
			       (uintmax_t)size);
	return 0;
}

/* Behind the last object there must be free space up to the end, or no room for another header. */
int h5_global_heap_verify(struct h5_reader *r)
{
	const size_t header = h5_global_heap_header(r->size_of_lengths);
	struct h5_global_heap_object object = {.index = 1};
	int rc = h5_global_heap_check_size(r->address, h5_reader_left(r));

	h5_reader_skip(r, header);
	while (!rc && object.index && h5_reader_left(r) >= header) {
		rc = h5_global_heap_next(r, h5_reader_left(r), &object);
		if (!rc && object.index)
			h5_reader_skip(r, (size_t)aligned(object.size));
	}
	return rc;
}

/* ---- encoding ---- */

uint64_t h5_global_heap_room(uint8_t size_of_lengths, uint64_t n)
{
	return aligned(8u + size_of_lengths) + aligned(n);
}

static void pad(struct h5_writer *w)
{
	const size_t n = (size_t)(aligned(h5_writer_at(w)) - h5_writer_at(w));

	if (n)
		h5_write_fill(w, 0, n);
}

void h5_global_heap_encode_prefix(struct h5_writer *w, uint64_t size)
{
	h5_write_bytes(w, "GCOL", 4);
	h5_write_u8(w, 1);
	h5_write_fill(w, 0, 3);
	h5_write_length(w, size);
	pad(w);
}

/* As libhdf5, with a reference count of 0. */
static void encode_header(struct h5_writer *w, uint16_t index, uint64_t size)
{
	h5_write_u64(w, index); /* 2 bytes, and 6 of zeros */
	h5_write_length(w, size);
	pad(w);
}

void h5_global_heap_encode_object(struct h5_writer *w, uint16_t index, const void *data, size_t n)
{
	encode_header(w, index, n);
	h5_write_bytes(w, data, n);
	pad(w);
}

void h5_global_heap_encode_free(struct h5_writer *w, uint64_t left)
{
	if (left >= h5_global_heap_room(w->size_of_lengths, 0))
		encode_header(w, 0, left);
}
