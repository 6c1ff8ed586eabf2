#include "io/named.h"

#include "base/error.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	LINKS_MAX = 40, /* most symbolic links in one path, as in the kernel */
	TRIES_MAX = 16, /* most calls of openat2() for one path, if folders move meanwhile */
};

/* A walk along a path, step by step, for kernels without openat2() and for what it cannot do. Each step opens
 * a name without following links, so that we know where it leads before the next one asks for anything there.
 *
 * `passed` has no links and no dots, so `..` takes its last name away; the walk then begins anew. Thus a
 * folder that is moved meanwhile does not lead the walk out. */
struct walk {
	int dirfd; /* borrowed: where relative paths begin */
	/* The absolute path of that, for a walk that may go anywhere; NULL: it stays beneath. Borrowed. */
	const char *directory;
	bool from_root;	       /* `passed` begins at the root of the file system */
	int at;		       /* the folder that `passed` leads to: owned, O_PATH */
	struct statx stat;     /* of `at` */
	unsigned links;	       /* that were followed */
	char passed[PATH_MAX]; /* each name followed by a slash */
	char left[PATH_MAX];   /* what is still to be walked */
};

/* ---- mounts ---- */

/* True: an h5fs is mounted from this device, or that cannot be found out. */
static bool is_h5fs(uint32_t major, uint32_t minor)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;
	bool found = !f;

	while (f && !found && getline(&line, &size, f) > 0) {
		const char *type = strstr(line, " - ");
		unsigned a, b;

		found = type && sscanf(line, "%*u %*u %u:%u", &a, &b) == 2 && a == major && b == minor &&
			!strncmp(type, " - fuse.h5fs ", 13);
	}
	found |= f && !feof(f);
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* Asks the kernel alone: a file system that has to be asked may be our own. */
static int look_at(int fd, struct statx *st)
{
	int flags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC;

	return statx(fd, "", flags, STATX_TYPE | STATX_MNT_ID, st) ? -errno : 0;
}

/* 0: the walk may go on to this file, which was opened but not yet asked for anything. */
static int check_mount(const struct walk *walk, const struct statx *to)
{
	const struct statx *from = &walk->stat;
	bool same = from->stx_dev_major == to->stx_dev_major && from->stx_dev_minor == to->stx_dev_minor;

	if (walk->directory)
		/* Devices that no hardware stands for have the major number 0. */
		return same || to->stx_dev_major || !is_h5fs(to->stx_dev_major, to->stx_dev_minor) ? 0
												   : -EXDEV;
	/* A bind mount has the device of its source. */
	if (from->stx_mask & to->stx_mask & STATX_MNT_ID)
		same = same && from->stx_mnt_id == to->stx_mnt_id;
	return same ? 0 : -EXDEV;
}

/* ---- the walk ---- */

/* Takes the descriptor of a folder over. */
static void stand_at(struct walk *walk, int fd, const struct statx *stat)
{
	if (walk->at >= 0)
		close(walk->at);
	walk->at = fd;
	walk->stat = *stat;
}

/* Opens a name in the folder that was reached, for looking at it. */
static int peek(const struct walk *walk, const char *name, int flags, struct statx *st)
{
	int fd = openat(walk->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | flags), rc;

	if (fd < 0)
		return -errno;
	rc = look_at(fd, st);
	if (!rc)
		rc = check_mount(walk, st);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int enter(struct walk *walk, const char *name)
{
	struct statx st;
	/* O_DIRECTORY: what is mounted on demand is mounted now. */
	int fd = peek(walk, name, O_DIRECTORY, &st);

	if (fd < 0)
		return fd;
	stand_at(walk, fd, &st);
	return 0;
}

/* Goes to where the walk begins. */
static int go_to_start(struct walk *walk)
{
	int fd = walk->from_root ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)
				 : openat(walk->dirfd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct statx st;
	int rc = fd < 0 ? -errno : look_at(fd, &st);

	if (!rc)
		stand_at(walk, fd, &st);
	else if (fd >= 0)
		close(fd);
	return rc;
}

/* Follows `passed` from the start. */
static int go_again(struct walk *walk)
{
	char name[NAME_MAX + 1];
	int rc = go_to_start(walk);

	for (const char *p = walk->passed, *slash; !rc && (slash = strchr(p, '/')); p = slash + 1) {
		snprintf(name, sizeof name, "%.*s", (int)(slash - p), p);
		rc = enter(walk, name);
	}
	return rc;
}

/* Puts text before what is left. */
static int put_before(struct walk *walk, const char *text)
{
	const char *between = walk->left[0] && walk->left[0] != '/' ? "/" : "";
	char both[2 * PATH_MAX];

	if ((size_t)snprintf(both, sizeof both, "%s%s%s", text, between, walk->left) >= sizeof walk->left)
		return -ENAMETOOLONG;
	strcpy(walk->left, both);
	return 0;
}

/* Begins again at the root of the file system, with what is left. */
static int go_to_root(struct walk *walk)
{
	if (!walk->directory)
		return -EXDEV;
	walk->from_root = true;
	walk->passed[0] = 0;
	return go_to_start(walk);
}

static int go_up(struct walk *walk)
{
	size_t n = strlen(walk->passed);
	int rc;

	if (n) {
		for (n--; n && walk->passed[n - 1] != '/';)
			n--;
		walk->passed[n] = 0;
		return go_again(walk);
	}
	if (walk->from_root)
		return 0;
	rc = go_to_root(walk);
	/* There is room for it, since it was there before. */
	(void)put_before(walk, "..");
	return rc ? rc : put_before(walk, walk->directory);
}

static int follow_link(struct walk *walk, int fd)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof target);
	int rc;

	if (n < 0)
		return -errno;
	if ((size_t)n >= sizeof target)
		return -ENAMETOOLONG;
	target[n] = 0;
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	rc = put_before(walk, target);
	return rc || target[0] != '/' ? rc : go_to_root(walk);
}

/* Opens the file that the walk has come to. */
static int open_last(const struct walk *walk, const char *name, int flags)
{
	struct statx st;
	int fd = openat(walk->at, name, flags | O_NOFOLLOW | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = look_at(fd, &st);
	if (!rc)
		rc = check_mount(walk, &st);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* One name. 0: the walk goes on; else the descriptor of the file that it ends at. */
static int step(struct walk *walk, const char *name, int flags)
{
	size_t passed = strlen(walk->passed);
	struct statx st;
	int fd, rc;

	if (!strcmp(name, "."))
		return 0;
	if (!strcmp(name, ".."))
		return go_up(walk);
	fd = peek(walk, name, 0, &st);
	if (fd < 0)
		return fd;
	if (S_ISDIR(st.stx_mode)) {
		if (passed + strlen(name) + 1 >= sizeof walk->passed)
			rc = -ENAMETOOLONG;
		else
			rc = enter(walk, name);
		if (!rc)
			sprintf(walk->passed + passed, "%s/", name);
	} else if (S_ISLNK(st.stx_mode)) {
		rc = follow_link(walk, fd);
	} else if (walk->left[0]) {
		rc = -ENOTDIR;
	} else {
		rc = S_ISREG(st.stx_mode) ? open_last(walk, name, flags) : -EINVAL;
	}
	close(fd);
	return rc;
}

/* Takes the next name off what is left. False: there is none. */
static bool take_name(struct walk *walk, char *name, size_t size, int *rc)
{
	const char *begin = walk->left + strspn(walk->left, "/");
	size_t n = strcspn(begin, "/");

	*rc = n >= size ? -ENAMETOOLONG : 0;
	if (!n || *rc)
		return false;
	memcpy(name, begin, n);
	name[n] = 0;
	/* The slash stays: behind a file it means that a folder was meant. */
	memmove(walk->left, begin + n, strlen(begin + n) + 1);
	return true;
}

static int walk_along(int dirfd, const char *directory, const char *path, int flags)
{
	struct walk walk = {.dirfd = dirfd, .directory = directory, .at = -1};
	char name[NAME_MAX + 1];
	int rc = !*path ? -ENOENT : strlen(path) < sizeof walk.left ? 0 : -ENAMETOOLONG;

	if (!rc) {
		strcpy(walk.left, path);
		rc = path[0] == '/' ? go_to_root(&walk) : go_to_start(&walk);
	}
	while (!rc && take_name(&walk, name, sizeof name, &rc))
		rc = step(&walk, name, flags);
	if (walk.at >= 0)
		close(walk.at);
	return rc ? rc : -EISDIR;
}

/* ---- opening ---- */

/* By openat2(), beneath the folder and on its mount. */
static int open_beneath(int dirfd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC,
			       .resolve =
				       RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV | resolve};
	long fd;

	for (unsigned i = 0; i < TRIES_MAX; i++) {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN)
			break;
	}
	return -errno;
}

int h5_named_open_beneath(int dirfd, const char *path, int flags)
{
	int fd = open_beneath(dirfd, path, flags, 0);

	/* EPERM: some containers' word for a call that they do not know. */
	return fd == -EAGAIN || fd == -ENOSYS || fd == -EPERM ? walk_along(dirfd, NULL, path, flags) : fd;
}

int h5_named_open_without_links(int dirfd, const char *path, int flags)
{
	return open_beneath(dirfd, path, flags, RESOLVE_NO_SYMLINKS);
}

int h5_named_open_anywhere(int dirfd, const char *directory, const char *path, int flags)
{
	return walk_along(dirfd, directory, path, flags);
}

int h5_named_failure(int code)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
	case -ENAMETOOLONG:
	case -ELOOP:
		return -ENOENT;
	case -EXDEV:
	case -EACCES:
	case -EPERM:
		return -EACCES;
	/* A socket, a device without a driver. */
	case -ENXIO:
	case -ENODEV:
		return -EINVAL;
	case -EINVAL:
	case -EISDIR:
	case -EROFS:
	case -ETXTBSY:
		return code;
	default:
		return h5_is_passing(code) ? code : -EIO;
	}
}

int h5_named_sync_folder(int dirfd)
{
	/* An O_PATH descriptor cannot be synced. */
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	/* EINVAL: this file system need not sync directories. */
	if (fd < 0 || (fsync(fd) && errno != EINVAL))
		rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}
