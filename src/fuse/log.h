/* The log: standard error in the foreground, syslog in the background, or what -o log= says. Only src/fuse
 * logs; what lies below returns its errors. */
#ifndef H5_FUSE_LOG_H
#define H5_FUSE_LOG_H

#include <stdbool.h>
#include <sys/types.h>

enum h5_log_level {
	H5_LOG_QUIET,	/* only what ends the mount, or loses what was written */
	H5_LOG_NORMAL,	/* and what is wrong with the file */
	H5_LOG_VERBOSE, /* and what is done */
};

void h5_log_set_level(enum h5_log_level level);
/* From now on to syslog. */
void h5_log_to_syslog(void);
/* Opens the file to append to it, unless it is the HDF5 `file`; a negative errno, with h5_error_last(). From
 * h5_log_detach() on all goes there. */
int h5_log_open(const char *path, const char *file);
/* Leaves standard error, where another place was named. */
void h5_log_detach(void);
/* From now on, lines for the system log are sent to this socket, as messages of their own that begin with
 * H5_LOG_LINE; -1: no longer. In the sandbox we could not open the log again, if it is begun anew. A line
 * that the socket does not take goes to the log as it was open before. */
#define H5_LOG_LINE 'm'
void h5_log_through(int socket);
/* In a process that was forked: no descriptor is shared any more but standard error. Its lines bear the
 * number of the daemon. */
void h5_log_reopen(pid_t daemon);

/* One line, whatever the level. */
void h5_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One that is left out below the level. */
void h5_log_at(enum h5_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Logs why a request failed, where this is about the HDF5 file (-EUCLEAN, -ENOTSUP, -EIO, ...) and not what
 * users ask for (-ENOENT, -ENODATA, ...). The same line is not repeated. `what` is the request's name, `path`
 * that of the object in the mount; NULL: not known. */
void h5_log_failure(const char *what, int code, const char *path);
/* True: such a failure is logged. */
bool h5_log_wants(int code);

#endif
