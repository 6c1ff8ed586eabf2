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

/* What others write to standard error, when it is the reason in our line and not a line of its own. */
struct capture {
	int saved; /* standard error; -1: nothing is captured */
	int end;   /* of the pipe that takes its place */
};

/* Why it cannot be one. */
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

/* Whether an h5fs is mounted there, whose root alone has this attribute. */
static bool is_mounted(const char *path)
{
	return getxattr(path, "h5fs.superblock", NULL, 0) > 0;
}

/* What is there already would be hidden. Also tells a stale mount whose attributes the kernel still knows. */
static int check_empty(const struct h5_options *o)
{
	DIR *dir = opendir(o->mountpoint);
	const struct dirent *entry;

	/* Who may not look may not mount either, unless the kernel sees it otherwise. */
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

/* The file's name without what comes after its last dot. */
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

/* The absolute path of a directory that is not there yet, in a folder that is; owned. NULL with errno. */
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
	/* The daemon leaves the folder that a relative path is relative to. */
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

/* Standard error into a pipe. What does not fit is lost, rather than waited for. */
static void begin_capture(struct capture *c)
{
	int ends[2];

	c->saved = -1;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return;
	c->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	c->end = ends[0];
	if (c->saved >= 0)
		dup2(ends[1], STDERR_FILENO);
	else
		close(ends[0]);
	close(ends[1]);
}

/* What came, as a single line. */
static void end_capture(struct capture *c, char *text, size_t size)
{
	ssize_t n;

	*text = 0;
	if (c->saved < 0)
		return;
	dup2(c->saved, STDERR_FILENO);
	n = read(c->end, text, size - 1);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n > 0 ? n : 0] = 0;
	for (char *p = text; (p = strchr(p, '\n'));)
		*p = ';';
	close(c->saved);
	close(c->end);
}

/* `said`: by libfuse or fusermount3; empty: nothing, but there is the errno. */
static void explain(const char *path, const char *said, int code)
{
	if (access(DEVICE, R_OK | W_OK))
		h5_log("%s: cannot mount: " DEVICE ": %s; %s", path, strerror(errno),
		       errno == EACCES ? "you need the right to read and write it (chmod 666 " DEVICE ")"
				       : "the kernel or the container lacks FUSE (modprobe fuse)");
	else if (strstr(said, "fusermount3") && strncmp(said, "fusermount3: ", 13))
		h5_log("%s: cannot mount: %s; install the package fuse3", path, said);
	else
		h5_log("%s: cannot mount: %s", path, *said ? said : strerror(code));
}

/* Without asking for what is new: that would be a request to ourselves. */
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
	struct capture c = {.saved = -1};
	char said[512];
	/* Somebody may have mounted there while the file was waited for. */
	int rc = is_missing(o->mountpoint) ? make(o) : check_empty(o), code;

	if (rc)
		return rc;
	if (!o->debug)
		begin_capture(&c);
	rc = fuse_session_mount(session, o->mountpoint);
	/* The mount before, which had made it, may just have ended. */
	if (rc && is_missing(o->mountpoint) && !make(o))
		rc = fuse_session_mount(session, o->mountpoint);
	code = errno;
	end_capture(&c, said, sizeof said);
	if (rc)
		explain(o->mountpoint, said, code);
	else
		identify(o->mountpoint, mounted);
	return rc ? EXIT_MOUNT : 0;
}

void h5_mountpoint_remove(const struct h5_options *o)
{
	if (o->mountpoint_made)
		rmdir(o->mountpoint);
}
