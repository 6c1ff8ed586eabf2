#include "object/global_heap.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/lower_bound.h"
#include "format/global_heap.h"
#include "store/block.h"
#include "store/file.h"

#include <assert.h>
#include <stdlib.h>

enum { WINDOW = 1 << 12 }; /* bytes of a collection that are read at once */

struct collection {
	uint8_t *data;
	struct h5_global_heap_object *objects; /* by index */
	unsigned count;
	uint64_t size; /* bytes */
};

static void release_collection(void *value)
{
	struct collection *collection = value;

	free(collection->objects);
	free(collection->data);
	free(collection);
}

static int read_size(struct h5_file *file, uint64_t address, uint64_t *size)
{
	uint8_t prefix[H5_GLOBAL_HEAP_PREFIX];
	struct h5_reader r;
	int rc = h5_file_read(file, address, prefix, sizeof prefix);

	if (rc)
		return rc;
	r = h5_file_reader(file, prefix, sizeof prefix, address);
	return h5_global_heap_size(&r, size);
}

static int load_collection(struct h5_file *file, uint64_t address, const void *arg, void **value,
			   size_t *cost)
{
	struct collection *collection;
	struct h5_reader r;
	uint64_t size;
	void *data;
	int rc = read_size(file, address, &size);

	(void)arg;
	if (rc)
		return rc;
	collection = calloc(1, sizeof *collection);
	if (!collection)
		return h5_fail(-ENOMEM, address, "global heap collection: out of memory");
	rc = h5_block_open(file, address, size, "global heap collection", &data, &r);
	if (!rc) {
		collection->data = data;
		rc = h5_global_heap_decode(&r, &collection->objects, &collection->count);
	}
	if (rc) {
		release_collection(collection);
		return rc;
	}
	collection->size = size;
	*value = collection;
	*cost = sizeof *collection + (size_t)size + collection->count * sizeof *collection->objects;
	return 0;
}

static const struct h5_block_type collection_block = {{"global heap collection", release_collection},
						      load_collection};

/* The first object with the index; NULL: there is none. */
static const struct h5_global_heap_object *find(const struct collection *collection, uint32_t index)
{
	size_t first = h5_lower_bound(i, collection->count, collection->objects[i].index < index);

	if (first == collection->count || collection->objects[first].index != index)
		return NULL;
	return &collection->objects[first];
}

int h5_global_heap_get(struct h5_file *file, uint64_t address, uint32_t index, struct h5_lru_entry **ref,
		       const uint8_t **data, size_t *size)
{
	const struct h5_global_heap_object *object;
	const struct collection *collection;
	int rc = h5_file_block(file, &collection_block, address, 0, NULL, ref);

	if (rc)
		return rc;
	collection = h5_lru_value(*ref);
	object = find(collection, index);
	if (!object) {
		h5_file_put(file, *ref);
		*ref = NULL;
		return h5_fail(-EUCLEAN, address, "global heap collection: no object %u", index);
	}
	*data = collection->data + object->offset;
	*size = (size_t)object->size;
	return 0;
}

/* A part of a collection that is in memory. */
struct window {
	struct h5_file *file;
	uint64_t address, size; /* of the collection */
	uint64_t begin;		/* offset of the part */
	size_t n;		/* its bytes */
	uint8_t bytes[WINDOW];
};

/* Makes a reader that begins at the offset of the collection, with the n bytes from there on. Offsets rise.
 */
static int look_at(struct window *w, uint64_t offset, size_t n, struct h5_reader *r)
{
	int rc;

	assert(offset >= w->begin);
	if (n > w->n || offset - w->begin > w->n - n) {
		w->begin = offset;
		w->n = (size_t)h5_min(WINDOW, w->size - offset);
		rc = h5_file_read(w->file, w->address + offset, w->bytes, w->n);
		if (rc)
			return rc;
	}
	*r = h5_file_reader(w->file, w->bytes + (offset - w->begin), n, w->address + offset);
	return 0;
}

static int check_bounds(struct h5_file *file, uint64_t address, uint64_t size)
{
	const uint64_t end = h5_file_end(file);
	int rc = h5_global_heap_check_size(address, size);

	if (!rc && (address > end || size > end - address))
		rc = h5_fail(-EUCLEAN, address, "global heap collection: it passes the end of the file");
	return rc;
}

int h5_global_heap_each(struct h5_file *file, uint64_t address, h5_global_heap_visit *visit, void *arg,
			uint64_t *size)
{
	const uint8_t lengths = h5_file_superblock(file)->size_of_lengths;
	const size_t header = h5_global_heap_header(lengths);
	struct h5_global_heap_object object = {.index = 1};
	struct window w = {.file = file, .address = address};
	uint64_t at = header;
	struct h5_reader r;
	int rc = read_size(file, address, size);

	if (!rc)
		rc = check_bounds(file, address, *size);
	w.size = *size;
	while (!rc && object.index && w.size - at >= header) {
		rc = look_at(&w, at, header, &r);
		if (!rc)
			rc = h5_global_heap_next(&r, w.size - at, &object);
		object.offset = at + header;
		if (!rc && object.index)
			rc = visit(arg, &object);
		at += h5_global_heap_room(lengths, object.size);
	}
	return rc;
}

int h5_global_heap_check(struct h5_file *file, uint64_t address)
{
	struct h5_reader r;
	uint64_t size;
	void *data;
	int rc = read_size(file, address, &size);

	if (!rc)
		rc = h5_block_open(file, address, size, "global heap collection", &data, &r);
	if (rc)
		return rc;
	rc = h5_global_heap_verify(&r);
	free(data);
	return rc;
}
