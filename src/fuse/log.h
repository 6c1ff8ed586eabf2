/* The log: standard error in the foreground, syslog in the background, or the target of -o log=. Only
 * src/fuse logs; the folders below return errors. */
#ifndef H5_FUSE_LOG_H
#define H5_FUSE_LOG_H

#include <stdbool.h>
#include <sys/types.h>

enum h5_log_level {
	H5_LOG_QUIET,	/* logs only what ends the mount or loses data */
	H5_LOG_NORMAL,	/* logs also what is wrong with the file */
	H5_LOG_VERBOSE, /* logs also what is done */
};

void h5_log_set_level(enum h5_log_level level);
/* Logs to syslog from now on. */
void h5_log_to_syslog(void);
/* Opens the log file at `path`, which must not be the HDF5 `file`. 0, or a negative errno with
 * h5_error_last(). It is used from h5_log_detach() on. */
int h5_log_open(const char *path, const char *file);
/* Logs to the log file, if one was opened, and no longer to standard error. */
void h5_log_detach(void);
/* Sends lines for the system log to this socket from now on, each as a message that begins with H5_LOG_LINE;
 * -1: no longer. In the sandbox we could not open the system log again after its daemon was restarted. If the
 * socket does not take a line, it goes to the log that was open before. */
#define H5_LOG_LINE 'm'
void h5_log_through(int socket);
/* For a forked process that has closed all descriptors but standard error. Its lines bear the daemon's
 * process id. */
void h5_log_reopen(pid_t daemon);

/* Logs one line at any level. */
void h5_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Logs one line if the log has at least that level. */
void h5_log_at(enum h5_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Logs why a request has failed, if the reason is the HDF5 file (-EUCLEAN, -ENOTSUP, -EIO, ...) and not the
 * user's wish (-ENOENT, -ENODATA, ...). Does not repeat the last line. `what`: the name of the request;
 * `path`: of the object in the mount, NULL: not known. */
void h5_log_failure(const char *what, int code, const char *path);
/* True: h5_log_failure() would log it. */
bool h5_log_wants(int code);

#endif
