#include "remote/disk_folder.h"

#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OPEN_MAX_FILES = 512, /* descriptors are for connections, too */
	OPENINGS = 3,	      /* tries, if others make and remove the file meanwhile */
	OVERHEAD = 8 << 10,   /* bytes of a new file without blocks */
};

/* ---- the log ---- */

static void note(struct h5_disk_folder *folder, const char *name, const char *why, const char *outcome)
{
	if (!*folder->note)
		snprintf(folder->note, sizeof folder->note, "%.*s: %.60s: %s", H5_DISK_NAME, name, why,
			 outcome);
}

/* ---- names ---- */

/* True: the name leads to that very file. */
static bool leads_to(int folder, const char *name, const struct stat *file)
{
	struct stat st;

	return !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == file->st_dev &&
	       st.st_ino == file->st_ino;
}

/* Makes an empty file under a name that nobody knows: its descriptor, or a negative errno. It is locked as
 * one in use. */
static int make_new(int folder, char name[H5_DISK_NAME])
{
	uint64_t chance = 0;
	int fd, rc = 0;

	if (getrandom(&chance, sizeof chance, 0) < 0)
		return -errno;
	snprintf(name, H5_DISK_NAME, H5_DISK_NEW "%016" PRIx64, chance);
	fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_SH | LOCK_NB))
		rc = -errno;
	if (rc) {
		unlinkat(folder, name, 0);
		close(fd);
	}
	return rc ? rc : fd;
}

static int refuse(const char *path, int code)
{
	return h5_fail(code, H5_UNDEF, "disk_cache=%s: %s", path,
		       code == -ELOOP ? "a symbolic link" : strerror(-code));
}

/* On a full disk what is there can still be read. Somebody who makes room may have taken the file away. */
static int try_folder(int folder)
{
	char name[H5_DISK_NAME];
	int fd = make_new(folder, name);

	if (fd < 0)
		return fd == -ENOSPC || fd == -EDQUOT || fd == -EWOULDBLOCK ? 0 : fd;
	close(fd);
	return unlinkat(folder, name, 0) && errno != ENOENT ? -errno : 0;
}

int h5_disk_folder_open(const char *path)
{
	int fd, rc;

	if (mkdir(path, 0700) && errno != EEXIST)
		return refuse(path, -errno);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		struct stat st;

		rc = -errno;
		return refuse(path, !lstat(path, &st) && S_ISLNK(st.st_mode) ? -ELOOP : rc);
	}
	rc = try_folder(fd);
	if (rc) {
		close(fd);
		return refuse(path, rc);
	}
	return fd;
}

/* ---- opening ---- */

static int unsound(const char *what)
{
	return h5_fail(-EUCLEAN, H5_UNDEF, "%s", what);
}

/* The errors of open(2) that say something about the file. */
static int open_failed(int code)
{
	switch (code) {
	case ELOOP:
		return unsound("a symbolic link");
	case EISDIR:
	case ENXIO:
	case ENODEV:
		return unsound("not a regular file");
	case EACCES:
	case EPERM:
		return unsound("not a file of this user");
	default:
		return -code;
	}
}

/* 0: it is a file that this user alone can have written, and we have a lock of it. -ENOENT: it is just being
 * removed. */
static int check_owner(int folder, const char *name, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return unsound("not a regular file");
	if (st.st_uid != geteuid())
		return unsound("not a file of this user");
	if (st.st_mode & 022)
		return unsound("others may write it");
	if (st.st_nlink > 1)
		return unsound("it has several names");
	if (flock(fd, LOCK_SH | LOCK_NB))
		return errno == EWOULDBLOCK ? -ENOENT : -errno;
	return leads_to(folder, name, &st) ? 0 : -ENOENT;
}

/* Takes the descriptor over. */
static int begin(struct h5_disk_folder *folder, int fd, const char *name, struct h5_disk_file **out)
{
	struct h5_disk_file *file = calloc(1, sizeof *file);

	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	if (h5_io_open_fd(fd, H5_LOCK_NONE, true, &file->io)) {
		free(file);
		return -ENOMEM;
	}
	file->fd = fd;
	snprintf(file->name, sizeof file->name, "%s", name);
	folder->open++;
	*out = file;
	return 0;
}

/* -ENOENT: there is none; -EUCLEAN: not one that is believed; else it is not to be had now. */
static int open_named(struct h5_disk_folder *folder, const char *name, struct h5_disk_file **file)
{
	int fd = openat(folder->fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

	if (fd < 0)
		return open_failed(errno);
	rc = check_owner(folder->fd, name, fd);
	if (rc) {
		close(fd);
		return rc;
	}
	rc = begin(folder, fd, name, file);
	if (rc)
		return rc;
	rc = h5_disk_file_start(*file);
	if (rc) {
		h5_disk_close(folder, *file);
		*file = NULL;
	}
	return rc;
}

/* Removes what has the name of a file of the cache and is none. */
static void throw_away(struct h5_disk_folder *folder, const char *name, const char *why)
{
	bool gone = !unlinkat(folder->fd, name, 0) || errno == ENOENT;

	note(folder, name, why, gone ? "thrown away" : "not used, and cannot be removed");
}

void h5_disk_use(struct h5_disk_file *file)
{
	file->used = true;
	futimens(file->fd, NULL);
}

void h5_disk_close(struct h5_disk_folder *folder, struct h5_disk_file *file)
{
	if (!file)
		return;
	if (file->used)
		h5_disk_use(file);
	folder->open--;
	h5_io_close(file->io);
	free(file);
}

void h5_disk_discard(struct h5_disk_folder *folder, struct h5_disk_file *file, const char *why)
{
	struct stat st;

	/* The name may lead to a new file by now. */
	if (!fstat(file->fd, &st) && leads_to(folder->fd, file->name, &st))
		throw_away(folder, file->name, why);
	h5_disk_close(folder, file);
}

/* ---- */

/* Opens the file of that name if it is believed, and holds what the header says; else throws it away. */
static int open_sound(struct h5_disk_folder *folder, const char *name, const uint8_t url[H5_SHA256],
		      struct h5_disk_file **file)
{
	char own[H5_DISK_NAME];
	int rc = open_named(folder, name, file);

	if (!rc) {
		h5_disk_name((*file)->header.url, (*file)->header.tag, own);
		if (memcmp((*file)->header.url, url, H5_SHA256) || strcmp(own, name)) {
			h5_disk_discard(folder, *file, "the file of another URL");
			*file = NULL;
			rc = -ENOENT;
		}
	} else if (rc == -EUCLEAN) {
		throw_away(folder, name, h5_error_last()->text);
	}
	return rc;
}

/* The name that was used last of those of the URL; false: there is none. */
static bool find_name(int folder, const uint8_t url[H5_SHA256], char name[H5_DISK_NAME])
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct timespec best = {0};
	const struct dirent *entry;
	struct stat st;
	bool found = false;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir))) {
		if (!h5_disk_is_name(entry->d_name, url) ||
		    fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (found && (st.st_mtim.tv_sec < best.tv_sec ||
			      (st.st_mtim.tv_sec == best.tv_sec && st.st_mtim.tv_nsec <= best.tv_nsec)))
			continue;
		found = true;
		best = st.st_mtim;
		snprintf(name, H5_DISK_NAME, "%.*s", H5_DISK_NAME - 1, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

struct h5_disk_file *h5_disk_find(struct h5_disk_folder *folder, const uint8_t url[H5_SHA256])
{
	struct h5_disk_file *file = NULL;
	char name[H5_DISK_NAME];

	if (!folder->there || folder->open >= OPEN_MAX_FILES || !find_name(folder->fd, url, name) ||
	    open_sound(folder, name, url, &file))
		return NULL;
	return file;
}

/* Makes the file under another name first, so that nobody sees it before it is whole. -EEXIST: somebody else
 * was faster. */
static int make(struct h5_disk_folder *folder, const char *name, const struct h5_disk_header *header,
		struct h5_disk_file **file)
{
	char new[H5_DISK_NAME];
	int fd = make_new(folder->fd, new), rc;

	if (fd < 0)
		return fd;
	rc = begin(folder, fd, name, file);
	if (!rc) {
		(*file)->header = *header;
		rc = h5_disk_file_make(*file);
	}
	if (!rc && renameat2(folder->fd, new, folder->fd, name, RENAME_NOREPLACE))
		rc = -errno;
	/* Not every file system knows the flag. */
	if (rc == -EINVAL)
		rc = renameat(folder->fd, new, folder->fd, name) ? -errno : 0;
	if (rc) {
		unlinkat(folder->fd, new, 0);
		h5_disk_close(folder, *file);
		*file = NULL;
	}
	return rc;
}

/* Of a file that was opened: false: it is of another size than the one that a server tells. */
static bool is_same(struct h5_disk_folder *folder, struct h5_disk_file *file,
		    const struct h5_disk_header *header)
{
	if (file->header.size == header->size && !strcmp(file->header.tag, header->tag))
		return true;
	h5_disk_discard(folder, file, "another file has the same entity tag");
	return false;
}

struct h5_disk_file *h5_disk_open(struct h5_disk_folder *folder, const struct h5_disk_header *header)
{
	struct h5_disk_file *file = NULL;
	char name[H5_DISK_NAME];
	int rc = -EAGAIN;

	if (!folder->there || folder->open >= OPEN_MAX_FILES)
		return NULL;
	h5_disk_name(header->url, header->tag, name);
	for (unsigned i = 0; i < OPENINGS && rc; i++) {
		rc = open_sound(folder, name, header->url, &file);
		if (!rc && !is_same(folder, file, header))
			rc = -ENOENT;
		if (rc != -ENOENT && rc != -EUCLEAN)
			continue;
		file = NULL;
		if (!h5_disk_has_room(folder, OVERHEAD))
			return NULL;
		rc = make(folder, name, header, &file);
	}
	if (rc && rc != -EEXIST && rc != -ENOENT && rc != -EWOULDBLOCK)
		h5_disk_stop(folder, rc);
	if (!rc)
		h5_disk_use(file);
	return rc ? NULL : file;
}
