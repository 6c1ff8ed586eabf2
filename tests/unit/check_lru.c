#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/lru.h"
#include "base/room.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static const struct h5_lru_kind kind = {"test", free};

struct loader {
	unsigned calls;
	int result;
	pthread_barrier_t *barrier; /* waits inside the load */
};

static int load(void *arg, void **value, size_t *cost)
{
	struct loader *l = arg;

	l->calls++;
	if (l->barrier)
		pthread_barrier_wait(l->barrier);
	if (l->result)
		return l->result;
	*value = malloc(1);
	*cost = 1000;
	return *value ? 0 : -ENOMEM;
}

static void touch(struct h5_lru *lru, struct loader *l, uint64_t address)
{
	struct h5_lru_key key = {&kind, 0, address, 0};
	struct h5_lru_entry *e;

	ck_assert_int_eq(h5_lru_get(lru, &key, load, l, &e), 0);
	h5_lru_put(lru, e);
}

START_TEST(lru_keeps_the_latest_within_its_budget)
{
	struct loader l = {0};
	struct h5_lru_stats stats;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
	for (uint64_t a = 0; a < 3; a++)
		touch(lru, &l, a);
	touch(lru, &l, 0);
	ck_assert_uint_eq(l.calls, 3);
	touch(lru, &l, 3); /* evicts 1, the least recently used */
	touch(lru, &l, 0);
	touch(lru, &l, 2);
	ck_assert_uint_eq(l.calls, 4);
	touch(lru, &l, 1);
	ck_assert_uint_eq(l.calls, 5);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_le(stats.bytes, 3500);
	ck_assert_uint_eq(stats.hits, 3);
	ck_assert_uint_eq(stats.misses, 5);
	h5_lru_close(lru);
}
END_TEST

START_TEST(lru_keeps_a_value_over_its_budget)
{
	struct loader l = {0};
	struct h5_lru_stats stats;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(10, &lru), 0);
	touch(lru, &l, 1);
	touch(lru, &l, 1);
	ck_assert_uint_eq(l.calls, 1);
	touch(lru, &l, 2);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 1);
	h5_lru_close(lru);
}
END_TEST

START_TEST(lru_does_not_cache_failures)
{
	struct loader l = {.result = -EIO};
	struct h5_lru_key key = {&kind, 1, 2, 3};
	struct h5_lru_entry *e;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
	ck_assert_int_eq(h5_lru_get(lru, &key, load, &l, &e), -EIO);
	ck_assert_ptr_null(e);
	l.result = 0;
	ck_assert_int_eq(h5_lru_get(lru, &key, load, &l, &e), 0);
	ck_assert_uint_eq(l.calls, 2);
	h5_lru_put(lru, e);
	h5_lru_close(lru);
}
END_TEST

struct holder {
	struct h5_lru *lru;
	struct h5_lru_entry *held;
};

static void release_holder(void *value)
{
	struct holder *h = value;

	h5_lru_put(h->lru, h->held);
	free(h);
}

static const struct h5_lru_kind holder_kind = {"holder", release_holder};

static int load_holder(void *arg, void **value, size_t *cost)
{
	struct holder *h = calloc(1, sizeof *h);
	struct h5_lru_key key = {&kind, 0, 1, 0};
	struct loader l = {0};

	h->lru = arg;
	*value = h;
	*cost = sizeof *h;
	return h5_lru_get(h->lru, &key, load, &l, &h->held);
}

/* A value that references another one in the same cache: evicted, it gives that back. */
START_TEST(lru_values_may_hold_references)
{
	struct h5_lru_key key = {&holder_kind, 0, 2, 0};
	struct h5_lru_stats stats;
	struct loader l = {0};
	struct h5_lru_entry *e;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(0, &lru), 0);
	ck_assert_int_eq(h5_lru_get(lru, &key, load_holder, lru, &e), 0);
	h5_lru_put(lru, e);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 2); /* the latest stays, and what it holds */
	touch(lru, &l, 3);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 1);
	ck_assert_uint_ge(stats.evictions, 2);
	h5_lru_close(lru);
}
END_TEST

static int load_counted(void *arg, void **value, size_t *cost)
{
	*value = arg;
	*cost = 1000;
	return 0;
}

static void count_released(void *value)
{
	++*(unsigned *)value;
}

static const struct h5_lru_kind counted_kind = {"counted", count_released};

enum { BY_GET, BY_GET_AHEAD, BY_PUT, BY_PUT_USED, BY_ADD, BY_FORGET, BY_RESERVE, BY_PRESS, BY_CLOSE, BY_END };

static void drop_idle(struct h5_lru *lru, int way, const struct h5_lru_key *idle, unsigned *others)
{
	struct h5_lru_key key = {&counted_kind, 0, 2, 0};
	struct h5_lru_entry *e;

	switch (way) {
	case BY_GET:
		for (; key.address < 4; key.address++)
			h5_lru_add(lru, &key, others, 1000);
		ck_assert_int_eq(h5_lru_get(lru, &key, load_counted, others, &e), 0);
		h5_lru_put(lru, e);
		break;
	case BY_PUT:
		ck_assert_int_eq(h5_lru_get(lru, &key, load_counted, others, &e), 0);
		h5_lru_put(lru, e);
		break;
	case BY_GET_AHEAD:
		ck_assert_int_eq(h5_lru_load_ahead(lru, &key, load_counted, others), 0);
		break;
	case BY_PUT_USED:
		ck_assert(h5_lru_find(lru, idle, &e));
		h5_lru_put_used(lru, e, 1, 1);
		break;
	case BY_ADD:
		h5_lru_add(lru, &key, others, 1000);
		break;
	case BY_FORGET:
		h5_lru_forget(lru, 0, idle->address, NULL);
		break;
	case BY_RESERVE:
		ck_assert_int_eq(h5_lru_reserve(lru, 4000), 0);
		h5_lru_unreserve(lru, 4000);
		break;
	case BY_PRESS:
		h5_lru_press(lru, 4000);
		break;
	default:
		break;
	}
}

/* A value is released once, however it leaves the cache. */
START_TEST(lru_releases_what_leaves_it)
{
	for (int way = 0; way < BY_END; way++) {
		const struct h5_lru_key key = {&counted_kind, 0, 1, 0};
		unsigned released = 0, others = 0;
		struct h5_lru_stats stats;
		struct h5_lru *lru;

		ck_assert_int_eq(h5_lru_open(way == BY_GET || way >= BY_FORGET ? 4000 : 1, &lru), 0);
		h5_lru_add(lru, &key, &released, 1000);
		ck_assert_uint_eq(released, 0);
		drop_idle(lru, way, &key, &others);
		ck_assert_uint_eq(released, way != BY_CLOSE);
		ck_assert_uint_eq(others, 0);
		h5_lru_stats(lru, &stats);
		h5_lru_close(lru);
		ck_assert_uint_eq(released, 1);
		ck_assert_uint_eq(others, stats.entries - (way == BY_CLOSE));
	}
}
END_TEST

struct reader_thread {
	struct h5_lru *lru;
	struct loader *loader;
};

static void *get_in_thread(void *arg)
{
	struct reader_thread *t = arg;

	touch(t->lru, t->loader, 5);
	return NULL;
}

/* Two threads ask for one key; the loader runs once, the second one waits for it. */
START_TEST(lru_loads_once)
{
	pthread_barrier_t barrier;
	struct loader l = {.barrier = &barrier};
	struct reader_thread t;
	pthread_t a, b;

	pthread_barrier_init(&barrier, NULL, 2);
	ck_assert_int_eq(h5_lru_open(3500, &t.lru), 0);
	t.loader = &l;
	pthread_create(&a, NULL, get_in_thread, &t);
	pthread_create(&b, NULL, get_in_thread, &t);
	pthread_barrier_wait(&barrier); /* with the one load; a second load would wait here for ever */
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	ck_assert_uint_eq(l.calls, 1);
	h5_lru_close(t.lru);
	pthread_barrier_destroy(&barrier);
}
END_TEST

static int load_while_others_try(void *arg, void **value, size_t *cost)
{
	struct reader_thread *t = arg;
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_lru_entry *e;

	/* A thread of its own would do the same: it is the key that is being loaded. */
	ck_assert(h5_lru_has(t->lru, &key));
	ck_assert_int_eq(h5_lru_try(t->lru, &key, load, t->loader, &e), -EAGAIN);
	ck_assert_ptr_null(e);
	return load(t->loader, value, cost);
}

START_TEST(lru_tells_what_is_being_loaded)
{
	struct loader l = {0};
	struct reader_thread t = {.loader = &l};
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_lru_entry *e;

	ck_assert_int_eq(h5_lru_open(3500, &t.lru), 0);
	ck_assert(!h5_lru_has(t.lru, &key));
	ck_assert_int_eq(h5_lru_try(t.lru, &key, load_while_others_try, &t, &e), 0);
	h5_lru_put(t.lru, e);
	ck_assert(h5_lru_has(t.lru, &key));
	ck_assert_int_eq(h5_lru_try(t.lru, &key, load, &l, &e), 0);
	h5_lru_put(t.lru, e);
	ck_assert_uint_eq(l.calls, 1);
	h5_lru_close(t.lru);
}
END_TEST

/* All bytes of the value are used: it lives as long as somebody has a reference. */
START_TEST(lru_forgets_what_is_dropped)
{
	struct loader l = {0};
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_lru_stats stats;
	struct h5_lru_entry *a, *b, *c;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
	ck_assert_int_eq(h5_lru_get(lru, &key, load, &l, &a), 0);
	ck_assert_int_eq(h5_lru_get(lru, &key, load, &l, &b), 0);
	ck_assert_int_eq(h5_lru_get(lru, &key, load, &l, &c), 0);
	h5_lru_put_used(lru, a, 3, 10);
	ck_assert(h5_lru_has(lru, &key));
	h5_lru_put_used(lru, c, 7, 10);
	ck_assert(!h5_lru_has(lru, &key));
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 1);
	h5_lru_put_used(lru, b, 10, 10); /* may be dropped twice */
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 0);
	ck_assert_uint_eq(stats.bytes, 0);
	touch(lru, &l, 5);
	ck_assert_uint_eq(l.calls, 2);
	h5_lru_close(lru);
}
END_TEST

/* What is loaded ahead is there for others; who comes too late loads nothing. */
START_TEST(lru_loads_ahead_once)
{
	struct loader l = {0};
	struct h5_lru_key key = {&kind, 0, 5, 0}, other = {&kind, 0, 5, 1};
	struct h5_lru_stats stats;
	struct h5_lru_entry *e;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
	ck_assert(h5_lru_plan(lru, &key));
	ck_assert_int_eq(h5_lru_load_ahead(lru, &key, load, &l), 0);
	ck_assert_int_eq(h5_lru_load_ahead(lru, &key, load, &l), 0);
	ck_assert_uint_eq(l.calls, 1);
	ck_assert(!h5_lru_plan(lru, &key));
	ck_assert(h5_lru_find(lru, &key, &e));
	h5_lru_put_used(lru, e, 1, 1);
	ck_assert_int_eq(h5_lru_load_ahead(lru, &key, load, &l), 0);
	ck_assert_uint_eq(l.calls, 1);
	ck_assert(!h5_lru_has(lru, &key));
	/* Other plans change nothing. */
	for (uint64_t i = 100; i < 10000; i++)
		ck_assert(h5_lru_plan(lru, &(struct h5_lru_key){&kind, 0, i, 0}));
	ck_assert_int_eq(h5_lru_load_ahead(lru, &key, load, &l), 0);
	ck_assert_uint_eq(l.calls, 1);
	ck_assert_int_eq(h5_lru_load_ahead(lru, &other, load, &l), 0);
	ck_assert_uint_eq(l.calls, 2);
	/* Planned again, it is loaded again. */
	ck_assert(h5_lru_plan(lru, &key));
	ck_assert_int_eq(h5_lru_load_ahead(lru, &key, load, &l), 0);
	ck_assert_uint_eq(l.calls, 3);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 2);
	/* A failure leaves nothing. */
	l.result = -EIO;
	key.address = 6;
	ck_assert_int_eq(h5_lru_load_ahead(lru, &key, load, &l), -EIO);
	ck_assert(!h5_lru_has(lru, &key));
	h5_lru_close(lru);
}
END_TEST

/* The last one stays though it is over the budget: somebody is about to ask for it. */
START_TEST(lru_keeps_the_last_one_that_nobody_has_yet)
{
	struct loader l = {0};
	struct h5_lru_key keys[4];
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(1, &lru), 0);
	for (unsigned i = 0; i < 4; i++) {
		keys[i] = (struct h5_lru_key){&kind, 0, i, 0};
		if (i < 2)
			ck_assert_int_eq(h5_lru_load_ahead(lru, &keys[i], load, &l), 0);
		else
			h5_lru_add(lru, &keys[i], malloc(1), 1000);
		for (unsigned k = 0; k <= i; k++)
			ck_assert_int_eq(h5_lru_has(lru, &keys[k]), k == i);
	}
	ck_assert_uint_eq(l.calls, 2);
	h5_lru_close(lru);
}
END_TEST

/* So it does while a value that is over the budget is in use. */
START_TEST(lru_keeps_the_last_idle_one_beside_those_in_use)
{
	struct loader l = {0};
	struct h5_lru_key first = {&kind, 0, 1, 0}, second = {&kind, 0, 2, 0}, third = {&kind, 0, 3, 0};
	struct h5_lru_entry *a, *b;
	struct h5_lru_stats stats;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(10, &lru), 0);
	touch(lru, &l, 1);
	ck_assert_int_eq(h5_lru_get(lru, &second, load, &l, &a), 0);
	ck_assert(h5_lru_has(lru, &first));
	h5_lru_put(lru, a); /* is the last one now */
	ck_assert(!h5_lru_has(lru, &first));
	ck_assert(h5_lru_has(lru, &second));
	/* Nor does a load that fails evict it. */
	l.result = -EIO;
	ck_assert_int_eq(h5_lru_get(lru, &third, load, &l, &b), -EIO);
	ck_assert(h5_lru_has(lru, &second));
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 1);
	ck_assert_uint_eq(stats.evictions, 1);
	h5_lru_close(lru);
}
END_TEST

/* Unless it is large: more than 32 MiB, and more than the budget. Its cost has some bytes for the entry. */
START_TEST(lru_does_not_keep_what_is_large)
{
	enum { LARGE = 32 << 20 };
	static const size_t budgets[] = {1, 40 << 20};
	const struct h5_lru_key small = {&kind, 0, 1, 0}, large = {&kind, 0, 2, 0};

	for (size_t i = 0; i < 2; i++) {
		const size_t most = h5_max(budgets[i], LARGE);
		struct h5_lru_stats stats;
		struct h5_lru *lru;
		size_t entry;

		ck_assert_int_eq(h5_lru_open(budgets[i], &lru), 0);
		h5_lru_press(lru, budgets[i]); /* requests have taken all of it */
		h5_lru_add(lru, &small, malloc(1), 1000);
		h5_lru_stats(lru, &stats);
		ck_assert_uint_eq(stats.entries, 1);
		entry = stats.bytes - 1000;
		h5_lru_add(lru, &large, malloc(1), most - entry);
		ck_assert(!h5_lru_has(lru, &small));
		ck_assert(h5_lru_has(lru, &large));
		h5_lru_forget(lru, 0, large.address, NULL);
		h5_lru_add(lru, &large, malloc(1), most - entry + 1);
		ck_assert(!h5_lru_has(lru, &large));
		h5_lru_stats(lru, &stats);
		ck_assert_uint_eq(stats.bytes, 0);
		h5_lru_close(lru);
	}
}
END_TEST

/* A value that was not loaded is found as others are, and counts. */
START_TEST(lru_takes_what_it_is_given)
{
	struct loader l = {0};
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_lru_stats stats;
	struct h5_lru_entry *e;
	struct h5_lru *lru;
	void *value = malloc(1);

	ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
	h5_lru_put(lru, NULL);
	h5_lru_add(lru, &key, value, 1000);
	ck_assert_int_eq(h5_lru_get(lru, &key, load, &l, &e), 0);
	ck_assert_ptr_eq(h5_lru_value(e), value);
	h5_lru_put(lru, e);
	ck_assert_uint_eq(l.calls, 0);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 1);
	ck_assert_uint_ge(stats.bytes, 1000);
	for (uint64_t a = 6; a < 9; a++)
		touch(lru, &l, a); /* and is evicted as they are */
	ck_assert(!h5_lru_has(lru, &key));
	h5_lru_close(lru);
}
END_TEST

START_TEST(lru_forgets_all_but_a_kind)
{
	static const struct h5_lru_kind other = {"other", free};
	struct h5_lru_key keys[] = {{&kind, 0, 5, 0}, {&other, 0, 5, 0}, {&kind, 0, 5, 1}, {&kind, 0, 6, 0}};
	struct loader l = {0};
	struct h5_lru_entry *e;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(1 << 20, &lru), 0);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(h5_lru_get(lru, &keys[i], load, &l, &e), 0);
		h5_lru_put(lru, e);
	}
	h5_lru_forget(lru, 0, 5, &kind);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(h5_lru_has(lru, &keys[i]), i != 1);
	h5_lru_forget(lru, 0, 5, NULL);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(h5_lru_has(lru, &keys[i]), i == 3);
	h5_lru_close(lru);
}
END_TEST

/* Threads that reserve, and what they have at one time. */
struct reserving {
	struct h5_lru *lru;
	atomic_size_t held, turns;
	size_t most; /* that may be held by several */
};

static void *reserve_again_and_again(void *arg)
{
	struct reserving *r = arg;
	unsigned number = (unsigned)atomic_fetch_add(&r->turns, 1);

	for (unsigned i = 0; i < 500; i++) {
		size_t n = (number * 7919 + i * 104729) % 13 << 20, held;

		/* Now and then more than there is. */
		if (i % 50 == number)
			n = 100 << 20;
		ck_assert_int_eq(h5_lru_reserve(r->lru, n), 0);
		held = atomic_fetch_add(&r->held, n) + n;
		ck_assert_msg(held <= r->most || held == n, "%zu bytes are held", held);
		atomic_fetch_sub(&r->held, n);
		h5_lru_unreserve(r->lru, n);
	}
	return NULL;
}

/* Nobody waits for ever, and no more is given away than there is but to one who is alone. */
START_TEST(lru_reserves_within_its_budget)
{
	struct reserving r = {.most = 40 << 20};
	pthread_t threads[8];

	ck_assert_int_eq(h5_lru_open(r.most, &r.lru), 0);
	for (unsigned i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, reserve_again_and_again, &r);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	h5_lru_close(r.lru);
}
END_TEST

START_TEST(lru_evicts_for_what_is_reserved)
{
	struct loader l = {0};
	struct h5_lru_stats stats;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
	for (uint64_t i = 1; i < 4; i++)
		touch(lru, &l, i);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_gt(stats.entries, 1);
	ck_assert_int_eq(h5_lru_reserve(lru, 3000), 0);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 0);
	/* What comes meanwhile stays as long as nothing else does. */
	for (uint64_t i = 1; i < 4; i++)
		touch(lru, &l, i);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 1);
	h5_lru_unreserve(lru, 3000);
	for (uint64_t i = 1; i < 4; i++)
		touch(lru, &l, i);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_gt(stats.entries, 1);
	h5_lru_close(lru);
}
END_TEST

static bool never_wanted(void *arg)
{
	++*(unsigned *)arg;
	return true;
}

/* ---- a wait that only a signal ends: the linker leads h5_thread_wait_a_second() here ---- */

static atomic_bool waits_for_a_signal, is_waiting, is_first;

/* This thread waits until another one does. */
static _Thread_local bool gives_up;

static void wait_for_another(void)
{
	while (!is_waiting)
		sched_yield();
}

void __real_h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock);
void __wrap_h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock);

void __wrap_h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	if (!waits_for_a_signal) {
		__real_h5_thread_wait_a_second(condition, lock);
		return;
	}
	if (gives_up) {
		is_first = true;
		pthread_mutex_unlock(lock);
		wait_for_another();
		pthread_mutex_lock(lock);
		return;
	}
	is_waiting = true;
	pthread_cond_wait(condition, lock);
}

static pthread_t second;

static int load_while_another_waits(void *arg, void **value, size_t *cost)
{
	struct reader_thread *t = arg;

	pthread_create(&second, NULL, get_in_thread, t);
	wait_for_another();
	return load(t->loader, value, cost);
}

/* The end of a load wakes the threads that wait for its value. */
START_TEST(lru_tells_the_end_of_a_load)
{
	struct loader l = {0};
	struct reader_thread t = {.loader = &l};
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_lru_entry *e;

	waits_for_a_signal = true;
	ck_assert_int_eq(h5_lru_open(3500, &t.lru), 0);
	ck_assert_int_eq(h5_lru_get(t.lru, &key, load_while_another_waits, &t, &e), 0);
	pthread_join(second, NULL);
	waits_for_a_signal = false;
	ck_assert_uint_eq(l.calls, 1);
	h5_lru_put(t.lru, e);
	h5_lru_close(t.lru);
}
END_TEST

/* ---- room ---- */

static void *reserve_some(void *arg)
{
	ck_assert_int_eq(h5_lru_reserve(arg, 10), 0);
	return NULL;
}

static void *give_up_reserving(void *arg)
{
	struct h5_interrupt interrupt;
	unsigned asked = 0;

	gives_up = true;
	h5_interrupt_begin(never_wanted, &asked);
	h5_interrupt_get(&interrupt);
	interrupt.begin.tv_sec -= 10; /* its first second is over */
	h5_interrupt_set(&interrupt);
	ck_assert_int_eq(h5_lru_reserve(arg, (size_t)1 << 40), -EINTR);
	return NULL;
}

/* A thread that waits for room wakes when room is given back, by another thread or by requests, and when the
 * thread before it in the queue gives up. */
START_TEST(lru_tells_when_there_is_room)
{
	enum { UNRESERVE, PRESS, GIVE_UP, WAYS };

	waits_for_a_signal = true;
	for (unsigned way = 0; way < WAYS; way++) {
		size_t much = (size_t)1 << 40, reserved = way == UNRESERVE ? much : 1;
		pthread_t first, other;
		struct h5_lru *lru;

		is_waiting = false;
		ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
		ck_assert_int_eq(h5_lru_reserve(lru, reserved), 0);
		if (way == PRESS)
			h5_lru_press(lru, much);
		if (way == GIVE_UP) {
			pthread_create(&first, NULL, give_up_reserving, lru);
			while (!is_first)
				sched_yield();
		}
		pthread_create(&other, NULL, reserve_some, lru);
		wait_for_another();
		if (way == UNRESERVE)
			h5_lru_unreserve(lru, much);
		else if (way == PRESS)
			h5_lru_press(lru, 0);
		else
			pthread_join(first, NULL);
		pthread_join(other, NULL);
		h5_lru_unreserve(lru, way == UNRESERVE ? 10 : 11);
		h5_lru_close(lru);
	}
	waits_for_a_signal = false;
}
END_TEST

static int load_large(void *arg, void **value, size_t *cost)
{
	int rc = load(arg, value, cost);

	*cost = 1 << 20;
	return rc;
}

/* The request pays for a value in use that the cache has no room for. */
START_TEST(lru_charges_what_is_over_its_budget)
{
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_account account = {0};
	struct loader l = {0};
	struct h5_lru_entry *e;
	struct h5_room *room;
	struct h5_lru *lru;

	for (unsigned enough = 0; enough < 2; enough++) {
		ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
		ck_assert_int_eq(h5_room_open(enough ? 2 << 20 : 1 << 20, NULL, NULL, &room), 0);
		h5_account_begin(&account, room);
		ck_assert_int_eq(h5_lru_get(lru, &key, load_large, &l, &e), enough ? 0 : -EFBIG);
		if (enough) {
			ck_assert_uint_gt(account.taken, 1 << 20);
			h5_lru_put(lru, e);
		} else {
			ck_assert_ptr_null(e);
			ck_assert(!h5_lru_has(lru, &key));
		}
		ck_assert_uint_eq(account.taken, 0);
		h5_account_end(&account);
		h5_lru_close(lru);
		h5_room_close(room);
	}
}
END_TEST

static void *wait_unwanted(void *arg)
{
	const struct reader_thread *t = arg;
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_lru_entry *e;
	unsigned asked = 0;

	h5_interrupt_begin(never_wanted, &asked);
	ck_assert_int_eq(h5_lru_get(t->lru, &key, load, t->loader, &e), -EINTR);
	ck_assert_ptr_null(e);
	ck_assert_uint_ge(asked, 1);
	return NULL;
}

static int load_meanwhile(void *arg, void **value, size_t *cost)
{
	struct reader_thread *t = arg;
	pthread_t waiting;

	pthread_create(&waiting, NULL, wait_unwanted, t);
	pthread_join(waiting, NULL);
	return load(t->loader, value, cost);
}

/* The wait for another thread's load ends where nobody wants the result; the load goes on. */
START_TEST(lru_waits_only_while_it_is_wanted)
{
	struct loader l = {0};
	struct reader_thread t = {.loader = &l};
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_lru_entry *e;

	ck_assert_int_eq(h5_lru_open(3500, &t.lru), 0);
	ck_assert_int_eq(h5_lru_get(t.lru, &key, load_meanwhile, &t, &e), 0);
	ck_assert_uint_eq(l.calls, 1);
	h5_lru_put(t.lru, e);
	h5_lru_close(t.lru);
}
END_TEST

/* So does the wait for room. */
START_TEST(lru_waits_for_room_only_while_it_is_wanted)
{
	unsigned asked = 0;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
	ck_assert_int_eq(h5_lru_reserve(lru, (size_t)1 << 40), 0);
	h5_interrupt_begin(never_wanted, &asked);
	ck_assert_int_eq(h5_lru_reserve(lru, (size_t)1 << 40), -EINTR);
	ck_assert_uint_ge(asked, 1);
	h5_interrupt_begin(NULL, NULL);
	/* It has left the queue, and has taken no room. */
	h5_lru_unreserve(lru, (size_t)1 << 40);
	ck_assert_int_eq(h5_lru_reserve(lru, (size_t)1 << 41), 0);
	h5_lru_unreserve(lru, (size_t)1 << 41);
	h5_lru_close(lru);
}
END_TEST

UNIT_MAIN("lru", lru_keeps_the_latest_within_its_budget, lru_keeps_a_value_over_its_budget,
	  lru_does_not_cache_failures, lru_values_may_hold_references, lru_releases_what_leaves_it,
	  lru_loads_once, lru_tells_what_is_being_loaded, lru_forgets_what_is_dropped, lru_loads_ahead_once,
	  lru_keeps_the_last_one_that_nobody_has_yet, lru_keeps_the_last_idle_one_beside_those_in_use,
	  lru_does_not_keep_what_is_large, lru_takes_what_it_is_given, lru_forgets_all_but_a_kind,
	  lru_reserves_within_its_budget, lru_evicts_for_what_is_reserved, lru_waits_only_while_it_is_wanted,
	  lru_waits_for_room_only_while_it_is_wanted, lru_tells_the_end_of_a_load,
	  lru_tells_when_there_is_room, lru_charges_what_is_over_its_budget)
