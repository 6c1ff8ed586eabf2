#include "fuse/log.h"

#include "base/error.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

/* The process has one log, so this is the one place with state of the process. */
static struct {
	pthread_mutex_t lock; /* guards all below */
	bool to_syslog;
	char last[400]; /* the latest failure */
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER};

void h5_log_to_syslog(void)
{
	pthread_mutex_lock(&sink.lock);
	/* At once, and with the time zone: later it may not open files. */
	tzset();
	openlog("h5fs", LOG_PID | LOG_NDELAY, LOG_DAEMON);
	sink.to_syslog = true;
	pthread_mutex_unlock(&sink.lock);
}

void h5_log_reopen(void)
{
	closelog(); /* the next line opens it */
}

/* With the lock. Bytes from a file that are no printable text must not reach a terminal. */
static void write_line(char *line)
{
	for (char *p = line; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	if (sink.to_syslog)
		syslog(LOG_WARNING, "%s", line);
	else
		fprintf(stderr, "h5fs: %s\n", line);
}

void h5_log(const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	pthread_mutex_lock(&sink.lock);
	write_line(line);
	pthread_mutex_unlock(&sink.lock);
}

static bool is_about_the_file(int code)
{
	return code == -EUCLEAN || code == -ENOTSUP || code == -EIO || code == -ENOMEM || code == -ENOSPC ||
	       code == -EDQUOT;
}

/* Others are, where there is more to say than their name. */
static bool is_detailed(int code)
{
	return (code == -EFBIG || code == -EROFS || code == -EOVERFLOW) && h5_error_last()->code == code;
}

void h5_log_failure(const char *what, int code)
{
	const struct h5_error *e = h5_error_last();
	char line[sizeof sink.last], at[40] = "";

	if (!is_about_the_file(code) && !is_detailed(code))
		return;
	if (e->code == code && e->address != H5_UNDEF)
		snprintf(at, sizeof at, " at address %" PRIu64, e->address);
	snprintf(line, sizeof line, "%s: %s%s", what, e->code == code ? e->text : strerror(-code), at);
	pthread_mutex_lock(&sink.lock);
	if (strcmp(line, sink.last)) {
		strcpy(sink.last, line);
		write_line(line);
	}
	pthread_mutex_unlock(&sink.lock);
}
