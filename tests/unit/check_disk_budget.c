/* What counts against the budget of the disk cache, and may be taken away for it. */
#include "remote/disk_folder.h"
#include "scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 10, FILES = 5, USED = FILES * PAGES * PAGE };

/* What files are said to be. */
static mode_t type;	/* 0: what they are */
static unsigned others; /* added to the user that they are of */

int __real_fstatat64(int dirfd, const char *name, struct stat *st, int flags);
int __wrap_fstatat64(int dirfd, const char *name, struct stat *st, int flags);
int __wrap_fstatat64(int dirfd, const char *name, struct stat *st, int flags)
{
	int rc = __real_fstatat64(dirfd, name, st, flags);

	st->st_uid += others;
	if (type)
		st->st_mode = type | 0600;
	return rc;
}

static struct h5_disk_folder folder;

static void begin(const char *prefix)
{
	static const char page[PAGE] = "x";
	static unsigned number;
	char path[128], name[128];

	snprintf(path, sizeof path, "%s/%u", scratch_folder(), number++);
	folder = (struct h5_disk_folder){.there = true, .fd = h5_disk_folder_open(path), .budget = USED};
	ck_assert_int_ge(folder.fd, 0);
	for (int i = 0; i < FILES; i++) {
		int fd;

		snprintf(name, sizeof name, "%s%d", prefix, i);
		fd = openat(folder.fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		for (int k = 0; k < PAGES; k++)
			ck_assert_int_eq(write(fd, page, PAGE), PAGE);
		close(fd);
	}
}

/* How many of the files are there. */
static unsigned end(const char *prefix)
{
	unsigned n = 0;
	char name[128];

	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "%s%d", prefix, i);
		n += !faccessat(folder.fd, name, F_OK, 0);
	}
	close(folder.fd);
	return n;
}

START_TEST(files_of_the_cache)
{
	begin("h5fs-new-");
	ck_assert(h5_disk_has_room(&folder, 1));
	ck_assert_uint_eq(end("h5fs-new-"), FILES - 1);
}
END_TEST

/* They are not counted, and stay. */
START_TEST(other_files)
{
	static const struct {
		const char *prefix;
		mode_t type;
		unsigned others;
	} all[] = {{"h5fs-new-", S_IFREG, 1},
		   {"h5fs-new-", S_IFDIR, 0},
		   {"h5fs-new-", S_IFIFO, 0},
		   {"h5fs-new-", S_IFLNK, 0},
		   {"h5fs-old-", S_IFREG, 0},
		   {"h5fs-new-1234567890123456789012345678901234567890123456789012345678901234567890",
		    S_IFREG, 0}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		begin(all[i].prefix);
		type = all[i].type;
		others = all[i].others;
		ck_assert(h5_disk_has_room(&folder, 1));
		ck_assert_uint_eq(folder.room, USED - 1);
		type = 0;
		others = 0;
		ck_assert_uint_eq(end(all[i].prefix), FILES);
	}
}
END_TEST

UNIT_MAIN("disk budget", files_of_the_cache, other_files)
