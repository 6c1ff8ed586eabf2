/* Listings of directories.
 *
 * A request wants many entries. The headers of their objects are read in the order of their addresses, in
 * large pieces, and decoded without the cache, since a listing looks at each only once. If that fails, the
 * entry is made as a look-up makes it, which tells what is wrong. */
#include "vfs/private.h"

#include "base/checked.h"
#include "base/error.h"
#include "store/want.h"
#include "vfs/directory.h"
#include "vfs/name.h"
#include "vfs/reading.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct h5_dir {
	struct h5_vfs *vfs;
	struct h5_node *node; /* referenced */
	struct h5_dir_list list;
	size_t wanted;	       /* entries before this one have been asked for, if the file is far away */
	uint64_t name_changes; /* of the mount, when the list was made */
	/* It may have any number of entries, so the list has only some, from this position on. */
	bool is_long;
	uint64_t begin;
	int error;		    /* why the list is not complete; 0: the list is complete */
	time_t idle_since;	    /* CLOCK_MONOTONIC, seconds */
	struct h5_dir *prev, *next; /* in vfs->dirs or vfs->idle_dirs; guarded by vfs->lock */
};

/* True: the list has entities, not links. */
static bool is_in_view(const struct h5_dir *dir)
{
	return h5_vfs_is_in_view(dir->node);
}

static void dir_free(struct h5_dir *dir)
{
	h5_dir_list_release(&dir->list);
	free(dir);
}

static int read_links(struct h5_dir *dir)
{
	struct h5_file *file = dir->node->entity.file;
	const struct h5_object *group;
	const struct h5_link *link;
	struct h5_link_walk links;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, dir->node->entity.address, &ref, &group);

	if (rc)
		return rc;
	rc = h5_link_begin(&links, file, group, h5_listing_order(dir->vfs));
	while (!rc && (rc = h5_link_next(&links, &link)) > 0)
		rc = h5_dir_list_add_link(&dir->list, link);
	h5_link_end(&links);
	h5_file_put(file, ref);
	return rc;
}

enum { LONG = 1024 /* entries of a long directory that are in memory at once */ };

static int read_view(struct h5_dir *dir)
{
	int rc = 0;

	dir->is_long = false;
	if (dir->node->entity.view && h5_view_directory_has_parts(dir->node))
		rc = h5_view_directory_is_long(dir->node, &dir->is_long);
	if (rc || !dir->is_long)
		return rc ? rc : h5_views_list(dir->vfs, dir->node, &dir->list);
	return h5_view_directory_list(dir->vfs, dir->node, &(uint64_t){dir->begin}, LONG, &dir->list);
}

static int read_entries(struct h5_dir *dir)
{
	int rc = is_in_view(dir) ? read_view(dir) : read_links(dir);

	/* A damaged group shows the entries that can be read; the error comes after the last one. */
	if (dir->list.count && (rc == -EUCLEAN || rc == -ENOTSUP || (is_in_view(dir) && !h5_is_own(rc)))) {
		dir->error = rc;
		rc = 0;
	}
	return rc;
}

static int read_list(struct h5_dir *dir)
{
	struct h5_reading reading = {.vfs = dir->vfs};
	int rc;

	while (h5_reading_next(&reading, &rc)) {
		h5_dir_list_release(&dir->list);
		dir->error = 0;
		dir->wanted = 0;
		dir->name_changes = dir->vfs->name_changes;
		rc = read_entries(dir);
	}
	return rc;
}

/* 1: names have changed since the list was made; 0: none have. */
static int has_changed(struct h5_dir *dir)
{
	struct h5_reading reading = {.vfs = dir->vfs};
	int rc;

	while (h5_reading_next(&reading, &rc))
		rc = dir->name_changes != dir->vfs->name_changes;
	return rc;
}

/* Reads a long directory from the position on. */
static int read_from(struct h5_dir *dir, uint64_t position)
{
	dir->begin = position;
	return read_list(dir);
}

int h5_vfs_dir_rewind(struct h5_dir *dir)
{
	if (dir->is_long)
		return read_from(dir, 0);
	return has_changed(dir) ? read_list(dir) : 0;
}

int h5_vfs_dir_go(struct h5_dir *dir, uint64_t position, size_t *first)
{
	const struct h5_dir_list *list = &dir->list;
	int rc = 0;

	if (!dir->is_long) {
		*first = (size_t)h5_min(position, list->count);
		return 0;
	}
	/* Positions increase from entry to entry. */
	for (*first = 0; *first < list->count && list->items[*first].next <= position;)
		++*first;
	if (position < dir->begin || (*first == list->count && position != dir->begin)) {
		rc = read_from(dir, position);
		*first = 0;
	}
	return rc;
}

uint64_t h5_vfs_dir_next(const struct h5_dir *dir, size_t i)
{
	return dir->list.items[i].next;
}

int h5_vfs_opendir(struct h5_vfs *vfs, struct h5_node *node, struct h5_dir **out)
{
	struct h5_dir *dir;
	int rc;

	if (!h5_is_directory(node->entity.kind))
		return -ENOTDIR;
	dir = calloc(1, sizeof *dir);
	if (!dir)
		return -ENOMEM;
	dir->vfs = vfs;
	dir->node = node;
	rc = read_list(dir);
	if (rc) {
		dir_free(dir);
		return rc;
	}
	pthread_mutex_lock(&vfs->lock);
	DL_PREPEND(vfs->dirs, dir);
	node->references++;
	pthread_mutex_unlock(&vfs->lock);
	*out = dir;
	return 0;
}

void h5_vfs_closedir(struct h5_dir *dir)
{
	struct h5_vfs *vfs = dir->vfs;
	struct h5_node *node = dir->node;

	pthread_mutex_lock(&vfs->lock);
	DL_DELETE(vfs->dirs, dir);
	pthread_mutex_unlock(&vfs->lock);
	dir_free(dir);
	h5_vfs_forget(vfs, node, 1);
}

/* ---- directories that the kernel reads without opening them ----
 *
 * A list is taken by one request at a time. If two programs read a directory, each gets a list. Between two
 * requests it is idle. Nobody says when a program gives up before the end, so few lists stay. */

enum {
	IDLE_MAX = 8,
	IDLE_BYTES = 16 << 20, /* if idle lists take more, the old ones are freed */
	IDLE_LONG = 10,	       /* seconds */
};

static size_t bytes_of(const struct h5_dir *dir)
{
	return dir->list.text_bytes + dir->list.capacity * sizeof *dir->list.items;
}

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec;
}

/* With vfs->lock. */
static void make_busy(struct h5_vfs *vfs, struct h5_dir *dir)
{
	DL_DELETE(vfs->idle_dirs, dir);
	DL_PREPEND(vfs->dirs, dir);
	vfs->idle_dir_count--;
	vfs->idle_dir_bytes -= bytes_of(dir);
}

/* An idle one that is to be closed, which nobody else has from then on; NULL: there is none. With vfs->lock.
 */
static struct h5_dir *take_old(struct h5_vfs *vfs)
{
	struct h5_dir *oldest = vfs->idle_dirs ? vfs->idle_dirs->prev : NULL; /* the head leads to the last */

	if (!oldest || (vfs->idle_dir_count <= IDLE_MAX &&
			(vfs->idle_dir_bytes <= IDLE_BYTES || now() - oldest->idle_since < IDLE_LONG)))
		return NULL;
	make_busy(vfs, oldest);
	return oldest;
}

int h5_vfs_take_dir(struct h5_vfs *vfs, struct h5_node *node, struct h5_dir **out)
{
	struct h5_dir *dir;

	pthread_mutex_lock(&vfs->lock);
	DL_FOREACH(vfs->idle_dirs, dir)
	if (dir->node == node)
		break;
	if (dir)
		make_busy(vfs, dir);
	pthread_mutex_unlock(&vfs->lock);
	*out = dir;
	return dir ? 0 : h5_vfs_opendir(vfs, node, out);
}

void h5_vfs_return_dir(struct h5_dir *dir)
{
	struct h5_vfs *vfs = dir->vfs;
	struct h5_dir *old;

	pthread_mutex_lock(&vfs->lock);
	DL_DELETE(vfs->dirs, dir);
	DL_PREPEND(vfs->idle_dirs, dir);
	vfs->idle_dir_count++;
	vfs->idle_dir_bytes += bytes_of(dir);
	dir->idle_since = now();
	while ((old = take_old(vfs))) {
		pthread_mutex_unlock(&vfs->lock);
		h5_vfs_closedir(old);
		pthread_mutex_lock(&vfs->lock);
	}
	pthread_mutex_unlock(&vfs->lock);
}

void h5_dirs_close(struct h5_vfs *vfs)
{
	while (vfs->idle_dirs)
		make_busy(vfs, vfs->idle_dirs);
	assert(!vfs->idle_dir_count && !vfs->idle_dir_bytes);
	while (vfs->dirs)
		h5_vfs_closedir(vfs->dirs);
}

size_t h5_vfs_dir_count(const struct h5_dir *dir)
{
	return dir->list.count;
}

ino_t h5_vfs_dir_self(const struct h5_dir *dir)
{
	return dir->node->ino;
}

ino_t h5_vfs_dir_parent(const struct h5_dir *dir)
{
	const struct h5_node *node = dir->node;
	ino_t ino;

	pthread_mutex_lock(&dir->vfs->lock);
	ino = node->parent ? node->parent->ino : node->ino;
	pthread_mutex_unlock(&dir->vfs->lock);
	return ino;
}

int h5_vfs_dir_error(const struct h5_dir *dir)
{
	return dir->error ? h5_fail(dir->error, dir->node->entity.address,
				    "damaged group: the listing is not complete")
			  : 0;
}

const char *h5_vfs_dir_name(const struct h5_dir *dir, size_t i)
{
	return dir->list.items[i].text;
}

/* ---- entries ---- */

enum {
	BATCH = 1024,
	HEADER = 512, /* bytes; most object headers are smaller */
};

struct object_at {
	uint64_t address;
	size_t entry;
};

/* The entries of one request. */
struct batch {
	struct h5_dir *dir;
	const struct h5_dir_item *items;
	size_t count;
	bool plus; /* with attributes */
	struct h5_vfs_entry *entries;
	bool filled[BATCH];
	struct h5_times times;
	struct h5_window window;
};

/* `known`: the object, if the caller has decoded it; else NULL. */
static int fill(struct batch *b, size_t i, struct h5_entity *entity, const struct h5_object *known)
{
	struct h5_vfs_entry *entry = &b->entries[i];
	const char *name = b->items[i].text;
	int rc;

	if (b->plus && b->dir->node->entity.kind != H5_NODE_REVISIONS) {
		rc = h5_node_get(b->dir->vfs, b->dir->node, name, entity, &entry->node);
		return rc ? rc : h5_stat_entry(b->dir->vfs, known, &b->times, entry);
	}
	*entry = (struct h5_vfs_entry){.st.st_ino = h5_node_ino(b->dir->vfs, b->dir->node, name, entity)};
	entry->st.st_mode = h5_is_directory(entity->kind)     ? S_IFDIR
			    : entity->kind == H5_NODE_SYMLINK ? S_IFLNK
							      : S_IFREG;
	h5_entity_release(entity);
	return 0;
}

static void fill_with_object(struct batch *b, size_t i, const struct h5_object *object)
{
	struct h5_entity entity;
	int rc;

	/* A look-up believes what the symbol table says of the object, so a listing does, too. */
	if (b->items[i].link.cached_kind)
		rc = h5_links_resolve(b->dir->vfs, b->dir->node, &b->items[i].link, &entity);
	else
		rc = h5_links_resolve_object(b->dir->node, object, &entity);
	b->filled[i] = !rc && !fill(b, i, &entity, entity.kind == H5_NODE_SYMLINK ? NULL : object);
}

/* True: a look-up has to find the name, too. If names have changed since the list was made, the link may lead
 * to an object that is gone. Targets of dangling symlinks begin with a name that a look-up does not find. If
 * an index is damaged, a listing may have such a name all the same, and then the kernel must not get a node
 * for it. */
static bool must_be_found(const struct batch *b, size_t i)
{
	if (b->dir->name_changes != b->dir->vfs->name_changes)
		return true;
	return !is_in_view(b->dir) && !strncmp(b->items[i].text, H5_DANGLING, sizeof H5_DANGLING - 1);
}

static int fill_alone(struct batch *b, size_t i)
{
	static const struct h5_entity unknown = {.kind = H5_NODE_SYMLINK};
	const struct h5_dir_item *item = &b->items[i];
	struct h5_entity entity = item->entity;
	int rc = 0;

	if (must_be_found(b, i))
		rc = h5_lookup_name(b->dir->vfs, b->dir->node, item->text, &entity);
	else if (!is_in_view(b->dir))
		rc = h5_links_resolve(b->dir->vfs, b->dir->node, &item->link, &entity);
	else if (entity.target && !(entity.target = strdup(item->entity.target)))
		rc = -ENOMEM;
	if (!rc)
		rc = fill(b, i, &entity, NULL);
	/* -EBUSY: a link leads into a file that is locked. */
	if (!rc || h5_is_own(rc) || !(h5_is_passing(rc) || rc == -EBUSY || must_be_found(b, i)))
		return rc;
	/* The entry is listed by its name alone; a look-up tells what is wrong. It has an inode number, since
	 * the C library leaves out entries with the number 0. */
	b->entries[i] = (struct h5_vfs_entry){
		.st.st_ino = h5_node_ino(b->dir->vfs, b->dir->node, item->text, &unknown)};
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct object_at *x = a, *y = b;

	return h5_compare(x->address, y->address);
}

/* The kernel keeps no attributes of files that may be written, so those of a file that it knows already would
 * be of no use: such an entry has a type and a number, and no node. */
static void fill_known(struct batch *b)
{
	struct h5_vfs *vfs = b->dir->vfs;

	if (!b->plus || !vfs->options.writable)
		return;
	for (size_t i = 0; i < b->count; i++) {
		const struct h5_link *link = &b->items[i].link;
		uint64_t ino = 0;

		if (link->type == H5_LINK_HARD && !must_be_found(b, i))
			ino = h5_node_known_file(vfs, b->dir->node->entity.file, link->address);
		b->filled[i] = ino;
		if (ino)
			b->entries[i] = (struct h5_vfs_entry){.st = {.st_ino = ino, .st_mode = S_IFREG}};
	}
}

/* The objects that hard links lead to, sorted by address. If only the type of an entry is wanted, and a
 * symbol table tells that it is a group, its object is left out. */
static size_t find_objects(const struct batch *b, struct object_at objects[BATCH])
{
	size_t n = 0;

	for (size_t i = 0; i < b->count; i++) {
		const struct h5_link *link = &b->items[i].link;

		if (link->type == H5_LINK_HARD && (b->plus || !link->cached_kind) && !b->filled[i] &&
		    !must_be_found(b, i))
			objects[n++] = (struct object_at){link->address, i};
	}
	if (n)
		qsort(objects, n, sizeof *objects, by_address);
	return n;
}

/* The headers of a listing that is far away come together, long before all of its entries are asked for. */
static void want_headers(struct h5_dir *dir, const struct batch *b)
{
	struct h5_file *file = dir->node->entity.file;
	size_t end = (size_t)(b->items - dir->list.items) + b->count;
	struct h5_want want = {.file = file};

	if (end <= dir->wanted || !h5_file_is_far(file))
		return;
	for (end = dir->wanted; end < dir->list.count && want.count < H5_WANT_MAX; end++) {
		const struct h5_link *link = &dir->list.items[end].link;

		if (link->type == H5_LINK_HARD && (b->plus || !link->cached_kind))
			h5_want_add(&want, link->address, HEADER);
	}
	dir->wanted = end;
	h5_want_send(&want, H5_WANTED_AROUND);
}

static void fill_by_address(struct batch *b)
{
	struct object_at objects[BATCH];
	uint64_t addresses[BATCH];
	size_t n = find_objects(b, objects);

	for (size_t i = 0; i < n; i++)
		addresses[i] = objects[i].address;
	want_headers(b->dir, b);
	for (size_t i = 0; i < n; i++) {
		struct h5_object object;

		h5_window_move(&b->window, addresses + i, n - i, HEADER);
		if (h5_object_read(&b->window, addresses[i], &object))
			continue;
		fill_with_object(b, objects[i].entry, &object);
		h5_object_release(&object);
	}
}

/* Fills entries up to the first one that fails. *got: how many. */
static int fill_batch(struct batch *b, size_t *got)
{
	bool passing = h5_vfs_is_passing(b->dir->vfs, b->dir->node);
	int rc = 0;

	if (!is_in_view(b->dir)) {
		fill_known(b);
		fill_by_address(b);
	}
	for (*got = 0; *got < b->count; ++*got) {
		if (!b->filled[*got])
			rc = fill_alone(b, *got);
		if (rc)
			break;
		if (b->plus && b->entries[*got].node)
			h5_entry_set_passing(b->dir->vfs, &b->entries[*got], passing);
	}
	for (size_t i = *got; b->plus && i < b->count; i++)
		if (b->filled[i])
			h5_vfs_forget(b->dir->vfs, b->entries[i].node, 1);
	return rc;
}

int h5_vfs_dir_read(struct h5_dir *dir, size_t first, size_t count, bool plus, struct h5_vfs_entry *entries,
		    size_t *got)
{
	struct batch b = {.dir = dir,
			  .items = dir->list.items + first,
			  .count = (size_t)h5_min(count, BATCH),
			  .plus = plus,
			  .entries = entries};
	struct h5_reading reading = {.vfs = dir->vfs};
	int rc;

	assert(first < dir->list.count && count <= dir->list.count - first);
	while (h5_reading_next(&reading, &rc)) {
		memset(b.filled, 0, sizeof b.filled);
		h5_window_init(&b.window, dir->node->entity.file);
		rc = fill_batch(&b, got);
		rc = *got ? 0 : rc;
		h5_window_release(&b.window);
	}
	return rc;
}
