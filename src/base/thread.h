/* Starting threads. */
#ifndef H5_BASE_THREAD_H
#define H5_BASE_THREAD_H

#include <pthread.h>

/* Starts a thread that gets no signal but `heard` (0: none), since the main thread takes those of the
 * process. 0 or a negative errno. */
int h5_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, int heard);

#endif
