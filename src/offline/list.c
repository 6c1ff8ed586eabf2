#include "offline/offline.h"

#include "base/buf.h"
#include "base/error.h"
#include "vfs/vfs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	AT_ONCE = 64,	    /* entries of a directory */
	DEPTH_MOST = 10000, /* of directories */
	PATH_MOST = 1 << 20,
};

/* A directory on the way from the root. */
struct level {
	struct h5_node *node; /* referenced; the root is not */
	struct h5_dir *dir;
	size_t next;	  /* entry */
	size_t path_size; /* of the path of the directory */
};

struct list {
	struct h5_vfs *vfs;
	struct h5_buf path, value;
	struct level *levels;
	size_t depth, capacity;
	enum h5_offline_result result;
};

static void complain(struct list *l, int rc)
{
	const struct h5_error *e = h5_error_last();

	fflush(stdout);
	if (e->code != rc)
		fprintf(stderr, "%.*s: %s\n", (int)l->path.size, l->path.data, strerror(-rc));
	else if (e->address == H5_UNDEF)
		fprintf(stderr, "%.*s: %s\n", (int)l->path.size, l->path.data, e->text);
	else
		fprintf(stderr, "%.*s: %s at address %" PRIu64 "\n", (int)l->path.size, l->path.data, e->text,
			e->address);
	if (rc != -ENOTSUP)
		l->result = H5_OFFLINE_DAMAGED;
	else if (l->result == H5_OFFLINE_SOUND)
		l->result = H5_OFFLINE_UNKNOWN;
}

/* What h5fs knows of the node under that name; NULL: nothing, or it is damaged, which is said. Valid until
 * the next call. */
static const char *value_of(struct list *l, struct h5_node *node, const char *name)
{
	int rc;

	l->value.size = 0;
	h5_error_clear();
	rc = h5_vfs_getxattr(l->vfs, node, name, &l->value);
	if (rc && rc != -ENODATA)
		complain(l, rc);
	if (rc)
		return NULL;
	h5_buf_byte(&l->value, 0);
	return l->value.err ? NULL : l->value.data;
}

static void print_value(struct list *l, struct h5_node *node, const char *name, const char *format)
{
	const char *value = value_of(l, node, name);

	if (value && *value)
		printf(format, value);
}

static void print_dataset(struct list *l, struct h5_node *node, const struct stat *st)
{
	const char *storage, *format;
	uint64_t stored;

	print_value(l, node, "h5fs.dtype", "  %s");
	print_value(l, node, "h5fs.shape", "  (%s)");
	print_value(l, node, "h5fs.layout", "  %s");
	print_value(l, node, "h5fs.chunks", "(%s)");
	print_value(l, node, "h5fs.filters", "  %s");
	storage = value_of(l, node, "h5fs.storage");
	stored = storage ? strtoull(storage, NULL, 10) : 0;
	if (storage)
		printf("  %" PRIu64 " bytes", stored);
	format = value_of(l, node, "h5fs.format");
	if (stored && (uint64_t)st->st_size != stored && format && !strcmp(format, "raw"))
		printf(" of %" PRIu64 "  ratio %.2f", (uint64_t)st->st_size,
		       (double)st->st_size / (double)stored);
}

static void print_path(const struct list *l)
{
	for (size_t i = 0; i < l->path.size; i++) {
		unsigned char c = (unsigned char)l->path.data[i];

		/* A name must not be able to write lines, or to the terminal, as it likes. */
		if (c < ' ' || c == 0x7f || c == '\\')
			printf("\\%03o", c);
		else
			putchar(c);
	}
}

static void print_node(struct list *l, struct h5_node *node, const struct stat *st)
{
	const char *target, *class;
	bool is_dataset;

	print_path(l);
	if (S_ISLNK(st->st_mode)) {
		if (!h5_vfs_readlink(node, &target))
			printf(" -> %s", target);
	} else if (!S_ISDIR(st->st_mode)) {
		class = value_of(l, node, "h5fs.class");
		is_dataset = class && !strcmp(class, "dataset");
		if (is_dataset)
			print_dataset(l, node, st);
		else if (class)
			printf("  %s", class);
	} else if (l->path.size > 1) {
		putchar('/');
	}
	putchar('\n');
}

static int push(struct list *l, struct h5_node *node)
{
	struct level *level;
	int rc;

	if (l->depth == DEPTH_MOST)
		return h5_fail(-ELOOP, H5_UNDEF, "too many directories one in the other");
	if (l->depth == l->capacity) {
		size_t more = l->capacity ? 2 * l->capacity : 16;
		struct level *levels = realloc(l->levels, more * sizeof *levels);

		if (!levels)
			return -ENOMEM;
		l->levels = levels;
		l->capacity = more;
	}
	level = &l->levels[l->depth];
	*level = (struct level){.node = node, .path_size = l->path.size};
	rc = h5_vfs_opendir(l->vfs, node, &level->dir);
	if (!rc)
		l->depth++;
	return rc;
}

static void pop(struct list *l)
{
	struct level *level = &l->levels[--l->depth];

	h5_vfs_closedir(level->dir);
	if (l->depth)
		h5_vfs_forget(l->vfs, level->node, 1);
}

/* Prints an entry; a directory is gone into. */
static int visit(struct list *l, const char *name, struct h5_vfs_entry *entry)
{
	struct stat st = entry->st;
	int rc = 0;

	if (l->path.size > 1)
		h5_buf_byte(&l->path, '/');
	h5_buf_text(&l->path, name);
	if (l->path.err) {
		h5_vfs_forget(l->vfs, entry->node, 1);
		return l->path.err;
	}
	if (!entry->size_known)
		rc = h5_vfs_getattr(l->vfs, entry->node, &st);
	if (rc)
		complain(l, rc);
	print_node(l, entry->node, &st);
	rc = 0;
	if (S_ISDIR(st.st_mode)) {
		rc = push(l, entry->node);
		if (!rc)
			return 0;
		complain(l, rc);
	}
	h5_vfs_forget(l->vfs, entry->node, 1);
	return rc == -ENOMEM ? rc : 0;
}

/* The next entry of the innermost directory, or out of it. */
static int step(struct list *l)
{
	struct level *level = &l->levels[l->depth - 1];
	struct h5_vfs_entry entry;
	size_t got, i = level->next;
	int rc;

	l->path.size = level->path_size;
	h5_error_clear();
	if (i == h5_vfs_dir_count(level->dir)) {
		rc = h5_vfs_dir_error(level->dir);
		if (rc)
			complain(l, rc);
		pop(l);
		return 0;
	}
	level->next++;
	rc = h5_vfs_dir_read(level->dir, i, 1, true, &entry, &got);
	if (!rc && !entry.node)
		rc = -EUCLEAN;
	if (rc) {
		complain(l, rc);
		return rc == -ENOMEM ? rc : 0;
	}
	return visit(l, h5_vfs_dir_name(level->dir, i), &entry);
}

int h5_offline_list(struct h5_vfs *vfs, enum h5_offline_result *result)
{
	struct list l = {.vfs = vfs};
	int rc;

	h5_buf_init(&l.path, PATH_MOST);
	h5_buf_init(&l.value, PATH_MOST);
	h5_buf_byte(&l.path, '/');
	rc = push(&l, h5_vfs_root(vfs));
	if (rc)
		complain(&l, rc);
	else
		puts("/");
	while (!rc && l.depth)
		rc = step(&l);
	while (l.depth)
		pop(&l);
	free(l.levels);
	h5_buf_release(&l.path);
	h5_buf_release(&l.value);
	*result = l.result;
	return rc;
}
