#include "offline/walk.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"

#include <stdlib.h>
#include <string.h>

enum {
	AT_ONCE = 64,	    /* entries of a directory that are asked for at once, */
	SHALLOW = 64,	    /* up to this depth; deeper, one by one, so that little memory is taken */
	DEPTH_MOST = 10000, /* most levels of directories */
	PATH_MOST = 1 << 20,
};

/* A directory on the way from the first one. */
struct h5_walk_level {
	struct h5_vfs_entry entry; /* its node is referenced; the first directory has none of its own */
	struct h5_dir *dir;
	size_t next;			/* entry */
	size_t path_size;		/* of the path of the directory */
	struct h5_vfs_entry *entries;	/* owned: those that were asked for and not visited yet */
	size_t first, count, has_space; /* the first of them, and how many; how many there is memory for */
};

static void begin_request(const struct h5_walk *walk)
{
	if (walk->many)
		h5_walk_request(walk->vfs);
	else
		h5_error_clear();
}

static void fail(struct h5_walk *walk, int code)
{
	walk->ops->failed(walk, code);
}

/* True: nothing more can be done. */
static bool is_final(int code)
{
	return code == -ENOMEM || code == -EINTR;
}

static int push(struct h5_walk *walk, const struct h5_vfs_entry *entry)
{
	struct h5_walk_level *level;
	int rc;

	if (walk->depth == DEPTH_MOST)
		return h5_fail(-ELOOP, H5_UNDEF, "too many directories one in the other");
	rc = h5_array_reserve(&walk->levels, &walk->capacity, walk->depth + 1, NULL);
	if (rc)
		return rc;
	level = &walk->levels[walk->depth];
	*level = (struct h5_walk_level){.entry = *entry, .path_size = walk->path.size};
	level->has_space = walk->depth < SHALLOW ? AT_ONCE : 1;
	level->entries = malloc(level->has_space * sizeof *level->entries);
	if (!level->entries)
		return -ENOMEM;
	rc = h5_vfs_opendir(walk->vfs, entry->node, &level->dir);
	if (rc)
		free(level->entries);
	else
		walk->depth++;
	return rc;
}

static void pop(struct h5_walk *walk)
{
	struct h5_walk_level *level = &walk->levels[--walk->depth];

	for (size_t i = 0; i < level->count; i++)
		if (level->entries[level->first + i].node)
			h5_vfs_forget(walk->vfs, level->entries[level->first + i].node, 1);
	free(level->entries);
	h5_vfs_closedir(level->dir);
	if (walk->depth)
		h5_vfs_forget(walk->vfs, level->entry.node, 1);
}

/* Takes the next entry of the level, which must have one. */
static int take_entry(struct h5_walk *walk, struct h5_walk_level *level, struct h5_vfs_entry *entry)
{
	size_t left = h5_vfs_dir_count(level->dir) - level->next, i = level->next++;
	int rc = 0;

	if (!level->count) {
		begin_request(walk);
		level->first = 0;
		rc = h5_vfs_dir_read(level->dir, i, (size_t)h5_min(left, level->has_space), true,
				     level->entries, &level->count);
	}
	if (rc) {
		level->count = 0;
		return rc;
	}
	*entry = level->entries[level->first++];
	level->count--;
	if (entry->node)
		return 0;
	/* A look-up tells why. */
	begin_request(walk);
	return h5_vfs_lookup(walk->vfs, level->entry.node, h5_vfs_dir_name(level->dir, i), entry);
}

/* Appends a name to the path. */
static int add_name(struct h5_walk *walk, const char *name)
{
	int rc;

	if (walk->path.size > 1)
		h5_buf_byte(&walk->path, '/');
	h5_buf_text(&walk->path, name);
	rc = walk->path.err;
	walk->path.err = 0;
	return rc == -E2BIG ? -ENAMETOOLONG : rc;
}

/* Tells that no more entries of a directory come; `rc`: why they cannot be read; 0: all were visited. `entry`
 * NULL: it is the first directory, which is not left. */
static int leave(struct h5_walk *walk, const struct h5_vfs_entry *entry, int rc)
{
	int said;

	if (rc)
		fail(walk, rc);
	said = entry && walk->ops->leave ? walk->ops->leave(walk, entry) : 0;
	return is_final(rc) ? rc : said;
}

/* Visits an entry, and goes into a directory. */
static int visit(struct h5_walk *walk, const char *name, const struct h5_vfs_entry *entry)
{
	bool enter = S_ISDIR(entry->st.st_mode);
	int rc;

	rc = walk->ops->visit(walk, name, entry, &enter);
	if (!rc && enter) {
		begin_request(walk);
		rc = push(walk, entry);
		if (!rc)
			return 0;
		rc = leave(walk, entry, rc);
	}
	h5_vfs_forget(walk->vfs, entry->node, 1);
	return rc;
}

/* Behind the last entry of the innermost directory: goes out of it. */
static int end_directory(struct h5_walk *walk, struct h5_walk_level *level)
{
	int rc = leave(walk, walk->depth > 1 ? &level->entry : NULL, h5_vfs_dir_error(level->dir));

	pop(walk);
	return rc;
}

/* Visits the next entry of the innermost directory. */
static int step(struct h5_walk *walk)
{
	struct h5_walk_level *level = &walk->levels[walk->depth - 1];
	struct h5_vfs_entry entry;
	const char *name;
	int rc;

	walk->path.size = level->path_size;
	begin_request(walk);
	rc = h5_interrupt_check();
	if (rc) {
		fail(walk, rc);
		return rc;
	}
	if (level->next == h5_vfs_dir_count(level->dir))
		return end_directory(walk, level);
	name = h5_vfs_dir_name(level->dir, level->next);
	rc = add_name(walk, name);
	if (rc)
		level->next++;
	else
		rc = take_entry(walk, level, &entry);
	if (!rc)
		return visit(walk, name, &entry);
	fail(walk, rc);
	return is_final(rc) ? rc : 0;
}

int h5_walk_run(struct h5_walk *walk, struct h5_node *directory, const char *path)
{
	const struct h5_vfs_entry top = {.node = directory};
	int rc;

	h5_buf_init(&walk->path, PATH_MOST);
	h5_buf_text(&walk->path, path);
	begin_request(walk);
	rc = walk->path.err;
	if (!rc)
		rc = push(walk, &top);
	if (rc)
		fail(walk, rc);
	while (!rc && walk->depth)
		rc = step(walk);
	while (walk->depth)
		pop(walk);
	free(walk->levels);
	h5_buf_release(&walk->path);
	return rc;
}
