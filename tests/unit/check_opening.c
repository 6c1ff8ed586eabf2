/* The file of the command line: what is possible with it, and in which order its parts begin and end
 * (fuse/opening). */
#include "base/error.h"
#include "fuse/opening.h"
#include "fuse/sandbox.h"
#include "remote/disk_folder.h"
#include "trace.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const char url[] = "https://server/x.h5?secret";

static struct {
	int folder_rc, fetcher_rc, open_rc;
	struct h5_fetcher_options fetcher; /* that was started */
	void (*say)(const char *note);
	char said[100];
} scene;

static char text[sizeof url];
static struct h5_options options;
static struct h5_remote *const remote = (struct h5_remote *)&scene;
static struct h5_file_set *const set = (struct h5_file_set *)&text;

int __wrap_h5_disk_folder_open(const char *path);
int __wrap_h5_fetcher_start(const struct h5_fetcher_options *o, struct h5_remote **out);
void __wrap_h5_remote_set_listener(struct h5_remote *of, void (*say)(const char *note));
void __wrap_h5_remote_end(struct h5_remote *of);
void __wrap_h5_remote_close(struct h5_remote *of);
int __wrap_h5_open_file(const char *path, const struct h5_file_set_options *o, struct h5_file_set **out,
			struct h5_opened *opened);
void __wrap_h5_file_set_close(struct h5_file_set *of);

void h5_log_at(enum h5_log_level level, const char *format, ...)
{
	va_list args;

	ck_assert_int_eq(level, H5_LOG_NORMAL);
	va_start(args, format);
	vsnprintf(scene.said, sizeof scene.said, format, args);
	va_end(args);
}

void h5_sandbox_enter_fetcher(const char *const *more, int folder)
{
	(void)more;
	(void)folder;
}

int __wrap_h5_disk_folder_open(const char *path)
{
	ck_assert_str_eq(path, "/cache");
	note("folder");
	return scene.folder_rc ? scene.folder_rc : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int __wrap_h5_fetcher_start(const struct h5_fetcher_options *o, struct h5_remote **out)
{
	ck_assert_str_eq(text, url);
	ck_assert(o == &options.fetcher && out == &options.set.remote);
	if (o->disk_cache >= 0)
		ck_assert_int_ge(fcntl(o->disk_cache, F_GETFD), 0);
	scene.fetcher = *o;
	note("fetcher");
	if (!scene.fetcher_rc)
		*out = remote;
	return scene.fetcher_rc;
}

void __wrap_h5_remote_set_listener(struct h5_remote *of, void (*say)(const char *note))
{
	ck_assert_ptr_eq(of, remote);
	scene.say = say;
	note("listener");
}

void __wrap_h5_remote_end(struct h5_remote *of)
{
	note(of ? "end-remote" : "end-none");
}

void __wrap_h5_remote_close(struct h5_remote *of)
{
	note(of ? "close-remote" : "close-none");
}

int __wrap_h5_open_file(const char *path, const struct h5_file_set_options *o, struct h5_file_set **out,
			struct h5_opened *opened)
{
	ck_assert_str_eq(path, "x.h5");
	ck_assert_ptr_eq(o, &options.set);
	note("open");
	opened->journal_directory = open("/", O_PATH | O_CLOEXEC);
	opened->warning = strdup("a warning");
	if (!scene.open_rc)
		*out = set;
	return scene.open_rc;
}

void __wrap_h5_file_set_close(struct h5_file_set *of)
{
	note(of ? "close-set" : "close-no-set");
}

static void begin(void)
{
	memset(&scene, 0, sizeof scene);
	memset(trace, 0, sizeof trace);
	memcpy(text, url, sizeof url);
	options = (struct h5_options){.file = (char *)"x.h5", .fetcher.disk_cache = 77};
}

/* ---- what is possible ---- */

static char any[] = "x";

static const struct {
	struct h5_options asked;
	int error;
	const char *told;
} asked[] = {
	{{0}, 0, ""},
	{{.is_folder = true}, 0, ""},
	{{.is_folder = true, .match = any, .open_files = 1}, 0, ""},
	{{.match = any}, -EINVAL, "match and open_files are for the mount of a folder"},
	{{.open_files = 1}, -EINVAL, "match and open_files are for the mount of a folder"},
	{{.url = any}, 0, ""},
	{{.url = any, .is_folder = true}, 0, ""},
	{{.set.writable = true}, 0, ""},
	{{.url = any, .set.writable = true}, -EROFS, "a file behind a URL can only be read"},
	{{.url = any, .is_folder = true, .set.writable = true},
	 -EROFS,
	 "what lies behind a URL can only be read"},
	{{.subdir = any, .journal = any, .create = 3, .set.has_revision = true}, 0, ""},
	{{.is_folder = true, .subdir = any},
	 -EINVAL,
	 "subdir, journal, create and revision are for the mount of one file"},
	{{.is_folder = true, .journal = any},
	 -EINVAL,
	 "subdir, journal, create and revision are for the mount of one file"},
	{{.is_folder = true, .create = 3},
	 -EINVAL,
	 "subdir, journal, create and revision are for the mount of one file"},
	{{.is_folder = true, .set.has_revision = true},
	 -EINVAL,
	 "subdir, journal, create and revision are for the mount of one file"},
	{{.set.writable = true, .set.swmr = true}, 0, ""},
	{{.is_folder = true, .set.swmr = true}, 0, ""},
	{{.is_folder = true, .set.writable = true}, 0, ""},
	{{.is_folder = true, .set.writable = true, .set.swmr = true},
	 -EINVAL,
	 "rw with swmr is for the mount of one file"},
};

START_TEST(what_is_possible)
{
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		h5_error_clear();
		ck_assert_int_eq(h5_opening_check(&asked[i].asked), asked[i].error);
		ck_assert_str_eq(h5_error_last()->text, asked[i].told);
	}
}
END_TEST

/* ---- local files ---- */

START_TEST(local_files)
{
	const unsigned before = unit_descriptors();

	for (unsigned fails = 0; fails < 2; fails++) {
		struct h5_opened opened = {.journal_directory = -1};
		struct h5_file_set *got = NULL;

		begin();
		scene.open_rc = fails ? -EUCLEAN : 0;
		ck_assert_int_eq(h5_opening_begin(&options, &got, &opened), scene.open_rc);
		ck_assert_ptr_eq(got, fails ? NULL : set);
		h5_opening_end(&options, got, &opened);
		ck_assert_str_eq(trace, fails ? "open end-none close-no-set close-none"
					      : "open end-none close-set close-none");
		ck_assert(opened.journal_directory == -1 && !opened.warning);
		ck_assert_uint_eq(unit_descriptors(), before);
	}
}
END_TEST

/* ---- files behind URLs ---- */

static bool is_erased(void)
{
	for (size_t i = 0; i < sizeof text; i++)
		if (text[i])
			return false;
	return true;
}

/* Only the fetcher keeps the folder of the disk cache open, and only it goes on to know the query. */
START_TEST(files_behind_urls)
{
	const unsigned before = unit_descriptors();

	for (unsigned i = 0; i < 16; i++) {
		struct h5_opened opened = {.journal_directory = -1};
		struct h5_file_set *got = NULL;

		begin();
		options.url = text;
		options.disk_cache = i & 1 ? (char *)"/cache" : NULL;
		options.set.external = i & 2 ? H5_EXTERNAL_NONE : H5_EXTERNAL_BENEATH;
		options.is_folder = i & 4;
		options.sandbox = i & 8;
		ck_assert_int_eq(h5_opening_begin(&options, &got, &opened), 0);
		ck_assert_str_eq(trace, i & 1 ? "folder fetcher listener open" : "fetcher listener open");
		ck_assert_int_eq(scene.fetcher.disk_cache >= 0, i & 1);
		ck_assert(!options.disk_cache_fails && scene.fetcher.alone == ((i & 6) == 2));
		ck_assert(scene.fetcher.confine == (i & 8 ? h5_sandbox_enter_fetcher : NULL));
		ck_assert(is_erased() && options.set.remote == remote && got == set);
		scene.say("full");
		ck_assert_str_eq(scene.said, "disk cache: full");
		memset(trace, 0, sizeof trace);
		h5_opening_end(&options, got, &opened);
		ck_assert_str_eq(trace, "end-remote close-set close-remote");
		ck_assert_ptr_null(options.set.remote);
		ck_assert_uint_eq(unit_descriptors(), before);
	}
}
END_TEST

START_TEST(fetchers_that_do_not_start)
{
	const unsigned before = unit_descriptors();
	struct h5_opened opened = {.journal_directory = -1};
	struct h5_file_set *got = NULL;

	begin();
	options.url = text;
	options.disk_cache = (char *)"/cache";
	scene.folder_rc = -EACCES;
	ck_assert_int_eq(h5_opening_begin(&options, &got, &opened), -EACCES);
	ck_assert(options.disk_cache_fails);
	ck_assert_str_eq(trace, "folder");
	begin();
	options.url = text;
	options.disk_cache = (char *)"/cache";
	scene.fetcher_rc = -ENOTSUP;
	ck_assert_int_eq(h5_opening_begin(&options, &got, &opened), -ENOTSUP);
	ck_assert(!options.disk_cache_fails && is_erased() && !got);
	h5_opening_end(&options, got, &opened);
	ck_assert_str_eq(trace, "folder fetcher end-none close-no-set close-none");
	ck_assert_uint_eq(unit_descriptors(), before);
}
END_TEST

UNIT_MAIN("opening", what_is_possible, local_files, files_behind_urls, fetchers_that_do_not_start)
