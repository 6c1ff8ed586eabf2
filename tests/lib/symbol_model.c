#include "symbol_model.h"

#include "base/error.h"
#include "change/object_header_edit.h"
#include "object/named_message.h"
#include "object/path.h"

#include <stdio.h>
#include <string.h>

size_t symbol_name(unsigned i, char name[SYMBOL_NAME])
{
	size_t n = i % 7 + 1 + (i % 97 == 3 ? 500 : 0);

	memset(name, "abcdefghijkl"[i % 12], n);
	return n + (size_t)sprintf(name + n, "%u", (unsigned)((uint64_t)i * 7919 % 100003));
}

static size_t soft_target(unsigned t, char text[100])
{
	size_t n = (size_t)sprintf(text, "/somewhere/t%u", t);

	memset(text + n, 'x', t % 50);
	return n + t % 50;
}

unsigned symbol_random(struct symbol_model *m, unsigned n)
{
	m->seed = m->seed * 1103515245 + 12345;
	return (m->seed >> 8) % n;
}

/* ---- the file ---- */

static uint64_t find(struct symbol_model *m, const char *name)
{
	const struct h5_superblock *sb = h5_file_superblock(m->file);
	struct h5_file *file;
	uint64_t address;

	SUCCEEDS(h5_path_find(m->file, sb->root, name, strlen(name), &file, &address));
	return address;
}

void symbol_model_open(struct symbol_model *m)
{
	struct h5_reader r;
	uint8_t *body;
	char name[8];
	size_t n;

	scratch_open(&m->scratch);
	m->file = m->scratch.file;
	m->group = find(m, "g");
	for (unsigned t = 0; t < TARGETS; t++) {
		snprintf(name, sizeof name, "t%u", t);
		m->targets[t] = find(m, name);
	}
	body = scratch_message(&m->scratch, m->group, H5_MSG_SYMBOL_TABLE, &n);
	r = h5_file_reader(m->file, body, n, 0);
	SUCCEEDS(h5_symbol_table_decode(&r, &m->table));
	free(body);
}

struct symbol_model *symbol_model_begin(const char *name, unsigned links, struct fault_io *fault)
{
	struct symbol_model *m = calloc(1, sizeof *m);
	char fixture[64];

	ck_assert_ptr_nonnull(m);
	m->seed = 1;
	snprintf(fixture, sizeof fixture, "symbol_table_write-%s.h5", name);
	scratch_init(&m->scratch, fixture);
	scratch_wrap(&m->scratch, fault);
	symbol_model_open(m);
	for (unsigned i = 0; i < links; i++)
		m->links[i] =
			i % 5 == 4 ? (struct symbol_link){'s', i} : (struct symbol_link){'h', i % TARGETS};
	return m;
}

void symbol_model_end(struct symbol_model *m)
{
	scratch_release(&m->scratch);
	free(m);
}

static int set_table(const void *arg, uint8_t *body, size_t n)
{
	const struct symbol_model *m = arg;
	const struct h5_superblock *sb = h5_file_superblock(m->file);
	struct h5_writer w = h5_writer_init(body, n, sb->size_of_offsets, sb->size_of_lengths);

	return h5_symbol_table_encode(&w, &m->table);
}

void symbol_model_commit(struct symbol_model *m)
{
	SUCCEEDS(h5_header_update(m->file, m->group, H5_MSG_SYMBOL_TABLE, set_table, m));
	SUCCEEDS(h5_tx_commit(m->file));
}

void symbol_model_reopen(struct symbol_model *m)
{
	symbol_model_commit(m);
	scratch_close(&m->scratch);
	symbol_model_open(m);
}

/* ---- changes ---- */

typedef int set_function(struct h5_file *file, struct h5_symbol_table *table, const char *name, size_t size,
			 const struct h5_link *link);

static int set(struct symbol_model *m, set_function *function, unsigned i, char kind, unsigned target)
{
	struct h5_link link = {.type = H5_LINK_HARD};
	char name[SYMBOL_NAME], text[100];
	size_t n = symbol_name(i, name);
	int rc;

	if (kind == 's') {
		link.type = H5_LINK_SOFT;
		link.target = text;
		link.target_size = soft_target(target, text);
	} else {
		link.address = m->targets[target];
	}
	rc = function(m->file, &m->table, name, n, &link);
	if (!rc)
		m->links[i] = (struct symbol_link){kind, target};
	return rc;
}

int symbol_insert(struct symbol_model *m, unsigned i, char kind, unsigned target)
{
	return set(m, h5_symbol_table_insert, i, kind, target);
}

int symbol_change(struct symbol_model *m, unsigned i, char kind, unsigned target)
{
	return set(m, h5_symbol_table_change, i, kind, target);
}

int symbol_remove(struct symbol_model *m, unsigned i)
{
	char name[SYMBOL_NAME];
	size_t n = symbol_name(i, name);
	int rc = h5_symbol_table_remove(m->file, &m->table, name, n);

	if (!rc)
		m->links[i].kind = 0;
	return rc;
}

void symbol_shake(struct symbol_model *m, unsigned changes, unsigned n, unsigned percent)
{
	for (unsigned done = 0; done < changes; done++) {
		unsigned i = symbol_random(m, n), target = symbol_random(m, TARGETS);
		char kind = symbol_random(m, 4) ? 'h' : 's';
		bool make = symbol_random(m, 100) < percent;

		if (!m->links[i].kind && make) {
			SUCCEEDS(symbol_insert(m, i, kind, target));
		} else if (!m->links[i].kind) {
			ck_assert_int_eq(symbol_remove(m, i), -ENOENT);
			ck_assert_int_eq(symbol_change(m, i, kind, target), -ENOENT);
		} else if (!make) {
			SUCCEEDS(symbol_remove(m, i));
		} else {
			ck_assert_int_eq(symbol_insert(m, i, kind, target), -EEXIST);
			SUCCEEDS(symbol_change(m, i, kind, target));
		}
	}
}

/* ---- checks ---- */

static void check_symbol(const struct symbol_model *m, unsigned i, const struct h5_symbol *symbol)
{
	struct symbol_link link = m->links[i];
	struct h5_local_heap heap;
	struct h5_buf text;
	char target[100];

	if (link.kind == 'h') {
		ck_assert_uint_eq(symbol->address, m->targets[link.target]);
		ck_assert_uint_ne(symbol->cache, H5_SYMBOL_SOFT);
		return;
	}
	ck_assert_uint_eq(symbol->cache, H5_SYMBOL_SOFT);
	h5_buf_init(&text, 1000);
	SUCCEEDS(h5_local_heap_open(m->file, m->table.heap, &heap));
	SUCCEEDS(h5_local_heap_text(&heap, symbol->target, &text));
	ck_assert_uint_eq(text.size, soft_target(link.target, target));
	ck_assert_mem_eq(text.data, target, text.size);
	h5_buf_release(&text);
}

void symbol_check(struct symbol_model *m)
{
	const struct h5_symbol *symbol;
	struct h5_symbol_walk walk;
	struct h5_local_heap heap;
	struct h5_buf text, last;
	unsigned all = 0, listed = 0;
	int rc;

	for (unsigned i = 0; i < SYMBOLS; i++) {
		struct h5_symbol found;
		char name[SYMBOL_NAME];
		size_t n = symbol_name(i, name);

		if (!m->links[i].kind && i % 10)
			continue;
		rc = h5_symbol_table_lookup(m->file, &m->table, name, n, &found);
		ck_assert_int_eq(rc, m->links[i].kind ? 0 : -ENOENT);
		if (!rc)
			check_symbol(m, i, &found);
		all += !rc;
	}
	SUCCEEDS(h5_local_heap_open(m->file, m->table.heap, &heap));
	SUCCEEDS(h5_local_heap_check(&heap));
	h5_buf_init(&text, 1000);
	h5_buf_init(&last, 1000);
	rc = h5_symbol_begin(&walk, m->file, &m->table);
	while (!rc && (rc = h5_symbol_next(&walk, &symbol)) > 0) {
		text.size = 0;
		rc = h5_local_heap_text(&heap, symbol->name, &text);
		ck_assert_int_lt(h5_name_compare(last.data, last.size, text.data, text.size), 0);
		last.size = 0;
		h5_buf_add(&last, text.data, text.size);
		listed++;
	}
	SUCCEEDS(rc);
	h5_symbol_end(&walk);
	h5_buf_release(&text);
	h5_buf_release(&last);
	ck_assert_uint_eq(listed, all);
}

void symbol_save(const struct symbol_model *m, const char *path)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	for (unsigned i = 0; i < SYMBOLS; i++)
		if (m->links[i].kind)
			fprintf(f, "%u %c %u\n", i, m->links[i].kind, m->links[i].target);
	ck_assert_int_eq(fclose(f), 0);
}

void symbol_judge(struct symbol_model *m)
{
	char path[200];

	symbol_model_commit(m);
	scratch_close(&m->scratch);
	snprintf(path, sizeof path, "%s/model", m->scratch.folder);
	symbol_save(m, path);
	scratch_judge_python("tests/judge/symbol_table_judge.py same %s %s", m->scratch.path, path);
	symbol_model_open(m);
	symbol_check(m);
}
