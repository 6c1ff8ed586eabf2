#include "format/shared_message.h"

#include "base/error.h"

#include <string.h>

enum { IN_HEAP = 1, IN_OTHER_HEADER = 2 };

/*   version 1: a whole symbol table entry's begin, which the specification leaves out
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

size_t h5_shared_table_size(unsigned indexes, uint8_t size_of_offsets)
{
	return 4 + indexes * (14u + 2u * size_of_offsets) + 4;
}

/*   size  field
 *      4  signature SMTB
 *         for each index:
 *      1    version, 0
 *      1    index type
 *      2    message type flags
 *      4    minimum message size
 *      2    list cutoff
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
		h5_reader_skip(r, 1);
		table->indexes[i].types = h5_read_u16(r);
		h5_reader_skip(r, 10);
		h5_read_offset(r);
		table->indexes[i].heap = h5_read_offset(r);
	}
	return h5_reader_checksum(r, "shared message table");
}
