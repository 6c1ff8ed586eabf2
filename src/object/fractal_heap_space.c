#include "object/fractal_heap_space.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/zalloc.h"
#include "change/transaction.h"
#include "store/free_sections.h"

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

/* Reads the note behind the list that has the checksum, if one is there. */
static int read_note(struct h5_heap_space *space, uint32_t list)
{
	uint64_t at = space->header.list + space->header.list_room;
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
	if (!h5_removed_note_decode(&r, &note, space->removed, H5_HEAP_REMOVED) || note.list != list ||
	    note.room > h5_file_end(space->file) - at)
		return 0;
	memcpy(space->state, note.state, sizeof note.state);
	space->list_checksum = note.list;
	space->removed_count = note.count;
	space->behind_list = note.room;
	return 0;
}

static int read_list(struct h5_heap_space *space)
{
	const struct h5_free_space_header *h = &space->header;
	uint32_t checksum;
	struct h5_reader r;
	void *data;
	int rc = h5_free_list_open(space->file, space->manager, h, &data, &r);

	if (rc)
		return rc;
	checksum = (uint32_t)h5_uint_from(r.end - 4, 4);
	rc = read_sections(space, r);
	free(data);
	return rc ? rc : read_note(space, checksum);
}

static int read_manager(struct h5_heap_space *space, const struct h5_fractal_heap *heap)
{
	int rc = h5_free_manager_header(space->file, space->manager, &space->header);

	if (!rc)
		rc = check_header(space, heap);
	if (!rc && space->header.list != H5_UNDEF)
		rc = read_list(space);
	return rc;
}

static int load_manager(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	struct h5_heap_space *space = h5_zalloc(sizeof *space);
	int rc;

	if (!space)
		return h5_fail(-ENOMEM, address, "free-space manager: out of memory");
	space->file = file;
	space->manager = address;
	rc = read_manager(space, arg);
	if (rc) {
		free(space);
		return rc;
	}
	*value = space;
	*cost = sizeof *space;
	return 0;
}

static const struct h5_block_type manager_block = {{"free-space manager of a fractal heap", free},
						   load_manager};

/* The note counts only if it belongs to the heap as it is. */
static void settle_note(struct h5_heap_space *space, const struct h5_fractal_heap *heap)
{
	uint64_t state[H5_REMOVED_STATE];

	state_of(heap, state);
	if (memcmp(space->state, state, sizeof state)) {
		space->removed_count = 0;
		space->behind_list = 0;
	}
	space->is_certain = space->removed_count && !h5_tx_is_new(space->file, space->header.list) &&
			    !h5_tx_is_swmr(space->file);
}

int h5_heap_space_load(struct h5_file *file, const struct h5_fractal_heap *heap, struct h5_heap_space *space)
{
	struct h5_lru_entry *ref;
	int rc;

	if (heap->free_space == H5_UNDEF) {
		*space = (struct h5_heap_space){
			.file = file,
			.manager = H5_UNDEF,
			.header = {.client = H5_FREE_SPACE_HEAP,
				   .address_bits = heap->heap_bits,
				   .section_max = heap->direct_max,
				   .list = H5_UNDEF},
		};
		return 0;
	}
	rc = h5_file_block(file, &manager_block, heap->free_space, 0, heap, &ref);
	if (rc)
		return rc;
	memcpy(space, h5_lru_value(ref), sizeof *space);
	h5_file_put(file, ref);
	space->sections_changed = space->note_changed = false;
	/* Another heap may have loaded it. */
	rc = check_header(space, heap);
	if (!rc)
		settle_note(space, heap);
	return rc;
}

/* Gives the cache what was written. */
static void keep(const struct h5_heap_space *space)
{
	struct h5_heap_space *copy = malloc(sizeof *copy);

	/* Without memory the manager is read again. */
	if (!copy)
		return;
	*copy = *space;
	h5_file_add_block(space->file, &manager_block, space->manager, 0, copy, sizeof *copy);
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
	space->sections_changed = true;
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
	space->sections_changed = true;
	return true;
}

void h5_heap_space_note_removed(struct h5_heap_space *space, const struct h5_removed_object *object)
{
	struct h5_removed_object *least = &space->removed[0];

	space->note_changed = true;
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
		return h5_compare(x->size, y->size);
	return h5_compare(x->offset, y->offset);
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

static int encode_note(const struct h5_heap_space *space, uint8_t *data)
{
	const struct h5_superblock *sb = h5_file_superblock(space->file);
	struct h5_writer w =
		h5_writer_init(data, space->behind_list, sb->size_of_offsets, sb->size_of_lengths);
	struct h5_removed_note note = {
		.room = (uint16_t)space->behind_list,
		.count = (uint16_t)space->removed_count,
		.list = space->list_checksum,
	};

	memcpy(note.state, space->state, sizeof note.state);
	return h5_removed_note_encode(&w, &note, space->removed);
}

/* The list, and the note in the bytes behind it. */
static int encode_list(struct h5_heap_space *space, uint8_t *data)
{
	const struct h5_superblock *sb = h5_file_superblock(space->file);
	const struct h5_free_space_header *h = &space->header;
	struct h5_writer w =
		h5_writer_init(data, (size_t)h->list_size, sb->size_of_offsets, sb->size_of_lengths);
	int rc = h5_free_space_list_encode(&w, h, space->manager, space->sections, 0);

	assert(rc || w.p == w.end);
	if (rc)
		return rc;
	space->list_checksum = (uint32_t)h5_uint_from(w.p - 4, 4);
	return encode_note(space, w.p);
}

/* Bytes of the list with the note. */
static size_t size_with_note(const struct h5_heap_space *space, size_t list)
{
	size_t all = list + H5_REMOVED_NOTE_SIZE + space->removed_count * H5_REMOVED_OBJECT_SIZE;

	return (all + LIST_STEP - 1) / LIST_STEP * LIST_STEP;
}

/* libhdf5 wants a section list to use all of its space. */
static int store_list(struct h5_heap_space *space)
{
	struct h5_free_space_header *h = &space->header;
	size_t size = h5_free_space_list_size(h, space->sections,
					      h5_file_superblock(space->file)->size_of_offsets),
	       all = size_with_note(space, size);
	uint8_t *data;
	int rc = place_anew(space->file, &h->list, (size_t)h->list_room + space->behind_list, all);

	if (rc)
		return rc;
	h->list_size = h->list_room = size;
	space->behind_list = all - size;
	data = h5_zalloc(all);
	if (!data)
		return h5_fail(-ENOMEM, h->list, "free-space section list: out of memory");
	rc = encode_list(space, data);
	if (!rc)
		rc = h5_tx_put(space->file, h->list, data, all);
	free(data);
	return rc;
}

/* True: the list is as it was, in new space that has room for the note. */
static bool only_note_changes(const struct h5_heap_space *space)
{
	const struct h5_free_space_header *h = &space->header;

	return !space->sections_changed && h->list != H5_UNDEF && h5_tx_is_new(space->file, h->list) &&
	       space->behind_list && h->list_size == h->list_room &&
	       size_with_note(space, (size_t)h->list_size) == h->list_room + space->behind_list;
}

static int store_note(struct h5_heap_space *space)
{
	uint64_t at = space->header.list + space->header.list_room;
	uint8_t *data = h5_zalloc(space->behind_list);
	int rc = data ? encode_note(space, data) : h5_fail(-ENOMEM, at, "free-space manager: out of memory");

	if (!rc)
		rc = h5_tx_put(space->file, at, data, space->behind_list);
	free(data);
	h5_tx_forget(space->file, space->manager);
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

static int store_manager(struct h5_heap_space *space)
{
	size_t size = header_size(space);
	int rc;

	qsort(space->sections, space->count, sizeof *space->sections, compare_sections);
	space->header.total = 0;
	for (unsigned i = 0; i < space->count; i++)
		space->header.total += space->sections[i].size;
	space->header.sections = space->header.serialized = space->count;
	rc = place_anew(space->file, &space->manager, size, size);
	if (!rc)
		rc = store_list(space);
	return rc ? rc : store_header(space);
}

int h5_heap_space_store(struct h5_heap_space *space, struct h5_fractal_heap *heap)
{
	int rc;

	if (!space->sections_changed && !space->note_changed)
		return 0;
	if (!space->count) {
		drop(space);
		heap->free_space = H5_UNDEF;
		return 0;
	}
	state_of(heap, space->state);
	rc = only_note_changes(space) ? store_note(space) : store_manager(space);
	heap->free_space = space->manager;
	if (!rc)
		keep(space);
	return rc;
}
