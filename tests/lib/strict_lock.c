#include "strict_lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The read-write lock that the thread holds: the engine takes one at a time. */
static _Thread_local const pthread_rwlock_t *held;

static void require(int rc, const char *call)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s\n", call, strerror(rc));
	abort();
}

/* ---- mutexes, which know by which thread they are held ---- */

int __wrap_pthread_mutex_init(pthread_mutex_t *lock, const pthread_mutexattr_t *attributes)
{
	pthread_mutexattr_t strict;

	if (attributes)
		return __real_pthread_mutex_init(lock, attributes);
	require(pthread_mutexattr_init(&strict), "pthread_mutexattr_init");
	require(pthread_mutexattr_settype(&strict, PTHREAD_MUTEX_ERRORCHECK), "pthread_mutexattr_settype");
	require(__real_pthread_mutex_init(lock, &strict), "pthread_mutex_init");
	return pthread_mutexattr_destroy(&strict);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	require(__real_pthread_mutex_lock(lock), "pthread_mutex_lock");
	return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	require(__real_pthread_mutex_unlock(lock), "pthread_mutex_unlock");
	return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	require(__real_pthread_cond_wait(condition, lock), "pthread_cond_wait");
	return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
				  const struct timespec *until)
{
	int rc = __real_pthread_cond_timedwait(condition, lock, until);

	require(rc == ETIMEDOUT ? 0 : rc, "pthread_cond_timedwait");
	return rc;
}

/* ---- read-write locks, which do not ---- */

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
