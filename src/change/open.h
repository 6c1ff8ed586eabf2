/* Opens the file of a mount: its lock, its journal, and for writing its transaction. */
#ifndef H5_CHANGE_OPEN_H
#define H5_CHANGE_OPEN_H

#include "change/journal.h"
#include "store/file_set.h"

/* What the user should know of the opening. */
struct h5_opened {
	struct h5_recovered recovered; /* what was done about a journal that was found */
	char *warning;		       /* another remark on the journal, a phrase; NULL: none */
	int journal_directory;	       /* where the journal lies: an O_PATH descriptor; -1: there is none */
};

/* Opens the file at the path and the set around it; h5_file_set_close() ends both, and the journal.
 * -EWOULDBLOCK: another process had the file, a piece of it or its journal locked for as long as
 * options->wait. -ENOTSUP, -EBUSY, -EMLINK, ...: the file could not be kept consistent, so it is not opened
 * for writing (invariant 6 of doc/writing.md).
 *
 * On success the caller owns *opened: h5_opened_release(). It may be NULL. */
int h5_open_file(const char *path, const struct h5_file_set_options *options, struct h5_file_set **set,
		 struct h5_opened *opened);
/* The same for a file whose folder is open: a descriptor, borrowed; O_PATH is enough (-1: none is). The path
 * is absolute; its last name is looked up in the folder, and is no symbolic link. */
int h5_open_file_in(int folder, const char *path, const struct h5_file_set_options *options,
		    struct h5_file_set **set, struct h5_opened *opened);
void h5_opened_release(struct h5_opened *opened); /* may run twice */

#endif
