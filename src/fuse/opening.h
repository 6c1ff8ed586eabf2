/* Opens the file of the command line, and closes it: a local one, or one behind a URL with its fetcher. */
#ifndef H5_FUSE_OPENING_H
#define H5_FUSE_OPENING_H

#include "change/open.h"
#include "fuse/options.h"

/* 0: what the command line asks for is possible with such a file. */
int h5_opening_check(const struct h5_options *o);

/* Must run before the first thread starts, if there is a URL: starts the fetcher. Then the reason of a
 * failure may be asked for until h5_opening_end(). */
int h5_opening_start_fetcher(struct h5_options *o);
/* Must run before the first thread starts. As h5_open_file(); *opened must be released in any case. If it
 * fails, the reason may be asked for until h5_opening_end(). */
int h5_opening_begin(struct h5_options *o, struct h5_file_set **set, struct h5_opened *opened);
/* `set` may be NULL. */
void h5_opening_end(struct h5_options *o, struct h5_file_set *set, struct h5_opened *opened);

#endif
