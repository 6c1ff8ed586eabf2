/* What the caches take a value to cost is what it holds: else a file could make the mount take far more
 * memory than its budget, or none of the budget would be of use. And what a request was charged for is given
 * back when it is freed, or when a cache counts it. */
#include "base/room.h"
#include "change/open.h"
#include "scratch.h"
#include "vfs/directory.h"
#include "vfs_digest.h"
#include "vfs_scene.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdarg.h>
#include <string.h>

enum {
	KINDS_LEAST = 27, /* of values that the files have */
	KINDS_MAX = 64,
	LESS = 128, /* bytes that a value may cost less than it holds, */
	MORE = 160, /* and more */
};

/* ---- memory: the engine's calls are led here ---- */

static int64_t held;			   /* bytes that were allocated and not freed */
static unsigned long allocations, failing; /* since it was set; the one that fails, 0: none */

static bool fails(void)
{
	return failing && ++allocations == failing;
}

static void *count(void *p)
{
	held += (int64_t)malloc_usable_size(p);
	return p;
}

static void uncount(void *p)
{
	held -= (int64_t)malloc_usable_size(p);
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
char *__real_realpath(const char *path, char *resolved);
int __real_vasprintf(char **s, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
char *__wrap_realpath(const char *path, char *resolved);
int __wrap_vasprintf(char **s, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));
int __wrap_asprintf(char **s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void __wrap_free(void *p);

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : count(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : count(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
	if (fails())
		return NULL;
	uncount(p);
	return count(__real_realloc(p, n));
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	if (fails())
		return NULL;
	uncount(p);
	return count(__real_reallocarray(p, n, size));
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : count(__real_strdup(s));
}

char *__wrap_strndup(const char *s, size_t n)
{
	return fails() ? NULL : count(__real_strndup(s, n));
}

char *__wrap_realpath(const char *path, char *resolved)
{
	char *s = __real_realpath(path, resolved);

	return resolved ? s : count(s);
}

int __wrap_vasprintf(char **s, const char *format, va_list arguments)
{
	int n = fails() ? -1 : __real_vasprintf(s, format, arguments);

	if (n >= 0)
		count(*s);
	return n;
}

int __wrap_asprintf(char **s, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = __wrap_vasprintf(s, format, arguments);
	va_end(arguments);
	return n;
}

void __wrap_free(void *p)
{
	uncount(p);
	__real_free(p);
}

/* ---- charges: the linker leads these here, too, so that small ones count ---- */

static size_t charged; /* bytes that are not given back yet */

int __wrap_h5_charge_set(struct h5_charge *charge, size_t bytes);
void __wrap_h5_charge_release(struct h5_charge *charge);

int __wrap_h5_charge_set(struct h5_charge *charge, size_t bytes)
{
	charged += bytes - charge->bytes;
	charge->bytes = bytes;
	return 0;
}

void __wrap_h5_charge_release(struct h5_charge *charge)
{
	charged -= charge->bytes;
	charge->bytes = 0;
}

/* ---- loads: so are those of the caches ---- */

static int64_t nested; /* bytes that other values, and the cache itself, hold since the present load began */
static const struct h5_lru_kind *kinds[KINDS_MAX]; /* that were loaded */
static unsigned kinds_count;

struct measured {
	h5_lru_load *load;
	void *arg;
	const struct h5_lru_kind *kind;
};

static void note_kind(const struct h5_lru_kind *kind)
{
	for (unsigned i = 0; i < kinds_count; i++)
		if (kinds[i] == kind)
			return;
	ck_assert_uint_lt(kinds_count, KINDS_MAX);
	kinds[kinds_count++] = kind;
}

/* Of these the many small lists are not counted, which are less than the rest. */
static bool has_small_lists(const char *kind)
{
	return !strcmp(kind, "dataset") || !strcmp(kind, "texts of attributes") ||
	       !strcmp(kind, "global heap collection");
}

/* malloc() takes somewhat more than it is asked for. A load that drops other values leaves fewer bytes than
 * there were. */
static void check_cost(const char *kind, size_t cost, int64_t kept)
{
	ck_assert_msg(kept <= (int64_t)(cost + (has_small_lists(kind) ? cost : LESS)),
		      "%s: %jd bytes cost %zu", kind, (intmax_t)kept, cost);
	ck_assert_msg(kept < 0 || cost <= (size_t)kept + MORE, "%s: %jd bytes cost %zu", kind, (intmax_t)kept,
		      cost);
}

static int load_measured(void *arg, void **value, size_t *cost)
{
	const struct measured *m = arg;
	int64_t before = held, outer = nested, kept;
	int rc;

	nested = 0;
	rc = m->load(m->arg, value, cost);
	kept = held - before - nested;
	nested = outer;
	if (!rc && !failing) {
		note_kind(m->kind);
		check_cost(m->kind->name, *cost, kept);
	}
	return rc;
}

typedef int get_value(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg,
		      struct h5_lru_entry **entry);
get_value __real_h5_lru_get, __wrap_h5_lru_get, __real_h5_lru_try, __wrap_h5_lru_try;

static int get_measured(get_value *get, struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load,
			void *arg, struct h5_lru_entry **entry)
{
	struct measured m = {load, arg, key->kind};
	int64_t before = held;
	int rc = get(lru, key, load_measured, &m, entry);

	nested += held - before;
	return rc;
}

int __wrap_h5_lru_get(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg,
		      struct h5_lru_entry **entry)
{
	return get_measured(__real_h5_lru_get, lru, key, load, arg, entry);
}

int __wrap_h5_lru_try(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg,
		      struct h5_lru_entry **entry)
{
	return get_measured(__real_h5_lru_try, lru, key, load, arg, entry);
}

typedef void put_value(struct h5_lru *lru, struct h5_lru_entry *entry, uint64_t used, uint64_t all);
put_value __real_h5_lru_put_used, __wrap_h5_lru_put_used;

void __wrap_h5_lru_put_used(struct h5_lru *lru, struct h5_lru_entry *entry, uint64_t used, uint64_t all)
{
	int64_t before = held;

	__real_h5_lru_put_used(lru, entry, used, all);
	nested += held - before;
}

/* Its call of the other one is inside of a file, so that the linker does not wrap it. */
typedef void put_unused(struct h5_lru *lru, struct h5_lru_entry *entry);
put_unused __real_h5_lru_put, __wrap_h5_lru_put;

void __wrap_h5_lru_put(struct h5_lru *lru, struct h5_lru_entry *entry)
{
	int64_t before = held;

	__real_h5_lru_put(lru, entry);
	nested += held - before;
}

typedef void add_value(struct h5_lru *lru, const struct h5_lru_key *key, void *value, size_t cost);
add_value __real_h5_lru_add, __wrap_h5_lru_add;

/* The value was made within the load, and is another's from now on. */
void __wrap_h5_lru_add(struct h5_lru *lru, const struct h5_lru_key *key, void *value, size_t cost)
{
	int64_t before = held;

	__real_h5_lru_add(lru, key, value, cost);
	nested += held - before + (int64_t)cost;
}

/* ---- all that there is ---- */

static void read_file(struct vfs_scene *scene, const char *path)
{
	static char piece[1 << 16];
	struct h5_handle *handle;
	struct h5_node *node;
	uint64_t offset = 0;
	size_t got;

	SUCCEEDS(vfs_scene_find(scene, path, &node));
	SUCCEEDS(h5_vfs_open_file(scene->vfs, node, O_RDONLY, &handle));
	do {
		SUCCEEDS(h5_vfs_read(handle, offset, piece, sizeof piece, &got));
		offset += got;
	} while (got);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene->vfs, node, 1);
	ck_assert_msg(!charged, "%s: %zu bytes", path, charged);
}

/* ---- nothing is left ---- */

static void read_all(const char *fixture)
{
	struct vfs_scene scene;
	uint64_t digest;

	vfs_scene_open_in_place(&scene, fixture);
	SUCCEEDS(vfs_digest(scene.vfs, &digest));
	ck_assert_uint_eq(charged, 0);
	vfs_scene_close(&scene);
}

static void write_file(struct vfs_scene *scene, const char *path, const void *data, size_t n)
{
	struct h5_handle *handle;
	struct h5_node *node;
	uint64_t stale;
	size_t written;

	SUCCEEDS(vfs_scene_find(scene, path, &node));
	SUCCEEDS(h5_vfs_open_file(scene->vfs, node, O_WRONLY, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, data, n, H5_WRITE_APPEND, &written, &stale));
	ck_assert_uint_eq(written, n);
	SUCCEEDS(h5_vfs_flush(handle));
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene->vfs, node, 1);
}

static void make_files(struct vfs_scene *scene)
{
	static const char bytes[3000];
	struct h5_node *root = h5_vfs_root(scene->vfs);
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	uint64_t stale;
	size_t written;

	SUCCEEDS(h5_vfs_mkdir(scene->vfs, root, "made", &entry));
	h5_vfs_forget(scene->vfs, entry.node, 1);
	SUCCEEDS(h5_vfs_create(scene->vfs, root, "new", O_RDWR | O_CREAT, &entry, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, bytes, sizeof bytes, H5_WRITE_AT, &written, &stale));
	SUCCEEDS(h5_vfs_flush(handle));
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene->vfs, entry.node, 1);
	SUCCEEDS(h5_vfs_symlink(scene->vfs, "made", root, "symlink", &entry));
	h5_vfs_forget(scene->vfs, entry.node, 1);
}

/* Of each kind of change one, and a commit between them. */
static void change_all(const char *fixture)
{
	static const char row[160];
	struct vfs_scene scene;
	struct h5_node *root;

	vfs_scene_open(&scene, fixture);
	root = h5_vfs_root(scene.vfs);
	make_files(&scene);
	write_file(&scene, "appendable", row, sizeof row);
	write_file(&scene, ".h5fs/lines/many", "7\n8\n", 4);
	SUCCEEDS(vfs_scene_set(&scene, "few", "user.new", "[1,2,3]"));
	SUCCEEDS(vfs_scene_set(&scene, "several", "user.text", "other words"));
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	SUCCEEDS(vfs_scene_set(&scene, "many", "h5fs.shape", "100"));
	SUCCEEDS(h5_vfs_rename(scene.vfs, root, "new", root, "newer", 0));
	SUCCEEDS(h5_vfs_rename(scene.vfs, root, "made", root, "moved", 0));
	SUCCEEDS(h5_vfs_unlink(scene.vfs, root, "single"));
	SUCCEEDS(h5_vfs_unlink(scene.vfs, root, "several"));
	SUCCEEDS(h5_vfs_rmdir(scene.vfs, root, "moved"));
	vfs_scene_close(&scene);
}

static unsigned count_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* After the mount all memory and all files are given back. What the process keeps once is there after the
 * first time. */
START_TEST(nothing_is_left)
{
	static void (*const runs[])(const char *fixture) = {read_all, change_all};
	static const char *const files[] = {"read_faults/new.h5", "read_faults/old.h5"};

	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
		for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
			int64_t before;
			unsigned descriptors;

			runs[i](files[f]);
			before = held;
			descriptors = count_descriptors();
			runs[i](files[f]);
			ck_assert_msg(held == before, "%s, %zu: %jd bytes", files[f], i,
				      (intmax_t)(held - before));
			ck_assert_uint_eq(count_descriptors(), descriptors);
			ck_assert_uint_eq(charged, 0);
		}
}
END_TEST

static void read_as_it_can(struct vfs_scene *scene, const char *path)
{
	static char piece[1 << 16];
	struct h5_handle *handle;
	struct h5_node *node;
	struct h5_buf names;
	size_t got;

	if (vfs_scene_find(scene, path, &node))
		return;
	if (!h5_vfs_open_file(scene->vfs, node, O_RDONLY, &handle)) {
		(void)h5_vfs_read(handle, 0, piece, sizeof piece, &got);
		h5_vfs_close_file(handle);
	}
	h5_buf_init(&names, SIZE_MAX);
	(void)h5_vfs_listxattr(scene->vfs, node, &names);
	h5_buf_release(&names);
	h5_vfs_forget(scene->vfs, node, 1);
}

/* A mount in which the n-th allocation fails. False: there are not so many. */
static bool mount_and_fail(const char *file, const char *path, unsigned long n)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20,
						    .chunk_cache = 1 << 20,
						    .external = H5_EXTERNAL_BENEATH,
						    .lock = H5_LOCK_ALWAYS};
	const struct h5_vfs_options vfs = {.file_fd = -1, .url = "file:///whole"};
	struct vfs_scene scene = {.in_place = true};
	int rc;

	scratch_fixture(file, scene.path);
	allocations = 0;
	failing = n;
	rc = h5_open_file(scene.path, &options, &scene.set, NULL);
	if (!rc)
		rc = h5_vfs_open(scene.set, &vfs, &scene.vfs);
	if (!rc)
		read_as_it_can(&scene, path);
	failing = 0;
	ck_assert_msg(!charged, "%s, %lu: %zu bytes", file, n, charged);
	h5_vfs_close(scene.vfs);
	h5_file_set_close(scene.set);
	return allocations >= n;
}

/* Nor is anything left if an allocation fails, wherever. */
START_TEST(nothing_is_left_of_a_failure)
{
	static const char *const cases[][2] = {
		{"read_faults/new.h5", "appendable"},
		{"read_faults/old.h5", "many"},
		{"read_faults/new.h5", "virtual"},
		{"read_faults/new.h5", "links/file"},
		{"read_faults/new.h5", "records"},
		{"read_faults/new.h5", "few"},
		{"read_faults/new.h5", ".h5fs/json/twice.json"},
		{"read_faults/new.h5", ".h5fs/attrs/few/long"},
		{"read_faults/old.h5", ".h5fs/zarr/words/.zattrs"},
		{"read_faults/old.h5", ".h5fs/png/picture.png"},
		{"read_faults/old.h5", ".h5fs/png/stack/0001.png"},
		{"read_faults/old.h5", ".h5fs/csv/stack/0002.csv"},
		{"read_faults/old.h5", ".h5fs/svg/measured.svg"},
		{"read_faults/chunks.h5", ".h5fs/kerchunk.json"},
		{"read_faults/family%05d.h5", "numbers"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t before;

		(void)mount_and_fail(cases[i][0], cases[i][1], ULONG_MAX);
		before = held;
		for (unsigned long n = 1; mount_and_fail(cases[i][0], cases[i][1], n); n++)
			ck_assert_msg(held == before, "%s, %s, %lu: %jd bytes", cases[i][0], cases[i][1], n,
				      (intmax_t)(held - before));
	}
}
END_TEST

/* Changes of a mount for writing, as far as they succeed. */
static void change_as_it_can(struct vfs_scene *scene, unsigned what)
{
	struct h5_node *root = h5_vfs_root(scene->vfs), *node;
	struct h5_vfs_entry entry = {0};
	struct h5_handle *handle;
	uint64_t stale;
	size_t written;

	switch (what) {
	case 0:
		if (!h5_vfs_mkdir(scene->vfs, root, "made", &entry) && entry.node)
			h5_vfs_forget(scene->vfs, entry.node, 1);
		(void)h5_vfs_rename(scene->vfs, root, "made", root, "moved", 0);
		break;
	case 1:
		(void)vfs_scene_set(scene, "several", "user.text", "other words");
		(void)vfs_scene_set(scene, "few", "user.new", "[1,2,3]");
		break;
	case 2:
		(void)h5_vfs_unlink(scene->vfs, root, "several");
		(void)h5_vfs_unlink(scene->vfs, root, "appendable");
		break;
	default:
		if (vfs_scene_find(scene, what == 3 ? "appendable" : "lines", &node))
			return;
		if (!h5_vfs_open_file(scene->vfs, node, O_WRONLY | (what == 3 ? 0 : O_TRUNC), &handle)) {
			(void)h5_vfs_write(handle, 0, "1234\n", 5, H5_WRITE_APPEND, &written, &stale);
			(void)h5_vfs_flush(handle);
			h5_vfs_close_file(handle);
		}
		h5_vfs_forget(scene->vfs, node, 1);
	}
}

static bool change_and_fail(const char *file, unsigned what, unsigned long n)
{
	struct vfs_scene scene;

	vfs_scene_open(&scene, file);
	allocations = 0;
	failing = n;
	change_as_it_can(&scene, what);
	(void)h5_vfs_finish(scene.vfs);
	failing = 0;
	ck_assert_msg(!charged, "%s, %lu: %zu bytes", file, n, charged);
	h5_vfs_close(scene.vfs);
	h5_file_set_close(scene.set);
	return allocations >= n;
}

START_TEST(nothing_is_left_of_a_failing_change)
{
	static const char *const files[] = {"read_faults/new.h5", "read_faults/old.h5"};
	enum { CHANGES = 5 };

	for (unsigned what = 0; what < CHANGES; what++) {
		int64_t before;

		(void)change_and_fail(files[_i], what, ULONG_MAX);
		before = held;
		for (unsigned long n = 1; change_and_fail(files[_i], what, n); n++)
			ck_assert_msg(held == before, "%s, %u, %lu: %jd bytes", files[_i], what, n,
				      (intmax_t)(held - before));
	}
}
END_TEST

START_TEST(costs_are_what_is_held)
{
	static const char *const files[] = {"read_faults/new.h5", "read_faults/old.h5"};
	static const char *const views[] = {
		".h5fs/csv/appendable.csv", ".h5fs/csv/records.csv",  ".h5fs/json/twice.json",
		".h5fs/lines/twice",	    ".h5fs/png/picture.png",  ".h5fs/attrs/few/long",
		".h5fs/attrs/several/a01",  ".h5fs/zarr/words/0",     ".h5fs/zarr/words/.zattrs",
		".h5fs/zarr/.zmetadata",    ".h5fs/kerchunk.json",    ".h5fs/png/stack/0001.png",
		".h5fs/csv/stack/0002.csv", ".h5fs/svg/measured.svg",
	};
	struct vfs_scene scene;
	uint64_t digest;

	for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
		vfs_scene_open_in_place(&scene, files[f]);
		SUCCEEDS(vfs_digest(scene.vfs, &digest));
		for (size_t i = 0; i < sizeof views / sizeof *views; i++)
			read_file(&scene, views[i]);
		vfs_scene_close(&scene);
	}
	/* With pipelines for the sections of a chunk. */
	vfs_scene_open_in_place(&scene, "structured_many_values.h5");
	read_file(&scene, "sparse");
	vfs_scene_close(&scene);
	ck_assert_uint_ge(kinds_count, KINDS_LEAST);
}
END_TEST

/* What the texts of a listing hold, of links and of other names, is charged. */
START_TEST(texts_of_a_listing)
{
	enum { LINKS = 100, NAMES = 200 };
	const struct h5_link link = {.name = "name",
				     .name_size = 4,
				     .target = "/there",
				     .target_size = 6,
				     .file = "other.h5",
				     .file_size = 8};
	struct h5_dir_list list = {0};
	size_t n = 0;

	for (unsigned i = 0; i < LINKS; i++) {
		SUCCEEDS(h5_dir_list_add_link(&list, &link));
		n += sizeof "name" + 6 + 8;
		ck_assert_uint_ge(list.text_charge.bytes, n);
	}
	for (unsigned i = 0; i < NAMES; i++) {
		SUCCEEDS(h5_dir_list_add(&list, "another", &(struct h5_entity){0}));
		n += sizeof "another";
		ck_assert_uint_ge(list.text_charge.bytes, n);
	}
	ck_assert_uint_le(list.text_charge.bytes, n + n / 2);
	h5_dir_list_release(&list);
	ck_assert_uint_eq(charged, 0);
}
END_TEST

UNIT_MAIN_LOOPS("memory", {costs_are_what_is_held, 1}, {nothing_is_left, 1},
		{nothing_is_left_of_a_failure, 1}, {nothing_is_left_of_a_failing_change, 2},
		{texts_of_a_listing, 1})
