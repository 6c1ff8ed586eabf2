/* Opens the file of a mount: its lock, its journal, and for writing its transaction. */
#ifndef H5_CHANGE_OPEN_H
#define H5_CHANGE_OPEN_H

#include "change/journal.h"
#include "store/file_set.h"

/* What the user should know of the opening. */
struct h5_opened {
	struct h5_recovered recovered; /* what was done about a journal that was found */
	char *warning;		       /* what else is to be said of the journal, a phrase; NULL: nothing */
	int journal_directory;	       /* where the journal lies: an O_PATH descriptor; -1: there is none */
};

/* Opens the file at the path and the set around it; h5_file_set_close() ends both, and the journal.
 * -EWOULDBLOCK: the file, a piece of it or its journal was locked by somebody else for as long as
 * options->wait. What cannot be kept consistent is not opened for writing: -ENOTSUP, -EBUSY, -EMLINK, ...
 * (invariant 6 of doc/writing.md).
 *
 * On success *opened is the caller's, h5_opened_release(); NULL: the caller does not want it. */
int h5_open_file(const char *path, const struct h5_file_set_options *options, struct h5_file_set **set,
		 struct h5_opened *opened);
void h5_opened_release(struct h5_opened *opened); /* may run twice */

#endif
