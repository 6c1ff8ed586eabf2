/* Changes of symbol tables whose allocations, reads and writes fail, and tables that are damaged. */
#include "base/error.h"
#include "fault_alloc.h"
#include "symbol_model.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- failing calls ---- */

/* Changes that together meet all cases: node 0 to 3 are full, split, left empty; the heap grows. */
enum { CHANGES = 5 };

static int change(struct symbol_model *m, unsigned step)
{
	unsigned i;

	switch (step) {
	case 0:
		return symbol_insert(m, 20000 + symbol_random(m, 9000), 's', 49);
	case 1:
		return symbol_insert(m, 20000 + 97 * symbol_random(m, 90) + 20, 'h', 3); /* a long name */
	default:
		for (i = symbol_random(m, SYMBOLS); !m->links[i].kind;)
			i = (i + 1) % SYMBOLS;
		return step == 2 ? symbol_change(m, i, 's', 37) : symbol_remove(m, i);
	}
}

/* One of the allocations of the change fails, each in turn; then nothing has changed, and the change
 * succeeds.
 */
START_TEST(every_allocation_can_fail)
{
	struct symbol_model *m = symbol_model_begin("small", 700, NULL);
	unsigned failed = 0;

	for (unsigned round = 0; round < 40; round++) {
		unsigned step = round % CHANGES;
		bool fired = true;

		if (round % 8 == 0)
			symbol_model_commit(m);
		for (unsigned long n = 1; fired; n++) {
			struct h5_symbol_table table = m->table;
			unsigned seed = m->seed;
			int rc;

			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = change(m, step);
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			if (!rc || rc == -EEXIST)
				break;
			ck_assert_int_eq(rc, -ENOMEM);
			ck_assert_mem_eq(&table, &m->table, sizeof table);
			m->seed = seed;
			failed++;
		}
		if (round % 8 == 7)
			symbol_check(m);
	}
	ck_assert_uint_gt(failed, 300);
	symbol_judge(m);
	symbol_model_end(m);
}
END_TEST

/* The root crosses a page, so it moves with the first change. If a unit fails, the table leads to the old
 * one, even if there was no memory to remember it. */
START_TEST(the_root_stays_if_a_unit_fails)
{
	enum { PAGE = 4096, ROOT = 24 + 33 * 8 + 32 * 8 };
	struct symbol_model *m = symbol_model_begin("100", 100, NULL);
	const struct h5_link link = {.type = H5_LINK_HARD, .address = m->targets[0]};
	struct h5_symbol_table before;
	uint8_t bytes[ROOT];
	bool fired = true;
	uint64_t at;

	SUCCEEDS(h5_file_read(m->file, m->table.btree, bytes, sizeof bytes));
	SUCCEEDS(h5_tx_allocate(m->file, H5_ALLOCATE_RAW, 3 * PAGE, &at));
	at = at / PAGE * PAGE + 2 * PAGE - ROOT / 2;
	SUCCEEDS(h5_tx_write(m->file, at, bytes, sizeof bytes));
	m->table.btree = at;
	symbol_model_reopen(m);
	before = m->table;
	for (unsigned long n = 1; fired; n++) {
		int rc;

		h5_unit_begin(m->file);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_symbol_table_insert(m->file, &m->table, "zz", 2, &link);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!rc || (fired && rc == -ENOMEM));
		ck_assert(rc || m->table.btree != at);
		rc = rc ? rc : -ECANCELED;
		ck_assert_int_eq(h5_unit_end(m->file, rc), rc);
		ck_assert_mem_eq(&m->table, &before, sizeof before);
	}
	symbol_check(m);
	symbol_model_end(m);
}
END_TEST

/* A commit whose n-th call fails leaves the links of before, or those of after it. */
START_TEST(every_write_can_fail)
{
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct fault_io fault = {.error = -EIO};
		struct symbol_model *m = symbol_model_begin("100", 100, &fault), *before = malloc(sizeof *m);
		int rc;

		ck_assert_ptr_nonnull(before);
		symbol_shake(m, 20, 100, 60);
		symbol_model_commit(m);
		memcpy(before->links, m->links, sizeof m->links);
		symbol_shake(m, 50, 150, 60);
		fault_io_arm(&fault, n);
		rc = h5_tx_commit(m->file);
		fired = fault_io_disarm(&fault);
		if (rc && h5_tx_is_writable(m->file))
			h5_tx_abandon(m->file);
		scratch_close(&m->scratch);
		scratch_wrap(&m->scratch, NULL);
		symbol_model_open(m);
		if (rc) {
			char name[SYMBOL_NAME];
			struct h5_symbol symbol;
			unsigned differs = 150;

			/* The journal was replayed, or there was none. */
			for (unsigned i = 0; i < 150; i++)
				if (!before->links[i].kind != !m->links[i].kind)
					differs = i;
			ck_assert_uint_lt(differs, 150);
			rc = h5_symbol_table_lookup(m->file, &m->table, name, symbol_name(differs, name),
						    &symbol);
			if ((rc == -ENOENT) == !before->links[differs].kind)
				memcpy(m->links, before->links, sizeof m->links);
		}
		symbol_check(m);
		symbol_shake(m, 20, 150, 60);
		symbol_model_reopen(m);
		symbol_check(m);
		symbol_model_end(m);
		free(before);
		fault_io_release(&fault);
	}
}
END_TEST

/* ---- damaged tables ---- */

static void poke(const struct symbol_model *m, uint64_t address, const void *data, size_t n)
{
	int fd = open(m->scratch.path, O_WRONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert(pwrite(fd, data, n, (off_t)(h5_file_superblock(m->file)->base + address)) == (ssize_t)n);
	ck_assert_int_eq(close(fd), 0);
}

static void poke_number(struct symbol_model *m, uint64_t address, uint64_t value, unsigned n)
{
	uint8_t bytes[8];

	h5_uint_to(bytes, value, n);
	poke(m, address, bytes, n);
	scratch_close(&m->scratch);
	symbol_model_open(m);
}

static uint64_t number_at(struct symbol_model *m, uint64_t address, unsigned n)
{
	uint8_t bytes[8];

	SUCCEEDS(h5_file_read(m->file, address, bytes, n));
	return h5_uint_from(bytes, n);
}

/* All names are tried, of those that there are and of others; at least one change is refused, as -EUCLEAN. */
static void is_refused(struct symbol_model *m)
{
	unsigned refused = 0;

	for (unsigned i = 0; i < 300; i++) {
		int rc = i % 2 ? symbol_insert(m, i, 's', 48) : symbol_remove(m, i);

		if (rc == -EUCLEAN)
			refused++;
		else
			ck_assert(!rc || rc == -EEXIST || rc == -ENOENT);
	}
	ck_assert_uint_gt(refused, 0);
	symbol_model_end(m);
}

START_TEST(damaged_tables)
{
	struct symbol_model *m = symbol_model_begin("100", 100, NULL);
	uint64_t heap = m->table.heap, tree = m->table.btree, node = number_at(m, tree + 32, 8);
	uint64_t data = number_at(m, heap + 24, 8), size = number_at(m, heap + 8, 8);
	uint64_t list = number_at(m, heap + 16, 8);

	switch (_i) {
	case 0: /* the list of free blocks leads out of the heap; nowhere */
		poke_number(m, heap + 16, size + 8, 8);
		break;
	case 1:
		poke_number(m, heap + 16, 0, 8);
		poke_number(m, data, 0, 8);
		break;
	case 2: /* it is a circle, of a block without room */
		poke_number(m, data + list, list, 8);
		poke_number(m, data + list + 8, 16, 8);
		break;
	case 3: /* a block that is too large */
		poke_number(m, data + list + 8, size + 8, 8);
		break;
	case 4: /* the segment lies beyond the end; is huge */
		poke_number(m, heap + 24, UINT64_C(1) << 40, 8);
		break;
	case 5:
		poke_number(m, heap + 16, 1, 8);
		poke_number(m, heap + 8, UINT64_C(1) << 40, 8);
		break;
	case 6: /* a name, a key beyond the heap */
		poke_number(m, node + 8, size + 8, 8);
		break;
	case 7:
		poke_number(m, tree + 24 + 16, size + 8, 8);
		break;
	case 8: /* all names are before the first key */
		poke_number(m, tree + 24, number_at(m, tree + 24 + 16 * number_at(m, tree + 6, 2), 8), 8);
		break;
	case 9: /* more entries than a node has */
		poke_number(m, node + 6, 9, 2);
		break;
	case 10:
		poke_number(m, tree + 6, 33, 2);
		break;
	case 11: /* a node of another level, another kind, nowhere */
		poke_number(m, tree + 5, 7, 1);
		break;
	case 12:
		poke_number(m, tree + 4, 1, 1);
		break;
	case 13:
		poke_number(m, node, 0, 4);
		break;
	case 14:
		poke_number(m, tree + 32, UINT64_C(1) << 40, 8);
		break;
	case 15: /* the root leads back to itself */
		poke_number(m, tree + 32, tree, 8);
		break;
	default: /* two children are one; no room is left, so that the heap is collected */
		poke_number(m, tree + 32, number_at(m, tree + 48, 8), 8);
		poke_number(m, heap + 16, 1, 8);
	}
	is_refused(m);
}
END_TEST

/* The heap is full. A name in another node, a key of the tree, or the target of a soft link has no end in the
 * heap: the heap stays as it is. */
START_TEST(a_text_without_end)
{
	struct symbol_model *m = symbol_model_begin("100", 100, NULL);
	const struct h5_link link = {.type = H5_LINK_HARD, .address = m->targets[0]};
	uint64_t heap = m->table.heap, node = number_at(m, m->table.btree + 32, 8);
	uint64_t data = number_at(m, heap + 24, 8), size = number_at(m, heap + 8, 8);
	const uint64_t places[] = {node + 8, m->table.btree + 24, node + 8 + 24};

	poke_number(m, data + size - 8, 0x7878787878787878, 8);
	poke_number(m, heap + 16, 1, 8);
	if (_i == 2)
		poke_number(m, node + 8 + 16, H5_SYMBOL_SOFT, 4);
	poke_number(m, places[_i], size - 8, _i == 2 ? 4 : 8);
	ck_assert_int_eq(h5_symbol_table_insert(m->file, &m->table, "\xff\xff", 2, &link), -EUCLEAN);
	ck_assert_msg(strstr(h5_error_last()->text, "does not end"), "%s", h5_error_last()->text);
	ck_assert_uint_eq(number_at(m, heap + 8, 8), size);
	ck_assert_uint_eq(number_at(m, heap + 24, 8), data);
	symbol_model_end(m);
}
END_TEST

/* A leaf has no entries: no name of its range can come or go, though the key before it changes. All other
 * names can. */
START_TEST(an_empty_leaf)
{
	enum { LINKS = 700, HEAD = 24, CHILD = 16 };
	struct symbol_model *m = symbol_model_begin("small", LINKS, NULL);
	uint64_t node = m->table.btree;
	unsigned refused = 0, removed = 0;
	char name[SYMBOL_NAME];
	struct h5_symbol symbol;

	ck_assert_uint_gt(number_at(m, node + 5, 1), 1);
	while (number_at(m, node + 5, 1)) {
		ck_assert_uint_gt(number_at(m, node + 6, 2), 1);
		node = number_at(m, node + HEAD + 8 + (unsigned)_i * CHILD, 8);
	}
	poke_number(m, node + 6, 0, 2);
	for (unsigned i = 0; i < LINKS; i++) {
		size_t n = symbol_name(i, name);
		bool is_there = !h5_symbol_table_lookup(m->file, &m->table, name, n, &symbol);
		int rc = symbol_remove(m, i);

		ck_assert_int_eq(rc, is_there ? 0 : -EUCLEAN);
		if (!is_there)
			ck_assert_str_eq(h5_error_last()->text,
					 "version 1 B-tree: an empty node below the root");
		ck_assert_int_eq(h5_symbol_table_lookup(m->file, &m->table, name, n, &symbol), -ENOENT);
		*(is_there ? &removed : &refused) += 1;
	}
	ck_assert_uint_gt(refused, 0);
	ck_assert_uint_gt(removed, 100);
	SUCCEEDS(h5_tx_commit(m->file));
	symbol_model_end(m);
}
END_TEST

/* Any byte may be anything: nothing breaks. */
START_TEST(random_damage)
{
	struct symbol_model *m = symbol_model_begin("small", 700, NULL);
	uint64_t tree = m->table.btree, heap = m->table.heap;
	uint64_t blocks[] = {tree, heap, number_at(m, heap + 24, 8), number_at(m, tree + 24 + 8, 8)};

	m->seed = (unsigned)_i + 1;
	for (unsigned i = 0; i < 4; i++) {
		uint8_t byte = (uint8_t)(symbol_random(m, 2) ? symbol_random(m, 256) : symbol_random(m, 9));

		poke(m, blocks[symbol_random(m, 4)] + symbol_random(m, i ? 200 : 40), &byte, 1);
	}
	scratch_close(&m->scratch);
	symbol_model_open(m);
	for (unsigned i = 0; i < 200; i++) {
		int rc = change(m, symbol_random(m, CHANGES));

		ck_assert_msg(!rc || rc == -EEXIST || rc == -ENOENT || rc == -EUCLEAN || rc == -ENOTSUP ||
				      rc == -EFBIG || rc == -EOVERFLOW,
			      "%d", rc);
	}
	SUCCEEDS(h5_tx_commit(m->file));
	symbol_model_end(m);
}
END_TEST

UNIT_MAIN_LOOPS("symbol_table_faults", {every_allocation_can_fail, 1}, {the_root_stays_if_a_unit_fails, 1},
		{every_write_can_fail, 1}, {damaged_tables, 17}, {a_text_without_end, 3}, {an_empty_leaf, 2},
		{random_damage, 200})
