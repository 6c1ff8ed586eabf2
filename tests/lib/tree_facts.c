#include "tree_facts.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/lookup3.h"
#include "unit.h"
#include "vfs/vfs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OBJECTS_MAX = 300,
	DEPTH_MAX = 6,
	READ_MAX = 1 << 16, /* bytes of a file */
	PIECE = 1 << 12,
	ENTRIES = 16,	/* of a directory that are asked for at once */
	SHORT = 64,	/* bytes of a value that are told as they are */
	CHECKS = 20000, /* that one request is granted */
};

struct walk {
	struct h5_vfs *vfs;
	struct tree_facts *facts;
	unsigned objects;
};

/* A request's work is bounded by how often it asks whether it shall go on; what does not ask has no end here,
 * either. */
static bool is_used_up(void *arg)
{
	return !--*(unsigned *)arg;
}

static void begin_request(void)
{
	static unsigned checks;
	/* Since long ago: a second is granted to none. */
	const struct h5_interrupt request = {.ask = is_used_up, .arg = &checks};

	checks = CHECKS;
	h5_error_clear();
	h5_interrupt_set(&request);
}

static void add_bytes(struct h5_buf *out, const void *data, size_t n)
{
	const uint8_t *p = data;

	if (n > SHORT) {
		h5_buf_printf(out, "%zu bytes, %08" PRIx32, n, h5_lookup3(data, n, 0));
		return;
	}
	for (size_t i = 0; i < n; i++)
		h5_buf_printf(out, p[i] > ' ' && p[i] < 127 && p[i] != '\\' ? "%c" : "\\%02x", p[i]);
}

/* A fact: key, NUL, value, NUL. */
static void begin_fact(struct walk *w, const char *path, const char *what)
{
	add_bytes(&w->facts->text, path, strlen(path));
	h5_buf_printf(&w->facts->text, " %s", what);
	h5_buf_byte(&w->facts->text, 0);
	w->facts->count++;
}

static void add_error(struct walk *w, const char *path, const char *what, int rc)
{
	begin_fact(w, path, what);
	h5_buf_printf(&w->facts->text, "!%d", -rc);
	h5_buf_byte(&w->facts->text, 0);
}

static void add_fact(struct walk *w, const char *path, const char *what, const void *data, size_t n)
{
	begin_fact(w, path, what);
	add_bytes(&w->facts->text, data, n);
	h5_buf_byte(&w->facts->text, 0);
}

static void add_number(struct walk *w, const char *path, const char *what, uint64_t number)
{
	begin_fact(w, path, what);
	h5_buf_printf(&w->facts->text, "%" PRIu64, number);
	h5_buf_byte(&w->facts->text, 0);
}

/* ---- attributes and properties ---- */

static void get_xattr(struct walk *w, struct h5_node *node, const char *path, const char *name)
{
	struct h5_buf value;
	char what[300];
	int rc;

	begin_request();
	h5_buf_init(&value, SIZE_MAX);
	rc = h5_vfs_getxattr(w->vfs, node, name, &value);
	snprintf(what, sizeof what, "xattr %s", name);
	if (rc == -ENODATA)
		add_fact(w, path, what, "none", 4);
	else if (rc)
		add_error(w, path, what, rc);
	else
		add_fact(w, path, what, value.data, value.size);
	h5_buf_release(&value);
}

static void list_xattrs(struct walk *w, struct h5_node *node, const char *path)
{
	static const char *const own[] = {"h5fs.class",	   "h5fs.dtype",  "h5fs.type",	  "h5fs.shape",
					  "h5fs.maxshape", "h5fs.layout", "h5fs.chunks",  "h5fs.index",
					  "h5fs.filters",  "h5fs.fill",	  "h5fs.storage", "h5fs.format",
					  "h5fs.mtime",	   "h5fs.info"};
	struct h5_buf names;
	size_t count = 0;
	int rc;

	begin_request();
	h5_buf_init(&names, SIZE_MAX);
	rc = h5_vfs_listxattr(w->vfs, node, &names);
	for (size_t at = 0; at < names.size; at += strlen(names.data + at) + 1) {
		char raw[300];

		get_xattr(w, node, path, names.data + at);
		snprintf(raw, sizeof raw, "h5fs.raw.%s", names.data + at + strlen("user."));
		get_xattr(w, node, path, raw);
		snprintf(raw, sizeof raw, "h5fs.type.%s", names.data + at + strlen("user."));
		get_xattr(w, node, path, raw);
		count++;
	}
	if (rc)
		add_error(w, path, "xattrs", rc);
	else
		add_number(w, path, "xattrs", count);
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		get_xattr(w, node, path, own[i]);
	h5_buf_release(&names);
}

/* ---- contents ---- */

static void read_pieces(struct walk *w, struct h5_handle *handle, const char *path)
{
	static char buf[PIECE];

	for (unsigned at = 0; at < READ_MAX; at += PIECE) {
		char what[32];
		size_t got;
		int rc;

		begin_request();
		rc = h5_vfs_read(handle, at, buf, sizeof buf, &got);
		snprintf(what, sizeof what, "bytes %u", at);
		if (rc)
			add_error(w, path, what, rc);
		else if (got || !at)
			add_fact(w, path, what, buf, got);
		if (!rc && got < sizeof buf)
			return;
	}
}

/* Where holes are is advice: it only must end. */
static void seek(struct h5_handle *handle)
{
	uint64_t at = 0;

	for (unsigned i = 0; i < 8; i++) {
		begin_request();
		if (h5_vfs_seek(handle, at, i % 2, &at))
			return;
	}
}

static int read_file(struct walk *w, struct h5_node *node, const char *path)
{
	struct h5_handle *handle;
	int rc;

	begin_request();
	rc = h5_vfs_open_file(w->vfs, node, O_RDONLY, &handle);
	if (rc) {
		add_error(w, path, "open", rc);
		return rc;
	}
	read_pieces(w, handle, path);
	seek(handle);
	h5_vfs_close_file(handle);
	return 0;
}

static void visit(struct walk *w, struct h5_node *node, mode_t mode, const char *path, unsigned depth);

static void visit_child(struct walk *w, const char *path, const char *name, const struct h5_vfs_entry *entry,
			unsigned depth)
{
	char below[PATH_MAX];

	if (snprintf(below, sizeof below, "%s/%s", path, name) < (int)sizeof below)
		visit(w, entry->node, entry->st.st_mode, below, depth + 1);
	h5_vfs_forget(w->vfs, entry->node, 1);
}

static int list_directory(struct walk *w, struct h5_node *node, const char *path, unsigned depth)
{
	struct h5_vfs_entry entries[ENTRIES];
	struct h5_dir *dir;
	size_t count, got;
	int rc;

	begin_request();
	rc = h5_vfs_opendir(w->vfs, node, &dir);
	if (rc) {
		add_error(w, path, "names", rc);
		return rc;
	}
	count = h5_vfs_dir_count(dir);
	for (size_t at = 0; at < count && !rc && w->objects < OBJECTS_MAX && depth < DEPTH_MAX; at += got) {
		begin_request();
		rc = h5_vfs_dir_read(dir, at, count - at < ENTRIES ? count - at : ENTRIES, true, entries,
				     &got);
		for (size_t i = 0; i < got && !rc; i++)
			visit_child(w, path, h5_vfs_dir_name(dir, at + i), &entries[i], depth);
	}
	if (!rc)
		rc = h5_vfs_dir_error(dir);
	h5_vfs_closedir(dir);
	if (rc)
		add_error(w, path, "names", rc);
	else
		add_number(w, path, "names", count);
	return rc;
}

static void visit(struct walk *w, struct h5_node *node, mode_t mode, const char *path, unsigned depth)
{
	const char *target;
	struct stat st;
	int rc = 0;

	w->objects++;
	begin_request();
	if (S_ISLNK(mode)) {
		rc = h5_vfs_readlink(node, &target);
		if (!rc)
			add_fact(w, path, "target", target, strlen(target));
	} else {
		list_xattrs(w, node, path);
		rc = S_ISDIR(mode) ? list_directory(w, node, path, depth) : read_file(w, node, path);
	}
	begin_request();
	/* What is damaged has a name and no size. */
	if (!rc)
		rc = h5_vfs_getattr(w->vfs, node, &st);
	if (rc) {
		add_error(w, path, "stat", rc);
		return;
	}
	add_number(w, path, "type", st.st_mode);
	add_number(w, path, "size", (uint64_t)st.st_size);
	add_number(w, path, "nlink", st.st_nlink);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct tree_fact *)a)->key, ((const struct tree_fact *)b)->key);
}

static void sort(struct tree_facts *facts)
{
	const char *p = facts->text.data;

	ck_assert_int_eq(facts->text.err, 0);
	facts->facts = calloc(facts->count + 1, sizeof *facts->facts);
	for (size_t i = 0; i < facts->count; i++) {
		facts->facts[i].key = p;
		p += strlen(p) + 1;
		facts->facts[i].value = p;
		p += strlen(p) + 1;
	}
	qsort(facts->facts, facts->count, sizeof *facts->facts, by_key);
}

void tree_facts_gather(const void *bytes, size_t size, struct tree_facts *facts)
{
	const struct h5_file_set_options set_options = {
		.block_cache = 1 << 20, .chunk_cache = 1 << 20, .external = H5_EXTERNAL_NONE};
	const struct h5_vfs_options vfs_options = {0};
	struct walk w = {.facts = facts};
	struct h5_file_set *set = NULL;
	int rc;

	*facts = (struct tree_facts){0};
	h5_buf_init(&facts->text, SIZE_MAX);
	begin_request();
	rc = h5_file_set_open_memory(bytes, size, &set_options, &set);
	if (!rc)
		rc = h5_vfs_open(set, &vfs_options, &w.vfs);
	if (rc)
		add_error(&w, "", "mount", rc);
	else
		visit(&w, h5_vfs_root(w.vfs), S_IFDIR, "", 0);
	h5_vfs_close(w.vfs);
	if (set)
		h5_file_set_close(set);
	sort(facts);
}

void tree_facts_release(struct tree_facts *facts)
{
	h5_buf_release(&facts->text);
	free(facts->facts);
	facts->facts = NULL;
	facts->count = 0;
}

const struct tree_fact *tree_facts_wrong(const struct tree_facts *facts, const struct tree_facts *truth)
{
	for (size_t i = 0; i < facts->count; i++) {
		const struct tree_fact *fact = &facts->facts[i], *good;

		if (*fact->value == '!')
			continue;
		good = bsearch(fact, truth->facts, truth->count, sizeof *fact, by_key);
		if (!good || strcmp(good->value, fact->value))
			return fact;
	}
	return NULL;
}

const struct tree_fact *tree_facts_failed(const struct tree_facts *facts, int error)
{
	char value[16];

	snprintf(value, sizeof value, "!%d", error);
	for (size_t i = 0; i < facts->count; i++)
		if (!strcmp(facts->facts[i].value, value))
			return &facts->facts[i];
	return NULL;
}
