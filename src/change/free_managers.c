#include "change/free_managers.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "change/object_header_edit.h"
#include "change/private.h"
#include "format/free_space.h"
#include "store/extension.h"
#include "store/free_sections.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	KINDS = 3,
	TRIES = 8, /* to place the lists */
	/* Bytes of space more than a list has: its own space is not free, so that changes its size. */
	SLACK = 64,
	ADDRESS_BITS = 63,
	FOR_METADATA = 4096,	/* in a file without pages, sections up to this size are for metadata */
	SECTIONS_MAX = 1 << 20, /* of a manager; more are lost */
};

/* ---- reading ---- */

/* Adds a section of the manager to the free space. */
static int take_section(void *arg, unsigned manager, const struct h5_free_section *section)
{
	struct h5_tx *tx = arg;
	const struct h5_space *space = &tx->space;
	int rc = 0;

	if (!h5_space_had(space, section->offset, section->size) ||
	    section->offset < h5_superblock_size(&tx->superblock) ||
	    h5_extents_touches(&space->free[0], section->offset, section->size) ||
	    h5_extents_touches(&space->free[1], section->offset, section->size))
		return h5_fail(-EUCLEAN, section->offset, "free-space manager: %ju bytes that cannot be free",
			       (uintmax_t)section->size);
	if (!space->page || manager >= H5_MANAGER_LARGE)
		return h5_extents_add(&tx->space.free[H5_ALLOCATE_RAW], section->offset, section->size);
	if (section->size >= space->page)
		return h5_fail(-EUCLEAN, section->offset, "free-space manager: a small section of %ju bytes",
			       (uintmax_t)section->size);
	rc = h5_space_page_for(&tx->space, manager == H5_MANAGER_RAW ? H5_ALLOCATE_RAW : H5_ALLOCATE_METADATA,
			       section->offset);
	if (!rc)
		h5_space_reclaim(&tx->space, section->offset, section->size);
	return rc;
}

int h5_free_managers_read(struct h5_tx *tx)
{
	struct h5_file_space_info info;
	int rc = h5_extension_file_space(tx->file, &info);

	if (rc)
		return rc == -ENODATA ? 0 : rc;
	tx->persists = info.persist;
	return h5_free_sections_each(tx->file, &info, take_section, tx);
}

/* ---- the message ---- */

static size_t header_size(const struct h5_tx *tx)
{
	return h5_free_space_header_size(tx->superblock.size_of_offsets, tx->superblock.size_of_lengths);
}

static int change_info(const void *change, uint8_t *body, size_t n)
{
	return h5_file_space_info_update(change, body, n);
}

/* Sets the managers, and the end. The message may move to new space, so that the end moves along. */
static int set_info(struct h5_tx *tx, struct h5_file_space_change *change)
{
	int rc;

	change->size_of_offsets = tx->superblock.size_of_offsets;
	change->size_of_lengths = tx->superblock.size_of_lengths;
	do {
		change->end = tx->space.areas[0].end;
		rc = h5_header_update_at(tx->file, tx->superblock.extension, H5_MSG_FILE_SPACE_INFO,
					 H5_STAGE_EXTENSION, change_info, change);
	} while (!rc && change->end != tx->space.areas[0].end);
	return rc;
}

static int free_manager(struct h5_tx *tx, uint64_t address)
{
	struct h5_free_space_header header;
	int rc = h5_free_manager_header(tx->file, address, &header);

	if (rc)
		return rc;
	h5_tx_free(tx->file, address, header_size(tx));
	if (header.list != H5_UNDEF)
		h5_tx_free(tx->file, header.list, header.list_room);
	return 0;
}

int h5_free_managers_drop(struct h5_tx *tx)
{
	struct h5_file_space_change change;
	struct h5_file_space_info info;
	int rc = h5_extension_file_space(tx->file, &info);

	for (unsigned i = 0; i < H5_FREE_SPACE_MANAGERS; i++) {
		if (!rc && info.managers[i] != H5_UNDEF)
			rc = free_manager(tx, info.managers[i]);
		change.managers[i] = H5_UNDEF;
	}
	return rc ? rc : set_info(tx, &change);
}

/* ---- writing ---- */

/* A manager that is being made. */
struct maker {
	unsigned index;
	uint8_t type;			  /* of its sections */
	struct h5_free_section *sections; /* owned */
	size_t count, capacity;
	uint64_t total;
	uint64_t address, list; /* H5_UNDEF: no space yet */
	size_t room;		/* bytes of space for the list */
};

static int compare(const void *a, const void *b)
{
	const struct h5_free_section *x = a, *y = b;

	if (x->size != y->size)
		return h5_compare(x->size, y->size);
	return h5_compare(x->offset, y->offset);
}

static int add_section(struct maker *m, uint64_t address, uint64_t n)
{
	int rc;

	assert(m->count < SECTIONS_MAX);
	rc = h5_array_reserve(&m->sections, &m->capacity, m->count + 1, NULL);
	if (rc)
		return rc;
	m->sections[m->count++] = (struct h5_free_section){address, n};
	m->total += n;
	return 0;
}

/* Adds those of the extents that have `least` to `most` bytes, cut at the edges of pages if `page` is not 0.
 */
static int add_sections(struct maker *m, const struct h5_extents *extents, uint64_t page, uint64_t least,
			uint64_t most)
{
	int rc = 0;

	h5_extents_each(e, extents)
	{
		uint64_t at = e->address, left = e->size;

		while (left && !rc && m->count < SECTIONS_MAX) {
			uint64_t n = page ? h5_min(left, page - at % page) : left;

			if (n >= least && n <= most)
				rc = add_section(m, at, n);
			at += n;
			left -= n;
		}
	}
	return rc;
}

static int gather(struct h5_tx *tx, uint64_t threshold, struct maker makers[KINDS])
{
	struct h5_space_kinds kinds = {0};
	uint64_t page = tx->space.page;
	int rc = h5_space_list(&tx->space, &kinds);

	for (int i = 0; i < KINDS; i++)
		makers[i].total = makers[i].count = 0;
	if (!rc)
		rc = page ? add_sections(&makers[0], &kinds.metadata, page, threshold, page)
			  : add_sections(&makers[0], &kinds.rest, 0, threshold, FOR_METADATA);
	if (!rc)
		rc = add_sections(&makers[1], &kinds.raw, page, threshold, page);
	if (!rc)
		rc = add_sections(&makers[2], &kinds.rest, 0,
				  h5_max(threshold, page ? page : FOR_METADATA + 1), UINT64_MAX);
	h5_extents_release(&kinds.metadata);
	h5_extents_release(&kinds.raw);
	h5_extents_release(&kinds.rest);
	for (int i = 0; i < KINDS; i++)
		if (makers[i].count)
			qsort(makers[i].sections, makers[i].count, sizeof *makers[i].sections, compare);
	return rc;
}

static struct h5_free_space_header header_of(const struct h5_tx *tx, const struct maker *m)
{
	struct h5_free_space_header header = {.client = H5_FREE_SPACE_FILE,
					      .total = m->total,
					      .sections = m->count,
					      .serialized = m->count,
					      .address_bits = ADDRESS_BITS,
					      .section_max = INT64_MAX,
					      .list = m->list,
					      .list_room = m->room};

	header.list_size = h5_free_space_list_size(&header, m->sections, tx->superblock.size_of_offsets);
	return header;
}

/* Allocates space for the header, and for the list by its current size. */
static int place(struct h5_tx *tx, struct maker *m)
{
	int rc = 0;

	m->room = (size_t)header_of(tx, m).list_size + SLACK;
	if (m->count)
		rc = h5_tx_allocate(tx->file, H5_ALLOCATE_ONCE, header_size(tx), &m->address);
	if (m->count && !rc)
		rc = h5_tx_allocate(tx->file, H5_ALLOCATE_ONCE, m->room, &m->list);
	return rc;
}

static void take_back(struct h5_tx *tx, struct maker *m)
{
	if (m->address != H5_UNDEF)
		h5_tx_free(tx->file, m->address, header_size(tx));
	if (m->list != H5_UNDEF)
		h5_tx_free(tx->file, m->list, m->room);
	m->address = m->list = H5_UNDEF;
}

/* True: each list fits into the space that was allocated for it. */
static bool all_fit(const struct h5_tx *tx, const struct maker makers[KINDS])
{
	for (int i = 0; i < KINDS; i++) {
		bool placed = makers[i].address != H5_UNDEF;

		if (placed != (makers[i].count > 0) ||
		    (placed && header_of(tx, &makers[i]).list_size > makers[i].room))
			return false;
	}
	return true;
}

/* Makes the list fit into its space, if it does not after all tries: leaves out the smallest sections. If it
 * fits, nothing changes. */
static void trim(struct h5_tx *tx, struct maker *m)
{
	if (m->address == H5_UNDEF)
		m->total = m->count = 0;
	while (m->count && header_of(tx, m).list_size > m->room) {
		m->total -= m->sections[0].size;
		memmove(m->sections, m->sections + 1, --m->count * sizeof *m->sections);
	}
	if (!m->count)
		take_back(tx, m);
}

/* Allocates space for all managers. It is not called in a unit: space that is freed must be free at once. */
static int place_all(struct h5_tx *tx, uint64_t threshold, struct maker makers[KINDS])
{
	bool fits = false;
	int rc = gather(tx, threshold, makers);

	for (int try = 0; try < TRIES && !fits && !rc; try++) {
		for (int i = 0; i < KINDS; i++)
			take_back(tx, &makers[i]);
		for (int i = 0; i < KINDS && !rc; i++)
			rc = place(tx, &makers[i]);
		if (!rc)
			rc = gather(tx, threshold, makers);
		fits = all_fit(tx, makers);
	}
	for (int i = 0; i < KINDS && !rc; i++)
		trim(tx, &makers[i]);
	return rc;
}

static int put_list(struct h5_tx *tx, const struct maker *m, const struct h5_free_space_header *header)
{
	size_t n = (size_t)header->list_size;
	uint8_t *data = malloc(n);
	struct h5_writer w =
		h5_writer_init(data, n, tx->superblock.size_of_offsets, tx->superblock.size_of_lengths);
	int rc = data ? h5_free_space_list_encode(&w, header, m->address, m->sections, m->type)
		      : h5_fail(-ENOMEM, m->list, "free-space section list: out of memory");

	if (!rc)
		rc = h5_tx_put(tx->file, m->list, data, n);
	free(data);
	return rc;
}

static int put_manager(struct h5_tx *tx, const struct maker *m)
{
	struct h5_free_space_header header = header_of(tx, m);
	uint8_t data[H5_FREE_SPACE_HEADER_MAX];
	struct h5_writer w = h5_writer_init(data, sizeof data, tx->superblock.size_of_offsets,
					    tx->superblock.size_of_lengths);
	int rc = h5_free_space_header_encode(&w, &header);

	if (!rc)
		rc = h5_tx_put(tx->file, m->address, data, h5_writer_at(&w));
	return rc ? rc : put_list(tx, m, &header);
}

/* One unit: the managers, and the message that leads to them. */
static int put_all(struct h5_tx *tx, const struct maker makers[KINDS])
{
	struct h5_file_space_change change;
	int rc = 0;

	h5_unit_begin(tx->file);
	for (unsigned i = 0; i < H5_FREE_SPACE_MANAGERS; i++)
		change.managers[i] = H5_UNDEF;
	for (int i = 0; i < KINDS && !rc; i++) {
		change.managers[makers[i].index] = makers[i].address;
		if (makers[i].count)
			rc = put_manager(tx, &makers[i]);
	}
	if (!rc)
		rc = set_info(tx, &change);
	return h5_unit_end(tx->file, rc);
}

static int write_managers(struct h5_tx *tx, struct maker makers[KINDS])
{
	struct h5_file_space_info info;
	int rc = h5_extension_file_space(tx->file, &info);

	/* What the last commit has given up is free from now on. */
	if (!rc)
		rc = h5_tx_make_certain(tx);
	if (!rc)
		rc = place_all(tx, info.threshold, makers);
	if (!rc)
		rc = put_all(tx, makers);
	if (!rc)
		rc = h5_tx_commit(tx->file);
	return rc;
}

void h5_free_managers_write(struct h5_tx *tx)
{
	const bool paged = tx->space.page;
	const uint8_t small = paged ? H5_SECTION_SMALL : H5_SECTION_SIMPLE;
	struct maker makers[KINDS] = {
		{.index = H5_MANAGER_METADATA, .type = small, .address = H5_UNDEF, .list = H5_UNDEF},
		{.index = H5_MANAGER_RAW, .type = small, .address = H5_UNDEF, .list = H5_UNDEF},
		{.index = paged ? H5_MANAGER_LARGE : H5_MANAGER_RAW,
		 .type = paged ? H5_SECTION_LARGE : H5_SECTION_SIMPLE,
		 .address = H5_UNDEF,
		 .list = H5_UNDEF}};

	if (!tx->unmanaged || tx->failed || tx->superblock.size_of_offsets != 8 ||
	    tx->superblock.size_of_lengths != 8 || h5_tx_is_pending(tx->file) || tx->space.fresh.count)
		return;
	/* This commit leads to the managers. */
	tx->extension_change = NULL;
	tx->around = NULL;
	if (write_managers(tx, makers) && !tx->failed)
		h5_tx_abandon(tx->file);
	for (int i = 0; i < KINDS; i++)
		free(makers[i].sections);
}
