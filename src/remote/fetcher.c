#include "config.h"

#include "remote/fetcher.h"

#include "base/error.h"

#ifdef HAVE_LIBCURL

#include "remote/libcurl.h"
#include "remote/private.h"
#include "remote/url.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

enum {
	FIELDS_MAX = 64 << 10, /* bytes of a file of header lines */
	LINK = STDERR_FILENO + 1,
	FOLDER,
	BEHIND,
};

/* ---- secrets ---- */

static bool ends_in(const char *name, size_t n, const char *end)
{
	size_t m = strlen(end);

	return n > m && !strncasecmp(name + n - m, end, m);
}

/* Overwrites the variables that may hold a credential: those of the AWS tools, and, with `proxies`, those of
 * proxies, which may have a password. So /proc shows them no more. */
static void forget_secrets(bool proxies)
{
	for (char **variable = environ; variable && *variable; variable++) {
		size_t n = strcspn(*variable, "=");
		char *value = *variable + n + ((*variable)[n] == '=');

		if (!strncmp(*variable, "AWS_", 4) || (proxies && ends_in(*variable, n, "_proxy")))
			explicit_bzero(value, strlen(value));
	}
}

/* ---- in the new process ---- */

static int refuse(struct h5_fetcher *f, int code, const char *what)
{
	f->setup = code;
	snprintf(f->setup_text, sizeof f->setup_text, "%s", what);
	return code;
}

/* "Name: value", of printable characters. */
static bool is_field(const char *line)
{
	size_t n = strcspn(line, ": \t");

	if (!n || line[n] != ':')
		return false;
	for (const char *p = line; *p; p++)
		if ((unsigned char)*p < ' ' && *p != '\t')
			return false;
	return true;
}

/* Empty lines and comments do not count. */
static int take_fields(struct h5_fetcher *f, FILE *file)
{
	char *line = NULL;
	size_t capacity = 0, total = 0;
	ssize_t n;

	while (!f->setup && (n = getline(&line, &capacity, file)) >= 0) {
		struct curl_slist *longer;

		total += (size_t)n;
		line[strcspn(line, "\r\n")] = 0;
		if (!*line || *line == '#')
			continue;
		longer = total <= FIELDS_MAX && is_field(line) ? curl_slist_append(f->fields, line) : NULL;
		if (longer)
			f->fields = longer;
		else
			refuse(f, -EINVAL, "the file of http_header= is not made of lines NAME: VALUE");
	}
	explicit_bzero(line, capacity);
	free(line);
	return f->setup;
}

static int read_fields(struct h5_fetcher *f)
{
	FILE *file;
	struct stat st;

	if (!f->options.headers)
		return 0;
	file = fopen(f->options.headers, "re");
	if (!file)
		return refuse(f, -EINVAL, "the file of http_header= cannot be read");
	if (fstat(fileno(file), &st) || !S_ISREG(st.st_mode))
		refuse(f, -EINVAL, "http_header= names no regular file");
	else
		take_fields(f, file);
	fclose(file);
	return f->setup;
}

/* Where the file is, and in whose name it is asked for. */
static int find_file(struct h5_fetcher *f)
{
	const struct h5_fetcher_options *o = &f->options;
	const char *why = "no memory";
	int rc;

	if (!f->is_s3) {
		f->url = strdup(o->url);
		return f->url ? 0 : refuse(f, -ENOMEM, why);
	}
	f->credentials.multi = f->multi;
	f->credentials.certificates = f->certificates;
	f->credentials.timeout = o->timeout;
	rc = h5_identity_find(&f->credentials.identity, &f->s3, o->s3_endpoint, o->s3_anonymous, &why);
	if (rc)
		return refuse(f, rc, why);
	f->url = h5_s3_url(&f->s3, o->url);
	return f->url ? 0 : refuse(f, -ENOMEM, why);
}

/* As the tools of AWS, if it is for their store, of curl and of OpenSSL have it. Owned. */
static char *certificates(bool is_s3)
{
	static const char *const names[] = {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"};

	for (size_t i = is_s3 ? 0 : 1; i < sizeof names / sizeof *names; i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strdup(value);
	}
	return NULL;
}

/* The folder that a file with secrets is in, since such files are replaced, not written anew; but the file
 * alone, if that would be all files there are, or all of the user's. "": there is no such file. */
static void place_of(const char *file, char place[PATH_MAX])
{
	const char *slash = file ? strrchr(file, '/') : NULL, *home = getenv("HOME");
	int n = slash ? (int)(slash - file) : 0;

	if (slash && n && !(home && !strncmp(file, home, (size_t)n) && !home[n]))
		n = snprintf(place, PATH_MAX, "%.*s", n, file);
	else
		n = snprintf(place, PATH_MAX, "%s", file ? file : "");
	if (n >= PATH_MAX)
		*place = 0;
}

/* Leaves what finding names, checking certificates and getting newer credentials takes. */
static void confine(const struct h5_fetcher *f)
{
	const struct h5_identity *i = &f->credentials.identity;
	bool profile = i->from == H5_FROM_FILES;
	const char *files[] = {i->file, profile ? i->files[0] : NULL, profile ? i->files[1] : NULL};
	char places[3][PATH_MAX];
	const char *readable[5] = {f->certificates};
	size_t n = !!f->certificates;

	if (!f->options.confine)
		return;
	for (size_t k = 0; k < 3; k++) {
		place_of(files[k], places[k]);
		if (*places[k])
			readable[n++] = places[k];
	}
	f->options.confine(readable, f->disk.fd);
}

/* Only the end of the link ends this process: a signal to all processes of the mount is the daemon's. Nobody
 * may look into its memory. */
static void set_apart(void)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGUSR1, SIGXFSZ};
	static const struct rlimit none = {0, 0};
	sigset_t empty;

	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NAME, "h5fs-fetcher");
}

/* Keeps the link and the folder of the disk cache, and nothing else: no lock, no terminal. */
static int close_others(struct h5_fetcher *f)
{
	/* Where no other one is put below. */
	int null = fcntl(open("/dev/null", O_RDWR | O_CLOEXEC), F_DUPFD_CLOEXEC, BEHIND),
	    folder = fcntl(f->options.disk_cache, F_DUPFD_CLOEXEC, BEHIND);

	if (null < 0 || (folder < 0 && f->options.disk_cache >= 0) || dup2(f->end.fd, LINK) < 0 ||
	    (folder >= 0 && dup3(folder, FOLDER, O_CLOEXEC) < 0))
		return -errno;
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	closefrom(folder < 0 ? FOLDER : BEHIND);
	h5_disk_begin(f, folder < 0 ? -1 : FOLDER);
	f->end.fd = LINK;
	return fcntl(LINK, F_SETFL, O_NONBLOCK) ? -errno : 0;
}

static _Noreturn void run(const struct h5_fetcher_options *options, const struct h5_remote_end *end)
{
	struct h5_fetcher *f = calloc(1, sizeof *f);
	int status = EXIT_FAILURE;

	if (!f)
		_exit(status);
	f->options = *options;
	f->end = *end;
	f->is_s3 = h5_url_is_bucket(options->url);
	f->certificates = certificates(f->is_s3);
	set_apart();
	if (!close_others(f) && !curl_global_init(CURL_GLOBAL_DEFAULT) && (f->multi = curl_multi_init())) {
		if (!find_file(f))
			read_fields(f);
		forget_secrets(false);
		confine(f);
		status = h5_fetcher_serve(f);
	}
	_exit(status);
}

/* ---- in the daemon ---- */

int h5_fetcher_start(const struct h5_fetcher_options *options, struct h5_remote **out)
{
	struct h5_remote_end end;
	struct h5_remote *remote;
	char *shown;
	int rc = h5_libcurl_load();
	pid_t pid;

	if (rc)
		return rc;
	shown = h5_url_shown(options->url);
	rc = shown ? h5_remote_new(shown, options->cache, options->connections, &remote, &end) : -ENOMEM;
	free(shown);
	if (rc)
		return rc;
	pid = fork();
	if (!pid)
		run(options, &end);
	rc = pid == -1 ? h5_fail(-errno, H5_UNDEF, "fork: %s", strerror(errno)) : 0;
	close(end.fd);
	if (rc) {
		h5_remote_close(remote);
		return rc;
	}
	forget_secrets(true);
	h5_remote_set_fetcher(remote, pid);
	*out = remote;
	return 0;
}

const char *h5_fetcher_version(void)
{
	return h5_libcurl_load() ? NULL : curl_version_info(CURLVERSION_NOW)->version;
}

#else

const char *h5_fetcher_version(void)
{
	return NULL;
}

int h5_fetcher_start(const struct h5_fetcher_options *options, struct h5_remote **remote)
{
	(void)options;
	(void)remote;
	return h5_fail(-ENOTSUP, H5_UNDEF, "this build of h5fs has no URLs: it lacks libcurl");
}

#endif
