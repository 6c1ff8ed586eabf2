/* The space of a fractal heap. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "object/fractal_heap.h"
#include "object/fractal_heap_space.h"

struct visitor {
	struct h5_file *file;
	const struct h5_fractal_heap *heap;
	uint64_t address; /* of the heap's header */
	h5_extent_visit *visit;
	void *arg;
};

static int visit_direct(const struct visitor *v, const struct h5_heap_request *request)
{
	const struct h5_heap_direct *block;
	struct h5_lru_entry *ref;
	int rc = h5_heap_direct_get(v->file, request, &ref, &block);

	if (rc)
		return rc;
	h5_file_put(v->file, ref);
	return v->visit(v->arg, request->entry.address,
			v->heap->filtered ? request->entry.stored : request->size);
}

/* The recursion ends, since a block has fewer rows than the one above it. All blocks that are met are at
 * different addresses, since each says where in the heap it belongs. */
static int visit_indirect(const struct visitor *v, const struct h5_heap_request *request)
{
	const struct h5_superblock *sb = h5_file_superblock(v->file);
	const struct h5_heap_indirect *block;
	struct h5_lru_entry *ref;
	int rc = h5_interrupt_check();

	if (!rc)
		rc = h5_heap_indirect_get(v->file, request, &ref, &block);
	if (rc)
		return rc;
	for (size_t i = 0; i < (size_t)block->rows * v->heap->width && !rc; i++) {
		struct h5_heap_request next;

		if (block->entries[i].address == H5_UNDEF)
			continue;
		rc = h5_heap_entry_request(request, &block->entries[i], i, &next);
		if (!rc)
			rc = next.rows ? visit_indirect(v, &next) : visit_direct(v, &next);
	}
	h5_file_put(v->file, ref);
	if (rc)
		return rc;
	return v->visit(v->arg, request->entry.address,
			h5_fractal_heap_indirect_size(v->heap, request->rows, sb->size_of_offsets,
						      sb->size_of_lengths));
}

static int visit_managed(const struct visitor *v)
{
	const struct h5_heap_request root = {
		.heap = v->heap,
		.header = v->address,
		.rows = v->heap->root_rows,
		.size = v->heap->start_size,
		.entry = {v->heap->root, v->heap->root_stored, v->heap->root_mask},
	};

	if (v->heap->root == H5_UNDEF)
		return 0;
	return root.rows ? visit_indirect(v, &root) : visit_direct(v, &root);
}

static int visit_huge_object(void *arg, struct h5_reader record)
{
	const struct visitor *v = arg;
	struct h5_fractal_heap_id id = {0};
	uint64_t end;

	h5_heap_huge_record(v->heap, record, &id);
	if (!id.size || !h5_add(id.address, id.size, &end) || end > h5_file_end(v->file))
		return h5_fail(-EUCLEAN, v->address, "fractal heap: a huge object of %ju bytes at %ju",
			       (uintmax_t)id.size, (uintmax_t)id.address);
	return v->visit(v->arg, id.address, id.size);
}

static int visit_huge(struct visitor *v)
{
	struct h5_btree2 tree;
	int rc;

	if (v->heap->huge_btree == H5_UNDEF)
		return 0;
	rc = h5_heap_huge_open(v->file, v->heap, &tree);
	if (!rc)
		rc = h5_btree2_iterate(&tree, visit_huge_object, v);
	return rc ? rc : h5_btree2_extents(&tree, v->visit, v->arg);
}

static int visit_space(const struct visitor *v)
{
	struct h5_heap_space space;
	int rc = h5_heap_space_load(v->file, v->heap, &space);

	return rc ? rc : h5_heap_space_extents(&space, v->visit, v->arg);
}

/* If there are filters, the length of the header is in its first bytes. */
static int visit_header(const struct visitor *v)
{
	uint8_t prefix[H5_FRACTAL_HEAP_PREFIX];
	struct h5_reader r = h5_file_reader(v->file, prefix, sizeof prefix, v->address);
	size_t size;
	int rc = h5_file_read(v->file, v->address, prefix, sizeof prefix);

	if (!rc)
		rc = h5_fractal_heap_size(&r, &size);
	return rc ? rc : v->visit(v->arg, v->address, size);
}

int h5_fractal_heap_extents(struct h5_file *file, uint64_t address, h5_extent_visit *visit, void *arg)
{
	struct visitor v = {.file = file, .address = address, .visit = visit, .arg = arg};
	struct h5_lru_entry *ref;
	int rc = h5_heap_header_get(file, address, &ref, &v.heap);

	if (rc)
		return rc;
	rc = visit_managed(&v);
	if (!rc)
		rc = visit_huge(&v);
	if (!rc)
		rc = visit_space(&v);
	if (!rc)
		rc = visit_header(&v);
	h5_file_put(file, ref);
	return rc;
}
