/* Links are inserted, changed, renamed and removed in groups of every storage, beside a model of them. */
#include "change/object_header_edit.h"
#include "change/object_header_insert.h"
#include "crash_image.h"
#include "format/datatype_make.h"
#include "group_model.h"
#include "object/attribute_write.h"
#include "object/group_create.h"
#include "object/local_heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* A new group has the time when it was made. */
START_TEST(the_time_of_a_new_group)
{
	struct group_model *m = group_model_begin("new", 0, NULL);
	const struct h5_new_group how = {.tracks_order = _i};
	const int64_t before = time(NULL);
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	uint64_t address;

	SUCCEEDS(h5_group_create(m->file, &how, &address));
	SUCCEEDS(h5_object_get(m->file, address, &ref, &object));
	ck_assert(object->has_mtime);
	ck_assert_int_ge(object->mtime, before);
	ck_assert_int_le(object->mtime, time(NULL));
	h5_file_put(m->file, ref);
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

/* The longest target of an external link that the group takes. */
static size_t longest_target(const char *form)
{
	enum { MOST = UINT16_MAX };
	struct group_model *m = group_model_begin(form, 0, NULL);
	static char target[MOST];
	struct h5_link link = {.name = "outside",
			       .name_size = 7,
			       .type = H5_LINK_EXTERNAL,
			       .file = "f",
			       .file_size = 1,
			       .target = target,
			       .target_size = MOST};
	int rc;

	memset(target, 't', sizeof target);
	while ((rc = h5_group_insert(m->file, m->group, &link))) {
		ck_assert(rc == -ENAMETOOLONG || rc == -E2BIG);
		link.target_size--;
	}
	group_model_end(m);
	return link.target_size;
}

/* A message has at most 65,535 bytes. In a header of version 1, as groups of the old style have, they are a
 * multiple of eight. */
START_TEST(the_longest_link_in_an_old_group)
{
	const size_t most = longest_target("new");

	ck_assert_uint_gt(most, UINT16_MAX - 100);
	ck_assert_uint_eq(longest_target("old"), most - UINT16_MAX % 8);
	ck_assert_uint_eq(longest_target("tracked"), most - 8);
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

static void set_text(struct group_model *m)
{
	static const struct h5_dataspace one = {.kind = H5_SPACE_SCALAR, .elements = 1};
	struct h5_datatype *type = h5_datatype_make_string(4, H5_PAD_NULLPAD, H5_CHARSET_ASCII);

	ck_assert_ptr_nonnull(type);
	SUCCEEDS(h5_attribute_create(m->file, m->group, "note", type, &one, "text"));
	h5_datatype_free(type);
}

static void check_text(struct group_model *m)
{
	struct h5_attribute attribute;
	const struct h5_object *object;
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_object_get(m->file, m->group, &ref, &object));
	SUCCEEDS(h5_attribute_lookup(m->file, object, "note", &attribute));
	ck_assert_uint_eq(attribute.size, 4);
	ck_assert_mem_eq(attribute.data, "text", 4);
	h5_attribute_release(&attribute);
	h5_file_put(m->file, ref);
}

/* A group that becomes one of the new style keeps its other messages. */
START_TEST(an_old_group_with_an_attribute)
{
	struct group_model *m = group_model_begin("old", counts[_i], NULL);

	set_text(m);
	insert_external(m);
	group_look(m);
	ck_assert(!m->is_old);
	group_check(m);
	check_text(m);
	group_model_commit(m);
	group_model_reopen(m);
	group_check(m);
	check_text(m);
	group_model_end(m);
}
END_TEST

/* A symbol table has a name twice, of which the first one is shown. That one stays when the group becomes one
 * of the new style. */
START_TEST(an_old_group_with_a_name_twice)
{
	struct group_model *m = group_model_begin("old", 60, NULL);
	struct h5_group_storage storage;
	const struct h5_object *object;
	struct h5_local_heap heap;
	struct h5_lru_entry *ref;
	uint8_t *bytes, *name;

	SUCCEEDS(h5_object_get(m->file, m->group, &ref, &object));
	SUCCEEDS(h5_group_storage_find(m->file, object, &storage));
	h5_file_put(m->file, ref);
	SUCCEEDS(h5_local_heap_open(m->file, storage.table.heap, &heap));
	bytes = malloc(heap.size);
	ck_assert_ptr_nonnull(bytes);
	SUCCEEDS(h5_file_read(m->file, heap.address, bytes, heap.size));
	name = memmem(bytes, heap.size, "\0B", 3);
	ck_assert_ptr_nonnull(name);
	SUCCEEDS(h5_tx_write(m->file, heap.address + (uint64_t)(name + 1 - bytes), "A", 1));
	free(bytes);
	group_model_commit(m);
	group_model_reopen(m);
	insert_external(m);
	group_look(m);
	ck_assert(!m->is_old);
	ck_assert(group_is_dense(m));
	m->links[2].kind = 0;
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

UNIT_MAIN_LOOPS("group_write", {the_longest_link_in_an_old_group, 1}, {the_time_of_a_new_group, 2},
		{random_changes, CASES}, {new_groups, 6}, {dense_and_back, GROWING},
		{external_links_in_an_old_group, COUNTS}, {killed_between_cells, FORMS},
		{links_that_are_renamed_and_changed, FORMS},
		{an_old_link_becomes_external_with_another_name, 2}, {an_old_group_with_an_attribute, COUNTS},
		{an_old_group_with_a_name_twice, 1}, {a_link_moves_to_another_group, FORMS},
		{a_damaged_link_info_message, COUNTS})
