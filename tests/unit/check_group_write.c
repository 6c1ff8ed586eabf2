/* Links are inserted, changed, renamed and removed in groups of every storage, beside a model of them. */
#include "change/object_header_edit.h"
#include "change/object_header_insert.h"
#include "crash_image.h"
#include "group_model.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const forms[] = {"old", "new", "tracked", "indexed", "v108"};
static const unsigned counts[] = {0, 7, 60};

enum {
	FORMS = sizeof forms / sizeof *forms,
	COUNTS = sizeof counts / sizeof *counts,
	CASES = FORMS * COUNTS
};

/* Changes, commits and looks, until libhdf5 looks. */
static void shake_and_judge(struct group_model *m, unsigned rounds, bool by_all)
{
	for (unsigned round = 0; round < rounds; round++) {
		group_shake(m, 50, round % 4 == 3 ? 5 : 60);
		group_check(m);
		group_model_commit(m);
		if (round % 2)
			group_model_reopen(m);
		group_check(m);
	}
	group_judge(m, by_all);
	group_check(m);
}

START_TEST(random_changes)
{
	struct group_model *m = group_model_begin(forms[_i / COUNTS], counts[_i % COUNTS], NULL);

	m->seed = (unsigned)_i;
	group_check(m);
	shake_and_judge(m, 4, _i % 7 == 0);
	group_model_end(m);
}
END_TEST

static const struct h5_new_group styles[] = {{false, false}, {true, false}, {true, true}};

/* The root is of the old style, or of the new one. */
START_TEST(new_groups)
{
	struct group_model *m = group_model_begin(_i % 2 ? "old" : "new", 0, NULL);

	group_model_renew(m, &styles[_i / 2]);
	group_check(m);
	if (_i % 4 == 1)
		group_model_commit(m);
	shake_and_judge(m, 4, _i == 5);
	group_model_end(m);
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
static void judge_states(struct group_model *m, struct fault_io *record,
			 void (*change)(struct group_model *m), bool by_all)
{
	struct crash_image image = {0};
	char old[160], new[160], prefix[160];

	group_model_commit(m);
	snprintf(old, sizeof old, "%s/old", m->scratch.folder);
	snprintf(new, sizeof new, "%s/new", m->scratch.folder);
	snprintf(prefix, sizeof prefix, "%s/state", m->scratch.folder);
	group_save(m, old);
	crash_image_load(&image, m->scratch.path);
	record->record = true;
	change(m);
	group_model_commit(m);
	record->record = false;
	group_save(m, new);
	if (!m->crosses)
		check_cells(record, image.size);
	ck_assert_uint_gt(crash_image_save_states(&image, record, prefix), 1);
	if (by_all)
		scratch_judge_python("tests/judge/group_judge.py states %s %s %s", m->scratch.folder, old,
				     new);
	else
		scratch_own_judge_python("tests/judge/group_judge.py states %s %s %s", m->scratch.folder, old,
					 new);
	scratch_run("rm %s/state-*", m->scratch.folder);
	fault_io_release(record);
	free(image.data);
}

static const char *const growing[] = {"new", "tracked", "indexed", "v108", "attributes", "crossing"};

enum { GROWING = sizeof growing / sizeof *growing };

static void insert_one(struct group_model *m)
{
	SUCCEEDS(group_insert(m, group_choose(m, false), 'h'));
}

static void remove_one(struct group_model *m)
{
	SUCCEEDS(group_remove(m, group_choose(m, true)));
}

/* Links become dense as libhdf5's do; with the last one the storage goes. */
START_TEST(dense_and_back)
{
	struct fault_io record = {0};
	bool full = _i == GROWING - 1;
	struct group_model *m = group_model_begin(growing[_i], full ? 8 : 7, &record);

	m->crosses = _i >= GROWING - 2;
	if (!full)
		insert_one(m);
	ck_assert(!group_is_dense(m));
	judge_states(m, &record, insert_one, _i % 3 == 2);
	ck_assert(group_is_dense(m));
	m->crosses = false;
	group_check(m);
	for (unsigned i = 0; i < 8; i++)
		remove_one(m);
	group_check(m);
	ck_assert(group_is_dense(m));
	judge_states(m, &record, remove_one, false);
	ck_assert(!group_is_dense(m));
	group_model_end(m);
	fault_io_release(&record);
}
END_TEST

static void insert_external(struct group_model *m)
{
	SUCCEEDS(group_insert(m, group_choose(m, false), 'x'));
}

static void rename_to_external(struct group_model *m)
{
	unsigned there = group_choose(m, true);

	SUCCEEDS(group_change(m, there, 'x'));
	SUCCEEDS(group_rename(m, there, group_choose(m, false)));
}

static void link_root(struct group_model *m)
{
	group_insert_external(m->file, h5_file_superblock(m->file)->root);
}

/* A soft link, each of which is different. The root is dense, or of the old style. */
static void move_to_root(struct group_model *m)
{
	unsigned i;

	do
		i = group_choose(m, true);
	while (m->links[i].kind != 's');
	SUCCEEDS(group_move_out(m, i));
}

static void move_from_root(struct group_model *m)
{
	SUCCEEDS(group_move_in(m, group_choose(m, false)));
}

/* At no instant it has no name. */
START_TEST(a_link_moves_to_another_group)
{
	struct fault_io record = {0};
	struct group_model *m = group_model_begin(forms[_i], counts[2 - _i % 2], &record);

	judge_states(m, &record, move_to_root, false);
	judge_states(m, &record, move_from_root, false);
	group_model_end(m);
	fault_io_release(&record);
}
END_TEST

/* A group of the old style becomes one of the new style with its first external link. */
START_TEST(external_links_in_an_old_group)
{
	struct fault_io record = {0};
	struct group_model *m = group_model_begin("old", counts[_i], &record);

	ck_assert(m->is_old);
	judge_states(m, &record, _i == 1 ? rename_to_external : insert_external, _i == 1);
	group_look(m);
	ck_assert(!m->is_old);
	ck_assert_int_eq(group_is_dense(m), counts[_i] > 8);
	group_check(m);
	judge_states(m, &record, link_root, false);
	shake_and_judge(m, 2, _i == 2);
	group_model_end(m);
	fault_io_release(&record);
}
END_TEST

/* A link gets its own name again, or another one, and leads elsewhere. What cannot be leaves it alone. */
START_TEST(links_that_are_renamed_and_changed)
{
	unsigned links = counts[1 + _i % 2];
	struct group_model *m = group_model_begin(forms[_i], links, NULL);
	bool was_old = m->is_old;

	SUCCEEDS(group_rename_as(m, 1, 1, 'h'));
	SUCCEEDS(group_rename_as(m, 4, 4, 's'));
	SUCCEEDS(group_rename_as(m, 4, 190, 'h'));
	SUCCEEDS(group_rename_as(m, 2, 191, 's'));
	ck_assert_int_eq(group_rename_as(m, 0, 3, 'h'), -EEXIST);
	ck_assert_int_eq(group_rename_as(m, 0, 3, 'x'), -EEXIST);
	ck_assert_int_eq(group_rename_as(m, 199, 199, 's'), -ENOENT);
	ck_assert_int_eq(group_rename_as(m, 199, 198, 'x'), -ENOENT);
	group_check(m);
	ck_assert_int_eq(m->is_old, was_old);
	SUCCEEDS(group_rename_as(m, 3, 3, 'x'));
	group_look(m);
	ck_assert(!m->is_old);
	group_check(m);
	group_model_commit(m);
	group_model_reopen(m);
	group_check(m);
	group_model_end(m);
}
END_TEST

/* The first external link of a group of the old style is one that had another name. */
START_TEST(an_old_link_becomes_external_with_another_name)
{
	struct group_model *m = group_model_begin("old", counts[1 + _i], NULL);

	SUCCEEDS(group_rename_as(m, 3, 192, 'x'));
	group_look(m);
	ck_assert(!m->is_old);
	group_check(m);
	group_model_commit(m);
	group_model_reopen(m);
	group_check(m);
	group_model_end(m);
}
END_TEST

static void shake_a_little(struct group_model *m)
{
	group_shake(m, 8, 50);
}

static void rename_one(struct group_model *m)
{
	SUCCEEDS(group_rename(m, group_choose(m, true), group_choose(m, false)));
}

/* The commit counts a new name before it is there. */
static void link_and_count(struct group_model *m)
{
	for (unsigned i = 0; i < 3; i++) {
		unsigned new = group_choose(m, false);

		SUCCEEDS(group_insert(m, new, 'h'));
		SUCCEEDS(h5_header_set_references(m->file, m->targets[m->links[new].target],
						  GROUP_REFERENCES + group_names(m, m->links[new].target)));
	}
}

START_TEST(killed_between_cells)
{
	struct fault_io record = {0};
	struct group_model *m = group_model_begin(forms[_i], counts[1 + _i % 2], &record);

	m->seed = (unsigned)_i;
	group_shake(m, 20, 70);
	judge_states(m, &record, shake_a_little, _i % 4 == 1);
	judge_states(m, &record, rename_one, false);
	for (unsigned t = 0; t < GROUP_TARGETS; t++)
		SUCCEEDS(h5_header_set_references(m->file, m->targets[t],
						  GROUP_REFERENCES + group_names(m, t)));
	m->counts = true;
	judge_states(m, &record, link_and_count, false);
	group_model_end(m);
	fault_io_release(&record);
}
END_TEST

/* ---- damage ---- */

static int spoil_version(const void *arg, uint8_t *body, size_t n)
{
	(void)arg;
	ck_assert_uint_gt(n, 0);
	body[0] = 0x7f;
	return 0;
}

/* Nobody knows where links of such a group are, or in which order. */
START_TEST(a_damaged_link_info_message)
{
	struct group_model *m = group_model_begin("tracked", counts[_i], NULL);
	struct h5_new_group style;

	SUCCEEDS(h5_header_update(m->file, m->group, H5_MSG_LINK_INFO, spoil_version, NULL));
	ck_assert_int_eq(group_insert(m, 199, 'h'), -EUCLEAN);
	ck_assert_int_eq(group_change(m, 1, 's'), -EUCLEAN);
	ck_assert_int_eq(group_rename(m, 1, 199), -EUCLEAN);
	ck_assert_int_eq(group_rename(m, 1, 1), -EUCLEAN);
	ck_assert_int_eq(group_remove(m, 1), -EUCLEAN);
	ck_assert_int_eq(h5_group_style(m->file, m->group, &style), -EUCLEAN);
	ck_assert(!h5_group_renames_at_once(m->file, m->group));
	group_model_end(m);
}
END_TEST

UNIT_MAIN_LOOPS("group_write", {random_changes, CASES}, {new_groups, 6}, {dense_and_back, GROWING},
		{external_links_in_an_old_group, COUNTS}, {killed_between_cells, FORMS},
		{links_that_are_renamed_and_changed, FORMS},
		{an_old_link_becomes_external_with_another_name, 2}, {a_link_moves_to_another_group, FORMS},
		{a_damaged_link_info_message, COUNTS})
