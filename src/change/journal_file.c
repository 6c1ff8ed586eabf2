/* The file of a journal: where it lies, opening it, and finding it under another name. */
#include "base/error.h"
#include "base/lookup3.h"
#include "change/journal_private.h"
#include "io/named.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	NAMES_MAX = 100000, /* most names looked at in one folder */
	OPENED_MAX = 1000,  /* most journals opened in one folder */
};

/* ---- where it lies ---- */

/* Identifies the file, also under another name. */
static struct h5_journal_file identify(int folder, const char *name, uint64_t inode)
{
	struct statx st;

	if (statx(folder, name, 0, STATX_INO | STATX_BTIME, &st) || !(st.stx_mask & STATX_BTIME) ||
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

/* The journal lies in a folder of journals (-o journal). A link beside the file leads to it. */
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
	/* Files of the same name, from several folders, may have their journals here. */
	if (folder)
		snprintf(whose, sizeof whose, ".%08x%08x", h5_lookup3(path, strlen(path), 0),
			 h5_lookup3(path, strlen(path), 1));
	n = snprintf(home->name, sizeof home->name, "%s%s" H5_JOURNAL_SUFFIX, name, whose);
	if ((size_t)n >= sizeof home->name)
		return h5_fail(-ENAMETOOLONG, H5_UNDEF, "the name is too long for that of a journal");
	place->owner = st.owner;
	place->mode = st.mode;
	place->file = identify(beside, name, st.inode);
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
	int rc = h5_named_sync_folder(dirfd);

	return rc ? h5_fail(rc, H5_UNDEF, "journal: syncing its directory: %s", strerror(-rc)) : 0;
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

/* ---- opening ---- */

/* A journal decides what is written to the HDF5 file, so only those who may write that may own it. */
static int check_trust(const struct h5_journal_place *place, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return h5_fail(-errno, H5_UNDEF, "journal: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return h5_fail(-EPERM, H5_UNDEF, "journal: %s is no regular file", place->name);
	if (st.st_nlink != 1)
		return h5_fail(-EPERM, H5_UNDEF, "journal: %s has other names", place->name);
	if (st.st_uid != place->owner && st.st_uid != geteuid())
		return h5_fail(-EPERM, H5_UNDEF, "journal: %s belongs to somebody else", place->name);
	return 0;
}

/* Gives the journal the permissions of the HDF5 file. If root makes it, it belongs to the file's owner. */
static int set_rights(const struct h5_journal_place *place, int fd)
{
	if (geteuid() == 0 && place->owner && fchown(fd, (uid_t)place->owner, (gid_t)-1))
		return h5_fail(-errno, H5_UNDEF, "journal: changing its owner: %s", strerror(errno));
	if (fchmod(fd, S_IRUSR | S_IWUSR | (place->mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH))))
		return h5_fail(-errno, H5_UNDEF, "journal: changing its mode: %s", strerror(errno));
	return 0;
}

/* A symbolic link in its place is not followed, but tells the user where to look. */
static int refuse_link(const struct h5_journal_place *place)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(place->dirfd, place->name, target, sizeof target - 1);
	const char *folder = ".";
	char *slash;

	if (n < 0)
		return h5_fail(-ELOOP, H5_UNDEF, "journal: %s: %s", place->name, strerror(ELOOP));
	target[n] = 0;
	slash = strrchr(target, '/');
	if (slash) {
		*slash = 0;
		folder = *target ? target : "/";
	}
	return h5_fail(
		-ELOOP, H5_UNDEF,
		"journal: %s is a symbolic link: remove it if the journal there is no more, else mount "
		"with -o journal=%s",
		place->name, folder);
}

int h5_journal_open(const struct h5_journal_place *place, bool create, bool writable, struct h5_io **io)
{
	int flags = (writable ? O_RDWR : O_RDONLY) | (create ? O_CREAT | O_EXCL : 0);
	int fd = openat(place->dirfd, place->name, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			S_IRUSR | S_IWUSR);
	int rc;

	if (fd < 0)
		return errno == ELOOP
			       ? refuse_link(place)
			       : h5_fail(-errno, H5_UNDEF, "journal: %s: %s", place->name, strerror(errno));
	rc = create ? set_rights(place, fd) : check_trust(place, fd);
	if (rc)
		close(fd);
	else
		rc = h5_fail_in(h5_io_open_fd(fd, H5_LOCK_BEST_EFFORT, writable, io), "journal");
	if (rc && create)
		unlinkat(place->dirfd, place->name, 0);
	if (!rc && place->wrap)
		*io = place->wrap(place->wrap_arg, *io);
	return rc;
}

/* Reads the header of the journal of that name, if it can be trusted, without a lock. */
static int peek(const struct h5_journal_place *place, const char *name, struct h5_journal_header *header)
{
	int fd = openat(place->dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc;
	uint8_t data[H5_JOURNAL_HEADER];
	struct h5_io *io;
	size_t got;

	if (fd < 0)
		return -errno;
	rc = check_trust(place, fd);
	if (rc) {
		close(fd);
		return rc;
	}
	rc = h5_io_open_fd(fd, H5_LOCK_NONE, false, &io);
	if (rc)
		return rc;
	rc = h5_io_read_some(io, 0, data, sizeof data, &got);
	h5_io_close(io);
	return rc ? rc : h5_journal_header_decode(data, got, header);
}

int h5_journal_remove(const struct h5_journal_place *place)
{
	h5_journal_unpoint(place);
	if (unlinkat(place->dirfd, place->name, 0))
		return h5_fail(-errno, H5_UNDEF, "journal: removing %s: %s", place->name, strerror(errno));
	return h5_journal_sync_directory(place->dirfd);
}

/* ---- under another name: the file was renamed while it was mounted, or has several names ---- */

static bool is_journal(const char *name)
{
	size_t n = strlen(name), suffix = sizeof H5_JOURNAL_SUFFIX - 1;

	return n > suffix && !strcmp(name + n - suffix, H5_JOURNAL_SUFFIX);
}

/* True: memory or descriptors ran out, so a file that could not be read may be the journal. A damaged file,
 * or one of another user, is never taken for it: it would keep all files of the folder closed. */
static bool is_short(int rc)
{
	return rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE;
}

static int fail_to_list(int rc)
{
	return is_short(rc) ? h5_fail(rc, H5_UNDEF, "journal: listing its folder: %s", strerror(-rc))
			    : -ENOENT;
}

static int search(const struct h5_journal_place *place, DIR *dir, char *name, size_t size)
{
	unsigned names = 0, opened = 0;
	const struct dirent *entry;
	int rc;

	while (names++ < NAMES_MAX && opened < OPENED_MAX) {
		struct h5_journal_header header;

		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return fail_to_list(-errno);
		if (!is_journal(entry->d_name) || strlen(entry->d_name) >= size)
			continue;
		opened++;
		rc = peek(place, entry->d_name, &header);
		if (!rc && h5_journal_same_file(&header.file, &place->file)) {
			strcpy(name, entry->d_name);
			return 0;
		}
		if (is_short(rc))
			return h5_fail(rc, H5_UNDEF, "journal: reading %s: %s", entry->d_name, strerror(-rc));
		/* Journals of other files, and files that are no journals, are passed over. */
	}
	return -ENOENT;
}

/* *dir is the caller's. -EACCES, ...: it cannot be listed. */
static int list(const struct h5_journal_place *place, DIR **dir)
{
	int fd = openat(place->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	*dir = fd < 0 ? NULL : fdopendir(fd);
	if (*dir)
		return 0;
	rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

int h5_journal_find(const struct h5_journal_place *place, char *name, size_t size)
{
	struct stat st;
	DIR *dir;
	int rc;

	if (!fstatat(place->dirfd, place->name, &st, AT_SYMLINK_NOFOLLOW))
		return -ENOENT; /* something has the right name, so no other name is looked for */
	rc = errno == ENOENT ? list(place, &dir) : -errno;
	if (rc)
		return fail_to_list(rc);
	rc = search(place, dir, name, size);
	closedir(dir);
	return rc;
}

/* True: it is a name of the HDF5 file in the folder of the journal. A file that is mounted on a name is not
 * in the folder. */
static bool is_name_of_file(const struct h5_journal_place *place, const char *name)
{
	struct h5_journal_file file;
	struct statx st;

	if (statx(place->dirfd, name, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &st) ||
	    !(st.stx_mask & STATX_BTIME) || st.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return false;
	file = (struct h5_journal_file){.inode = st.stx_ino,
					.born = (uint64_t)st.stx_btime.tv_sec,
					.nanoseconds = st.stx_btime.tv_nsec};
	return h5_journal_same_file(&file, &place->file);
}

/* True: who opens the file by that name looks for the journal under other names, since nothing has the right
 * one; or it is the name that the journal has. */
static bool leads_to_journal(const struct h5_journal_place *place, const char *name)
{
	char right[NAME_MAX + 1];
	struct stat st;

	if ((size_t)snprintf(right, sizeof right, "%s" H5_JOURNAL_SUFFIX, name) >= sizeof right)
		return false;
	return !strcmp(right, place->name) ||
	       (fstatat(place->dirfd, right, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT);
}

bool h5_journal_is_found_by_all(const struct h5_journal_place *place, uint64_t names)
{
	DIR *dir;
	unsigned seen = 0, journals = 1; /* ours is made later */
	const struct dirent *entry;
	uint64_t found = 0;

	/* In a folder of its own, the journal is found only by who names that folder. */
	if (place->pointer || list(place, &dir))
		return false;
	/* Within the limits of search(), or that would not find it either. */
	while (seen++ < NAMES_MAX && journals < OPENED_MAX && found < names && (entry = readdir(dir))) {
		journals += is_journal(entry->d_name);
		found += is_name_of_file(place, entry->d_name) && leads_to_journal(place, entry->d_name);
	}
	closedir(dir);
	return found == names;
}

/* The HDF5 file was renamed. Removes the link that lay beside it under its old name and led to the journal.
 * `name`: the journal's old name, which begins with the HDF5 file's old name. */
static void drop_old_pointer(const struct h5_journal_place *place, const char *name)
{
	size_t file = strlen(name) - (sizeof H5_JOURNAL_WHOSE - 1) - (sizeof H5_JOURNAL_SUFFIX - 1);
	char pointer[NAME_MAX + 1], path[PATH_MAX];
	const struct h5_journal_place old = {.beside = place->beside, .pointer = pointer, .path = path};

	if (!place->pointer || file > strlen(name))
		return;
	snprintf(pointer, sizeof pointer, "%.*s" H5_JOURNAL_SUFFIX, (int)file, name);
	snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(place->path, '/') - place->path), place->path,
		 name);
	h5_journal_unpoint(&old);
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
	/* Not every file system knows the flag. When the search began, nothing had that name. */
	if (rc && errno == EINVAL)
		rc = renameat(place->dirfd, name, place->dirfd, place->name);
	if (rc)
		rc = h5_fail(-errno, H5_UNDEF, "journal: renaming %s to %s: %s", name, place->name,
			     strerror(errno));
	else
		rc = h5_journal_sync_directory(place->dirfd);
	if (!rc)
		drop_old_pointer(place, name);
	h5_io_close(io);
	return rc;
}
