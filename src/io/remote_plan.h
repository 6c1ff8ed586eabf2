/* What is asked for when, in which pieces. All functions are called with the lock of the link. */
#ifndef H5_IO_REMOTE_PLAN_H
#define H5_IO_REMOTE_PLAN_H

#include "io/remote_link.h"

/* Asks for the n bytes at the offset that are not there, n > 0 inside the file, since somebody waits for
 * them: the blocks around them, or what was announced of them. -EAGAIN: for nothing now; -EIO: there is no
 * fetcher. */
int h5_remote_fetch(struct h5_remote *r, uint32_t file, uint64_t offset, uint64_t n);
/* Takes note of ranges, by ascending offset and inside the file, that will be read. What is read at once is
 * asked for as far as that is possible now. */
void h5_remote_announce(struct h5_remote *r, uint32_t file, const struct h5_io_range *ranges, size_t count,
			enum h5_wanted when);
/* How many bytes one reader in order may announce before it reads them. */
uint64_t h5_remote_window(const struct h5_remote *r);
/* Asks for as much of what was announced as may be under way. To be called when replies may have come. */
void h5_remote_feed(struct h5_remote *r);

#endif
