/* Chunks set and removed through version 2 B-trees, against trees that libhdf5 makes of the same changes
 * (tests/fixtures/btree2_write.py), against a model in memory, and by libhdf5 as the reader and next writer
 * (tests/judge/btree2_judge.py). */
#include "base/error.h"
#include "btree2_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the same changes as libhdf5 ---- */

struct paragraph {
	char name[32];
	unsigned rank;
	size_t count;
};

static bool next_paragraph(FILE *text, struct paragraph *p)
{
	return fscanf(text, " dataset %31s %u %zu", p->name, &p->rank, &p->count) == 3;
}

static void change_as_told(struct target *t, FILE *text, const struct paragraph *p, size_t commit_every)
{
	uint32_t value = 0;

	for (unsigned d = 0; d < p->rank; d++)
		ck_assert_int_eq(fscanf(text, "%" SCNu64, &t->space.dims[d]), 1);
	for (size_t i = 0; i < p->count; i++) {
		uint64_t scaled[H5_RANK_MAX];
		char sign;
		int rc;

		ck_assert_int_eq(fscanf(text, " %c", &sign), 1);
		for (unsigned d = 0; d < p->rank; d++)
			ck_assert_int_eq(fscanf(text, "%" SCNu64, &scaled[d]), 1);
		rc = sign == '+' ? btree2_set(t, scaled, value++) : btree2_remove(t, scaled);
		ck_assert_msg(!rc, "%s, line %zu: %s", p->name, i, h5_error_last()->text);
		if (i % commit_every == commit_every - 1)
			SUCCEEDS(target_commit(t));
	}
	SUCCEEDS(target_commit(t));
}

START_TEST(trees_have_the_shape_of_libhdf5s)
{
	unsigned deepest = 0, all = 0;
	char path[512], reference[512];
	struct paragraph p;
	FILE *text;

	scratch_fixture("btree2_write-reference.h5", reference);
	scratch_fixture("btree2_write.txt", path);
	text = fopen(path, "r");
	ck_assert_ptr_nonnull(text);
	while (next_paragraph(text, &p)) {
		struct target t;
		struct btree2_tree tree = {.target = &t};

		target_init(&t, "btree2_write-empty.h5", p.name, NULL);
		change_as_told(&t, text, &p, 1000);
		btree2_check(&tree);
		deepest = tree.header.depth > deepest ? tree.header.depth : deepest;
		target_compare(&t, reference, p.name);
		target_release(&t);
		all++;
	}
	fclose(text);
	ck_assert_uint_eq(all, 10);
	ck_assert_uint_ge(deepest, 3);
}
END_TEST

/* ---- random changes against a model ---- */

struct variant {
	const char *name; /* of the dataset */
	uint32_t node_size;
	uint64_t shape[3];
};

static const struct variant variants[] = {
	{"random", 256, {30, 40, 1}},	    {"random", 512, {40, 60, 1}},
	{"random", 2048, {60, 80, 1}},	    {"filtered", 288, {50, 30, 1}},
	{"filtered", 5000, {70, 50, 1}},    {"rows_deep", 1000, {10, 20, 10}},
	{"random_deep", 2048, {10, 9, 30}},
};

enum { VARIANTS = sizeof variants / sizeof *variants };

START_TEST(random_changes)
{
	const struct variant *v = &variants[_i];
	struct model *m = model_begin(v->name, v->node_size, v->shape, NULL);
	unsigned all = (unsigned)model_size(m);

	model_check(m);
	model_shake(m, all, 90);
	model_check(m);
	model_judge(m, 0);
	model_shake(m, all, 30);
	model_check(m);
	model_shake(m, 2 * all, 10);
	model_reopen(m);
	model_shake(m, 2 * all, 80);
	model_reopen(m);
	model_judge(m, 1 + (unsigned)_i);
	model_end(m);
}
END_TEST

/* In the order of appending, then from behind until nothing is left, and again. */
START_TEST(all_and_nothing)
{
	const struct variant *v = &variants[_i];
	struct model *m = model_begin(v->name, v->node_size, v->shape, NULL);

	for (unsigned round = 0; round < 2; round++) {
		for (size_t i = 0; i < model_size(m); i++)
			ck_assert_int_eq(model_set(m, i), 0);
		model_reopen(m);
		for (size_t i = model_size(m); i-- > 0;)
			ck_assert_int_eq(model_remove(m, round ? model_size(m) - 1 - i : i), 0);
		model_reopen(m);
		ck_assert_int_eq(model_remove(m, 0), 0);
	}
	model_judge(m, 9);
	model_end(m);
}
END_TEST

struct trimmed {
	struct model *m;
	uint64_t first, count;
};

static int visit_trimmed(void *arg, const struct h5_chunk *chunk)
{
	struct trimmed *trimmed = arg;
	uint8_t bytes[4];
	size_t i = (size_t)(trimmed->first * trimmed->m->shape[1] * trimmed->m->shape[2]);
	uint64_t value;

	ck_assert_int_eq(h5_file_read(trimmed->m->t.file, chunk->address, bytes, 4), 0);
	value = h5_uint_from(bytes, 4);
	while (i < model_size(trimmed->m) && trimmed->m->values[i] != value)
		i++;
	ck_assert_uint_lt(i, model_size(trimmed->m));
	trimmed->m->values[i] = 0;
	trimmed->count++;
	h5_tx_free(trimmed->m->t.file, chunk->address, chunk->size);
	return 0;
}

static uint64_t model_trim(struct model *m, uint64_t first)
{
	struct trimmed trimmed = {m, first, 0};

	SUCCEEDS(h5_chunk_index_trim(m->t.index, first, visit_trimmed, &trimmed));
	for (size_t i = (size_t)(first * m->shape[1] * m->shape[2]); i < model_size(m); i++)
		ck_assert_uint_eq(m->values[i], 0);
	return trimmed.count;
}

START_TEST(trims)
{
	const struct variant *v = &variants[_i];
	struct model *m = model_begin(v->name, v->node_size, v->shape, NULL);
	unsigned all = (unsigned)model_size(m);

	ck_assert_uint_eq(model_trim(m, 0), 0);
	model_shake(m, 2 * all, 80);
	SUCCEEDS(target_commit(&m->t));
	for (uint64_t first = v->shape[0]; first; first = first * 2 / 3) {
		model_trim(m, first);
		ck_assert_uint_eq(model_trim(m, first), 0);
		model_check(m);
		if (first % 2)
			model_reopen(m);
		model_shake(m, all / 20, 80);
	}
	model_judge(m, 20 + (unsigned)_i);
	model_end(m);

	m = model_begin(v->name, v->node_size, v->shape, NULL);
	model_shake(m, 2 * all, 95);
	ck_assert_uint_gt(model_trim(m, 0), 0);
	model_reopen(m);
	model_shake(m, all, 90);
	model_judge(m, 40 + (unsigned)_i);
	model_end(m);
}
END_TEST

/* Nodes that libhdf5 has put anywhere: some cross pages, and move when a record changes. */
START_TEST(trees_of_libhdf5)
{
	static const char *const names[] = {"filtered", "random", "random_deep"};
	struct model *m = calloc(1, sizeof *m);

	ck_assert_ptr_nonnull(m);
	target_init(&m->t, "btree2_write-reference.h5", names[_i], NULL);
	m->node_size = 2048;
	for (unsigned d = 0; d < 3; d++)
		m->shape[d] = d < m->t.space.rank ? m->t.space.dims[d] : 1;
	ck_assert_uint_le(model_size(m), MODEL_MAX);
	for (size_t i = 0; i < model_size(m); i++)
		SUCCEEDS(model_set(m, i));
	model_check(m);
	model_judge(m, 0);
	for (size_t i = 0; i < model_size(m); i += 7)
		ck_assert_int_eq(model_set(m, i), 0);
	model_shake(m, (unsigned)model_size(m), 30);
	model_check(m);
	model_judge(m, 60 + (unsigned)_i);
	model_end(m);
}
END_TEST

/* The tree's header lies across the edge of a page: it moves. */
START_TEST(a_header_that_is_no_cell)
{
	const uint64_t shape[3] = {20, 20, 1};
	struct model *m = model_begin("random", 2048, shape, NULL);
	uint8_t header[H5_BTREE2_HEADER_MAX];
	uint64_t at;

	model_shake(m, 400, 90);
	SUCCEEDS(target_commit(&m->t));
	ck_assert_int_eq(
		h5_file_read(m->t.file, h5_chunk_index_layout(m->t.index)->address, header, sizeof header),
		0);
	ck_assert_int_eq(h5_tx_allocate(m->t.file, H5_ALLOCATE_RAW, 3 * H5_CELL, &at), 0);
	at += 2 * H5_CELL - at % H5_CELL - 20;
	ck_assert_int_eq(h5_tx_write(m->t.file, at, header, sizeof header), 0);
	m->t.layout.chunked.address = at;
	SUCCEEDS(target_open_index(&m->t));
	model_reopen(m);
	ck_assert_uint_eq(h5_chunk_index_layout(m->t.index)->address, at);
	model_shake(m, 10, 90);
	ck_assert_uint_ne(h5_chunk_index_layout(m->t.index)->address, at);
	model_reopen(m);
	model_judge(m, 3);
	model_end(m);
}
END_TEST

/* The file ends before the unused bytes of the root node. New blocks take that space. When the root moves and
 * gives up its old space, the new blocks must keep theirs. */
START_TEST(a_node_that_ends_beyond_the_file)
{
	const uint64_t shape[3] = {20, 20, 1};
	struct model *m = model_begin("random", 2048, shape, NULL);
	struct btree2_tree tree = {.target = &m->t};
	uint8_t bytes[2048];
	struct h5_writer w;
	uint64_t at;
	size_t n;

	for (size_t i = 0; i < 5; i++)
		ck_assert_int_eq(model_set(m, i), 0);
	SUCCEEDS(target_commit(&m->t));
	btree2_check(&tree);
	n = h5_btree2_node_size(&tree.header, 0, tree.header.records);
	ck_assert_int_eq(h5_file_read(m->t.file, tree.header.root, bytes, n), 0);
	do
		ck_assert_int_eq(h5_tx_allocate(m->t.file, H5_ALLOCATE_RAW, n, &at), 0);
	while (at + n < h5_file_end(m->t.file));
	ck_assert_int_eq(h5_tx_write(m->t.file, at, bytes, n), 0);
	tree.header.root = at;
	w = h5_writer_init(bytes, sizeof bytes, 8, 8);
	ck_assert_int_eq(h5_btree2_header_encode(&w, &tree.header), 0);
	ck_assert_int_eq(h5_tx_write(m->t.file, h5_chunk_index_layout(m->t.index)->address, bytes,
				     h5_btree2_header_size(8, 8)),
			 0);
	SUCCEEDS(target_commit(&m->t));
	target_close(&m->t);
	target_open(&m->t);
	for (size_t i = 5; i < 50; i++)
		ck_assert_int_eq(model_set(m, i), 0);
	model_reopen(m);
	model_judge(m, 3);
	model_end(m);
}
END_TEST

static uint64_t root_of(struct model *m, uint64_t records)
{
	struct btree2_tree tree = {.target = &m->t};

	btree2_check(&tree);
	ck_assert_uint_eq(tree.header.records, records);
	return tree.header.root;
}

/* A node that no commit has changes where it is; one of the last commit moves. */
START_TEST(new_nodes_stay)
{
	const uint64_t shape[3] = {20, 20, 1};
	struct model *m = model_begin("random", 2048, shape, NULL);
	uint64_t root;

	ck_assert_int_eq(model_set(m, 7), 0);
	root = root_of(m, 1);
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_eq(model_set(m, i), 0);
	ck_assert_int_eq(model_remove(m, 7), 0);
	ck_assert_uint_eq(root_of(m, 5), root);
	SUCCEEDS(target_commit(&m->t));
	ck_assert_int_eq(model_set(m, 7), 0);
	ck_assert_uint_ne(root_of(m, 6), root);
	model_reopen(m);
	model_end(m);
}
END_TEST

UNIT_MAIN_LOOPS("btree2_write", {trees_have_the_shape_of_libhdf5s, 1}, {random_changes, VARIANTS},
		{all_and_nothing, VARIANTS}, {trims, VARIANTS}, {trees_of_libhdf5, 3},
		{a_header_that_is_no_cell, 1}, {a_node_that_ends_beyond_the_file, 1}, {new_nodes_stay, 1})
