/* The virtual datasets of files that are written. What the cache has of one is wrong when a source has
 * changed, so the cache forgets it after each change. */
#ifndef H5_STORE_FOLLOWERS_H
#define H5_STORE_FOLLOWERS_H

#include "store/file.h"

struct h5_followers;

/* NULL: no memory. */
struct h5_followers *h5_followers_new(void);
void h5_followers_free(struct h5_followers *followers); /* NULL is fine */
/* Remembers the virtual dataset at the address, which the cache is about to get. Threads may call it at the
 * same time. NULL is fine: no file is written. -ENOMEM. */
int h5_followers_add(struct h5_followers *followers, struct h5_file *file, uint64_t address);
/* Takes all that was decoded of the virtual datasets out of the cache of blocks. No thread may be loading any
 * of it: the caller has the exclusive lock. NULL is fine. */
void h5_followers_forget(struct h5_followers *followers);

#endif
