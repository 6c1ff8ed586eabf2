/* What the user is told about a file that is opened or refused. */
#ifndef H5_FUSE_REPORT_H
#define H5_FUSE_REPORT_H

#include "change/open.h"
#include "fuse/options.h"

/* Logs why the file is not opened; returns the exit status. `code`: the negative errno, perhaps with
 * h5_error_last(). */
int h5_report_refusal(const struct h5_options *options, int code);
/* Logs that a command has not seen all of a file behind a URL; returns the exit status. */
int h5_report_incomplete(const struct h5_options *options);
/* Logs what the user should know about the file of that name, which is opened nevertheless. */
void h5_report_warnings(const struct h5_options *options, const char *name, const struct h5_file_set *set,
			const struct h5_opened *opened);

/* What was done about a journal; NULL: there was none, or it was not needed. */
const char *h5_report_recovery(const struct h5_opened *opened);
/* True: the file is marked as being written. In older versions the flags mean nothing: libhdf5 1.6 left them
 * set. */
bool h5_report_is_marked(const struct h5_file *file);

#endif
