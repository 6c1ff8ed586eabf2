/* How long the mount waits before it commits, by a clock that stands still. */
#include "vfs/private.h"

#include "unit.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static const struct timespec now = {.tv_sec = 5000, .tv_nsec = 123};

static struct {
	struct h5_vfs vfs;
	unsigned waits;	      /* without an end */
	unsigned timed_waits; /* until the time */
	unsigned signals;
	/* What happens in a wait. */
	unsigned change_at, none_at; /* in the one without an end of this number, from 1 */
	unsigned wakes;		     /* so many of the others end before it is time */
	bool none_in_time;	     /* nothing is awaited any more from the first of these on */
} it;

static void begin(void)
{
	memset(&it, 0, sizeof it);
	pthread_mutex_init(&it.vfs.await_lock, NULL);
	pthread_cond_init(&it.vfs.await_end, NULL);
}

static void end(void)
{
	pthread_cond_destroy(&it.vfs.await_end);
	pthread_mutex_destroy(&it.vfs.await_lock);
}

/* True: somebody has the lock. */
static bool is_locked(void)
{
	if (pthread_mutex_trylock(&it.vfs.await_lock))
		return true;
	pthread_mutex_unlock(&it.vfs.await_lock);
	return false;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	ck_assert_int_eq(clock, CLOCK_MONOTONIC);
	*t = now;
	return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	ck_assert(cond == &it.vfs.await_end && lock == &it.vfs.await_lock && is_locked());
	ck_assert(!it.vfs.is_changed && !it.vfs.awaits_none && !it.timed_waits);
	it.waits++;
	it.vfs.is_changed = it.waits == it.change_at;
	it.vfs.awaits_none = it.waits == it.none_at;
	return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
	ck_assert(cond == &it.vfs.await_end && lock == &it.vfs.await_lock && is_locked());
	ck_assert(it.vfs.is_changed && !it.vfs.awaits_none);
	ck_assert_int_eq(until->tv_sec, now.tv_sec + 30);
	ck_assert_int_eq(until->tv_nsec, now.tv_nsec);
	it.vfs.awaits_none = it.none_in_time;
	return it.timed_waits++ < it.wakes ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
	ck_assert_ptr_eq(cond, &it.vfs.await_end);
	ck_assert(it.vfs.awaits_none);
	it.signals++;
	return 0;
}

static void check(bool changed, unsigned waits, unsigned timed_waits)
{
	it.waits = it.timed_waits = 0;
	ck_assert(h5_vfs_await_change(&it.vfs, 30) == changed);
	ck_assert_uint_eq(it.waits, waits);
	ck_assert_uint_eq(it.timed_waits, timed_waits);
	ck_assert(!it.vfs.is_changed && !is_locked());
}

START_TEST(a_change_that_has_come)
{
	it.vfs.is_changed = true;
	check(true, 0, 1);
	/* It counts once. */
	it.change_at = 1;
	check(true, 1, 1);
}
END_TEST

START_TEST(waits_that_end_early)
{
	it.change_at = 3;
	it.wakes = 2;
	check(true, 3, 3);
}
END_TEST

START_TEST(nothing_is_awaited)
{
	it.none_at = 2;
	check(false, 2, 0);
	check(false, 0, 0); /* and never will be */
}
END_TEST

START_TEST(nothing_is_awaited_after_a_change)
{
	it.vfs.is_changed = it.none_in_time = true;
	it.wakes = 10;
	check(false, 0, 1);
	it.vfs.is_changed = true;
	check(false, 0, 0);
}
END_TEST

START_TEST(the_end_is_told)
{
	h5_vfs_await_none(&it.vfs);
	ck_assert_uint_eq(it.signals, 1);
	ck_assert(it.vfs.awaits_none && !is_locked());
	check(false, 0, 0);
}
END_TEST

UNIT_MAIN_AROUND("await", begin, end, a_change_that_has_come, waits_that_end_early, nothing_is_awaited,
		 nothing_is_awaited_after_a_change, the_end_is_told)
