#include "store/btree2.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/seen.h"
#include "store/block.h"
#include "store/want.h"

#include <stdlib.h>
#include <string.h>

static int decode_header(struct h5_reader *r, void *header)
{
	return h5_btree2_header_decode(r, header);
}

/* A copy without the levels that the header does not use; NULL: out of memory. */
static struct h5_btree2_header *copy_header(const struct h5_btree2_header *header)
{
	struct h5_btree2_header *copy = malloc(h5_btree2_header_bytes(header));

	if (copy)
		memcpy(copy, header, h5_btree2_header_bytes(header));
	return copy;
}

static int load_header(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	struct h5_btree2_header header;
	int rc = h5_block_decode_header(file, address, H5_BTREE2_HEADER_MAX, decode_header, &header);

	(void)arg;
	if (rc)
		return rc;
	*value = copy_header(&header);
	*cost = h5_btree2_header_bytes(&header);
	return *value ? 0 : h5_fail(-ENOMEM, address, "version 2 B-tree header: out of memory");
}

static const struct h5_block_type btree2_header = {{"version 2 B-tree header", free}, load_header};

struct node_shape {
	const struct h5_btree2_header *header;
	unsigned level;
	uint64_t records;
};

static int load_node(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	const struct node_shape *shape = arg;
	size_t size = h5_btree2_node_size(shape->header, shape->level, shape->records);
	struct h5_btree2_node *node;
	struct h5_reader r;
	void *data;
	int rc;

	if (!size)
		return h5_fail(-EUCLEAN, address, "version 2 B-tree node: %ju records",
			       (uintmax_t)shape->records);
	rc = h5_block_open(file, address, size, "version 2 B-tree node", &data, &r);
	if (rc)
		return rc;
	node = h5_btree2_node_new(shape->header, shape->level, (size_t)shape->records);
	rc = node ? h5_btree2_node_decode(&r, shape->header, (size_t)shape->records, node)
		  : h5_fail(-ENOMEM, address, "version 2 B-tree node: out of memory");
	free(data);
	if (rc) {
		free(node);
		return rc;
	}
	*value = node;
	*cost = node->bytes;
	return 0;
}

static const struct h5_block_type btree2_node = {{"version 2 B-tree node", free}, load_node};

/* The children from the one of this number on will be read, so many of them. Up to H5_WANT_NODES_MOST: by a
 * reader of chunks. */
static void want_children(struct h5_file *file, const struct h5_btree2_header *header,
			  const struct h5_btree2_node *node, size_t first, size_t most)
{
	enum h5_wanted among = most <= H5_WANT_NODES_MOST ? H5_WANTED_AMONG : H5_WANTED_NOW;
	struct h5_want want = {.file = file};

	if (!node->level || !h5_file_is_far(file))
		return;
	for (size_t i = first; i <= node->count && want.count < most; i++)
		h5_want_add(&want, node->children[i].address,
			    h5_btree2_node_size(header, node->level - 1, node->children[i].records));
	h5_want_send(&want, header->type < H5_BTREE2_CHUNK ? H5_WANTED_AROUND : among);
}

int h5_btree2_open(struct h5_file *file, uint64_t address, enum h5_btree2_type type, unsigned record_size,
		   struct h5_btree2 *tree)
{
	const struct h5_btree2_header *header;
	struct h5_lru_entry *ref;
	int rc;

	*tree = (struct h5_btree2){.file = file, .address = address, .type = type};
	if (address == H5_UNDEF)
		return 0;
	rc = h5_file_block(file, &btree2_header, address, 0, NULL, &ref);
	if (rc)
		return rc;
	header = h5_lru_value(ref);
	tree->record_size = header->record_size;
	tree->records = header->records;
	if (header->type != type)
		rc = h5_fail(-EUCLEAN, address, "version 2 B-tree header: type %u, not %u", header->type,
			     type);
	else if (header->record_size < record_size)
		rc = h5_fail(-EUCLEAN, address, "version 2 B-tree header: records of %u bytes, not %u",
			     header->record_size, record_size);
	h5_file_put(file, ref);
	return rc;
}

/* One search or walk. */
struct search {
	const struct h5_btree2 *tree;
	const struct h5_btree2_header *header; /* of header_ref */
	struct h5_lru_entry *header_ref;
	struct h5_seen seen; /* nodes of a walk */
};

int h5_btree2_header_get(const struct h5_btree2 *tree, struct h5_lru_entry **ref,
			 const struct h5_btree2_header **header)
{
	int rc = h5_file_block(tree->file, &btree2_header, tree->address, 0, NULL, ref);

	if (rc)
		return rc;
	*header = h5_lru_value(*ref);
	/* The cache may have dropped it since h5_btree2_open(), and another program may have written the
	 * file. */
	if ((*header)->type != tree->type || (*header)->record_size != tree->record_size) {
		h5_file_put(tree->file, *ref);
		return h5_fail(-EUCLEAN, tree->address, "version 2 B-tree header: it has changed");
	}
	return 0;
}

void h5_btree2_keep_header(const struct h5_btree2 *tree, const struct h5_btree2_header *header)
{
	struct h5_btree2_header *copy = copy_header(header);

	/* Without memory the header is read again. */
	if (copy)
		h5_file_add_block(tree->file, &btree2_header, tree->address, 0, copy,
				  h5_btree2_header_bytes(header));
}

void h5_btree2_keep_node(const struct h5_btree2 *tree, uint64_t address, struct h5_btree2_node *node)
{
	h5_file_add_block(tree->file, &btree2_node, address, tree->address, node, node->bytes);
}

static int search_begin(struct search *s, const struct h5_btree2 *tree)
{
	*s = (struct search){.tree = tree};
	return h5_btree2_header_get(tree, &s->header_ref, &s->header);
}

int h5_btree2_node_get(const struct h5_btree2 *tree, const struct h5_btree2_header *header, uint64_t address,
		       unsigned level, uint64_t records, struct h5_lru_entry **ref,
		       const struct h5_btree2_node **out)
{
	const struct node_shape shape = {header, level, records};
	const struct h5_btree2_node *node;
	int rc = h5_interrupt_check();

	*ref = NULL;
	if (!rc)
		rc = h5_file_block(tree->file, &btree2_node, address, tree->address, &shape, ref);
	if (rc)
		return rc;
	node = h5_lru_value(*ref);
	/* All else of a node's form follows from the header, whose address is in the cache's key. */
	if (node->level != level || node->count != records) {
		h5_file_put(tree->file, *ref);
		*ref = NULL;
		return h5_fail(-EUCLEAN, address, "version 2 B-tree node: two parents disagree about it");
	}
	*out = node;
	return 0;
}

static int node_get(struct search *s, uint64_t address, unsigned level, uint64_t records,
		    struct h5_lru_entry **ref, const struct h5_btree2_node **out)
{
	return h5_btree2_node_get(s->tree, s->header, address, level, records, ref, out);
}

struct h5_reader h5_btree2_record_at(const struct h5_btree2 *tree, const struct h5_btree2_node *node,
				     size_t i)
{
	return h5_file_reader(tree->file, node->records + i * tree->record_size, tree->record_size, H5_UNDEF);
}

int h5_btree2_lower_bound(const struct h5_btree2 *tree, const struct h5_btree2_node *node,
			  h5_btree2_compare *compare, void *arg, size_t *first, bool *equal)
{
	size_t low = 0, high = node->count;

	*equal = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int rc = 0, order = compare(arg, h5_btree2_record_at(tree, node, middle), &rc);

		if (rc)
			return rc;
		if (order > 0) {
			low = middle + 1;
		} else {
			high = middle;
			*equal = !order;
		}
	}
	*first = low;
	return 0;
}

/* Goes down to the child that the search leads to. */
static int descend(struct search *s, struct h5_btree2_end *end, uint64_t *address, uint64_t *records)
{
	const struct h5_btree2_node *node = end->node;
	const size_t size = s->header->record_size, i = end->first;

	if (i && end->before) {
		memcpy(end->before, node->records + (i - 1) * size, size);
		end->has_before = true;
	}
	if (i < node->count && end->after) {
		memcpy(end->after, node->records + i * size, size);
		end->has_after = true;
	}
	*address = node->children[i].address;
	*records = node->children[i].records;
	if (end->walks)
		want_children(s->tree->file, s->header, node, i, end->walks);
	h5_file_put(s->tree->file, end->ref);
	end->ref = NULL;
	return *address == H5_UNDEF ? h5_fail(-EUCLEAN, s->tree->address, "version 2 B-tree: no child node")
				    : 0;
}

int h5_btree2_seek(const struct h5_btree2 *tree, h5_btree2_compare *compare, void *arg,
		   struct h5_btree2_end *end)
{
	uint64_t address, records;
	struct search s;
	unsigned level;
	int rc;

	end->ref = NULL;
	end->equal = end->has_before = end->has_after = false;
	if (tree->address == H5_UNDEF)
		return 0;
	rc = search_begin(&s, tree);
	if (rc)
		return rc;
	address = s.header->root;
	records = s.header->root_records;
	level = s.header->depth;
	while (address != H5_UNDEF) {
		rc = node_get(&s, address, level, records, &end->ref, &end->node);
		if (!rc)
			rc = h5_btree2_lower_bound(tree, end->node, compare, arg, &end->first, &end->equal);
		if (rc || end->equal || !level--)
			break;
		rc = descend(&s, end, &address, &records);
	}
	if (rc) {
		h5_file_put(tree->file, end->ref);
		end->ref = NULL;
	}
	h5_file_put(tree->file, s.header_ref);
	return rc;
}

int h5_btree2_find(const struct h5_btree2 *tree, h5_btree2_compare *compare, void *arg, uint8_t *record)
{
	struct h5_btree2_end end = {.before = NULL};
	int rc = h5_btree2_seek(tree, compare, arg, &end);

	if (rc)
		return rc;
	if (end.equal)
		memcpy(record, end.node->records + end.first * tree->record_size, tree->record_size);
	h5_file_put(tree->file, end.ref);
	return end.equal ? 0 : -ENOENT;
}

struct walk {
	struct search search;
	h5_btree2_visit *record; /* NULL: not called */
	h5_extent_visit *block;	 /* NULL: not called */
	void *arg;
};

/* The recursion is as deep as the tree: at most H5_BTREE2_DEPTH. */
static int walk_node(struct walk *walk, uint64_t address, unsigned level, uint64_t records)
{
	struct search *s = &walk->search;
	const struct h5_btree2_node *node;
	struct h5_lru_entry *ref;
	int rc = h5_seen_add(&s->seen, address);

	if (rc == -EEXIST)
		return h5_fail(-EUCLEAN, address, "version 2 B-tree: a node belongs to two places");
	if (rc)
		return h5_fail(rc, address, "version 2 B-tree: out of memory");
	rc = node_get(s, address, level, records, &ref, &node);
	if (rc)
		return rc;
	if (walk->block)
		rc = walk->block(walk->arg, address, s->header->node_size);
	want_children(s->tree->file, s->header, node, 0, H5_WANT_MAX);
	for (size_t i = 0; i <= node->count && !rc; i++) {
		if (level)
			rc = walk_node(walk, node->children[i].address, level - 1, node->children[i].records);
		if (!rc && i < node->count && walk->record)
			rc = walk->record(walk->arg, h5_btree2_record_at(s->tree, node, i));
	}
	h5_file_put(s->tree->file, ref);
	return rc;
}

static int walk_tree(struct walk *walk, const struct h5_btree2 *tree)
{
	const struct h5_superblock *sb = h5_file_superblock(tree->file);
	struct search *s = &walk->search;
	int rc;

	if (tree->address == H5_UNDEF)
		return 0;
	rc = search_begin(s, tree);
	if (rc)
		return rc;
	if (walk->block)
		rc = walk->block(walk->arg, tree->address,
				 h5_btree2_header_size(sb->size_of_offsets, sb->size_of_lengths));
	if (!rc && s->header->root != H5_UNDEF)
		rc = walk_node(walk, s->header->root, s->header->depth, s->header->root_records);
	h5_seen_release(&s->seen);
	h5_file_put(tree->file, s->header_ref);
	return rc;
}

int h5_btree2_iterate(const struct h5_btree2 *tree, h5_btree2_visit *visit, void *arg)
{
	struct walk walk = {.record = visit, .arg = arg};

	return walk_tree(&walk, tree);
}

int h5_btree2_extents(const struct h5_btree2 *tree, h5_extent_visit *visit, void *arg)
{
	struct walk walk = {.block = visit, .arg = arg};

	return walk_tree(&walk, tree);
}
