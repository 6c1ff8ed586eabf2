#include "fuse/mountpoint.h"

#include "fuse/log.h"
#include "fuse/status.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
	if (!entry || o->nonempty)
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

int h5_mountpoint_find(struct h5_options *o)
{
	int rc = o->mountpoint ? 0 : name_after_file(o);
	char *path;

	if (rc)
		return rc;
	if (!mkdir(o->mountpoint, 0777))
		o->mountpoint_made = true;
	else if (errno != EEXIST)
		return refuse(o->mountpoint, errno);
	/* The daemon leaves the folder that a relative path is relative to. */
	path = realpath(o->mountpoint, NULL);
	if (!path)
		return refuse(o->mountpoint, errno);
	free(o->mountpoint);
	o->mountpoint = path;
	return check_empty(o);
}

bool h5_mountpoint_renew(struct h5_options *o)
{
	if (access(o->mountpoint, F_OK) && errno == ENOENT && !mkdir(o->mountpoint, 0777))
		return o->mountpoint_made = true;
	return false;
}

void h5_mountpoint_remove(const struct h5_options *o)
{
	if (o->mountpoint_made)
		rmdir(o->mountpoint);
}
