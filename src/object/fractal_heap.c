#include "object/fractal_heap.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "object/file_space.h"
#include "object/fractal_heap_private.h"
#include "store/block.h"
#include "store/pipeline.h"
#include "store/want.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void release_header(void *value)
{
	if (value)
		h5_fractal_heap_release(value);
	free(value);
}

static int load_header(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	struct h5_fractal_heap *heap = NULL;
	uint8_t prefix[H5_FRACTAL_HEAP_PREFIX];
	void *data = NULL;
	struct h5_reader r;
	size_t size;
	int rc = h5_file_read(file, address, prefix, sizeof prefix);

	(void)arg;
	if (rc)
		return rc;
	r = h5_file_reader(file, prefix, sizeof prefix, address);
	rc = h5_fractal_heap_size(&r, &size);
	if (!rc)
		rc = h5_block_open(file, address, size, "fractal heap", &data, &r);
	if (!rc) {
		heap = calloc(1, sizeof *heap);
		rc = heap ? h5_fractal_heap_decode(&r, heap)
			  : h5_fail(-ENOMEM, address, "fractal heap: out of memory");
	}
	free(data);
	if (rc) {
		release_header(heap);
		return rc;
	}
	*value = heap;
	*cost = sizeof *heap + size;
	return 0;
}

static const struct h5_block_type header_block = {{"fractal heap", release_header}, load_header};

int h5_heap_header_get(struct h5_file *file, uint64_t address, struct h5_lru_entry **ref,
		       const struct h5_fractal_heap **heap)
{
	int rc = h5_file_block(file, &header_block, address, 0, NULL, ref);

	*heap = rc ? NULL : h5_lru_value(*ref);
	return rc;
}

void h5_heap_header_keep(struct h5_file *file, uint64_t address, const struct h5_fractal_heap *heap)
{
	struct h5_fractal_heap *copy = malloc(sizeof *copy);

	/* Without memory the header is read again. */
	if (!copy)
		return;
	assert(!heap->filtered);
	*copy = *heap;
	h5_file_add_block(file, &header_block, address, 0, copy, sizeof *copy);
}

enum { WANTED_MOST = 4 << 20 }; /* bytes of direct blocks that are asked for at once */

/* Walks go to the direct blocks next: all of these come at once, unless they are much. */
static void want_children(struct h5_file *file, const struct h5_heap_request *request,
			  const struct h5_heap_indirect *block, size_t entries)
{
	struct h5_want want = {.file = file};
	uint64_t bytes = 0;

	if (!h5_file_is_far(file))
		return;
	for (size_t i = 0; i < entries && bytes < WANTED_MOST; i++) {
		struct h5_heap_request next;

		if (block->entries[i].address == H5_UNDEF ||
		    h5_heap_entry_request(request, &block->entries[i], i, &next) || next.rows)
			continue;
		h5_want_add(&want, next.entry.address, next.entry.stored ? next.entry.stored : next.size);
		bytes += next.size;
	}
	h5_want_send(&want, H5_WANTED_AROUND);
}

static int load_indirect(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	const struct h5_heap_request *request = arg;
	size_t entries = (size_t)request->rows * request->heap->width;
	size_t size = h5_fractal_heap_indirect_size(request->heap, request->rows, sb->size_of_offsets,
						    sb->size_of_lengths);
	struct h5_heap_indirect *block;
	struct h5_reader r;
	void *data;
	int rc = h5_block_open(file, address, size, "fractal heap indirect block", &data, &r);

	if (rc)
		return rc;
	*cost = sizeof *block + entries * sizeof *block->entries;
	block = malloc(*cost);
	if (block) {
		block->begin = request->begin;
		block->rows = request->rows;
		rc = h5_fractal_heap_indirect_decode(&r, request->heap, request->header, request->begin,
						     request->rows, block->entries);
	} else {
		rc = h5_fail(-ENOMEM, address, "fractal heap indirect block: out of memory");
	}
	free(data);
	if (rc) {
		free(block);
		return rc;
	}
	want_children(file, request, block, entries);
	*value = block;
	return 0;
}

static const struct h5_block_type indirect_block = {{"fractal heap indirect block", free}, load_indirect};

static void release_direct(void *value)
{
	struct h5_heap_direct *block = value;

	free(block->data);
	free(block);
}

static int load_direct(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	const struct h5_heap_request *request = arg;
	const struct h5_pipeline *pipeline = request->heap->filtered ? &request->heap->pipeline : NULL;
	struct h5_heap_direct *block = calloc(1, sizeof *block);
	struct h5_reader r;
	int rc;

	if (!block)
		return h5_fail(-ENOMEM, address, "fractal heap direct block: out of memory");
	block->begin = request->begin;
	block->size = request->size;
	rc = h5_pipeline_read(file, pipeline, request->entry.mask, address,
			      pipeline ? request->entry.stored : request->size, request->size, &block->data);
	if (!rc) {
		r = h5_file_reader(file, block->data, (size_t)request->size, address);
		rc = h5_fractal_heap_direct_check(&r, block->data, request->heap, request->header,
						  request->begin);
	}
	if (rc) {
		release_direct(block);
		return rc;
	}
	*value = block;
	*cost = sizeof *block + (size_t)request->size;
	return 0;
}

static const struct h5_block_type direct_block = {{"fractal heap direct block", release_direct}, load_direct};

int h5_heap_indirect_get(struct h5_file *file, const struct h5_heap_request *request,
			 struct h5_lru_entry **ref, const struct h5_heap_indirect **block)
{
	int rc = h5_file_block(file, &indirect_block, request->entry.address, request->header, request, ref);

	if (rc)
		return rc;
	*block = h5_lru_value(*ref);
	if ((*block)->begin == request->begin && (*block)->rows == request->rows)
		return 0;
	h5_file_put(file, *ref);
	return h5_fail(-EUCLEAN, request->entry.address, "fractal heap: one indirect block in two places");
}

int h5_heap_direct_get(struct h5_file *file, const struct h5_heap_request *request, struct h5_lru_entry **ref,
		       const struct h5_heap_direct **block)
{
	int rc = h5_file_block(file, &direct_block, request->entry.address, request->header, request, ref);

	if (rc)
		return rc;
	*block = h5_lru_value(*ref);
	if ((*block)->begin == request->begin && (*block)->size == request->size)
		return 0;
	h5_file_put(file, *ref);
	return h5_fail(-EUCLEAN, request->entry.address, "fractal heap: one direct block in two places");
}

/* Finds the block that holds `offset`: its entry and slot in the indirect block of the request. */
static int look_up(struct h5_file *file, const struct h5_heap_request *request, uint64_t offset,
		   struct h5_fractal_heap_entry *entry, struct h5_fractal_heap_slot *slot)
{
	const struct h5_heap_indirect *block;
	struct h5_lru_entry *ref;
	int rc = h5_heap_indirect_get(file, request, &ref, &block);

	if (rc)
		return rc;
	*slot = h5_fractal_heap_locate(request->heap, offset - request->begin);
	if (slot->row >= request->rows)
		rc = h5_fail(-EUCLEAN, request->entry.address, "fractal heap: no block at offset %llu",
			     (unsigned long long)offset);
	else
		*entry = block->entries[(size_t)slot->row * request->heap->width + slot->column];
	h5_file_put(file, ref);
	return rc;
}

int h5_heap_entry_request(const struct h5_heap_request *parent, const struct h5_fractal_heap_entry *entry,
			  size_t i, struct h5_heap_request *request)
{
	const struct h5_fractal_heap *heap = parent->heap;
	unsigned row = (unsigned)(i / heap->width);
	uint64_t size = h5_fractal_heap_row_size(heap, row);
	uint64_t row_begin = row ? size * heap->width : 0;

	*request = (struct h5_heap_request){
		.heap = heap,
		.header = parent->header,
		.begin = parent->begin + row_begin + i % heap->width * size,
		.size = size,
		.entry = *entry,
	};
	if (row < heap->direct_rows)
		return 0;
	request->rows = h5_fractal_heap_rows(heap, size);
	if (!request->rows || request->rows >= parent->rows)
		return h5_fail(-EUCLEAN, parent->header, "fractal heap: nonsense doubling table");
	return 0;
}

/* Goes down to the direct block that holds `offset`; the rows fall at each step. */
static int find_direct(struct h5_file *file, struct h5_heap_request *request, uint64_t offset)
{
	struct h5_fractal_heap_slot slot;
	unsigned rows;
	int rc;

	request->entry.address = request->heap->root;
	request->rows = request->heap->root_rows;
	if (!request->rows) {
		request->entry.stored = request->heap->root_stored;
		request->entry.mask = request->heap->root_mask;
		request->size = request->heap->start_size;
		return 0;
	}
	for (;;) {
		rc = look_up(file, request, offset, &request->entry, &slot);
		if (rc)
			return rc;
		request->begin += slot.begin;
		request->size = slot.size;
		if (slot.row < request->heap->direct_rows)
			return 0;
		rows = h5_fractal_heap_rows(request->heap, slot.size);
		assert(rows < request->rows);
		request->rows = rows;
		if (!rows)
			return h5_fail(-EUCLEAN, request->header, "fractal heap: nonsense doubling table");
	}
}

static int copy_out(const uint8_t *from, size_t n, struct h5_heap_object *object)
{
	int rc = h5_charge_set(&object->charge, n);

	if (rc)
		return rc;
	object->data = malloc(n ? n : 1);
	if (!object->data)
		return h5_fail(-ENOMEM, H5_UNDEF, "fractal heap object: out of memory");
	if (n)
		memcpy(object->data, from, n);
	object->size = n;
	return 0;
}

static int get_managed(struct h5_file *file, const struct h5_fractal_heap *heap, uint64_t header,
		       const struct h5_fractal_heap_id *id, struct h5_heap_object *object)
{
	size_t prefix = h5_fractal_heap_direct_prefix(heap, h5_file_superblock(file)->size_of_offsets);
	struct h5_heap_request request = {.heap = heap, .header = header};
	const struct h5_heap_direct *block;
	struct h5_lru_entry *ref;
	uint64_t at;
	int rc;

	if (heap->heap_bits < 64 && id->offset >> heap->heap_bits)
		return h5_fail(-EUCLEAN, header, "fractal heap: offset %llu beyond the heap",
			       (unsigned long long)id->offset);
	rc = find_direct(file, &request, id->offset);
	if (!rc)
		rc = h5_heap_direct_get(file, &request, &ref, &block);
	if (rc)
		return rc;
	at = id->offset - request.begin;
	if (at < prefix || at > request.size || id->size > request.size - at)
		rc = h5_fail(-EUCLEAN, request.entry.address,
			     "fractal heap: object of %llu bytes beyond its block",
			     (unsigned long long)id->size);
	else
		rc = copy_out(block->data + at, (size_t)id->size, object);
	h5_file_put(file, ref);
	return rc;
}

int h5_heap_huge_compare_key(void *arg, struct h5_reader record, int *rc)
{
	const struct h5_fractal_heap_id *id = arg;
	uint64_t key;

	(void)rc;
	h5_reader_skip(&record, h5_reader_left(&record) - record.size_of_lengths);
	key = h5_read_uint(&record, record.size_of_lengths);
	return h5_compare(id->key, key);
}

/* Record of a huge object (types 1 to 4 of version 2 B-trees).
 *
 *   size  field
 *      O  address
 *      L  stored length
 *      4  filter mask; types 2 and 4
 *      L  unfiltered length; types 2 and 4
 *      L  key; types 1 and 2               */
void h5_heap_huge_record(const struct h5_fractal_heap *heap, struct h5_reader r,
			 struct h5_fractal_heap_id *id)
{
	id->address = h5_read_offset(&r);
	id->size = id->memory_size = h5_read_length(&r);
	if (heap->filtered) {
		id->mask = h5_read_u32(&r);
		id->memory_size = h5_read_length(&r);
	}
}

enum h5_btree2_type h5_heap_huge_type(const struct h5_file *file, const struct h5_fractal_heap *heap,
				      unsigned *record_size)
{
	const struct h5_superblock *sb = h5_file_superblock(file);

	*record_size = sb->size_of_offsets + sb->size_of_lengths;
	if (heap->filtered)
		*record_size += 4u + sb->size_of_lengths;
	if (heap->huge_in_id)
		return heap->filtered ? H5_BTREE2_HUGE_DIRECT_FILTERED : H5_BTREE2_HUGE_DIRECT;
	*record_size += sb->size_of_lengths;
	return heap->filtered ? H5_BTREE2_HUGE_INDIRECT_FILTERED : H5_BTREE2_HUGE_INDIRECT;
}

int h5_heap_huge_open(struct h5_file *file, const struct h5_fractal_heap *heap, struct h5_btree2 *tree)
{
	unsigned expected;
	enum h5_btree2_type type = h5_heap_huge_type(file, heap, &expected);
	int rc = h5_btree2_open(file, heap->huge_btree, type, expected, tree);

	if (!rc && tree->address != H5_UNDEF && tree->record_size != expected)
		rc = h5_fail(-EUCLEAN, heap->huge_btree, "fractal heap: records of %u bytes",
			     tree->record_size);
	return rc;
}

static int find_huge(struct h5_file *file, const struct h5_fractal_heap *heap, struct h5_fractal_heap_id *id)
{
	struct h5_btree2 tree;
	uint8_t *record;
	int rc = h5_heap_huge_open(file, heap, &tree);

	if (rc)
		return rc;
	record = malloc(tree.record_size + 1u);
	if (!record)
		return h5_fail(-ENOMEM, H5_UNDEF, "fractal heap: out of memory");
	rc = h5_btree2_find(&tree, h5_heap_huge_compare_key, id, record);
	if (rc == -ENOENT)
		rc = h5_fail(-EUCLEAN, heap->huge_btree, "fractal heap: no huge object %llu",
			     (unsigned long long)id->key);
	if (!rc)
		h5_heap_huge_record(heap, h5_file_reader(file, record, tree.record_size, H5_UNDEF), id);
	free(record);
	return rc;
}

static int read_huge_object(struct h5_file *file, const struct h5_fractal_heap *heap,
			    const struct h5_fractal_heap_id *id, struct h5_heap_object *object)
{
	int rc;

	if (id->memory_size > H5_BLOCK_MAX)
		return h5_fail(-ENOTSUP, id->address,
			       "fractal heap: an object of %llu bytes is not supported",
			       (unsigned long long)id->memory_size);
	object->size = (size_t)id->memory_size;
	rc = h5_pipeline_read(file, heap->filtered ? &heap->pipeline : NULL, id->mask, id->address, id->size,
			      object->size, &object->data);
	return rc ? rc : h5_charge_set(&object->charge, object->size);
}

static int get_huge(struct h5_file *file, const struct h5_fractal_heap *heap, struct h5_fractal_heap_id *id,
		    struct h5_heap_object *object)
{
	int rc = id->direct ? 0 : find_huge(file, heap, id);

	return rc ? rc : read_huge_object(file, heap, id, object);
}

int h5_fractal_heap_get(struct h5_file *file, uint64_t address, const uint8_t *bytes, size_t id_size,
			struct h5_heap_object *object)
{
	struct h5_reader r = h5_file_reader(file, bytes, id_size, H5_UNDEF);
	const struct h5_fractal_heap *heap;
	struct h5_fractal_heap_id id;
	struct h5_lru_entry *ref;
	int rc = h5_interrupt_check();

	*object = (struct h5_heap_object){0};
	if (!rc)
		rc = h5_heap_header_get(file, address, &ref, &heap);
	if (rc)
		return rc;
	if (id_size < heap->id_size)
		rc = h5_fail(-EUCLEAN, address, "fractal heap: IDs of %u bytes instead of %zu", heap->id_size,
			     id_size);
	if (!rc)
		rc = h5_fractal_heap_id_decode(&r, heap, &id);
	if (!rc) {
		if (id.type == H5_HEAP_ID_TINY)
			rc = copy_out(id.data, (size_t)id.size, object);
		else if (id.type == H5_HEAP_ID_HUGE)
			rc = get_huge(file, heap, &id, object);
		else
			rc = get_managed(file, heap, address, &id, object);
	}
	if (rc)
		h5_heap_object_release(object);
	h5_file_put(file, ref);
	return rc;
}

/* ---- verifying it all ---- */

struct heap_check {
	struct h5_file *file;
	const struct h5_fractal_heap *heap;
	struct h5_damage *damage;
};

static int check_direct(struct heap_check *check, const struct h5_heap_request *request)
{
	const struct h5_heap_direct *block;
	struct h5_lru_entry *ref = NULL;
	int rc = h5_heap_direct_get(check->file, request, &ref, &block);

	if (!rc)
		h5_file_put(check->file, ref);
	return h5_damage_note(check->damage, rc);
}

static int check_indirect(struct heap_check *check, const struct h5_heap_request *request);

/* Checks the block of entry i of an indirect block. If it is an indirect one, it has fewer rows. */
static int check_entry(struct heap_check *check, const struct h5_heap_request *request,
		       const struct h5_fractal_heap_entry *entry, size_t i)
{
	struct h5_heap_request next;
	int rc = h5_heap_entry_request(request, entry, i, &next);

	if (rc)
		return h5_damage_note(check->damage, rc);
	return next.rows ? check_indirect(check, &next) : check_direct(check, &next);
}

/* None is walked twice, since each says where in the heap it belongs. */
static int check_indirect(struct heap_check *check, const struct h5_heap_request *request)
{
	const struct h5_heap_indirect *block;
	struct h5_lru_entry *ref;
	int rc = h5_interrupt_check();

	if (!rc)
		rc = h5_heap_indirect_get(check->file, request, &ref, &block);
	if (rc)
		return h5_damage_note(check->damage, rc);
	for (size_t i = 0; i < (size_t)block->rows * check->heap->width && !rc; i++)
		if (block->entries[i].address != H5_UNDEF)
			rc = check_entry(check, request, &block->entries[i], i);
	h5_file_put(check->file, ref);
	return rc;
}

static int check_root(struct heap_check *check, uint64_t header)
{
	struct h5_heap_request request = {
		.heap = check->heap,
		.header = header,
		.rows = check->heap->root_rows,
		.size = check->heap->start_size,
		.entry = {check->heap->root, check->heap->root_stored, check->heap->root_mask},
	};

	if (check->heap->root == H5_UNDEF)
		return 0;
	return request.rows ? check_indirect(check, &request) : check_direct(check, &request);
}

static int check_huge_object(void *arg, struct h5_reader record)
{
	struct h5_fractal_heap_id id = {0};
	struct heap_check *check = arg;
	struct h5_heap_object object = {0};
	int rc;

	h5_heap_huge_record(check->heap, record, &id);
	rc = read_huge_object(check->file, check->heap, &id, &object);
	h5_heap_object_release(&object);
	return h5_damage_note(check->damage, rc);
}

static int check_huge(struct heap_check *check)
{
	struct h5_btree2 tree;
	int rc = h5_heap_huge_open(check->file, check->heap, &tree);

	if (!rc)
		rc = h5_btree2_iterate(&tree, check_huge_object, check);
	return h5_damage_note(check->damage, rc);
}

int h5_fractal_heap_check(struct h5_file *file, uint64_t address, struct h5_damage *damage)
{
	struct heap_check check = {.file = file, .damage = damage};
	struct h5_lru_entry *ref;
	int rc = h5_heap_header_get(file, address, &ref, &check.heap);

	if (rc)
		return h5_damage_note(damage, rc);
	rc = check_root(&check, address);
	if (!rc)
		rc = check_huge(&check);
	if (!rc && check.heap->free_space != H5_UNDEF)
		rc = h5_free_space_check(file, check.heap->free_space, damage);
	h5_file_put(file, ref);
	return rc;
}
