/* What a command line becomes: settings that follow from others, what is not given, what libfuse is told. */
#include "config.h"

#include "base/thread.h"
#include "fault_alloc.h"
#include "fuse/options.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { UID = 1234, GID = 5678, MOST = 12 };

static unsigned calls, fails_at; /* of calls that extend lists of arguments */
static unsigned processors;
static long page_count, page_size; /* of the machine's memory; 0, 0: as they are */
static unsigned long failing;	   /* which allocation; 0: none */

uid_t __wrap_getuid(void);
gid_t __wrap_getgid(void);
unsigned __wrap_h5_processors(void);
long __real_sysconf(int name);
long __wrap_sysconf(int name);
int __wrap_fuse_opt_add_arg(struct fuse_args *args, const char *arg);
int __real_fuse_opt_add_arg(struct fuse_args *args, const char *arg);
int __wrap_fuse_opt_add_opt(char **options, const char *option);
int __real_fuse_opt_add_opt(char **options, const char *option);
int __wrap_fuse_opt_add_opt_escaped(char **options, const char *option);
int __real_fuse_opt_add_opt_escaped(char **options, const char *option);

uid_t __wrap_getuid(void)
{
	return UID;
}

gid_t __wrap_getgid(void)
{
	return GID;
}

unsigned __wrap_h5_processors(void)
{
	return processors;
}

long __wrap_sysconf(int name)
{
	if (!page_count && !page_size)
		return __real_sysconf(name);
	ck_assert(name == _SC_PHYS_PAGES || name == _SC_PAGESIZE);
	return name == _SC_PHYS_PAGES ? page_count : page_size;
}

int __wrap_fuse_opt_add_arg(struct fuse_args *args, const char *arg)
{
	return ++calls == fails_at ? -1 : __real_fuse_opt_add_arg(args, arg);
}

int __wrap_fuse_opt_add_opt(char **options, const char *option)
{
	return ++calls == fails_at ? -1 : __real_fuse_opt_add_opt(options, option);
}

int __wrap_fuse_opt_add_opt_escaped(char **options, const char *option)
{
	return ++calls == fails_at ? -1 : __real_fuse_opt_add_opt_escaped(options, option);
}

static char said[400]; /* what the last command line made h5fs say */
static char left[400]; /* what it left of the line */

/* Leads stderr to a file, or back, if that is the descriptor it had. */
static int lead_stderr(int to)
{
	int before = dup(STDERR_FILENO);

	fflush(stderr);
	dup2(to, STDERR_FILENO);
	close(to);
	return before;
}

static void hear(int file)
{
	ssize_t n = pread(file, said, sizeof said - 1, 0);

	said[n > 0 ? n : 0] = 0;
	close(file);
}

/* The words are separated by blanks. */
static int parse(const char *line, struct h5_options *o)
{
	char *words = strdup(line), *argv[MOST + 1], *rest = words;
	int argc = 0, rc, before;

	for (char *word; (word = strsep(&rest, " "));) {
		ck_assert_int_lt(argc, MOST);
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	calls = 0;
	processors = 3;
	before = lead_stderr(open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
	if (failing) {
		fault_alloc_arm(failing);
		fault_alloc_count(true);
	}
	rc = h5_options_parse(argc, argv, o);
	fault_alloc_count(false);
	hear(lead_stderr(before));
	memcpy(left, words, strlen(line) + 1);
	free(words);
	return rc;
}

START_TEST(what_is_not_given)
{
	struct h5_options o;

	ck_assert_int_eq(parse("h5fs /dev/null /mnt", &o), 0);
	ck_assert(o.vfs.uid == UID && o.vfs.gid == GID && !o.vfs.fmask && !o.vfs.dmask);
	ck_assert(o.vfs.commit_at_close && o.sandbox && !o.set.writable && !o.foreground && !o.to_syslog);
	ck_assert(o.set.external == H5_EXTERNAL_BENEATH && o.set.workers == 3 && !o.set.has_revision);
	ck_assert_uint_eq(o.set.block_cache, o.set.chunk_cache / 4);
	ck_assert(o.fetcher.cache == 256 << 20 && o.fetcher.connections == 64 && o.fetcher.tries == 10 &&
		  o.fetcher.timeout == 30);
	ck_assert(o.set.wait == 2 && o.vfs.max_work == 2 && o.vfs.gather == 32 << 20);
	ck_assert_uint_eq(o.revision, UINT64_MAX);
	ck_assert_str_eq(o.file, "/dev/null");
	ck_assert_str_eq(o.mountpoint, "/mnt");
	ck_assert_str_eq(o.kerchunk_url, "file:///dev/null");
	h5_options_release(&o);
	ck_assert_int_eq(parse("h5fs -o allow_other /dev/null /mnt", &o), 0);
	ck_assert_int_eq(o.set.external, H5_EXTERNAL_NONE);
	h5_options_release(&o);
}
END_TEST

/* Others may read the command line. What is secret in it is erased, and nothing else. */
START_TEST(queries_are_hidden)
{
	static const struct {
		const char *line, *left; /* @: erased */
	} cases[] = {
		{"h5fs -o ro http://server/x.h5?key=secret /mnt",
		 "h5fs -o ro http://server/x.h5@@@@@@@@@@@ /mnt"},
		{"h5fs https://server/x.h5#a?b /mnt", "h5fs https://server/x.h5@@@@ /mnt"},
		{"h5fs http://server/x.h5 /mnt?a#b", "h5fs http://server/x.h5 /mnt?a#b"},
		{"h5fs /dev/null?a /mnt", "h5fs /dev/null?a /mnt"},
		{"h5fs -o nonsense http://server/x.h5?a /mnt", "h5fs -o nonsense http://server/x.h5@@ /mnt"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_options o;
		const size_t n = strlen(cases[i].left);

		if (!parse(cases[i].line, &o))
			h5_options_release(&o);
		ck_assert_uint_eq(n, strlen(cases[i].line));
		for (size_t j = 0; j < n; j++) {
			const char c = cases[i].left[j];

			ck_assert_msg(left[j] == (c == '@' || c == ' ' ? '\0' : c), "%s, %zu", cases[i].line,
				      j);
		}
	}
}
END_TEST

/* The caches, and the largest chunk, are parts of the machine's memory. */
START_TEST(parts_of_the_memory)
{
	static const struct {
		long pages, page;
		unsigned cache, chunk; /* mebibytes */
	} cases[] = {{-1, 4096, 64, 256},	   {4096, -1, 64, 256},		{0, 4096, 64, 256},
		     {1, 1 << 30, 96, 256},	   {1 << 30, 1, 96, 256},	{1 << 20, 4096, 192, 512},
		     {1 << 16, 1 << 16, 192, 512}, {7 << 18, 4096, 288, 896},	{8 << 18, 4096, 320, 1024},
		     {9 << 18, 4096, 352, 1024},   {17 << 18, 4096, 608, 1024}, {18 << 18, 4096, 640, 1024},
		     {19 << 18, 4096, 640, 1024}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_options o;

		page_count = cases[i].pages;
		page_size = cases[i].page;
		ck_assert_int_eq(parse("h5fs /dev/null /mnt", &o), 0);
		ck_assert_msg(o.set.chunk_cache == (size_t)cases[i].cache << 20, "%zu: %zu", i,
			      o.set.chunk_cache);
		ck_assert_uint_eq(o.set.block_cache, (size_t)cases[i].cache << 18);
		ck_assert_msg(o.set.max_chunk == (size_t)cases[i].chunk << 20, "%zu: %zu", i,
			      o.set.max_chunk);
		h5_options_release(&o);
	}
	page_count = page_size = 0;
}
END_TEST

START_TEST(what_follows)
{
	static const struct {
		const char *line;
		bool foreground, writable, swmr, to_syslog, is_folder;
	} cases[] = {
		{"h5fs /dev/null /m", 0, 0, 0, 0, 0},
		{"h5fs -f /dev/null /m", 1, 0, 0, 0, 0},
		{"h5fs -d /dev/null /m", 1, 0, 0, 0, 0},
		{"h5fs -o rw,debug /dev/null /m", 1, 1, 0, 0, 0},
		{"h5fs -o create /dev/null /m", 0, 1, 0, 0, 0},
		{"h5fs -o rw,swmr /dev/null /m", 0, 1, 1, 0, 0},
		{"h5fs -o swmr,filters=shuffle,deflate /dev/null /m", 0, 0, 1, 0, 0},
		{"h5fs -o rw --list /dev/null", 0, 0, 0, 0, 0},
		{"h5fs --recover /dev/null", 0, 1, 0, 0, 0},
		{"h5fs --reclaim -o swmr /dev/null", 0, 1, 0, 0, 0},
		{"h5fs -o remount,rw /dev/null /m", 0, 1, 0, 0, 0},
		{"h5fs -o log=syslog /dev/null /m", 0, 0, 0, 1, 0},
		{"h5fs /dev /m", 0, 0, 0, 0, 1},
		{"h5fs --list /dev", 0, 0, 0, 0, 0},
		{"h5fs /none/such /m", 0, 0, 0, 0, 0},
		{"h5fs -u /m", 0, 0, 0, 0, 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *line = cases[i].line;
		struct h5_options o;

		ck_assert_msg(!parse(line, &o), "%s", line);
		ck_assert_msg(o.foreground == cases[i].foreground && o.set.writable == cases[i].writable &&
				      o.vfs.writable == cases[i].writable && o.set.swmr == cases[i].swmr &&
				      o.to_syslog == cases[i].to_syslog && !o.log &&
				      o.is_folder == cases[i].is_folder,
			      "%s", line);
		h5_options_release(&o);
	}
}
END_TEST

/* `list`: of the options. */
static void check_arguments(const char *line, const char *list, bool debug)
{
	struct h5_options o;

	ck_assert_msg(!parse(line, &o), "%s", line);
	ck_assert_int_eq(o.args.argc, debug ? 4 : 3);
	ck_assert_str_eq(o.args.argv[1], "-o");
	ck_assert_str_eq(o.args.argv[2], list);
	if (debug)
		ck_assert_str_eq(o.args.argv[3], "-d");
	h5_options_release(&o);
}

START_TEST(what_libfuse_is_told)
{
	check_arguments("h5fs a,b /m", "fsname=a\\,b,subtype=h5fs,nosuid,nodev,noexec,default_permissions,ro",
			false);
	check_arguments("h5fs -d -o rw a /m", "fsname=a,subtype=h5fs,nosuid,nodev,noexec,rw", true);
	check_arguments("h5fs -o rw,uid=1234,gid=5678 a /m", "fsname=a,subtype=h5fs,nosuid,nodev,noexec,rw",
			false);
	check_arguments("h5fs -o rw,allow_other a /m",
			"fsname=a,subtype=h5fs,nosuid,nodev,noexec,default_permissions,rw,allow_other",
			false);
	for (unsigned i = 0; i < 4; i++) {
		static const char *const others[] = {"uid=7", "gid=7", "fmask=022", "dmask=022"};
		char line[80];

		snprintf(line, sizeof line, "h5fs -o rw,%s a /m", others[i]);
		check_arguments(line, "fsname=a,subtype=h5fs,nosuid,nodev,noexec,default_permissions,rw",
				false);
	}
}
END_TEST

/* Each list that cannot be longer is an error, and of a helper too. */
START_TEST(too_little_memory)
{
	static const char *const lines[] = {"h5fs -d -o allow_other a /m",
					    "mount.h5fs a /m -n -v -N 3 -t h5fs -o rw"};

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct h5_options o;
		unsigned all;

		fails_at = 0;
		ck_assert_int_eq(parse(lines[i], &o), 0);
		h5_options_release(&o);
		all = calls;
		ck_assert_uint_ge(all, 7);
		for (unsigned at = 1; at <= all; at++) {
			fails_at = at;
			ck_assert_int_eq(parse(lines[i], &o), -ENOMEM);
			ck_assert_uint_eq(calls, at);
		}
		fails_at = 0;
	}
}
END_TEST

/* A libfuse that has none: `auto` does without, `yes` is refused. Commands do not look at it. */
START_TEST(no_rings)
{
#ifndef HAVE_FUSE_IO_URING
	struct h5_options o;

	ck_assert_int_eq(parse("h5fs -o io_uring=auto /dev/null /m", &o), 0);
	ck_assert_int_eq(o.io_uring, H5_IO_URING_NO);
	h5_options_release(&o);
	ck_assert_int_eq(parse("h5fs -o io_uring=no /dev/null /m", &o), 0);
	ck_assert_int_eq(o.io_uring, H5_IO_URING_NO);
	h5_options_release(&o);
	ck_assert_int_eq(parse("h5fs -o io_uring=yes /dev/null /m", &o), -EINVAL);
	ck_assert_ptr_null(o.file);
	ck_assert_int_eq(parse("h5fs --list -o io_uring=yes /dev/null", &o), 0);
	h5_options_release(&o);
#endif
}
END_TEST

/* A value that is none, and a log that cannot be opened. */
START_TEST(values_that_are_refused)
{
	static const char *const lines[] = {
		"h5fs -o cache=x /dev/null /m",	     "h5fs -o uid=x /dev/null /m",
		"h5fs -o external=x /dev/null /m",   "h5fs -o log=/none/log /dev/null /m",
		"h5fs -o filters=none /dev/null /m", "h5fs -o http_header=x https://h/x.h5 /m"};

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct h5_options o;

		ck_assert_msg(parse(lines[i], &o) == -EINVAL, "%s", lines[i]);
		ck_assert_msg(!strncmp(said, "h5fs: ", 6), "%s: %s", lines[i], said);
	}
}
END_TEST

START_TEST(options_that_are_released_twice)
{
	static const char *const lines[] = {
		/* A process opens one log, so no other line has any. */
		"h5fs -o "
		"filters=shuffle,subdir=a,journal=/j,log=syslog,log=/dev/zero,kerchunk_url=https://h/x x.h5 "
		"/m",
		"h5fs -o match=*.nc /dev /m",
		"h5fs --extract /dev/null /path /target",
		"h5fs -o disk_cache=/dev,s3_endpoint=https://h,http_header=@/dev/null s3://b/x.h5?a /m",
	};

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct h5_options o;

		ck_assert_msg(!parse(lines[i], &o), "%s: %s", lines[i], said);
		switch (i) {
		case 0:
			ck_assert(o.filters && o.subdir && o.journal && o.log && o.kerchunk_url && o.file &&
				  o.mountpoint && !o.to_syslog);
			break;
		case 1:
			ck_assert_ptr_nonnull(o.match);
			break;
		case 2:
			ck_assert(o.path && o.target);
			break;
		default:
			ck_assert(o.disk_cache && o.s3_endpoint && o.http_header && o.url);
			break;
		}
		h5_options_release(&o);
		ck_assert(!o.filters && !o.subdir && !o.journal && !o.log && !o.kerchunk_url && !o.file &&
			  !o.mountpoint && !o.match && !o.path && !o.target && !o.disk_cache &&
			  !o.s3_endpoint && !o.http_header && !o.url && !o.args.argv);
		h5_options_release(&o);
	}
}
END_TEST

/* Each allocation fails once. */
START_TEST(allocations_that_fail)
{
	static const char *const lines[] = {
		"h5fs -o filters=shuffle,deflate,match=*.nc /dev /m",
		"h5fs --extract /dev/null /path /target",
		"h5fs -o subdir=a,kerchunk_url=https://host/x?y=z x.h5 /m",
		"h5fs -o log=syslog,disk_cache=/dev https://host/x.h5?secret=1 /m",
	};
	unsigned heard = 0;

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		bool fired = true;

		for (unsigned long n = 1; fired; n++) {
			struct h5_options o;
			int rc;

			failing = n;
			rc = parse(lines[i], &o);
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			failing = 0;
			/* libfuse knows one error alone, and so does a list of filters. */
			ck_assert_msg(!rc || (fired && (rc == -ENOMEM || rc == -EINVAL)), "%s, %lu: %d",
				      lines[i], n, rc);
			ck_assert_msg(fired || !rc, "%s: %d", lines[i], rc);
			ck_assert_msg(rc || !*said, "%s, %lu: %s", lines[i], n, said);
			heard += !strcmp(said, "h5fs: memory allocation failed (h5fs -h tells more)\n");
			ck_assert_ptr_null(strstr(said, "fuse: "));
			ck_assert_uint_lt(n, 1000);
			if (!rc) {
				ck_assert_ptr_nonnull(o.file);
				ck_assert(i == 1 ? o.path && o.target : o.mountpoint != NULL);
				ck_assert_int_ge(o.args.argc, 3);
				ck_assert_ptr_null(strstr(o.file, "secret"));
				ck_assert_str_eq(o.vfs.url, i == 0   ? "file:///dev"
							    : i == 1 ? "file:///dev/null"
							    : i == 2 ? "https://host/x"
								     : "https://host/x.h5");
				h5_options_release(&o);
			} else {
				ck_assert_ptr_null(o.file);
			}
		}
	}
	ck_assert(heard || !fault_alloc_is_everywhere());
}
END_TEST

UNIT_MAIN("options", what_is_not_given, queries_are_hidden, parts_of_the_memory, what_follows,
	  what_libfuse_is_told, too_little_memory, no_rings, values_that_are_refused,
	  options_that_are_released_twice, allocations_that_fail)
