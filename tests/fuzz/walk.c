#include "walk.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEPTH = 12,	/* of directories */
	READ = 1 << 16, /* bytes of a file that are read at its begin, and at its end */
	PIECE = 4099,	/* bytes of the reads that must give the same again */
	SEEKS = 16,
	SEEK = 20, /* checks of one */
	PAGE = 16, /* entries of a directory that are read at once */
};

/* ---- the budget ---- */

static bool is_used_up(void *arg)
{
	struct fuzz_budget *budget = arg;

	return --budget->checks < 0;
}

void fuzz_request(struct fuzz_budget *budget)
{
	/* It began long ago: nothing is granted beyond the budget. */
	const struct h5_interrupt interrupt = {.ask = is_used_up, .arg = budget};

	h5_error_clear();
	h5_interrupt_set(&interrupt);
}

struct h5_file_set_options fuzz_set_options(bool small)
{
	size_t cache = small ? 1 << 13 : 1 << 22;

	return (struct h5_file_set_options){.block_cache = cache,
					    .chunk_cache = cache,
					    .max_chunk = 1 << 26,
					    .external = H5_EXTERNAL_NONE,
					    .lock = H5_LOCK_NONE};
}

bool fuzz_looks_honest(const uint8_t *data, size_t size)
{
	static const char *const unchecked[] = {"TREE", "SNOD", "HEAP"};

	for (unsigned i = 0; i < sizeof unchecked / sizeof *unchecked; i++)
		if (memmem(data, size, unchecked[i], 4))
			return false;
	return size > 8 && data[8] >= 2;
}

/* A promise that an honest file keeps. */
static void holds_honestly(const struct fuzz_walk *w, bool promise)
{
	FUZZ_HOLDS(promise || !w->honest || fuzz_wrong_checksums);
}

/* ---- attributes ---- */

static void get_attribute(const struct fuzz_walk *w, struct h5_node *node, const char *prefix,
			  const char *name)
{
	struct h5_buf value;
	char whole[512];

	if (snprintf(whole, sizeof whole, "%s%s", prefix, name) >= (int)sizeof whole)
		return;
	h5_buf_init(&value, SIZE_MAX);
	fuzz_request(w->budget);
	if (!h5_vfs_getxattr(w->vfs, node, whole, &value))
		fuzz_touch(value.data, value.size);
	h5_buf_release(&value);
}

static void use_attributes(const struct fuzz_walk *w, struct h5_node *node)
{
	/* All of what h5fs itself knows, and what is left out there. */
	static const char *const own[] = {"info", "storage", "unlisted", "none"};
	struct h5_buf names;

	h5_buf_init(&names, SIZE_MAX);
	fuzz_request(w->budget);
	h5_vfs_listxattr(w->vfs, node, &names);
	for (size_t i = 0; i < names.size && w->budget->checks > 0; i += strlen(names.data + i) + 1) {
		const char *name = names.data + i;

		FUZZ_HOLDS(!strncmp(name, "user.", 5));
		get_attribute(w, node, "", name);
		get_attribute(w, node, "h5fs.raw.", name + 5);
		get_attribute(w, node, "h5fs.type.", name + 5);
	}
	h5_buf_release(&names);
	for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
		get_attribute(w, node, "h5fs.", own[i]);
}

/* ---- contents ---- */

/* The same bytes in pieces, in the other direction, are the same. */
static void read_again(const struct fuzz_walk *w, struct h5_handle *h, uint64_t offset, const uint8_t *data,
		       size_t n)
{
	uint8_t piece[PIECE];
	size_t got;

	for (size_t end = n, size; end; end -= size) {
		size = end < PIECE ? end : PIECE;
		fuzz_request(w->budget);
		if (h5_vfs_read(h, offset + end - size, piece, size, &got))
			return;
		holds_honestly(w, got == size && !memcmp(piece, data + end - size, size));
	}
}

static void use_range(const struct fuzz_walk *w, struct h5_handle *h, uint64_t offset)
{
	uint8_t *data = malloc(READ);
	size_t got;

	FUZZ_HOLDS(data);
	fuzz_request(w->budget);
	if (!h5_vfs_read(h, offset, data, READ, &got)) {
		FUZZ_HOLDS(got <= READ);
		fuzz_touch(data, got);
		read_again(w, h, offset, data, got);
	}
	free(data);
}

/* A hole reads as zeros. */
static void check_hole(const struct fuzz_walk *w, struct h5_handle *h, uint64_t from, uint64_t to)
{
	uint8_t piece[PIECE];
	size_t got, n = to - from < PIECE ? (size_t)(to - from) : PIECE;

	for (unsigned i = 0; i < 2; i++, from = to - n) {
		fuzz_request(w->budget);
		if (h5_vfs_read(h, from, piece, n, &got))
			return;
		for (size_t k = 0; k < got; k++)
			holds_honestly(w, !piece[k]);
	}
}

/* It asks seldom if it is still wanted, so it may ask less often. */
static int seek(const struct fuzz_walk *w, struct h5_handle *h, uint64_t offset, bool hole, uint64_t *found)
{
	long left = w->budget->checks - SEEK;
	int rc;

	w->budget->checks = SEEK;
	fuzz_request(w->budget);
	rc = h5_vfs_seek(h, offset, hole, found);
	w->budget->checks = left;
	return rc;
}

static void use_holes(const struct fuzz_walk *w, struct h5_handle *h)
{
	uint64_t at = 0, hole, data;

	for (unsigned i = 0; i < SEEKS; i++, at = data) {
		if (seek(w, h, at, true, &hole))
			return;
		FUZZ_HOLDS(hole >= at);
		if (seek(w, h, hole, false, &data))
			return;
		FUZZ_HOLDS(data >= hole);
		if (data == at)
			return;
		if (data > hole)
			check_hole(w, h, hole, data);
	}
}

static void use_file(const struct fuzz_walk *w, struct h5_node *node)
{
	struct h5_handle *h;
	struct stat st;

	fuzz_request(w->budget);
	if (h5_vfs_getattr(w->vfs, node, &st))
		memset(&st, 0, sizeof st);
	else if (w->file)
		w->file(w->arg, node, &st);
	fuzz_request(w->budget);
	if (h5_vfs_open_file(w->vfs, node, O_RDONLY, &h))
		return;
	use_range(w, h, 0);
	if (st.st_size > READ)
		use_range(w, h, (uint64_t)st.st_size - READ / 2);
	use_holes(w, h);
	h5_vfs_close_file(h);
}

/* ---- the tree ---- */

/* Where the entries that are at hand end, others may come; they are where they are said to be. */
static void use_positions(const struct fuzz_walk *w, struct h5_dir *dir)
{
	size_t count = h5_vfs_dir_count(dir), first;
	uint64_t end = count ? h5_vfs_dir_next(dir, count - 1) : 0;

	for (size_t i = 1; i < count && i < PAGE; i++) {
		FUZZ_HOLDS(h5_vfs_dir_next(dir, i - 1) < h5_vfs_dir_next(dir, i));
		FUZZ_HOLDS(!h5_vfs_dir_go(dir, h5_vfs_dir_next(dir, i - 1), &first) && first == i);
	}
	fuzz_request(w->budget);
	if (!h5_vfs_dir_go(dir, end, &first))
		FUZZ_HOLDS(first == h5_vfs_dir_count(dir) || h5_vfs_dir_next(dir, first) > end);
}

static void use_directory(const struct fuzz_walk *w, struct h5_node *node, unsigned depth);

static void use_node(const struct fuzz_walk *w, struct h5_node *node, mode_t mode, unsigned depth)
{
	const char *target;

	if (w->budget->nodes-- <= 0 || w->budget->checks <= 0)
		return;
	if (S_ISLNK(mode)) {
		if (!h5_vfs_readlink(node, &target))
			fuzz_touch(target, strlen(target));
		return;
	}
	use_attributes(w, node);
	if (S_ISDIR(mode))
		use_directory(w, node, depth + 1);
	else
		use_file(w, node);
}

static void use_name(const struct fuzz_walk *w, struct h5_node *parent, const char *name)
{
	struct h5_vfs_entry entry;

	FUZZ_HOLDS(*name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, ".."));
	fuzz_request(w->budget);
	if (!h5_vfs_lookup(w->vfs, parent, name, &entry))
		h5_vfs_forget(w->vfs, entry.node, 1);
}

static void use_entries(const struct fuzz_walk *w, struct h5_node *node, struct h5_dir *dir, unsigned depth)
{
	struct h5_vfs_entry entries[PAGE];
	size_t count = h5_vfs_dir_count(dir), got;

	for (size_t i = 0; i < count && w->budget->nodes > 0 && w->budget->checks > 0; i += got) {
		size_t n = count - i < PAGE ? count - i : PAGE;

		fuzz_request(w->budget);
		if (h5_vfs_dir_read(dir, i, n, false, entries, &got))
			return;
		fuzz_request(w->budget);
		if (h5_vfs_dir_read(dir, i, n, true, entries, &got))
			return;
		FUZZ_HOLDS(got && got <= n);
		for (size_t k = 0; k < got; k++) {
			use_name(w, node, h5_vfs_dir_name(dir, i + k));
			if (!entries[k].node)
				continue;
			use_node(w, entries[k].node, entries[k].st.st_mode, depth);
			h5_vfs_forget(w->vfs, entries[k].node, 1);
		}
	}
}

static void use_directory(const struct fuzz_walk *w, struct h5_node *node, unsigned depth)
{
	struct h5_dir *dir;
	struct stat st;

	fuzz_request(w->budget);
	h5_vfs_getattr(w->vfs, node, &st);
	fuzz_request(w->budget);
	if (depth > DEPTH || h5_vfs_opendir(w->vfs, node, &dir))
		return;
	use_entries(w, node, dir, depth);
	use_positions(w, dir);
	h5_vfs_closedir(dir);
}

static void use_view(const struct fuzz_walk *w, struct h5_node *views, const char *name)
{
	struct h5_vfs_entry entry;

	fuzz_request(w->budget);
	if (h5_vfs_lookup(w->vfs, views, name, &entry))
		return;
	use_node(w, entry.node, entry.st.st_mode, 1);
	h5_vfs_forget(w->vfs, entry.node, 1);
}

/* The budget may end before the last view, so another one comes first each time. */
static void use_views(const struct fuzz_walk *w)
{
	struct h5_vfs_entry views;
	struct h5_dir *dir;

	fuzz_request(w->budget);
	if (h5_vfs_lookup(w->vfs, h5_vfs_root(w->vfs), ".h5fs", &views))
		return;
	use_attributes(w, views.node);
	fuzz_request(w->budget);
	if (!h5_vfs_opendir(w->vfs, views.node, &dir)) {
		size_t count = h5_vfs_dir_count(dir);

		for (size_t i = 0; i < count && w->budget->checks > 0; i++)
			use_view(w, views.node, h5_vfs_dir_name(dir, (w->first_view + i) % count));
		use_positions(w, dir);
		h5_vfs_closedir(dir);
	}
	h5_vfs_forget(w->vfs, views.node, 1);
}

void fuzz_walk(const struct fuzz_walk *w)
{
	struct statvfs st;

	fuzz_request(w->budget);
	h5_vfs_statfs(w->vfs, &st);
	use_node(w, h5_vfs_root(w->vfs), S_IFDIR, 0);
	if (w->views)
		use_views(w);
	get_attribute(w, h5_vfs_root(w->vfs), "h5fs.", "stats");
}
