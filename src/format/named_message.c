#include "format/named_message.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_UTF8 = 1 }; /* character set */

/* ---- links ---- */

enum {
	NAME_WIDTH = 0x03, /* flags of a link message */
	HAS_ORDER = 0x04,
	HAS_TYPE = 0x08,
	HAS_CHARSET = 0x10,
	FLAGS_KNOWN = 0x1f,
};

/* The value of an external link: version and flags (0), file name, NUL, path, NUL. If the NULs are missing,
 * the link has a name but leads nowhere. */
static void read_external(const char *value, size_t n, struct h5_link *link)
{
	link->file = n ? value + 1 : value;
	n -= n ? 1 : 0;
	link->file_size = strnlen(link->file, n);
	n -= link->file_size;
	link->target = link->file + link->file_size + (n ? 1 : 0);
	link->target_size = n ? strnlen(link->target, n - 1) : 0;
}

/*   size  field
 *      1  version, 1
 *      1  flags
 *      1  link type, if flag bit 3; else it is a hard link
 *      8  creation order, if flag bit 2
 *      1  character set of the name, if flag bit 4
 *   1 << (flags & 3)  length of the name
 *         name
 *         hard: O address of the object header
 *         else: 2 length, and a value          */
int h5_link_decode(struct h5_reader *r, struct h5_link *link)
{
	uint8_t version = h5_read_u8(r), flags = h5_read_u8(r);
	const char *value;
	uint64_t length;

	memset(link, 0, sizeof *link);
	if (version != 1)
		return h5_fail(-EUCLEAN, r->address, "link message: version %u", version);
	if (flags & ~FLAGS_KNOWN)
		return h5_fail(-EUCLEAN, r->address, "link message: unknown flags %#x", flags);
	if (flags & HAS_TYPE)
		link->type = h5_read_u8(r);
	if (link->type > H5_LINK_SOFT && link->type < H5_LINK_EXTERNAL)
		return h5_fail(-EUCLEAN, r->address, "link message: type %u", link->type);
	link->has_order = flags & HAS_ORDER;
	if (link->has_order)
		link->order = (int64_t)h5_read_u64(r);
	if (flags & HAS_CHARSET)
		h5_reader_skip(r, 1);
	length = h5_read_uint(r, 1u << (flags & NAME_WIDTH));
	link->name = (const char *)h5_read_bytes(r, length);
	link->name_size = link->name ? (size_t)length : 0;
	if (link->type == H5_LINK_HARD) {
		link->address = h5_read_offset(r);
		return h5_reader_check(r, "link message");
	}
	length = h5_read_u16(r);
	value = (const char *)h5_read_bytes(r, length);
	if (value && link->type == H5_LINK_EXTERNAL) {
		read_external(value, (size_t)length, link);
	} else {
		link->target = value;
		link->target_size = value ? (size_t)length : 0;
	}
	return h5_reader_check(r, "link message");
}

size_t h5_link_room(const struct h5_link *link)
{
	enum { FIXED = 2 + 1 + 8 + 1 + 8 + 8 + 2 + 1 + 2 };

	return FIXED + link->name_size + link->target_size + link->file_size;
}

static bool is_ascii(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)text[i] >= 0x80)
			return false;
	return true;
}

/* Log2 of the bytes that hold the length of a name. */
static unsigned name_width(size_t n)
{
	return n <= UINT8_MAX ? 0 : n <= UINT16_MAX ? 1 : n <= UINT32_MAX ? 2 : 3;
}

/* What a link of another type than a hard one leads to. */
static int write_target(struct h5_writer *w, const struct h5_link *link)
{
	bool external = link->type == H5_LINK_EXTERNAL;
	size_t n = link->target_size + (external ? 1 + link->file_size + 1 + 1 : 0);

	if (n > UINT16_MAX)
		return h5_fail(-ENAMETOOLONG, H5_UNDEF, "link message: a target of %zu bytes", n);
	h5_write_u16(w, (uint16_t)n);
	if (external) {
		h5_write_u8(w, 0);
		h5_write_bytes(w, link->file, link->file_size);
		h5_write_u8(w, 0);
	}
	h5_write_bytes(w, link->target, link->target_size);
	if (external)
		h5_write_u8(w, 0);
	return 0;
}

int h5_link_encode(struct h5_writer *w, const struct h5_link *link)
{
	unsigned width = name_width(link->name_size);
	bool ascii = is_ascii(link->name, link->name_size);
	int rc = 0;

	h5_write_u8(w, 1);
	h5_write_u8(w, (uint8_t)(width | (link->has_order ? HAS_ORDER : 0) |
				 (link->type == H5_LINK_HARD ? 0 : HAS_TYPE) | (ascii ? 0 : HAS_CHARSET)));
	if (link->type != H5_LINK_HARD)
		h5_write_u8(w, link->type);
	if (link->has_order)
		h5_write_u64(w, (uint64_t)link->order);
	if (!ascii)
		h5_write_u8(w, NAME_UTF8);
	h5_write_uint(w, link->name_size, 1u << width);
	h5_write_bytes(w, link->name, link->name_size);
	if (link->type == H5_LINK_HARD)
		h5_write_offset(w, link->address);
	else
		rc = write_target(w, link);
	return rc ? rc : h5_writer_check(w, "link message");
}

static const char *copy_text(char **to, const char *from, size_t n)
{
	const char *at = *to;

	if (n)
		memcpy(*to, from, n);
	*to += n;
	return at;
}

int h5_link_copy(const struct h5_link *from, struct h5_link *to)
{
	char *text = malloc(from->name_size + from->target_size + from->file_size + 1);

	if (!text)
		return h5_fail(-ENOMEM, H5_UNDEF, "link: out of memory");
	*to = *from;
	to->owned = text;
	to->name = copy_text(&text, from->name, from->name_size);
	to->target = copy_text(&text, from->target, from->target_size);
	to->file = copy_text(&text, from->file, from->file_size);
	return 0;
}

void h5_link_release(struct h5_link *link)
{
	free(link->owned);
	*link = (struct h5_link){0};
}

struct h5_link h5_link_renamed(const struct h5_link *link, const char *name, size_t name_size)
{
	struct h5_link renamed = *link;

	renamed.name = name;
	renamed.name_size = name_size;
	renamed.owned = NULL;
	return renamed;
}

/* ---- attributes ---- */

enum {
	TYPE_SHARED = 0x01, /* flags of version 2 and 3 */
	SPACE_SHARED = 0x02,
};

/* Reads a part of n bytes. In version 1 it is padded to a multiple of 8, but the padding may be missing at
 * the end of the message.
 */
static struct h5_reader part(struct h5_reader *r, unsigned version, size_t n)
{
	struct h5_reader sub = h5_reader_sub(r, n);
	size_t padding = version == 1 ? (8 - n % 8) % 8 : 0, left = h5_reader_left(r);

	h5_reader_skip(r, padding < left ? padding : left);
	return sub;
}

/*   size  field
 *      1  version
 *      1  version 1: reserved; else flags
 *      2  name size, with its NUL
 *      2  datatype size
 *      2  dataspace size
 *      1  character set of the name: version 3
 *         name, datatype, dataspace: in version 1 each padded to a multiple of 8
 *         data                                                                  */
int h5_attribute_decode(struct h5_reader *r, struct h5_attribute_message *attribute)
{
	uint8_t version = h5_read_u8(r), flags = h5_read_u8(r);
	uint16_t name_size = h5_read_u16(r), type_size = h5_read_u16(r), space_size = h5_read_u16(r);
	struct h5_reader name;
	int rc;

	memset(attribute, 0, sizeof *attribute);
	if (version < 1 || version > 3)
		return h5_fail(-EUCLEAN, r->address, "attribute message: version %u", version);
	if (version == 3)
		h5_reader_skip(r, 1);
	name = part(r, version, name_size);
	rc = h5_reader_check(&name, "attribute message");
	if (rc)
		return rc;
	attribute->name = (const char *)name.p;
	attribute->name_size = strnlen(attribute->name, name_size);
	attribute->type_shared = version > 1 && flags & TYPE_SHARED;
	attribute->space_shared = version > 1 && flags & SPACE_SHARED;
	attribute->type = part(r, version, type_size);
	attribute->space = part(r, version, space_size);
	attribute->data = h5_reader_sub(r, h5_reader_left(r));
	return 0;
}

void h5_attribute_head_encode(uint8_t head[H5_ATTRIBUTE_HEAD], size_t name_size, size_t type_size,
			      size_t space_size)
{
	struct h5_writer w = h5_writer_init(head, H5_ATTRIBUTE_HEAD, 8, 8);

	h5_write_u8(&w, 3);
	h5_write_u8(&w, 0);
	h5_write_u16(&w, (uint16_t)name_size);
	h5_write_u16(&w, (uint16_t)type_size);
	h5_write_u16(&w, (uint16_t)space_size);
	h5_write_u8(&w, NAME_UTF8);
}

/* ---- where they are stored ---- */

enum {
	TRACKS_ORDER = 0x01, /* flags of the info messages */
	INDEXES_ORDER = 0x02,
	MESSAGE_IS_SHARED = 0x02, /* flags of the message that an attribute's record leads to */
};

/* Link info and attribute info message:
 *
 *   size  field
 *      1  version, 0
 *      1  flags
 *   8, 2  maximum creation index, if flag bit 0: 8 bytes of links, 2 of attributes
 *      O  fractal heap
 *      O  version 2 B-tree of names
 *      O  version 2 B-tree of creation order, if flag bit 1 */
static int decode_info(struct h5_reader *r, const char *what, unsigned index_size, struct h5_named_info *info)
{
	uint8_t version = h5_read_u8(r), flags = h5_read_u8(r);

	if (version)
		return h5_fail(-EUCLEAN, r->address, "%s: version %u", what, version);
	info->tracks_order = flags & TRACKS_ORDER;
	info->indexes_order = flags & INDEXES_ORDER;
	info->next_order = info->tracks_order ? h5_read_uint(r, index_size) : 0;
	info->heap = h5_read_offset(r);
	info->name_index = h5_read_offset(r);
	info->order_index = info->indexes_order ? h5_read_offset(r) : H5_UNDEF;
	return h5_reader_check(r, what);
}

int h5_link_info_decode(struct h5_reader *r, struct h5_named_info *info)
{
	return decode_info(r, "link info message", 8, info);
}

int h5_attribute_info_decode(struct h5_reader *r, struct h5_named_info *info)
{
	return decode_info(r, "attribute info message", 2, info);
}

static void encode_info(struct h5_writer *w, unsigned index_size, const struct h5_named_info *info)
{
	h5_write_u8(w, 0);
	h5_write_u8(w, (uint8_t)((info->tracks_order ? TRACKS_ORDER : 0) |
				 (info->indexes_order ? INDEXES_ORDER : 0)));
	if (info->tracks_order)
		h5_write_uint(w, info->next_order, index_size);
	h5_write_offset(w, info->heap);
	h5_write_offset(w, info->name_index);
	if (info->indexes_order)
		h5_write_offset(w, info->order_index);
}

void h5_link_info_encode(struct h5_writer *w, const struct h5_named_info *info)
{
	encode_info(w, 8, info);
}

void h5_attribute_info_encode(struct h5_writer *w, const struct h5_named_info *info)
{
	encode_info(w, 2, info);
}

/* Version 2 B-tree, record type 5:
 *
 *   size  field
 *      4  hash of the name
 *      7  heap ID: as long as the heap's IDs are */
int h5_link_record_decode(struct h5_reader *r, struct h5_named_record *record)
{
	*record = (struct h5_named_record){.hash = h5_read_u32(r)};
	record->id_size = h5_reader_left(r);
	record->id = h5_read_bytes(r, record->id_size);
	return h5_reader_check(r, "link index");
}

/* Version 2 B-tree, record type 8:
 *
 *   size  field
 *      8  heap ID
 *      1  flags of the message
 *      4  creation order
 *      4  hash of the name     */
int h5_attribute_record_decode(struct h5_reader *r, struct h5_named_record *record)
{
	*record = (struct h5_named_record){.id_size = 8};
	record->id = h5_read_bytes(r, record->id_size);
	record->is_shared = h5_read_u8(r) & MESSAGE_IS_SHARED;
	record->order = h5_read_u32(r);
	record->hash = h5_read_u32(r);
	return h5_reader_check(r, "attribute index");
}

int h5_link_record_encode(struct h5_writer *w, const struct h5_named_record *record)
{
	h5_write_u32(w, record->hash);
	h5_write_bytes(w, record->id, record->id_size);
	return h5_writer_check(w, "link index");
}

static void write_attribute(struct h5_writer *w, const struct h5_named_record *record)
{
	h5_write_bytes(w, record->id, record->id_size);
	h5_write_u8(w, record->is_shared ? MESSAGE_IS_SHARED : 0);
	h5_write_u32(w, (uint32_t)record->order);
}

int h5_attribute_record_encode(struct h5_writer *w, const struct h5_named_record *record)
{
	write_attribute(w, record);
	h5_write_u32(w, record->hash);
	return h5_writer_check(w, "attribute index");
}

/* Version 2 B-tree, record type 6:
 *
 *   size  field
 *      8  creation order
 *      7  heap ID        */
int h5_link_order_record_decode(struct h5_reader *r, struct h5_named_record *record)
{
	*record = (struct h5_named_record){.order = (int64_t)h5_read_u64(r)};
	record->id_size = h5_reader_left(r);
	record->id = h5_read_bytes(r, record->id_size);
	return h5_reader_check(r, "link index");
}

int h5_link_order_record_encode(struct h5_writer *w, const struct h5_named_record *record)
{
	h5_write_u64(w, (uint64_t)record->order);
	h5_write_bytes(w, record->id, record->id_size);
	return h5_writer_check(w, "link index");
}

/* Version 2 B-tree, record type 9:
 *
 *   size  field
 *      8  heap ID
 *      1  flags of the message
 *      4  creation order       */
int h5_attribute_order_record_decode(struct h5_reader *r, struct h5_named_record *record)
{
	*record = (struct h5_named_record){.id_size = 8};
	record->id = h5_read_bytes(r, record->id_size);
	record->is_shared = h5_read_u8(r) & MESSAGE_IS_SHARED;
	record->order = h5_read_u32(r);
	return h5_reader_check(r, "attribute index");
}

int h5_attribute_order_record_encode(struct h5_writer *w, const struct h5_named_record *record)
{
	write_attribute(w, record);
	return h5_writer_check(w, "attribute index");
}
