/* Where a journal lies, and the symbolic link that leads to one in a folder of its own. */
#include "base/error.h"
#include "base/lookup3.h"
#include "change/journal_private.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- where it lies ---- */

/* Identifies the file, also under another name. */
static struct h5_journal_file identify(const char *path, uint64_t inode)
{
	struct statx st;

	if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &st) || !(st.stx_mask & STATX_BTIME) ||
	    st.stx_ino != inode)
		return (struct h5_journal_file){0};
	return (struct h5_journal_file){
		.inode = inode, .born = (uint64_t)st.stx_btime.tv_sec, .nanoseconds = st.stx_btime.tv_nsec};
}

static char *join(const char *folder, const char *slash, const char *name)
{
	char *path;

	return asprintf(&path, "%s%s%s", folder, slash, name) < 0 ? NULL : path;
}

/* The journal lies in a folder for those of many files. A link beside the file leads to it. */
static int place_elsewhere(struct h5_journal_home *home, const char *name, int beside, const char *given)
{
	char *folder = realpath(given, NULL);

	if (!folder)
		return h5_fail(-errno, H5_UNDEF, "folder of the journal '%s': %s", given, strerror(errno));
	home->pointer = join(name, "", H5_JOURNAL_SUFFIX);
	home->path = join(folder, "/", home->name);
	free(folder);
	if (!home->pointer || !home->path)
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
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
	char whose[sizeof H5_JOURNAL_WHOSE] = "";
	struct h5_io_stat st;
	int rc = h5_io_stat(io, &st), n;

	if (rc)
		return rc;
	/* In such a folder, several files may have the same name. */
	if (folder)
		snprintf(whose, sizeof whose, ".%08x%08x", h5_lookup3(path, strlen(path), 0),
			 h5_lookup3(path, strlen(path), 1));
	n = snprintf(home->name, sizeof home->name, "%s%s" H5_JOURNAL_SUFFIX, name, whose);
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

/* ---- a journal in a folder of its own ---- */

/* True: beside the file is the symbolic link to this journal. */
static bool is_pointer(const struct h5_journal_place *place)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(place->beside, place->pointer, target, sizeof target);

	return n >= 0 && (size_t)n == strlen(place->path) && !memcmp(target, place->path, (size_t)n);
}

int h5_journal_sync_directory(int dirfd)
{
	/* An O_PATH descriptor cannot be synced. */
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	/* EINVAL: this file system need not sync directories. */
	if (fd < 0 || (fsync(fd) && errno != EINVAL))
		rc = h5_fail(-errno, H5_UNDEF, "journal: syncing its directory: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

void h5_journal_point(const struct h5_journal_place *place)
{
	/* A failure is fine: perhaps the other folder was chosen since this one cannot be written. */
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
