#include "store/file_set.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/thread.h"
#include "base/wait.h"
#include "store/file_open.h"
#include "store/file_private.h"
#include "store/followers.h"
#include "store/members.h"
#include "store/statistics.h"

#include <assert.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORK_SPEED = 8 << 10 }; /* stored bytes for which a request may work a millisecond longer */

/* So many other files may be open at once, since each takes a descriptor. */
enum { FILES_MAX = 512 };

enum { PATH_SIZE = 4096 };

/* Bytes that requests may hold, even if the caches are smaller. */
static const uint64_t ROOM_LEAST = (uint64_t)64 << 20;

struct entry {
	struct h5_file *file;
	uint64_t device, inode;
	char *path; /* relative to the set's directory, or absolute */
	struct entry *next;
};

struct h5_file_set {
	struct h5_file_shared shared; /* the first member: h5_file_set_shared() */
	struct h5_file_set_options options;
	struct h5_statistics statistics;
	atomic_uint sharers;	  /* h5_file_set_share() */
	atomic_size_t used;	  /* bytes that requests hold */
	char *path;		  /* real path of the mounted file, or its URL; NULL for memory */
	char *pattern;		  /* of the names of its members; NULL: none was given */
	struct h5_joined *joined; /* how its pieces were joined; NULL: it is one */
	struct h5_io *pieces;	  /* of `joined`: the io of its pieces, borrowed; NULL: it is not written */
	struct h5_onion *onion;	  /* its revisions; NULL: it has none */
	struct h5_folder folder;  /* of the mounted file */
	atomic_uint_fast64_t numbers;
	/* Guards the rest, and `onion`; held while a file is opened, not while one is read. */
	pthread_mutex_t lock;
	struct entry *files; /* the newest first; the mounted file is the last */
	unsigned count;
	struct h5_file **revisions; /* by their numbers; NULL: not open */
};

static_assert(!offsetof(struct h5_file_set, shared), "h5_file_set_shared()");

/* Makes the cache smaller by what other sets may have, and then by up to `used`. Returns how much of that. */
static size_t press_cache(struct h5_lru *lru, size_t budget, unsigned sharers, size_t used)
{
	size_t own = budget / sharers, taken = (size_t)h5_min(used, own);

	h5_lru_press(lru, budget - own + taken);
	return taken;
}

/* Makes room for requests: first in the cache of chunks. */
static void press_caches(void *arg, size_t used)
{
	struct h5_file_set *set = arg;
	unsigned sharers = atomic_load(&set->sharers);
	size_t taken;

	atomic_store(&set->used, used);
	taken = press_cache(set->shared.chunks, set->options.chunk_cache, sharers, used);
	press_cache(set->shared.blocks, set->options.block_cache, sharers, used - taken);
}

void h5_file_set_share(struct h5_file_set *set, unsigned sharers)
{
	atomic_store(&set->sharers, sharers);
	press_caches(set, atomic_load(&set->used));
}

/* Bytes that requests may hold together. */
static size_t room_of(const struct h5_file_set_options *options)
{
	size_t most = options->chunk_cache + options->block_cache;

	return most < options->chunk_cache ? SIZE_MAX : (size_t)h5_max(most, ROOM_LEAST);
}

static struct h5_file_set *set_new(const struct h5_file_set_options *options)
{
	struct h5_file_set *set = calloc(1, sizeof *set);

	if (!set)
		return NULL;
	set->options = *options;
	atomic_init(&set->sharers, 1);
	set->shared =
		(struct h5_file_shared){.set = set,
					.statistics = &set->statistics,
					.max_chunk = options->max_chunk ? options->max_chunk : H5_MAX_CHUNK,
					.numbers = &set->numbers,
					.follows = options->swmr && !options->writable};
	set->folder = (struct h5_folder){.fd = -1,
					 .external = options->external,
					 .lock = options->lock,
					 .remote = options->remote,
					 .beside = options->remote_name};
	pthread_mutex_init(&set->lock, NULL);
	if (h5_pool_open(options->workers, &set->shared.pool) ||
	    h5_lru_open(options->block_cache, &set->shared.blocks) ||
	    h5_lru_open(options->chunk_cache, &set->shared.chunks) ||
	    h5_room_open(room_of(options), press_caches, set, &set->shared.room) ||
	    (options->writable && !(set->shared.followers = h5_followers_new()))) {
		h5_file_set_close(set);
		return NULL;
	}
	return set;
}

/* Opens the HDF5 file in io. Takes io over, also on failure. `path` and `pattern` as in struct h5_file_place.
 */
static int add_file(struct h5_file_set *set, struct h5_io *io, const char *path, const char *pattern,
		    struct h5_file **file)
{
	const struct h5_file_place place = {.folder = &set->folder,
					    .path = path,
					    .pattern = pattern,
					    .offset = set->shared.root ? 0 : set->options.offset};
	struct entry *entry = calloc(1, sizeof *entry);
	struct h5_io_stat st;
	int rc = entry && (entry->path = strdup(path)) ? h5_io_stat(io, &st) : -ENOMEM;

	if (rc)
		h5_io_close(io);
	else
		rc = h5_file_open(&set->shared, &place, io, set->shared.root ? NULL : set->joined,
				  &entry->file);
	if (rc) {
		if (entry)
			free(entry->path);
		free(entry);
		return rc;
	}
	entry->device = st.device;
	entry->inode = st.inode;
	entry->next = set->files;
	set->files = entry;
	set->count++;
	*file = entry->file;
	return 0;
}

int h5_file_set_open_memory(const void *data, size_t size, const struct h5_file_set_options *options,
			    struct h5_file_set **out)
{
	struct h5_file_set *set = set_new(options);
	struct h5_io *io;
	int rc = set ? h5_io_open_memory(data, size, &io) : -ENOMEM;

	if (!rc)
		rc = h5_file_set_start(set, io);
	if (rc)
		h5_file_set_close(set);
	else
		*out = set;
	return rc;
}

/* Finds the real path of the file, and its folder. `path` may be the pattern of a family's members. */
static int resolve_path(struct h5_file_set *set, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *first = NULL, *copy = NULL;
	int rc = 0;

	if (access(path, F_OK))
		rc = h5_members_first_path(path, &first);
	if (!rc && first && !(set->pattern = strdup(slash ? slash + 1 : path)))
		rc = -ENOMEM;
	if (!rc && !(set->path = realpath(first ? first : path, NULL)))
		rc = h5_fail(-errno, H5_UNDEF, "%s", strerror(errno));
	if (!rc && !(copy = strdup(set->path)))
		rc = -ENOMEM;
	if (!rc)
		rc = h5_folder_open(&set->folder, dirname(copy));
	free(first);
	free(copy);
	return rc;
}

static int find_remote_path(struct h5_file_set *set)
{
	const char *name = set->options.remote_name;
	char *path;

	if (asprintf(&path, "%s%s", h5_remote_url(set->options.remote), name ? name : "") < 0)
		return -ENOMEM;
	set->path = path;
	return 0;
}

int h5_file_set_new(const char *path, const struct h5_file_set_options *options, struct h5_file_set **out)
{
	struct h5_file_set *set = set_new(options);
	int rc = set ? 0 : -ENOMEM;

	if (!rc && options->remote)
		rc = find_remote_path(set);
	else if (!rc)
		rc = resolve_path(set, path);

	if (rc)
		h5_file_set_close(set);
	else
		*out = set;
	return rc;
}

int h5_file_set_new_in(int folder, const char *path, const struct h5_file_set_options *options,
		       struct h5_file_set **out)
{
	struct h5_file_set *set = set_new(options);
	int rc = set && (set->path = strdup(path)) ? 0 : -ENOMEM;
	char *copy = rc ? NULL : strdup(path);

	if (!rc)
		rc = copy ? h5_folder_open_at(&set->folder, folder, dirname(copy)) : -ENOMEM;
	free(copy);
	if (rc)
		h5_file_set_close(set);
	else
		*out = set;
	return rc;
}

/* Adds a revision, which cannot be changed. */
static int add_revision(struct h5_file_set *set, struct h5_io *io, const char *path, struct h5_file **file)
{
	int rc = add_file(set, io, path, NULL, file);

	if (!rc)
		h5_file_fix(*file, "a file that has revisions (onion driver)");
	return rc;
}

/* Looks for revisions of the file in io, and makes *io the one to be shown. On failure it is closed. Behind a
 * URL it is only done if a revision is asked for, since it takes a request. */
static int find_revisions(struct h5_file_set *set, const char *path, struct h5_io **io)
{
	const struct h5_file_set_options *options = &set->options;
	struct h5_io *pages = NULL;
	int rc = 0;

	if (!set->pattern && (!set->folder.remote || options->has_revision))
		rc = h5_onion_find(&set->folder, path, *io, &pages);
	if (!rc && !pages && options->has_revision)
		rc = h5_fail(-ENOENT, H5_UNDEF, "the file has no revisions (there is no %s.onion)", path);
	if (rc || !pages) {
		if (rc)
			h5_io_close(*io);
		return rc;
	}
	rc = h5_onion_open(*io, pages, &set->onion);
	if (!rc)
		set->revisions = h5_calloc(h5_onion_newest(set->onion) + 1, sizeof *set->revisions);
	if (!rc && !set->revisions)
		rc = -ENOMEM;
	return rc ? rc : h5_onion_open_revision(set->onion, h5_file_set_shown_revision(set), true, io);
}

int h5_file_set_join(struct h5_file_set *set, struct h5_io **io)
{
	const struct h5_file_place place = {.folder = &set->folder,
					    .path = strrchr(set->path, '/') + 1,
					    .pattern = set->pattern,
					    .offset = set->options.offset};
	int rc;

	assert(!set->joined && !set->shared.root);
	rc = h5_file_join(&set->shared, &place, set->options.writable, io, &set->joined);
	if (set->joined && set->options.writable)
		set->pieces = *io;
	return rc;
}

int h5_file_set_start(struct h5_file_set *set, struct h5_io *io)
{
	const char *path = set->path ? strrchr(set->path, '/') + 1 : "";
	int rc = find_revisions(set, path, &io);

	assert(!set->shared.root);
	if (rc)
		return rc;
	return set->onion ? add_revision(set, io, path, &set->shared.root)
			  : add_file(set, io, path, set->pattern, &set->shared.root);
}

const char *h5_file_set_path(const struct h5_file_set *set)
{
	return set->path;
}

void h5_file_set_close(struct h5_file_set *set)
{
	if (!set)
		return;
	/* In this order: work in the background refers to cached values, and these to the files. */
	h5_pool_close(set->shared.pool);
	for (struct entry *entry = set->files; entry; entry = entry->next)
		h5_file_finish(entry->file);
	h5_lru_close(set->shared.chunks);
	h5_lru_close(set->shared.blocks);
	h5_room_close(set->shared.room);
	h5_followers_free(set->shared.followers);
	for (struct entry *entry = set->files, *next; entry; entry = next) {
		next = entry->next;
		h5_file_close(entry->file);
		free(entry->path);
		free(entry);
	}
	h5_joined_free(set->joined);
	h5_onion_close(set->onion);
	free(set->revisions);
	h5_folder_close(&set->folder);
	h5_mutex_destroy(&set->lock);
	free(set->path);
	free(set->pattern);
	free(set);
}

int h5_file_set_directory(const struct h5_file_set *set)
{
	return set->folder.fd;
}

const struct h5_file_set_options *h5_file_set_options(const struct h5_file_set *set)
{
	return &set->options;
}

size_t h5_file_set_chunk_budget(const struct h5_file_set *set)
{
	return set->options.chunk_cache;
}

/* Bytes that all open files store: not those of holes. */
static uint64_t stored_bytes(struct h5_file_set *set)
{
	struct h5_io_stat st;
	uint64_t stored = 0;

	pthread_mutex_lock(&set->lock);
	for (const struct entry *entry = set->files; entry; entry = entry->next)
		if (!h5_file_stat(entry->file, &st) && !h5_add(stored, st.stored, &stored))
			stored = UINT64_MAX;
	pthread_mutex_unlock(&set->lock);
	return stored;
}

uint64_t h5_file_set_work(struct h5_file_set *set, unsigned seconds)
{
	return seconds ? seconds * UINT64_C(1000) + stored_bytes(set) / WORK_SPEED : 0;
}

bool h5_file_set_refresh(struct h5_file_set *set)
{
	bool changed = false;

	pthread_mutex_lock(&set->lock);
	for (struct entry *entry = set->files; entry; entry = entry->next)
		changed |= h5_file_refresh(entry->file);
	pthread_mutex_unlock(&set->lock);
	return changed;
}

/* ---- names of other files ---- */

/* The folder of a file of the set, relative to that of the mounted one, with a slash at its end; "": it is
 * the same. A file whose path takes more than PATH_SIZE is not opened. */
static void directory_of(struct h5_file_set *set, struct h5_file *file, char out[PATH_SIZE])
{
	size_t n = 0;

	pthread_mutex_lock(&set->lock);
	for (const struct entry *entry = set->files; entry; entry = entry->next)
		if (entry->file == file) {
			const char *slash = strrchr(entry->path, '/');

			n = slash ? (size_t)(slash - entry->path) + 1 : 0;
			assert(n < PATH_SIZE);
			memcpy(out, entry->path, n);
		}
	pthread_mutex_unlock(&set->lock);
	out[n] = 0;
}

/* A descriptor of the file that `from` calls `name`; `path` becomes its path. */
static int open_named(struct h5_file_set *set, struct h5_file *from, const char *name, bool writable,
		      char path[PATH_SIZE])
{
	char beside[PATH_SIZE];

	directory_of(set, from, beside);
	h5_wait_begins();
	return h5_folder_open_named(&set->folder, beside, name, writable, path, PATH_SIZE);
}

/* The same behind a URL: the file is open. */
static int open_remote(struct h5_file_set *set, struct h5_file *from, const char *name, char path[PATH_SIZE],
		       struct h5_io **io)
{
	char beside[PATH_SIZE];

	directory_of(set, from, beside);
	return h5_folder_open_remote(&set->folder, beside, name, path, PATH_SIZE, io);
}

/* With the lock. */
static struct h5_file *find_file(const struct h5_file_set *set, uint64_t device, uint64_t inode)
{
	for (const struct entry *entry = set->files; entry; entry = entry->next)
		if (entry->device == device && entry->inode == inode)
			return entry->file;
	return NULL;
}

/* The file of the set that the descriptor leads to; NULL: none. */
static struct h5_file *find_open(struct h5_file_set *set, int fd)
{
	struct h5_file *file;
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	pthread_mutex_lock(&set->lock);
	file = find_file(set, st.st_dev, st.st_ino);
	pthread_mutex_unlock(&set->lock);
	return file;
}

/* A file that is open as an HDF5 file is not written as a raw one. */
static int check_raw(struct h5_file_set *set, struct h5_io *io, const char *name)
{
	struct h5_io_stat st;
	bool open;
	int rc = h5_io_stat(io, &st);

	if (rc)
		return rc;
	pthread_mutex_lock(&set->lock);
	open = find_file(set, st.device, st.inode) ||
	       (set->pieces && h5_io_members_have(set->pieces, st.device, st.inode));
	pthread_mutex_unlock(&set->lock);
	return open ? h5_fail(-EPERM, H5_UNDEF, "%s: an open HDF5 file, as a raw one", name) : 0;
}

int h5_file_set_open_raw(struct h5_file_set *set, struct h5_file *from, const char *name, bool writable,
			 struct h5_io **io)
{
	char path[PATH_SIZE];
	struct h5_io *raw;
	int fd, rc;

	if (set->folder.remote)
		return open_remote(set, from, name, path, io);
	fd = open_named(set, from, name, writable, path);
	if (fd < 0)
		return fd;
	rc = h5_io_open_fd(fd, H5_LOCK_NONE, writable, &raw);
	if (rc)
		return rc;
	rc = writable ? check_raw(set, raw, name) : 0;
	if (rc)
		h5_io_close(raw);
	else
		*io = raw;
	return rc;
}

/* True: the file is a revision of the mounted one. */
static bool is_revision(struct h5_file_set *set, const struct h5_file *file)
{
	bool found = false;

	pthread_mutex_lock(&set->lock);
	for (uint64_t i = 0; set->onion && i <= h5_onion_newest(set->onion); i++)
		found |= set->revisions[i] == file;
	pthread_mutex_unlock(&set->lock);
	return found;
}

/* Opens what a name leads to; a revision means itself by the name of the mounted file. *file: the file of the
 * set that this is, and then *io is none. */
static int open_found(struct h5_file_set *set, struct h5_file *from, const char *name, char path[PATH_SIZE],
		      struct h5_io **io, struct h5_file **file)
{
	int fd, rc;

	*file = NULL;
	if (set->folder.remote)
		return open_remote(set, from, name, path, io);
	fd = open_named(set, from, name, false, path);
	if (fd < 0)
		return fd;
	/* It is not locked again: if it is the mounted one, our own lock on it may exclude all others. */
	*file = find_open(set, fd);
	if (*file) {
		close(fd);
		if (*file == set->shared.root && is_revision(set, from))
			*file = from;
		return 0;
	}
	rc = h5_io_open_fd(fd, set->options.lock, false, io);
	/* Some programs take EWOULDBLOCK of a read() for the end of the file. */
	if (rc == -EWOULDBLOCK)
		return h5_fail(-EBUSY, H5_UNDEF, "%s: %s", name, h5_error_last()->text);
	return rc ? h5_fail_in(rc, "%s", name) : 0;
}

/* ---- revisions ---- */

const struct h5_onion *h5_file_set_revisions(const struct h5_file_set *set)
{
	return set->onion;
}

uint64_t h5_file_set_shown_revision(const struct h5_file_set *set)
{
	return set->options.has_revision ? set->options.revision : h5_onion_newest(set->onion);
}

/* With the lock. */
static int open_revision(struct h5_file_set *set, uint64_t revision)
{
	struct h5_io *io;
	int rc;

	if (set->count >= FILES_MAX)
		return h5_fail(-ENFILE, H5_UNDEF,
			       "revision %ju: more than %d other files (-o revision= shows it)",
			       (uintmax_t)revision, FILES_MAX);
	rc = h5_onion_open_revision(set->onion, revision, false, &io);
	if (!rc)
		rc = h5_fail_in(add_revision(set, io, "", &set->revisions[revision]), "revision %ju",
				(uintmax_t)revision);
	return rc;
}

int h5_file_set_find_revision(struct h5_file_set *set, uint64_t revision, struct h5_file **file)
{
	int rc = 0;

	if (!set->onion || revision > h5_onion_newest(set->onion))
		return -ENOENT;
	pthread_mutex_lock(&set->lock);
	if (!set->revisions[revision])
		rc = open_revision(set, revision);
	*file = set->revisions[revision];
	pthread_mutex_unlock(&set->lock);
	return rc;
}

int h5_file_set_check_revision(struct h5_file_set *set, uint64_t revision)
{
	int rc;

	pthread_mutex_lock(&set->lock);
	rc = h5_onion_check(set->onion, revision);
	pthread_mutex_unlock(&set->lock);
	return rc;
}

/* ---- other HDF5 files ---- */

int h5_file_set_find(struct h5_file_set *set, struct h5_file *from, const char *name, struct h5_file **file)
{
	char path[PATH_SIZE];
	struct h5_io_stat st;
	struct h5_io *io;
	int rc = open_found(set, from, name, path, &io, file);

	if (rc || *file)
		return rc;
	rc = h5_io_stat(io, &st);
	pthread_mutex_lock(&set->lock);
	*file = rc ? NULL : find_file(set, st.device, st.inode);
	if (rc || *file) {
		h5_io_close(io);
	} else if (set->count >= FILES_MAX) {
		h5_io_close(io);
		rc = h5_fail(-ENFILE, H5_UNDEF, "%s: more than %d other files", name, FILES_MAX);
	} else {
		rc = h5_fail_in(add_file(set, io, path, NULL, file), "%s", name);
	}
	pthread_mutex_unlock(&set->lock);
	return rc;
}
