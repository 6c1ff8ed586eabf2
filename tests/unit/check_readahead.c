/* How far the kernel reads ahead is raised once, never lowered. */
#include "fuse/readahead.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char opened[100];
static int fd = -1; /* what open() gives for the setting */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

/* No file is made through this. */
int __wrap_open64(const char *path, int flags, ...)
{
	if (strncmp(path, "/sys/class/bdi/", 15) != 0)
		return __real_open64(path, flags, 0600);
	ck_assert_int_eq(flags, O_RDWR | O_CLOEXEC);
	strncpy(opened, path, sizeof opened - 1);
	return fd;
}

static unsigned writes;

ssize_t __real_pwrite64(int file, const void *bytes, size_t n, off_t offset);
ssize_t __wrap_pwrite64(int file, const void *bytes, size_t n, off_t offset);

ssize_t __wrap_pwrite64(int file, const void *bytes, size_t n, off_t offset)
{
	writes++;
	return __real_pwrite64(file, bytes, n, offset);
}

START_TEST(the_setting_of_a_mount)
{
	const struct h5_mounted mounted = {.major = 4294967295, .minor = 40, .id = 7};

	fd = 77;
	ck_assert_int_eq(h5_readahead_open(&mounted), 77);
	ck_assert_str_eq(opened, "/sys/class/bdi/4294967295:40/read_ahead_kb");
	fd = -1;
	ck_assert_int_eq(h5_readahead_open(&mounted), -1);
	h5_readahead_raise(-1);
}
END_TEST

START_TEST(only_less_is_raised)
{
	static const struct {
		const char *before, *after;
		bool read_only;
	} cases[] = {{"128", "2048", false},	  {"2047", "2048", false},     {"0", "2048", false},
		     {"2048\n", "2048\n", false}, {"4096\n", "4096\n", false}, {"", "", false},
		     {"128\n", "128\n", true}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const unsigned before = unit_descriptors();
		char after[32] = "", path[40];
		int file = memfd_create("setting", MFD_CLOEXEC), setting;

		ck_assert_int_eq(write(file, cases[i].before, strlen(cases[i].before)),
				 (ssize_t)strlen(cases[i].before));
		snprintf(path, sizeof path, "/proc/self/fd/%d", file);
		setting = open(path, (cases[i].read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
		ck_assert_int_ge(setting, 0);
		writes = 0;
		h5_readahead_raise(setting);
		ck_assert_uint_eq(writes, cases[i].read_only || strcmp(cases[i].before, cases[i].after) != 0);
		ck_assert_uint_eq(unit_descriptors(), before + 1);
		ck_assert_int_ge(pread(file, after, sizeof after - 1, 0), 0);
		ck_assert_str_eq(after, cases[i].after);
		close(file);
	}
}
END_TEST

UNIT_MAIN("readahead", the_setting_of_a_mount, only_less_is_raised)
