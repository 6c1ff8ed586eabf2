/* Journals that do not lie where they are looked for: the file was renamed, or the folder was named by an
 * option. */
#include "base/error.h"
#include "base/lookup3.h"
#include "store/journal_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".h5fs-journal"

enum {
	NAMES_MAX = 100000, /* that are looked at in one folder */
	OPENED_MAX = 1000,  /* journals among them that are opened */
};

/* ---- where it lies ---- */

/* What the file is known by, whatever its name will be. */
static struct h5_journal_file identify(const char *path, uint64_t inode)
{
	struct statx st;

	if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &st) || !(st.stx_mask & STATX_BTIME) ||
	    st.stx_ino != inode)
		return (struct h5_journal_file){0};
	return (struct h5_journal_file){
		.inode = inode, .born = (uint64_t)st.stx_btime.tv_sec, .nanoseconds = st.stx_btime.tv_nsec};
}

/* In a folder for the journals of many files its name tells whose it is, and a link beside the file leads to
 * it.
 */
static int place_elsewhere(struct h5_journal_home *home, const char *name, int beside, const char *given)
{
	char *folder = realpath(given, NULL);
	int rc = folder ? 0 : -errno;

	if (!rc && (asprintf(&home->pointer, "%s" SUFFIX, name) < 0 ||
		    asprintf(&home->path, "%s/%s", folder, home->name) < 0))
		rc = -ENOMEM;
	free(folder);
	if (rc)
		return h5_fail(rc, H5_UNDEF, "folder of the journal '%s': %s", given, strerror(-rc));
	home->place.beside = beside;
	home->place.pointer = home->pointer;
	home->place.path = home->path;
	return 0;
}

void h5_journal_home_init(struct h5_journal_home *home)
{
	*home = (struct h5_journal_home){.place = {.dirfd = -1, .name = home->name}};
}

int h5_journal_home_open(struct h5_journal_home *home, struct h5_io *io, const char *path, int beside,
			 const char *folder)
{
	const char *name = strrchr(path, '/') + 1;
	struct h5_journal_place *place = &home->place;
	char whose[2 * 8 + 2] = "";
	struct h5_io_stat st;
	int rc = h5_io_stat(io, &st), n;

	if (rc)
		return rc;
	if (folder)
		snprintf(whose, sizeof whose, ".%08x%08x", h5_lookup3(path, strlen(path), 0),
			 h5_lookup3(path, strlen(path), 1));
	n = snprintf(home->name, sizeof home->name, "%s%s" SUFFIX, name, whose);
	if ((size_t)n >= sizeof home->name)
		return h5_fail(-ENAMETOOLONG, H5_UNDEF, "the name is too long for that of a journal");
	place->owner = st.owner;
	place->mode = st.mode;
	place->file = identify(path, st.inode);
	place->dirfd = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)
			      : openat(beside, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place->dirfd < 0)
		return h5_fail(-errno, H5_UNDEF, "folder of the journal '%s': %s", folder ? folder : ".",
			       strerror(errno));
	return folder ? place_elsewhere(home, name, beside, folder) : 0;
}

void h5_journal_home_release(struct h5_journal_home *home)
{
	if (home->place.dirfd >= 0)
		close(home->place.dirfd);
	free(home->pointer);
	free(home->path);
	h5_journal_home_init(home);
}

/* ---- a file that was renamed ---- */

static bool is_journal(const char *name)
{
	size_t n = strlen(name), suffix = sizeof SUFFIX - 1;

	return n > suffix && !strcmp(name + n - suffix, SUFFIX);
}

static int search(const struct h5_journal_place *place, DIR *dir, char *name, size_t size)
{
	unsigned names = 0, opened = 0;
	const struct dirent *entry;

	while (names++ < NAMES_MAX && opened < OPENED_MAX && (entry = readdir(dir))) {
		struct h5_journal_header header;

		if (!is_journal(entry->d_name) || strlen(entry->d_name) >= size)
			continue;
		opened++;
		/* One that cannot be read, or is none, is none of ours. */
		if (!h5_journal_peek(place, entry->d_name, &header) &&
		    h5_journal_same_file(&header.file, &place->file)) {
			strcpy(name, entry->d_name);
			return 0;
		}
	}
	return -ENOENT;
}

int h5_journal_find(const struct h5_journal_place *place, char *name, size_t size)
{
	struct stat st;
	DIR *dir;
	int fd, rc;

	if (!fstatat(place->dirfd, place->name, &st, AT_SYMLINK_NOFOLLOW) || errno != ENOENT)
		return -ENOENT; /* what has the right name is the one */
	fd = openat(place->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -ENOENT;
	}
	rc = search(place, dir, name, size);
	closedir(dir);
	return rc;
}

int h5_journal_adopt(const struct h5_journal_place *place, const char *name)
{
	struct h5_journal_place found = *place;
	struct h5_io *io;
	int rc;

	found.name = name;
	found.wrap = NULL;
	rc = h5_journal_open(&found, false, true, &io);
	if (rc)
		return rc;
	rc = renameat2(place->dirfd, name, place->dirfd, place->name, RENAME_NOREPLACE);
	/* Not every file system knows the flag. Nothing had that name when the search began. */
	if (rc && errno == EINVAL)
		rc = renameat(place->dirfd, name, place->dirfd, place->name);
	if (rc)
		rc = h5_fail(-errno, H5_UNDEF, "journal: renaming %s to %s: %s", name, place->name,
			     strerror(errno));
	else
		rc = h5_journal_sync_directory(place->dirfd);
	h5_io_close(io);
	return rc;
}

/* ---- a journal in a folder of its own ---- */

/* True: what stands beside the file is the symbolic link to this journal. */
static bool is_pointer(const struct h5_journal_place *place)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(place->beside, place->pointer, target, sizeof target);

	return n >= 0 && (size_t)n == strlen(place->path) && !memcmp(target, place->path, (size_t)n);
}

void h5_journal_point(const struct h5_journal_place *place)
{
	/* The folder was chosen perhaps because this one cannot be written. */
	if (place->pointer && !symlinkat(place->path, place->beside, place->pointer))
		(void)h5_journal_sync_directory(place->beside);
}

void h5_journal_unpoint(const struct h5_journal_place *place)
{
	if (place->pointer && is_pointer(place) && !unlinkat(place->beside, place->pointer, 0))
		(void)h5_journal_sync_directory(place->beside);
}

int h5_journal_check_beside(const struct h5_journal_place *place)
{
	struct stat st;

	if (!place->pointer || fstatat(place->beside, place->pointer, &st, AT_SYMLINK_NOFOLLOW) ||
	    is_pointer(place))
		return 0;
	return h5_fail(-EPERM, H5_UNDEF,
		       "journal: there is another one, %s beside the file: first mount or --recover "
		       "it without -o journal",
		       place->pointer);
}
