#include "group_model.h"

#include "change/object_header_insert.h"
#include "object/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names and links, as the fixture has them ---- */

static size_t make_name(unsigned i, char name[GROUP_NAME])
{
	size_t n, fill = i % 50 ? i % 60 : 980;

	if (i < 50) {
		name[0] = (char)(64 + i);
		return 1;
	}
	n = (size_t)sprintf(name, "%x-", i);
	for (size_t j = 0; j < fill; j++)
		name[n + j] = (char)(j % 5 || i % 3 ? 48 + (j * 7 + i) % 10 : 192 + i % 32);
	return n + fill;
}

static size_t make_path(unsigned serial, char path[GROUP_PATH])
{
	size_t n = (size_t)sprintf(path, "/p/%u", serial), fill = serial % 37 ? serial % 40 : 5000;

	memset(path + n, 'x', fill);
	return n + fill;
}

struct texts {
	char name[GROUP_NAME], path[GROUP_PATH];
};

static struct h5_link make_link(const struct group_model *m, unsigned i, char kind, unsigned target,
				struct texts *texts)
{
	struct h5_link link = {.name = texts->name, .name_size = make_name(i, texts->name)};

	if (kind == 'h') {
		link.address = m->targets[target];
		return link;
	}
	link.type = kind == 's' ? H5_LINK_SOFT : H5_LINK_EXTERNAL;
	link.target = texts->path;
	link.target_size = make_path(target, texts->path);
	if (kind == 'x') {
		link.file = "other.h5";
		link.file_size = 8;
	}
	return link;
}

/* ---- the file ---- */

static uint64_t find(struct group_model *m, const char *name)
{
	struct h5_file *file;
	uint64_t address;

	SUCCEEDS(h5_path_find(m->file, h5_file_superblock(m->file)->root, name, strlen(name), &file,
			      &address));
	return address;
}

static struct h5_group_storage find_storage(struct group_model *m)
{
	const struct h5_object *object;
	struct h5_group_storage storage;
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_object_get(m->file, m->group, &ref, &object));
	SUCCEEDS(h5_group_storage_find(m->file, object, &storage));
	h5_file_put(m->file, ref);
	return storage;
}

bool group_is_dense(struct group_model *m)
{
	return find_storage(m).messages.is_dense;
}

void group_look(struct group_model *m)
{
	struct h5_group_storage storage;

	m->group = find(m, m->name);
	storage = find_storage(m);
	m->is_old = storage.is_old;
	m->is_tracked = storage.messages.info.tracks_order;
}

static void open_file(struct group_model *m)
{
	scratch_open(&m->scratch);
	m->file = m->scratch.file;
	group_look(m);
}

struct group_model *group_model_begin(const char *form, unsigned links, struct fault_io *fault)
{
	struct group_model *m = calloc(1, sizeof *m);
	char name[64];

	ck_assert_ptr_nonnull(m);
	snprintf(name, sizeof name, "group_write-%s-%u.h5", form, links);
	scratch_init(&m->scratch, name);
	scratch_wrap(&m->scratch, fault);
	m->name = "g";
	m->limit = 200;
	open_file(m);
	/* So that names come and go without counting. */
	for (unsigned t = 0; t < GROUP_TARGETS; t++) {
		snprintf(name, sizeof name, "t%u", t);
		m->targets[t] = find(m, name);
		SUCCEEDS(h5_header_set_references(m->file, m->targets[t], GROUP_REFERENCES + 1000));
	}
	for (unsigned i = 0; i < links; i++)
		m->links[i] = (struct group_link){i % 5 == 4 ? 's' : 'h', i % 5 == 4 ? i : i % 10, i};
	m->serial = 1000;
	m->order = links;
	return m;
}

void group_model_end(struct group_model *m)
{
	scratch_release(&m->scratch);
	free(m);
}

void group_model_renew(struct group_model *m, const struct h5_new_group *how)
{
	struct h5_link link = {.name = "g", .name_size = 1};

	SUCCEEDS(h5_group_create(m->file, how, &link.address));
	SUCCEEDS(h5_group_change(m->file, h5_file_superblock(m->file)->root, &link));
	group_look(m);
	ck_assert_uint_eq(m->group, link.address);
	ck_assert_int_eq(m->is_tracked, how->tracks_order);
	memset(m->links, 0, sizeof m->links);
	m->order = 0;
}

void group_model_commit(struct group_model *m)
{
	SUCCEEDS(h5_tx_commit(m->file));
}

void group_model_reopen(struct group_model *m)
{
	scratch_close(&m->scratch);
	open_file(m);
}

/* ---- changes ---- */

unsigned group_random(struct group_model *m, unsigned n)
{
	m->seed = m->seed * 1103515245 + 12345;
	return (m->seed >> 8) % n;
}

unsigned group_choose(struct group_model *m, bool exists)
{
	unsigned first = group_random(m, m->limit);

	for (unsigned n = 0; n < m->limit; n++)
		if (!m->links[(first + n) % m->limit].kind != exists)
			return (first + n) % m->limit;
	return GROUP_LINKS;
}

unsigned group_names(const struct group_model *m, unsigned target)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->limit; i++)
		n += m->links[i].kind == 'h' && m->links[i].target == target;
	return n;
}

static unsigned choose_target(struct group_model *m, char kind)
{
	return kind == 'h' ? group_random(m, GROUP_TARGETS) : m->serial;
}

int group_insert(struct group_model *m, unsigned i, char kind)
{
	unsigned target = choose_target(m, kind);
	struct texts texts;
	struct h5_link link = make_link(m, i, kind, target, &texts);
	int rc = h5_group_insert(m->file, m->group, &link);

	if (rc)
		return rc;
	m->serial++;
	m->links[i] = (struct group_link){kind, target, m->order++};
	return 0;
}

int group_change(struct group_model *m, unsigned i, char kind)
{
	unsigned target = choose_target(m, kind);
	struct texts texts;
	struct h5_link link = make_link(m, i, kind, target, &texts);
	int rc = h5_group_change(m->file, m->group, &link);

	if (rc)
		return rc;
	m->serial++;
	m->links[i].kind = kind;
	m->links[i].target = target;
	return 0;
}

int group_remove(struct group_model *m, unsigned i)
{
	char name[GROUP_NAME];
	int rc = h5_group_remove(m->file, m->group, name, make_name(i, name));

	if (!rc)
		m->links[i].kind = 0;
	return rc;
}

int group_rename(struct group_model *m, unsigned i, unsigned j)
{
	struct group_link old = m->links[i];
	struct texts texts;
	struct h5_link link = make_link(m, j, old.kind, old.target, &texts);
	char name[GROUP_NAME];
	int rc = h5_group_rename(m->file, m->group, name, make_name(i, name), &link);

	if (rc)
		return rc;
	m->links[i].kind = 0;
	m->links[j] = old;
	return 0;
}

int group_rename_as(struct group_model *m, unsigned i, unsigned j, char kind)
{
	struct group_link new = {kind, choose_target(m, kind), m->links[i].order};
	struct texts texts;
	struct h5_link link = make_link(m, j, kind, new.target, &texts);
	char name[GROUP_NAME];
	int rc = h5_group_rename(m->file, m->group, name, make_name(i, name), &link);

	if (rc)
		return rc;
	m->serial++;
	m->links[i].kind = 0;
	m->links[j] = new;
	return 0;
}

int group_move_out(struct group_model *m, unsigned i)
{
	struct texts texts;
	struct h5_link link = make_link(m, i, m->links[i].kind, m->links[i].target, &texts);
	int rc;

	link.name = "moved";
	link.name_size = 5;
	rc = h5_group_insert(m->file, h5_file_superblock(m->file)->root, &link);
	if (rc)
		return rc;
	m->moved = m->links[i];
	return group_remove(m, i);
}

int group_move_in(struct group_model *m, unsigned i)
{
	struct texts texts;
	struct h5_link link = make_link(m, i, m->moved.kind, m->moved.target, &texts);
	int rc = h5_group_insert(m->file, m->group, &link);

	if (rc)
		return rc;
	m->links[i] = m->moved;
	m->links[i].order = m->order++;
	m->moved.kind = 0;
	return h5_group_remove(m->file, h5_file_superblock(m->file)->root, "moved", 5);
}

int group_step(struct group_model *m, unsigned percent)
{
	char kind = "hhhsx"[group_random(m, m->is_old ? 4 : 5)];
	unsigned there = group_choose(m, true), new = group_choose(m, false), what = group_random(m, 100);

	if (there == GROUP_LINKS || (what < percent && new < GROUP_LINKS))
		return group_insert(m, new, kind);
	switch (group_random(m, 4)) {
	case 0:
		return group_change(m, there, kind);
	case 1:
		return new < GROUP_LINKS ? group_rename(m, there, new) : group_change(m, there, kind);
	default:
		return group_remove(m, there);
	}
}

void group_shake(struct group_model *m, unsigned changes, unsigned percent)
{
	while (changes--)
		SUCCEEDS(group_step(m, percent));
}

/* ---- looking ---- */

static bool is_link(const struct group_model *m, unsigned i, const struct h5_link *found)
{
	const struct group_link *expected = &m->links[i];
	struct texts texts;
	struct h5_link link = make_link(m, i, expected->kind, expected->target, &texts);

	return found->type == link.type && (link.type || found->address == link.address) &&
	       !h5_name_compare(found->target, found->target_size, link.target, link.target_size) &&
	       !h5_name_compare(found->file, found->file_size, link.file, link.file_size) &&
	       found->has_order == m->is_tracked && (!m->is_tracked || found->order == expected->order);
}

bool group_has(struct group_model *m, unsigned i)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	char name[GROUP_NAME];
	struct h5_link found;
	bool has;
	int rc;

	SUCCEEDS(h5_object_get(m->file, m->group, &ref, &object));
	rc = h5_group_lookup(m->file, object, name, make_name(i, name), &found);
	ck_assert(!rc || rc == -ENOENT);
	has = m->links[i].kind ? !rc && is_link(m, i, &found) : rc == -ENOENT;
	h5_link_release(&found);
	h5_file_put(m->file, ref);
	return has;
}

void group_check(struct group_model *m)
{
	unsigned expected = 0, listed = 0;
	const struct h5_object *object;
	const struct h5_link *link;
	struct h5_link_walk walk;
	struct h5_lru_entry *ref;
	uint64_t count;
	int rc;

	SUCCEEDS(h5_object_get(m->file, m->group, &ref, &object));
	for (unsigned i = 0; i < m->limit; i++) {
		ck_assert_msg(group_has(m, i), "link %u", i);
		expected += m->links[i].kind != 0;
	}
	SUCCEEDS(h5_link_begin(&walk, m->file, object, H5_NAMES_SORTED));
	while ((rc = h5_link_next(&walk, &link)) > 0)
		listed++;
	SUCCEEDS(rc);
	h5_link_end(&walk);
	SUCCEEDS(h5_group_count(m->file, object, &count));
	ck_assert_uint_eq(listed, expected);
	ck_assert_uint_eq(count, expected);
	h5_file_put(m->file, ref);
}

void group_save(const struct group_model *m, const char *path)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fprintf(f, "counts %d\n", m->counts);
	if (m->moved.kind)
		fprintf(f, "2f6d6f766564 %c %u -\n", m->moved.kind, m->moved.target);
	for (unsigned i = 0; i < m->limit; i++) {
		const struct group_link *link = &m->links[i];
		char name[GROUP_NAME];
		size_t n = make_name(i, name);

		if (!link->kind)
			continue;
		for (size_t j = 0; j < n; j++)
			fprintf(f, "%02x", (unsigned char)name[j]);
		fprintf(f, " %c %u ", link->kind, link->target);
		if (m->is_tracked)
			fprintf(f, "%jd\n", (intmax_t)link->order);
		else
			fprintf(f, "-\n");
	}
	fclose(f);
}

void group_judge(struct group_model *m, bool by_all)
{
	char model[160];

	snprintf(model, sizeof model, "%s/model", m->scratch.folder);
	group_save(m, model);
	group_model_commit(m);
	scratch_close(&m->scratch);
	if (by_all)
		scratch_judge_python("tests/judge/group_judge.py %s %s", m->scratch.path, model);
	else
		scratch_own_judge_python("tests/judge/group_judge.py %s %s", m->scratch.path, model);
	open_file(m);
}

void group_insert_external(struct h5_file *file, uint64_t group)
{
	const struct h5_link link = {.name = "outside",
				     .name_size = 7,
				     .type = H5_LINK_EXTERNAL,
				     .file = "other.h5",
				     .file_size = 8,
				     .target = "/x",
				     .target_size = 2};

	SUCCEEDS(h5_group_insert(file, group, &link));
}
