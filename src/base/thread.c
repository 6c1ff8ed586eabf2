#include "base/thread.h"

#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

unsigned h5_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

int h5_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, int heard)
{
	sigset_t blocked, before;
	int rc;

	sigfillset(&blocked);
	if (heard)
		sigdelset(&blocked, heard);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	rc = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

void h5_mutex_destroy(pthread_mutex_t *mutex)
{
	/* The GNU C library counts, so it tells if a lock was left out or kept. */
	const int rc = pthread_mutex_destroy(mutex);

	assert(!rc);
	(void)rc;
}

void h5_thread_cond_init(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

void h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	pthread_cond_timedwait(condition, lock, &until);
}
