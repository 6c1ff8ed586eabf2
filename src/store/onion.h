/* The revisions of a file that libhdf5's onion driver keeps: FILE, which stays as it was, and FILE.onion with
 * the pages that each revision has changed. Revision 0 is FILE itself; it may be missing. */
#ifndef H5_STORE_ONION_H
#define H5_STORE_ONION_H

#include "store/folder.h"

#include <stdbool.h>
#include <stdint.h>

/* Most revisions of a file. */
enum { H5_REVISIONS_MAX = 1 << 16 };

struct h5_onion;

/* Opens FILE.onion beside the file of that name in the folder, which is `origin`, by the rule for pieces of a
 * file. *pages NULL: there is no such file, or it holds no revisions. */
int h5_onion_find(const struct h5_folder *folder, const char *file, struct h5_io *origin,
		  struct h5_io **pages);

/* Reads the history. Takes both over, also on failure. */
int h5_onion_open(struct h5_io *origin, struct h5_io *pages, struct h5_onion **onion);
/* No io of a revision may be open. NULL is fine. */
void h5_onion_close(struct h5_onion *onion);

/* The number of the first revision, 0 or 1, and that of the newest. If there is none, the first is greater.
 */
uint64_t h5_onion_first(const struct h5_onion *onion);
uint64_t h5_onion_newest(const struct h5_onion *onion);
/* True: a program was writing a further revision when the history was read, or has crashed. */
bool h5_onion_is_written(const struct h5_onion *onion);

/* The bytes of FILE in that revision. `is_file`: it has the identity of FILE; else one that no other file
 * has. -ENOENT: there is no such revision; -ENOTSUP: the indexes of all that are open have too many pieces.
 * By one thread at a time. */
int h5_onion_open_revision(struct h5_onion *onion, uint64_t revision, bool is_file, struct h5_io **io);
/* Verifies the record of the revision. By one thread at a time. */
int h5_onion_check(struct h5_onion *onion, uint64_t revision);

#endif
