/* Objects that follow others: what is decoded of a virtual dataset has the size of its sources. So it is
 * decoded again after each change. */
#ifndef H5_STORE_FOLLOWERS_H
#define H5_STORE_FOLLOWERS_H

#include "store/file.h"

struct h5_followers;

/* NULL: no memory. */
struct h5_followers *h5_followers_new(void);
void h5_followers_free(struct h5_followers *followers); /* NULL is fine */
/* Remembers an object of which something is to be cached. Threads may call it at the same time. NULL is fine:
 * nothing changes. -ENOMEM. */
int h5_followers_add(struct h5_followers *followers, struct h5_file *file, uint64_t address);
/* Takes all that was decoded of them out of the cache. None of it may be loading. NULL is fine. */
void h5_followers_forget(struct h5_followers *followers);

#endif
