#include "object/fractal_heap_space.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Section list and note are allocated together in multiples of this, so that they seldom move inside
	   a transaction. */
	LIST_STEP = 256,
	NOTE_MAX = H5_REMOVED_NOTE_SIZE + H5_HEAP_REMOVED * H5_REMOVED_OBJECT_SIZE,
};

/* ---- reading ---- */

static int decode_header(struct h5_reader *r, void *header)
{
	return h5_free_space_header_decode(r, header);
}

static int check_header(const struct h5_heap_space *space, const struct h5_fractal_heap *heap)
{
	const struct h5_free_space_header *h = &space->header;
	uint64_t end;

	if (h->client != H5_FREE_SPACE_HEAP || h->address_bits != heap->heap_bits ||
	    h->section_max != heap->direct_max)
		return h5_fail(-EUCLEAN, space->manager, "free-space manager: it belongs to no such heap");
	if (h->list != H5_UNDEF && (h->list_room < h->list_size || !h5_add(h->list, h->list_room, &end) ||
				    end > h5_file_end(space->file)))
		return h5_fail(-EUCLEAN, space->manager, "free-space manager: a section list of %ju bytes",
			       (uintmax_t)h->list_room);
	return 0;
}

static int read_sections(struct h5_heap_space *space, struct h5_reader r)
{
	struct h5_free_space_walk walk;
	struct h5_free_section section;
	int rc;

	h5_free_space_walk_begin(&walk, r, &space->header);
	while ((rc = h5_free_space_walk_next(&walk, &section)) > 0)
		h5_heap_space_add(space, section.offset, section.size);
	return rc;
}

static void state_of(const struct h5_fractal_heap *heap, uint64_t state[H5_REMOVED_STATE])
{
	state[0] = heap->free;
	state[1] = heap->objects;
	state[2] = heap->allocated;
	state[3] = heap->iterator;
}

/* Reads the note behind the list that has the checksum, if one is there that belongs to the heap as it is. */
static int read_note(struct h5_heap_space *space, const struct h5_fractal_heap *heap, uint32_t list)
{
	uint64_t at = space->header.list + space->header.list_room, state[H5_REMOVED_STATE];
	struct h5_removed_note note;
	uint8_t bytes[NOTE_MAX];
	struct h5_reader r;
	size_t got, pending;
	int rc;

	/* The list may be the last block of the file. */
	if (at >= h5_file_end(space->file))
		return 0;
	/* List and note are written together. */
	pending = h5_file_pending(space->file, at);
	rc = h5_file_read_some(space->file, at, bytes, pending ? h5_min(pending, sizeof bytes) : sizeof bytes,
			       &got);
	if (rc)
		return rc;
	r = h5_file_reader(space->file, bytes, got, at);
	state_of(heap, state);
	if (!h5_removed_note_decode(&r, &note, space->removed, H5_HEAP_REMOVED) || note.list != list ||
	    memcmp(note.state, state, sizeof state) || note.room > h5_file_end(space->file) - at)
		return 0;
	space->removed_count = note.count;
	space->behind_list = note.room;
	space->is_certain = !h5_tx_is_new(space->file, space->header.list) && !h5_tx_is_swmr(space->file);
	return 0;
}

static int read_list(struct h5_heap_space *space, const struct h5_fractal_heap *heap)
{
	const struct h5_free_space_header *h = &space->header;
	uint32_t checksum = 0;
	struct h5_reader r;
	void *data;
	int rc = h5_block_open(space->file, h->list, h->list_size, "free-space section list", &data, &r);

	if (rc)
		return rc;
	rc = h5_free_space_list_check(&r, space->manager);
	if (!rc) {
		checksum = (uint32_t)h5_uint_from(r.end - 4, 4);
		r.p = r.begin;
		rc = read_sections(space, r);
	}
	free(data);
	return rc ? rc : read_note(space, heap, checksum);
}

int h5_heap_space_load(struct h5_file *file, const struct h5_fractal_heap *heap, struct h5_heap_space *space)
{
	int rc;

	*space = (struct h5_heap_space){
		.file = file,
		.manager = heap->free_space,
		.header = {.client = H5_FREE_SPACE_HEAP,
			   .address_bits = heap->heap_bits,
			   .section_max = heap->direct_max,
			   .list = H5_UNDEF},
	};
	if (space->manager == H5_UNDEF)
		return 0;
	rc = h5_block_decode_header(file, space->manager, H5_FREE_SPACE_HEADER_MAX, decode_header,
				    &space->header);
	if (!rc)
		rc = check_header(space, heap);
	if (!rc && space->header.list != H5_UNDEF)
		rc = read_list(space, heap);
	space->changed = false;
	return rc;
}

/* ---- sections ---- */

/* Joins two sections if one ends at the other. Between direct blocks lie their prefixes, so both are in the
 * same block. */
static bool join(struct h5_free_section *to, uint64_t offset, uint64_t size)
{
	uint64_t all;

	if (!h5_add(to->size, size, &all) || (to->offset + to->size != offset && offset + size != to->offset))
		return false;
	to->offset = h5_min(to->offset, offset);
	to->size = all;
	return true;
}

void h5_heap_space_add(struct h5_heap_space *space, uint64_t offset, uint64_t size)
{
	struct h5_free_section *least = NULL;

	if (!size)
		return;
	space->changed = true;
	for (unsigned i = 0; i < space->count; i++) {
		struct h5_free_section *section = &space->sections[i];

		if (join(section, offset, size)) {
			const struct h5_free_section joined = *section;

			/* It may now end where another one begins. */
			*section = space->sections[--space->count];
			h5_heap_space_add(space, joined.offset, joined.size);
			return;
		}
		if (!least || section->size < least->size)
			least = section;
	}
	if (space->count < H5_HEAP_SECTIONS)
		space->sections[space->count++] = (struct h5_free_section){offset, size};
	else if (least->size < size)
		*least = (struct h5_free_section){offset, size};
}

bool h5_heap_space_take(struct h5_heap_space *space, uint64_t n, uint64_t *offset)
{
	struct h5_free_section *best = NULL;

	for (unsigned i = 0; i < space->count; i++) {
		struct h5_free_section *section = &space->sections[i];

		if (section->size >= n && (!best || section->size < best->size))
			best = section;
	}
	if (!best)
		return false;
	*offset = best->offset;
	best->offset += n;
	best->size -= n;
	if (!best->size)
		*best = space->sections[--space->count];
	space->changed = true;
	return true;
}

void h5_heap_space_note_removed(struct h5_heap_space *space, const struct h5_removed_object *object)
{
	struct h5_removed_object *least = &space->removed[0];

	space->changed = true;
	for (unsigned i = 0; i < space->removed_count; i++) {
		struct h5_removed_object *removed = &space->removed[i];

		if (!object->is_huge && !removed->is_huge &&
		    removed->offset + removed->size == object->offset) {
			removed->size += object->size;
			return;
		}
		if (removed->size < least->size)
			least = removed;
	}
	if (space->removed_count < H5_HEAP_REMOVED)
		space->removed[space->removed_count++] = *object;
	else if (least->size < object->size)
		*least = *object;
}

/* ---- writing ---- */

static int compare_sections(const void *a, const void *b)
{
	const struct h5_free_section *x = a, *y = b;

	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static size_t header_size(const struct h5_heap_space *space)
{
	const struct h5_superblock *sb = h5_file_superblock(space->file);

	return h5_free_space_header_size(sb->size_of_offsets, sb->size_of_lengths);
}

int h5_heap_space_extents(const struct h5_heap_space *space, h5_extent_visit *visit, void *arg)
{
	int rc = 0;

	if (space->header.list != H5_UNDEF)
		rc = visit(arg, space->header.list, space->header.list_room + space->behind_list);
	if (!rc && space->manager != H5_UNDEF)
		rc = visit(arg, space->manager, header_size(space));
	return rc;
}

static void drop(struct h5_heap_space *space)
{
	(void)h5_heap_space_extents(space, h5_tx_free_extent, space->file);
	space->header.list = space->manager = H5_UNDEF;
	space->header.list_room = space->behind_list = 0;
}

/* Finds a place in new space for n bytes that are at *address, with room for `room`. */
static int place_anew(struct h5_file *file, uint64_t *address, size_t room, size_t n)
{
	if (*address != H5_UNDEF && h5_tx_is_new(file, *address) && room == n)
		return 0;
	if (*address != H5_UNDEF)
		h5_tx_free(file, *address, room);
	return h5_tx_allocate(file, H5_ALLOCATE_METADATA, n, address);
}

static int encode_list(const struct h5_heap_space *space, const struct h5_fractal_heap *heap, uint8_t *data)
{
	const struct h5_superblock *sb = h5_file_superblock(space->file);
	const struct h5_free_space_header *h = &space->header;
	struct h5_writer w =
		h5_writer_init(data, (size_t)h->list_size, sb->size_of_offsets, sb->size_of_lengths);
	struct h5_removed_note note = {
		.room = (uint16_t)space->behind_list,
		.count = (uint16_t)space->removed_count,
	};
	int rc = h5_free_space_list_encode(&w, h, space->manager, space->sections);

	assert(rc || w.p == w.end);
	if (rc)
		return rc;
	note.list = (uint32_t)h5_uint_from(w.p - 4, 4);
	state_of(heap, note.state);
	w = h5_writer_init(w.p, space->behind_list, sb->size_of_offsets, sb->size_of_lengths);
	return h5_removed_note_encode(&w, &note, space->removed);
}

/* libhdf5 wants a section list to use all of its space. */
static int store_list(struct h5_heap_space *space, const struct h5_fractal_heap *heap)
{
	struct h5_free_space_header *h = &space->header;
	size_t size = h5_free_space_list_size(h, space->sections,
					      h5_file_superblock(space->file)->size_of_offsets),
	       all = size + H5_REMOVED_NOTE_SIZE + space->removed_count * H5_REMOVED_OBJECT_SIZE;
	uint8_t *data;
	int rc;

	all = (all + LIST_STEP - 1) / LIST_STEP * LIST_STEP;
	rc = place_anew(space->file, &h->list, (size_t)h->list_room + space->behind_list, all);
	if (rc)
		return rc;
	h->list_size = h->list_room = size;
	space->behind_list = all - size;
	data = calloc(1, all);
	if (!data)
		return h5_fail(-ENOMEM, h->list, "free-space section list: out of memory");
	rc = encode_list(space, heap, data);
	if (!rc)
		rc = h5_tx_put(space->file, h->list, data, all);
	free(data);
	return rc;
}

static int store_header(struct h5_heap_space *space)
{
	const struct h5_superblock *sb = h5_file_superblock(space->file);
	uint8_t data[H5_FREE_SPACE_HEADER_MAX];
	struct h5_writer w = h5_writer_init(data, sizeof data, sb->size_of_offsets, sb->size_of_lengths);
	int rc = h5_free_space_header_encode(&w, &space->header);

	return rc ? rc : h5_tx_put(space->file, space->manager, data, h5_writer_at(&w));
}

int h5_heap_space_store(struct h5_heap_space *space, struct h5_fractal_heap *heap)
{
	size_t size;
	int rc;

	if (!space->changed)
		return 0;
	if (!space->count) {
		drop(space);
		heap->free_space = H5_UNDEF;
		return 0;
	}
	qsort(space->sections, space->count, sizeof *space->sections, compare_sections);
	space->header.total = 0;
	for (unsigned i = 0; i < space->count; i++)
		space->header.total += space->sections[i].size;
	space->header.sections = space->header.serialized = space->count;
	size = header_size(space);
	rc = place_anew(space->file, &space->manager, size, size);
	if (!rc)
		rc = store_list(space, heap);
	if (!rc)
		rc = store_header(space);
	heap->free_space = space->manager;
	return rc;
}
