/* Starting threads. */
#ifndef H5_BASE_THREAD_H
#define H5_BASE_THREAD_H

#include <pthread.h>

/* Starts a thread that gets no signals but `heard` (0: none at all): those of the process are for the main
 * thread. A negative errno where it cannot be. */
int h5_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, int heard);

#endif
