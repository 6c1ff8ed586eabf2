/* Nodes of both kinds of B-trees, built by hand from the specification's tables. */
#include "base/buf.h"
#include "base/error.h"
#include "base/lookup3.h"
#include "fault_alloc.h"
#include "format/btree2.h"
#include "store/btree1.h"
#include "store/btree2.h"
#include "store/file_set.h"
#include "unit.h"

#include <string.h>

/* ---- an HDF5 file in memory: a superblock and what a test puts behind it ---- */

struct image {
	struct h5_buf bytes;
	struct h5_file_set *set; /* once opened */
	struct h5_file *file;
};

static void put(struct image *m, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++) /* zeros, if there are more bytes than a number has */
		h5_buf_byte(&m->bytes, (char)(i < sizeof value ? value >> (8 * i) & 0xff : 0));
}

static void put_checksum(struct image *m, size_t from)
{
	put(m, h5_lookup3(m->bytes.data + from, m->bytes.size - from, 0), 4);
}

static void image_init(struct image *m)
{
	h5_buf_init(&m->bytes, 1 << 24);
	h5_buf_add(&m->bytes, "\x89HDF\r\n\x1a\n", 8);
	put(m, 2, 1);	     /* version */
	put(m, 8, 1);	     /* size of offsets */
	put(m, 8, 1);	     /* size of lengths */
	put(m, 0, 1);	     /* flags */
	put(m, 0, 8);	     /* base */
	put(m, H5_UNDEF, 8); /* extension */
	put(m, 1u << 24, 8); /* end */
	put(m, 48, 8);	     /* root */
	put_checksum(m, 0);
	m->set = NULL;
}

static void image_open(struct image *m)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};

	ck_assert_int_eq(m->bytes.err, 0);
	ck_assert_int_eq(h5_file_set_open_memory(m->bytes.data, m->bytes.size, &options, &m->set), 0);
	m->file = h5_file_set_root(m->set);
}

static void image_release(struct image *m)
{
	h5_file_set_close(m->set);
	h5_buf_release(&m->bytes);
}

/* ---- version 1 ---- */

static uint64_t put_node1(struct image *m, unsigned type, unsigned level, unsigned count)
{
	uint64_t at = m->bytes.size;

	h5_buf_text(&m->bytes, "TREE");
	put(m, type, 1);
	put(m, level, 1);
	put(m, count, 2);
	put(m, H5_UNDEF, 8);
	put(m, 0x1234, 8);
	return at;
}

static int get1(struct image *m, uint64_t at, enum h5_btree1_type type, unsigned rank, int level)
{
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;
	int rc = h5_btree1_node_get(m->file, at, type, rank, level, &ref, &node);

	if (!rc)
		h5_file_put(m->file, ref);
	return rc;
}

START_TEST(v1_group_node)
{
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;
	struct image m;
	uint64_t at;

	image_init(&m);
	at = put_node1(&m, 0, 0, 2);
	for (uint64_t i = 0; i < 2; i++) {
		put(&m, 8 * i, 8);
		put(&m, 1000 + i, 8);
	}
	put(&m, 77, 8);
	image_open(&m);
	ck_assert_int_eq(h5_btree1_node_get(m.file, at, H5_BTREE1_GROUP, 0, -1, &ref, &node), 0);
	ck_assert_uint_eq(node->level, 0);
	ck_assert_uint_eq(node->count, 2);
	ck_assert(node->left == H5_UNDEF);
	ck_assert_uint_eq(node->right, 0x1234);
	ck_assert_uint_eq(node->children[0], 1000);
	ck_assert_uint_eq(node->children[1], 1001);
	ck_assert_uint_eq(node->keys[0].name, 0);
	ck_assert_uint_eq(node->keys[1].name, 8);
	ck_assert_uint_eq(node->keys[2].name, 77);
	h5_file_put(m.file, ref);
	image_release(&m);
}
END_TEST

START_TEST(v1_chunk_node)
{
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;
	struct image m;
	uint64_t at;

	image_init(&m);
	at = put_node1(&m, 1, 3, 1);
	for (uint64_t i = 0; i < 2; i++) {
		put(&m, 500 + i, 4);
		put(&m, 1 + i, 4);
		put(&m, 10 + i, 8);
		put(&m, 20 + i, 8);
		put(&m, i, 8); /* inside the element */
		if (!i)
			put(&m, 4096, 8);
	}
	image_open(&m);
	ck_assert_int_eq(h5_btree1_node_get(m.file, at, H5_BTREE1_CHUNK, 2, 3, &ref, &node), 0);
	ck_assert_uint_eq(node->count, 1);
	ck_assert_uint_eq(node->children[0], 4096);
	for (uint64_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(node->keys[i].size, 500 + i);
		ck_assert_uint_eq(node->keys[i].filter_mask, 1 + i);
		ck_assert_uint_eq(node->keys[i].offsets[0], 10 + i);
		ck_assert_uint_eq(node->keys[i].offsets[1], 20 + i);
	}
	h5_file_put(m.file, ref);
	/* The same bytes as another rank's node: the cache keeps them apart. */
	ck_assert_int_eq(get1(&m, at, H5_BTREE1_CHUNK, 3, 3), -EUCLEAN);
	ck_assert_int_eq(get1(&m, at, H5_BTREE1_CHUNK, 1, 3), 0);
	image_release(&m);
}
END_TEST

START_TEST(v1_bad_nodes)
{
	uint64_t full, huge, deep, beyond;
	struct image m;

	image_init(&m);
	full = put_node1(&m, 1, 1, 1);
	for (int i = 0; i < 9; i++)
		put(&m, full, 8);
	deep = put_node1(&m, 1, 255, 0); /* a tree of K = 1 grows by a level with nearly each chunk */
	for (int i = 0; i < 9; i++)
		put(&m, 0, 8);
	huge = put_node1(&m, 1, 0, 65535);
	beyond = m.bytes.size;
	image_open(&m);
	ck_assert_int_eq(get1(&m, full, H5_BTREE1_CHUNK, 1, -1), 0);
	ck_assert_int_eq(get1(&m, full, H5_BTREE1_CHUNK, 1, 1), 0);
	ck_assert_int_eq(get1(&m, full, H5_BTREE1_CHUNK, 1, 0),
			 -EUCLEAN); /* where its parent led: to itself */
	ck_assert_int_eq(get1(&m, full, H5_BTREE1_GROUP, 0, -1), -EUCLEAN);
	ck_assert_int_eq(get1(&m, full + 1, H5_BTREE1_CHUNK, 1, -1), -EUCLEAN);
	ck_assert_int_eq(get1(&m, deep, H5_BTREE1_CHUNK, 1, -1), 0);
	ck_assert_int_eq(get1(&m, huge, H5_BTREE1_CHUNK, 1, -1), -EUCLEAN);
	ck_assert_int_eq(get1(&m, beyond, H5_BTREE1_CHUNK, 1, -1), -EUCLEAN);
	ck_assert_int_eq(get1(&m, beyond - 3, H5_BTREE1_CHUNK, 1, -1), -EUCLEAN);
	ck_assert_int_eq(get1(&m, H5_UNDEF, H5_BTREE1_CHUNK, 1, -1), -EUCLEAN);
	image_release(&m);
}
END_TEST

static int decode1(const struct h5_buf *bytes, size_t at, size_t n, enum h5_btree1_type type)
{
	struct h5_reader r = h5_reader_init(bytes->data + at, n, at, 8, 8);
	struct h5_btree1_node *node = NULL;
	size_t cost;
	int rc = h5_btree1_node_decode(&r, type, 0, &node, &cost);

	free(node);
	return rc;
}

/* A node is refused if its signature or its type is wrong, or if it is cut short. */
START_TEST(v1_bad_begins)
{
	struct image m;
	size_t at;

	image_init(&m);
	at = put_node1(&m, 0, 0, 1);
	for (uint64_t i = 0; i < 3; i++)
		put(&m, i, 8);
	ck_assert_int_eq(decode1(&m.bytes, at, 48, H5_BTREE1_GROUP), 0);
	ck_assert_int_eq(decode1(&m.bytes, at, 48, H5_BTREE1_CHUNK), -EUCLEAN);
	for (size_t n = 0; n < 48; n++)
		ck_assert_int_eq(decode1(&m.bytes, at, n, H5_BTREE1_GROUP), -EUCLEAN);
	for (size_t i = 0; i < 5; i++) {
		m.bytes.data[at + i] ^= 1;
		ck_assert_int_eq(decode1(&m.bytes, at, 48, H5_BTREE1_GROUP), -EUCLEAN);
		m.bytes.data[at + i] ^= 1;
	}
	image_release(&m);
}
END_TEST

/* A superblock of version 1, with the three K. */
static void put_superblock1(struct image *m, unsigned leaf, unsigned internal, unsigned chunk)
{
	h5_buf_init(&m->bytes, 1 << 24);
	h5_buf_add(&m->bytes, "\x89HDF\r\n\x1a\n", 8);
	put(m, 1, 5);	       /* versions */
	put(m, 8 | 8 << 8, 3); /* sizes of offsets and lengths */
	put(m, leaf, 2);
	put(m, internal, 2);
	put(m, 0, 4); /* flags */
	put(m, chunk, 2);
	put(m, 0, 2);
	put(m, 0, 8);	     /* base */
	put(m, H5_UNDEF, 8); /* free space */
	put(m, 1u << 24, 8); /* end */
	put(m, H5_UNDEF, 8); /* driver information */
	put(m, 0, 8);	     /* root: its name, */
	put(m, 200, 8);	     /* header */
	put(m, 0, 24);	     /* and no cache */
	m->set = NULL;
}

static int found_k(struct image *m, int which, unsigned *k)
{
	if (which == 0)
		return h5_symbol_node_k(m->file, k);
	return h5_btree1_node_k(m->file, which == 1 ? H5_BTREE1_GROUP : H5_BTREE1_CHUNK, k);
}

/* The 2 K entries of a node are counted in 16 bits, and there are some. */
START_TEST(v1_limits_of_k)
{
	static const unsigned good[] = {1, 32767}, bad[] = {0, 32768, 65535};

	for (int which = 0; which < 3; which++)
		for (size_t i = 0; i < 2 * 3; i++) {
			unsigned ks[3] = {11, 12, 13}, k;
			struct image m;

			ks[which] = i % 2 ? good[i / 2 % 2] : bad[i / 2];
			put_superblock1(&m, ks[0], ks[1], ks[2]);
			image_open(&m);
			for (int other = 0; other < 3; other++) {
				bool is_bad = other == which && i % 2 == 0;

				ck_assert_int_eq(found_k(&m, other, &k), is_bad ? -EUCLEAN : 0);
				if (!is_bad)
					ck_assert_uint_eq(k, ks[other]);
			}
			image_release(&m);
		}
}
END_TEST

/* ---- version 2: records of 8 bytes in nodes of 64 ----
 *
 * A leaf holds (64 - 10) / 8 = 6 records: counts take a byte. A pointer from level 1 has 8 + 1 bytes, and
 * such a node holds (64 - 10 - 9) / (8 + 9) = 2 records; with those beneath it 3 * 6 + 2 = 20, which take a
 * byte; a pointer from level 2 has 8 + 1 + 1 bytes, and so on. */

enum { NODE = 64 };
#define TYPE H5_BTREE2_LINK_ORDER

static uint64_t put_header2(struct image *m, unsigned depth, uint64_t root, unsigned root_records,
			    uint64_t records)
{
	uint64_t at = m->bytes.size;

	h5_buf_text(&m->bytes, "BTHD");
	put(m, 0, 1);
	put(m, TYPE, 1);
	put(m, NODE, 4);
	put(m, 8, 2);
	put(m, depth, 2);
	put(m, 100, 1);
	put(m, 40, 1);
	put(m, root, 8);
	put(m, root_records, 2);
	put(m, records, 8);
	put_checksum(m, at);
	return at;
}

struct child {
	uint64_t address;
	unsigned records, total;
};

/* A node at a multiple of 64. `total_size`: bytes of a child's total, 0 on level 1; children NULL: a leaf. */
static struct child put_node2(struct image *m, const uint64_t *records, unsigned n,
			      const struct child *children, unsigned total_size)
{
	struct child node = {0, n, n};

	while (m->bytes.size % NODE)
		put(m, 0, 1);
	node.address = m->bytes.size;
	h5_buf_text(&m->bytes, children ? "BTIN" : "BTLF");
	put(m, 0, 1);
	put(m, TYPE, 1);
	for (unsigned i = 0; i < n; i++)
		put(m, records[i], 8);
	for (unsigned i = 0; children && i <= n; i++) {
		put(m, children[i].address, 8);
		put(m, children[i].records, 1);
		put(m, children[i].total, total_size);
		node.total += children[i].total;
	}
	put_checksum(m, (size_t)node.address);
	while (m->bytes.size % NODE)
		put(m, 0, 1);
	return node;
}

/* Records 0, 10, 20, ... 100 but for 40, 50, 60, which are all 50, in a tree of depth 2. */
static uint64_t put_tree2(struct image *m)
{
	const uint64_t r[] = {0, 10, 20, 30, 50, 50, 50, 70, 80, 90, 100};
	struct child leaves[4] = {put_node2(m, r, 2, NULL, 0), put_node2(m, r + 3, 2, NULL, 0),
				  put_node2(m, r + 6, 2, NULL, 0), put_node2(m, r + 9, 2, NULL, 0)};
	struct child inner[2] = {put_node2(m, r + 2, 1, leaves, 0), put_node2(m, r + 8, 1, leaves + 2, 0)};
	struct child root = put_node2(m, r + 5, 1, inner, 1);

	ck_assert_uint_eq(root.total, 11);
	return put_header2(m, 2, root.address, 1, 11);
}

static int compare(void *arg, struct h5_reader record, int *rc)
{
	const uint64_t *sought = arg;
	uint64_t value = h5_read_u64(&record);

	if (*sought == 12345)
		*rc = h5_fail(-EUCLEAN, H5_UNDEF, "asked for");
	return *sought < value ? -1 : *sought > value;
}

struct seen {
	uint64_t values[32];
	unsigned count;
	unsigned stop; /* after so many; 0: never */
};

static int visit(void *arg, struct h5_reader record)
{
	struct seen *seen = arg;

	ck_assert_uint_lt(seen->count, 32);
	ck_assert_uint_eq(h5_reader_left(&record), 8);
	seen->values[seen->count++] = h5_read_u64(&record);
	return seen->count == seen->stop ? 7 : 0;
}

START_TEST(v2_find_and_iterate)
{
	const uint64_t all[] = {0, 10, 20, 30, 50, 50, 50, 70, 80, 90, 100};
	struct seen seen = {0};
	struct h5_btree2 tree;
	uint8_t record[8];
	struct image m;
	uint64_t at;

	image_init(&m);
	at = put_tree2(&m);
	image_open(&m);
	ck_assert_int_eq(h5_btree2_open(m.file, at, TYPE, 8, &tree), 0);
	ck_assert_uint_eq(tree.records, 11);
	ck_assert_uint_eq(tree.record_size, 8);
	for (uint64_t sought = 0; sought <= 110; sought++) {
		bool there = sought % 10 == 0 && sought <= 100 && sought != 40 && sought != 60;

		ck_assert_int_eq(h5_btree2_find(&tree, compare, &sought, record), there ? 0 : -ENOENT);
		if (there)
			ck_assert_uint_eq(h5_uint_from(record, 8), sought);
	}
	ck_assert_int_eq(h5_btree2_iterate(&tree, visit, &seen), 0);
	ck_assert_uint_eq(seen.count, 11);
	ck_assert_mem_eq(seen.values, all, sizeof all);
	seen.count = 0;
	seen.stop = 4;
	ck_assert_int_eq(h5_btree2_iterate(&tree, visit, &seen), 7);
	ck_assert_uint_eq(seen.count, 4);
	at = 12345;
	ck_assert_int_eq(h5_btree2_find(&tree, compare, &at, record), -EUCLEAN);
	/* Another program has made another tree there since it was opened. */
	seen.stop = 0;
	for (unsigned i = 0; i < 2; i++) {
		struct h5_btree2 before = tree;

		before.type += i;
		before.record_size = i ? 8 : 7;
		ck_assert_int_eq(h5_btree2_iterate(&before, visit, &seen), -EUCLEAN);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "it has changed"));
		ck_assert_uint_eq(seen.count, 4);
		at = 50;
		ck_assert_int_eq(h5_btree2_find(&before, compare, &at, record), -EUCLEAN);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "it has changed"));
	}
	image_release(&m);
}
END_TEST

START_TEST(v2_empty_trees)
{
	const uint64_t sought = 5;
	struct seen seen = {0};
	struct h5_btree2 tree;
	uint8_t record[8];
	struct image m;
	uint64_t at;

	image_init(&m);
	at = put_header2(&m, 0, H5_UNDEF, 0, 0);
	image_open(&m);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(h5_btree2_open(m.file, i ? at : H5_UNDEF, TYPE, 8, &tree), 0);
		ck_assert_uint_eq(tree.records, 0);
		ck_assert_int_eq(h5_btree2_find(&tree, compare, (void *)&sought, record), -ENOENT);
		ck_assert_int_eq(h5_btree2_iterate(&tree, visit, &seen), 0);
		ck_assert_uint_eq(seen.count, 0);
	}
	image_release(&m);
}
END_TEST

/* A search tells the records around the leaf that it ends in, whatever was in its place before. */
START_TEST(v2_where_a_search_ends)
{
	static const struct {
		uint64_t sought, before, after; /* UINT64_MAX: there is none */
		size_t first;
	} cases[] = {{5, UINT64_MAX, 20, 1},
		     {25, 20, 50, 0},
		     {45, 20, 50, 1},
		     {75, 50, 80, 2},
		     {95, 80, UINT64_MAX, 1}};
	const struct child nowhere[2] = {{H5_UNDEF, 1, 1}, {H5_UNDEF, 1, 1}};
	const uint64_t one = 10;
	uint8_t before[8], after[8];
	struct h5_btree2_end end = {.before = before, .after = after, .walks = 0};
	struct h5_btree2 tree;
	struct image m;
	uint64_t at, lost, sought = 5;

	image_init(&m);
	at = put_tree2(&m);
	lost = put_node2(&m, &one, 1, nowhere, 0).address;
	lost = put_header2(&m, 1, lost, 1, 3);
	image_open(&m);
	ck_assert_int_eq(h5_btree2_open(m.file, at, TYPE, 8, &tree), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		sought = cases[i].sought;
		end.equal = end.has_before = end.has_after = true;
		ck_assert_int_eq(h5_btree2_seek(&tree, compare, &sought, &end), 0);
		ck_assert_uint_eq(end.first, cases[i].first);
		ck_assert(!end.equal && end.ref);
		ck_assert_int_eq(end.has_before, cases[i].before != UINT64_MAX);
		ck_assert_int_eq(end.has_after, cases[i].after != UINT64_MAX);
		ck_assert(!end.has_before || h5_uint_from(before, 8) == cases[i].before);
		ck_assert(!end.has_after || h5_uint_from(after, 8) == cases[i].after);
		h5_file_put(m.file, end.ref);
	}
	/* Nothing is held if a record cannot be compared, of a child that is nowhere, and of an empty tree.
	 */
	sought = 12345;
	ck_assert_int_eq(h5_btree2_seek(&tree, compare, &sought, &end), -EUCLEAN);
	ck_assert_ptr_null(end.ref);
	ck_assert_int_eq(h5_btree2_open(m.file, lost, TYPE, 8, &tree), 0);
	for (sought = 5; sought < 20; sought += 10) {
		ck_assert_int_eq(h5_btree2_seek(&tree, compare, &sought, &end), -EUCLEAN);
		ck_assert_str_eq(h5_error_last()->text, "version 2 B-tree: no child node");
		ck_assert_ptr_null(end.ref);
	}
	end.ref = (struct h5_lru_entry *)(uintptr_t)1;
	end.equal = end.has_before = end.has_after = true;
	ck_assert_int_eq(h5_btree2_open(m.file, H5_UNDEF, TYPE, 8, &tree), 0);
	ck_assert_int_eq(h5_btree2_seek(&tree, compare, &sought, &end), 0);
	ck_assert(!end.ref && !end.equal && !end.has_before && !end.has_after);
	image_release(&m);
}
END_TEST

static int count_one(void *arg, struct h5_reader record)
{
	(void)record;
	++*(unsigned *)arg;
	return 0;
}

/* Result of a walk over all records. */
static int walk2(struct image *m, uint64_t at)
{
	struct h5_btree2 tree;
	unsigned count = 0;
	int rc = h5_btree2_open(m->file, at, TYPE, 8, &tree);

	return rc ? rc : h5_btree2_iterate(&tree, count_one, &count);
}

/* Every byte of header and nodes is either checked or padding behind a checksum. */
START_TEST(v2_flipped_bits)
{
	struct image m;
	uint64_t at;

	image_init(&m);
	at = put_tree2(&m);
	for (size_t i = 64; i < m.bytes.size; i++) {
		size_t in_node = i % NODE, node = i / NODE;
		/* four leaves of 2 records, two inner nodes of 1 and 2 pointers, a root of 1 and 2 wider ones
		 */
		size_t used = i >= at ? NODE : node < 5 ? 26 : node < 7 ? 36 : 38;
		int expected = in_node < used ? -EUCLEAN : 0;
		int rc;

		m.bytes.data[i] ^= 0x10;
		image_open(&m);
		rc = walk2(&m, at);
		ck_assert_msg(rc == expected, "byte %zu: %d", i, rc);
		h5_file_set_close(m.set);
		m.bytes.data[i] ^= 0x10;
	}
	/* truncated */
	for (size_t n = 64; n < m.bytes.size; n++) {
		const struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};

		ck_assert_int_eq(h5_file_set_open_memory(m.bytes.data, n, &options, &m.set), 0);
		m.file = h5_file_set_root(m.set);
		ck_assert_int_eq(walk2(&m, at), -EUCLEAN);
		h5_file_set_close(m.set);
	}
	m.set = NULL;
	image_release(&m);
}
END_TEST

START_TEST(v2_bad_headers)
{
	struct h5_btree2 tree;
	struct image m;
	uint64_t at, deep, crowded, lost;

	image_init(&m);
	at = put_tree2(&m);
	deep = put_header2(&m, 64, 64, 1, 1);
	crowded = put_header2(&m, 0, 64, 7, 7); /* a leaf holds 6 */
	lost = put_header2(&m, 0, 1 << 20, 1, 1);
	image_open(&m);
	ck_assert_int_eq(h5_btree2_open(m.file, at, TYPE, 8, &tree), 0);
	ck_assert_int_eq(h5_btree2_open(m.file, at, TYPE, 9, &tree), -EUCLEAN);
	ck_assert_int_eq(h5_btree2_open(m.file, at, H5_BTREE2_LINK_NAME, 8, &tree), -EUCLEAN);
	ck_assert_int_eq(h5_btree2_open(m.file, at + 1, TYPE, 8, &tree), -EUCLEAN);
	ck_assert_int_eq(h5_btree2_open(m.file, deep, TYPE, 8, &tree), -EUCLEAN);
	ck_assert_int_eq(walk2(&m, crowded), -EUCLEAN);
	ck_assert_int_eq(walk2(&m, lost), -EUCLEAN);
	image_release(&m);
}
END_TEST

/* A node that is its own child, on levels whose nodes look alike: levels fall, so it is met as two things. */
START_TEST(v2_circles)
{
	const uint64_t sought = 5, one = 10;
	struct child self[2];
	struct h5_btree2 tree;
	uint8_t record[8];
	struct image m;
	uint64_t at;

	image_init(&m);
	while (m.bytes.size % NODE)
		put(&m, 0, 1);
	self[0] = self[1] = (struct child){m.bytes.size, 1, 20};
	put_node2(&m, &one, 1, self, 1);
	at = put_header2(&m, 3, self[0].address, 1, 100);
	image_open(&m);
	ck_assert_int_eq(walk2(&m, at), -EUCLEAN);
	ck_assert_int_eq(h5_btree2_open(m.file, at, TYPE, 8, &tree), 0);
	ck_assert_int_eq(h5_btree2_find(&tree, compare, (void *)&sought, record), -EUCLEAN);
	image_release(&m);
}
END_TEST

/* Twenty levels, each with three pointers to one child: 3^20 nodes to a walk that doesn't count. */
START_TEST(v2_shared_children)
{
	const uint64_t records[] = {10, 20};
	struct h5_btree2_header header;
	struct child child;
	struct h5_reader r;
	unsigned forgotten = 0;
	bool fired = true;
	struct image m;
	uint64_t at;

	image_init(&m);
	/* The widths of the totals on each level, from a header of that depth. */
	at = put_header2(&m, 20, 0, 2, 1000);
	r = h5_reader_init(m.bytes.data + at, H5_BTREE2_HEADER_MAX, at, 8, 8);
	ck_assert_int_eq(h5_btree2_header_decode(&r, &header), 0);
	ck_assert_uint_eq(header.count_size, 1);
	ck_assert_uint_eq(header.levels[0].max_records, 6);
	ck_assert_uint_eq(header.levels[0].total_size, 0);
	ck_assert_uint_eq(header.levels[1].max_records, 2);
	ck_assert_uint_eq(header.levels[1].pointer_size, 9);
	ck_assert_uint_eq(header.levels[1].total_size, 1);
	ck_assert_uint_eq(header.levels[2].pointer_size, 10);
	child = put_node2(&m, records, 2, NULL, 0);
	for (unsigned level = 1; level <= 20; level++) {
		unsigned n = header.levels[level].max_records > 1 ? 2 : 1;
		struct child children[] = {child, child, child};

		child = put_node2(&m, records, n, children, header.levels[level - 1].total_size);
	}
	at = put_header2(&m, 20, child.address, child.records, 1000);
	image_open(&m);
	ck_assert_int_eq(walk2(&m, at), -EUCLEAN);
	ck_assert(strstr(h5_error_last()->text, "a node belongs to two places"));
	/* Nodes that nobody can remember are not counted as new. */
	for (unsigned long n = 1; fired; n++) {
		int rc;

		h5_file_set_close(m.set);
		image_open(&m);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = walk2(&m, at);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_int_eq(rc, fired ? -ENOMEM : -EUCLEAN);
		forgotten += !strcmp(h5_error_last()->text, "version 2 B-tree: out of memory");
	}
	ck_assert_uint_gt(forgotten, 0);
	image_release(&m);
}
END_TEST

/* All records, or an error. */
START_TEST(v2_memory_is_short)
{
	const uint64_t sought = 50;
	bool fired = true;
	struct image m;
	uint64_t at;

	image_init(&m);
	at = put_tree2(&m);
	for (unsigned long n = 1; fired; n++) {
		struct seen seen = {0};
		struct h5_btree2 tree;
		uint8_t record[8];
		int rc, found;

		image_open(&m);
		ck_assert_int_eq(h5_btree2_open(m.file, at, TYPE, 8, &tree), 0);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_btree2_iterate(&tree, visit, &seen);
		found = h5_btree2_find(&tree, compare, (void *)&sought, record);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!found || (fired && found == -ENOMEM));
		ck_assert_msg(!rc || (fired && rc == -ENOMEM), "%lu: %d", n, rc);
		if (!rc)
			ck_assert_uint_eq(seen.count, 11);
		ck_assert_int_eq(h5_btree2_find(&tree, compare, (void *)&sought, record), 0);
		ck_assert_uint_eq(h5_uint_from(record, 8), 50);
		h5_file_set_close(m.set);
	}
	m.set = NULL;
	image_release(&m);
}
END_TEST

UNIT_MAIN("btree", v1_group_node, v1_chunk_node, v1_bad_nodes, v1_bad_begins, v1_limits_of_k,
	  v2_find_and_iterate, v2_empty_trees, v2_where_a_search_ends, v2_flipped_bits, v2_bad_headers,
	  v2_circles, v2_shared_children, v2_memory_is_short)
