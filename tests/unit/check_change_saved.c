/* A unit of change that fails puts the description of an index in memory back, whichever allocation has
 * failed: either the change had not begun, or its unit has saved the description. */
#include "base/error.h"
#include "change/btree2_write.h"
#include "change/transaction.h"
#include "fault_alloc.h"
#include "index_target.h"
#include "object/dense_write.h"
#include "object/global_heap_write.h"
#include "object/named_message.h"
#include "object/named_record_write.h"
#include "object/path.h"

#include <errno.h>
#include <string.h>

/* A change, and n bytes of memory that it changes. */
struct change {
	struct h5_file *file;
	int (*run)(struct change *c);
	void *known;
	size_t n;
	struct h5_named_info info;
	struct h5_btree2 tree;
	struct h5_global_heap_writer heap;
	struct target target;
};

/* The unit fails in any case; then the change succeeds, and has changed the memory. */
static void check(struct change *c)
{
	unsigned long failed = 0, n = 1;
	uint8_t before[512];

	ck_assert_uint_le(c->n, sizeof before);
	memcpy(before, c->known, c->n);
	for (bool fired = true; fired; n++) {
		int rc;

		h5_unit_begin(c->file);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = c->run(c);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_msg(!rc || (fired && rc == -ENOMEM), "%lu: %d, %s", n, rc, h5_error_last()->text);
		failed += rc != 0;
		rc = rc ? rc : -ECANCELED;
		ck_assert_int_eq(h5_unit_end(c->file, rc), rc);
		ck_assert_msg(!memcmp(c->known, before, c->n), "allocation %lu", n);
	}
	ck_assert_uint_gt(failed, 0);
	SUCCEEDS(c->run(c));
	ck_assert_mem_ne(c->known, before, c->n);
}

/* ---- dense storage ---- */

/* The dense links of a group. */
static void begin_dense(struct change *c, struct scratch *s)
{
	static const char name[] = "links-tracked-60";
	struct h5_named_storage storage;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	struct h5_file *found;
	uint64_t address;

	scratch_init(s, "dense_write.h5");
	scratch_open(s);
	*c = (struct change){.file = s->file, .known = &c->info, .n = sizeof c->info};
	SUCCEEDS(h5_path_find(s->file, h5_file_superblock(s->file)->root, name, strlen(name), &found,
			      &address));
	SUCCEEDS(h5_object_get(s->file, address, &ref, &object));
	SUCCEEDS(h5_named_storage_find(s->file, object, H5_NAMED_LINK, &storage));
	h5_file_put(s->file, ref);
	ck_assert(storage.is_dense);
	c->info = storage.info;
}

static int create_storage(struct change *c)
{
	return h5_dense_create(c->file, H5_NAMED_ATTRIBUTE, true, true, &c->info);
}

static int create_indexes(struct change *c)
{
	return h5_named_index_create(c->file, H5_NAMED_ATTRIBUTE, true, &c->info);
}

static int set_record(struct change *c)
{
	const struct h5_named_entry entry = {.id = {1}, .id_size = 7, .order = 12345};

	return h5_named_index_set(c->file, H5_NAMED_LINK, &c->info, "name", 4, &entry);
}

static int free_indexes(struct change *c)
{
	return h5_named_index_free(c->file, H5_NAMED_LINK, &c->info);
}

static int free_storage(struct change *c)
{
	return h5_dense_free(c->file, &c->info, H5_NAMED_LINK);
}

START_TEST(dense_storage)
{
	static int (*const runs[])(struct change * c) = {create_storage, create_indexes, set_record,
							 free_indexes, free_storage};
	struct scratch s;
	struct change c;

	begin_dense(&c, &s);
	c.run = runs[_i];
	check(&c);
	scratch_release(&s);
}
END_TEST

/* ---- trees ---- */

/* The one that is sought comes behind all others. */
static int compare(void *arg, struct h5_reader record, int *rc)
{
	(void)arg;
	(void)record;
	*rc = 0;
	return 1;
}

static int set_in_tree(struct change *c)
{
	uint8_t record[64];

	memset(record, 0xff, sizeof record);
	ck_assert_uint_le(c->tree.record_size, sizeof record);
	return h5_btree2_set(&c->tree, compare, NULL, record);
}

static int move_tree(struct change *c)
{
	return h5_btree2_move(&c->tree);
}

static int free_tree(struct change *c)
{
	return h5_btree2_free(&c->tree);
}

START_TEST(trees)
{
	static int (*const runs[])(struct change * c) = {set_in_tree, move_tree, free_tree};
	struct scratch s;
	struct change c;

	begin_dense(&c, &s);
	SUCCEEDS(h5_btree2_open(c.file, c.info.name_index, H5_BTREE2_LINK_NAME, 1, &c.tree));
	c.known = &c.tree;
	c.n = sizeof c.tree;
	c.run = runs[_i];
	check(&c);
	h5_unit_unsave(c.file, &c.tree, sizeof c.tree);
	scratch_release(&s);
}
END_TEST

/* ---- the global heap ---- */

static int put_value(struct change *c)
{
	uint64_t address;
	uint32_t index;

	return h5_global_heap_put(&c->heap, "value", 5, &address, &index);
}

/* The first value in a new collection; one more in it. */
START_TEST(values)
{
	struct scratch s;
	struct change c;

	begin_dense(&c, &s);
	h5_global_heap_writer_init(&c.heap, c.file);
	c.known = &c.heap.open;
	c.n = sizeof c.heap.open;
	c.run = put_value;
	check(&c);
	check(&c);
	h5_global_heap_writer_release(&c.heap);
	scratch_release(&s);
}
END_TEST

/* ---- chunks ---- */

static int set_chunk(struct change *c)
{
	static const uint64_t scaled[H5_RANK_MAX];

	return h5_chunk_index_set(c->target.index, scaled, &(struct h5_chunk){.address = 800, .size = 1});
}

/* The first chunk, with which an index comes. */
START_TEST(chunks)
{
	static const struct {
		const char *file, *name;
	} cases[] = {{"btree2_write-empty.h5", "filtered"}, {"chunk_index_write-plain.h5", "a"}};
	struct change c = {.run = set_chunk, .n = sizeof(struct h5_chunk_layout)};

	target_init(&c.target, cases[_i].file, cases[_i].name, NULL);
	c.file = c.target.file;
	c.known = (void *)(uintptr_t)h5_chunk_index_layout(c.target.index);
	check(&c);
	target_release(&c.target);
}
END_TEST

UNIT_MAIN_LOOPS("change_saved", {dense_storage, 5}, {trees, 3}, {values, 1}, {chunks, 2})
