/* Copies a part of the tree into a directory, as `cp -a` copies it from a mount. */
#include "offline/offline.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/hash_table.h"
#include "offline/progress.h"
#include "offline/stop.h"
#include "offline/target.h"
#include "offline/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PIECE = 1 << 20, /* bytes that are read at once */
	BLOCK = 512,	 /* the unit of st_blocks */
	TEXT_MOST = 1 << 24,
};

/* The first name of a file that has several. All are kept: more names may come than st_nlink tells, since a
 * group can be shown in several places. */
struct first {
	uint64_t number; /* st_ino */
	char *path;	 /* owned: where the copy is, from the top */
	UT_hash_handle hh;
};

struct extract {
	struct h5_vfs *vfs;
	struct h5_walk walk;
	struct h5_target *target;
	struct h5_progress *progress;
	size_t base; /* bytes of the path of what becomes the top */
	struct first *firsts;
	struct h5_buf names, value;
	char *piece;	 /* owned */
	uint64_t stored; /* bytes that the files which were copied take in the HDF5 file */
	bool failed, no_attributes, no_links, is_full;
	uint64_t lost; /* attributes that the target did not take */
};

/* ---- messages ---- */

static void say(struct extract *x, const char *text, size_t size, const char *more)
{
	struct h5_buf line;

	h5_buf_init(&line, TEXT_MOST);
	h5_escape(&line, x->walk.path.data, x->walk.path.size);
	h5_buf_text(&line, ": ");
	h5_escape(&line, text, size);
	h5_progress_erase(x->progress);
	fprintf(stderr, "%.*s%s\n", (int)line.size, line.data, more);
	h5_buf_release(&line);
}

/* What is at the path of the walk could not be copied. */
static void complain(struct extract *x, int code)
{
	const struct h5_error *e = h5_error_last();
	const char *text = e->code == code ? e->text : strerror(-code);
	char address[64] = "";

	if (h5_stop_signal())
		return;
	if (e->code == code && e->address != H5_UNDEF)
		snprintf(address, sizeof address, " at address %" PRIu64, e->address);
	say(x, text, strlen(text), address);
	x->failed = true;
}

/* The target refuses something: complains. If it takes nothing any more, the result ends the walk. */
static int refuse(struct extract *x, int code)
{
	complain(x, code);
	x->is_full |= code == -ENOSPC || code == -EDQUOT || code == -EROFS;
	return x->is_full || code == -ENOMEM || code == -ESTALE ? code : 0;
}

static void failed(struct h5_walk *walk, int code)
{
	complain(walk->arg, code);
}

/* ---- attributes ---- */

/* What the target does not take is told once. */
static void lose_attribute(struct extract *x, int code)
{
	if (!x->lost++)
		say(x, h5_error_last()->text, strlen(h5_error_last()->text),
		    "; what else cannot be kept is counted in the end");
	x->no_attributes = code == -ENOTSUP;
}

static void copy_attribute(struct extract *x, struct h5_node *node, const char *name, int fd)
{
	int rc;

	x->value.size = 0;
	h5_walk_request(x->vfs);
	rc = h5_vfs_getxattr(x->vfs, node, name, &x->value);
	if (rc) {
		complain(x, rc);
		return;
	}
	rc = h5_target_attribute(fd, name, x->value.data, x->value.size);
	if (rc)
		lose_attribute(x, rc);
}

static void copy_attributes(struct extract *x, struct h5_node *node, int fd)
{
	int rc;

	if (x->no_attributes)
		return;
	x->names.size = 0;
	h5_walk_request(x->vfs);
	rc = h5_vfs_listxattr(x->vfs, node, &x->names);
	if (rc)
		complain(x, rc);
	for (size_t at = 0; at < x->names.size && !x->no_attributes;) {
		const char *name = x->names.data + at;

		at += strlen(name) + 1;
		copy_attribute(x, node, name, fd);
	}
}

/* ---- contents ---- */

struct copy {
	struct h5_handle *from;
	struct h5_target_file to;
	const struct stat *st;
	bool refused; /* the error is the target's */
};

static void show(struct extract *x, const struct stat *st, uint64_t at)
{
	uint64_t stored = (uint64_t)st->st_blocks * BLOCK, size = (uint64_t)st->st_size;
	double part = size ? (double)at / (double)size : 1;

	h5_progress_show(x->progress, x->stored + (uint64_t)((double)stored * part), x->walk.path.data,
			 x->walk.path.size);
}

/* Copies the bytes of a range that is no hole. The reads come in order, so that chunks are decoded ahead. */
static int copy_range(struct extract *x, struct copy *copy, uint64_t from, uint64_t to)
{
	int rc = 0;

	for (size_t got = 0; from < to && !rc; from += got) {
		size_t n = (size_t)h5_min(to - from, PIECE);

		h5_walk_request(x->vfs);
		rc = h5_vfs_read(copy->from, from, x->piece, n, &got);
		if (!rc && !got)
			rc = h5_fail(-EIO, H5_UNDEF, "it has become shorter");
		if (!rc) {
			rc = h5_target_write(&copy->to, from, x->piece, got);
			copy->refused = rc;
		}
		if (!rc && h5_stop_signal())
			rc = -EINTR;
		show(x, copy->st, from);
	}
	return rc;
}

static int seek(struct extract *x, struct copy *copy, uint64_t offset, bool hole, uint64_t *found)
{
	h5_walk_request(x->vfs);
	return h5_vfs_seek(copy->from, offset, hole, found);
}

/* Holes stay holes. */
static int copy_data(struct extract *x, struct copy *copy)
{
	const uint64_t size = (uint64_t)copy->st->st_size;
	uint64_t from, to = 0;
	int rc = 0;

	while (!rc && to < size) {
		rc = seek(x, copy, to, false, &from);
		if (rc == -ENXIO)
			return 0;
		if (!rc)
			rc = seek(x, copy, from, true, &to);
		if (!rc)
			rc = copy_range(x, copy, from, to);
	}
	return rc;
}

static int copy_open_file(struct extract *x, struct copy *copy, const char *name,
			  const struct h5_vfs_entry *entry)
{
	int rc = h5_target_begin(x->target, name, &copy->to);

	copy->refused = rc;
	if (rc)
		return rc;
	rc = copy_data(x, copy);
	if (rc) {
		h5_target_cancel(x->target, &copy->to);
		return rc;
	}
	copy_attributes(x, entry->node, copy->to.fd);
	rc = h5_target_end(x->target, &copy->to, name, (uint64_t)copy->st->st_size, copy->st);
	copy->refused = rc;
	return rc;
}

/* 1: the file could not be copied, which was told; an error ends the walk. */
static int copy_file(struct extract *x, const char *name, const struct h5_vfs_entry *entry)
{
	struct stat st = entry->st;
	struct copy copy = {.st = &st};
	int rc;

	h5_walk_request(x->vfs);
	rc = h5_vfs_open_file(x->vfs, entry->node, O_RDONLY, &copy.from);
	if (!rc) {
		if (!entry->size_known)
			rc = h5_vfs_getattr(x->vfs, entry->node, &st);
		if (!rc)
			rc = copy_open_file(x, &copy, name, entry);
		h5_vfs_close_file(copy.from);
	}
	x->stored += (uint64_t)st.st_blocks * BLOCK;
	if (!rc)
		return 0;
	if (copy.refused)
		rc = refuse(x, rc);
	else
		complain(x, rc);
	return copy.refused && rc ? rc : 1;
}

/* ---- hard links ---- */

static struct first *find_first(struct extract *x, uint64_t number)
{
	struct first *first;

	HASH_FIND(hh, x->firsts, &number, sizeof number, first);
	return first;
}

static int remember_first(struct extract *x, const struct stat *st)
{
	struct first *first = calloc(1, sizeof *first);
	size_t at = x->base + (x->walk.path.data[x->base] == '/');

	if (first)
		first->path = strndup(x->walk.path.data + at, x->walk.path.size - at);
	if (!first || !first->path) {
		free(first);
		return -ENOMEM;
	}
	first->number = st->st_ino;
	HASH_ADD(hh, x->firsts, number, sizeof first->number, first);
	if (first->hh.tbl)
		return 0;
	free(first->path);
	free(first);
	return -ENOMEM;
}

/* True: the name was made as a link to the copy that is there. */
static bool link_file(struct extract *x, const char *name, const struct first *first)
{
	int rc = x->no_links ? -ENOTSUP : h5_target_link(x->target, first->path, name);

	if (!rc)
		return true;
	if (rc != -EMLINK && !x->no_links) {
		x->no_links = true;
		say(x, h5_error_last()->text, strlen(h5_error_last()->text),
		    "; it is a copy, and others are, too");
	}
	return false;
}

static int visit_file(struct extract *x, const char *name, const struct h5_vfs_entry *entry)
{
	struct first *first = entry->st.st_nlink > 1 ? find_first(x, entry->st.st_ino) : NULL;
	int rc;

	if (first && link_file(x, name, first))
		return 0;
	rc = copy_file(x, name, entry);
	if (!rc && entry->st.st_nlink > 1 && !first)
		rc = remember_first(x, &entry->st);
	return rc < 0 ? rc : 0;
}

/* ---- the tree ---- */

static int visit_link(struct extract *x, const char *name, const struct h5_vfs_entry *entry)
{
	const char *text;
	int rc = h5_vfs_readlink(entry->node, &text);

	if (rc) {
		complain(x, rc);
		return 0;
	}
	rc = h5_target_symlink(x->target, text, name, &entry->st);
	return rc ? refuse(x, rc) : 0;
}

static int visit(struct h5_walk *walk, const char *name, const struct h5_vfs_entry *entry, bool *enter)
{
	struct extract *x = walk->arg;
	int rc;

	if (h5_stop_signal())
		return -EINTR;
	show(x, &entry->st, 0);
	if (S_ISLNK(entry->st.st_mode))
		return visit_link(x, name, entry);
	if (!*enter)
		return visit_file(x, name, entry);
	rc = h5_target_enter(x->target, name);
	*enter = !rc;
	return rc ? refuse(x, rc) : 0;
}

/* Times and modes come last: whatever is made in the directory would change its times. */
static int end_directory(struct extract *x, const struct h5_vfs_entry *entry)
{
	int rc;

	copy_attributes(x, entry->node, x->target->here);
	rc = h5_target_end_directory(x->target, &entry->st);
	return rc ? refuse(x, rc) : 0;
}

static int leave(struct h5_walk *walk, const struct h5_vfs_entry *entry)
{
	struct extract *x = walk->arg;
	int rc = end_directory(x, entry);

	if (rc)
		return rc;
	rc = h5_target_leave(x->target);
	if (rc)
		complain(x, rc);
	return rc;
}

/* The name of a file that alone is copied: the last one of the path that was given. */
static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int extract_from(struct extract *x, const struct h5_vfs_entry *entry, const char *path,
			const char *way)
{
	struct statvfs whole = {0};
	int rc;

	if (!strcmp(way, "/"))
		h5_vfs_statfs(x->vfs, &whole);
	if (x->progress)
		h5_progress_begin(x->progress, S_ISDIR(entry->st.st_mode)
						       ? (uint64_t)whole.f_blocks * whole.f_frsize
						       : (uint64_t)entry->st.st_blocks * BLOCK);
	x->base = strlen(way);
	if (S_ISDIR(entry->st.st_mode)) {
		rc = h5_walk_run(&x->walk, entry->node, way);
		h5_buf_text(&x->walk.path, way);
		return rc ? rc : end_directory(x, entry);
	}
	h5_buf_text(&x->walk.path, way);
	rc = copy_file(x, last_name(path), entry);
	return rc < 0 ? rc : 0;
}

static int extract(struct extract *x, const char *path)
{
	struct h5_vfs_entry entry;
	struct h5_buf way;
	int rc;

	h5_buf_init(&way, TEXT_MOST);
	rc = h5_walk_find(x->vfs, path, &entry, &way);
	if (rc) {
		h5_buf_text(&x->walk.path, path);
		complain(x, rc);
	} else {
		rc = extract_from(x, &entry, path, way.data);
		h5_walk_forget(x->vfs, entry.node);
	}
	h5_buf_release(&way);
	return rc;
}

static void tell_lost(struct extract *x)
{
	h5_progress_erase(x->progress);
	if (x->no_attributes)
		fprintf(stderr, "the target takes no extended attributes: none were kept\n");
	else if (x->lost)
		fprintf(stderr, "%" PRIu64 " attributes could not be kept\n", x->lost);
}

static void release(struct extract *x)
{
	struct first *first, *next;

	HASH_ITER(hh, x->firsts, first, next)
	{
		HASH_DEL(x->firsts, first);
		free(first->path);
		free(first);
	}
	h5_buf_release(&x->walk.path);
	h5_buf_release(&x->names);
	h5_buf_release(&x->value);
	free(x->piece);
}

int h5_offline_extract(struct h5_vfs *vfs, const char *path, struct h5_target *target,
		       struct h5_progress *progress, enum h5_offline_result *result)
{
	static const struct h5_walk_ops ops = {.visit = visit, .leave = leave, .failed = failed};
	struct extract x = {.vfs = vfs,
			    .walk = {.vfs = vfs, .ops = &ops, .arg = &x, .many = true},
			    .target = target,
			    .progress = progress,
			    .piece = malloc(PIECE)};
	int rc;

	h5_buf_init(&x.walk.path, TEXT_MOST);
	h5_buf_init(&x.names, TEXT_MOST);
	h5_buf_init(&x.value, TEXT_MOST);
	rc = x.piece ? extract(&x, path) : -ENOMEM;
	if (h5_stop_signal())
		rc = -EINTR;
	tell_lost(&x);
	/* What went wrong was told. */
	*result = rc || x.failed ? H5_OFFLINE_FAILED : H5_OFFLINE_SOUND;
	release(&x);
	return x.is_full || rc == -EINTR || rc == -ENOMEM ? rc : 0;
}
