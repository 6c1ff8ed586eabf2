/* Changes of fractal heaps whose header, free-space manager or huge objects make no sense, by IDs that make
 * none, and at the limits of heaps. */
#include "base/error.h"
#include "base/lookup3.h"
#include "change/transaction.h"
#include "object/fractal_heap.h"
#include "object/fractal_heap_private.h"
#include "object/fractal_heap_space.h"
#include "object/fractal_heap_write.h"
#include "scratch.h"

#include <string.h>

/* ---- one field or ID that no writer makes ---- */

enum { FRHP_SIZE = 146, FSHD_SIZE = 82, LEAF_SIZE = 34, BTHD_SIZE = 38, ID_SIZE = 8 };

/* What the heap has, beside an object of 100 bytes. */
enum objects { JUST_ONE, FIVE_BLOCKS, DEEP, HUGE_ONE, NONE };

enum which { HEADER, MANAGER, HUGE_LEAF, HUGE_TREE };

enum request { INSERT, REPLACE, REMOVE, FREE, GET };

struct bad_heap {
	const char *error; /* how its text begins */
	int rc;
	enum objects objects;
	struct {
		enum which which;
		unsigned at, width;
		uint64_t value;
	} fields[2];
	enum request request;
	unsigned size;	 /* of the object that is written */
	unsigned longer; /* bytes that the ID is longer than IDs of the heap */
	uint8_t id[ID_SIZE + 1];
};

#define FIELD(...) .fields = {__VA_ARGS__}
#define MANAGED(offset, size)                                                                                \
	.id = {0,                                                                                            \
	       (offset)&0xff,                                                                                \
	       (offset) >> 8 & 0xff,                                                                         \
	       (offset) >> 16 & 0xff,                                                                        \
	       (offset) >> 24 & 0xff,                                                                        \
	       (uint8_t)((uint64_t)(offset) >> 32),                                                          \
	       size,                                                                                         \
	       0}
#define HUGE(key) .id = {0x10, key}
#define KEYS	  ((UINT64_C(1) << 56) - 1)

/* The only block of 512 bytes has its objects behind a prefix of 18 bytes. */
static const struct bad_heap bad_heaps[] = {
	{"fractal heap: direct blocks of 16 bytes", -EUCLEAN, NONE, FIELD({HEADER, 112, 8, 16}), INSERT, 90},
	{"fractal heap: direct blocks of 16 bytes", -EUCLEAN, NONE,
	 FIELD({HEADER, 112, 8, 16}, {HEADER, 128, 2, 24}), INSERT, 90},
	{"fractal heap: IDs of 8 bytes instead of 9", -EUCLEAN, JUST_ONE, .request = INSERT, 90, 1},
	{"fractal heap: IDs of 9 bytes instead of 8", -EUCLEAN, JUST_ONE, FIELD({HEADER, 5, 2, 9}), REMOVE,
	 MANAGED(18, 100)},
	{"fractal heap: IDs of 9 bytes instead of 8", -EUCLEAN, JUST_ONE, FIELD({HEADER, 5, 2, 9}), REPLACE,
	 100, MANAGED(18, 100)},
	/* places of managed objects */
	{"fractal heap: offset 549755813888 beyond", -EUCLEAN, JUST_ONE,
	 FIELD({HEADER, 128, 2, 39}, {MANAGER, 44, 2, 39}), REMOVE, MANAGED(UINT64_C(1) << 39, 10)},
	{"fractal heap: offset 549755813888 beyond", -EUCLEAN, JUST_ONE, FIELD({HEADER, 128, 2, 39}), GET,
	 MANAGED(UINT64_C(1) << 39, 10)},
	{"fractal heap: no block at offset 1073741824", -EUCLEAN, FIVE_BLOCKS, .request = REMOVE,
	 MANAGED(1 << 30, 10)},
	{"fractal heap: no block at offset 1073741824", -EUCLEAN, FIVE_BLOCKS, .request = REPLACE, 10,
	 MANAGED(1 << 30, 10)},
	{"fractal heap: no block at offset 655460", -EUCLEAN, DEEP, .request = REMOVE, MANAGED(655460, 10)},
	{"fractal heap: no 10 bytes at offset 17", -EUCLEAN, JUST_ONE, .request = REMOVE, MANAGED(17, 10)},
	{"fractal heap: no 10 bytes at offset 503", -EUCLEAN, JUST_ONE, .request = REMOVE, MANAGED(503, 10)},
	{"fractal heap: no 10 bytes at offset 513", -EUCLEAN, JUST_ONE, .request = REPLACE, 10,
	 MANAGED(513, 10)},
	{"", 0, JUST_ONE, .request = REMOVE, MANAGED(502, 10)},
	{"fractal heap: no 10 bytes at offset 3600", -EUCLEAN, FIVE_BLOCKS, .request = REMOVE,
	 MANAGED(3600, 10)},
	/* new blocks */
	{"fractal heap: managed objects of 65519 bytes", -EUCLEAN, JUST_ONE, FIELD({HEADER, 10, 4, 70000}),
	 INSERT, 65519},
	{"", 0, JUST_ONE, FIELD({HEADER, 10, 4, 70000}), INSERT, 65518},
	{"fractal heap: the iterator is at offset 512,", -EUCLEAN, FIVE_BLOCKS, FIELD({HEADER, 62, 8, 512}),
	 INSERT, 490},
	/* free space */
	{"fractal heap: 89 bytes are free", -EUCLEAN, JUST_ONE, FIELD({HEADER, 30, 8, 89}), INSERT, 90},
	{"", 0, JUST_ONE, FIELD({HEADER, 30, 8, 90}), INSERT, 90},
	{"fractal heap: more free space", -EUCLEAN, JUST_ONE, FIELD({HEADER, 30, 8, UINT64_MAX - 99}), REMOVE,
	 MANAGED(18, 100)},
	{"", 0, JUST_ONE, FIELD({HEADER, 30, 8, UINT64_MAX - 100}), REMOVE, MANAGED(18, 100)},
	{"free-space manager: it belongs", -EUCLEAN, JUST_ONE, FIELD({MANAGER, 5, 1, 1}), INSERT, 90},
	{"free-space manager: it belongs", -EUCLEAN, JUST_ONE, FIELD({MANAGER, 44, 2, 39}), INSERT, 90},
	{"free-space manager: it belongs", -EUCLEAN, JUST_ONE, FIELD({MANAGER, 46, 8, 512}), REMOVE,
	 MANAGED(18, 100)},
	{"free-space manager: a section list of 1 bytes", -EUCLEAN, JUST_ONE, FIELD({MANAGER, 70, 8, 1}),
	 INSERT, 90},
	{"free-space manager: a section list of", -EUCLEAN, JUST_ONE,
	 FIELD({MANAGER, 54, 8, UINT64_C(1) << 40}), FREE},
	{"free-space manager: a section list of", -EUCLEAN, JUST_ONE, FIELD({MANAGER, 54, 8, UINT64_MAX - 1}),
	 FREE},
	{"", 0, JUST_ONE, FIELD({MANAGER, 54, 8, UINT64_MAX}), INSERT, 90},
	{"", 0, JUST_ONE, FIELD({MANAGER, 54, 8, UINT64_MAX}), FREE},
	/* huge objects */
	{"fractal heap: records of 25 bytes", -EUCLEAN, HUGE_ONE, FIELD({HUGE_TREE, 10, 2, 25}), REMOVE,
	 HUGE(1)},
	{"fractal heap: records of 25 bytes", -EUCLEAN, HUGE_ONE, FIELD({HUGE_TREE, 10, 2, 25}), FREE},
	{"fractal heap: records of 25 bytes", -EUCLEAN, HUGE_ONE, FIELD({HUGE_TREE, 10, 2, 25}), GET,
	 HUGE(1)},
	{"fractal heap: no such huge object", -EUCLEAN, HUGE_ONE, .request = REMOVE, HUGE(2)},
	{"fractal heap: no such huge object", -EUCLEAN, HUGE_ONE, .request = REPLACE, 6000, HUGE(0)},
	{"fractal heap: a huge object of 0 bytes", -EUCLEAN, HUGE_ONE, FIELD({HUGE_LEAF, 14, 8, 0}), REMOVE,
	 HUGE(1)},
	{"fractal heap: a huge object of 0 bytes", -EUCLEAN, HUGE_ONE, FIELD({HUGE_LEAF, 14, 8, 0}), FREE},
	{"fractal heap: a huge object of 5000 bytes", -EUCLEAN, HUGE_ONE,
	 FIELD({HUGE_LEAF, 6, 8, UINT64_C(1) << 40}), REPLACE, 6000, HUGE(1)},
	{"fractal heap: a huge object of 5000 bytes", -EUCLEAN, HUGE_ONE,
	 FIELD({HUGE_LEAF, 6, 8, UINT64_MAX - 4999}), REMOVE, HUGE(1)},
	{"fractal heap: a huge object of 5000 bytes", -EUCLEAN, HUGE_ONE,
	 FIELD({HUGE_LEAF, 6, 8, UINT64_MAX - 4999}), FREE},
	{"fractal heap: a huge object of 5000 bytes", -EUCLEAN, HUGE_ONE,
	 FIELD({HUGE_LEAF, 6, 8, UINT64_C(1) << 40}), FREE},
	{"fractal heap: an object of", -ENOTSUP, HUGE_ONE, FIELD({HUGE_LEAF, 14, 8, UINT64_C(1) << 40}), GET,
	 HUGE(1)},
	{"fractal heap: it has no more keys", -ENOTSUP, HUGE_ONE, FIELD({HEADER, 14, 8, KEYS}), INSERT, 5000},
	{"fractal heap: it has no more keys", -ENOTSUP, HUGE_ONE, FIELD({HEADER, 9, 1, 1}), INSERT, 5000},
	{"", 0, HUGE_ONE, FIELD({HEADER, 14, 8, KEYS - 1}), INSERT, 5000},
};

enum { BAD_HEAPS = sizeof bad_heaps / sizeof *bad_heaps };

/* A heap of one's own in a file. */
struct heap {
	struct scratch scratch;
	struct h5_file *file;
	uint64_t address;
};

static void heap_begin(struct heap *h, uint16_t id_size, uint16_t bits)
{
	const struct h5_fractal_heap_parameters parameters = {id_size, bits};

	scratch_init(&h->scratch, "dataset_latest.h5");
	scratch_open(&h->scratch);
	h->file = h->scratch.file;
	SUCCEEDS(h5_fractal_heap_create(h->file, &parameters, &h->address));
}

static void heap_end(struct heap *h)
{
	scratch_close(&h->scratch);
	scratch_release(&h->scratch);
}

/* Bytes of an object. */
static const uint8_t *object_of(unsigned size)
{
	static uint8_t data[1 << 17];

	memset(data, (int)(size * 7 % 251), size);
	return data;
}

static int heap_insert(struct heap *h, unsigned size, uint8_t *id, size_t id_size)
{
	return h5_fractal_heap_insert(h->file, h->address, object_of(size), size, id, id_size);
}

/* The object of the ID has the bytes that were inserted. */
static void heap_expect(struct heap *h, const uint8_t *id, size_t id_size, unsigned size)
{
	struct h5_heap_object object;

	SUCCEEDS(h5_fractal_heap_get(h->file, h->address, id, id_size, &object));
	ck_assert_uint_eq(object.size, size);
	ck_assert_mem_eq(object.data, object_of(size), size);
	h5_heap_object_release(&object);
}

static void heap_fill(struct heap *h, enum objects objects)
{
	static const struct {
		unsigned count, size;
	} more[] = {{0, 0}, {4, 480}, {150, 4000}, {1, 5000}};
	uint8_t id[ID_SIZE];

	if (objects == NONE)
		return;
	SUCCEEDS(heap_insert(h, 100, id, sizeof id));
	for (unsigned i = 0; i < more[objects].count; i++)
		SUCCEEDS(heap_insert(h, more[objects].size, id, sizeof id));
	SUCCEEDS(h5_tx_commit(h->file));
}

static uint64_t heap_number(struct heap *h, uint64_t at)
{
	uint8_t bytes[8];

	SUCCEEDS(h5_file_read(h->file, at, bytes, sizeof bytes));
	return h5_uint_from(bytes, sizeof bytes);
}

static uint64_t heap_huge_leaf(struct heap *h)
{
	return heap_number(h, heap_number(h, h->address + 22) + 16);
}

/* Changes a field in a block of the heap, whose last bytes are the checksum. */
static void heap_patch(struct heap *h, enum which which, unsigned field, unsigned width, uint64_t value)
{
	static const size_t sizes[] = {FRHP_SIZE, FSHD_SIZE, LEAF_SIZE, BTHD_SIZE};
	uint64_t at = which == HEADER	   ? h->address
		      : which == MANAGER   ? heap_number(h, h->address + 38)
		      : which == HUGE_TREE ? heap_number(h, h->address + 22)
					   : heap_huge_leaf(h);
	size_t n = sizes[which];
	uint8_t bytes[FRHP_SIZE];

	SUCCEEDS(h5_file_read(h->file, at, bytes, n));
	h5_uint_to(bytes + field, value, width);
	h5_uint_to(bytes + n - 4, h5_lookup3(bytes, n - 4, 0), 4);
	SUCCEEDS(h5_tx_patch(h->file, at, bytes, n, H5_STAGE_HEAP));
	h5_tx_forget(h->file, at);
}

/* All bytes of the file, pending changes included; free(). */
static uint8_t *heap_view(struct heap *h, size_t n)
{
	uint8_t *bytes = malloc(n);

	ck_assert_ptr_nonnull(bytes);
	SUCCEEDS(h5_file_read(h->file, 0, bytes, n));
	return bytes;
}

static int heap_request(struct heap *h, const struct bad_heap *bad)
{
	size_t id_size = ID_SIZE + bad->longer;
	struct h5_heap_object object;
	uint8_t id[ID_SIZE + 1];
	bool replaced;
	int rc;

	memcpy(id, bad->id, sizeof id);
	switch (bad->request) {
	case INSERT:
		return heap_insert(h, bad->size, id, id_size);
	case REPLACE:
		return h5_fractal_heap_replace(h->file, h->address, id, id_size, object_of(bad->size),
					       bad->size, &replaced);
	case REMOVE:
		return h5_fractal_heap_remove(h->file, h->address, id, id_size);
	case FREE:
		return h5_fractal_heap_free(h->file, h->address);
	default:
		rc = h5_fractal_heap_get(h->file, h->address, id, id_size, &object);
		ck_assert_ptr_null(object.data);
		return rc;
	}
}

/* Of a block that has no rows, as long as all fits into a first block. */
START_TEST(the_root_of_a_small_heap)
{
	enum { ROWS = 140, FIRST = 512 - 18 };
	static const unsigned sizes[] = {1, 100, FIRST, FIRST + 1, 2000};
	uint8_t id[ID_SIZE], rows[2];
	struct heap h;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		heap_begin(&h, ID_SIZE, 40);
		SUCCEEDS(heap_insert(&h, sizes[i], id, sizeof id));
		SUCCEEDS(h5_tx_commit(h.file));
		SUCCEEDS(h5_file_read(h.file, h.address + ROWS, rows, sizeof rows));
		ck_assert_int_eq(rows[0] || rows[1], sizes[i] > FIRST);
		heap_expect(&h, id, sizeof id, sizes[i]);
		heap_end(&h);
	}
}
END_TEST

/* Each is refused for its reason, and the file stays as it is; at the edge it is not. */
START_TEST(a_bad_field_or_id)
{
	const struct bad_heap *bad = &bad_heaps[_i];
	uint8_t *before, *after;
	struct heap h;
	size_t n;

	heap_begin(&h, ID_SIZE, 40);
	heap_fill(&h, bad->objects);
	for (unsigned i = 0; i < 2 && bad->fields[i].width; i++)
		heap_patch(&h, bad->fields[i].which, bad->fields[i].at, bad->fields[i].width,
			   bad->fields[i].value);
	n = (size_t)h5_file_end(h.file);
	before = heap_view(&h, n);
	h5_error_clear();
	ck_assert_int_eq(heap_request(&h, bad), bad->rc);
	ck_assert_msg(!strncmp(h5_error_last()->text, bad->error, strlen(bad->error)), "row %d: %s", _i,
		      h5_error_last()->text);
	after = heap_view(&h, n);
	ck_assert(!bad->rc || !memcmp(after, before, n));
	free(before);
	free(after);
	heap_end(&h);
}
END_TEST

/* The blocks of an address space of 64 KiB have room for so many objects of 400 bytes. */
START_TEST(a_full_heap)
{
	enum { OBJECTS = 8 * 1 + 4 * 2 + 4 * 5 + 4 * 10 + 4 * 20 };
	uint8_t ids[OBJECTS + 1][ID_SIZE];
	struct heap h;

	heap_begin(&h, ID_SIZE, 16);
	for (unsigned i = 0; i < OBJECTS; i++)
		SUCCEEDS(heap_insert(&h, 400, ids[i], ID_SIZE));
	ck_assert_int_eq(heap_insert(&h, 400, ids[OBJECTS], ID_SIZE), -ENOSPC);
	for (unsigned i = 0; i < OBJECTS; i++)
		heap_expect(&h, ids[i], ID_SIZE, 400);
	ck_assert_uint_eq(heap_number(&h, h.address + 70), OBJECTS);
	SUCCEEDS(h5_fractal_heap_remove(h.file, h.address, ids[7], ID_SIZE));
	SUCCEEDS(h5_tx_commit(h.file));
	SUCCEEDS(heap_insert(&h, 400, ids[7], ID_SIZE));
	heap_expect(&h, ids[7], ID_SIZE, 400);
	heap_end(&h);
}
END_TEST

/* Rows of direct blocks that are so wide that no indirect block fits behind them. */
START_TEST(a_table_without_indirect_blocks)
{
	static const uint8_t behind[ID_SIZE] = {0, 0, 0, 0x10, 0, 0, 10, 0};
	struct h5_heap_object object;
	uint8_t id[ID_SIZE];
	struct heap h;

	heap_begin(&h, ID_SIZE, 40);
	heap_patch(&h, HEADER, 110, 2, 1024);
	heap_patch(&h, HEADER, 120, 8, 512);
	heap_patch(&h, HEADER, 130, 2, 4);
	for (unsigned size = 470; size < 474; size++) {
		SUCCEEDS(heap_insert(&h, size, id, sizeof id));
		heap_expect(&h, id, sizeof id, size);
	}
	ck_assert_int_eq(h5_fractal_heap_get(h.file, h.address, behind, sizeof behind, &object), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "fractal heap: nonsense doubling table");
	ck_assert_int_eq(h5_fractal_heap_remove(h.file, h.address, behind, sizeof behind), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "fractal heap: nonsense doubling table");
	heap_end(&h);
}
END_TEST

/* IDs have room for the addresses of huge objects, which are the keys of their records. */
START_TEST(huge_objects_in_ids)
{
	enum { OBJECTS = 9, LONG_ID = 17 };
	uint8_t ids[OBJECTS][LONG_ID];
	uint64_t leaf, last = 0;
	bool replaced = true;
	struct heap h;

	heap_begin(&h, LONG_ID, 40);
	/* This object's block has free space. The heap notes removed huge objects only if it has some. */
	SUCCEEDS(heap_insert(&h, 100, ids[0], LONG_ID));
	for (unsigned i = 0; i < OBJECTS; i++) {
		SUCCEEDS(heap_insert(&h, 5000 + i, ids[i], LONG_ID));
		ck_assert_uint_eq(h5_uint_from(ids[i] + 9, 8), 5000 + i);
	}
	SUCCEEDS(h5_fractal_heap_replace(h.file, h.address, ids[0], LONG_ID, object_of(5000), 5000,
					 &replaced));
	ck_assert(!replaced);
	SUCCEEDS(h5_fractal_heap_remove(h.file, h.address, ids[4], LONG_ID));
	SUCCEEDS(h5_fractal_heap_remove(h.file, h.address, ids[8], LONG_ID));
	SUCCEEDS(h5_tx_commit(h.file));
	/* The next change takes the records of removed objects out. */
	SUCCEEDS(heap_insert(&h, 5004, ids[4], LONG_ID));
	ck_assert_uint_eq(heap_number(&h, h.address + 86), OBJECTS - 1);
	leaf = heap_huge_leaf(&h);
	for (unsigned i = 0; i < OBJECTS - 1; i++) {
		uint64_t address = heap_number(&h, leaf + 6 + 16 * i);

		heap_expect(&h, ids[i], LONG_ID, 5000 + i);
		ck_assert_uint_gt(address, last);
		last = address;
	}
	ck_assert_int_eq(h5_fractal_heap_remove(h.file, h.address, ids[8], LONG_ID), -EUCLEAN);
	heap_end(&h);
}
END_TEST

/* A heap with filters, of which nothing is written: its header is longer. */
START_TEST(a_heap_with_filters)
{
	static const uint8_t deflate[] = {2, 1, 1, 0, 0, 0, 1, 0, 6, 0, 0, 0};
	enum { ALL = FRHP_SIZE + 12 + sizeof deflate };
	uint8_t bytes[ALL] = {0}, id[ID_SIZE] = {0};
	struct heap h;

	heap_begin(&h, ID_SIZE, 40);
	SUCCEEDS(h5_file_read(h.file, h.address, bytes, FRHP_SIZE - 4));
	h5_uint_to(bytes + 7, sizeof deflate, 2);
	memcpy(bytes + ALL - 4 - sizeof deflate, deflate, sizeof deflate);
	h5_uint_to(bytes + ALL - 4, h5_lookup3(bytes, ALL - 4, 0), 4);
	h.address = H5_UNDEF;
	SUCCEEDS(h5_tx_store(h.file, &h.address, bytes, ALL, H5_STAGE_HEAP));
	ck_assert_int_eq(heap_insert(&h, 100, id, sizeof id), -ENOTSUP);
	ck_assert_str_eq(h5_error_last()->text, "fractal heap: changing one with filters is not supported");
	ck_assert_int_eq(h5_fractal_heap_remove(h.file, h.address, id, sizeof id), -ENOTSUP);
	SUCCEEDS(h5_fractal_heap_free(h.file, h.address));
	heap_end(&h);
}
END_TEST

/* Changes the address in an entry of the root, an indirect block. */
static void heap_patch_root(struct heap *h, unsigned rows, unsigned entry, uint64_t value)
{
	enum { HEAD = 5 + 8 + 5 };
	uint64_t at = heap_number(h, h->address + 132);
	size_t n = HEAD + (size_t)rows * 4 * 8 + 4;
	uint8_t bytes[1024];

	ck_assert_uint_le(n, sizeof bytes);
	SUCCEEDS(h5_file_read(h->file, at, bytes, n));
	ck_assert_mem_eq(bytes, "FHIB", 4);
	h5_uint_to(bytes + HEAD + 8 * entry, value, 8);
	h5_uint_to(bytes + n - 4, h5_lookup3(bytes, n - 4, 0), 4);
	SUCCEEDS(h5_tx_patch(h->file, at, bytes, n, H5_STAGE_HEAP));
	h5_tx_forget(h->file, at);
}

static int count_extent(void *arg, uint64_t address, uint64_t n)
{
	uint64_t *count = arg;

	(void)address;
	(void)n;
	++*count;
	return 0;
}

/* The root leads twice to one block: the second time it is not taken for the block that belongs there,
 * whether it is cached or not; and its bytes are not given up twice. */
START_TEST(a_block_in_two_places)
{
	static const uint8_t first[ID_SIZE] = {0, 18, 0, 0, 0, 0, 100},
			     second[ID_SIZE] = {0, 18, 2, 0, 0, 0, 100};
	uint64_t block, extents = 0;
	struct h5_damage damage = {0};
	struct h5_heap_object object;
	struct heap h;

	heap_begin(&h, ID_SIZE, 40);
	heap_fill(&h, FIVE_BLOCKS);
	ck_assert_uint_eq(heap_number(&h, h.address + 140) & 0xffff, 2);
	SUCCEEDS(h5_fractal_heap_get(h.file, h.address, second, ID_SIZE, &object));
	h5_heap_object_release(&object);
	block = heap_number(&h, heap_number(&h, h.address + 132) + 18);
	heap_patch_root(&h, 2, 1, block);
	SUCCEEDS(h5_fractal_heap_get(h.file, h.address, first, ID_SIZE, &object));
	ck_assert_mem_eq(object.data, object_of(100), 100);
	h5_heap_object_release(&object);
	ck_assert_int_eq(h5_fractal_heap_get(h.file, h.address, second, ID_SIZE, &object), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "fractal heap: one direct block in two places");
	ck_assert_ptr_null(object.data);
	SUCCEEDS(h5_fractal_heap_check(h.file, h.address, &damage));
	ck_assert_int_eq(damage.first.code, -EUCLEAN);
	ck_assert_int_eq(h5_fractal_heap_extents(h.file, h.address, count_extent, &extents), -EUCLEAN);
	ck_assert_int_eq(h5_fractal_heap_free(h.file, h.address), -EUCLEAN);
	h5_tx_forget(h.file, block);
	ck_assert_int_eq(h5_fractal_heap_get(h.file, h.address, second, ID_SIZE, &object), -EUCLEAN);
	heap_end(&h);
}
END_TEST

/* The same with an indirect block. */
START_TEST(an_indirect_block_in_two_places)
{
	enum { ROWS = 16, CHILD = 9 * 4 };
	struct h5_damage damage = {0};
	uint64_t extents = 0, root, child;
	struct heap h;

	heap_begin(&h, ID_SIZE, 40);
	heap_fill(&h, DEEP);
	ck_assert_uint_eq(heap_number(&h, h.address + 140) & 0xffff, ROWS);
	root = heap_number(&h, h.address + 132);
	child = heap_number(&h, root + 18 + 8 * CHILD);
	ck_assert_uint_ne(child, UINT64_MAX);
	SUCCEEDS(h5_fractal_heap_check(h.file, h.address, &damage));
	ck_assert_int_eq(damage.first.code, 0);
	heap_patch_root(&h, ROWS, CHILD + 1, child);
	SUCCEEDS(h5_fractal_heap_check(h.file, h.address, &damage));
	ck_assert_int_eq(damage.first.code, -EUCLEAN);
	ck_assert_str_eq(damage.first.text, "fractal heap: one indirect block in two places");
	ck_assert_int_eq(h5_fractal_heap_extents(h.file, h.address, count_extent, &extents), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "fractal heap: one indirect block in two places");
	heap_end(&h);
}
END_TEST

/* It has a header alone, and nothing of it is damaged. */
START_TEST(a_heap_of_nothing)
{
	static const uint8_t id[ID_SIZE] = {0, 18, 0, 0, 0, 0, 10};
	struct h5_damage damage = {0};
	struct h5_heap_object object;
	uint64_t extents = 0;
	struct heap h;

	heap_begin(&h, ID_SIZE, 40);
	SUCCEEDS(h5_fractal_heap_check(h.file, h.address, &damage));
	ck_assert_int_eq(damage.first.code, 0);
	SUCCEEDS(h5_fractal_heap_extents(h.file, h.address, count_extent, &extents));
	ck_assert_uint_eq(extents, 1);
	ck_assert_int_eq(h5_fractal_heap_get(h.file, h.address, id, ID_SIZE, &object), -EUCLEAN);
	ck_assert_int_eq(h5_fractal_heap_remove(h.file, h.address, id, ID_SIZE), -EUCLEAN);
	SUCCEEDS(h5_fractal_heap_free(h.file, h.address));
	heap_end(&h);
}
END_TEST

/* Huge objects that end where the file does, and one byte further. */
START_TEST(a_huge_object_at_the_end)
{
	static const uint8_t id[ID_SIZE] = {0x10, 1};
	struct heap h;
	uint64_t at, extents = 0;

	for (unsigned beyond = 0; beyond < 2; beyond++) {
		heap_begin(&h, ID_SIZE, 40);
		heap_fill(&h, HUGE_ONE);
		at = heap_number(&h, heap_huge_leaf(&h) + 6);
		heap_patch(&h, HUGE_LEAF, 14, 8, h5_file_end(h.file) - at + beyond);
		ck_assert_int_eq(h5_fractal_heap_extents(h.file, h.address, count_extent, &extents),
				 beyond ? -EUCLEAN : 0);
		ck_assert_int_eq(h5_fractal_heap_remove(h.file, h.address, id, ID_SIZE),
				 beyond ? -EUCLEAN : 0);
		heap_end(&h);
	}
}
END_TEST

/* An address space that has as many bytes as can be counted, or half of them; keys of eight bytes. */
START_TEST(the_largest_heaps)
{
	enum { OBJECTS = 40, LONG_ID = 12 };
	static const uint64_t last = UINT64_MAX;
	uint8_t ids[OBJECTS][LONG_ID], id[LONG_ID];
	struct h5_damage damage = {0};
	struct h5_heap_object object;
	struct heap h;

	heap_begin(&h, LONG_ID, (uint16_t)(63 + _i));
	for (unsigned i = 0; i < OBJECTS; i++)
		SUCCEEDS(heap_insert(&h, 100 * (i + 1), ids[i], LONG_ID));
	SUCCEEDS(h5_tx_commit(h.file));
	SUCCEEDS(h5_fractal_heap_check(h.file, h.address, &damage));
	ck_assert_int_eq(damage.first.code, 0);
	memset(id, 0xff, sizeof id);
	id[0] = 0;
	ck_assert_int_eq(h5_fractal_heap_get(h.file, h.address, id, LONG_ID, &object), -EUCLEAN);
	ck_assert_int_eq(!!strstr(h5_error_last()->text, "beyond the heap"), !_i);
	ck_assert_int_eq(h5_fractal_heap_remove(h.file, h.address, id, LONG_ID), -EUCLEAN);
	ck_assert_int_eq(!!strstr(h5_error_last()->text, "beyond the heap"), !_i);
	SUCCEEDS(heap_insert(&h, 5000, id, LONG_ID));
	ck_assert_uint_eq(id[1], 1);
	heap_patch(&h, HEADER, 14, 8, last - 1);
	SUCCEEDS(heap_insert(&h, 5001, id, LONG_ID));
	ck_assert_mem_eq(id + 1, &last, sizeof last);
	heap_expect(&h, id, LONG_ID, 5001);
	ck_assert_int_eq(heap_insert(&h, 5002, id, LONG_ID), -ENOTSUP);
	for (unsigned i = 0; i < OBJECTS; i++) {
		heap_expect(&h, ids[i], LONG_ID, 100 * (i + 1));
		SUCCEEDS(h5_fractal_heap_remove(h.file, h.address, ids[i], LONG_ID));
	}
	heap_end(&h);
}
END_TEST

/* Their root has all of its rows at once. */
START_TEST(the_largest_root)
{
	enum { LONG_ID = 12, START_ROWS = 130, MANAGED = 46 };
	uint8_t id[LONG_ID], other[LONG_ID];
	struct h5_damage damage = {0};
	struct heap h;

	heap_begin(&h, LONG_ID, (uint16_t)(63 + _i));
	heap_patch(&h, HEADER, START_ROWS, 2, 100);
	SUCCEEDS(heap_insert(&h, 2000, id, LONG_ID));
	ck_assert_uint_eq(heap_number(&h, h.address + MANAGED), _i ? UINT64_MAX : UINT64_C(1) << 63);
	SUCCEEDS(heap_insert(&h, 4000, other, LONG_ID));
	SUCCEEDS(h5_fractal_heap_check(h.file, h.address, &damage));
	ck_assert_int_eq(damage.first.code, 0);
	heap_expect(&h, id, LONG_ID, 2000);
	heap_expect(&h, other, LONG_ID, 4000);
	heap_end(&h);
}
END_TEST

/* ---- what is free, and what is counted ---- */

static void expect_sections(const struct h5_heap_space *space, const struct h5_free_section *wanted,
			    unsigned count)
{
	ck_assert_uint_eq(space->count, count);
	for (unsigned i = 0; i < count; i++) {
		ck_assert_uint_eq(space->sections[i].offset, wanted[i].offset);
		ck_assert_uint_eq(space->sections[i].size, wanted[i].size);
	}
}

/* Pieces that meet become one, and the smallest that is large enough is taken. */
START_TEST(sections_are_joined_and_taken)
{
	static const struct h5_free_section apart[] = {{100, 50}, {200, 30}, {300, 40}};
	static struct h5_heap_space space;
	uint64_t offset;

	memset(&space, 0, sizeof space);
	h5_heap_space_add(&space, 5, 0);
	ck_assert(!space.sections_changed && !space.count);
	ck_assert(!h5_heap_space_take(&space, 1, &offset) && !space.sections_changed);
	for (unsigned i = 0; i < 3; i++)
		h5_heap_space_add(&space, apart[i].offset, apart[i].size);
	ck_assert(space.sections_changed);
	expect_sections(&space, apart, 3);
	ck_assert(!h5_heap_space_take(&space, 51, &offset));
	ck_assert(h5_heap_space_take(&space, 30, &offset));
	ck_assert_uint_eq(offset, 200);
	expect_sections(&space, (struct h5_free_section[]){{100, 50}, {300, 40}}, 2);
	ck_assert(h5_heap_space_take(&space, 25, &offset));
	ck_assert_uint_eq(offset, 300);
	ck_assert(h5_heap_space_take(&space, 16, &offset));
	ck_assert_uint_eq(offset, 100);
	expect_sections(&space, (struct h5_free_section[]){{116, 34}, {325, 15}}, 2);
	/* before one, behind one, and between two */
	h5_heap_space_add(&space, 310, 15);
	h5_heap_space_add(&space, 150, 10);
	expect_sections(&space, (struct h5_free_section[]){{310, 30}, {116, 44}}, 2);
	h5_heap_space_add(&space, 160, 150);
	expect_sections(&space, (struct h5_free_section[]){{116, 224}}, 1);
}
END_TEST

/* Of many pieces the largest stay; of equal ones, the last. */
START_TEST(the_largest_sections_stay)
{
	static struct h5_free_section wanted[H5_HEAP_SECTIONS];
	static struct h5_heap_space space;

	memset(&space, 0, sizeof space);
	for (unsigned i = 0; i < H5_HEAP_SECTIONS; i++) {
		wanted[i] = (struct h5_free_section){1000 * i, 20 + (i + 5) % H5_HEAP_SECTIONS};
		h5_heap_space_add(&space, wanted[i].offset, wanted[i].size);
	}
	expect_sections(&space, wanted, H5_HEAP_SECTIONS);
	h5_heap_space_add(&space, 300000, 20);
	expect_sections(&space, wanted, H5_HEAP_SECTIONS);
	/* instead of the one of 20 bytes, and of the first one of 21 */
	wanted[H5_HEAP_SECTIONS - 5] = (struct h5_free_section){300000, 21};
	h5_heap_space_add(&space, 300000, 21);
	expect_sections(&space, wanted, H5_HEAP_SECTIONS);
	wanted[H5_HEAP_SECTIONS - 5] = (struct h5_free_section){400000, 30};
	h5_heap_space_add(&space, 400000, 30);
	expect_sections(&space, wanted, H5_HEAP_SECTIONS);
}
END_TEST

/* The note has room for so many removed objects; managed ones that follow each other count as one. */
START_TEST(the_largest_removed_objects_are_noted)
{
	static struct h5_removed_object wanted[H5_HEAP_REMOVED];
	static struct h5_heap_space space;
	static const struct h5_removed_object last = {false, 50000, 30}, small = {false, 60000, 10},
					      joined = {false, 1000 * 5 + 15, 7},
					      huge_behind = {true, 1000 * 6 + 16, 10},
					      behind_huge = {false, 1000 * 7 + 17, 10};

	memset(&space, 0, sizeof space);
	for (unsigned i = 0; i < H5_HEAP_REMOVED; i++) {
		wanted[i] = (struct h5_removed_object){i == 7, 1000 * i, 10 + i};
		h5_heap_space_note_removed(&space, &wanted[i]);
	}
	wanted[5].size += joined.size;
	h5_heap_space_note_removed(&space, &joined);
	h5_heap_space_note_removed(&space, &huge_behind);
	h5_heap_space_note_removed(&space, &behind_huge);
	h5_heap_space_note_removed(&space, &small);
	h5_heap_space_note_removed(&space, &last);
	wanted[0] = last;
	ck_assert_uint_eq(space.removed_count, H5_HEAP_REMOVED);
	for (unsigned i = 0; i < H5_HEAP_REMOVED; i++) {
		ck_assert_int_eq(space.removed[i].is_huge, wanted[i].is_huge);
		ck_assert_uint_eq(space.removed[i].offset, wanted[i].offset);
		ck_assert_uint_eq(space.removed[i].size, wanted[i].size);
	}
	ck_assert(space.note_changed && !space.sections_changed);
}
END_TEST

/* The bytes of a removed object are used again after the commit only if the note of it is sound, and of the
 * section list and the heap as they are. */
START_TEST(a_note_of_another_heap)
{
	static const struct {
		unsigned at, width;
		uint64_t change;
		bool unsealed; /* the byte changes, and the checksum does not */
	} cases[] = {
		{0, 1, 0, false},  {0, 1, 1, false},  {4, 4, 1, false},	 {8, 8, 1, false},
		{16, 8, 1, false}, {24, 8, 1, false}, {32, 8, 1, false}, {40, 2, 0xff00, false},
		{0, 1, 1, true},   {44, 1, 1, true},
	};
	enum { FIRST = 18, SIZE = 100, NOTE = H5_REMOVED_NOTE_SIZE + H5_REMOVED_OBJECT_SIZE };
	uint8_t id[ID_SIZE], note[NOTE];
	uint64_t manager, at;
	struct heap h;

	heap_begin(&h, ID_SIZE, 40);
	SUCCEEDS(heap_insert(&h, SIZE, id, ID_SIZE));
	ck_assert_uint_eq(h5_uint_from(id + 1, 5), FIRST);
	SUCCEEDS(h5_tx_commit(h.file));
	SUCCEEDS(h5_fractal_heap_remove(h.file, h.address, id, ID_SIZE));
	SUCCEEDS(h5_tx_commit(h.file));
	manager = heap_number(&h, h.address + 38);
	at = heap_number(&h, manager + 54) + heap_number(&h, manager + 70);
	SUCCEEDS(h5_file_read(h.file, at, note, NOTE));
	ck_assert_mem_eq(note, "h5fs", 4);
	h5_uint_to(note + cases[_i].at, h5_uint_from(note + cases[_i].at, cases[_i].width) ^ cases[_i].change,
		   cases[_i].width);
	if (!cases[_i].unsealed)
		h5_uint_to(note + NOTE - 4, h5_lookup3(note, NOTE - 4, 0), 4);
	SUCCEEDS(h5_tx_patch(h.file, at, note, NOTE, H5_STAGE_HEAP));
	h5_tx_forget(h.file, manager);
	SUCCEEDS(h5_tx_commit(h.file));
	SUCCEEDS(heap_insert(&h, SIZE, id, ID_SIZE));
	ck_assert_uint_eq(h5_uint_from(id + 1, 5), _i ? FIRST + SIZE : FIRST);
	heap_expect(&h, id, ID_SIZE, SIZE);
	heap_end(&h);
}
END_TEST

/* The free-space manager and its section list stay where they are, in new space, until the commit. */
START_TEST(a_manager_that_was_not_committed_yet)
{
	uint64_t manager, list;
	uint8_t id[ID_SIZE];
	struct heap h;

	heap_begin(&h, ID_SIZE, 40);
	SUCCEEDS(heap_insert(&h, 100, id, ID_SIZE));
	manager = heap_number(&h, h.address + 38);
	list = heap_number(&h, manager + 54);
	SUCCEEDS(heap_insert(&h, 100, id, ID_SIZE));
	ck_assert_uint_eq(heap_number(&h, h.address + 38), manager);
	ck_assert_uint_eq(heap_number(&h, manager + 54), list);
	SUCCEEDS(h5_tx_commit(h.file));
	SUCCEEDS(heap_insert(&h, 100, id, ID_SIZE));
	ck_assert_uint_ne(heap_number(&h, h.address + 38), manager);
	ck_assert_uint_ne(heap_number(&h, heap_number(&h, h.address + 38) + 54), list);
	heap_end(&h);
}
END_TEST

/* What the header counts. */
struct statistics {
	uint64_t free, managed, allocated, objects, huge_bytes, huge_objects;
};

static void expect_statistics(struct heap *h, const struct statistics *wanted)
{
	static const unsigned at[] = {30, 46, 54, 70, 78, 86};
	const uint64_t numbers[] = {wanted->free,    wanted->managed,	 wanted->allocated,
				    wanted->objects, wanted->huge_bytes, wanted->huge_objects};
	uint64_t manager = heap_number(h, h->address + 38);

	for (unsigned i = 0; i < sizeof at / sizeof *at; i++)
		ck_assert_msg(heap_number(h, h->address + at[i]) == numbers[i], "field %u: %ju, not %ju",
			      at[i], (uintmax_t)heap_number(h, h->address + at[i]), (uintmax_t)numbers[i]);
	/* of the sections: no more than the heap has */
	if (manager != H5_UNDEF)
		ck_assert_uint_le(heap_number(h, manager + 6), wanted->free);
}

/* A root with two rows has eight blocks of 512 bytes, 18 of which are the prefix. The header counts the free
 * space of all eight, also of those that do not exist yet. */
START_TEST(what_a_header_counts)
{
	enum { FIRST = 512 - 18, EIGHT = 8 * FIRST };
	uint8_t ids[3][ID_SIZE], huge[2][ID_SIZE];
	bool replaced;
	struct heap h;

	heap_begin(&h, ID_SIZE, 40);
	SUCCEEDS(heap_insert(&h, 100, ids[0], ID_SIZE));
	expect_statistics(&h, &(struct statistics){FIRST - 100, 512, 512, 1, 0, 0});
	SUCCEEDS(heap_insert(&h, 480, ids[1], ID_SIZE));
	expect_statistics(&h, &(struct statistics){4 * FIRST - 580, 2048, 1024, 2, 0, 0});
	for (unsigned i = 0; i < 3; i++)
		SUCCEEDS(heap_insert(&h, 480, ids[2], ID_SIZE));
	expect_statistics(&h, &(struct statistics){EIGHT - 100 - 4 * 480, 4096, 5 * 512, 5, 0, 0});
	SUCCEEDS(heap_insert(&h, 5000, huge[0], ID_SIZE));
	SUCCEEDS(heap_insert(&h, 6000, huge[1], ID_SIZE));
	expect_statistics(&h, &(struct statistics){EIGHT - 100 - 4 * 480, 4096, 5 * 512, 5, 11000, 2});
	SUCCEEDS(h5_fractal_heap_replace(h.file, h.address, huge[0], ID_SIZE, object_of(7000), 7000,
					 &replaced));
	ck_assert(replaced);
	SUCCEEDS(h5_tx_commit(h.file));
	SUCCEEDS(h5_fractal_heap_remove(h.file, h.address, ids[1], ID_SIZE));
	SUCCEEDS(h5_fractal_heap_remove(h.file, h.address, huge[0], ID_SIZE));
	/* Its bytes are counted as free already; a huge object goes with the next change after the commit. */
	expect_statistics(&h, &(struct statistics){EIGHT - 100 - 3 * 480, 4096, 5 * 512, 4, 13000, 2});
	SUCCEEDS(h5_tx_commit(h.file));
	SUCCEEDS(h5_fractal_heap_remove(h.file, h.address, huge[1], ID_SIZE));
	expect_statistics(&h, &(struct statistics){EIGHT - 100 - 3 * 480, 4096, 5 * 512, 4, 6000, 1});
	SUCCEEDS(h5_tx_commit(h.file));
	SUCCEEDS(heap_insert(&h, 480, ids[1], ID_SIZE));
	expect_statistics(&h, &(struct statistics){EIGHT - 100 - 4 * 480, 4096, 5 * 512, 5, 0, 0});
	ck_assert_uint_eq(heap_number(&h, h.address + 22), H5_UNDEF);
	heap_expect(&h, ids[0], ID_SIZE, 100);
	heap_expect(&h, ids[1], ID_SIZE, 480);
	heap_expect(&h, ids[2], ID_SIZE, 480);
	heap_end(&h);
}
END_TEST

/* Returns the address of the object that a managed ID names. *entry: the address of the root's entry for its
 * direct block. */
static uint64_t heap_place(struct heap *h, const uint8_t *id, uint64_t *entry)
{
	uint64_t offset = h5_uint_from(id + 1, 5), root = heap_number(h, h->address + 132);
	const struct h5_fractal_heap *heap;
	struct h5_fractal_heap_slot slot;
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_heap_header_get(h->file, h->address, &ref, &heap));
	slot = h5_fractal_heap_locate(heap, offset);
	*entry = root + 18 + 8 * ((uint64_t)slot.row * heap->width + slot.column);
	h5_file_put(h->file, ref);
	return heap_number(h, *entry) + offset - slot.begin;
}

/* A new object in place of an old one lies where that is if one write of a cell can change it; else its block
 * moves, so that a kill leaves the old one. Both ways the other objects stay. */
START_TEST(replaced_in_one_write)
{
	enum { OBJECTS = 24, SIZE = 1500, ROOT_MAX = 18 + 8 * 32 + 4 };
	uint8_t ids[OBJECTS][ID_SIZE];
	unsigned moved = 0, stayed = 0, roots = 0;
	bool replaced;
	struct heap h;

	heap_begin(&h, ID_SIZE, 40);
	for (unsigned i = 0; i < OBJECTS; i++)
		SUCCEEDS(heap_insert(&h, SIZE + i, ids[i], ID_SIZE));
	for (unsigned i = 0; i < OBJECTS; i++) {
		uint64_t root, entry, before, after;
		bool safe;

		SUCCEEDS(h5_tx_commit(h.file));
		root = heap_number(&h, h.address + 132);
		before = heap_place(&h, ids[i], &entry);
		safe = h5_tx_is_safe(h.file, before, SIZE + i);
		SUCCEEDS(h5_fractal_heap_replace(h.file, h.address, ids[i], ID_SIZE, object_of(SIZE + i),
						 SIZE + i, &replaced));
		ck_assert(replaced);
		after = heap_place(&h, ids[i], &entry);
		ck_assert_int_eq(after == before, safe);
		*(safe ? &stayed : &moved) += 1;
		/* The root changes in place as well. */
		if (h5_tx_is_safe(h.file, root, ROOT_MAX)) {
			ck_assert_uint_eq(heap_number(&h, h.address + 132), root);
			roots += !safe;
		}
		for (unsigned k = 0; k < OBJECTS; k++)
			heap_expect(&h, ids[k], ID_SIZE, SIZE + k);
	}
	ck_assert_uint_gt(moved, 0);
	ck_assert_uint_gt(stayed, 0);
	ck_assert_uint_gt(roots, 0);
	heap_end(&h);
}
END_TEST

/* An object that is in its ID takes no more from the heap than that counts. */
START_TEST(tiny_objects_are_counted)
{
	enum { BYTES = 94, COUNT = 102 };
	static const uint64_t bytes[] = {2, 0, 0}, objects[] = {1, 0, 0};
	static const uint8_t id[ID_SIZE] = {0x22, 'a', 'b', 'c'};
	struct h5_heap_object object;
	uint64_t free;
	struct heap h;

	heap_begin(&h, ID_SIZE, 40);
	heap_fill(&h, JUST_ONE);
	heap_patch(&h, HEADER, BYTES, 8, 5);
	heap_patch(&h, HEADER, COUNT, 8, 2);
	free = heap_number(&h, h.address + 30);
	SUCCEEDS(h5_fractal_heap_get(h.file, h.address, id, ID_SIZE, &object));
	ck_assert_uint_eq(object.size, 3);
	ck_assert_mem_eq(object.data, "abc", 3);
	h5_heap_object_release(&object);
	for (unsigned i = 0; i < 3; i++) {
		SUCCEEDS(h5_fractal_heap_remove(h.file, h.address, id, ID_SIZE));
		ck_assert_uint_eq(heap_number(&h, h.address + BYTES), bytes[i]);
		ck_assert_uint_eq(heap_number(&h, h.address + COUNT), objects[i]);
		ck_assert_uint_eq(heap_number(&h, h.address + 70), 1);
		ck_assert_uint_eq(heap_number(&h, h.address + 30), free);
		SUCCEEDS(h5_tx_commit(h.file));
	}
	heap_end(&h);
}
END_TEST

UNIT_MAIN_LOOPS("heap_write", {the_root_of_a_small_heap, 1}, {a_bad_field_or_id, BAD_HEAPS}, {a_full_heap, 1},
		{a_table_without_indirect_blocks, 1}, {huge_objects_in_ids, 1}, {a_heap_with_filters, 1},
		{a_block_in_two_places, 1}, {an_indirect_block_in_two_places, 1}, {a_heap_of_nothing, 1},
		{a_huge_object_at_the_end, 1}, {the_largest_heaps, 2}, {the_largest_root, 2},
		{sections_are_joined_and_taken, 1}, {the_largest_sections_stay, 1},
		{the_largest_removed_objects_are_noted, 1}, {a_note_of_another_heap, 10},
		{a_manager_that_was_not_committed_yet, 1}, {what_a_header_counts, 1},
		{replaced_in_one_write, 1}, {tiny_objects_are_counted, 1})
