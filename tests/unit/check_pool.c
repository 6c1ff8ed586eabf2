#include "base/error.h"
#include "base/interrupt.h"
#include "base/pool.h"
#include "base/room.h"
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { PARTS = 1000 };

struct work {
	struct h5_pool *pool;
	atomic_uint times[PARTS];
	pthread_barrier_t *together;
};

static int count_part(void *arg, size_t i)
{
	struct work *w = arg;

	w->times[i]++;
	return 0;
}

static void expect_once(const struct work *w, size_t n)
{
	for (size_t i = 0; i < PARTS; i++)
		ck_assert_uint_eq(w->times[i], i < n);
}

/* With no worker, one and several. */
START_TEST(every_part_runs_once)
{
	struct work w = {0};

	ck_assert_int_eq(h5_pool_open((unsigned)_i, &w.pool), 0);
	h5_fail(-EIO, 77, "an error before");
	ck_assert_int_eq(h5_pool_run(w.pool, count_part, &w, 0), 0);
	ck_assert_int_eq(h5_pool_run(w.pool, count_part, &w, PARTS), 0);
	expect_once(&w, PARTS);
	/* What succeeds leaves the error of what came before. */
	ck_assert_int_eq(h5_error_last()->code, -EIO);
	ck_assert_str_eq(h5_error_last()->text, "an error before");
	h5_pool_close(w.pool);
}
END_TEST

static int meet(void *arg, size_t i)
{
	struct work *w = arg;

	(void)i;
	pthread_barrier_wait(w->together);
	return 0;
}

/* Parts that wait for one another end only if as many run at once: the caller's and the workers'. */
START_TEST(parts_run_side_by_side)
{
	pthread_barrier_t together;
	struct work w = {.together = &together};

	pthread_barrier_init(&together, NULL, 4);
	ck_assert_int_eq(h5_pool_open(3, &w.pool), 0);
	ck_assert_int_eq(h5_pool_run(w.pool, meet, &w, 4), 0);
	h5_pool_close(w.pool);
	pthread_barrier_destroy(&together);
}
END_TEST

static int fail_from_7(void *arg, size_t i)
{
	count_part(arg, i);
	return i < 7 ? 0 : h5_fail(-EUCLEAN, i, "part %zu", i);
}

START_TEST(the_first_failure_is_told)
{
	struct work w = {0};
	size_t ran = 0;

	ck_assert_int_eq(h5_pool_open((unsigned)_i, &w.pool), 0);
	ck_assert_int_eq(h5_pool_run(w.pool, fail_from_7, &w, PARTS), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "part 7");
	ck_assert_uint_eq(h5_error_last()->address, 7);
	for (size_t i = 0; i < PARTS; i++)
		ran += w.times[i];
	/* each thread has seen at most one failure of its own */
	ck_assert_uint_le(ran, 8 + (unsigned)_i);
	h5_pool_close(w.pool);
}
END_TEST

/* What another failure has left in its thread is not told. */
static int fail_without_a_word(void *arg, size_t i)
{
	count_part(arg, i);
	h5_fail(-EIO, i, "an error that was passed over");
	return -ENOMEM;
}

START_TEST(a_failure_without_a_text)
{
	struct work w = {0};

	ck_assert_int_eq(h5_pool_open((unsigned)_i, &w.pool), 0);
	ck_assert_int_eq(h5_pool_run(w.pool, fail_without_a_word, &w, PARTS), -ENOMEM);
	ck_assert_int_eq(h5_error_last()->code, -ENOMEM);
	ck_assert_uint_eq(h5_error_last()->address, H5_UNDEF);
	ck_assert_str_eq(h5_error_last()->text, "");
	h5_pool_close(w.pool);
}
END_TEST

static int run_inner(void *arg, size_t i)
{
	struct work *outer = arg;
	struct work w = {0};

	count_part(outer, i);
	ck_assert_int_eq(h5_pool_run(outer->pool, count_part, &w, 10), 0);
	expect_once(&w, 10);
	return 0;
}

START_TEST(parts_may_have_parts)
{
	struct work w = {0};

	ck_assert_int_eq(h5_pool_open(2, &w.pool), 0);
	ck_assert_int_eq(h5_pool_run(w.pool, run_inner, &w, PARTS), 0);
	expect_once(&w, PARTS);
	h5_pool_close(w.pool);
}
END_TEST

static bool is_unwanted(void *arg)
{
	return *(atomic_bool *)arg;
}

/* In its first second nobody is interrupted. */
static int spin_until_unwanted(void *arg, size_t i)
{
	int rc;

	(void)arg;
	(void)i;
	while (!(rc = h5_interrupt_check()))
		;
	return rc;
}

START_TEST(parts_are_interrupted_with_their_caller)
{
	atomic_bool unwanted = true;
	struct h5_pool *pool;

	ck_assert_int_eq(h5_pool_open(2, &pool), 0);
	h5_interrupt_begin(is_unwanted, &unwanted);
	ck_assert_int_eq(h5_pool_run(pool, spin_until_unwanted, NULL, 3), -EINTR);
	ck_assert_int_eq(h5_error_last()->code, -EINTR);
	h5_pool_close(pool);
}
END_TEST

struct charging {
	pthread_barrier_t together;
	struct h5_account *accounts[2];
};

static int note_account(void *arg, size_t i)
{
	struct charging *c = arg;

	pthread_barrier_wait(&c->together);
	c->accounts[i] = h5_account_get();
	return 0;
}

/* A worker charges what it allocates to the request that it works for; of the one before nothing is left. */
START_TEST(parts_charge_their_callers_account)
{
	struct h5_account account = {0}, *const callers[] = {&account, NULL};
	struct h5_pool *pool;

	ck_assert_int_eq(h5_pool_open(1, &pool), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct charging c;

		pthread_barrier_init(&c.together, NULL, 2);
		h5_account_set(callers[i]);
		ck_assert_int_eq(h5_pool_run(pool, note_account, &c, 2), 0);
		ck_assert_ptr_eq(c.accounts[0], callers[i]);
		ck_assert_ptr_eq(c.accounts[1], callers[i]);
		pthread_barrier_destroy(&c.together);
	}
	h5_pool_close(pool);
}
END_TEST

struct background {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned begun, done;
	bool go;
};

static int wait_for_go(void *arg, size_t i)
{
	struct background *b = arg;

	(void)i;
	pthread_mutex_lock(&b->lock);
	b->begun++;
	pthread_cond_broadcast(&b->changed);
	while (!b->go)
		pthread_cond_wait(&b->changed, &b->lock);
	pthread_mutex_unlock(&b->lock);
	return 0;
}

static void count_done(void *arg)
{
	struct background *b = arg;

	pthread_mutex_lock(&b->lock);
	b->done++;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

static void release(struct background *b)
{
	pthread_mutex_lock(&b->lock);
	b->go = true;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

/* What is waited for goes first, also while the background has taken all workers. */
START_TEST(background_work_keeps_nobody_waiting)
{
	struct background b = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, false};
	struct work w = {0};

	ck_assert_int_eq(h5_pool_open(2, &w.pool), 0);
	h5_pool_start(w.pool, wait_for_go, count_done, &b, 5);
	pthread_mutex_lock(&b.lock);
	while (b.begun < 2)
		pthread_cond_wait(&b.changed, &b.lock);
	pthread_mutex_unlock(&b.lock);
	ck_assert_int_eq(h5_pool_run(w.pool, count_part, &w, PARTS), 0);
	expect_once(&w, PARTS);
	release(&b);
	pthread_mutex_lock(&b.lock);
	while (!b.done)
		pthread_cond_wait(&b.changed, &b.lock);
	ck_assert_uint_eq(b.begun, 5);
	pthread_mutex_unlock(&b.lock);
	h5_pool_close(w.pool);
	ck_assert_uint_eq(b.done, 1);
}
END_TEST

static void *close_pool(void *arg)
{
	h5_pool_close(arg);
	return NULL;
}

/* What has begun ends, the rest is left out; each is told once that it is over. */
START_TEST(closing_leaves_the_background_out)
{
	struct background b = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, false};
	struct background later = b;
	struct h5_pool *pool;
	pthread_t closer;

	ck_assert_int_eq(h5_pool_open(1, &pool), 0);
	h5_pool_start(pool, wait_for_go, count_done, &b, 1);
	h5_pool_start(pool, wait_for_go, count_done, &later, 3);
	pthread_mutex_lock(&b.lock);
	while (!b.begun)
		pthread_cond_wait(&b.changed, &b.lock);
	pthread_mutex_unlock(&b.lock);
	ck_assert_int_eq(pthread_create(&closer, NULL, close_pool, pool), 0);
	later.go = true;
	release(&b);
	pthread_join(closer, NULL);
	ck_assert_uint_eq(b.done, 1);
	ck_assert_uint_eq(later.done, 1);
}
END_TEST

START_TEST(background_work_without_workers_is_left_out)
{
	struct background b = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, false};
	struct h5_pool *pool;

	ck_assert_int_eq(h5_pool_open(0, &pool), 0);
	h5_pool_start(pool, wait_for_go, count_done, &b, 3);
	ck_assert_uint_eq(b.begun, 0);
	ck_assert_uint_eq(b.done, 1);
	h5_pool_close(pool);
}
END_TEST

/* ---- workers that wait: the linker leads pthread_cond_wait() here ---- */

int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);

static atomic_uint waiting;

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	int rc;

	waiting++;
	rc = __real_pthread_cond_wait(condition, lock);
	waiting--;
	return rc;
}

static int meet_others(void *arg, size_t i)
{
	(void)i;
	pthread_barrier_wait(arg);
	return 0;
}

static void meet_starter(void *arg)
{
	pthread_barrier_wait((pthread_barrier_t *)arg + 1);
}

/* As many workers as there are parts wake, or all of them. */
START_TEST(idle_workers_are_woken)
{
	enum { WORKERS = 3 };
	struct h5_pool *pool;

	ck_assert_int_eq(h5_pool_open(WORKERS, &pool), 0);
	for (unsigned parts = 1; parts <= WORKERS; parts++) {
		pthread_barrier_t barriers[2]; /* of the parts, and of their end and this thread */

		pthread_barrier_init(&barriers[0], NULL, parts);
		pthread_barrier_init(&barriers[1], NULL, 2);
		h5_pool_start(pool, meet_others, meet_starter, barriers, parts);
		pthread_barrier_wait(&barriers[1]);
		pthread_barrier_destroy(&barriers[0]);
		pthread_barrier_destroy(&barriers[1]);
		while (waiting < WORKERS)
			sched_yield();
	}
	h5_pool_close(pool);
}
END_TEST

/* ---- threads that cannot be started: the linker leads pthread_create() here ---- */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *arg);

static unsigned begun, most = UINT_MAX; /* threads that were tried; of which so many begin */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *arg)
{
	return begun++ < most ? __real_pthread_create(thread, attributes, run, arg) : EAGAIN;
}

/* The pool does with those that there are, and tries no more. */
START_TEST(threads_that_cannot_be_started)
{
	for (unsigned n = 0; n < 3; n++) {
		struct work w = {0};

		begun = 0;
		most = n;
		ck_assert_int_eq(h5_pool_open(3, &w.pool), 0);
		ck_assert_uint_eq(h5_pool_workers(w.pool), 3);
		for (unsigned times = 1; times < 3; times++) {
			memset(w.times, 0, sizeof w.times);
			ck_assert_int_eq(h5_pool_run(w.pool, count_part, &w, PARTS), 0);
			expect_once(&w, PARTS);
			ck_assert_uint_eq(h5_pool_workers(w.pool), n);
			ck_assert_uint_eq(begun, n + 1);
		}
		h5_pool_close(w.pool);
	}
	most = UINT_MAX;
}
END_TEST

UNIT_MAIN_LOOPS("pool", {idle_workers_are_woken, 1}, {every_part_runs_once, 4}, {parts_run_side_by_side, 1},
		{the_first_failure_is_told, 4}, {a_failure_without_a_text, 4}, {parts_may_have_parts, 1},
		{parts_are_interrupted_with_their_caller, 1}, {parts_charge_their_callers_account, 1},
		{background_work_keeps_nobody_waiting, 1}, {closing_leaves_the_background_out, 1},
		{background_work_without_workers_is_left_out, 1}, {threads_that_cannot_be_started, 1})
