/* Processors, starting threads, the end of locks, and conditions with timed waits. */
#ifndef H5_BASE_THREAD_H
#define H5_BASE_THREAD_H

#include <pthread.h>

/* The processors that this process may use; 1 if that is not known. */
unsigned h5_processors(void);

/* Starts a thread with all signals blocked but `heard` (0: all), since other threads take those of the
 * process. 0 or a negative errno. */
int h5_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, int heard);

/* Destroys a mutex, which has been unlocked as often as it was locked. */
void h5_mutex_destroy(pthread_mutex_t *mutex);

/* Initialises a condition whose timed waits are by CLOCK_MONOTONIC. */
void h5_thread_cond_init(pthread_cond_t *condition);
/* Waits, with the lock, until the condition is signalled, or a second has passed. */
void h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock);

#endif
