/* What the tests of objects, groups and attributes share: a file made by tests/fixtures/object.py, and what
 * h5py says of it. */
#ifndef H5_TESTS_OBJECTS_H
#define H5_TESTS_OBJECTS_H

#include "base/buf.h"
#include "change/open.h"
#include "object/group.h"
#include "object/object.h"
#include "store/file_set.h"
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct opened {
	struct h5_file_set *set;
	struct h5_file *file;
	uint8_t *bytes; /* of a file in memory */
	size_t size;
};

static const struct h5_file_set_options objects_options = {.block_cache = 4 << 20, .chunk_cache = 1 << 20};

static inline void objects_path(const char *name, const char *suffix, char path[512])
{
	const char *folder = getenv("H5FS_TEST_DATA");

	snprintf(path, 512, "%s/object_%s%s", folder ? folder : "tests/data", name, suffix);
}

static inline struct opened objects_open(const char *name)
{
	struct opened o = {0};
	char path[512];

	objects_path(name, ".h5", path);
	ck_assert_int_eq(h5_open_file(path, &objects_options, &o.set, NULL), 0);
	o.file = h5_file_set_root(o.set);
	return o;
}

/* The file's bytes in memory, to be damaged before objects_serve(). */
static inline struct opened objects_load(const char *name)
{
	struct opened o = {0};
	char path[512];
	FILE *f;
	long size;

	objects_path(name, ".h5", path);
	f = fopen(path, "rb");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
	size = ftell(f);
	ck_assert_int_gt(size, 0);
	rewind(f);
	o.size = (size_t)size;
	o.bytes = malloc(o.size);
	ck_assert_uint_eq(fread(o.bytes, 1, o.size, f), o.size);
	fclose(f);
	return o;
}

static inline void objects_serve(struct opened *o)
{
	ck_assert_int_eq(h5_file_set_open_memory(o->bytes, o->size, &objects_options, &o->set), 0);
	o->file = h5_file_set_root(o->set);
}

static inline void objects_close(struct opened *o)
{
	h5_file_set_close(o->set);
	free(o->bytes);
}

/* The first place of the bytes behind another one, or of all (NULL); NULL: none. With sanitizers memmem()
 * looks at all memory that is left whenever it is called. */
static inline uint8_t *objects_next(const struct opened *o, const char *bytes, size_t size, uint8_t *before)
{
	uint8_t *p = before ? before + 1 : o->bytes, *end = o->bytes + o->size;

	while (p && (size_t)(end - p) >= size && memcmp(p, bytes, size) != 0)
		p = memchr(p + 1, *bytes, (size_t)(end - p) - 1);
	return p && (size_t)(end - p) >= size ? p : NULL;
}

/* The n-th place of the bytes, NULL: none. */
static inline uint8_t *objects_find(const struct opened *o, const char *bytes, size_t size, unsigned n)
{
	uint8_t *p = NULL;

	do
		p = objects_next(o, bytes, size, p);
	while (p && n--);
	return p;
}

/* What h5py says of one object: its lines, ordered by their first word. */
struct expected {
	FILE *f;
	char *line; /* the next object's, read ahead */
	size_t capacity;
	bool end;
	uint64_t address;
	int kind;
	unsigned references;
	struct h5_buf links, orders, attributes;
};

static inline struct expected expected_open(const char *name)
{
	struct expected e = {0};
	char path[512];

	objects_path(name, ".txt", path);
	e.f = fopen(path, "r");
	ck_assert_ptr_nonnull(e.f);
	h5_buf_init(&e.links, SIZE_MAX);
	h5_buf_init(&e.orders, SIZE_MAX);
	h5_buf_init(&e.attributes, SIZE_MAX);
	e.end = getline(&e.line, &e.capacity, e.f) < 0;
	return e;
}

/* Reads what belongs to the next object; after the last one closes the file. */
static inline bool expected_next(struct expected *e)
{
	e->links.size = e->orders.size = e->attributes.size = 0;
	if (e->end) {
		h5_buf_release(&e->links);
		h5_buf_release(&e->orders);
		h5_buf_release(&e->attributes);
		free(e->line);
		fclose(e->f);
		return false;
	}
	ck_assert_int_eq(sscanf(e->line, "object %" SCNu64 " %d %u", &e->address, &e->kind, &e->references),
			 3);
	while (!(e->end = getline(&e->line, &e->capacity, e->f) < 0) && *e->line != 'o')
		h5_buf_text(*e->line == 'l' ? &e->links : &e->attributes, e->line);
	while (!e->end && !strncmp(e->line, "order", 5)) {
		h5_buf_text(&e->orders, e->line);
		e->end = getline(&e->line, &e->capacity, e->f) < 0;
	}
	return true;
}

static inline void add_hex(struct h5_buf *out, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		h5_buf_printf(out, "%02x", p[i]);
	if (!n)
		h5_buf_text(out, "-");
}

static inline void assert_text(const struct h5_buf *text, const struct h5_buf *expected)
{
	ck_assert_int_eq(text->err, 0);
	ck_assert_msg(text->size == expected->size &&
			      (!text->size || !memcmp(text->data, expected->data, text->size)),
		      "%.*s\nis not\n%.*s", (int)text->size, text->data, (int)expected->size, expected->data);
}

/* The object at the address. */
static inline const struct h5_object *object_at(const struct opened *o, uint64_t address,
						struct h5_lru_entry **ref)
{
	const struct h5_object *object;

	ck_assert_int_eq(h5_object_get(o->file, address, ref, &object), 0);
	return object;
}

/* The object that a path of groups leads to. */
static inline const struct h5_object *object_named(const struct opened *o, const char *path,
						   struct h5_lru_entry **ref)
{
	const struct h5_object *object = object_at(o, h5_file_superblock(o->file)->root, ref);

	while (*path) {
		size_t n = strcspn(path, "/");
		struct h5_link link;

		ck_assert_int_eq(h5_group_lookup(o->file, object, path, n, &link), 0);
		h5_file_put(o->file, *ref);
		object = object_at(o, link.address, ref);
		h5_link_release(&link);
		path += n + (path[n] == '/');
	}
	return object;
}

static const char *const objects_files[] = {"old", "latest", "shared", "filtered", "narrow"};
enum { OBJECTS_FILES = sizeof objects_files / sizeof *objects_files };

#endif
