#include "base/pool.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/room.h"
#include "base/thread.h"
#include "base/wait.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include <utlist.h>

/* Parts of one piece of work. */
struct batch {
	h5_pool_part *part;
	void (*done)(void *arg); /* NULL: a thread waits for it in h5_pool_run() */
	void *arg;
	size_t count;
	struct h5_interrupt interrupt; /* what h5_interrupt_check() asks in the parts */
	struct h5_account *account;    /* to which the parts charge memory; NULL: nothing is counted */
	/* lock: */
	size_t next;		    /* the first part that has not begun */
	unsigned running;	    /* parts that have begun and not ended */
	size_t failed;		    /* the lowest part that has failed; count: none has */
	struct h5_error error;	    /* of the part `failed` */
	struct batch *prev, *after; /* in the pool's list, as long as next < count */
};

struct h5_pool {
	pthread_mutex_t lock; /* guards all below, and what struct batch says */
	pthread_cond_t work;  /* there is work, or the pool is closing */
	pthread_cond_t ended; /* a batch that a thread waits for has no running part any more */
	struct batch *awaited, *background;
	pthread_t *threads;
	atomic_uint wanted; /* also read without the lock */
	unsigned started, idle;
	bool closing;
};

int h5_pool_open(unsigned workers, struct h5_pool **out)
{
	struct h5_pool *pool = calloc(1, sizeof *pool);

	if (pool)
		pool->threads = calloc((size_t)workers + 1, sizeof *pool->threads);
	if (!pool || !pool->threads) {
		free(pool);
		return -ENOMEM;
	}
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_cond_init(&pool->ended, NULL);
	pool->wanted = workers;
	*out = pool;
	return 0;
}

unsigned h5_pool_workers(const struct h5_pool *pool)
{
	return pool->wanted;
}

static struct batch **list_of(struct h5_pool *pool, const struct batch *b)
{
	return b->done ? &pool->background : &pool->awaited;
}

/* Takes the batch off its list, so that no further part of it begins. */
static void retire(struct h5_pool *pool, struct batch *b)
{
	b->next = b->count;
	DL_DELETE2(*list_of(pool, b), b, prev, after);
}

/* Begins the next part of the batch; returns its number. */
static size_t begin_part(struct h5_pool *pool, struct batch *b)
{
	size_t i = b->next;

	assert(i < b->count);
	if (i + 1 == b->count)
		retire(pool, b);
	else
		b->next = i + 1;
	b->running++;
	return i;
}

static bool is_over(const struct batch *b)
{
	return b->next == b->count && !b->running;
}

/* Runs the part without the lock. */
static void run_part(struct h5_pool *pool, struct batch *b, size_t i)
{
	int rc;

	pthread_mutex_unlock(&pool->lock);
	rc = b->part(b->arg, i);
	pthread_mutex_lock(&pool->lock);
	if (rc && i < b->failed) {
		b->failed = i;
		b->error = *h5_error_last();
		if (b->error.code != rc)
			b->error = (struct h5_error){.code = rc, .address = H5_UNDEF};
	}
	if (rc && b->next < b->count)
		retire(pool, b);
	assert(b->running);
	b->running--;
}

/* A worker calls it after one of the batch's parts. */
static void end_batch(struct h5_pool *pool, struct batch *b)
{
	if (!is_over(b))
		return;
	if (!b->done) {
		pthread_cond_broadcast(&pool->ended);
		return;
	}
	pthread_mutex_unlock(&pool->lock);
	b->done(b->arg);
	free(b);
	pthread_mutex_lock(&pool->lock);
}

static void *work(void *arg)
{
	struct h5_pool *pool = arg;

	/* Each thread names itself, since naming another one opens a file in /proc. */
	pthread_setname_np(pthread_self(), "h5fs-worker");
	pthread_mutex_lock(&pool->lock);
	while (!pool->closing) {
		struct batch *b = pool->awaited ? pool->awaited : pool->background;

		if (b) {
			h5_interrupt_set(&b->interrupt);
			h5_account_set(b->account);
			run_part(pool, b, begin_part(pool, b));
			end_batch(pool, b);
			continue;
		}
		pool->idle++;
		pthread_cond_wait(&pool->work, &pool->lock);
		pool->idle--;
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

static void start_threads(struct h5_pool *pool)
{
	while (pool->started < pool->wanted && !h5_thread_start(&pool->threads[pool->started], work, pool, 0))
		pool->started++;
	/* If a thread cannot be started, no more are tried. */
	pool->wanted = pool->started;
}

static void add_batch(struct h5_pool *pool, struct batch *b, size_t helpers)
{
	struct batch **list = list_of(pool, b);

	start_threads(pool);
	DL_APPEND2(*list, b, prev, after);
	if (helpers >= pool->idle)
		pthread_cond_broadcast(&pool->work);
	else
		for (size_t i = 0; i < helpers; i++)
			pthread_cond_signal(&pool->work);
}

static int run_alone(h5_pool_part *part, void *arg, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++)
		rc = part(arg, i);
	return rc;
}

int h5_pool_run(struct h5_pool *pool, h5_pool_part *part, void *arg, size_t n)
{
	struct batch b = {.part = part, .arg = arg, .count = n, .failed = n};

	if (n < 2)
		return run_alone(part, arg, n);
	h5_wait_begins();
	h5_interrupt_get(&b.interrupt);
	b.account = h5_account_get();
	pthread_mutex_lock(&pool->lock);
	add_batch(pool, &b, n - 1);
	while (b.next < b.count)
		run_part(pool, &b, begin_part(pool, &b));
	while (b.running)
		pthread_cond_wait(&pool->ended, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
	return b.failed < n ? h5_fail(b.error.code, b.error.address, "%s", b.error.text) : 0;
}

void h5_pool_start(struct h5_pool *pool, h5_pool_part *part, void (*done)(void *arg), void *arg, size_t n)
{
	struct batch *b = n ? calloc(1, sizeof *b) : NULL;

	if (b) {
		*b = (struct batch){.part = part, .done = done, .arg = arg, .count = n, .failed = n};
		pthread_mutex_lock(&pool->lock);
		start_threads(pool);
		if (pool->started && !pool->closing) {
			add_batch(pool, b, n);
			b = NULL;
			done = NULL;
		}
		pthread_mutex_unlock(&pool->lock);
	}
	if (done)
		done(arg);
	free(b);
}

void h5_pool_close(struct h5_pool *pool)
{
	struct batch *b, *next;

	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->closing = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool->started; i++)
		pthread_join(pool->threads[i], NULL);
	assert(!pool->awaited);
	/* No part of the batches that are left runs any more. */
	DL_FOREACH_SAFE2(pool->background, b, next, after)
	{
		b->done(b->arg);
		free(b);
	}
	assert(!pool->idle);
	pthread_cond_destroy(&pool->ended);
	pthread_cond_destroy(&pool->work);
	h5_mutex_destroy(&pool->lock);
	free(pool->threads);
	free(pool);
}
