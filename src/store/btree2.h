/* Version 2 B-trees: search and walk. Specification III.A.2. The caller knows what the records mean.
 * change/btree2_write.h changes trees. */
#ifndef H5_STORE_BTREE2_H
#define H5_STORE_BTREE2_H

#include "base/extents.h"
#include "format/btree2.h"
#include "store/file.h"

/* Record types of the specification. */
enum h5_btree2_type {
	H5_BTREE2_HUGE_INDIRECT = 1,
	H5_BTREE2_HUGE_INDIRECT_FILTERED = 2,
	H5_BTREE2_HUGE_DIRECT = 3,
	H5_BTREE2_HUGE_DIRECT_FILTERED = 4,
	H5_BTREE2_LINK_NAME = 5,
	H5_BTREE2_LINK_ORDER = 6,
	H5_BTREE2_SHARED_MESSAGE = 7,
	H5_BTREE2_ATTRIBUTE_NAME = 8,
	H5_BTREE2_ATTRIBUTE_ORDER = 9,
	H5_BTREE2_CHUNK = 10,
	H5_BTREE2_CHUNK_FILTERED = 11,
	H5_BTREE2_STRUCTURED_CHUNK = 12,
	H5_BTREE2_STRUCTURED_CHUNK_FILTERED = 13,
};

struct h5_btree2 {
	struct h5_file *file; /* borrowed */
	uint64_t address;     /* of the header; H5_UNDEF: an empty tree */
	enum h5_btree2_type type;
	uint16_t record_size; /* bytes; at least what the caller asked for */
	uint64_t records;     /* in all */
};

/* Reads the header (through the cache). -EUCLEAN: it is of another type, or its records are shorter than
 * `record_size`. There is nothing to release. */
int h5_btree2_open(struct h5_file *file, uint64_t address, enum h5_btree2_type type, unsigned record_size,
		   struct h5_btree2 *tree);

/* <0, 0, >0: the sought record comes before this one in the order of the tree, is this one, comes after it.
 * An error, set with h5_fail(), goes into *rc and ends the search. */
typedef int h5_btree2_compare(void *arg, struct h5_reader record, int *rc);

/* Copies the record for which compare gives 0 to `record` (record_size bytes). -ENOENT: none. */
int h5_btree2_find(const struct h5_btree2 *tree, h5_btree2_compare *compare, void *arg, uint8_t *record);

/* Where a search ends. */
struct h5_btree2_end {
	struct h5_lru_entry *ref;	   /* of the node, until h5_file_put(); NULL: the tree is empty */
	const struct h5_btree2_node *node; /* a leaf, unless the record was found further up */
	size_t first; /* the first record that is not before the sought one; count: none */
	bool equal;   /* record `first` is the sought one */
	/* Memory of the caller's, record_size bytes each, or NULL: copies of the records right before and
	 * right after the node, which stand further up. */
	uint8_t *before, *after;
	bool has_before, has_after;
	unsigned walks; /* set by the caller: so many nodes that follow will be read, too */
};

/* Sets all of *end that is not the caller's. */
int h5_btree2_seek(const struct h5_btree2 *tree, h5_btree2_compare *compare, void *arg,
		   struct h5_btree2_end *end);
/* Sets *first to the first record of a node that is not before the sought one, *equal to whether it is that.
 */
int h5_btree2_lower_bound(const struct h5_btree2 *tree, const struct h5_btree2_node *node,
			  h5_btree2_compare *compare, void *arg, size_t *first, bool *equal);
struct h5_reader h5_btree2_record_at(const struct h5_btree2 *tree, const struct h5_btree2_node *node,
				     size_t i);

/* Visits all records, in order; a result other than 0 of `visit` ends the walk and is returned. A node that
 * is met twice is -EUCLEAN. */
typedef int h5_btree2_visit(void *arg, struct h5_reader record);
int h5_btree2_iterate(const struct h5_btree2 *tree, h5_btree2_visit *visit, void *arg);

/* Visits the space of the tree: its header, and each node after it was read. Errors as above. */
int h5_btree2_extents(const struct h5_btree2 *tree, h5_extent_visit *visit, void *arg);

/* ---- for changes (change/btree2_edit.c) ---- */

/* A reference to the tree's header, until h5_file_put(). */
int h5_btree2_header_get(const struct h5_btree2 *tree, struct h5_lru_entry **ref,
			 const struct h5_btree2_header **header);
/* A reference to the node at the address, until h5_file_put(). -EUCLEAN: it has another level, or another
 * number of records. */
int h5_btree2_node_get(const struct h5_btree2 *tree, const struct h5_btree2_header *header, uint64_t address,
		       unsigned level, uint64_t records, struct h5_lru_entry **ref,
		       const struct h5_btree2_node **node);
/* What a change has written goes into the cache: the header, which is copied, and a node, which is taken
 * over. */
void h5_btree2_keep_header(const struct h5_btree2 *tree, const struct h5_btree2_header *header);
void h5_btree2_keep_node(const struct h5_btree2 *tree, uint64_t address, struct h5_btree2_node *node);

#endif
