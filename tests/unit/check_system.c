/* What the daemon asks of the kernel, and makes of its answers: Landlock of all versions, lists of mounts. */
#include "fuse/landlock.h"
#include "fuse/mountinfo.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RULES = 16, NULL_FD = 100 };

/* The kernel that landlock.c sees. */
static struct {
	long version;	       /* or a negative errno */
	unsigned fails_at;     /* the call that fails, from 1 on: the ruleset, its rules, its use; 0: none */
	unsigned calls;	       /* so far */
	uint64_t forbidden[8]; /* files, net, scopes */
	size_t size;	       /* of these, in bytes */
	unsigned rules;
	uint64_t allowed[RULES];
	int folders[RULES];
	unsigned used;
} kernel;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
/* What the C library calls it if offsets have 64 bits. */
FILE *__wrap_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

static long refuse(int code)
{
	errno = code;
	return -1;
}

static long create_ruleset(const void *attributes, size_t size, uint32_t flags)
{
	if (flags == LANDLOCK_CREATE_RULESET_VERSION) {
		ck_assert(!attributes && !size);
		return kernel.version < 0 ? refuse((int)-kernel.version) : kernel.version;
	}
	ck_assert_uint_eq(flags, 0);
	ck_assert_uint_le(size, sizeof kernel.forbidden);
	kernel.size = size;
	memcpy(kernel.forbidden, attributes, size);
	return ++kernel.calls == kernel.fails_at ? refuse(EMFILE)
						 : dup2(open("/dev/null", O_RDONLY), NULL_FD);
}

static long add_rule(int ruleset, int type, const struct landlock_path_beneath_attr *rule, uint32_t flags)
{
	ck_assert(ruleset == NULL_FD && type == LANDLOCK_RULE_PATH_BENEATH && !flags);
	ck_assert_uint_lt(kernel.rules, RULES);
	kernel.allowed[kernel.rules] = rule->allowed_access;
	kernel.folders[kernel.rules++] = rule->parent_fd;
	return ++kernel.calls == kernel.fails_at ? refuse(EBADF) : 0;
}

/* landlock.c passes no more than four arguments to any call. */
long __wrap_syscall(long number, ...)
{
	va_list list;
	long a[4];

	va_start(list, number);
	for (unsigned i = 0; i < 4; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	switch (number) {
	case SYS_landlock_create_ruleset:
		return create_ruleset((const void *)a[0], (size_t)a[1], (uint32_t)a[2]);
	case SYS_landlock_add_rule:
		return add_rule((int)a[0], (int)a[1], (const void *)a[2], (uint32_t)a[3]);
	case SYS_landlock_restrict_self:
		ck_assert(a[0] == NULL_FD && !(uint32_t)a[1]);
		if (++kernel.calls == kernel.fails_at)
			return refuse(EPERM);
		kernel.used++;
		return 0;
	default:
		return __real_syscall(number, a[0], a[1], a[2], a[3]);
	}
}

static void begin(long version, unsigned fails_at)
{
	memset(&kernel, 0, sizeof kernel);
	memset(kernel.forbidden, 0xa5, sizeof kernel.forbidden);
	kernel.version = version;
	kernel.fails_at = fails_at;
}

/* Files: 13 rights, then REFER, TRUNCATE, and IOCTL_DEV. TCP: bind and connect. Scopes: sockets, signals. */
static const struct {
	uint64_t files, net, scopes;
	size_t size;
} versions[] = {
	{0, 0, 0, 0},	    {0x1fff, 0, 0, 8},	{0x3fff, 0, 0, 8},  {0x7fff, 0, 0, 8},	{0x7fff, 3, 0, 16},
	{0xffff, 3, 0, 16}, {0xffff, 3, 3, 24}, {0xffff, 3, 3, 24}, {0xffff, 3, 3, 24},
};
enum { VERSIONS = sizeof versions / sizeof *versions };

static void check_forbidden(unsigned version, bool may_connect)
{
	ck_assert_uint_eq(kernel.size, versions[version].size);
	ck_assert_uint_eq(kernel.forbidden[0], versions[version].files);
	if (kernel.size > 8)
		ck_assert_uint_eq(kernel.forbidden[1], may_connect ? 1 : versions[version].net);
	if (kernel.size > 16)
		ck_assert_uint_eq(kernel.forbidden[2], versions[version].scopes);
	ck_assert_uint_eq(kernel.used, 1);
	ck_assert_int_eq(fcntl(NULL_FD, F_GETFD), -1);
}

START_TEST(each_version_forbids_what_it_can)
{
	static const struct h5_sandbox none = {-1, -1, -1, -1, -1, -1, -1, -1, false, false};
	static const struct h5_sandbox all = {1, 2, 3, 4, 5, 6, 7, 8, false, false};
	/* Reading; listing; describing the machine; writing; journals; pointers; changing; making. */
	static const uint64_t rights[] = {4, 8, 12, 6, 0x28, 0x28, 0x412e, 0x71aa};
	static const int folders[] = {1, 2, 7, 3, 4, 5, 6, 8};

	for (unsigned version = 1; version < VERSIONS; version++) {
		begin(version, 0);
		ck_assert_int_eq(h5_landlock_version(), (int)version);
		ck_assert_int_eq(h5_landlock_enter(&none), 0);
		check_forbidden(version, false);
		ck_assert_uint_eq(kernel.rules, 0);
		begin(version, 0);
		ck_assert_int_eq(h5_landlock_enter(&all), 0);
		check_forbidden(version, false);
		ck_assert_uint_eq(kernel.rules, 8);
		for (unsigned i = 0; i < 8; i++) {
			ck_assert_int_eq(kernel.folders[i], folders[i]);
			ck_assert_uint_eq(kernel.allowed[i], rights[i] & versions[version].files);
		}
	}
	for (long version = 0; version >= -95; version -= 95) {
		begin(version, 0);
		ck_assert_int_eq(h5_landlock_version(), 0);
	}
}
END_TEST

START_TEST(the_fetcher_connects_and_reads)
{
	const char *const readable[] = {"/", "/dev/null", "/none/such", "/dev", NULL};
	static const uint64_t rights[] = {12, 4, 12, 0x412e};

	for (unsigned version = 1; version < VERSIONS; version++)
		for (int folder = -1; folder < 9; folder += 8) {
			const unsigned before = unit_descriptors();

			begin(version, 0);
			ck_assert_int_eq(h5_landlock_enter_fetcher(readable, folder), 0);
			/* dup2() has left one. */
			ck_assert_uint_eq(unit_descriptors(), before + 1);
			check_forbidden(version, true);
			ck_assert_uint_eq(kernel.rules, folder < 0 ? 3 : 4);
			for (unsigned i = 0; i < kernel.rules; i++)
				ck_assert_uint_eq(kernel.allowed[i], rights[i] & versions[version].files);
			ck_assert(folder < 0 || kernel.folders[3] == folder);
		}
}
END_TEST

/* Each call fails once: nothing comes after it, and the error is told. */
START_TEST(what_is_refused_is_told)
{
	static const struct h5_sandbox all = {1, 2, 3, 4, 5, 6, 7, 8, false, false};
	const char *const readable[] = {"/", "/dev/null", NULL};

	for (unsigned fails_at = 1; fails_at <= 10; fails_at++) {
		begin(7, fails_at);
		ck_assert_int_eq(h5_landlock_enter(&all), fails_at == 1	  ? -EMFILE
							  : fails_at < 10 ? -EBADF
									  : -EPERM);
		ck_assert_uint_eq(kernel.calls, fails_at);
		ck_assert_uint_eq(kernel.used, 0);
		ck_assert_int_eq(fcntl(NULL_FD, F_GETFD), -1);
	}
	for (unsigned fails_at = 1; fails_at <= 5; fails_at++) {
		begin(7, fails_at);
		ck_assert_int_eq(h5_landlock_enter_fetcher(readable, 1), fails_at == 1	? -EMFILE
									 : fails_at < 5 ? -EBADF
											: -EPERM);
		ck_assert_uint_eq(kernel.calls, fails_at);
		ck_assert_uint_eq(kernel.used, 0);
		ck_assert_int_eq(fcntl(NULL_FD, F_GETFD), -1);
	}
}
END_TEST

/* ---- mounts ---- */

static const char *mounts; /* NULL: the list cannot be read */

FILE *__wrap_fopen(const char *path, const char *mode)
{
	ck_assert_str_eq(path, "/proc/self/mountinfo");
	ck_assert_int_eq(*mode, 'r');
	if (mounts) {
		FILE *f = tmpfile(); /* with a descriptor, which must be closed */

		fputs(mounts, f);
		rewind(f);
		return f;
	}
	errno = EMFILE;
	return NULL;
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	return __wrap_fopen(path, mode);
}

static const char some[] = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
			   "a line that is none\n"
			   "30 21 0:40 / /a rw - fuse.h5fs x.h5 rw\n"
			   "31 21 0:41 / /with\\040blank rw shared:2 master:3 - fuse.h5fs x.h5 rw\n"
			   "32 21 0:42 / /back\\134slash\\011tab\\012line rw - fuse.h5fs x.h5 rw\n"
			   "33 21 0:43 / /odd\\9 rw - tmpfs none rw\n"
			   "34 21 0:40 / /b rw - fuse.h5fs x.h5 rw\n"
			   "35 21 1:40 / /c rw - fuse.h5fs x.h5 rw\n"
			   "18446744073709551615 30 0:44 / /a ro - fuse.other y.h5 ro\n"
			   "37 21 0:45 / /untyped rw\n"
			   "38 21 0:46 / /long rw - "
			   "0123456789012345678901234567890123456789012345678901234567890123456789 none rw";

START_TEST(the_top_mount_is_found)
{
	static const struct {
		const char *path, *type;
		unsigned major, minor;
		uint64_t id;
	} found[] = {{"/", "ext4", 8, 1, 21},
		     {"/a", "fuse.other", 0, 44, UINT64_MAX},
		     {"/with blank", "fuse.h5fs", 0, 41, 31},
		     {"/back\\slash\ttab\nline", "fuse.h5fs", 0, 42, 32},
		     {"/odd\\9", "tmpfs", 0, 43, 33},
		     {"/c", "fuse.h5fs", 1, 40, 35},
		     {"/untyped", "", 0, 45, 37},
		     {"/long", "012345678901234567890123456789012345678901234567890123456789012", 0, 46, 38}};
	const unsigned before = unit_descriptors();
	struct h5_mounted top;
	char type[H5_MOUNTINFO_TYPE];

	mounts = some;
	for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
		ck_assert_msg(!h5_mountinfo_top(found[i].path, &top, type), "%s", found[i].path);
		ck_assert_str_eq(type, found[i].type);
		ck_assert_msg(top.id == found[i].id && top.major == found[i].major &&
				      top.minor == found[i].minor,
			      "%s", found[i].path);
	}
	ck_assert_int_eq(h5_mountinfo_top("/none", &top, type), -ENOENT);
	ck_assert_int_eq(h5_mountinfo_top("/with\\040blank", &top, type), -ENOENT);
	ck_assert_uint_eq(unit_descriptors(), before);
	mounts = NULL;
	ck_assert_int_eq(h5_mountinfo_top("/", &top, type), -EMFILE);
}
END_TEST

START_TEST(the_first_place_of_a_mount_is_found)
{
	static const struct {
		unsigned major, minor;
		const char *place;
	} cases[] = {{0, 40, "/a"}, {1, 40, "/c"}, {0, 41, "/with blank"},
		     {8, 1, "/"},   {8, 40, NULL}, {0, 1, NULL}};

	const unsigned before = unit_descriptors();

	mounts = some;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct h5_mounted mounted = {.major = cases[i].major, .minor = cases[i].minor};
		char *place = h5_mountinfo_place(&mounted);

		ck_assert(!place == !cases[i].place);
		if (place)
			ck_assert_str_eq(place, cases[i].place);
		free(place);
	}
	ck_assert_uint_eq(unit_descriptors(), before);
	mounts = NULL;
	ck_assert_ptr_null(h5_mountinfo_place(&(struct h5_mounted){.major = 8, .minor = 1}));
}
END_TEST

UNIT_MAIN("system", each_version_forbids_what_it_can, the_fetcher_connects_and_reads, what_is_refused_is_told,
	  the_top_mount_is_found, the_first_place_of_a_mount_is_found)
