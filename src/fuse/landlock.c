#include "fuse/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Missing in the headers of Linux 6.1. */
#define ACCESS_FS_TRUNCATE  ((uint64_t)1 << 14) /* version 3 */
#define ACCESS_FS_IOCTL_DEV ((uint64_t)1 << 15) /* version 5 */
#define ACCESS_NET_TCP	    ((uint64_t)3)	/* version 4: bind, connect */
#define ACCESS_NET_BIND	    ((uint64_t)1)
#define SCOPE_ABSTRACT_UNIX ((uint64_t)1) /* version 6 */
#define SCOPE_SIGNAL	    ((uint64_t)2) /* version 6 */
#define ACCESS_FS_VERSION_1 (((uint64_t)LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)
#define ACCESS_FS_REFER	    ((uint64_t)1 << 13) /* version 2 */

struct ruleset {
	uint64_t files;
	uint64_t net;
	uint64_t scoped;
};

int h5_landlock_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return version > 0 ? (int)version : 0;
}

/* Fills in all that this kernel can forbid. */
static size_t forbid(int version, struct ruleset *r)
{
	*r = (struct ruleset){.files = ACCESS_FS_VERSION_1};
	if (version >= 2)
		r->files |= ACCESS_FS_REFER;
	if (version >= 3)
		r->files |= ACCESS_FS_TRUNCATE;
	if (version >= 4)
		r->net = ACCESS_NET_TCP;
	if (version >= 5)
		r->files |= ACCESS_FS_IOCTL_DEV;
	if (version >= 6)
		r->scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	return version >= 6   ? sizeof *r
	       : version >= 4 ? offsetof(struct ruleset, scoped)
			      : offsetof(struct ruleset, net);
}

/* Allows the access to files beneath the folder; -1: no folder. */
static int allow(int ruleset, int folder, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = folder};

	if (folder < 0)
		return 0;
	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) ? -errno : 0;
}

int h5_landlock_enter_fetcher(const char *const *readable, int folder)
{
	struct ruleset r;
	size_t size = forbid(h5_landlock_version(), &r);
	int fd, rc = 0;

	r.net &= ACCESS_NET_BIND;
	fd = (int)syscall(SYS_landlock_create_ruleset, &r, size, 0);
	if (fd < 0)
		return -errno;
	for (; *readable && !rc; readable++) {
		int place = open(*readable, O_PATH | O_CLOEXEC);
		struct stat st;

		if (place >= 0 && !fstat(place, &st))
			rc = allow(fd, place,
				   LANDLOCK_ACCESS_FS_READ_FILE |
					   (S_ISDIR(st.st_mode) ? LANDLOCK_ACCESS_FS_READ_DIR : 0));
		if (place >= 0)
			close(place);
	}
	if (!rc)
		rc = allow(fd, folder,
			   r.files & (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				      LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
				      LANDLOCK_ACCESS_FS_REMOVE_FILE | ACCESS_FS_TRUNCATE));
	if (!rc && syscall(SYS_landlock_restrict_self, fd, 0))
		rc = -errno;
	close(fd);
	return rc;
}

/* What it takes to make a tree beneath a folder: hard links from one directory to another, too. */
static uint64_t making(const struct ruleset *r)
{
	return r->files &
	       (LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |
		LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SYM |
		ACCESS_FS_REFER | ACCESS_FS_TRUNCATE);
}

/* The rights that the daemon needs to write files beneath a folder, and to make journals beside them. */
static uint64_t changing(const struct ruleset *r)
{
	return r->files &
	       (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
		LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE | ACCESS_FS_TRUNCATE);
}

int h5_landlock_enter(const struct h5_sandbox *sandbox)
{
	struct ruleset r;
	size_t size = forbid(h5_landlock_version(), &r);
	int fd = (int)syscall(SYS_landlock_create_ruleset, &r, size, 0), rc;

	if (fd < 0)
		return -errno;
	rc = allow(fd, sandbox->readable, LANDLOCK_ACCESS_FS_READ_FILE);
	if (!rc)
		rc = allow(fd, sandbox->listed, LANDLOCK_ACCESS_FS_READ_DIR);
	if (!rc)
		rc = allow(fd, sandbox->machine, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR);
	if (!rc)
		rc = allow(fd, sandbox->writable,
			   LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
	if (!rc)
		rc = allow(fd, sandbox->journals,
			   LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_READ_DIR);
	if (!rc)
		rc = allow(fd, sandbox->pointers,
			   LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_READ_DIR);
	if (!rc)
		rc = allow(fd, sandbox->changed, changing(&r));
	if (!rc)
		rc = allow(fd, sandbox->made, making(&r));
	if (!rc && syscall(SYS_landlock_restrict_self, fd, 0))
		rc = -errno;
	close(fd);
	return rc;
}
