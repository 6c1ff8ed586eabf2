/* The budget of the disk cache. Processes that share the folder know nothing of each other: each counts what
 * is there before it writes, and then writes only a part of what is left. */
#include "base/array.h"
#include "base/checked.h"
#include "remote/disk_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	FILES_MAX = 1 << 16, /* more are not looked at */
	PART = 4,	     /* of what is left may be written before the next count */
	LEAST = 4 << 20,     /* or so many bytes, if there are */
	SPARE = 16,	     /* a part of the budget that is free once files had to go */
	PAUSE = 5,	     /* seconds without room before the next count */
};

struct entry {
	char name[H5_DISK_NAME];
	uint64_t bytes;
	struct timespec used;
};

struct entries {
	struct entry *items; /* owned */
	size_t count, capacity;
	uint64_t bytes;
};

static int64_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Notes a file of the cache, also one that is still being made. */
static int note_entry(struct entries *all, int folder, const char *name)
{
	struct stat st;
	int rc;

	if ((!h5_disk_is_name(name, NULL) && strncmp(name, H5_DISK_NEW, strlen(H5_DISK_NEW))) ||
	    strlen(name) >= H5_DISK_NAME || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode) || st.st_uid != geteuid() || all->count == FILES_MAX)
		return 0;
	rc = h5_array_reserve(&all->items, &all->capacity, all->count + 1, NULL);
	if (rc)
		return rc;
	all->items[all->count] = (struct entry){.bytes = 512 * (uint64_t)st.st_blocks, .used = st.st_mtim};
	strcpy(all->items[all->count++].name, name);
	all->bytes += 512 * (uint64_t)st.st_blocks;
	return 0;
}

static int count_files(int folder, struct entries *all)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (!rc && (entry = readdir(dir)))
		rc = note_entry(all, folder, entry->d_name);
	closedir(dir);
	return rc;
}

/* Those first that were not used for longest. */
static int compare(const void *a, const void *b)
{
	const struct timespec *x = &((const struct entry *)a)->used, *y = &((const struct entry *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return h5_compare_signed(x->tv_sec, y->tv_sec);
	return h5_compare_signed(x->tv_nsec, y->tv_nsec);
}

/* True: the file is gone. Who uses it has a lock of it, and who opens it sees whether it still has its name
 * once it has the lock. */
static bool remove_unused(int folder, const char *name)
{
	/* NFS gives an exclusive lock only to those who may write. */
	int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool gone;

	if (fd < 0)
		return errno == ENOENT;
	gone = !flock(fd, LOCK_EX | LOCK_NB) && !unlinkat(folder, name, 0);
	close(fd);
	return gone;
}

/* Takes files away until the rest has at most so many bytes; returns the bytes of the rest. */
static uint64_t reduce(int folder, struct entries *all, uint64_t most)
{
	uint64_t left = all->bytes;

	if (all->count)
		qsort(all->items, all->count, sizeof *all->items, compare);
	for (size_t i = 0; i < all->count && left > most; i++)
		if (remove_unused(folder, all->items[i].name))
			left -= all->items[i].bytes;
	return left;
}

/* Bytes that may be written. */
static uint64_t make_room(struct h5_disk_folder *folder, uint64_t n)
{
	uint64_t budget = folder->budget, left = 0;
	struct entries all = {0};
	int rc = count_files(folder->fd, &all);

	if (!rc && n <= budget && all.bytes > budget - n)
		all.bytes = reduce(folder->fd, &all, budget - h5_max(n, budget / SPARE));
	if (!rc)
		left = budget - h5_min(all.bytes, budget);
	free(all.items);
	if (rc)
		h5_disk_stop(folder, rc);
	return h5_min(left, h5_max(left / PART, LEAST));
}

void h5_disk_stop(struct h5_disk_folder *folder, int code)
{
	if (folder->stopped)
		return;
	folder->stopped = true;
	snprintf(folder->note, sizeof folder->note, "nothing more is stored: %s", strerror(-code));
}

bool h5_disk_has_room(struct h5_disk_folder *folder, uint64_t n)
{
	if (folder->stopped)
		return false;
	if (folder->room < n) {
		if (folder->counted && seconds() - folder->counted < PAUSE)
			return false;
		folder->room = make_room(folder, n);
		folder->counted = folder->room < n ? seconds() : 0;
	}
	if (folder->room < n)
		return false;
	folder->room -= n;
	return true;
}
