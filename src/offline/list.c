#include "offline/offline.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/interrupt.h"
#include "vfs/vfs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum {
	AT_ONCE = 64,	    /* entries of a directory that are asked for at once */
	DEPTH_MOST = 10000, /* most levels of directories */
	PATH_MOST = 1 << 20,
	LINE_MOST = 1 << 24,
};

/* A directory on the way from the root. */
struct level {
	struct h5_node *node; /* referenced; the root is not */
	struct h5_dir *dir;
	size_t next;	  /* entry */
	size_t path_size; /* of the path of the directory */
};

/* A directory whose entries were listed. */
struct listed {
	uint64_t number; /* st_ino */
	char *path;	 /* owned; escaped */
	UT_hash_handle hh;
};

struct list {
	struct h5_vfs *vfs;
	struct h5_buf path, value, line;
	struct listed *listed;
	struct level *levels;
	size_t depth, capacity;
	enum h5_offline_result result;
};

static void complain(struct list *list, int rc)
{
	const struct h5_error *e = h5_error_last();
	struct h5_buf said;

	h5_buf_init(&said, LINE_MOST);
	h5_escape(&said, list->path.data, list->path.size);
	h5_buf_text(&said, ": ");
	if (e->code != rc)
		h5_buf_text(&said, strerror(-rc));
	else
		h5_escape(&said, e->text, strlen(e->text));
	if (e->code == rc && e->address != H5_UNDEF)
		h5_buf_printf(&said, " at address %" PRIu64, e->address);
	fflush(stdout);
	fprintf(stderr, "%.*s\n", (int)said.size, said.data);
	h5_buf_release(&said);
	if (rc != -ENOTSUP && rc != -EFBIG)
		list->result = H5_OFFLINE_DAMAGED;
	else if (list->result == H5_OFFLINE_SOUND)
		list->result = H5_OFFLINE_UNKNOWN;
}

/* The value of an xattr of the node, valid until the next call; NULL: it has none, or that is damaged, which
 * was reported. */
static const char *value_of(struct list *list, struct h5_node *node, const char *name)
{
	int rc;

	list->value.size = 0;
	h5_error_clear();
	rc = h5_vfs_getxattr(list->vfs, node, name, &list->value);
	if (rc && rc != -ENODATA)
		complain(list, rc);
	if (rc)
		return NULL;
	h5_buf_byte(&list->value, 0);
	return list->value.err ? NULL : list->value.data;
}

static void add_text(struct list *list, const char *before, const char *text, const char *behind)
{
	if (!text || !*text)
		return;
	h5_buf_text(&list->line, before);
	h5_escape(&list->line, text, strlen(text));
	h5_buf_text(&list->line, behind);
}

/* Adds the size and ratio of a raw dataset. Of one that is text, the size is known only after reading all of
 * it. */
static void add_ratio(struct list *list, const struct h5_vfs_entry *entry, uint64_t stored)
{
	const char *format = value_of(list, entry->node, "h5fs.format");
	struct stat st = entry->st;
	uint64_t size;

	if (!stored || !format || strcmp(format, "raw") != 0)
		return;
	if (!entry->size_known) {
		int rc = h5_vfs_getattr(list->vfs, entry->node, &st);

		if (rc) {
			complain(list, rc);
			return;
		}
	}
	size = (uint64_t)st.st_size;
	if (size != stored)
		h5_buf_printf(&list->line, " of %" PRIu64 "  ratio %.2f", size,
			      (double)size / (double)stored);
}

static void add_dataset(struct list *list, const struct h5_vfs_entry *entry)
{
	struct h5_node *node = entry->node;
	const char *storage;
	uint64_t stored;

	add_text(list, "  ", value_of(list, node, "h5fs.dtype"), "");
	add_text(list, "  (", value_of(list, node, "h5fs.shape"), ")");
	add_text(list, "  ", value_of(list, node, "h5fs.layout"), "");
	add_text(list, "(", value_of(list, node, "h5fs.chunks"), ")");
	add_text(list, "  ", value_of(list, node, "h5fs.filters"), "");
	storage = value_of(list, node, "h5fs.storage");
	if (!storage)
		return;
	stored = strtoull(storage, NULL, 10);
	h5_buf_printf(&list->line, "  %" PRIu64 " bytes", stored);
	add_ratio(list, entry, stored);
}

/* Prints the line of an entry, after complaints about it. `same`: where the same directory was listed; NULL:
 * nowhere. */
static void print_node(struct list *list, const struct h5_vfs_entry *entry, const struct listed *same)
{
	const char *target, *class;

	list->line.size = 0;
	h5_escape(&list->line, list->path.data, list->path.size);
	if (S_ISLNK(entry->st.st_mode)) {
		if (!h5_vfs_readlink(entry->node, &target))
			add_text(list, " -> ", target, "");
	} else if (!S_ISDIR(entry->st.st_mode)) {
		class = value_of(list, entry->node, "h5fs.class");
		if (class && !strcmp(class, "dataset"))
			add_dataset(list, entry);
		else
			add_text(list, "  ", class, "");
	} else {
		h5_buf_byte(&list->line, '/');
		if (same)
			h5_buf_printf(&list->line, "  as %s", same->path);
	}
	printf("%.*s\n", (int)list->line.size, list->line.data);
}

/* ---- the walk ---- */

static struct listed *find_listed(const struct list *list, const struct stat *st)
{
	uint64_t number = st->st_ino;
	struct listed *found;

	HASH_FIND(hh, list->listed, &number, sizeof number, found);
	return found;
}

/* Remembers a directory, so that its entries are listed once, even if several hard links lead to it. */
static int note_listed(struct list *list, const struct stat *st)
{
	struct listed *new = calloc(1, sizeof *new);
	struct h5_buf path;

	h5_buf_init(&path, LINE_MOST);
	h5_escape(&path, list->path.data, list->path.size);
	h5_buf_byte(&path, 0);
	if (!new || path.err) {
		free(new);
		h5_buf_release(&path);
		return -ENOMEM;
	}
	new->number = st->st_ino;
	new->path = path.data;
	HASH_ADD(hh, list->listed, number, sizeof new->number, new);
	if (!new->hh.tbl) {
		free(new->path);
		free(new);
		return -ENOMEM;
	}
	return 0;
}

static void release_listed(struct list *list)
{
	struct listed *one, *next;

	HASH_ITER(hh, list->listed, one, next)
	{
		HASH_DEL(list->listed, one);
		free(one->path);
		free(one);
	}
}

static int push(struct list *list, struct h5_node *node)
{
	struct level *level;
	int rc;

	if (list->depth == DEPTH_MOST)
		return h5_fail(-ELOOP, H5_UNDEF, "too many directories one in the other");
	rc = h5_array_reserve(&list->levels, &list->capacity, list->depth + 1, NULL);
	if (rc)
		return rc;
	level = &list->levels[list->depth];
	*level = (struct level){.node = node, .path_size = list->path.size};
	rc = h5_vfs_opendir(list->vfs, node, &level->dir);
	if (!rc)
		list->depth++;
	return rc;
}

static void pop(struct list *list)
{
	struct level *level = &list->levels[--list->depth];

	h5_vfs_closedir(level->dir);
	if (list->depth)
		h5_vfs_forget(list->vfs, level->node, 1);
}

/* Prints an entry, and goes into a directory. */
static int visit(struct list *list, const char *name, struct h5_vfs_entry *entry)
{
	bool is_directory = S_ISDIR(entry->st.st_mode);
	const struct listed *same = is_directory ? find_listed(list, &entry->st) : NULL;
	int rc = 0;

	if (list->path.size > 1)
		h5_buf_byte(&list->path, '/');
	h5_buf_text(&list->path, name);
	if (list->path.err) {
		h5_vfs_forget(list->vfs, entry->node, 1);
		return list->path.err;
	}
	print_node(list, entry, same);
	if (is_directory && !same) {
		rc = note_listed(list, &entry->st);
		if (!rc)
			rc = push(list, entry->node);
		if (!rc)
			return 0;
		complain(list, rc);
	}
	h5_vfs_forget(list->vfs, entry->node, 1);
	return rc == -ENOMEM ? rc : 0;
}

/* Visits the next entry of the innermost directory; behind the last one, goes out of it. */
static int step(struct list *list)
{
	struct level *level = &list->levels[list->depth - 1];
	struct h5_vfs_entry entry;
	size_t got, i = level->next;
	int rc;

	list->path.size = level->path_size;
	h5_error_clear();
	rc = h5_interrupt_check();
	if (rc) {
		complain(list, rc);
		return rc;
	}
	if (i == h5_vfs_dir_count(level->dir)) {
		rc = h5_vfs_dir_error(level->dir);
		if (rc)
			complain(list, rc);
		pop(list);
		return 0;
	}
	level->next++;
	rc = h5_vfs_dir_read(level->dir, i, 1, true, &entry, &got);
	if (!rc && !entry.node)
		rc = -EUCLEAN;
	if (rc) {
		complain(list, rc);
		return rc == -ENOMEM ? rc : 0;
	}
	return visit(list, h5_vfs_dir_name(level->dir, i), &entry);
}

int h5_offline_list(struct h5_vfs *vfs, enum h5_offline_result *result)
{
	struct list list = {.vfs = vfs};
	struct stat st;
	int rc;

	h5_buf_init(&list.path, PATH_MOST);
	h5_buf_init(&list.value, PATH_MOST);
	h5_buf_init(&list.line, LINE_MOST);
	h5_buf_byte(&list.path, '/');
	rc = h5_vfs_getattr(vfs, h5_vfs_root(vfs), &st);
	if (!rc)
		rc = note_listed(&list, &st);
	if (!rc)
		rc = push(&list, h5_vfs_root(vfs));
	if (rc)
		complain(&list, rc);
	else
		puts("/");
	while (!rc && list.depth)
		rc = step(&list);
	while (list.depth)
		pop(&list);
	/* It was reported that the list is not complete. */
	if (rc == -EFBIG)
		rc = 0;
	free(list.levels);
	h5_buf_release(&list.path);
	h5_buf_release(&list.value);
	h5_buf_release(&list.line);
	release_listed(&list);
	*result = list.result;
	return rc;
}
