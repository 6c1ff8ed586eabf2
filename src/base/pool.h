/* A pool of worker threads, for work that divides into parts of some microseconds or more: chunks to decode
 * and to encode.
 *
 * The threads start with the first work, so that a pool may be opened before a daemon forks. If a pool has no
 * threads, or cannot start them, h5_pool_run() does all parts in the calling thread, and h5_pool_start()
 * leaves them out. */
#ifndef H5_BASE_POOL_H
#define H5_BASE_POOL_H

#include <stddef.h>

struct h5_pool;

/* Part i of the work; 0 or a negative errno. */
typedef int h5_pool_part(void *arg, size_t i);

int h5_pool_open(unsigned workers, struct h5_pool **pool);
/* Waits for parts that run. Parts in the background that have not begun are left out. NULL is fine. */
void h5_pool_close(struct h5_pool *pool);

unsigned h5_pool_workers(const struct h5_pool *pool);

/* Does the parts 0 to n - 1, in this thread and in idle workers, and returns when no part runs any more.
 * If one fails, no further ones begin, and the result and its detail are those of the failed part with the
 * lowest number. h5_interrupt_check() in a part answers as it would in the calling thread. Parts may call
 * this function themselves. */
int h5_pool_run(struct h5_pool *pool, h5_pool_part *part, void *arg, size_t n);

/* Returns at once; idle workers do the parts. After the last part done(arg) is called, once, in any thread,
 * also if parts failed or were left out. */
void h5_pool_start(struct h5_pool *pool, h5_pool_part *part, void (*done)(void *arg), void *arg, size_t n);

#endif
