#include "object/fractal_heap_write.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/btree2_write.h"
#include "change/transaction.h"
#include "object/fractal_heap.h"
#include "object/fractal_heap_space.h"
#include "object/fractal_heap_table.h"

#include <stdlib.h>
#include <string.h>

/* What libhdf5 gives the heaps of links and attributes, and their trees of huge objects. */
enum {
	TABLE_WIDTH = 4,
	START_SIZE = 512,
	START_ROWS = 1,
	DIRECT_MAX = 65536,
	MANAGED_MAX = 4096,
	HUGE_NODE_SIZE = 512,
	HUGE_SPLIT_PERCENT = 100,
	HUGE_MERGE_PERCENT = 40,
};

struct heap_edit {
	struct h5_heap_change table;
	struct h5_heap_space space;
};

/* ---- huge objects ---- */

static int check_object_space(const struct h5_heap_change *change, const struct h5_fractal_heap_id *id)
{
	uint64_t end;

	if (!id->size || !h5_add(id->address, id->size, &end) || end > h5_file_end(change->file))
		return h5_fail(-EUCLEAN, change->address, "fractal heap: a huge object of %ju bytes at %ju",
			       (uintmax_t)id->size, (uintmax_t)id->address);
	return 0;
}

static int compare_address(void *arg, struct h5_reader record, int *rc)
{
	const struct h5_fractal_heap_id *id = arg;
	uint64_t address = h5_read_offset(&record);

	(void)rc;
	return h5_compare(id->address, address);
}

static h5_btree2_compare *huge_compare(const struct h5_fractal_heap *heap)
{
	return heap->huge_in_id ? compare_address : h5_heap_huge_compare_key;
}

/* The tree, with a header in new space: so it switches together with the header of the heap. */
static int open_huge(struct h5_heap_change *change, struct h5_btree2 *tree)
{
	struct h5_btree2_parameters parameters = {
		.node_size = HUGE_NODE_SIZE,
		.split_percent = HUGE_SPLIT_PERCENT,
		.merge_percent = HUGE_MERGE_PERCENT,
	};
	unsigned record_size;
	int rc;

	if (change->heap.huge_btree == H5_UNDEF) {
		parameters.type = h5_heap_huge_type(change->file, &change->heap, &record_size);
		parameters.record_size = (uint16_t)record_size;
		rc = h5_btree2_create(change->file, &parameters, tree);
	} else {
		rc = h5_heap_huge_open(change->file, &change->heap, tree);
		if (!rc)
			rc = h5_btree2_move(tree);
	}
	if (!rc)
		change->heap.huge_btree = tree->address;
	return rc;
}

static int set_huge_record(struct h5_heap_change *change, struct h5_btree2 *tree,
			   struct h5_fractal_heap_id *id)
{
	const struct h5_superblock *sb = h5_file_superblock(change->file);
	uint8_t record[24];
	struct h5_writer w = h5_writer_init(record, sizeof record, sb->size_of_offsets, sb->size_of_lengths);
	int rc;

	h5_write_offset(&w, id->address);
	h5_write_length(&w, id->size);
	if (!id->direct)
		h5_write_length(&w, id->key);
	rc = h5_writer_check(&w, "fractal heap");
	return rc ? rc : h5_btree2_set(tree, huge_compare(&change->heap), id, record);
}

static int next_key(struct h5_fractal_heap *heap, uint64_t address, uint64_t *key)
{
	unsigned bits = 8 * (unsigned)h5_min(heap->id_size - 1u, 8);
	uint64_t last = bits < 64 ? ((uint64_t)1 << bits) - 1 : UINT64_MAX;

	if (heap->huge_wrapped || heap->huge_last >= last)
		return h5_fail(-ENOTSUP, address, "fractal heap: it has no more keys of huge objects");
	*key = ++heap->huge_last;
	return 0;
}

static int insert_huge(struct h5_heap_change *change, const void *data, size_t size,
		       struct h5_fractal_heap_id *id)
{
	struct h5_btree2 tree;
	int rc = 0;

	*id = (struct h5_fractal_heap_id){
		.type = H5_HEAP_ID_HUGE,
		.direct = change->heap.huge_in_id,
		.address = H5_UNDEF,
		.size = size,
	};
	if (!id->direct)
		rc = next_key(&change->heap, change->address, &id->key);
	if (!rc)
		rc = h5_tx_shadow(change->file, &id->address, data, size);
	if (!rc)
		rc = open_huge(change, &tree);
	if (!rc)
		rc = set_huge_record(change, &tree, id);
	h5_unit_unsave(change->file, &tree, sizeof tree);
	change->heap.huge_objects++;
	change->heap.huge_bytes += size;
	return rc;
}

/* Finds address and size of a huge object. */
static int find_huge(struct h5_heap_change *change, struct h5_fractal_heap_id *id)
{
	struct h5_btree2 tree;
	uint8_t record[24];
	int rc = h5_heap_huge_open(change->file, &change->heap, &tree);

	if (!rc)
		rc = h5_btree2_find(&tree, huge_compare(&change->heap), id, record);
	if (rc == -ENOENT)
		rc = h5_fail(-EUCLEAN, change->address, "fractal heap: no such huge object");
	if (!rc)
		h5_heap_huge_record(&change->heap,
				    h5_file_reader(change->file, record, tree.record_size, H5_UNDEF), id);
	return rc ? rc : check_object_space(change, id);
}

/* The object of an ID that is replaced keeps its key, and its record gets another address. */
static int replace_huge(struct h5_heap_change *change, struct h5_fractal_heap_id *id, const void *data,
			size_t size)
{
	struct h5_fractal_heap_id new = *id;
	struct h5_btree2 tree;
	int rc = find_huge(change, id);

	if (rc)
		return rc;
	new.size = size;
	new.address = H5_UNDEF;
	rc = h5_tx_shadow(change->file, &new.address, data, size);
	if (!rc)
		rc = open_huge(change, &tree);
	if (!rc)
		rc = set_huge_record(change, &tree, &new);
	h5_unit_unsave(change->file, &tree, sizeof tree);
	if (!rc)
		h5_tx_free(change->file, id->address, id->size);
	change->heap.huge_bytes += size - id->size;
	return rc;
}

static int remove_huge(struct h5_heap_change *change, struct h5_fractal_heap_id *id)
{
	struct h5_fractal_heap *heap = &change->heap;
	struct h5_btree2 tree;
	int rc = find_huge(change, id);

	if (!rc)
		rc = open_huge(change, &tree);
	if (!rc)
		rc = h5_btree2_remove(&tree, huge_compare(heap), id);
	h5_unit_unsave(change->file, &tree, sizeof tree);
	if (rc)
		return rc;
	h5_tx_free(change->file, id->address, id->size);
	heap->huge_objects -= heap->huge_objects > 0;
	heap->huge_bytes -= h5_min(id->size, heap->huge_bytes);
	if (tree.records)
		return 0;
	/* As libhdf5 does. */
	rc = h5_btree2_free(&tree);
	h5_unit_unsave(change->file, &tree, sizeof tree);
	heap->huge_btree = H5_UNDEF;
	heap->huge_last = 0;
	heap->huge_wrapped = false;
	return rc;
}

/* ---- a change ---- */

/* Makes the space of objects free that committed changes have removed. */
static int settle_removed(struct heap_edit *edit)
{
	struct h5_heap_space *space = &edit->space;
	int rc = 0;

	if (!space->is_certain || !space->removed_count)
		return 0;
	space->note_changed = true;
	for (unsigned i = 0; i < space->removed_count && !rc; i++) {
		const struct h5_removed_object *removed = &space->removed[i];
		struct h5_fractal_heap_id id = {
			.type = H5_HEAP_ID_HUGE,
			.direct = edit->table.heap.huge_in_id,
			.key = removed->offset,
			.address = removed->offset,
		};

		if (removed->is_huge)
			rc = remove_huge(&edit->table, &id);
		else
			h5_heap_space_add(space, removed->offset, removed->size);
	}
	space->removed_count = 0;
	return rc;
}

/* Begins the unit of a change of the heap. On failure there is nothing to end. */
static int edit_begin(struct heap_edit *edit, struct h5_file *file, uint64_t address)
{
	int rc;

	h5_unit_begin(file);
	rc = h5_heap_change_load(&edit->table, file, address);
	if (!rc)
		rc = h5_heap_space_load(file, &edit->table.heap, &edit->space);
	if (!rc)
		rc = settle_removed(edit);
	return rc ? h5_unit_end(file, rc) : 0;
}

static size_t header_size(const struct h5_file *file)
{
	const struct h5_superblock *sb = h5_file_superblock(file);

	return h5_fractal_heap_header_size(sb->size_of_offsets, sb->size_of_lengths);
}

bool h5_fractal_heap_is_safe(const struct h5_file *file, uint64_t heap)
{
	return h5_tx_is_safe(file, heap, header_size(file));
}

static int encode_header(struct h5_file *file, const struct h5_fractal_heap *heap, uint8_t **data,
			 size_t *size)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	struct h5_writer w;
	int rc;

	*size = header_size(file);
	*data = malloc(*size);
	if (!*data)
		return h5_fail(-ENOMEM, H5_UNDEF, "fractal heap: out of memory");
	w = h5_writer_init(*data, *size, sb->size_of_offsets, sb->size_of_lengths);
	rc = h5_fractal_heap_encode(&w, heap);
	if (rc)
		free(*data);
	return rc;
}

static int edit_store(struct heap_edit *edit)
{
	struct h5_heap_change *table = &edit->table;
	uint8_t *data;
	size_t size;
	int rc = h5_heap_space_store(&edit->space, &table->heap);

	if (!rc)
		rc = encode_header(table->file, &table->heap, &data, &size);
	if (rc)
		return rc;
	rc = h5_tx_patch(table->file, table->address, data, size, H5_STAGE_HEAP);
	free(data);
	if (!rc)
		h5_heap_header_keep(table->file, table->address, &table->heap);
	return rc;
}

/* Ends the unit. If the change has succeeded (rc 0), writes the heap's header and its free space first. */
static int edit_end(struct heap_edit *edit, int rc)
{
	if (!rc)
		rc = edit_store(edit);
	return h5_unit_end(edit->table.file, rc);
}

static int decode_id(const struct heap_edit *edit, const uint8_t *bytes, size_t id_size,
		     struct h5_fractal_heap_id *id)
{
	struct h5_reader r = h5_file_reader(edit->table.file, bytes, id_size, H5_UNDEF);

	if (id_size < edit->table.heap.id_size)
		return h5_fail(-EUCLEAN, edit->table.address, "fractal heap: IDs of %u bytes instead of %zu",
			       edit->table.heap.id_size, id_size);
	return h5_fractal_heap_id_decode(&r, &edit->table.heap, id);
}

/* ---- insert ---- */

static int insert_managed(struct heap_edit *edit, const void *data, size_t size,
			  struct h5_fractal_heap_id *id)
{
	struct h5_heap_change *table = &edit->table;
	uint64_t offset, room;
	int rc = 0;

	if (!h5_heap_space_take(&edit->space, size, &offset)) {
		rc = h5_heap_change_grow(table, size, &offset, &room);
		if (!rc)
			h5_heap_space_add(&edit->space, offset + size, room - size);
	}
	if (!rc)
		rc = h5_heap_change_write(table, offset, data, size, false);
	if (!rc && table->heap.free < size)
		rc = h5_fail(-EUCLEAN, table->address,
			     "fractal heap: %ju bytes are free, but a section has more",
			     (uintmax_t)table->heap.free);
	table->heap.free -= size;
	table->heap.objects++;
	*id = (struct h5_fractal_heap_id){.type = H5_HEAP_ID_MANAGED, .offset = offset, .size = size};
	return rc;
}

static int insert(struct heap_edit *edit, const void *data, size_t size, uint8_t *bytes, size_t id_size)
{
	struct h5_heap_change *table = &edit->table;
	const struct h5_superblock *sb = h5_file_superblock(table->file);
	struct h5_writer w = h5_writer_init(bytes, id_size, sb->size_of_offsets, sb->size_of_lengths);
	struct h5_fractal_heap_id id;
	int rc;

	if (id_size != table->heap.id_size)
		return h5_fail(-EUCLEAN, table->address, "fractal heap: IDs of %u bytes instead of %zu",
			       table->heap.id_size, id_size);
	if (size > table->heap.managed_max)
		rc = insert_huge(table, data, size, &id);
	else
		rc = insert_managed(edit, data, size, &id);
	return rc ? rc : h5_fractal_heap_id_encode(&w, &table->heap, &id);
}

int h5_fractal_heap_insert(struct h5_file *file, uint64_t heap, const void *data, size_t size, uint8_t *id,
			   size_t id_size)
{
	struct heap_edit edit;
	int rc = edit_begin(&edit, file, heap);

	return rc ? rc : edit_end(&edit, insert(&edit, data, size, id, id_size));
}

/* ---- replace ---- */

static int replace(struct heap_edit *edit, struct h5_fractal_heap_id *id, const void *data, size_t size,
		   bool *replaced)
{
	struct h5_heap_change *table = &edit->table;
	uint64_t root = table->heap.root;
	bool managed = size <= table->heap.managed_max;
	int rc;

	*replaced = managed ? id->type == H5_HEAP_ID_MANAGED && id->size == size
			    : id->type == H5_HEAP_ID_HUGE && !id->direct;
	if (!*replaced)
		return 0;
	if (!managed)
		rc = replace_huge(table, id, data, size);
	else
		rc = h5_heap_change_write(table, id->offset, data, size, true);
	if (rc || (managed && table->heap.root == root))
		return rc;
	return edit_store(edit);
}

int h5_fractal_heap_replace(struct h5_file *file, uint64_t heap, const uint8_t *bytes, size_t id_size,
			    const void *data, size_t size, bool *replaced)
{
	struct h5_fractal_heap_id id;
	struct heap_edit edit;
	int rc;

	*replaced = false;
	h5_unit_begin(file);
	/* The free space does not change. */
	edit.space = (struct h5_heap_space){.file = file};
	rc = h5_heap_change_load(&edit.table, file, heap);
	if (!rc)
		rc = decode_id(&edit, bytes, id_size, &id);
	if (!rc)
		rc = replace(&edit, &id, data, size, replaced);
	return h5_unit_end(file, rc);
}

/* ---- remove ---- */

static int remove_object(struct heap_edit *edit, struct h5_fractal_heap_id *id)
{
	struct h5_heap_change *table = &edit->table;
	struct h5_fractal_heap *heap = &table->heap;
	struct h5_removed_object removed = {.offset = id->offset, .size = id->size};
	int rc = 0;

	if (id->type == H5_HEAP_ID_TINY) {
		heap->tiny_objects -= heap->tiny_objects > 0;
		heap->tiny_bytes -= h5_min(id->size, heap->tiny_bytes);
		return 0;
	}
	if (id->type == H5_HEAP_ID_HUGE) {
		rc = find_huge(table, id);
		removed = (struct h5_removed_object){true, id->direct ? id->address : id->key, id->size};
	} else {
		rc = h5_heap_change_check(table, id->offset, id->size);
		if (!rc && !h5_add(heap->free, id->size, &heap->free))
			rc = h5_fail(-EUCLEAN, table->address, "fractal heap: more free space than can be");
		heap->objects -= heap->objects > 0;
	}
	if (!rc)
		h5_heap_space_note_removed(&edit->space, &removed);
	return rc;
}

int h5_fractal_heap_remove(struct h5_file *file, uint64_t heap, const uint8_t *bytes, size_t id_size)
{
	struct h5_fractal_heap_id id;
	struct heap_edit edit;
	int rc = edit_begin(&edit, file, heap);

	if (rc)
		return rc;
	rc = decode_id(&edit, bytes, id_size, &id);
	if (!rc)
		rc = remove_object(&edit, &id);
	return edit_end(&edit, rc);
}

/* ---- create and free ---- */

int h5_fractal_heap_create(struct h5_file *file, const struct h5_fractal_heap_parameters *parameters,
			   uint64_t *address)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	struct h5_fractal_heap heap = {
		.id_size = parameters->id_size,
		.managed_max = MANAGED_MAX,
		.huge_btree = H5_UNDEF,
		.free_space = H5_UNDEF,
		.width = TABLE_WIDTH,
		.start_size = START_SIZE,
		.direct_max = DIRECT_MAX,
		.heap_bits = parameters->heap_bits,
		.start_rows = START_ROWS,
		.root = H5_UNDEF,
	};
	uint8_t *data;
	size_t size;
	int rc = h5_fractal_heap_compute(&heap, sb->size_of_offsets, sb->size_of_lengths, H5_UNDEF);

	if (!rc)
		rc = encode_header(file, &heap, &data, &size);
	if (rc)
		return rc;
	*address = H5_UNDEF;
	rc = h5_tx_shadow(file, address, data, size);
	free(data);
	return rc;
}

int h5_fractal_heap_free(struct h5_file *file, uint64_t heap)
{
	h5_unit_begin(file);
	return h5_unit_end(file, h5_fractal_heap_extents(file, heap, h5_tx_free_extent, file));
}
