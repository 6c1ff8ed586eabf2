/* Links of old-style groups, made, changed and removed, against a model and by libhdf5
 * (tests/judge/symbol_table_judge.py). */
#include "base/checked.h"
#include "crash_image.h"
#include "object/local_heap_write.h"
#include "store/btree1.h"
#include "symbol_model.h"

#include <stdio.h>
#include <string.h>

static const struct file {
	const char *name;
	unsigned links;
} files[] = {{"0", 0},	     {"1", 1},	      {"8", 8},	      {"100", 100},  {"removed", 100},
	     {"block", 100}, {"narrow", 500}, {"small", 700}, {"wide", 600}, {"20000", 20000}};

enum { FILES = sizeof files / sizeof *files };

START_TEST(random_changes)
{
	const struct file *f = &files[_i];
	struct symbol_model *m = symbol_model_begin(f->name, f->links, NULL);
	unsigned n = f->links < 1000 ? f->links + 300 : 25000;

	symbol_check(m);
	for (unsigned round = 0; round < 10; round++) {
		symbol_shake(m, 60, n, round % 2 ? 30 : 80);
		symbol_model_commit(m);
	}
	symbol_model_reopen(m);
	symbol_check(m);
	symbol_shake(m, 1000, n, 90);
	symbol_check(m);
	if (_i % 2)
		symbol_judge(m);
	symbol_shake(m, 1000, n, 10);
	symbol_model_commit(m);
	symbol_shake(m, 300, n, 50);
	symbol_check(m);
	symbol_judge(m);
	symbol_model_end(m);
}
END_TEST

/* All links go, in order or the other way round, and come again: the space of the first ones is used for the
 * others. */
START_TEST(all_and_nothing)
{
	struct symbol_model *m = symbol_model_begin("small", 700, NULL);
	uint64_t end;

	for (unsigned i = 0; i < 700; i++)
		SUCCEEDS(symbol_remove(m, _i ? 699 - i : i));
	symbol_model_commit(m);
	symbol_check(m);
	symbol_model_commit(m);
	end = h5_file_end(m->file);
	for (unsigned i = 0; i < 700; i++)
		SUCCEEDS(symbol_insert(m, (i * 31) % 700, 'h', i % TARGETS));
	ck_assert_uint_lt(h5_file_end(m->file) - end, 120000);
	symbol_judge(m);
	symbol_model_end(m);
}
END_TEST

/* A spool: names come in order, and those that came first go. Neither the file nor the tree grows. */
START_TEST(names_that_come_and_go)
{
	struct symbol_model *m = symbol_model_begin("0", 0, NULL);
	struct h5_link link = {.type = H5_LINK_HARD};
	uint64_t end = 0;
	char name[32];

	for (unsigned i = 0; i < 9000; i++) {
		link.address = m->targets[i % TARGETS];
		SUCCEEDS(h5_symbol_table_insert(m->file, &m->table, name,
						(size_t)snprintf(name, sizeof name, "%08u", i), &link));
		if (i >= 100)
			SUCCEEDS(
				h5_symbol_table_remove(m->file, &m->table, name,
						       (size_t)snprintf(name, sizeof name, "%08u", i - 100)));
		if (i % 100 == 0)
			symbol_model_commit(m);
		if (i == 3000)
			end = h5_file_end(m->file);
	}
	symbol_model_commit(m);
	ck_assert_uint_lt(h5_file_end(m->file), end + 20000);
	for (unsigned i = 9000 - 100; i < 9000; i++)
		SUCCEEDS(h5_symbol_table_remove(m->file, &m->table, name,
						(size_t)snprintf(name, sizeof name, "%08u", i)));
	symbol_shake(m, 100, 100, 80);
	symbol_judge(m);
	symbol_model_end(m);
}
END_TEST

/* Copies the root of the B-tree to where it crosses a page: so it moves as soon as it changes. */
static void put_root_across_pages(struct symbol_model *m)
{
	enum { PAGE = 4096, ROOT = 24 + 33 * 8 + 32 * 8 };
	uint8_t bytes[ROOT];
	uint64_t at;

	SUCCEEDS(h5_file_read(m->file, m->table.btree, bytes, sizeof bytes));
	SUCCEEDS(h5_tx_allocate(m->file, H5_ALLOCATE_RAW, 3 * PAGE, &at));
	at = at / PAGE * PAGE + 2 * PAGE - ROOT / 2;
	SUCCEEDS(h5_tx_write(m->file, at, bytes, sizeof bytes));
	m->table.btree = at;
	symbol_model_reopen(m);
	ck_assert_uint_eq(m->table.btree, at);
}

/* True: the bytes of the heap have the name. */
static bool heap_has_name(struct symbol_model *m, const struct h5_local_heap *heap, unsigned i)
{
	uint8_t *bytes = malloc(heap->size);
	char name[SYMBOL_NAME];
	size_t n = symbol_name(i, name);
	bool has;

	ck_assert_ptr_nonnull(bytes);
	SUCCEEDS(h5_file_read(m->file, heap->address, bytes, heap->size));
	has = memmem(bytes, heap->size, name, n + 1);
	free(bytes);
	return has;
}

/* Bytes of the free blocks of the heap below this offset. */
static uint64_t free_bytes(const struct h5_local_heap *heap, uint64_t below)
{
	struct h5_local_heap_free block = {.next = heap->free};
	uint64_t all = 0;

	while (block.next != H5_LOCAL_HEAP_END) {
		uint64_t at = block.next;

		SUCCEEDS(h5_local_heap_free_block(heap, at, &block));
		all += at < below ? h5_min(block.size, below - at) : 0;
	}
	return all;
}

/* After the root has moved, a heap that is full keeps each text that the last commit may need, and the blocks
 * that were free stay free. */
START_TEST(a_full_heap_after_the_root_has_moved)
{
	struct symbol_model *m = symbol_model_begin("100", 100, NULL);
	struct h5_local_heap before, heap;
	uint64_t root, free = 0;
	unsigned i = 100;

	put_root_across_pages(m);
	root = m->table.btree;
	SUCCEEDS(symbol_remove(m, 3));
	SUCCEEDS(symbol_remove(m, 50));
	SUCCEEDS(h5_local_heap_open(m->file, m->table.heap, &heap));
	do {
		before = heap;
		free = free_bytes(&before, before.size);
		SUCCEEDS(symbol_insert(m, i, 'h', i % TARGETS));
		i++;
		SUCCEEDS(h5_local_heap_open(m->file, m->table.heap, &heap));
	} while (heap.address == before.address || m->table.btree == root);
	ck_assert_uint_gt(heap.size, before.size);
	ck_assert_uint_eq(free_bytes(&heap, before.size), free);
	ck_assert(heap_has_name(m, &heap, 3) && heap_has_name(m, &heap, 50));
	symbol_check(m);
	symbol_shake(m, 300, 400, 50);
	symbol_check(m);
	symbol_judge(m);
	symbol_model_end(m);
}
END_TEST

/* A change of one entry writes its node alone, in place or anew: the nodes above, and those beside, stay
 * where they are. */
START_TEST(what_one_change_writes)
{
	enum { ROOT = 24 + 33 * 8 + 32 * 8 };
	static const unsigned numbers[] = {5, 777, 5001, 12345, 19998};
	struct symbol_model *m = symbol_model_begin("20000", 20000, NULL);
	const uint64_t root = m->table.btree;
	uint8_t before[ROOT], after[ROOT];

	SUCCEEDS(h5_file_read(m->file, root, before, sizeof before));
	ck_assert_uint_gt(before[5], 0); /* its level */
	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		SUCCEEDS(symbol_change(m, numbers[i], 'h', 3));
		symbol_model_commit(m);
		SUCCEEDS(symbol_remove(m, numbers[i]));
		symbol_model_commit(m);
		SUCCEEDS(symbol_insert(m, numbers[i], 'h', 4));
		symbol_model_commit(m);
		ck_assert_uint_eq(m->table.btree, root);
		SUCCEEDS(h5_file_read(m->file, root, after, sizeof after));
		ck_assert_mem_eq(before, after, sizeof before);
	}
	symbol_check(m);
	symbol_model_end(m);
}
END_TEST

/* The first and the last key of a node are those beside it in its parent. Returns the level of the node. */
static int check_keys(const struct symbol_model *m, uint64_t address, int level,
		      const struct h5_btree1_key *beside)
{
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;
	int found;

	SUCCEEDS(h5_btree1_node_get(m->file, address, H5_BTREE1_GROUP, 0, level, &ref, &node));
	found = node->level;
	if (beside) {
		ck_assert_uint_eq(node->keys[0].name, beside[0].name);
		ck_assert_uint_eq(node->keys[node->count].name, beside[1].name);
	}
	for (unsigned i = 0; i < node->count && found; i++)
		check_keys(m, node->children[i], found - 1, &node->keys[i]);
	h5_file_put(m->file, ref);
	return found;
}

/* Names that begin with the same letter follow each other, and fill nodes. */
START_TEST(keys_of_neighbours)
{
	static const unsigned letters[] = {5, 2, 0, 11, 3, 8};
	struct symbol_model *m = symbol_model_begin("narrow", 500, NULL);

	ck_assert_int_gt(check_keys(m, m->table.btree, -1, NULL), 1);
	for (unsigned n = 0; n < sizeof letters / sizeof *letters; n++) {
		for (unsigned i = letters[n]; i < 500; i += 12) {
			SUCCEEDS(symbol_remove(m, i));
			check_keys(m, m->table.btree, -1, NULL);
		}
		symbol_model_commit(m);
	}
	symbol_check(m);
	symbol_model_end(m);
}
END_TEST

START_TEST(what_cannot_be)
{
	struct symbol_model *m = symbol_model_begin("8", 8, NULL);
	static char long_name[H5_SYMBOL_TEXT_MAX + 1];
	struct h5_link hard = {.type = H5_LINK_HARD, .address = m->targets[0]};
	struct h5_link soft = {.type = H5_LINK_SOFT, .target = "a\0b", .target_size = 3};
	struct h5_link external = {.type = H5_LINK_EXTERNAL, .target = "a", .target_size = 1};

	memset(long_name, 'n', sizeof long_name);
	ck_assert_int_eq(symbol_insert(m, 1, 'h', 1), -EEXIST);
	ck_assert_int_eq(symbol_change(m, 9, 'h', 1), -ENOENT);
	ck_assert_int_eq(symbol_remove(m, 9), -ENOENT);
	ck_assert_int_eq(h5_symbol_table_insert(m->file, &m->table, "x", 1, &external), -ENOTSUP);
	ck_assert_int_eq(h5_symbol_table_insert(m->file, &m->table, "x", 1, &soft), -EINVAL);
	soft.target_size = 0;
	ck_assert_int_eq(h5_symbol_table_insert(m->file, &m->table, "x", 1, &soft), -EINVAL);
	ck_assert_int_eq(h5_symbol_table_insert(m->file, &m->table, "", 0, &hard), -EINVAL);
	ck_assert_int_eq(h5_symbol_table_insert(m->file, &m->table, "x\0y", 3, &hard), -EINVAL);
	ck_assert_int_eq(h5_symbol_table_insert(m->file, &m->table, long_name, sizeof long_name, &hard),
			 -ENAMETOOLONG);
	ck_assert(!h5_tx_is_pending(m->file));
	SUCCEEDS(h5_symbol_table_insert(m->file, &m->table, long_name, H5_SYMBOL_TEXT_MAX, &hard));
	SUCCEEDS(h5_symbol_table_remove(m->file, &m->table, long_name, H5_SYMBOL_TEXT_MAX));
	symbol_judge(m);
	symbol_model_end(m);
}
END_TEST

/* ---- kills ---- */

/* Writes to the first n bytes of the file are cells. */
static void check_cells(const struct fault_io *record, size_t n)
{
	for (size_t i = 0; i < record->count; i++) {
		const struct fault_event *e = &record->events[i];

		if (!e->file && e->kind == FAULT_WRITE && e->offset < n)
			ck_assert_uint_eq(e->offset / H5_CELL, (e->offset + e->size - 1) / H5_CELL);
	}
}

/* Records the commit of what `change` does, and asks libhdf5 about each state between its cells. */
static void judge_states(struct symbol_model *m, struct fault_io *record,
			 void (*change)(struct symbol_model *m, const void *arg), const void *arg)
{
	struct crash_image image = {0};
	char old[160], new[160], prefix[160];

	snprintf(old, sizeof old, "%s/old", m->scratch.folder);
	snprintf(new, sizeof new, "%s/new", m->scratch.folder);
	symbol_save(m, old);
	crash_image_load(&image, m->scratch.path);
	record->record = true;
	change(m, arg);
	symbol_model_commit(m);
	symbol_save(m, new);
	check_cells(record, image.size);
	snprintf(prefix, sizeof prefix, "%s/state", m->scratch.folder);
	ck_assert_uint_gt(crash_image_save_states(&image, record, prefix), 1);
	scratch_judge_python("tests/judge/symbol_table_judge.py states %s %s %s", m->scratch.folder, old,
			     new);
	scratch_run("rm %s/state-*", m->scratch.folder);
	fault_io_release(record);
	record->record = false;
	free(image.data);
}

static const struct shake {
	struct file file;
	unsigned changes, numbers, percent;
} shakes[] = {{{"8", 8}, 30, 20, 60},	     {{"100", 100}, 10, 110, 10},      {{"block", 100}, 40, 140, 70},
	      {{"narrow", 500}, 7, 600, 70}, {{"narrow", 500}, 8, 500, 0},     {{"small", 700}, 12, 800, 50},
	      {{"small", 700}, 100, 700, 0}, {{"20000", 20000}, 1, 30000, 100}};

enum { SHAKES = sizeof shakes / sizeof *shakes };

static void shake(struct symbol_model *m, const void *arg)
{
	const struct shake *how = arg;

	symbol_shake(m, how->changes, how->numbers, how->percent);
}

/* Between any two cells of a commit libhdf5 finds of each link what it was or what it will be, and goes on
 * from there. */
START_TEST(killed_between_cells)
{
	const struct shake *how = &shakes[_i];
	struct fault_io record = {0};
	struct symbol_model *m = symbol_model_begin(how->file.name, how->file.links, &record);

	symbol_shake(m, 50, how->numbers, 50);
	symbol_model_commit(m);
	judge_states(m, &record, shake, how);
	symbol_model_end(m);
	fault_io_release(&record);
}
END_TEST

static void rename_link(struct symbol_model *m, const void *arg)
{
	const unsigned *i = arg;

	SUCCEEDS(symbol_remove(m, i[0]));
	SUCCEEDS(symbol_insert(m, i[1], 'h', 3));
}

START_TEST(a_new_name_comes_first)
{
	static const unsigned names[][2] = {{0, 700}, {11, 712}, {699, 701}, {23, 703}};
	struct fault_io record = {0};
	struct symbol_model *m = symbol_model_begin("small", 700, &record);

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		judge_states(m, &record, rename_link, names[i]);
	symbol_model_end(m);
	fault_io_release(&record);
}
END_TEST

static void move_over(struct symbol_model *m, const void *arg)
{
	const unsigned *i = arg;

	SUCCEEDS(symbol_remove(m, i[0]));
	SUCCEEDS(symbol_change(m, i[1], 'h', 1));
}

/* A link takes the place of another one: its target always has a name, whichever change was made first. */
START_TEST(a_new_target_comes_first)
{
	static const unsigned names[][2] = {{0, 600}, {601, 1}, {350, 12}, {13, 351}};
	struct fault_io record = {0};
	struct symbol_model *m = symbol_model_begin("small", 700, &record);

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		SUCCEEDS(symbol_change(m, names[i][0], 'h', 1));
		SUCCEEDS(symbol_change(m, names[i][1], 'h', 2));
	}
	symbol_model_commit(m);
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		judge_states(m, &record, move_over, names[i]);
	symbol_model_end(m);
	fault_io_release(&record);
}
END_TEST

/* The list of free blocks changes in place where a kill cannot tear it: the head of a block, next and size,
 * has to lie in one cell. The only free block begins at the end of one, or with the next. */
START_TEST(a_free_block_in_two_cells)
{
	enum { FIELD = 8, HEADER = 8 + 3 * FIELD, SEGMENT = 2 * H5_CELL };
	uint8_t header[HEADER] = "HEAP", segment[SEGMENT] = {0};
	uint64_t address, data, at, offset;
	struct scratch s;
	int rc;

	scratch_init(&s, "header_create-v18.h5");
	scratch_open(&s);
	SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_METADATA, HEADER, &address));
	SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_METADATA, SEGMENT, &data));
	at = H5_CELL - data % H5_CELL - (_i ? 0 : FIELD);
	h5_uint_to(header + 8, SEGMENT, FIELD);
	h5_uint_to(header + 8 + FIELD, at, FIELD);
	h5_uint_to(header + 8 + 2 * FIELD, data, FIELD);
	h5_uint_to(segment + at, H5_LOCAL_HEAP_END, FIELD);
	h5_uint_to(segment + at + FIELD, SEGMENT - at, FIELD);
	SUCCEEDS(h5_tx_put(s.file, address, header, HEADER));
	SUCCEEDS(h5_tx_put(s.file, data, segment, SEGMENT));
	SUCCEEDS(h5_tx_commit(s.file));
	h5_unit_begin(s.file);
	rc = h5_local_heap_add(s.file, address, "text", 4, &offset);
	ck_assert_int_eq(h5_unit_end(s.file, rc < 0 ? rc : 0), 0);
	ck_assert_int_eq(rc, !_i);
	ck_assert(rc || offset == SEGMENT - 8);
	SUCCEEDS(h5_tx_commit(s.file));
	scratch_release(&s);
}
END_TEST

UNIT_MAIN_LOOPS("symbol_table_write", {random_changes, FILES}, {all_and_nothing, 2},
		{names_that_come_and_go, 1}, {a_full_heap_after_the_root_has_moved, 1},
		{what_one_change_writes, 1}, {keys_of_neighbours, 1}, {a_free_block_in_two_cells, 2},
		{what_cannot_be, 1}, {killed_between_cells, SHAKES}, {a_new_name_comes_first, 1},
		{a_new_target_comes_first, 1})
