#include "strict_lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(int rc, const char *call)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s\n", call, strerror(rc));
	abort();
}

/* ---- mutexes ---- */

enum { MUTEXES = 8 }; /* that a thread holds at a time */

static _Thread_local const pthread_mutex_t *mutexes[MUTEXES];

/* Finds the lock in the list of locks that this thread holds; for NULL, a free entry of the list. Returns
 * NULL if there is none. */
static const pthread_mutex_t **place_of(const pthread_mutex_t *lock)
{
	for (unsigned i = 0; i < MUTEXES; i++)
		if (mutexes[i] == lock)
			return &mutexes[i];
	return NULL;
}

static void hold(const pthread_mutex_t *lock)
{
	const pthread_mutex_t **place = place_of(NULL);

	require(place ? 0 : EAGAIN, "one mutex more");
	*place = lock;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	require(place_of(lock) ? EDEADLK : 0, "pthread_mutex_lock");
	require(__real_pthread_mutex_lock(lock), "pthread_mutex_lock");
	hold(lock);
	return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
	int rc = __real_pthread_mutex_trylock(lock);

	if (!rc)
		hold(lock);
	return rc;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	const pthread_mutex_t **place = place_of(lock);

	require(place ? 0 : EPERM, "pthread_mutex_unlock");
	*place = NULL;
	require(__real_pthread_mutex_unlock(lock), "pthread_mutex_unlock");
	return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	require(place_of(lock) ? 0 : EPERM, "pthread_cond_wait");
	require(__real_pthread_cond_wait(condition, lock), "pthread_cond_wait");
	return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
				  const struct timespec *until)
{
	int rc;

	require(place_of(lock) ? 0 : EPERM, "pthread_cond_timedwait");
	rc = __real_pthread_cond_timedwait(condition, lock, until);
	require(rc == ETIMEDOUT ? 0 : rc, "pthread_cond_timedwait");
	return rc;
}

/* ---- read-write locks ---- */

/* The one that the thread holds: the engine takes one at a time. */
static _Thread_local const pthread_rwlock_t *held;

static int take(int rc, const pthread_rwlock_t *lock)
{
	if (!rc) {
		require(held ? EDEADLK : 0, "a second pthread_rwlock_t");
		held = lock;
	}
	return rc;
}

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	require(held ? EDEADLK : 0, "pthread_rwlock_rdlock");
	return take(__real_pthread_rwlock_rdlock(lock), lock);
}

int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	require(held ? EDEADLK : 0, "pthread_rwlock_wrlock");
	return take(__real_pthread_rwlock_wrlock(lock), lock);
}

int __wrap_pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
	return take(__real_pthread_rwlock_tryrdlock(lock), lock);
}

int __wrap_pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
	return take(__real_pthread_rwlock_trywrlock(lock), lock);
}

int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	require(held == lock ? 0 : EPERM, "pthread_rwlock_unlock");
	held = NULL;
	return __real_pthread_rwlock_unlock(lock);
}
