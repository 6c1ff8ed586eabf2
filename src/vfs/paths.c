/* From the address of an object to a path that leads to it in the mount. References are shown as such paths.
 *
 * The map has one of the shortest paths of each object of the mounted file. It is made by a walk over all
 * groups when it is first needed. Only hard links count. */
#include "vfs/private.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/wait.h"
#include "object/path.h"
#include "vfs/name.h"
#include "vfs/paths.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct known {
	uint64_t address;
	const struct known *parent; /* NULL: the root */
	struct known *next;	    /* in the queue of the walk */
	UT_hash_handle hh;
	char name[]; /* escaped */
};

struct h5_path_map {
	struct known *table;
	int unread; /* why a group could not be read at that time; 0: all were read */
};

struct walk {
	struct h5_path_map *map;
	struct known *at;    /* the group whose links are added */
	struct known **tail; /* of the queue */
};

static struct known *add(struct walk *walk, uint64_t address, const char *name)
{
	struct known *k = malloc(sizeof *k + strlen(name) + 1);

	if (!k)
		return NULL;
	memset(k, 0, sizeof *k);
	k->address = address;
	k->parent = walk->at;
	strcpy(k->name, name);
	HASH_ADD(hh, walk->map->table, address, sizeof k->address, k);
	if (!k->hh.tbl) {
		free(k);
		return NULL;
	}
	*walk->tail = k;
	walk->tail = &k->next;
	return k;
}

static int add_link(struct walk *walk, const struct h5_link *link)
{
	char name[H5_NAME_MAX + 1];
	struct known *k;

	if (link->type != H5_LINK_HARD)
		return 0;
	HASH_FIND(hh, walk->map->table, &link->address, sizeof link->address, k);
	if (k)
		return 0;
	h5_name_escape(link->name, link->name_size, name);
	return add(walk, link->address, name) ? 0 : -ENOMEM;
}

static int add_links(struct h5_file *file, const struct h5_object *group, struct walk *walk)
{
	const struct h5_link *link;
	struct h5_link_walk links;
	int rc = h5_link_begin(&links, file, group, H5_NAMES_SORTED);

	while (!rc && (rc = h5_link_next(&links, &link)) > 0)
		rc = add_link(walk, link);
	h5_link_end(&links);
	return rc;
}

/* A damaged object is in the map, but its links are not, nor are those of one that cannot be read now. */
static int add_group(struct h5_file *file, struct walk *walk)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, walk->at->address, &ref, &object);

	if (!rc) {
		if (object->kind == H5_OBJECT_GROUP)
			rc = add_links(file, object, walk);
		h5_file_put(file, ref);
	}
	if (h5_is_own(rc))
		return rc;
	if (h5_is_passing(rc))
		walk->map->unread = rc;
	return 0;
}

void h5_paths_free(struct h5_path_map *map)
{
	struct known *k, *next;

	if (!map)
		return;
	HASH_ITER(hh, map->table, k, next)
	{
		HASH_DEL(map->table, k);
		free(k);
	}
	free(map);
}

static int make_map(const struct h5_vfs *vfs, struct h5_path_map **out)
{
	struct h5_file *file = vfs->root->entity.file;
	struct h5_path_map *map = calloc(1, sizeof *map);
	struct known *queue = NULL;
	struct walk walk = {.map = map, .tail = &queue};
	int rc = map && add(&walk, vfs->root->entity.address, "") ? 0 : -ENOMEM;

	for (struct known *k = queue; k && !rc; k = k->next) {
		walk.at = k;
		rc = h5_interrupt_check();
		if (!rc)
			rc = add_group(file, &walk);
	}
	if (rc) {
		h5_paths_free(map);
		return rc;
	}
	*out = map;
	return 0;
}

/* Names of a path that can be opened: each takes at least a byte and a slash. */
enum { NAMES_MAX = PATH_MAX / 2 };

/* -ENOENT: the path is too long to be opened. */
static int add_path(const struct known *k, struct h5_buf *path)
{
	const struct known *chain[NAMES_MAX];
	unsigned n = 0;

	for (; k->parent && n < NAMES_MAX; k = k->parent)
		chain[n++] = k;
	if (k->parent)
		return -ENOENT;
	if (!n)
		h5_buf_byte(path, '/');
	while (n) {
		h5_buf_byte(path, '/');
		h5_buf_text(path, chain[--n]->name);
	}
	return path->err;
}

/* With map_lock. */
static int find_known(struct h5_vfs *vfs, uint64_t address, struct known **k)
{
	int rc = vfs->map ? 0 : make_map(vfs, &vfs->map);

	*k = NULL;
	if (!rc)
		HASH_FIND(hh, vfs->map->table, &address, sizeof address, *k);
	return rc;
}

int h5_paths_find(struct h5_vfs *vfs, struct h5_file *file, uint64_t address, struct h5_buf *path)
{
	struct known *k;
	int rc;

	/* Objects of other files have no path of their own in the mount. */
	if (file != vfs->file)
		return -ENOENT;
	if (pthread_mutex_trylock(&vfs->map_lock)) {
		h5_wait_begins(); /* another thread may be making the map */
		pthread_mutex_lock(&vfs->map_lock);
	}
	rc = find_known(vfs, address, &k);
	/* A group that could not be read then may be readable now. */
	if (!rc && !k && vfs->map->unread) {
		h5_paths_free(vfs->map);
		vfs->map = NULL;
		rc = find_known(vfs, address, &k);
	}
	if (!rc && k)
		rc = add_path(k, path);
	else if (!rc)
		rc = vfs->map->unread
			     ? h5_fail(vfs->map->unread, address, "a group that may hold it cannot be read")
			     : -ENOENT;
	pthread_mutex_unlock(&vfs->map_lock);
	return rc;
}

void h5_log_about(struct h5_vfs *vfs, uint64_t address, const char *format, ...)
{
	struct h5_error cause = *h5_error_last();
	struct h5_buf path;
	char text[sizeof cause.text];
	va_list args;

	if (!vfs->options.log)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	h5_buf_init(&path, PATH_MAX);
	if (h5_paths_find(vfs, vfs->file, address, &path))
		path.size = 0;
	vfs->options.log("%s: %.*s%saddress %" PRIu64 ": %s", vfs->options.file ? vfs->options.file : "",
			 (int)path.size, path.size ? (const char *)path.data : "", path.size ? ", " : "",
			 address, text);
	h5_buf_release(&path);
	(void)h5_fail(cause.code, cause.address, "%s", cause.text);
}

int h5_paths_find_mounted(void *arg, uint64_t address, struct h5_buf *path)
{
	struct h5_vfs *vfs = arg;

	return h5_paths_find(vfs, vfs->file, address, path);
}

int h5_paths_find_object(void *arg, const char *path, size_t n, uint64_t *address)
{
	struct h5_vfs *vfs = arg;
	char *file_path, *real;
	struct h5_file *found_in = NULL;
	int rc = -ENOMEM;

	if (!n || *path != '/' || memchr(path, 0, n))
		return -ENOENT;
	file_path = strndup(path, n);
	real = malloc(n + 1);
	if (file_path && real)
		rc = h5_path_find(vfs->file, h5_file_superblock(vfs->file)->root, real,
				  h5_name_unescape(file_path, real), &found_in, address);
	free(file_path);
	free(real);
	if (rc)
		return rc == -ENOMEM ? rc : -ENOENT;
	return found_in == vfs->file ? 0 : -ENOENT;
}
