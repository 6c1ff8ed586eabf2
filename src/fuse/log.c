#include "fuse/log.h"

#include "base/error.h"
#include "base/escape.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024 };

enum target { TO_STDERR, TO_SYSLOG, TO_FILE };

/* The process has one log, so this is the one place with state of the process. */
static struct {
	pthread_mutex_t lock; /* guards all below */
	enum h5_log_level level;
	enum target target;
	char *path;   /* owned: of the file that was named; NULL: none */
	int fd;	      /* of the log file; -1: not open */
	dev_t device; /* and inode of the HDF5 file, to which no log may be written; 0: it does not exist */
	ino_t inode;
	int relay;	/* socket of the process that writes to the system log for us; -1: none. Borrowed */
	char tag[32];	/* of our lines in the system log; the unmounter has its own */
	char last[400]; /* the latest failure */
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER, .level = H5_LOG_NORMAL, .fd = -1, .relay = -1};

void h5_log_set_level(enum h5_log_level level)
{
	sink.level = level;
}

void h5_log_to_syslog(void)
{
	pthread_mutex_lock(&sink.lock);
	/* Opens the log and reads the time zone now: later the sandbox does not let us open files. */
	tzset();
	openlog("h5fs", LOG_PID | LOG_NDELAY, LOG_DAEMON);
	sink.target = TO_SYSLOG;
	pthread_mutex_unlock(&sink.lock);
}

/* Checks if it can be a log. Not a pipe: we would wait for its reader, or fail when that ends. */
static int check_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return h5_fail(-errno, H5_UNDEF, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		return h5_fail(-EINVAL, H5_UNDEF, "neither a file nor a character device");
	if (st.st_dev == sink.device && st.st_ino == sink.inode)
		return h5_fail(-EINVAL, H5_UNDEF, "this is the HDF5 file");
	return 0;
}

static int open_file(void)
{
	int rc;

	sink.fd = open(sink.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
	if (sink.fd < 0)
		return errno == ENXIO ? h5_fail(-ENXIO, H5_UNDEF, "neither a file nor a character device")
				      : h5_fail(-errno, H5_UNDEF, "%s", strerror(errno));
	rc = check_file(sink.fd);
	if (rc) {
		close(sink.fd);
		sink.fd = -1;
	}
	return rc;
}

int h5_log_open(const char *path, const char *file)
{
	struct stat st;
	int rc;

	if (!stat(file, &st)) {
		sink.device = st.st_dev;
		sink.inode = st.st_ino;
	}
	sink.path = strdup(path);
	rc = sink.path ? open_file() : h5_fail(-ENOMEM, H5_UNDEF, "%s", strerror(ENOMEM));
	if (rc) {
		free(sink.path);
		sink.path = NULL;
		return rc;
	}
	/* Absolute, since another process may open it once more, from another folder. */
	path = realpath(sink.path, NULL);
	if (path) {
		free(sink.path);
		sink.path = (char *)path;
	}
	return 0;
}

void h5_log_detach(void)
{
	if (sink.path)
		sink.target = TO_FILE;
}

void h5_log_through(int socket)
{
	pthread_mutex_lock(&sink.lock);
	sink.relay = socket;
	pthread_mutex_unlock(&sink.lock);
}

void h5_log_reopen(pid_t daemon)
{
	closelog();
	snprintf(sink.tag, sizeof sink.tag, "h5fs[%d]", (int)daemon);
	openlog(sink.tag, 0, LOG_DAEMON); /* the next line opens it */
	sink.fd = sink.relay = -1;
}

static void write_to_file(const char *line)
{
	time_t now = time(NULL);
	struct tm utc;
	char when[32] = "";

	if (sink.fd < 0 && open_file())
		return;
	if (gmtime_r(&now, &utc))
		strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
	dprintf(sink.fd, "%s h5fs[%d]: %s\n", when, (int)getpid(), line);
}

/* The unmounter gets the text and escapes it itself; `line` is the escaped one. */
static void write_to_syslog(const char *text, const char *line)
{
	char message[LINE_MAX_BYTES + 1];
	int n = snprintf(message, sizeof message, "%c%s", H5_LOG_LINE, text);

	if (sink.relay < 0 || send(sink.relay, message, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) != n)
		syslog(LOG_WARNING, "%s", line);
}

/* With the lock. */
static void write_line(const char *text)
{
	char line[2 * LINE_MAX_BYTES];

	/* Names in a file must not steer the terminal that shows the log. */
	h5_escape_into(line, sizeof line, text, strlen(text));
	if (sink.target == TO_SYSLOG)
		write_to_syslog(text, line);
	else if (sink.target == TO_FILE)
		write_to_file(line);
	else
		fprintf(stderr, "h5fs: %s\n", line);
}

static void log_line(const char *format, va_list args)
{
	char line[LINE_MAX_BYTES];

	vsnprintf(line, sizeof line, format, args);
	pthread_mutex_lock(&sink.lock);
	write_line(line);
	pthread_mutex_unlock(&sink.lock);
}

void h5_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line(format, args);
	va_end(args);
}

void h5_log_at(enum h5_log_level level, const char *format, ...)
{
	va_list args;

	if (level > sink.level)
		return;
	va_start(args, format);
	log_line(format, args);
	va_end(args);
}

static bool is_about_the_file(int code)
{
	return code == -EUCLEAN || code == -ENOTSUP || code == -EIO || code == -ENOMEM || code == -ENOSPC ||
	       code == -EDQUOT;
}

/* These are logged if there is more to say than the error's name. */
static bool is_detailed(int code)
{
	return (code == -EFBIG || code == -EROFS || code == -EOVERFLOW) && h5_error_last()->code == code;
}

bool h5_log_wants(int code)
{
	return sink.level != H5_LOG_QUIET && (is_about_the_file(code) || is_detailed(code));
}

void h5_log_failure(const char *what, int code, const char *path)
{
	const struct h5_error *e = h5_error_last();
	char line[sizeof sink.last], at[40] = "";

	if (!h5_log_wants(code))
		return;
	if (e->code == code && e->address != H5_UNDEF)
		snprintf(at, sizeof at, " at address %" PRIu64, e->address);
	snprintf(line, sizeof line, "%s: %s%s%s%s%s", what, e->code == code ? e->text : strerror(-code), at,
		 path ? " (" : "", path ? path : "", path ? ")" : "");
	pthread_mutex_lock(&sink.lock);
	if (strcmp(line, sink.last)) {
		strcpy(sink.last, line);
		write_line(line);
	}
	pthread_mutex_unlock(&sink.lock);
}
