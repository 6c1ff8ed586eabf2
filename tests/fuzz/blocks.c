/* One target for each block of a file that has a form of its own. An input is a byte that tells the sizes of
 * addresses and lengths, what the decoder must know from elsewhere, and the block; where that is another
 * block, both. */
#include "base/error.h"
#include "format/btree1.h"
#include "format/btree2.h"
#include "format/cache_image.h"
#include "format/driver_info.h"
#include "format/extensible_array.h"
#include "format/fixed_array.h"
#include "format/fractal_heap.h"
#include "format/free_space.h"
#include "format/global_heap.h"
#include "format/journal.h"
#include "format/object_header.h"
#include "format/selection.h"
#include "format/shared_message.h"
#include "format/structured_chunk.h"
#include "format/superblock.h"
#include "format/symbol_table.h"
#include "format/virtual_mapping.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of what a hostile number makes long, no more is looked at. */
enum { MANY = 1000 };

/* The rest of a reader; its address is 0. */
static struct h5_reader rest_of(const struct h5_reader *r)
{
	return h5_reader_init(r->p, h5_reader_left(r), 0, r->size_of_offsets, r->size_of_lengths);
}

static void *must_have(size_t n)
{
	void *p = malloc(n ? n : 1);

	FUZZ_HOLDS(p);
	return p;
}

static void run_superblock(struct h5_reader *r)
{
	uint64_t position = h5_read_u64(r);
	size_t n = h5_reader_left(r), offset, changed;
	struct h5_superblock sb, again;
	uint8_t *copy;

	if (h5_superblock_decode(r->p, n, position, &sb))
		return;
	copy = must_have(n);
	memcpy(copy, r->p, n);
	sb.consistency ^= H5_FLAG_WRITING;
	sb.end ^= 1;
	if (!h5_superblock_update(copy, n, &sb, &offset, &changed)) {
		FUZZ_HOLDS(offset <= n && changed <= n - offset);
		FUZZ_HOLDS(!h5_superblock_decode(copy, n, position, &again));
		FUZZ_HOLDS(again.root == sb.root && again.version == sb.version);
	}
	free(copy);
}

static void use_header_messages(const struct h5_object_header *header, struct h5_reader messages)
{
	struct h5_message message;

	while (h5_object_header_next(&messages, header, &message) == 1) {
		struct h5_reader body = h5_reader_init(message.data, message.size, message.address,
						       messages.size_of_offsets, messages.size_of_lengths);

		fuzz_touch(message.data, message.size);
		fuzz_message(message.type, &body);
	}
}

static void run_object_header(struct h5_reader *r)
{
	struct h5_object_header header;

	if (!h5_object_header_decode(r, &header))
		use_header_messages(&header, rest_of(r));
}

static void run_continuation_block(struct h5_reader *r)
{
	const struct h5_object_header header = {.version = 2, .flags = h5_read_u8(r)};
	struct h5_reader block = rest_of(r), messages;

	if (!h5_continuation_block_decode(&block, &messages))
		use_header_messages(&header, messages);
}

static void run_btree1(struct h5_reader *r, enum h5_btree1_type type)
{
	unsigned rank = type == H5_BTREE1_CHUNK ? h5_read_u8(r) % (H5_RANK_MAX + 1) : 0;
	struct h5_reader prefix = rest_of(r), whole = prefix;
	struct h5_btree1_node *node;
	struct h5_writer w;
	size_t size, cost;
	uint8_t *copy;

	if (h5_btree1_node_size(&prefix, type, rank, &size))
		return;
	whole = h5_reader_sub(&whole, h5_reader_left(&whole) < size ? h5_reader_left(&whole) : size);
	if (h5_btree1_node_decode(&whole, type, rank, &node, &cost))
		return;
	FUZZ_HOLDS(node->type == type);
	fuzz_touch(node->children, node->count * sizeof *node->children);
	fuzz_touch(node->keys, (node->count + 1) * sizeof *node->keys);
	for (unsigned i = 0; type == H5_BTREE1_CHUNK && i <= node->count; i++)
		fuzz_touch(node->keys[i].offsets, (rank + 1) * sizeof *node->keys[i].offsets);
	size = h5_btree1_node_room(type, rank, (node->count + 1) / 2, r->size_of_offsets, r->size_of_lengths);
	copy = must_have(size);
	w = h5_writer_init(copy, size, r->size_of_offsets, r->size_of_lengths);
	FUZZ_HOLDS(!h5_btree1_node_encode(&w, node, rank));
	FUZZ_HOLDS(size >= h5_reader_at(&whole) && !memcmp(copy, whole.begin, h5_reader_at(&whole)));
	free(copy);
	free(node);
}

static void run_btree1_group(struct h5_reader *r)
{
	run_btree1(r, H5_BTREE1_GROUP);
}

static void run_btree1_chunk(struct h5_reader *r)
{
	run_btree1(r, H5_BTREE1_CHUNK);
}

/* Header and one node, which encodes to what it was but for version and checksum; level and number of records
 * of the node stand before. */
static void run_btree2(struct h5_reader *r)
{
	unsigned level = h5_read_u8(r);
	uint16_t records = h5_read_u16(r);
	struct h5_reader block = rest_of(r);
	struct h5_btree2_header header;
	struct h5_btree2_node *node;
	size_t size;
	uint8_t *copy;
	struct h5_writer w;

	if (h5_btree2_header_decode(&block, &header) || level > header.depth)
		return;
	block = rest_of(&block);
	size = h5_btree2_node_size(&header, level, records);
	if (!size || h5_reader_left(&block) < size)
		return;
	node = h5_btree2_node_new(&header, level, records);
	FUZZ_HOLDS(node);
	block = h5_reader_sub(&block, size);
	if (!h5_btree2_node_decode(&block, &header, records, node)) {
		copy = must_have(size);
		w = h5_writer_init(copy, size, r->size_of_offsets, r->size_of_lengths);
		FUZZ_HOLDS(!h5_btree2_node_encode(&w, &header, node));
		FUZZ_HOLDS(h5_writer_at(&w) == size && !memcmp(copy + 6, block.begin + 6, size - 10));
		free(copy);
	}
	free(node);
}

static void use_heap_id(const struct h5_fractal_heap *heap, struct h5_reader *r)
{
	struct h5_fractal_heap_id id;

	if (h5_reader_left(r) < heap->id_size)
		return;
	*r = h5_reader_sub(r, heap->id_size);
	if (h5_fractal_heap_id_decode(r, heap, &id))
		return;
	if (id.type == H5_HEAP_ID_TINY)
		fuzz_touch(id.data, id.size);
	if (id.type == H5_HEAP_ID_MANAGED) {
		struct h5_fractal_heap_slot place = h5_fractal_heap_locate(heap, id.offset);

		FUZZ_HOLDS(place.begin <= id.offset && place.column < heap->width);
	}
}

static void use_indirect_block(const struct h5_fractal_heap *heap, struct h5_reader *r, unsigned rows)
{
	size_t n = h5_fractal_heap_indirect_size(heap, rows, r->size_of_offsets, r->size_of_lengths);
	struct h5_fractal_heap_entry *entries;

	if (n > h5_reader_left(r))
		return;
	entries = must_have((size_t)rows * heap->width * sizeof *entries);
	if (!h5_fractal_heap_indirect_decode(r, heap, 0, 0, rows, entries))
		fuzz_touch(entries, (size_t)rows * heap->width * sizeof *entries);
	free(entries);
}

static void use_direct_block(const struct h5_fractal_heap *heap, struct h5_reader *r)
{
	size_t n = h5_reader_left(r);
	uint8_t *block = must_have(n);
	struct h5_reader whole = h5_reader_init(block, n, 0, r->size_of_offsets, r->size_of_lengths);

	memcpy(block, r->p, n);
	if (!h5_fractal_heap_direct_check(&whole, block, heap, 0, 0))
		FUZZ_HOLDS(h5_fractal_heap_direct_prefix(heap, r->size_of_offsets) <= n);
	free(block);
}

/* Header, and an ID or a block; which one, and its rows, stands before. */
static void run_fractal_heap(struct h5_reader *r)
{
	unsigned what = h5_read_u8(r) % 3, rows = h5_read_u8(r);
	struct h5_reader prefix = rest_of(r), block = prefix;
	struct h5_fractal_heap heap;
	size_t size;

	if (h5_fractal_heap_size(&prefix, &size) || size > h5_reader_left(&block))
		return;
	r->p += size;
	block = h5_reader_sub(&block, size);
	if (h5_fractal_heap_decode(&block, &heap))
		return;
	for (unsigned row = 0; row < heap.rows_max; row++)
		h5_fractal_heap_rows(&heap, h5_fractal_heap_row_size(&heap, row));
	block = rest_of(r);
	if (what == 0)
		use_heap_id(&heap, &block);
	else if (what == 1 && rows <= heap.rows_max)
		use_indirect_block(&heap, &block, rows);
	else if (what == 2)
		use_direct_block(&heap, &block);
	h5_fractal_heap_release(&heap);
}

static void run_global_heap(struct h5_reader *r)
{
	struct h5_reader prefix = rest_of(r), whole = prefix;
	size_t n = h5_reader_left(&whole);
	struct h5_global_heap_object *objects;
	unsigned count;
	uint64_t size;

	if (h5_global_heap_size(&prefix, &size) || size > n)
		return;
	whole = h5_reader_sub(&whole, (size_t)size);
	if (h5_global_heap_decode(&whole, &objects, &count))
		return;
	for (unsigned i = 0; i < count; i++) {
		FUZZ_HOLDS(objects[i].offset <= size && objects[i].size <= size - objects[i].offset);
		FUZZ_HOLDS(!i || objects[i].index >= objects[i - 1].index);
	}
	free(objects);
}

static void run_symbol_node(struct h5_reader *r)
{
	struct h5_reader prefix = rest_of(r), whole = prefix;
	struct h5_symbol_node *node;
	size_t size, cost;

	if (h5_symbol_node_size(&prefix, &size) || size > h5_reader_left(&whole))
		return;
	whole = h5_reader_sub(&whole, size);
	if (h5_symbol_node_decode(&whole, &node, &cost))
		return;
	fuzz_touch(node->symbols, node->count * sizeof *node->symbols);
	free(node);
}

static void run_local_heap(struct h5_reader *r)
{
	struct h5_local_heap_header header;

	h5_local_heap_decode(r, &header);
}

static void run_fixed_array(struct h5_reader *r)
{
	struct h5_fixed_array_header header;
	struct h5_fixed_array_block block;
	uint64_t address, size;
	struct h5_reader data_block;

	*r = rest_of(r);
	if (h5_fixed_array_header_decode(r, &header))
		return;
	data_block = rest_of(r);
	if (header.block_size > h5_reader_left(&data_block))
		return;
	data_block = h5_reader_sub(&data_block, (size_t)header.block_size);
	if (h5_fixed_array_block_decode(&data_block, &header, &block))
		return;
	if (!header.pages)
		fuzz_touch(block.elements, (size_t)header.elements * header.element_size);
	for (uint64_t i = 0; i < header.pages && i < MANY; i++) {
		h5_fixed_array_has_page(&block, header.pages - 1 - i);
		h5_fixed_array_page(&header, header.pages - 1 - i, &address, &size);
	}
}

static void use_super_block(const struct h5_extensible_array_header *header,
			    const struct h5_extensible_array_super *super, struct h5_reader *r)
{
	struct h5_extensible_array_super_block block;

	if (super->block_size > h5_reader_left(r))
		return;
	*r = h5_reader_sub(r, (size_t)super->block_size);
	if (h5_extensible_array_super_block_decode(r, header, super, &block))
		return;
	fuzz_touch(block.data_blocks, (size_t)super->data_blocks * r->size_of_offsets);
	for (uint64_t i = 0; i < super->data_blocks && i < MANY && super->pages; i++)
		h5_extensible_array_has_page(super, &block, super->data_blocks - 1 - i, super->pages - 1);
}

static void use_data_block(const struct h5_extensible_array_header *header,
			   const struct h5_extensible_array_super *super, struct h5_reader *r)
{
	struct h5_extensible_array_data_block block;

	if (super->data_block_size > h5_reader_left(r))
		return;
	*r = h5_reader_sub(r, (size_t)super->data_block_size);
	if (!h5_extensible_array_data_block_decode(r, header, super, &block) && block.elements)
		fuzz_touch(block.elements, (size_t)super->elements * header->element_size);
}

static void use_index_block(const struct h5_extensible_array_header *header, struct h5_reader *r)
{
	struct h5_extensible_array_index_block block;

	if (header->index_block_size > h5_reader_left(r))
		return;
	*r = h5_reader_sub(r, header->index_block_size);
	if (h5_extensible_array_index_block_decode(r, header, &block))
		return;
	fuzz_touch(block.elements, (size_t)header->index_elements * header->element_size);
	fuzz_touch(block.data_blocks, (size_t)header->index_data_blocks * r->size_of_offsets);
	fuzz_touch(block.super_blocks, (size_t)header->index_super_pointers * r->size_of_offsets);
}

/* Header and one block; which one, and the super block's number, stands before. */
static void run_extensible_array(struct h5_reader *r)
{
	unsigned what = h5_read_u8(r) % 3, number = h5_read_u8(r);
	struct h5_extensible_array_header header;
	struct h5_extensible_array_super super;
	struct h5_reader block = rest_of(r);

	if (h5_extensible_array_header_decode(&block, &header))
		return;
	block = rest_of(&block);
	if (what == 0) {
		use_index_block(&header, &block);
		return;
	}
	if (number >= header.super_blocks)
		return;
	h5_extensible_array_super(&header, number, r->size_of_offsets, &super);
	FUZZ_HOLDS(h5_extensible_array_super_of(&header, super.first_element) == number);
	if (what == 1)
		use_super_block(&header, &super, &block);
	else
		use_data_block(&header, &super, &block);
}

struct visit {
	unsigned count;
	const uint64_t *dims;
};

static int visit_block(void *arg, unsigned rank, const uint64_t *first, const uint64_t *last)
{
	struct visit *visit = arg;

	for (unsigned i = 0; i < rank; i++)
		FUZZ_HOLDS(first[i] <= last[i]);
	return ++visit->count < MANY ? 0 : -EINTR;
}

/* The dimensions that it is clipped to stand before, a byte each. */
static void run_selection(struct h5_reader *r)
{
	uint64_t dims[H5_RANK_MAX];
	struct visit visit = {0, dims};
	struct h5_selection selection;

	for (unsigned i = 0; i < H5_RANK_MAX; i++)
		dims[i] = i < 4 ? h5_read_u8(r) : 5;
	if (h5_selection_decode(r, &selection))
		return;
	h5_selection_clip(&selection, dims);
	FUZZ_HOLDS(!h5_selection_is_unlimited(&selection));
	if (selection.kind == H5_SELECT_HYPERSLAB)
		h5_selection_blocks(&selection, visit_block, &visit);
	h5_selection_release(&selection);
}

static void run_virtual_mapping(struct h5_reader *r)
{
	struct h5_reader whole = rest_of(r);
	struct h5_virtual_mapping mapping;
	struct h5_virtual_block block;

	if (h5_virtual_block_open(&whole, &block))
		return;
	for (int i = 0; i < MANY && h5_virtual_block_next(&block, &mapping) == 1; i++) {
		fuzz_touch(mapping.file, strlen(mapping.file) + 1);
		fuzz_touch(mapping.dataset, strlen(mapping.dataset) + 1);
		h5_virtual_mapping_release(&mapping);
	}
	h5_virtual_block_release(&block);
}

/* Rank and dimensions of the chunk, a byte each, stand before. */
static struct h5_chunk_layout structured_layout(struct h5_reader *r)
{
	struct h5_chunk_layout layout = {
		.rank = h5_read_u8(r) % 4 + 1, .element_size = 4, .structured.sparse = true};

	layout.structured.offset_size = h5_read_u8(r) % 8 + 1;
	layout.structured.early = h5_read_u8(r) % 2;
	for (unsigned i = 0; i < layout.rank; i++)
		layout.dims[i] = h5_read_u8(r);
	return layout;
}

static void run_defined_elements(struct h5_reader *r)
{
	struct h5_chunk_layout layout = structured_layout(r);
	struct h5_reader whole = rest_of(r);
	struct h5_selection selection = {0};

	if (!h5_defined_elements_decode(&whole, &layout, &selection))
		h5_selection_release(&selection);
}

static void run_sections(struct h5_reader *r)
{
	struct h5_chunk_layout layout = structured_layout(r);
	struct h5_pipeline pipelines[H5_SECTIONS] = {{.count = h5_read_u8(r) % 33},
						     {.count = h5_read_u8(r) % 33}};
	bool filtered = h5_read_u8(r) % 2;
	uint64_t chunk_size = h5_read_u32(r);
	struct h5_section sections[H5_SECTIONS];
	const uint8_t *metadata = h5_read_bytes(r, h5_chunk_metadata_size(&layout, filtered));

	if (!metadata ||
	    h5_sections_decode(&layout, metadata, filtered ? pipelines : NULL, chunk_size, 0, sections))
		return;
	for (unsigned i = 0; i < H5_SECTIONS; i++)
		FUZZ_HOLDS(sections[i].offset <= chunk_size &&
			   sections[i].stored <= chunk_size - sections[i].offset);
}

static void run_journal_header(struct h5_reader *r)
{
	struct h5_journal_header header;

	h5_journal_header_decode(r->p, h5_reader_left(r), &header);
}

static void run_journal_record(struct h5_reader *r)
{
	size_t n = h5_reader_left(r), size;
	struct h5_journal_record record;
	uint8_t *copy;

	if (h5_journal_record_decode(r->p, n, &record))
		return;
	for (unsigned i = 0; i < record.patch_count; i++) {
		fuzz_touch(record.patches[i].before, record.patches[i].size);
		if (!record.patches[i].guard)
			fuzz_touch(record.patches[i].after, record.patches[i].size);
	}
	FUZZ_HOLDS(!h5_journal_record_size(&record, &size) && size <= n);
	copy = must_have(size);
	FUZZ_HOLDS(!h5_journal_record_encode(&record, copy, size));
	free(copy);
	h5_journal_record_release(&record);
}

static void run_cache_image(struct h5_reader *r)
{
	struct h5_reader whole = rest_of(r);
	struct h5_cache_image_entry entry;
	uint32_t entries;

	if (h5_cache_image_decode(&whole, &entries))
		return;
	for (uint32_t i = 0; i < entries && !h5_cache_image_entry_decode(&whole, &entry); i++)
		fuzz_touch(entry.data, (size_t)entry.size);
}

static void run_shared_table(struct h5_reader *r)
{
	unsigned indexes = h5_read_u8(r) % (H5_SHARED_INDEXES_MAX + 1);
	struct h5_reader whole = rest_of(r);
	struct h5_shared_table table;

	if (!h5_shared_table_decode(&whole, indexes, &table))
		FUZZ_HOLDS(h5_shared_table_size(indexes, r->size_of_offsets) <= h5_reader_left(r));
}

static void run_driver_info_block(struct h5_reader *r)
{
	struct h5_driver_info info;

	if (h5_driver_info_block_decode(r, &info) || info.driver != H5_DRIVER_MULTI)
		return;
	FUZZ_HOLDS(info.members <= H5_DRIVER_MEMBERS_MAX);
	for (unsigned i = 0; i < info.members; i++)
		FUZZ_HOLDS(memchr(info.member[i].name, 0, sizeof info.member[i].name));
}

static void run_free_space(struct h5_reader *r)
{
	struct h5_reader whole = rest_of(r);
	struct h5_free_space_header header;

	h5_free_space_header_decode(&whole, &header);
}

static const struct block {
	const char *name;
	void (*run)(struct h5_reader *r);
} blocks[] = {
	{"superblock", run_superblock},
	{"object_header", run_object_header},
	{"continuation_block", run_continuation_block},
	{"btree1_group", run_btree1_group},
	{"btree1_chunk", run_btree1_chunk},
	{"btree2", run_btree2},
	{"symbol_node", run_symbol_node},
	{"local_heap", run_local_heap},
	{"fractal_heap", run_fractal_heap},
	{"global_heap", run_global_heap},
	{"fixed_array", run_fixed_array},
	{"extensible_array", run_extensible_array},
	{"selection", run_selection},
	{"virtual_mapping", run_virtual_mapping},
	{"defined_elements", run_defined_elements},
	{"sections", run_sections},
	{"journal_header", run_journal_header},
	{"journal_record", run_journal_record},
	{"cache_image", run_cache_image},
	{"shared_table", run_shared_table},
	{"driver_info_block", run_driver_info_block},
	{"free_space", run_free_space},
};

static void run_block(const void *arg, const uint8_t *data, size_t size)
{
	const struct block *block = arg;
	struct h5_reader r = fuzz_reader(data, size);

	block->run(&r);
}

bool fuzz_block_at(unsigned n, struct fuzz_target *target)
{
	if (n >= sizeof blocks / sizeof *blocks)
		return false;
	snprintf(target->name, sizeof target->name, "%s", blocks[n].name);
	target->run = run_block;
	target->arg = &blocks[n];
	return true;
}
