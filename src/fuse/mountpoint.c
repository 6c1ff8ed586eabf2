#include "fuse/mountpoint.h"

#include "fuse/log.h"
#include "fuse/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DEVICE "/dev/fuse"

/* Logs why it cannot be a mount point; returns the exit status. */
static int refuse(const char *path, int code)
{
	if (code == ENOTCONN) {
		h5_log("%s: a stale mount, whose daemon is no more; end it with: fusermount3 -u %s", path,
		       path);
		return EXIT_STALE;
	}
	h5_log("%s: %s", path, code == ENOTDIR ? "the mount point is not a directory" : strerror(code));
	return EXIT_MOUNT;
}

/* True: an h5fs is mounted there. Only its root has this attribute. */
static bool is_mounted(const char *path)
{
	return getxattr(path, "h5fs.pid", NULL, 0) > 0;
}

/* Refuses a directory whose files the mount would hide. Also finds a stale mount whose attributes the kernel
 * still knows. */
static int check_empty(const struct h5_options *o)
{
	DIR *dir = opendir(o->mountpoint);
	const struct dirent *entry;

	/* A user who may not read it may not mount on it either; the kernel decides. */
	if (!dir)
		return errno == EACCES ? 0 : refuse(o->mountpoint, errno);
	do
		entry = readdir(dir);
	while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")));
	closedir(dir);
	if (o->nonempty)
		return 0;
	if (is_mounted(o->mountpoint)) {
		h5_log("%s: already mounted; end it with: fusermount3 -u %s", o->mountpoint, o->mountpoint);
		return EXIT_MOUNT;
	}
	if (!entry)
		return 0;
	h5_log("%s: the mount point is not empty: with -o nonempty, what it has is hidden meanwhile",
	       o->mountpoint);
	return EXIT_MOUNT;
}

/* The file's name up to its last dot. */
static int name_after_file(struct h5_options *o)
{
	const char *slash = strrchr(o->file, '/'), *name = slash ? slash + 1 : o->file;
	const char *dot = strrchr(name, '.');

	if (!dot || dot == name) {
		h5_log("%s: no mount point follows from this name: h5fs %s MOUNTPOINT", o->file, o->file);
		return EXIT_MOUNT;
	}
	o->mountpoint = strndup(name, (size_t)(dot - name));
	return o->mountpoint ? 0 : refuse(name, ENOMEM);
}

/* The absolute path of a directory that does not exist yet, in a folder that does; owned. NULL with errno. */
static char *path_of_missing(const char *path)
{
	size_t size = strlen(path), begin;
	char *folder, *real, *whole = NULL;

	while (size && path[size - 1] == '/')
		size--;
	for (begin = size; begin && path[begin - 1] != '/';)
		begin--;
	folder = begin ? strndup(path, begin) : strdup(".");
	real = folder ? realpath(folder, NULL) : NULL;
	if (real &&
	    asprintf(&whole, "%s/%.*s", strcmp(real, "/") ? real : "", (int)(size - begin), path + begin) < 0)
		whole = NULL;
	free(folder);
	free(real);
	return whole;
}

int h5_mountpoint_find(struct h5_options *o)
{
	int rc = o->mountpoint ? 0 : name_after_file(o);
	bool missing = false;
	char *path;

	if (rc)
		return rc;
	/* An absolute path, since the daemon changes its working directory. */
	path = realpath(o->mountpoint, NULL);
	if (!path && errno == ENOENT) {
		path = path_of_missing(o->mountpoint);
		missing = true;
	}
	if (!path)
		return refuse(o->mountpoint, errno);
	free(o->mountpoint);
	o->mountpoint = path;
	return missing ? 0 : check_empty(o);
}

static bool is_missing(const char *path)
{
	return access(path, F_OK) && errno == ENOENT;
}

static int make(struct h5_options *o)
{
	if (mkdir(o->mountpoint, 0777))
		return refuse(o->mountpoint, errno);
	o->mountpoint_made = true;
	return 0;
}

/* Without the device FUSE cannot be used. libfuse would not say what to do about it. */
static int check_device(const char *path)
{
	if (!access(DEVICE, R_OK | W_OK))
		return 0;
	h5_log("%s: cannot mount: " DEVICE ": %s; %s", path, strerror(errno),
	       errno == EACCES ? "you need the right to read and write it (chmod 666 " DEVICE ")"
			       : "the kernel or the container lacks FUSE (modprobe fuse)");
	return EXIT_MOUNT;
}

/* Must not ask for new attributes, which would be a request to ourselves. */
static void identify(const char *path, struct h5_mounted *mounted)
{
	struct statx st;

	*mounted = (struct h5_mounted){0};
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_MNT_ID, &st))
		return;
	mounted->major = st.stx_dev_major;
	mounted->minor = st.stx_dev_minor;
	mounted->id = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0;
}

int h5_mountpoint_mount(struct h5_options *o, struct fuse_session *session, struct h5_mounted *mounted)
{
	/* Another program may have mounted there while we waited for the file. */
	int rc = is_missing(o->mountpoint) ? make(o) : check_empty(o);

	if (!rc)
		rc = check_device(o->mountpoint);
	if (rc)
		return rc;
	rc = fuse_session_mount(session, o->mountpoint);
	/* The mount before this one, which had made the directory, may just have removed it. */
	if (rc && is_missing(o->mountpoint) && !make(o))
		rc = fuse_session_mount(session, o->mountpoint);
	if (rc) {
		/* libfuse, or fusermount3, has written the reason to standard error. */
		h5_log("%s: cannot mount, for the reason above; if fusermount3 is missing, install the "
		       "package fuse3",
		       o->mountpoint);
		return EXIT_MOUNT;
	}
	identify(o->mountpoint, mounted);
	return 0;
}

void h5_mountpoint_remove(const struct h5_options *o)
{
	if (o->mountpoint_made)
		rmdir(o->mountpoint);
}
