/* FUSE over io_uring (Linux 6.14, libfuse 3.18): the kernel and the daemon hand requests and replies to each
 * other in memory that they share, in a queue for each processor, instead of by reads and writes of
 * /dev/fuse. libfuse has a thread for each queue, which calls the operations. */
#ifndef H5_FUSE_IO_URING_H
#define H5_FUSE_IO_URING_H

#include "fuse/operations.h"

#include <pthread.h>

/* Decides before the mount if it may use io_uring: turns `auto` into `no` if it cannot. Returns why `yes`
 * cannot be; NULL: nothing that can be told before the mount is in its way. */
const char *h5_io_uring_settle(struct h5_options *o);

/* To be called in libfuse's init: m->io_uring stays set if the kernel offers it. */
void h5_io_uring_choose(struct h5_mount *m, struct fuse_conn_info *connection);

/* To be called before the sandbox: the C library loads a library (libgcc_s) for the first pthread_cancel(),
 * and without it aborts. */
void h5_io_uring_prepare(const struct h5_mount *m);

/* If m->io_uring is set: answers the first request, FUSE_INIT, by which libfuse starts its threads, and
 * clears it if they could not start. Since these are threads, no process may be forked after that. `log`
 * takes libfuse's messages from then on; NULL: standard error. */
void h5_io_uring_start(struct h5_mount *m, fuse_log_func_t log);

/* To be called when a request begins. libfuse ends its threads by pthread_cancel(), which would leave a
 * request that waits somewhere with its locks held. So it ends them only when they wait for requests, which
 * it does by another way, too. */
static inline void h5_io_uring_keep_thread(const struct h5_mount *m)
{
	if (m->io_uring)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

#endif
