/* The log: standard error in the foreground, syslog in the background. Only src/fuse logs; what lies below
 * returns its errors. */
#ifndef H5_FUSE_LOG_H
#define H5_FUSE_LOG_H

/* From now on to syslog. */
void h5_log_to_syslog(void);
/* In a process that was forked: no descriptor is shared any more but standard error. */
void h5_log_reopen(void);

/* One line. */
void h5_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Logs why a request failed, where this is about the HDF5 file (-EUCLEAN, -ENOTSUP, -EIO, ...) and not what
 * users ask for (-ENOENT, -ENODATA, ...). The same line is not repeated. `what` is the request's name. */
void h5_log_failure(const char *what, int code);

#endif
