/* The process of the fetcher: libcurl is found, the process is forked, keeps what it needs, and nothing else.
 */
#include "config.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HAVE_LIBCURL

#include "base/error.h"
#include "fault_alloc.h"
#include "fault_system.h"
#include "remote/fetcher.h"
#include "remote/libcurl.h"
#include "scratch.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#undef curl_easy_setopt

/* ---- the library ---- */

static unsigned opens_none;	   /* of the libraries that are looked for now, so many are not there */
static char opened[2][32];	   /* which were looked for */
static const char *misses, *fakes; /* functions that the library lacks, or that are the test's */
static void *fake;

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);

void *__wrap_dlopen(const char *name, int flags)
{
	size_t i = *opened[0] ? 1 : 0;

	snprintf(opened[i], sizeof opened[i], "%s", name);
	if (!opens_none)
		return __real_dlopen(i ? "libcurl.so.4" : name, flags);
	opens_none--;
	return __real_dlopen("/no/library", flags);
}

void *__wrap_dlsym(void *library, const char *name)
{
	if (fakes && !strcmp(name, fakes))
		return fake;
	return __real_dlsym(library, misses && !strcmp(name, misses) ? "no_such_function" : name);
}

static int load(unsigned missing)
{
	memset(opened, 0, sizeof opened);
	opens_none = missing;
	return h5_libcurl_load();
}

START_TEST(libraries)
{
	const char *version;

	ck_assert_int_eq(load(0), 0);
	ck_assert_str_eq(opened[0], "libcurl.so.4");
	ck_assert_str_eq(opened[1], "");
	version = h5_fetcher_version();
	ck_assert_ptr_nonnull(version);
	/* The other build of it. */
	ck_assert_int_eq(load(1), 0);
	ck_assert_str_eq(opened[1], "libcurl-gnutls.so.4");
	ck_assert_int_eq(load(2), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "URLs need libcurl: /no/library"));
	load(0);
	opens_none = 2;
	ck_assert_ptr_null(h5_fetcher_version());
	/* An older one. */
	misses = "curl_multi_poll";
	ck_assert_int_eq(load(0), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "this libcurl is too old: "));
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "no_such_function"));
	misses = NULL;
	ck_assert_int_eq(load(0), 0);
}
END_TEST

static const void *got;

static void free_list(struct curl_slist *list)
{
	got = list;
}

static CURLcode set_option(CURL *easy, CURLoption option, void *value)
{
	ck_assert_ptr_null(easy);
	ck_assert_int_ne(option, 0);
	got = value;
	return CURLE_NOT_BUILT_IN;
}

/* Each function calls the library's with the same arguments. */
START_TEST(functions)
{
	struct curl_slist list = {0};
	static const CURLoption options[] = {CURLOPT_URL, CURLOPT_PRIVATE, CURLOPT_WRITEFUNCTION,
					     CURLOPT_HEADERFUNCTION};

	fakes = "curl_slist_free_all";
	fake = (void *)(uintptr_t)free_list;
	ck_assert_int_eq(load(0), 0);
	curl_slist_free_all(&list);
	ck_assert_ptr_eq(got, &list);
	fakes = "curl_easy_setopt";
	fake = (void *)(uintptr_t)set_option;
	ck_assert_int_eq(load(0), 0);
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		ck_assert_int_eq(curl_easy_setopt(NULL, options[i], &options[i]), CURLE_NOT_BUILT_IN);
		ck_assert_ptr_eq(got, &options[i]);
	}
	ck_assert_int_eq(curl_easy_setopt(NULL, CURLOPT_TIMEOUT_MS, 5L), CURLE_NOT_BUILT_IN);
	ck_assert_int_eq((long)(intptr_t)got, 5);
	fakes = NULL;
	ck_assert_int_eq(load(0), 0);
}
END_TEST

/* ---- the process ---- */

static struct {
	int error;		  /* there is none */
	const char *call;	  /* that fails in it */
	unsigned n;		  /* the n-th time */
	unsigned long allocation; /* that fails in it */
	int status;		  /* of its end */
} process;

pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __real_waitpid(pid_t pid, int *status, int flags);
pid_t __wrap_waitpid(pid_t pid, int *status, int flags);
int __real_dup2(int from, int to);
int __wrap_dup2(int from, int to);
int __real_dup3(int from, int to, int flags);
int __wrap_dup3(int from, int to, int flags);

/* libcheck is linked with these, too. */
pid_t __wrap_fork(void)
{
	pid_t pid = -1;

	if (process.error)
		errno = process.error;
	else
		pid = __real_fork();
	if (!pid && process.call)
		fault_system_arm(process.call, process.n, 1, EMFILE);
	if (!pid && process.allocation) {
		fault_alloc_arm(process.allocation);
		fault_alloc_count(true);
	}
	return pid;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int flags)
{
	pid_t ended = __real_waitpid(pid, &process.status, flags);

	if (status)
		*status = process.status;
	return ended;
}

static bool duplicates(const char *call)
{
	if (!process.call || strcmp(process.call, call) || --process.n)
		return true;
	errno = EMFILE;
	return false;
}

int __wrap_dup2(int from, int to)
{
	return duplicates("dup2") ? __real_dup2(from, to) : -1;
}

int __wrap_dup3(int from, int to, int flags)
{
	return duplicates("dup3") ? __real_dup3(from, to, flags) : -1;
}

static const struct h5_fetcher_options options = {
	.url = "http://127.0.0.1:1/x?secret", .disk_cache = -1, .connections = 2, .tries = 1, .timeout = 5};

/* How the process ends: its status. */
static int end_of(const struct h5_fetcher_options *o)
{
	unsigned descriptors = unit_descriptors();
	struct h5_remote *remote;

	process.status = -1;
	ck_assert_int_eq(h5_fetcher_start(o, &remote), 0);
	ck_assert_uint_eq(unit_descriptors(), descriptors + 1);
	h5_remote_close(remote);
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	ck_assert(WIFEXITED(process.status));
	return WEXITSTATUS(process.status);
}

/* Without a process nothing stays. */
START_TEST(no_process)
{
	unsigned descriptors;
	struct h5_remote *remote = NULL;
	bool fired = true;
	int rc;

	ck_assert_int_eq(load(0), 0);
	descriptors = unit_descriptors();
	process.error = EAGAIN;
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	ck_assert_int_eq(h5_fetcher_start(&options, &remote), -EAGAIN);
	ck_assert_str_eq(h5_error_last()->text, "fork: Resource temporarily unavailable");
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	ck_assert_ptr_null(remote);
	process.error = 0;
	opens_none = 2;
	ck_assert_int_eq(h5_fetcher_start(&options, &remote), -ENOTSUP);
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	for (unsigned long n = 1; fired; n++) {
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_fetcher_start(&options, &remote);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!rc || (fired && rc == -ENOMEM));
		if (!rc) {
			ck_assert_str_eq(h5_remote_url(remote), "http://127.0.0.1:1/x");
			h5_remote_close(remote);
		}
		ck_assert_uint_eq(unit_descriptors(), descriptors);
		ck_assert_int_eq(__real_waitpid(-1, NULL, WNOHANG), -1);
	}
	/* The daemon does not keep what the fetcher has. */
	ck_assert_str_eq(getenv("AWS_SECRET_ACCESS_KEY"), "");
}
END_TEST

/* It ends if it cannot leave all that it does not need, or has no memory. */
START_TEST(ends)
{
	static const struct {
		const char *call;
		unsigned n;
		bool disk;
		int status;
	} cases[] = {{NULL, 0, false, EXIT_SUCCESS},	  {NULL, 0, true, EXIT_SUCCESS},
		     {"fcntl64", 1, false, EXIT_FAILURE}, {"fcntl64", 2, false, EXIT_SUCCESS},
		     {"fcntl64", 2, true, EXIT_FAILURE},  {"fcntl64", 3, true, EXIT_FAILURE},
		     {"dup2", 1, false, EXIT_FAILURE},	  {"dup3", 1, false, EXIT_SUCCESS},
		     {"dup3", 1, true, EXIT_FAILURE},	  {"open64", 1, false, EXIT_FAILURE}};
	struct h5_fetcher_options o = options;
	struct h5_remote *remote;
	struct h5_io *io;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int folder = cases[i].disk ? open("/", O_PATH | O_CLOEXEC) : -1;

		o.disk_cache = folder;
		process.call = cases[i].call;
		process.n = cases[i].n;
		ck_assert_msg(end_of(&o) == cases[i].status, "%zu", i);
		if (folder >= 0)
			close(folder);
	}
	process.call = NULL;
	process.allocation = 1;
	ck_assert_int_eq(end_of(&options), EXIT_FAILURE);
	ck_assert_int_eq(h5_fetcher_start(&options, &remote), 0);
	ck_assert_int_eq(h5_io_open_remote(remote, "", &io), -EIO);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "the process that fetches has ended"));
	h5_remote_close(remote);
	process.allocation = 0;
}
END_TEST

/* ---- what it reads ---- */

#define NO_LINES "the file of http_header= is not made of lines NAME: VALUE"

/* What the daemon hears of the file of header lines. Sound ones go to a server, which is not there. */
START_TEST(header_lines)
{
	static char longest[(64 << 10) + 2];
	const struct {
		const char *text;
		bool sound;
	} cases[] = {{"", true},
		     {"# x\n\n\r\nA: b\nC:\td\r\n", true},
		     {"A\n", false},
		     {": b\n", false},
		     {"A b: c\n", false},
		     {"A\t: c\n", false},
		     {"A: b\001\n", false},
		     {"A: b\nC\n", false},
		     {longest, true},
		     {longest, false}};
	struct h5_fetcher_options o = options;
	char path[200];

	snprintf(path, sizeof path, "%s/fields", scratch_folder());
	memset(longest, 'x', 64 << 10);
	longest[1] = ':';
	for (size_t i = 0; i < 2 + sizeof cases / sizeof *cases; i++) {
		struct h5_remote *remote;
		struct h5_io *io;
		const char *text = NO_LINES;

		if (i == sizeof cases / sizeof *cases - 1)
			longest[64 << 10] = 'x';
		if (i < sizeof cases / sizeof *cases) {
			FILE *file = fopen(path, "w");

			fputs(cases[i].text, file);
			fclose(file);
			o.headers = path;
		} else if (i == sizeof cases / sizeof *cases) {
			o.headers = "/no/file";
			text = "the file of http_header= cannot be read";
		} else {
			o.headers = "/dev/null";
			text = "http_header= names no regular file";
		}
		ck_assert_int_eq(h5_fetcher_start(&o, &remote), 0);
		if (i < sizeof cases / sizeof *cases && cases[i].sound) {
			ck_assert_int_eq(h5_io_open_remote(remote, "", &io), -EIO);
			ck_assert_ptr_null(strstr(h5_error_last()->text, NO_LINES));
			ck_assert_int_eq(h5_remote_reason(remote), H5_REMOTE_NETWORK);
		} else {
			ck_assert_int_eq(h5_io_open_remote(remote, "", &io), -EINVAL);
			ck_assert_msg(strstr(h5_error_last()->text, text), "%zu: %s", i,
				      h5_error_last()->text);
			ck_assert_int_eq(h5_remote_reason(remote), H5_REMOTE_OTHER);
		}
		h5_remote_close(remote);
	}
}
END_TEST

static const char *const *expected;

/* In the process: true if it has /dev/null and the link where they belong, and no folder. */
static bool is_apart(int folder)
{
	struct stat st, null;

	stat("/dev/null", &null);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fstat(fd, &st) || st.st_rdev != null.st_rdev)
			return false;
	return !fstat(STDERR_FILENO + 1, &st) && S_ISSOCK(st.st_mode) &&
	       fcntl(STDERR_FILENO + 1, F_GETFL) & O_NONBLOCK && folder == -1;
}

/* In the process: its status tells whether it is as expected. */
static void confine(const char *const *readable, int folder)
{
	size_t i = 0;

	while (expected[i] && readable[i] && !strcmp(expected[i], readable[i]))
		i++;
	_exit(expected[i] || readable[i] ? 2 : is_apart(folder) ? 3 : 4);
}

/* Of a process with these variables, "NAME=VALUE", and no others that matter. */
static int status_with(const char *url, const char *const variables[4], const char *const *places)
{
	static const char *const names[] = {"AWS_CA_BUNDLE",
					    "CURL_CA_BUNDLE",
					    "SSL_CERT_FILE",
					    "AWS_ACCESS_KEY_ID",
					    "AWS_SECRET_ACCESS_KEY",
					    "AWS_SESSION_TOKEN",
					    "AWS_PROFILE",
					    "AWS_WEB_IDENTITY_TOKEN_FILE",
					    "AWS_ROLE_ARN",
					    "HOME",
					    "AWS_SHARED_CREDENTIALS_FILE",
					    "AWS_CONFIG_FILE"};
	struct h5_fetcher_options o = options;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unsetenv(names[i]);
	for (size_t i = 0; i < 4 && variables[i]; i++) {
		char *name = strdup(variables[i]), *value = strchr(name, '=');

		*value++ = 0;
		setenv(name, value, 1);
		free(name);
	}
	o.url = url;
	o.confine = confine;
	expected = places;
	return end_of(&o);
}

#define TOKEN(name)                                                                                          \
	{                                                                                                    \
		"AWS_WEB_IDENTITY_TOKEN_FILE=" name, "AWS_ROLE_ARN=r", "HOME=/home/of"                       \
	}
#define PLACES(...)                                                                                          \
	{                                                                                                    \
		__VA_ARGS__, NULL                                                                            \
	}

/* The folder of a file with secrets, unless that would be too much; and certificates. */
START_TEST(places)
{
	static const struct {
		const char *url, *variables[4], *places[3];
	} cases[] = {
		{"http://127.0.0.1:1/x", {"AWS_CA_BUNDLE=/bundle"}, {NULL}},
		{"http://127.0.0.1:1/x",
		 {"AWS_CA_BUNDLE=/bundle", "CURL_CA_BUNDLE=/curl", "SSL_CERT_FILE=/ssl"},
		 PLACES("/curl")},
		{"http://127.0.0.1:1/x", {"CURL_CA_BUNDLE=", "SSL_CERT_FILE=/ssl"}, PLACES("/ssl")},
		{"s3://b/k", {"AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s"}, {NULL}},
		{"s3://b/k", TOKEN("/home/of/token"), PLACES("/home/of/token")},
		{"s3://b/k", TOKEN("/home/of/a/token"), PLACES("/home/of/a")},
		{"s3://b/k", TOKEN("/home/o/token"), PLACES("/home/o")},
		{"s3://b/k", TOKEN("/home/off/token"), PLACES("/home/off")},
		{"s3://b/k", TOKEN("/token"), PLACES("/token")},
		{"s3://b/k", TOKEN("token"), PLACES("token")},
		{"s3://b/k",
		 {"AWS_WEB_IDENTITY_TOKEN_FILE=/x/token", "AWS_ROLE_ARN=r", "AWS_CA_BUNDLE=/bundle"},
		 PLACES("/bundle", "/x")},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		ck_assert_msg(status_with(cases[i].url, cases[i].variables, cases[i].places) == 3, "%zu", i);
}
END_TEST

START_TEST(places_of_profiles)
{
	char path[200], variable[250];
	const char *const variables[] = {variable, "AWS_CONFIG_FILE=/home/of/config", "HOME=/home/of", NULL};
	const char *const places_of_files[] = {scratch_folder(), "/home/of/config", NULL};
	FILE *file;

	snprintf(path, sizeof path, "%s/credentials", scratch_folder());
	file = fopen(path, "w");
	fputs("[default]\naws_access_key_id=K\naws_secret_access_key=S\naws_session_token=T\n", file);
	fclose(file);
	snprintf(variable, sizeof variable, "AWS_SHARED_CREDENTIALS_FILE=%s", path);
	ck_assert_int_eq(status_with("s3://b/k", variables, places_of_files), 3);
}
END_TEST

/* A name that is too long for a path is none. */
START_TEST(long_places)
{
	static char variable[2 * PATH_MAX];
	const char *const variables[] = {variable, "AWS_ROLE_ARN=r", NULL, NULL};
	size_t n = (size_t)sprintf(variable, "AWS_WEB_IDENTITY_TOKEN_FILE=");
	char folder[PATH_MAX];
	const char *const longest[] = {folder, NULL}, *const none[] = {NULL};

	memset(folder, 'x', sizeof folder);
	*folder = '/';
	folder[PATH_MAX - 1] = 0;
	sprintf(variable + n, "%s/token", folder);
	ck_assert_int_eq(status_with("s3://b/k", variables, longest), 3);
	sprintf(variable + n, "%sx/token", folder);
	ck_assert_int_eq(status_with("s3://b/k", variables, none), 3);
	/* Alone. */
	sprintf(variable + n, "%s", folder + 1);
	ck_assert_int_eq(status_with("s3://b/k", variables, (const char *const[]){folder + 1, NULL}), 3);
	sprintf(variable + n, "%sxx", folder + 1);
	ck_assert_int_eq(status_with("s3://b/k", variables, none), 3);
}
END_TEST

/* In the process: its status tells whether it has forgotten the keys, and still knows the proxy. */
static void look_at_secrets(const char *const *readable, int folder)
{
	(void)readable;
	(void)folder;
	_exit(strcmp(getenv("AWS_SECRET_ACCESS_KEY"), "")		? 2
	      : strcmp(getenv("https_proxy"), "http://me:secret@proxy") ? 3
									: 4);
}

/* The daemon needs no proxy, the process asks by it. */
START_TEST(secrets)
{
	struct h5_fetcher_options o = options;

	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("https_proxy", "http://me:secret@proxy", 1);
	o.confine = look_at_secrets;
	ck_assert_int_eq(end_of(&o), 4);
	ck_assert_str_eq(getenv("AWS_SECRET_ACCESS_KEY"), "");
	ck_assert_str_eq(getenv("https_proxy"), "");
	unsetenv("https_proxy");
	unsetenv("AWS_SECRET_ACCESS_KEY");
}
END_TEST

static void count_descriptors(const char *const *readable, int folder)
{
	(void)readable;
	(void)folder;
	_exit((int)unit_descriptors());
}

/* The process keeps no file open that it has read. */
START_TEST(header_lines_are_closed)
{
	char path[200];
	const char *const names[] = {"/no/file", "/dev/null", path};
	struct h5_fetcher_options o = options;
	int without;

	o.confine = count_descriptors;
	without = end_of(&o);
	snprintf(path, sizeof path, "%s/fields", scratch_folder());
	fclose(fopen(path, "w"));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		o.headers = names[i];
		ck_assert_int_eq(end_of(&o), without);
	}
}
END_TEST

UNIT_MAIN("fetcher_start", libraries, functions, no_process, ends, header_lines, places, places_of_profiles,
	  long_places, secrets, header_lines_are_closed)

#else

int main(void)
{
	puts("there is no libcurl, and so no fetcher");
	return 77;
}

#endif
