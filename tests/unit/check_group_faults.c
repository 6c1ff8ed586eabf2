/* Changes of groups whose allocations, reads and writes fail, groups that are damaged, and what is refused.
 */
#include "change/object_header_edit.h"
#include "fault_alloc.h"
#include "fault_call.h"
#include "group_model.h"
#include "object/group_create.h"
#include "object/own_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const forms[] = {"old", "new", "indexed"};
static const unsigned counts[] = {7, 60};

enum {
	FORMS = sizeof forms / sizeof *forms,
	COUNTS = sizeof counts / sizeof *counts,
	CASES = FORMS * COUNTS,
	BOTH = 2 * CASES
};

static struct group_model *begin(int i, struct fault_io *fault)
{
	struct group_model *m = group_model_begin(forms[i / COUNTS], counts[i % COUNTS], fault);

	m->seed = (unsigned)i;
	return m;
}

/* ---- failures ---- */

enum { STEPS = 7 };

/* The last insertions make a small group dense, and one of the old style one of the new style. */
static int perform(struct group_model *m, unsigned step)
{
	unsigned there = group_choose(m, true), new = group_choose(m, false);

	switch (step % STEPS) {
	case 0:
		return group_insert(m, new, 'h');
	case 1:
		return group_rename(m, there, new);
	case 2:
		return group_change(m, there, 's');
	case 3:
		return group_insert(m, new, 's');
	case 4:
		return group_remove(m, there);
	case 5:
		return group_insert(m, new, 'x');
	default:
		return group_insert(m, new, 'h');
	}
}

enum fault_of { FAULT_OF_MEMORY, FAULT_OF_READS };

/* A change fails at many places, and changes nothing; then it succeeds. */
static unsigned fail_everywhere(struct group_model *m, unsigned step, enum fault_of what)
{
	const unsigned seed = m->seed;
	unsigned failures = 0;
	int rc = -EIO;

	for (unsigned long n = 1; rc; n++) {
		m->seed = seed;
		if (what == FAULT_OF_MEMORY) {
			fault_alloc_arm(n);
			fault_alloc_count(true);
		} else {
			/* Nothing is cached. */
			group_model_commit(m);
			group_model_reopen(m);
			fault_call_arm(CALL_FAILS, n, false);
		}
		rc = perform(m, step);
		fault_alloc_count(false);
		fault_alloc_disarm();
		fault_call_disarm();
		ck_assert(!rc || rc == (what == FAULT_OF_MEMORY ? -ENOMEM : -EIO));
		if (failures++ % 8 == 0)
			group_check(m);
	}
	return failures;
}

START_TEST(a_failed_change_changes_nothing)
{
	struct group_model *m = begin(_i % CASES, NULL);
	unsigned failures = 0;

	for (unsigned step = 0; step < STEPS; step++) {
		failures += fail_everywhere(m, step, _i < CASES ? FAULT_OF_MEMORY : FAULT_OF_READS);
		group_check(m);
	}
	ck_assert_uint_gt(failures, STEPS);
	group_judge(m, false);
	group_check(m);
	group_model_end(m);
}
END_TEST

static int change_and_commit(struct group_model *m)
{
	for (unsigned step = 0; step < STEPS; step++)
		SUCCEEDS(perform(m, step));
	return h5_tx_commit(m->file);
}

/* True: the group has the links of the model. */
static bool is_as(struct group_model *m)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	uint64_t count, expected = 0;
	bool same = true;

	SUCCEEDS(h5_object_get(m->file, m->group, &ref, &object));
	SUCCEEDS(h5_group_count(m->file, object, &count));
	for (unsigned i = 0; i < m->limit; i++) {
		expected += m->links[i].kind != 0;
		same = same && group_has(m, i);
	}
	h5_file_put(m->file, ref);
	return same && count == expected;
}

/* Each write and sync of a commit fails: when the file is opened again, the commit was made or not. */
START_TEST(a_commit_fails)
{
	struct fault_io fault = {.error = -EIO};
	struct group_model *m = begin(_i, &fault);
	struct group_model *before = malloc(sizeof *before);
	unsigned made = 0, lost = 0;
	int rc = -EIO;

	ck_assert_ptr_nonnull(before);
	group_model_commit(m);
	for (unsigned n = 1; rc; n++) {
		*before = *m;
		fault_io_arm(&fault, n);
		rc = change_and_commit(m);
		fault_io_disarm(&fault);
		if (!rc)
			break;
		group_model_reopen(m);
		if (is_as(m)) {
			made++;
		} else {
			memcpy(m->links, before->links, sizeof m->links);
			m->order = before->order;
			lost++;
		}
		group_check(m);
	}
	ck_assert_uint_gt(lost, 2);
	ck_assert_uint_gt(made, 0);
	group_judge(m, false);
	free(before);
	group_model_end(m);
	fault_io_release(&fault);
}
END_TEST

/* ---- damage ---- */

struct damage {
	unsigned seed;
};

static int damage_body(const void *arg, uint8_t *body, size_t n)
{
	const struct damage *damage = arg;

	if (n)
		body[damage->seed / 7 % n] ^= (uint8_t)(1 << damage->seed % 7);
	return 0;
}

static const enum h5_message_type damaged[] = {H5_MSG_LINK_INFO, H5_MSG_LINK, H5_MSG_GROUP_INFO,
					       H5_MSG_SYMBOL_TABLE};

/* An error, if there is one, is one that tells of damage, or of what the damage seems to say. */
static void check_error(int rc)
{
	static const int errors[] = {0,	     -EUCLEAN, -ENOTSUP, -EIO,	  -ENOENT, -EEXIST,
				     -E2BIG, -ENOSPC,  -EFBIG,	 -EINVAL, -ENOTDIR};

	for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
		if (rc == errors[i])
			return;
	ck_abort_msg("%d: %s", rc, h5_error_last()->text);
}

static void change_damaged(struct group_model *m, enum h5_message_type type, unsigned seed)
{
	struct damage damage = {seed};

	if (h5_own_message_check(m->file, m->group, type))
		return;
	SUCCEEDS(h5_header_update(m->file, m->group, type, damage_body, &damage));
	m->seed = seed;
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned there = group_choose(m, true);

		check_error(perform(m, step));
		check_error(group_insert(m, group_choose(m, false), 'x'));
		m->links[there] = (struct group_link){'h', 0, 0};
	}
	h5_tx_abandon(m->file);
}

START_TEST(damaged_messages)
{
	struct group_model *m = begin(_i, NULL);

	group_model_commit(m);
	for (unsigned i = 0; i < sizeof damaged / sizeof *damaged; i++)
		for (unsigned seed = 1; seed < 7 * 34; seed += 3)
			change_damaged(m, damaged[i], seed);
	group_model_end(m);
}
END_TEST

/* ---- what is refused ---- */

struct refusal {
	struct h5_link link;
	int rc;
};

static char long_text[70000];

static const struct refusal refusals[] = {
	{{.name = "", .name_size = 0}, -EINVAL},
	{{.name = ".", .name_size = 1}, -EINVAL},
	{{.name = "a/b", .name_size = 3}, -EINVAL},
	{{.name = "a\0b", .name_size = 3}, -EINVAL},
	{{.name = "A", .name_size = 1}, -EEXIST},
	{{.name = "x", .name_size = 1, .type = H5_LINK_SOFT}, -EINVAL},
	{{.name = "x", .name_size = 1, .type = H5_LINK_SOFT, .target = "a\0b", .target_size = 3}, -EINVAL},
	{{.name = long_text, .name_size = sizeof long_text}, -ENAMETOOLONG},
	{{.name = "x",
	  .name_size = 1,
	  .type = H5_LINK_EXTERNAL,
	  .file = "f",
	  .file_size = 1,
	  .target = long_text,
	  .target_size = sizeof long_text},
	 -ENAMETOOLONG},
	{{.name = "x",
	  .name_size = 1,
	  .type = H5_LINK_SOFT,
	  .target = long_text,
	  .target_size = sizeof long_text},
	 -ENAMETOOLONG},
};

/* None of it fails the unit around it, except removing what is not there. */
START_TEST(what_is_refused)
{
	struct group_model *m = begin(_i, NULL);
	struct h5_link none = {.name = "none", .name_size = 4, .address = m->targets[0]};

	memset(long_text, 'x', sizeof long_text);
	h5_unit_begin(m->file);
	for (unsigned i = 0; i < sizeof refusals / sizeof *refusals; i++)
		ck_assert_int_eq(h5_group_insert(m->file, m->group, &refusals[i].link), refusals[i].rc);
	ck_assert_int_eq(h5_group_change(m->file, m->group, &none), -ENOENT);
	ck_assert_int_eq(h5_group_rename(m->file, m->group, "none", 4, &none), -ENOENT);
	ck_assert_int_eq(
		h5_group_rename(m->file, m->group, "A", 1, &(struct h5_link){.name = "B", .name_size = 1}),
		-EEXIST);
	ck_assert_int_eq(
		h5_group_rename(m->file, m->group, "A", 1, &(struct h5_link){.name = ".", .name_size = 1}),
		-EINVAL);
	ck_assert_int_eq(h5_group_insert(m->file, m->targets[0], &none), -ENOTDIR);
	/* There is no object at address 8. */
	ck_assert_int_eq(h5_group_insert(m->file, 8, &none), -EUCLEAN);
	ck_assert_int_eq(h5_group_remove(m->file, 8, "A", 1), -EUCLEAN);
	SUCCEEDS(group_insert(m, group_choose(m, false), 'h'));
	SUCCEEDS(h5_unit_end(m->file, 0));
	ck_assert_int_eq(h5_group_remove(m->file, m->group, "none", 4), -ENOENT);
	ck_assert_int_eq(h5_group_renew(m->file, 8), -EUCLEAN);
	group_check(m);
	group_judge(m, false);
	group_model_end(m);
}
END_TEST

UNIT_MAIN_LOOPS("group_faults", {a_failed_change_changes_nothing, BOTH}, {a_commit_fails, CASES},
		{damaged_messages, CASES}, {what_is_refused, CASES})
