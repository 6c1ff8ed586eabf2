#include "format/shared_message.h"

#include "base/error.h"
#include "base/lookup3.h"

#include <string.h>

enum { IN_HEAP = 1, IN_OTHER_HEADER = 2, INDEX_LIST = 0 };

/*   version 1: the begin of a symbol table entry, which the specification leaves out
 *   size  field
 *      1  version
 *      1  type, without meaning
 *      6  reserved
 *      L  link name offset
 *      O  address of the object header
 *
 *   versions 2 and 3
 *      1  version
 *      1  type; version 2: without meaning
 *         version 3, type 1: heap ID, 8 bytes; else: O address of the object header */
int h5_shared_message_decode(struct h5_reader *r, struct h5_shared_message *shared)
{
	uint8_t version = h5_read_u8(r), type = h5_read_u8(r);

	memset(shared, 0, sizeof *shared);
	if (version < 1 || version > 3)
		return h5_fail(-EUCLEAN, r->address, "shared message: version %u", version);
	if (version == 3 && type != IN_HEAP && type != IN_OTHER_HEADER)
		return h5_fail(-EUCLEAN, r->address, "shared message: type %u", type);
	if (version == 1) {
		h5_reader_skip(r, 6);
		h5_read_length(r);
	}
	if (version == 3 && type == IN_HEAP) {
		const uint8_t *id = h5_read_bytes(r, sizeof shared->id);

		shared->in_heap = true;
		if (id)
			memcpy(shared->id, id, sizeof shared->id);
	} else {
		shared->address = h5_read_offset(r);
	}
	return h5_reader_check(r, "shared message");
}

/*   size  field
 *      1  version, 0
 *      O  address of the table
 *      1  number of indexes    */
int h5_shared_table_message_decode(struct h5_reader *r, struct h5_shared_table_message *message)
{
	uint8_t version = h5_read_u8(r);

	message->address = h5_read_offset(r);
	message->indexes = h5_read_u8(r);
	if (version)
		return h5_fail(-EUCLEAN, r->address, "shared message table message: version %u", version);
	if (!message->indexes || message->indexes > H5_SHARED_INDEXES_MAX)
		return h5_fail(-EUCLEAN, r->address, "shared message table message: %u indexes",
			       message->indexes);
	return h5_reader_check(r, "shared message table message");
}

int h5_shared_table_message_encode(struct h5_writer *w, const struct h5_shared_table_message *message)
{
	h5_write_u8(w, 0);
	h5_write_offset(w, message->address);
	h5_write_u8(w, message->indexes);
	return h5_writer_check(w, "shared message table message");
}

size_t h5_shared_table_size(unsigned indexes, uint8_t size_of_offsets)
{
	return 4 + indexes * (14u + 2u * size_of_offsets) + 4;
}

/*   size  field
 *      4  signature SMTB
 *         for each index:
 *      1    version, 0
 *      1    index type; 0: list, 1: version 2 B-tree
 *      2    message type flags
 *      4    minimum message size
 *      2    list cutoff: a list has room for so many messages
 *      2    version 2 B-tree cutoff
 *      2    number of messages
 *      O    address of the index
 *      O    address of the fractal heap
 *      4  checksum                      */
int h5_shared_table_decode(struct h5_reader *r, unsigned indexes, struct h5_shared_table *table)
{
	memset(table, 0, sizeof *table);
	if (!h5_read_signature(r, "SMTB"))
		return h5_fail(-EUCLEAN, r->address, "shared message table: wrong signature");
	table->count = indexes;
	for (unsigned i = 0; i < indexes; i++) {
		uint8_t version = h5_read_u8(r);

		if (version)
			return h5_fail(-EUCLEAN, r->address, "shared message table: index of version %u",
				       version);
		table->indexes[i].is_list = h5_read_u8(r) == INDEX_LIST;
		table->indexes[i].types = h5_read_u16(r);
		h5_reader_skip(r, 4);
		table->indexes[i].list_max = h5_read_u16(r);
		h5_reader_skip(r, 2);
		table->indexes[i].messages = h5_read_u16(r);
		table->indexes[i].index = h5_read_offset(r);
		table->indexes[i].heap = h5_read_offset(r);
	}
	return h5_reader_checksum(r, "shared message table");
}

void h5_shared_table_update(uint8_t *bytes, size_t size, uint8_t size_of_offsets,
			    const struct h5_shared_table *table)
{
	for (unsigned i = 0; i < table->count; i++) {
		uint8_t *p = bytes + 4 + i * (14u + 2u * size_of_offsets) + 12;

		h5_uint_to(p, table->indexes[i].messages, 2);
		h5_uint_to(p + 2, table->indexes[i].index, size_of_offsets);
	}
	h5_uint_to(bytes + size - 4, h5_lookup3(bytes, size - 4, 0), 4);
}

/* A record has room for either form.
 *
 *   size  field
 *      1  location; 0: in the heap
 *      4  hash of the message
 *         in the heap:               in an object header:
 *      4    reference count        1   reserved
 *      8    heap ID                1   message type
 *                                  2   creation index
 *                                  O   address of the object header */
size_t h5_shared_record_size(uint8_t size_of_offsets)
{
	return 5u + (size_of_offsets > H5_SHARED_ID_SIZE ? size_of_offsets : H5_SHARED_ID_SIZE) + 4u;
}

int h5_shared_record_decode(struct h5_reader *r, struct h5_shared_record *record)
{
	uint8_t location = h5_read_u8(r);

	memset(record, 0, sizeof *record);
	record->in_heap = !location;
	record->hash = h5_read_u32(r);
	record->count = h5_read_u32(r);
	if (record->in_heap)
		record->id = h5_read_bytes(r, H5_SHARED_ID_SIZE);
	else
		record->address = h5_read_offset(r);
	if (location > 1)
		return h5_fail(-EUCLEAN, r->address, "shared message record: location %u", location);
	return h5_reader_check(r, "shared message record");
}

void h5_shared_record_set_count(uint8_t *record, uint32_t count)
{
	h5_uint_to(record + 5, count, 4);
}

/*   size  field
 *      4  signature SMLI
 *         records
 *      4  checksum       */
size_t h5_shared_list_size(unsigned messages, uint8_t size_of_offsets)
{
	return 4 + messages * h5_shared_record_size(size_of_offsets) + 4;
}

int h5_shared_list_decode(struct h5_reader *r, struct h5_reader *records)
{
	if (!h5_read_signature(r, "SMLI"))
		return h5_fail(-EUCLEAN, r->address, "shared message list: wrong signature");
	*records = h5_reader_sub(r, h5_reader_left(r) < 4 ? 0 : h5_reader_left(r) - 4);
	return h5_reader_checksum(r, "shared message list");
}

void h5_shared_list_seal(uint8_t *list, size_t n)
{
	h5_uint_to(list + n - 4, h5_lookup3(list, n - 4, 0), 4);
}
