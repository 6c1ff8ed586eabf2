#include "format/named_message.h"

#include "base/error.h"

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
static int decode_info(struct h5_reader *r, const char *what, size_t index_size, struct h5_named_info *info)
{
	uint8_t version = h5_read_u8(r), flags = h5_read_u8(r);

	if (version)
		return h5_fail(-EUCLEAN, r->address, "%s: version %u", what, version);
	info->tracks_order = flags & TRACKS_ORDER;
	if (info->tracks_order)
		h5_reader_skip(r, index_size);
	info->heap = h5_read_offset(r);
	info->name_index = h5_read_offset(r);
	info->order_index = flags & INDEXES_ORDER ? h5_read_offset(r) : H5_UNDEF;
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
	h5_reader_skip(r, 4);
	record->hash = h5_read_u32(r);
	return h5_reader_check(r, "attribute index");
}
