#include "object/shared_table.h"

#include "base/error.h"
#include "format/shared_message.h"
#include "object/fractal_heap.h"
#include "store/block.h"

#include <stdlib.h>

static int load_table(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	const struct h5_shared_table_message *message = arg;
	size_t size = h5_shared_table_size(message->indexes, h5_file_superblock(file)->size_of_offsets);
	struct h5_shared_table *table = malloc(sizeof *table);
	void *data = NULL;
	struct h5_reader r;
	int rc;

	rc = table ? h5_block_read(file, address, 0, size, "shared message table", &data)
		   : h5_fail(-ENOMEM, address, "shared message table: out of memory");
	if (!rc) {
		r = h5_file_reader(file, data, size, address);
		rc = h5_shared_table_decode(&r, message->indexes, table);
	}
	free(data);
	if (rc) {
		free(table);
		return rc;
	}
	*value = table;
	*cost = sizeof *table;
	return 0;
}

static const struct h5_block_type table_block = {
	.kind = {.name = "shared message table", .release = free},
	.load = load_table,
};

/* The superblock extension tells where the table is. */
static int read_table_message(struct h5_file *file, struct h5_shared_table_message *table)
{
	struct h5_message_body body;
	int rc = h5_message_open_extension(file, H5_MSG_SHARED_TABLE, &body);

	if (rc == -ENODATA)
		return h5_fail(-EUCLEAN, H5_UNDEF, "shared message: the file has no shared message table");
	if (rc)
		return rc;
	rc = h5_shared_table_message_decode(&body.reader, table);
	h5_message_release(file, &body);
	return rc;
}

/* Bit of the message type in an index's flags. */
static unsigned type_flag(enum h5_message_type type)
{
	return 1u << (type == H5_MSG_FILL_VALUE_OLD ? H5_MSG_FILL_VALUE : type);
}

static uint64_t heap_of(const struct h5_shared_table *table, enum h5_message_type type)
{
	for (unsigned i = 0; i < table->count; i++)
		if (table->indexes[i].types & type_flag(type))
			return table->indexes[i].heap;
	return H5_UNDEF;
}

int h5_shared_table_get(struct h5_file *file, enum h5_message_type type, const uint8_t *id, uint8_t **data,
			size_t *size)
{
	struct h5_shared_table_message message;
	struct h5_lru_entry *ref;
	uint64_t heap;
	int rc = read_table_message(file, &message);

	if (rc)
		return rc;
	rc = h5_file_block(file, &table_block, message.address, message.indexes, &message, &ref);
	if (rc)
		return rc;
	heap = heap_of(h5_lru_value(ref), type);
	h5_file_put(file, ref);
	if (heap == H5_UNDEF)
		return h5_fail(-EUCLEAN, message.address,
			       "shared message table: no heap for messages of type %#x", type);
	return h5_fractal_heap_get(file, heap, id, H5_SHARED_ID_SIZE, data, size);
}
