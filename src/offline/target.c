#include "offline/target.h"

#include "base/array.h"
#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	MODE_BITS = 07777,
	TRIES = 1000, /* of names for a file that is not whole */
};

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* What tells a directory from another one that was moved to its place. */
struct h5_target_place {
	dev_t device;
	ino_t number;
};

static int refuse(const char *what)
{
	return h5_fail(-errno, H5_UNDEF, "%s: %s", what, strerror(errno));
}

/* ---- the directory ---- */

static int check_empty(int fd)
{
	int copy = openat(fd, ".", DIRECTORY);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	if (!dir) {
		int rc = -errno;

		if (copy >= 0)
			close(copy);
		return h5_fail(rc, H5_UNDEF, "%s", strerror(-rc));
	}
	do
		entry = readdir(dir);
	while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")));
	closedir(dir);
	return entry ? h5_fail(-ENOTEMPTY, H5_UNDEF, "it must be new or empty") : 0;
}

int h5_target_open(const char *path, struct h5_target *target)
{
	int rc;

	*target = (struct h5_target){.top = -1, .here = -1};
	if (mkdir(path, 0777) && errno != EEXIST)
		return refuse("cannot be made");
	target->top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (target->top < 0)
		return refuse("cannot be opened");
	target->here = target->top;
	rc = check_empty(target->top);
	if (rc)
		h5_target_close(target);
	return rc;
}

static void move_to(struct h5_target *target, int fd)
{
	if (target->here != target->top)
		close(target->here);
	target->here = fd;
}

void h5_target_close(struct h5_target *target)
{
	if (target->top < 0)
		return;
	move_to(target, target->top);
	close(target->top);
	target->top = target->here = -1;
	free(target->above);
	target->above = NULL;
}

int h5_target_enter(struct h5_target *target, const char *name)
{
	struct stat st;
	int fd, rc = h5_array_reserve(&target->above, &target->capacity, target->depth + 1, NULL);

	if (rc)
		return rc;
	if (fstat(target->here, &st) || mkdirat(target->here, name, 0700))
		return refuse("cannot be made");
	fd = openat(target->here, name, DIRECTORY);
	if (fd < 0)
		return refuse("cannot be opened");
	target->above[target->depth++] = (struct h5_target_place){st.st_dev, st.st_ino};
	move_to(target, fd);
	return 0;
}

int h5_target_leave(struct h5_target *target)
{
	const struct h5_target_place *up = &target->above[target->depth - 1];
	struct stat st;
	int fd = target->depth == 1 ? target->top : openat(target->here, "..", DIRECTORY), rc = 0;

	if (fd < 0 || fstat(fd, &st))
		rc = refuse("the directory above cannot be opened");
	else if (st.st_dev != up->device || st.st_ino != up->number)
		rc = h5_fail(-ESTALE, H5_UNDEF, "another program has moved it");
	if (rc) {
		if (fd >= 0 && fd != target->top)
			close(fd);
		return rc;
	}
	target->depth--;
	move_to(target, fd);
	return 0;
}

/* ---- what a copy has of its original ---- */

/* Only root may give files away. */
static bool is_forbidden(void)
{
	return errno == EPERM || errno == EINVAL;
}

static int set_status(int fd, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};

	if (fchown(fd, st->st_uid, st->st_gid) && !is_forbidden())
		return refuse("its owner");
	/* A file system without modes refuses, too. */
	if (fchmod(fd, st->st_mode & MODE_BITS) && !is_forbidden())
		return refuse("its mode");
	return futimens(fd, times) ? refuse("its times") : 0;
}

int h5_target_end_directory(const struct h5_target *target, const struct stat *st)
{
	return set_status(target->here, st);
}

int h5_target_attribute(int fd, const char *name, const char *value, size_t size)
{
	return fsetxattr(fd, name, value, size, 0) ? refuse(name) : 0;
}

/* ---- links ---- */

int h5_target_symlink(const struct h5_target *target, const char *text, const char *name,
		      const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};

	if (symlinkat(text, target->here, name))
		return refuse("cannot be made");
	if (fchownat(target->here, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) && !is_forbidden())
		return refuse("its owner");
	return utimensat(target->here, name, times, AT_SYMLINK_NOFOLLOW) ? refuse("its times") : 0;
}

/* Opens the directory that the path's last name is in; *last becomes that name. */
static int open_parent(const struct h5_target *target, char *path, char **last)
{
	int fd = openat(target->top, ".", DIRECTORY);

	*last = path;
	for (char *slash; fd >= 0 && (slash = strchr(*last, '/')); *last = slash + 1) {
		int next;

		*slash = 0;
		next = openat(fd, *last, DIRECTORY);
		close(fd);
		fd = next;
	}
	return fd;
}

int h5_target_link(const struct h5_target *target, const char *first, const char *name)
{
	char *path = strdup(first), *last;
	int fd = path ? open_parent(target, path, &last) : -1, rc = 0;

	if (fd < 0 || linkat(fd, last, target->here, name, 0))
		rc = refuse("cannot be made as a hard link");
	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}

/* ---- files ---- */

int h5_target_begin(const struct h5_target *target, const char *name, struct h5_target_file *file)
{
	/* An entry of the tree may have such a name. */
	file->fd = -1;
	for (unsigned i = 0; i < TRIES; i++) {
		snprintf(file->name, sizeof file->name, ".h5fs-partial-%u", i);
		if (!strcmp(file->name, name))
			continue;
		file->fd = openat(target->here, file->name,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (file->fd >= 0 || errno != EEXIST)
			break;
	}
	return file->fd < 0 ? refuse("cannot be made") : 0;
}

int h5_target_write(const struct h5_target_file *file, uint64_t offset, const char *data, size_t n)
{
	while (n) {
		ssize_t written = pwrite(file->fd, data, n, (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return refuse("cannot be written");
		data += written;
		offset += (uint64_t)written;
		n -= (size_t)written;
	}
	return 0;
}

/* Two links of a damaged group may have the same name: the first one stays. */
static int give_name(const struct h5_target *target, const struct h5_target_file *file, const char *name)
{
	struct stat st;

	if (!renameat2(target->here, file->name, target->here, name, RENAME_NOREPLACE))
		return 0;
	/* Not all file systems know that flag. */
	if (errno == EINVAL && fstatat(target->here, name, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT &&
	    !renameat(target->here, file->name, target->here, name))
		return 0;
	return refuse("cannot be named");
}

int h5_target_end(const struct h5_target *target, struct h5_target_file *file, const char *name,
		  uint64_t size, const struct stat *st)
{
	int rc = ftruncate(file->fd, (off_t)size) ? refuse("cannot be written") : set_status(file->fd, st);

	/* Some file systems tell only now that there is no space. */
	if (close(file->fd) && !rc)
		rc = refuse("cannot be written");
	file->fd = -1;
	if (!rc)
		rc = give_name(target, file, name);
	if (rc)
		unlinkat(target->here, file->name, 0);
	return rc;
}

void h5_target_cancel(const struct h5_target *target, struct h5_target_file *file)
{
	close(file->fd);
	file->fd = -1;
	unlinkat(target->here, file->name, 0);
}
