/* What the daemon asks of the kernel, and makes of its answers: Landlock of all versions, system calls that
 * are filtered, lists of mounts, signals, the way to the background. */
#include "config.h"

#include "fuse/landlock.h"
#include "fuse/log.h"
#include "fuse/mountinfo.h"
#include "fuse/seccomp.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

/* ---- system calls ---- */

enum { FILTER_RULES = 200, FILTERS = 2 };

/* What libseccomp is told. */
struct filter {
	uint32_t otherwise;
	bool loaded, released;
	unsigned n;
	struct {
		uint32_t action;
		int call;
		unsigned n;
		struct scmp_arg_cmp argument;
	} rules[FILTER_RULES];
	uint64_t attributes[16];
};

static struct {
	struct filter filters[FILTERS];
	unsigned n, loads;
	struct filter *last; /* that was loaded */
	unsigned calls, fails_at;
	unsigned api;
} library;

scmp_filter_ctx __wrap_seccomp_init(uint32_t action);
void __wrap_seccomp_release(scmp_filter_ctx filter);
int __wrap_seccomp_attr_set(scmp_filter_ctx filter, enum scmp_filter_attr attribute, uint32_t value);
int __wrap_seccomp_rule_add(scmp_filter_ctx filter, uint32_t action, int call, unsigned n, ...);
int __wrap_seccomp_rule_add_array(scmp_filter_ctx filter, uint32_t action, int call, unsigned n,
				  const struct scmp_arg_cmp *arguments);
int __wrap_seccomp_load(scmp_filter_ctx filter);
unsigned __wrap_seccomp_api_get(void);

static bool fails(void)
{
	return ++library.calls == library.fails_at;
}

scmp_filter_ctx __wrap_seccomp_init(uint32_t action)
{
	if (fails())
		return NULL;
	ck_assert_uint_lt(library.n, FILTERS);
	library.filters[library.n].otherwise = action;
	return &library.filters[library.n++];
}

void __wrap_seccomp_release(scmp_filter_ctx filter)
{
	struct filter *f = filter;

	if (f) {
		ck_assert(!f->released);
		f->released = true;
	}
}

int __wrap_seccomp_attr_set(scmp_filter_ctx filter, enum scmp_filter_attr attribute, uint32_t value)
{
	struct filter *f = filter;

	if (fails())
		return -EFAULT;
	f->attributes[attribute] = value;
	return 0;
}

int __wrap_seccomp_rule_add_array(scmp_filter_ctx filter, uint32_t action, int call, unsigned n,
				  const struct scmp_arg_cmp *arguments)
{
	struct filter *f = filter;

	if (fails())
		return -EFAULT;
	ck_assert(f && n <= 1 && !library.loads);
	ck_assert_uint_lt(f->n, FILTER_RULES);
	f->rules[f->n].action = action;
	f->rules[f->n].call = call;
	f->rules[f->n].n = n;
	if (n)
		f->rules[f->n].argument = *arguments;
	f->n++;
	return 0;
}

int __wrap_seccomp_rule_add(scmp_filter_ctx filter, uint32_t action, int call, unsigned n, ...)
{
	ck_assert_uint_eq(n, 0);
	return __wrap_seccomp_rule_add_array(filter, action, call, 0, NULL);
}

int __wrap_seccomp_load(scmp_filter_ctx filter)
{
	struct filter *f = filter;

	if (fails())
		return -EFAULT;
	ck_assert(!f->loaded && !f->released);
	f->loaded = true;
	library.loads++;
	library.last = f;
	return 0;
}

unsigned __wrap_seccomp_api_get(void)
{
	return library.api;
}

static bool matches(const struct scmp_arg_cmp *argument, const uint64_t *arguments)
{
	const uint64_t value = arguments[argument->arg];

	if (argument->op == SCMP_CMP_MASKED_EQ)
		return (value & argument->datum_a) == argument->datum_b;
	ck_assert_int_eq(argument->op, SCMP_CMP_NE);
	return value != argument->datum_a;
}

static uint32_t ask(const struct filter *f, int call, const uint64_t *arguments)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->rules[i].call == call && (!f->rules[i].n || matches(&f->rules[i].argument, arguments)))
			return f->rules[i].action;
	return f->otherwise;
}

/* What the call gives: 0, or the error, which is that of the filter that was loaded last. */
static int answer(int call, const uint64_t *arguments)
{
	uint32_t action = SCMP_ACT_ALLOW;

	for (unsigned i = 0; i < library.n; i++) {
		const struct filter *f = &library.filters[i];
		const uint32_t of_this = f->loaded ? ask(f, call, arguments) : SCMP_ACT_ALLOW;

		if (of_this != SCMP_ACT_ALLOW && (action == SCMP_ACT_ALLOW || f == library.last))
			action = of_this;
	}
	return action == SCMP_ACT_ALLOW ? 0 : (int)(action & 0xffff);
}

/* How many values of an argument the filters allow. */
static unsigned rules_of(const struct filter *f, int call)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->n; i++)
		n += f->rules[i].call == call;
	return n;
}

static void begin_filters(unsigned fails_at)
{
	memset(&library, 0, sizeof library);
	library.fails_at = fails_at;
	library.api = 2;
}

/* Kinds of mounts, and what they have. Descriptors are 0, the least one. */
enum kind { NOTHING, READS, WRITES, JOURNALS, LISTS, CHANGES, MAKES, RINGS, TERMINAL, KINDS };

static const struct h5_sandbox sandboxes[KINDS] = {
	[NOTHING] = {-1, -1, -1, -1, -1, -1, -1, -1, false, false},
	[READS] = {0, -1, -1, -1, -1, -1, -1, -1, false, false},
	[WRITES] = {-1, -1, 0, -1, -1, -1, -1, -1, false, false},
	[JOURNALS] = {-1, -1, -1, 0, -1, -1, -1, -1, false, false},
	[LISTS] = {0, 0, -1, -1, -1, -1, -1, -1, false, false},
	[CHANGES] = {0, -1, -1, -1, -1, 0, -1, -1, false, false},
	[MAKES] = {0, -1, -1, -1, -1, -1, -1, 0, false, false},
	[RINGS] = {-1, -1, -1, -1, -1, -1, -1, -1, false, true},
	[TERMINAL] = {-1, -1, -1, -1, -1, -1, -1, -1, true, false},
};

#define FOR(kind) (1U << (kind))
#define ALL	  (FOR(KINDS) - 1)
#define FILES	  (FOR(READS) | FOR(WRITES) | FOR(JOURNALS) | FOR(LISTS) | FOR(CHANGES) | FOR(MAKES))

START_TEST(calls_of_each_kind_of_mount)
{
	const uint64_t self = (uint64_t)getpid();
	const struct {
		int call;
		uint64_t arguments[6];
		unsigned allowed, refused; /* kinds that refuse it with EPERM; the others with ENOSYS */
	} cases[] = {
		{SCMP_SYS(read), {0}, ALL, 0},
		{SCMP_SYS(exit_group), {0}, ALL, 0},
		{SCMP_SYS(execve), {0}, 0, 0},
		{SCMP_SYS(seccomp), {0}, 0, 0},
		{SCMP_SYS(clone3), {0}, 0, 0},
		{SCMP_SYS(io_uring_setup), {0}, 0, 0},
		{SCMP_SYS(mmap), {0, 0, PROT_READ | PROT_WRITE}, ALL, 0},
		{SCMP_SYS(mmap), {0, 0, PROT_READ | PROT_EXEC}, 0, ALL},
		{SCMP_SYS(mprotect), {0, 0, PROT_NONE}, ALL, 0},
		{SCMP_SYS(mprotect), {0, 0, PROT_EXEC}, 0, ALL},
		{SCMP_SYS(clone), {CLONE_VM | CLONE_THREAD}, ALL, 0},
		{SCMP_SYS(clone), {CLONE_VM}, 0, ALL},
		{SCMP_SYS(clone), {CLONE_THREAD | CLONE_NEWNS}, 0, ALL},
		{SCMP_SYS(clone), {CLONE_THREAD | CLONE_VFORK}, 0, ALL},
		{SCMP_SYS(tgkill), {self}, ALL, 0},
		{SCMP_SYS(tgkill), {self + 1}, 0, ALL},
		{SCMP_SYS(prctl), {PR_SET_NAME}, ALL, 0},
		{SCMP_SYS(prctl), {PR_SET_DUMPABLE}, 0, ALL},
		{SCMP_SYS(fallocate), {0, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE}, ALL, 0},
		{SCMP_SYS(fallocate), {0, FALLOC_FL_KEEP_SIZE}, 0, ALL},
		{SCMP_SYS(sendto), {0}, ALL, 0},
		{SCMP_SYS(sendto), {0, 0, 0, 0, 0, 16}, 0, ALL},
		{SCMP_SYS(fcntl), {0, F_GETFD}, ALL, 0},
		{SCMP_SYS(fcntl), {0, F_SETFD}, ALL, 0},
		{SCMP_SYS(fcntl), {0, F_GETFL}, ALL, 0},
		{SCMP_SYS(fcntl), {0, F_DUPFD_CLOEXEC}, ALL, 0},
		{SCMP_SYS(fcntl), {0, F_GETPIPE_SZ}, ALL, 0},
		{SCMP_SYS(fcntl), {0, F_SETPIPE_SZ}, ALL, 0},
		{SCMP_SYS(fcntl), {0, F_SETOWN}, 0, ALL},
		{SCMP_SYS(fcntl), {0, F_SETFL}, 0, ALL},
		{SCMP_SYS(madvise), {0, 0, MADV_DONTNEED}, ALL, 0},
		{SCMP_SYS(madvise), {0, 0, 102}, ALL, 0},
		{SCMP_SYS(madvise), {0, 0, 103}, ALL, 0},
		{SCMP_SYS(madvise), {0, 0, MADV_HWPOISON}, 0, ALL},
		{SCMP_SYS(io_uring_enter), {0}, FOR(RINGS), 0},
		{SCMP_SYS(ioctl), {0, TIOCGWINSZ}, FOR(TERMINAL), 0},
		{SCMP_SYS(ioctl), {0, TIOCSTI}, 0, FOR(TERMINAL)},
		{SCMP_SYS(openat2), {0}, FILES, 0},
		{SCMP_SYS(readlinkat), {0}, FILES, 0},
		{SCMP_SYS(openat), {0, 0, O_RDONLY | O_CLOEXEC}, FILES, 0},
		{SCMP_SYS(openat),
		 {0, 0, O_WRONLY},
		 FOR(WRITES) | FOR(CHANGES) | FOR(MAKES),
		 FOR(READS) | FOR(JOURNALS) | FOR(LISTS)},
		{SCMP_SYS(openat),
		 {0, 0, O_RDWR},
		 FOR(WRITES) | FOR(CHANGES) | FOR(MAKES),
		 FOR(READS) | FOR(JOURNALS) | FOR(LISTS)},
		{SCMP_SYS(openat),
		 {0, 0, O_CREAT},
		 FOR(WRITES) | FOR(CHANGES) | FOR(MAKES),
		 FOR(READS) | FOR(JOURNALS) | FOR(LISTS)},
		{SCMP_SYS(openat),
		 {0, 0, O_TRUNC},
		 FOR(WRITES) | FOR(CHANGES) | FOR(MAKES),
		 FOR(READS) | FOR(JOURNALS) | FOR(LISTS)},
		{SCMP_SYS(getdents64), {0}, FOR(LISTS), 0},
		{SCMP_SYS(fgetxattr), {0}, FOR(LISTS), 0},
		{SCMP_SYS(flistxattr), {0}, FOR(LISTS), 0},
		{SCMP_SYS(unlinkat), {0}, FOR(JOURNALS) | FOR(CHANGES) | FOR(MAKES), 0},
		{SCMP_SYS(unlinkat), {0, 0, AT_REMOVEDIR}, FOR(MAKES), FOR(JOURNALS) | FOR(CHANGES)},
		{SCMP_SYS(renameat), {0}, FOR(CHANGES) | FOR(MAKES), 0},
		{SCMP_SYS(renameat2), {0}, FOR(CHANGES) | FOR(MAKES), 0},
		{SCMP_SYS(fchmod), {0}, FOR(CHANGES) | FOR(MAKES), 0},
		{SCMP_SYS(fchown), {0}, FOR(CHANGES) | FOR(MAKES), 0},
		{SCMP_SYS(mkdirat), {0}, FOR(MAKES), 0},
		{SCMP_SYS(symlinkat), {0}, FOR(MAKES), 0},
		{SCMP_SYS(linkat), {0}, FOR(MAKES), 0},
		{SCMP_SYS(utimensat), {0}, FOR(MAKES), 0},
		{SCMP_SYS(fchownat), {0}, FOR(MAKES), 0},
		{SCMP_SYS(fsetxattr), {0}, FOR(MAKES), 0},
	};

	begin_filters(0);
	for (unsigned kind = 0; h5_seccomp_available() && kind < KINDS; kind++) {
		begin_filters(0);
		ck_assert_int_eq(h5_seccomp_enter(&sandboxes[kind]), 0);
		ck_assert_uint_eq(library.loads, FILTERS);
		for (unsigned i = 0; i < FILTERS; i++) {
			const struct filter *f = &library.filters[i];

			ck_assert(f->released);
			ck_assert_uint_eq(rules_of(f, SCMP_SYS(fcntl)), 6);
			ck_assert_uint_eq(rules_of(f, SCMP_SYS(madvise)), 7);
			ck_assert_uint_eq(f->attributes[SCMP_FLTATR_ACT_BADARCH], SCMP_ACT_ERRNO(ENOSYS));
			ck_assert_uint_eq(f->attributes[SCMP_FLTATR_CTL_NNP], 0);
			ck_assert_uint_eq(f->attributes[SCMP_FLTATR_CTL_TSYNC], 1);
			ck_assert_uint_eq(f->attributes[SCMP_FLTATR_CTL_OPTIMIZE], 2);
		}
		/* The one that is loaded first lets the other one be loaded. */
		for (unsigned i = 0; i < FILTERS; i++)
			if (&library.filters[i] != library.last)
				ck_assert_uint_eq(ask(&library.filters[i], SCMP_SYS(seccomp), NULL),
						  SCMP_ACT_ALLOW);
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
			ck_assert_msg(answer(cases[i].call, cases[i].arguments) ==
					      (cases[i].allowed & FOR(kind)   ? 0
					       : cases[i].refused & FOR(kind) ? EPERM
									      : ENOSYS),
				      "call %d, case %zu, kind %u", cases[i].call, i, kind);
	}
}
END_TEST

START_TEST(calls_of_the_fetcher)
{
	const uint64_t self = (uint64_t)getpid();
	const struct {
		int call;
		uint64_t arguments[2];
		int answer;
	} cases[] = {{SCMP_SYS(socket), {0}, 0},
		     {SCMP_SYS(openat), {0}, 0},
		     {SCMP_SYS(execve), {0}, EPERM},
		     {SCMP_SYS(ptrace), {0}, EPERM},
		     {SCMP_SYS(kill), {0}, EPERM},
		     {SCMP_SYS(mount), {0}, EPERM},
		     {SCMP_SYS(open_by_handle_at), {0}, EPERM},
		     {SCMP_SYS(tgkill), {self}, 0},
		     {SCMP_SYS(tgkill), {1}, EPERM},
		     {SCMP_SYS(clone), {CLONE_THREAD | CLONE_VM}, 0},
		     {SCMP_SYS(clone), {CLONE_VM}, EPERM},
		     {SCMP_SYS(clone3), {0}, ENOSYS}};

	begin_filters(0);
	if (!h5_seccomp_available())
		return;
	ck_assert_int_eq(h5_seccomp_enter_fetcher(), 0);
	ck_assert(library.loads == 1 && library.filters[0].released);
	ck_assert_uint_eq(library.filters[0].attributes[SCMP_FLTATR_CTL_NNP], 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		ck_assert_msg(answer(cases[i].call, cases[i].arguments) == cases[i].answer, "case %zu", i);
}
END_TEST

/* Each call of libseccomp fails once: it is told, and nothing is loaded after it. */
START_TEST(filters_that_cannot_be_made)
{
	begin_filters(0);
	for (unsigned fetcher = 0; h5_seccomp_available() && fetcher < 2; fetcher++) {
		const unsigned loads = fetcher ? 1 : FILTERS;
		unsigned calls;

		begin_filters(0);
		ck_assert_int_eq(fetcher ? h5_seccomp_enter_fetcher() : h5_seccomp_enter(&sandboxes[MAKES]),
				 0);
		calls = library.calls;
		for (unsigned at = 1; at <= calls; at++) {
			int rc;

			begin_filters(at);
			rc = fetcher ? h5_seccomp_enter_fetcher() : h5_seccomp_enter(&sandboxes[MAKES]);
			ck_assert_int_eq(rc, at == 1 || (!fetcher && at == 6) ? -ENOMEM
					     : !fetcher && at <= 10	      ? -EINVAL
									      : -EFAULT);
			ck_assert_uint_eq(library.calls, at);
			ck_assert_uint_eq(library.loads, at + loads > calls + 1 ? at + loads - calls - 1 : 0);
			for (unsigned i = 0; i < library.n; i++)
				ck_assert(library.filters[i].released);
		}
	}
	for (unsigned api = 0; api < 7; api++) {
		begin_filters(0);
		library.api = api;
		ck_assert(api >= 2 || !h5_seccomp_available());
#ifdef __x86_64__
		ck_assert(h5_seccomp_available() == (api >= 2));
#endif
	}
}
END_TEST

/* ---- the sandbox ---- */

static char logged[256];
static int privileges; /* what prctl() gives: a negative errno, or how often it was called */

void __wrap_h5_log(const char *format, ...);
int __wrap_prctl(int option, ...);

void __wrap_h5_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(logged, sizeof logged, format, args);
	va_end(args);
}

int __wrap_prctl(int option, ...)
{
	ck_assert_int_eq(option, PR_SET_NO_NEW_PRIVS);
	if (privileges < 0)
		return (int)refuse(-privileges);
	privileges++;
	return 0;
}

static void enter(long version, unsigned fails_at, int made, unsigned used, const char *message)
{
	struct h5_sandbox sandbox = sandboxes[READS];

	sandbox.made = made;
	begin(version, fails_at);
	*logged = 0;
	h5_sandbox_enter_files(&sandbox);
#ifdef NO_SANDBOX
	used = 0;
	message = "";
#endif
	ck_assert_uint_eq(kernel.used, used);
	ck_assert_str_eq(logged, message);
}

START_TEST(the_sandbox_takes_what_the_kernel_has)
{
	privileges = 0;
	enter(0, 0, -1, 0, "");
	enter(1, 0, -1, 1, "");
	enter(1, 0, 0, 0, "");
	enter(2, 0, 0, 1, "");
	enter(7, 1, -1, 0, "sandbox: Landlock: Too many open files");
	privileges = -EPERM;
	enter(7, 0, -1, 1, "sandbox: no new privileges: Operation not permitted");
	*logged = 0;
	for (unsigned api = 1; api <= 2; api++) {
		begin_filters(1);
		library.api = api;
		h5_sandbox_enter_calls(&sandboxes[READS]);
		ck_assert(api == 2 || !*logged);
	}
#if defined __x86_64__ && !defined NO_SANDBOX
	ck_assert_str_eq(logged, "sandbox: seccomp: Cannot allocate memory");
#endif
}
END_TEST

START_TEST(the_fetcher_reads_what_it_needs)
{
	static const char *const places[] = {"/etc", "/usr",	  "/lib",	 "/lib64",
					     "/run", "/dev/null", "/dev/urandom"};
	const char *more[20], *const none[] = {NULL};
	char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
	static char long_name[5000];
	unsigned there = 0;

	begin_filters(0);
	library.api = 0;
	memset(long_name, 'x', sizeof long_name - 1);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		there += !access(places[i], F_OK);
	for (size_t i = 0; i < 19; i++)
		more[i] = "/dev/full";
	more[19] = NULL;
	for (unsigned i = 0; i < 3; i++) {
		if (i)
			setenv("HOME", i == 1 ? "/none/such" : long_name, 1);
		else
			unsetenv("HOME");
		/* One place is for the end of the list, and one for the passwords. */
		privileges = 0;
		begin(4, 0);
		h5_sandbox_enter_fetcher(more, -1);
#ifndef NO_SANDBOX
		ck_assert_int_eq(privileges, 1);
		ck_assert_uint_eq(kernel.rules, there + (i == 1 ? 7 : 8));
		ck_assert_uint_eq(kernel.used, 1);
#endif
		begin(4, 0);
		h5_sandbox_enter_fetcher(none, 0);
#ifndef NO_SANDBOX
		ck_assert_uint_eq(kernel.rules, there + 1);
#endif
	}
	(void)there;
	if (home)
		setenv("HOME", home, 1);
	free(home);
}
END_TEST

START_TEST(the_sandbox_is_described)
{
	static const struct {
		long version;
		unsigned api;
		const char *text;
	} cases[] = {
		{0, 1, "sandbox: no new privileges, no Landlock in this kernel, no seccomp here\n"},
		{-EOPNOTSUPP, 2, "sandbox: no new privileges, no Landlock in this kernel, seccomp\n"},
		{7, 1, "sandbox: no new privileges, Landlock (version 7), no seccomp here\n"},
		{7, 2, "sandbox: no new privileges, Landlock (version 7), seccomp\n"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *text;
		size_t n;
		FILE *out = open_memstream(&text, &n);

		begin(cases[i].version, 0);
		begin_filters(0);
		library.api = cases[i].api;
		h5_sandbox_describe(out);
		fclose(out);
#ifdef NO_SANDBOX
		ck_assert_str_eq(text, "sandbox: none, since " NO_SANDBOX "\n");
#elif defined __x86_64__
		ck_assert_str_eq(text, cases[i].text);
#endif
		free(text);
	}
}
END_TEST

UNIT_MAIN("system", each_version_forbids_what_it_can, the_fetcher_connects_and_reads, what_is_refused_is_told,
	  the_top_mount_is_found, the_first_place_of_a_mount_is_found, calls_of_each_kind_of_mount,
	  calls_of_the_fetcher, filters_that_cannot_be_made, the_sandbox_takes_what_the_kernel_has,
	  the_fetcher_reads_what_it_needs, the_sandbox_is_described)
