/* What the user is told about a file that is opened or refused, and the exit status. */
#include "base/error.h"
#include "change/open.h"
#include "fuse/log.h"
#include "fuse/report.h"
#include "fuse/status.h"
#include "store/file.h"
#include "store/file_set.h"
#include "unit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct {
	enum h5_remote_reason reason;
	struct h5_superblock superblock;
	const char *missing;
	uint64_t end;
	bool has_revisions, is_written;
} scene;

static char said[1000];
static struct h5_options options;
static struct h5_opened opened;
static struct h5_file_shared shared;
static struct h5_remote *const remote = (struct h5_remote *)&scene;
static struct h5_file *const file = (struct h5_file *)&said;
static struct h5_onion *const revisions = (struct h5_onion *)&options;

static void say(const char *format, va_list args)
{
	size_t n = strlen(said);

	vsnprintf(said + n, sizeof said - n, format, args);
	strcat(said, "\n");
}

void h5_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void h5_log_at(enum h5_log_level level, const char *format, ...)
{
	va_list args;

	ck_assert_int_eq(level, H5_LOG_NORMAL);
	va_start(args, format);
	say(format, args);
	va_end(args);
}

enum h5_remote_reason h5_remote_reason(const struct h5_remote *r)
{
	ck_assert_ptr_eq(r, remote);
	return scene.reason;
}

const struct h5_superblock *h5_file_superblock(const struct h5_file *f)
{
	ck_assert_ptr_eq(f, file);
	return &scene.superblock;
}

const char *h5_file_missing(const struct h5_file *f)
{
	ck_assert_ptr_eq(f, file);
	return scene.missing;
}

uint64_t h5_file_end(const struct h5_file *f)
{
	ck_assert_ptr_eq(f, file);
	return scene.end;
}

const struct h5_onion *h5_file_set_revisions(const struct h5_file_set *set)
{
	ck_assert_ptr_eq(set, (const struct h5_file_set *)&shared);
	return scene.has_revisions ? revisions : NULL;
}

bool h5_onion_is_written(const struct h5_onion *onion)
{
	ck_assert_ptr_eq(onion, revisions);
	return scene.is_written;
}

static void begin(void)
{
	memset(&scene, 0, sizeof scene);
	memset(&options, 0, sizeof options);
	memset(&opened, 0, sizeof opened);
	memset(said, 0, sizeof said);
	shared.root = file;
	scene.end = 1000;
	scene.superblock = (struct h5_superblock){.version = 3, .end = 1000};
	options.file = (char *)"x.h5";
	h5_error_clear();
}

/* ---- refusals ---- */

enum { IS_FOLDER = 1, URL = 2, NO_CACHE = 4, WRITABLE = 8 };

START_TEST(statuses)
{
	static const struct {
		unsigned what;
		int code;
		enum h5_remote_reason reason;
		int status;
	} cases[] = {
		{0, -EROFS, 0, EXIT_FILE},
		{0, -EACCES, 0, EXIT_FILE},
		{0, -EPERM, 0, EXIT_FILE},
		{0, -ENOSPC, 0, EXIT_FILE},
		{WRITABLE, -EROFS, 0, EXIT_READ_ONLY},
		{WRITABLE, -EACCES, 0, EXIT_READ_ONLY},
		{WRITABLE, -EPERM, 0, EXIT_READ_ONLY},
		{WRITABLE, -ENOSPC, 0, EXIT_READ_ONLY},
		{WRITABLE, -EBUSY, 0, EXIT_FORCE},
		{WRITABLE, -EMLINK, 0, EXIT_FORCE},
		{0, -EUCLEAN, 0, EXIT_DAMAGED},
		{0, -EIO, 0, EXIT_DAMAGED},
		{0, -EWOULDBLOCK, 0, EXIT_LOCKED},
		{0, -ENOTSUP, 0, EXIT_UNSUPPORTED},
		{0, -ENOENT, 0, EXIT_FILE},
		{IS_FOLDER, -ENOENT, 0, EXIT_FILE},
		{IS_FOLDER, -EIO, 0, EXIT_DAMAGED},
		{URL, -ENOENT, H5_REMOTE_FINE, EXIT_FILE},
		{URL, -EUCLEAN, H5_REMOTE_FINE, EXIT_DAMAGED},
		{URL, -ENOENT, H5_REMOTE_NOT_FOUND, EXIT_NOT_FOUND},
		{URL, -EIO, H5_REMOTE_NOT_FOUND, EXIT_NOT_FOUND},
		{URL, -EACCES, H5_REMOTE_FORBIDDEN, EXIT_FORBIDDEN},
		{URL, -EIO, H5_REMOTE_NO_RANGES, EXIT_NO_RANGES},
		{URL, -EIO, H5_REMOTE_NETWORK, EXIT_NETWORK},
		{URL, -EIO, H5_REMOTE_CERTIFICATE, EXIT_CERTIFICATE},
		{URL, -EIO, H5_REMOTE_OTHER, EXIT_FILE},
		{URL, -EIO, H5_REMOTE_CHANGED, EXIT_DAMAGED},
		/* None that there is. */
		{URL, -EIO, H5_REMOTE_OTHER + 1, EXIT_DAMAGED},
		{URL, -EIO, 12, EXIT_DAMAGED},
		{URL, -EIO, 31, EXIT_DAMAGED},
		{URL, -EIO, 1000, EXIT_DAMAGED},
		{IS_FOLDER | URL, -ENOENT, H5_REMOTE_FINE, EXIT_NOT_FOUND},
		{IS_FOLDER | URL, -EIO, H5_REMOTE_FINE, EXIT_NETWORK},
		{IS_FOLDER | URL, -EUCLEAN, H5_REMOTE_FINE, EXIT_DAMAGED},
		{IS_FOLDER | URL, -EIO, H5_REMOTE_FORBIDDEN, EXIT_FORBIDDEN},
		{NO_CACHE, -EACCES, 0, EXIT_DISK_CACHE},
		{NO_CACHE | URL, -EIO, H5_REMOTE_NETWORK, EXIT_DISK_CACHE},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[200];
		int status;

		begin();
		options.is_folder = cases[i].what & IS_FOLDER;
		options.url = cases[i].what & URL ? (char *)"http://host/x.h5" : NULL;
		options.set.remote = cases[i].what & URL ? remote : NULL;
		options.disk_cache_fails = cases[i].what & NO_CACHE;
		options.set.writable = cases[i].what & WRITABLE;
		scene.reason = cases[i].reason;
		status = h5_report_refusal(&options, cases[i].code);
		ck_assert_msg(status == cases[i].status, "%u, %s: %d", cases[i].what,
			      strerror(-cases[i].code), status);
		snprintf(text, sizeof text, "x.h5: %s%s\n",
			 status == EXIT_READ_ONLY ? "cannot be written: " : "", strerror(-cases[i].code));
		ck_assert_str_eq(said, text);
	}
}
END_TEST

/* The text of an error that is another one does not count. */
START_TEST(reasons)
{
	begin();
	options.set.writable = true;
	(void)h5_fail(-EACCES, H5_UNDEF, "why");
	h5_report_refusal(&options, -EACCES);
	(void)h5_fail(-EUCLEAN, 700, "what");
	h5_report_refusal(&options, -EUCLEAN);
	(void)h5_fail(-EACCES, 0, "where");
	h5_report_refusal(&options, -EACCES);
	h5_report_refusal(&options, -EIO);
	h5_report_refusal(&options, -EROFS);
	ck_assert_int_eq(h5_report_incomplete(&options), EXIT_NETWORK);
	ck_assert_str_eq(said, "x.h5: cannot be written: why\n"
			       "x.h5: what at address 700\n"
			       "x.h5: cannot be written: where at address 0\n"
			       "x.h5: Input/output error\n"
			       "x.h5: cannot be written: Read-only file system\n"
			       "x.h5: not all of it could be fetched, so damage may be none\n");
}
END_TEST

/* ---- warnings ---- */

static void warn(const char *expected)
{
	h5_report_warnings(&options, "name", (const struct h5_file_set *)&shared, &opened);
	ck_assert_str_eq(said, expected);
}

START_TEST(journals)
{
	static const struct {
		enum h5_recovery what;
		bool swmr;
		const char *done;
	} cases[] = {
		{H5_RECOVERY_REPLAYED, false,
		 "what a killed mount had begun to commit was completed from its journal"},
		{H5_RECOVERY_REPLAYED, true,
		 "what a killed mount had begun to commit was completed from its journal"},
		{H5_RECOVERY_STALE, false,
		 "its journal is stale, since another program has written the file: not replayed"},
		{H5_RECOVERY_BUSY, false, "another h5fs writes it"},
		{H5_RECOVERY_UNFIT, false, "its journal is not heeded: it is shown as it is"},
		{0, true, "the marks of a killed swmr mount were cleared"},
		{0, false, NULL},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (unsigned warned = 0; warned < 2; warned++) {
			const char *done = cases[i].done;
			char text[300];

			begin();
			opened.recovered.what = cases[i].what;
			opened.recovered.swmr = cases[i].swmr;
			opened.warning = warned ? (char *)"a remark" : NULL;
			snprintf(text, sizeof text, "name: %s%s%s%s\n",
				 done	  ? done
				 : warned ? "a remark"
					  : "",
				 done && warned ? " (" : "", done && warned ? "a remark" : "",
				 done && warned ? ")" : "");
			warn(done || warned ? text : "");
			ck_assert(!h5_report_recovery(&opened) == !done);
		}
}
END_TEST

#define MARKED "name: marked as open for writing: a program writes it without a lock, or has crashed\n"

/* In older versions the marks mean nothing, and a mount for writing has made its own. */
START_TEST(marks)
{
	for (unsigned version = 0; version < 4; version++)
		for (unsigned flags = 0; flags < 8; flags++)
			for (unsigned writable = 0; writable < 2; writable++) {
				const bool marked = version == 3 && flags & (H5_FLAG_WRITING | H5_FLAG_SWMR);

				begin();
				scene.superblock.version = (uint8_t)version;
				scene.superblock.consistency = (uint8_t)flags;
				options.set.writable = writable;
				ck_assert_int_eq(h5_report_is_marked(file), marked);
				warn(marked && !writable ? MARKED : "");
			}
}
END_TEST

START_TEST(revisions_and_parts)
{
	begin();
	scene.has_revisions = true;
	warn("");
	scene.is_written = true;
	warn("name: a program writes a new revision of it, or has crashed: those before are shown\n");
	begin();
	options.set.external = H5_EXTERNAL_BENEATH;
	scene.missing = "x-m.h5";
	scene.superblock.end = 2000;
	warn("name: missing: x-m.h5; what lies in it cannot be read\n");
	begin();
	options.set.external = H5_EXTERNAL_NONE;
	scene.missing = "x-m.h5";
	warn("name: missing, or not opened (external=none): x-m.h5; what lies in it cannot be read\n");
}
END_TEST

/* A user block counts. */
START_TEST(truncated_files)
{
	static const struct {
		uint64_t base, recorded, end;
		const char *said;
	} cases[] = {
		{0, 1000, 1000, ""},
		{0, 999, 1000, ""},
		{0, 1001, 1000, "name: truncated: 1000 bytes of 1001; what lies beyond cannot be read\n"},
		{512, 1512, 1000, ""},
		{512, 1513, 1000, "name: truncated: 1512 bytes of 1513; what lies beyond cannot be read\n"},
		{0, H5_UNDEF, 1000, ""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		scene.superblock.base = cases[i].base;
		scene.superblock.end = cases[i].recorded;
		scene.end = cases[i].end;
		warn(cases[i].said);
	}
}
END_TEST

UNIT_MAIN("report", statuses, reasons, journals, marks, revisions_and_parts, truncated_files)
