/* Between the files of the journal. From the ground up: journal_file.c knows where it lies and opens it,
 * journal.c writes it, recovery.c replays it. */
#ifndef H5_CHANGE_JOURNAL_PRIVATE_H
#define H5_CHANGE_JOURNAL_PRIVATE_H

#include "change/journal.h"

#define H5_JOURNAL_SUFFIX ".h5fs-journal"
/* Stands before the suffix in a folder for the journals of many files: a hash of the path. */
#define H5_JOURNAL_WHOSE ".0123456789abcdef"

/* Opens the journal and locks it. With `create` it must not exist; without, it must be one that can be
 * trusted. -ENOENT; -EWOULDBLOCK: another process has it locked. */
int h5_journal_open(const struct h5_journal_place *place, bool create, bool writable, struct h5_io **io);
/* Make and remove the symbolic link place->pointer to the journal, if there shall be one. Failures are
 * ignored, and another file of that name stays. */
void h5_journal_point(const struct h5_journal_place *place);
void h5_journal_unpoint(const struct h5_journal_place *place);
/* Makes the names in the directory durable. */
int h5_journal_sync_directory(int dirfd);

#endif
