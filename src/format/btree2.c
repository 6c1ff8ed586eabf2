#include "format/btree2.h"

#include "base/checked.h"
#include "base/error.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	NODE_OVERHEAD = 10,	    /* bytes of signature, version, type, checksum */
	FIRST_STRUCTURED_TYPE = 12, /* first of the types of structured chunks' records */
};

uint8_t h5_btree2_version(unsigned type)
{
	return type >= FIRST_STRUCTURED_TYPE;
}

static void set_limits(const struct h5_btree2_header *h, struct h5_btree2_level *level, uint64_t max_records)
{
	level->max_records = max_records; /* 32 bits */
	level->split_records = max_records * h->split_percent / 100;
	level->merge_records = max_records * h->merge_percent / 100;
}

/* Computes how many records the nodes of each level may hold, and from that the widths of the counts in child
 * pointers.
 *
 * In the text of the specification each level's maximum decides the width of Number of Records. Writers take
 * the width of the leaves, the largest, for all levels. */
int h5_btree2_header_compute(struct h5_btree2_header *h, uint64_t address, unsigned size_of_offsets)
{
	uint64_t total; /* largest possible number of records in a node and all nodes beneath it */

	if (h->node_size <= NODE_OVERHEAD || !h->record_size || h->depth > H5_BTREE2_DEPTH)
		return h5_fail(-EUCLEAN, address,
			       "version 2 B-tree: nodes of %u bytes, records of %u, depth %u", h->node_size,
			       h->record_size, h->depth);
	total = (h->node_size - NODE_OVERHEAD) / h->record_size;
	set_limits(h, &h->levels[0], total);
	h->count_size = (uint8_t)h5_limit_size(total);
	for (unsigned i = 1; i <= h->depth && total; i++) {
		struct h5_btree2_level *level = &h->levels[i];
		uint64_t beneath = total;
		unsigned pointer = size_of_offsets + h->count_size + h->levels[i - 1].total_size;

		level->pointer_size = (uint8_t)pointer;
		/* one pointer more than records */
		if (h->node_size > NODE_OVERHEAD + pointer)
			set_limits(h, level,
				   (h->node_size - NODE_OVERHEAD - pointer) / (h->record_size + pointer));
		total = level->max_records;
		if (total &&
		    (!h5_mul(total + 1, beneath, &total) || !h5_add(total, level->max_records, &total)))
			return h5_fail(-EUCLEAN, address, "version 2 B-tree: depth %u", h->depth);
		level->total_size = (uint8_t)h5_limit_size(total);
	}
	if (!total)
		return h5_fail(-EUCLEAN, address,
			       "version 2 B-tree: nodes of %u bytes have no room for records", h->node_size);
	return 0;
}

/* Header, specification III.A.2.
 *
 *   offset  size  field
 *        0     4  signature "BTHD"
 *        4     1  version 0; 1 too for structured chunks
 *        5     1  type
 *        6     4  node size
 *       10     2  record size
 *       12     2  depth
 *       14     1  split percent
 *       15     1  merge percent
 *       16     O  root node address
 *     16+O     2  number of records in root node
 *     18+O     L  total number of records
 *   18+O+L     4  checksum                       */
int h5_btree2_header_decode(struct h5_reader *r, struct h5_btree2_header *h)
{
	uint64_t at = h5_reader_address(r);
	int rc;

	memset(h, 0, sizeof *h);
	if (!h5_read_signature(r, "BTHD"))
		return h5_fail(-EUCLEAN, at, "version 2 B-tree header: no signature");
	h->version = h5_read_u8(r);
	h->type = h5_read_u8(r);
	h->node_size = h5_read_u32(r);
	h->record_size = h5_read_u16(r);
	h->depth = h5_read_u16(r);
	h->split_percent = h5_read_u8(r);
	h->merge_percent = h5_read_u8(r);
	h->root = h5_read_offset(r);
	h->root_records = h5_read_u16(r);
	h->records = h5_read_length(r);
	rc = h5_reader_checksum(r, "version 2 B-tree header");
	if (rc)
		return rc;
	if (h->version > h5_btree2_version(h->type))
		return h5_fail(-ENOTSUP, at, "version 2 B-tree header: version %u is not supported",
			       h->version);
	return h5_btree2_header_compute(h, at, r->size_of_offsets);
}

size_t h5_btree2_header_size(unsigned size_of_offsets, unsigned size_of_lengths)
{
	return 22 + size_of_offsets + size_of_lengths;
}

int h5_btree2_header_encode(struct h5_writer *w, const struct h5_btree2_header *h)
{
	h5_write_bytes(w, "BTHD", 4);
	h5_write_u8(w, h->version);
	h5_write_u8(w, h->type);
	h5_write_u32(w, h->node_size);
	h5_write_u16(w, h->record_size);
	h5_write_u16(w, h->depth);
	h5_write_u8(w, h->split_percent);
	h5_write_u8(w, h->merge_percent);
	h5_write_offset(w, h->root);
	h5_write_u16(w, h->root_records);
	h5_write_length(w, h->records);
	h5_write_checksum(w);
	return h5_writer_check(w, "version 2 B-tree header");
}

size_t h5_btree2_node_size(const struct h5_btree2_header *h, unsigned level, uint64_t records)
{
	const struct h5_btree2_level *l = &h->levels[level];

	/* Fits into node_size, which has 32 bits, since max_records was chosen so. */
	if (records > l->max_records)
		return 0;
	return (size_t)(NODE_OVERHEAD + records * h->record_size +
			(level ? (records + 1) * l->pointer_size : 0));
}

struct h5_btree2_node *h5_btree2_node_new(const struct h5_btree2_header *h, unsigned level, size_t room)
{
	size_t children = level ? room + 1 : 0;
	uint64_t size = sizeof(struct h5_btree2_node) + (uint64_t)children * sizeof(struct h5_btree2_child) +
			(uint64_t)room * h->record_size;
	struct h5_btree2_node *node = size > SIZE_MAX ? NULL : malloc((size_t)size);

	if (!node)
		return NULL;
	node->count = 0;
	node->level = level;
	node->children = level ? (struct h5_btree2_child *)(node + 1) : NULL;
	node->records = (uint8_t *)(node + 1) + children * sizeof *node->children;
	node->bytes = (size_t)size;
	return node;
}

/* Internal node and leaf node, specification III.A.2.
 *
 *   offset  size  field
 *        0     4  signature: "BTIN", "BTLF" in a leaf
 *        4     1  version 0; 1 too for structured chunks
 *        5     1  type
 *        6        N records
 *                 N + 1 child pointers, not in a leaf: address O, number of records,
 *                   total number of records (not if the children are leaves)
 *              4  checksum                                                              */
int h5_btree2_node_decode(struct h5_reader *r, const struct h5_btree2_header *h, size_t records,
			  struct h5_btree2_node *node)
{
	uint64_t at = h5_reader_address(r);
	unsigned version, type, level = node->level;
	size_t bytes = records * h->record_size;
	const uint8_t *data;
	int rc;

	if (!h5_read_signature(r, level ? "BTIN" : "BTLF"))
		return h5_fail(-EUCLEAN, at, "version 2 B-tree node: no signature of level %u", level);
	version = h5_read_u8(r);
	type = h5_read_u8(r);
	data = h5_read_bytes(r, bytes);
	if (data)
		memcpy(node->records, data, bytes);
	node->count = records;
	for (size_t i = 0; level && i <= records; i++) {
		struct h5_btree2_child *child = &node->children[i];

		child->address = h5_read_offset(r);
		child->total = child->records = h5_read_uint(r, h->count_size);
		if (level > 1)
			child->total = h5_read_uint(r, h->levels[level - 1].total_size);
	}
	rc = h5_reader_checksum(r, "version 2 B-tree node");
	if (rc)
		return rc;
	if (version > h5_btree2_version(type))
		return h5_fail(-ENOTSUP, at, "version 2 B-tree node: version %u is not supported", version);
	if (type != h->type)
		return h5_fail(-EUCLEAN, at, "version 2 B-tree node: type %u, not %u", type, h->type);
	return 0;
}

int h5_btree2_node_encode(struct h5_writer *w, const struct h5_btree2_header *h,
			  const struct h5_btree2_node *node)
{
	unsigned level = node->level;

	assert(level <= h->depth && node->count <= h->levels[level].max_records);
	h5_write_bytes(w, level ? "BTIN" : "BTLF", 4);
	h5_write_u8(w, 0);
	h5_write_u8(w, h->type);
	h5_write_bytes(w, node->records, node->count * h->record_size);
	for (size_t i = 0; level && i <= node->count; i++) {
		const struct h5_btree2_child *child = &node->children[i];

		h5_write_offset(w, child->address);
		h5_write_uint(w, child->records, h->count_size);
		h5_write_uint(w, child->total, h->levels[level - 1].total_size);
	}
	h5_write_checksum(w);
	return h5_writer_check(w, "version 2 B-tree node");
}
