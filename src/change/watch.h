/* A writer may keep a part of the file in memory, to change it later. It watches that part: it is told when
 * others change it, or give up its space. */
#ifndef H5_CHANGE_WATCH_H
#define H5_CHANGE_WATCH_H

#include "store/file.h"

/* All zero: nothing is watched. */
struct h5_tx_watch {
	uint64_t *address; /* borrowed; NULL: nothing is watched */
	struct h5_tx_watch *prev, *next;
};

/* Until the end of the watch, or of the transaction: *address, whatever it is then, becomes H5_UNDEF if
 * others give up that byte, or change it. */
void h5_tx_watch(struct h5_file *file, struct h5_tx_watch *watch, uint64_t *address);
void h5_tx_unwatch(struct h5_file *file, struct h5_tx_watch *watch); /* may run twice */
/* The caller has changed these n bytes, of which others may keep something. To give up space tells so, too.
 */
void h5_tx_tell_watches(struct h5_file *file, uint64_t address, uint64_t n);

#endif
