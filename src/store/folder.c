#include "store/folder.h"

#include "base/error.h"
#include "io/named.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READABLE = S_IRUSR | S_IRGRP | S_IROTH };

static int open_folder(struct h5_folder *folder, int at, const char *name, const char *path)
{
	int rc;

	folder->path = strdup(path);
	if (!folder->path)
		return -ENOMEM;
	folder->fd = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder->fd >= 0)
		return 0;
	rc = h5_fail(-errno, H5_UNDEF, "%s: %s", path, strerror(errno));
	h5_folder_close(folder);
	return rc;
}

int h5_folder_open(struct h5_folder *folder, const char *path)
{
	return open_folder(folder, AT_FDCWD, path, path);
}

int h5_folder_open_at(struct h5_folder *folder, int fd, const char *path)
{
	return open_folder(folder, fd, ".", path);
}

void h5_folder_close(struct h5_folder *folder)
{
	if (folder->fd >= 0)
		close(folder->fd);
	folder->fd = -1;
	free(folder->path);
	folder->path = NULL;
}

/* A descriptor, or a negative errno. */
static int open_candidate(const struct h5_folder *folder, const char *path, bool writable)
{
	int flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	size_t n = strlen(folder->path);
	const char *inside = path;

	/* An absolute path into the folder is a relative one, even if something is mounted over it. */
	if (!strncmp(path, folder->path, n) && path[n] == '/')
		inside = path + n + 1;
	return folder->external == H5_EXTERNAL_ANY
		       ? h5_named_open_anywhere(folder->fd, folder->path, inside, flags)
		       : h5_named_open_beneath(folder->fd, inside, flags);
}

static int open_remote(const struct h5_folder *folder, const char *path, struct h5_io **io)
{
	const char *slash = folder->beside ? strrchr(folder->beside, '/') : NULL;
	char *name;
	int rc;

	if (!slash)
		return h5_io_open_remote(folder->remote, path, io);
	if (asprintf(&name, "%.*s/%s", (int)(slash - folder->beside), folder->beside, path) < 0)
		return -ENOMEM;
	rc = h5_io_open_remote(folder->remote, name, io);
	free(name);
	return rc;
}

int h5_folder_open_member(const struct h5_folder *folder, const char *path, bool writable, struct h5_io **io)
{
	int fd;

	if (folder->remote)
		return open_remote(folder, path, io);
	if (folder->fd < 0)
		return h5_fail(-ENOENT, H5_UNDEF, "%s: no other files around bytes in memory", path);
	fd = open_candidate(folder, path, writable);
	if (fd < 0)
		return h5_fail(h5_named_failure(fd), H5_UNDEF, "%s: %s", path, strerror(-fd));
	return h5_io_open_fd(fd, folder->lock, writable, io);
}

/* The new file gets the permissions of the first member. If root makes it, it belongs to the same owner. */
static int set_rights(int fd, const struct h5_io_stat *first)
{
	if (geteuid() == 0 && first->owner && fchown(fd, (uid_t)first->owner, (gid_t)-1))
		return -errno;
	return fchmod(fd, (mode_t)first->mode) ? -errno : 0;
}

int h5_folder_make_member(const struct h5_folder *folder, const char *name, struct h5_io *first,
			  struct h5_io **io)
{
	struct h5_io_stat st;
	int rc = h5_io_stat(first, &st), fd;

	if (rc)
		return rc;
	fd = openat(folder->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
		    S_IRUSR | S_IWUSR);
	if (fd < 0)
		return h5_fail(-errno, H5_UNDEF, "%s, the next member: %s", name, strerror(errno));
	rc = set_rights(fd, &st);
	if (!rc)
		rc = h5_named_sync_folder(folder->fd);
	if (rc) {
		close(fd);
		rc = h5_fail(rc, H5_UNDEF, "%s, the next member: %s", name, strerror(-rc));
	} else {
		rc = h5_io_open_fd(fd, folder->lock, true, io);
	}
	if (rc)
		unlinkat(folder->fd, name, 0);
	return rc;
}

/* Whether it can be written does not matter: libhdf5 gives the pieces of some files other rights to that. */
static int check_rights(struct h5_io *first, const char *name, struct h5_io *io)
{
	struct h5_io_stat st, begins;
	int rc = h5_io_stat(io, &st);

	if (!rc)
		rc = h5_io_stat(first, &begins);
	if (rc || (st.owner == begins.owner && !((st.mode ^ begins.mode) & READABLE)))
		return rc;
	return h5_fail(-EACCES, H5_UNDEF, "%s: a member of another owner or with other permissions", name);
}

int h5_folder_open_beside(const struct h5_folder *folder, const char *path, const char *name,
			  struct h5_io *first, bool writable, struct h5_io **io)
{
	const char *slash = strrchr(path, '/');
	char *beside;
	int rc;

	/* A name from the file must not lead elsewhere. */
	if (strchr(name, '/'))
		return h5_fail(-EACCES, H5_UNDEF, "%s: a member in another directory", name);
	if (asprintf(&beside, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, name) < 0)
		return -ENOMEM;
	rc = h5_folder_open_member(folder, beside, writable, io);
	free(beside);
	if (!rc && first && (rc = check_rights(first, name, *io))) {
		h5_io_close(*io);
		*io = NULL;
	}
	return rc;
}

int h5_folder_open_named(const struct h5_folder *folder, const char *beside, const char *name, bool writable,
			 char *path, size_t size)
{
	bool forbidden = false;
	int rc, fd = -ENOENT;

	if (folder->external == H5_EXTERNAL_NONE || folder->fd < 0)
		return h5_fail(-EACCES, H5_UNDEF, "%s: other files are not opened in this mount", name);
	for (int attempt = name[0] == '/' ? 0 : 1; attempt < 2; attempt++) {
		const char *tail = name[0] == '/' ? strrchr(name, '/') + 1 : name;
		int n = attempt ? snprintf(path, size, "%s%s", beside, tail)
				: snprintf(path, size, "%s", name);

		if (n < 0 || (size_t)n >= size)
			return h5_fail(-ENAMETOOLONG, H5_UNDEF, "name of another file is too long");
		fd = open_candidate(folder, path, writable);
		if (fd >= 0)
			return fd;
		rc = h5_named_failure(fd);
		/* Only a name without a file is a reason to try the next one. */
		if (rc != -EACCES && rc != -ENOENT)
			return h5_fail(rc, H5_UNDEF, "%s: %s", name, strerror(-fd));
		forbidden |= rc == -EACCES;
	}
	if (forbidden)
		return h5_fail(-EACCES, H5_UNDEF, "%s: external=%s forbids it, or it cannot be read", name,
			       folder->external == H5_EXTERNAL_ANY ? "any" : "beneath");
	return h5_fail(-ENOENT, H5_UNDEF, "%s: %s", name, strerror(-fd));
}

/* Takes "." and ".." out of a relative path, in place. False: it leads out of the folder. */
static bool straighten(char *path)
{
	char *out = path;

	for (const char *p = path; *p; p += *p == '/') {
		size_t n = strcspn(p, "/");

		if (n == 2 && !memcmp(p, "..", 2)) {
			if (out == path)
				return false;
			while (out > path && *--out != '/')
				;
		} else if (n && (n != 1 || *p != '.')) {
			if (out > path)
				*out++ = '/';
			memmove(out, p, n);
			out += n;
		}
		p += n;
	}
	*out = 0;
	return out > path;
}

int h5_folder_open_remote(const struct h5_folder *folder, const char *beside, const char *name, char *path,
			  size_t size, struct h5_io **io)
{
	const char *tail = name[0] == '/' ? strrchr(name, '/') + 1 : name;
	int n = snprintf(path, size, "%s%s", beside, tail);

	if (folder->external == H5_EXTERNAL_NONE)
		return h5_fail(-EACCES, H5_UNDEF, "%s: other files are not opened in this mount", name);
	if (n < 0 || (size_t)n >= size)
		return h5_fail(-ENAMETOOLONG, H5_UNDEF, "name of another file is too long");
	if (!straighten(path))
		return h5_fail(-EACCES, H5_UNDEF, "%s: it leads out of the folder of the URL", name);
	return h5_fail_in(open_remote(folder, path, io), "%s", name);
}
