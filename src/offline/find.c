/* Finds a path of the tree, as the kernel finds it in a mount. */
#include "offline/walk.h"

#include "base/array.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "offline/stop.h"

#include <stdlib.h>
#include <string.h>

enum {
	LINKS_MOST = 40, /* symbolic links on the way, as for the kernel */
	PATH_MOST = 1 << 20,
};

static bool is_unwanted(void *vfs)
{
	(void)vfs;
	return h5_stop_signal();
}

static uint64_t work_limit(void *vfs)
{
	return h5_vfs_work_limit(vfs);
}

void h5_walk_request(struct h5_vfs *vfs)
{
	h5_error_clear();
	h5_interrupt_begin(is_unwanted, vfs);
	h5_interrupt_bound(work_limit);
}

void h5_walk_forget(struct h5_vfs *vfs, struct h5_node *node)
{
	if (node != h5_vfs_root(vfs))
		h5_vfs_forget(vfs, node, 1);
}

/* The way to the place that was reached: a node for each name, and the names. */
struct way {
	struct h5_vfs *vfs;
	struct h5_buf *text;
	struct place {
		struct h5_vfs_entry entry; /* its node is referenced */
		size_t before;		   /* size of the text without its name */
	} * places;			   /* the first one is the root */
	size_t count, capacity;
	unsigned links;
};

static int go_down(struct way *way, const char *name, const struct h5_vfs_entry *entry)
{
	int rc = h5_array_reserve(&way->places, &way->capacity, way->count + 1, NULL);

	if (rc) {
		h5_walk_forget(way->vfs, entry->node);
		return rc;
	}
	way->places[way->count++] = (struct place){*entry, way->text->size};
	if (*name && way->text->size > 1)
		h5_buf_byte(way->text, '/');
	h5_buf_text(way->text, name);
	return way->text->err;
}

static void go_up(struct way *way)
{
	struct place *last = &way->places[--way->count];

	way->text->size = last->before;
	h5_walk_forget(way->vfs, last->entry.node);
}

/* Puts the target of a link in the place of its name: before what is left of the path. */
static int follow(struct way *way, const struct h5_vfs_entry *entry, char **path, size_t left_at)
{
	const char *target;
	char *longer;
	size_t n, left = strlen(*path + left_at) + 1, slash = (*path)[left_at - 1] == '/';
	int rc = ++way->links > LINKS_MOST ? -ELOOP : h5_vfs_readlink(entry->node, &target);

	if (rc)
		return rc;
	n = strlen(target);
	if (n + slash + left >= PATH_MOST)
		return -ENAMETOOLONG;
	longer = malloc(n + slash + left);
	if (!longer)
		return -ENOMEM;
	memcpy(longer, target, n);
	if (slash)
		longer[n] = '/';
	memcpy(longer + n + slash, *path + left_at, left);
	free(*path);
	*path = longer;
	return 0;
}

/* Looks a name up. If it is a link, changes the path; *at is where what is left of that begins. */
static int look_up(struct way *way, const char *name, char **path, size_t *at)
{
	struct h5_vfs_entry *here = &way->places[way->count - 1].entry, entry;
	int rc;

	if (!S_ISDIR(here->st.st_mode))
		return -ENOTDIR;
	if (!strcmp(name, ".."))
		return way->count > 1 ? (go_up(way), 0) : 0;
	if (!*name || !strcmp(name, "."))
		return 0;
	h5_walk_request(way->vfs);
	rc = h5_vfs_lookup(way->vfs, here->node, name, &entry);
	if (rc || !S_ISLNK(entry.st.st_mode))
		return rc ? rc : go_down(way, name, &entry);
	rc = follow(way, &entry, path, *at);
	*at = 0;
	h5_vfs_forget(way->vfs, entry.node, 1);
	return rc;
}

/* Goes along the path, which may become another one. */
static int go(struct way *way, char **path)
{
	size_t at = 0;
	int rc = 0;

	while (!rc && (*path)[at]) {
		size_t n = strcspn(*path + at, "/");
		char *name = strndup(*path + at, n);

		at += n + ((*path)[at + n] == '/');
		rc = name ? look_up(way, name, path, &at) : -ENOMEM;
		free(name);
	}
	/* Only a directory may have a slash behind its name. */
	if (!rc && at && (*path)[at - 1] == '/' && !S_ISDIR(way->places[way->count - 1].entry.st.st_mode))
		rc = -ENOTDIR;
	return rc;
}

int h5_walk_find(struct h5_vfs *vfs, const char *path, struct h5_vfs_entry *entry, struct h5_buf *text)
{
	struct way way = {.vfs = vfs, .text = text};
	struct h5_vfs_entry root = {.node = h5_vfs_root(vfs)};
	char *copy = strdup(path);
	int rc = copy ? 0 : -ENOMEM;

	h5_walk_request(vfs);
	if (!rc)
		rc = h5_vfs_getattr(vfs, root.node, &root.st);
	if (!rc)
		rc = go_down(&way, "", &root);
	h5_buf_byte(text, '/');
	if (!rc)
		rc = go(&way, &copy);
	h5_buf_byte(text, 0);
	rc = rc ? rc : text->err;
	if (!rc)
		*entry = way.places[--way.count].entry;
	while (way.count)
		h5_walk_forget(vfs, way.places[--way.count].entry.node);
	free(way.places);
	free(copy);
	return rc;
}
