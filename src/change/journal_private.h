/* Between the files of the journal. From the ground up: journal_place.c knows where it lies, journal.c opens
 * and writes it, journal_find.c looks for one under another name, recovery.c replays it. */
#ifndef H5_CHANGE_JOURNAL_PRIVATE_H
#define H5_CHANGE_JOURNAL_PRIVATE_H

#include "change/journal.h"

#define H5_JOURNAL_SUFFIX ".h5fs-journal"
/* Stands before the suffix in a folder for the journals of many files: a hash of the path. */
#define H5_JOURNAL_WHOSE ".0123456789abcdef"

/* Opens the journal and locks it; with `create` it must not exist, else it must be one that may be trusted.
 * -ENOENT; -EWOULDBLOCK: somebody alive holds it. */
int h5_journal_open(const struct h5_journal_place *place, bool create, bool writable, struct h5_io **io);
/* The header of the journal of that name, if it is one that may be trusted. It is not locked. */
int h5_journal_peek(const struct h5_journal_place *place, const char *name, struct h5_journal_header *header);
/* Makes the symbolic link to the journal that place->pointer tells of, as far as the folder lets us; or
 * removes it, if it is that. */
void h5_journal_point(const struct h5_journal_place *place);
void h5_journal_unpoint(const struct h5_journal_place *place);
/* Names in the directory are durable. */
int h5_journal_sync_directory(int dirfd);

#endif
