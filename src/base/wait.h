/* Threads on which others depend.
 *
 * The thread that waits for requests answers short ones itself (fuse/loop.h). Nobody reads the next request
 * meanwhile. So before it waits, or works for long, another thread has to take its place. Nobody can tell
 * beforehand which request will wait: its bytes may be in memory or on a disk. Hence code that is about to
 * wait says so. */
#ifndef H5_BASE_WAIT_H
#define H5_BASE_WAIT_H

#include <stdbool.h>

typedef void h5_wait_notice(void);

/* This thread will call the function before its next long wait, once. NULL: no function. */
void h5_wait_set(h5_wait_notice *notice);
/* True: there is such a function, so a wait is worth avoiding. */
bool h5_wait_is_noticed(void);
/* To be called before something that may take more than a millisecond: a disk, a network, a lock that is held
 * over these, much work. Cheap. */
void h5_wait_begins(void);

#endif
