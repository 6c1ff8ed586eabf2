#include "format/free_space.h"

#include "base/checked.h"
#include "base/error.h"

enum {
	OLD_MANAGERS = 6,
	OLD_STRATEGY_PERSIST = 1,
	STRATEGY_PAGE = 1,
	/* What libhdf5 gives the manager of a heap. */
	HEAP_CLASSES = 4,
	FILE_CLASSES = 3,
	SHRINK_PERCENT = 80,
	EXPAND_PERCENT = 120,
};

/* Types of sections of a heap. */
enum { SECTION_SINGLE = 0, SECTION_FIRST_ROW = 1, SECTION_NORMAL_ROW = 2, SECTION_INDIRECT = 3 };

/* Version 0                                      version 1
 *
 *   offset  size  field                            offset  size  field
 *        0     1  version, 0                            0     1  version, 1
 *        1     1  strategy; 1: persistent               1     1  strategy
 *        2     L  threshold                             2     1  persistent
 *              O  of each of 6 managers,                3     L  threshold
 *                 if persistent                               L  size of a file space page
 *                                                             2  threshold of the page end
 *                                                             O  end of the file before the managers
 *                                                             O  of each of 12 managers, if persistent */
int h5_file_space_info_decode(struct h5_reader *r, struct h5_file_space_info *info)
{
	uint8_t version = h5_read_u8(r), strategy = h5_read_u8(r);

	if (!r->err && version > 1)
		return h5_fail(-ENOTSUP, r->address, "file space info message: version %u is not supported",
			       version);
	info->version = version;
	info->persist = version ? h5_read_u8(r) : strategy == OLD_STRATEGY_PERSIST;
	info->threshold = h5_read_length(r);
	info->page_size = 0;
	if (version) {
		uint64_t size = h5_read_length(r);

		if (strategy == STRATEGY_PAGE)
			info->page_size = size;
		h5_reader_skip(r, 2);
		h5_read_offset(r);
	}
	info->count = !info->persist ? 0 : version ? H5_FREE_SPACE_MANAGERS : OLD_MANAGERS;
	for (unsigned i = 0; i < info->count; i++)
		info->managers[i] = h5_read_offset(r);
	return h5_reader_check(r, "file space info message");
}

int h5_file_space_info_update(const struct h5_file_space_change *change, uint8_t *body, size_t n)
{
	size_t at = 3 + 2 * change->size_of_lengths + 2;
	struct h5_writer w;

	if (n < at + (1 + H5_FREE_SPACE_MANAGERS) * change->size_of_offsets || body[0] != 1 || !body[2])
		return h5_fail(-ENOTSUP, H5_UNDEF, "file space info message: it cannot be changed");
	w = h5_writer_init(body + at, n - at, (uint8_t)change->size_of_offsets,
			   (uint8_t)change->size_of_lengths);
	h5_write_offset(&w, change->end);
	for (unsigned i = 0; i < H5_FREE_SPACE_MANAGERS; i++)
		h5_write_offset(&w, change->managers[i]);
	return h5_writer_check(&w, "file space info message");
}

/*   offset  size  field
 *        0     4  signature "FSHD"
 *        4     1  version, 0
 *        5     1  client: 0 fractal heap, 1 file
 *        6     L  total space tracked
 *              L  number of sections; of serialized ones; of unserialized ones
 *              2  number of section classes; shrink percent; expand percent; size of the address space
 *              L  maximum section size
 *              O  address of the serialized section list
 *              L  size of the list used; allocated
 *              4  checksum                                                                           */
int h5_free_space_header_decode(struct h5_reader *r, struct h5_free_space_header *header)
{
	uint8_t version;

	if (!h5_read_signature(r, "FSHD"))
		return h5_fail(-EUCLEAN, r->address, "free-space manager: wrong signature");
	version = h5_read_u8(r);
	if (!r->err && version)
		return h5_fail(-ENOTSUP, r->address, "free-space manager: version %u is not supported",
			       version);
	header->client = h5_read_u8(r);
	header->total = h5_read_length(r);
	header->sections = h5_read_length(r);
	header->serialized = h5_read_length(r);
	h5_read_length(r);
	h5_reader_skip(r, 6);
	header->address_bits = h5_read_u16(r);
	header->section_max = h5_read_length(r);
	header->list = h5_read_offset(r);
	header->list_size = h5_read_length(r);
	header->list_room = h5_read_length(r);
	return h5_reader_checksum(r, "free-space manager");
}

size_t h5_free_space_header_size(unsigned size_of_offsets, unsigned size_of_lengths)
{
	return 6 + 7 * size_of_lengths + 8 + size_of_offsets + 4;
}

int h5_free_space_header_encode(struct h5_writer *w, const struct h5_free_space_header *header)
{
	h5_write_bytes(w, "FSHD", 4);
	h5_write_u8(w, 0);
	h5_write_u8(w, header->client);
	h5_write_length(w, header->total);
	h5_write_length(w, header->sections);
	h5_write_length(w, header->serialized);
	h5_write_length(w, 0);
	h5_write_u16(w, header->client == H5_FREE_SPACE_FILE ? FILE_CLASSES : HEAP_CLASSES);
	h5_write_u16(w, SHRINK_PERCENT);
	h5_write_u16(w, EXPAND_PERCENT);
	h5_write_u16(w, header->address_bits);
	h5_write_length(w, header->section_max);
	h5_write_offset(w, header->list);
	h5_write_length(w, header->list_size);
	h5_write_length(w, header->list_room);
	h5_write_checksum(w);
	return h5_writer_check(w, "free-space manager");
}

/*   offset  size  field
 *        0     4  signature "FSSE"
 *        4     1  version, 0
 *        5     O  address of the manager's header
 *                 sections
 *              4  checksum             */
int h5_free_space_list_check(struct h5_reader *r, uint64_t header)
{
	bool is_list = h5_read_signature(r, "FSSE");
	uint8_t version = h5_read_u8(r);
	uint64_t owner = h5_read_offset(r);

	if (!is_list)
		return h5_fail(-EUCLEAN, r->address, "free-space section list: wrong signature");
	if (version)
		return h5_fail(-ENOTSUP, r->address, "free-space section list: version %u is not supported",
			       version);
	if (owner != header)
		return h5_fail(-EUCLEAN, r->address,
			       "free-space section list: it belongs to another manager");
	if (h5_reader_left(r) >= 4)
		h5_reader_skip(r, h5_reader_left(r) - 4);
	return h5_reader_checksum(r, "free-space section list");
}

/* ---- the sections ---- */

/*   size  field
 *         for each size that sections have:
 *      n    number of sections; as many bytes as the number of all needs
 *      s    size of each; as many bytes as the largest section that there may be needs
 *           for each section:
 *      o      offset in the heap; as many bytes as the address space needs
 *      1      type
 *             first row, indirect: o offset of the indirect block, 2 row, 2 column, 2 number of blocks */
struct widths {
	unsigned count, size, offset;
};

static struct widths widths_of(const struct h5_free_space_header *header)
{
	return (struct widths){h5_limit_size(header->serialized), h5_limit_size(header->section_max),
			       (header->address_bits + 7u) / 8};
}

void h5_free_space_walk_begin(struct h5_free_space_walk *walk, struct h5_reader r,
			      const struct h5_free_space_header *header)
{
	size_t prefix = 5u + r.size_of_offsets, left;

	h5_reader_skip(&r, prefix);
	left = h5_reader_left(&r);
	*walk = (struct h5_free_space_walk){
		.r = h5_reader_sub(&r, left < 4 ? 0 : left - 4),
		.header = header,
	};
}

static int next_of_any_type(struct h5_free_space_walk *walk, struct h5_free_section *section, unsigned *type)
{
	bool is_heap = walk->header->client == H5_FREE_SPACE_HEAP;
	struct widths widths = widths_of(walk->header);
	struct h5_reader *r = &walk->r;

	if (widths.offset > 8)
		return h5_fail(-EUCLEAN, r->address, "free-space manager: address space of %u bits",
			       walk->header->address_bits);
	if (!walk->left) {
		if (!h5_reader_left(r))
			return 0;
		walk->left = h5_read_uint(r, widths.count);
		walk->size = h5_read_uint(r, widths.size);
		if (!r->err && !walk->left)
			return h5_fail(-EUCLEAN, r->address, "free-space section list: a set of no sections");
	}
	walk->left--;
	section->size = walk->size;
	section->offset = h5_read_uint(r, widths.offset);
	*type = h5_read_u8(r);
	if (*type > (is_heap ? SECTION_INDIRECT : H5_SECTION_LARGE))
		return h5_fail(-EUCLEAN, r->address, "free-space section list: section of type %u", *type);
	if (!is_heap)
		*type = SECTION_SINGLE;
	if (*type == SECTION_FIRST_ROW || *type == SECTION_INDIRECT)
		h5_reader_skip(r, widths.offset + 6u);
	return r->err ? h5_reader_check(r, "free-space section list") : 1;
}

int h5_free_space_walk_next(struct h5_free_space_walk *walk, struct h5_free_section *section)
{
	unsigned type = SECTION_SINGLE;
	int rc;

	do
		rc = next_of_any_type(walk, section, &type);
	while (rc > 0 && type != SECTION_SINGLE);
	return rc;
}

/* The end of the set of sections of one size that begins at section i. */
static uint64_t set_end(const struct h5_free_space_header *header, const struct h5_free_section *sections,
			uint64_t i)
{
	uint64_t end = i + 1;

	while (end < header->serialized && sections[end].size == sections[i].size)
		end++;
	return end;
}

int h5_free_space_list_encode(struct h5_writer *w, const struct h5_free_space_header *header,
			      uint64_t address, const struct h5_free_section *sections, uint8_t type)
{
	struct widths widths = widths_of(header);
	uint64_t i = 0;

	h5_write_bytes(w, "FSSE", 4);
	h5_write_u8(w, 0);
	h5_write_offset(w, address);
	while (i < header->serialized) {
		uint64_t end = set_end(header, sections, i);

		h5_write_uint(w, end - i, widths.count);
		h5_write_uint(w, sections[i].size, widths.size);
		for (; i < end; i++) {
			h5_write_uint(w, sections[i].offset, widths.offset);
			h5_write_u8(w, type);
		}
	}
	h5_write_checksum(w);
	return h5_writer_check(w, "free-space section list");
}

size_t h5_free_space_list_size(const struct h5_free_space_header *header,
			       const struct h5_free_section *sections, unsigned size_of_offsets)
{
	struct widths widths = widths_of(header);
	size_t size = 5 + size_of_offsets + (size_t)header->serialized * (widths.offset + 1) + 4;

	for (uint64_t i = 0; i < header->serialized; i = set_end(header, sections, i))
		size += widths.count + widths.size;
	return size;
}

/* ---- removed objects ---- */

/*   size  field
 *      4  signature "h5fs"
 *      4  checksum of the section list
 *  4 x 8  numbers of the heap's header
 *      2  bytes that are allocated for the note
 *      2  number of objects
 *           for each:
 *      1      1: huge
 *      8      offset, key or address
 *      8      size
 *      4  checksum                             */
int h5_removed_note_encode(struct h5_writer *w, const struct h5_removed_note *note,
			   const struct h5_removed_object *objects)
{
	h5_write_bytes(w, "h5fs", 4);
	h5_write_u32(w, note->list);
	for (unsigned i = 0; i < H5_REMOVED_STATE; i++)
		h5_write_u64(w, note->state[i]);
	h5_write_u16(w, note->room);
	h5_write_u16(w, note->count);
	for (unsigned i = 0; i < note->count; i++) {
		h5_write_u8(w, objects[i].is_huge);
		h5_write_u64(w, objects[i].offset);
		h5_write_u64(w, objects[i].size);
	}
	h5_write_checksum(w);
	return h5_writer_check(w, "note of removed objects");
}

bool h5_removed_note_decode(struct h5_reader *r, struct h5_removed_note *note,
			    struct h5_removed_object *objects, unsigned most)
{
	bool is_note = h5_read_signature(r, "h5fs");

	note->list = h5_read_u32(r);
	for (unsigned i = 0; i < H5_REMOVED_STATE; i++)
		note->state[i] = h5_read_u64(r);
	note->room = h5_read_u16(r);
	note->count = h5_read_u16(r);
	if (!is_note || note->count > most)
		return false;
	for (unsigned i = 0; i < note->count; i++) {
		objects[i].is_huge = h5_read_u8(r);
		objects[i].offset = h5_read_u64(r);
		objects[i].size = h5_read_u64(r);
	}
	return !h5_reader_checksum(r, "note of removed objects");
}
