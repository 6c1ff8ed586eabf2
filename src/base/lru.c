#include "base/lru.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/hash_table.h"
#include "base/interrupt.h"
#include "base/room.h"
#include "base/thread.h"
#include "base/wait.h"
#include "base/zalloc.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

struct slot_key {
	uint64_t owner, address;
};

/* All that is cached under one address. */
struct slot {
	struct slot_key key;
	struct h5_lru_entry *entries; /* by `others`; never NULL */
	UT_hash_handle hh;
};

struct h5_lru_entry {
	struct h5_lru_key key;
	struct slot *slot; /* lock; NULL: forgotten, and released with its last reference */
	void *value;
	size_t cost;
	/* lock; of the thread that loaded the value, until the value is first put back */
	struct h5_charge charge;
	uint64_t used;		     /* lock; of h5_lru_put_used(), all together */
	unsigned references;	     /* lock */
	bool loading;		     /* lock; the value is not there yet */
	struct h5_lru_entry *others; /* lock; the next one of the slot, of another kind or variant */
	struct h5_lru_entry *prev,
		*next; /* lock; in `idle` if there are no references; the head was used last */
};

/* A thread that waits for room. */
struct h5_lru_turn {
	struct h5_lru_turn *prev, *next;
};

/* Bytes that may always be reserved at once, and that may always be kept of one value, if the budget is
 * smaller. */
static const size_t RESERVED_LEAST = (size_t)32 << 20, KEPT_MOST = (size_t)32 << 20;

enum { DROPPED = 1024 }; /* keys that were dropped last; some are overwritten before */

struct h5_lru {
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t loaded;
	pthread_cond_t room;
	struct slot *table;
	struct slot *spare;	   /* of the last address that was forgotten, for the next one; NULL: none */
	struct h5_lru_entry *idle; /* entries without references */
	size_t budget, reserved;
	size_t pressed;		   /* bytes of the budget that requests use */
	struct h5_lru_turn *turns; /* the first is the next one */
	unsigned dropped[DROPPED]; /* hashes of keys, each at the index hash % DROPPED */
	struct h5_lru_stats stats;
};

int h5_lru_open(size_t budget, struct h5_lru **out)
{
	struct h5_lru *lru = calloc(1, sizeof *lru);

	if (!lru)
		return -ENOMEM;
	pthread_mutex_init(&lru->lock, NULL);
	h5_thread_cond_init(&lru->loaded);
	h5_thread_cond_init(&lru->room);
	lru->budget = budget;
	*out = lru;
	return 0;
}

static struct slot *find_slot(struct h5_lru *lru, uint64_t owner, uint64_t address)
{
	struct slot *slot, sought = {.key = {owner, address}};

	HASH_FIND(hh, lru->table, &sought.key, sizeof sought.key, slot);
	return slot;
}

/* All zero; NULL: no memory. */
static struct slot *new_slot(struct h5_lru *lru)
{
	struct slot *slot = lru->spare;

	if (!slot)
		return h5_zalloc(sizeof *slot);
	lru->spare = NULL;
	memset(slot, 0, sizeof *slot);
	return slot;
}

static void free_slot(struct h5_lru *lru, struct slot *slot)
{
	free(lru->spare);
	lru->spare = slot;
}

/* The slot, which is made if there is none; NULL: no memory. */
static struct slot *make_slot(struct h5_lru *lru, uint64_t owner, uint64_t address)
{
	struct slot *slot = find_slot(lru, owner, address);

	if (slot)
		return slot;
	slot = new_slot(lru);
	if (!slot)
		return NULL;
	slot->key.owner = owner;
	slot->key.address = address;
	HASH_ADD(hh, lru->table, key, sizeof slot->key, slot);
	if (!slot->hh.tbl) {
		free_slot(lru, slot);
		return NULL;
	}
	return slot;
}

/* Takes the entry out of the table. */
static void unlink_entry(struct h5_lru *lru, struct h5_lru_entry *e)
{
	struct slot *slot = e->slot;

	assert(slot);
	LL_DELETE2(slot->entries, e, others);
	e->slot = NULL;
	if (slot->entries)
		return;
	HASH_DEL(lru->table, slot);
	free_slot(lru, slot);
}

/* Takes an idle entry out of the cache; the caller releases it. */
static void drop(struct h5_lru *lru, struct h5_lru_entry *e)
{
	assert(!e->references && !e->loading && lru->stats.entries && lru->stats.bytes >= e->cost);
	lru->stats.bytes -= e->cost;
	lru->stats.entries--;
}

/* Returns what is left of `most` bytes after reserved memory and the memory of requests; at least 0. */
static size_t budget_left(const struct h5_lru *lru, size_t most)
{
	size_t away = lru->reserved + lru->pressed;

	return most > away ? most - away : 0;
}

/* Takes out idle entries until the rest fits into `most` bytes, the least recently used first. With `keep`
 * the last idle one stays, unless it is large. Returns a list by `next`, for release_all(). */
static struct h5_lru_entry *evict(struct h5_lru *lru, size_t most, bool keep)
{
	size_t budget = budget_left(lru, most);
	struct h5_lru_entry *dead = NULL;

	while (lru->idle && lru->stats.bytes > budget) {
		struct h5_lru_entry *e = lru->idle->prev;

		if (keep && e == lru->idle && e->cost <= h5_max(lru->budget, KEPT_MOST))
			break;
		DL_DELETE(lru->idle, e);
		unlink_entry(lru, e);
		drop(lru, e);
		lru->stats.evictions++;
		LL_PREPEND(dead, e);
	}
	return dead;
}

/* To be called without the lock: a value may hold references to others, and gives them back. */
static void release_all(struct h5_lru_entry *dead)
{
	struct h5_lru_entry *e, *next;

	LL_FOREACH_SAFE(dead, e, next)
	{
		e->key.kind->release(e->value);
		free(e);
	}
}

void h5_lru_close(struct h5_lru *lru)
{
	struct h5_lru_entry *dead;

	if (!lru)
		return;
	while ((dead = evict(lru, 0, false)))
		release_all(dead);
	assert(!lru->table && !lru->reserved && !lru->turns && !lru->stats.entries && !lru->stats.bytes);
	pthread_cond_destroy(&lru->room);
	pthread_cond_destroy(&lru->loaded);
	h5_mutex_destroy(&lru->lock);
	free(lru->spare);
	free(lru);
}

static struct h5_lru_entry *find(struct h5_lru *lru, const struct h5_lru_key *key)
{
	struct slot *slot = find_slot(lru, key->owner, key->address);
	struct h5_lru_entry *e = slot ? slot->entries : NULL;

	while (e && (e->key.kind != key->kind || e->key.variant != key->variant))
		e = e->others;
	return e;
}

/* A new entry that is being loaded, with one reference; NULL: no memory. */
static struct h5_lru_entry *insert(struct h5_lru *lru, const struct h5_lru_key *key)
{
	struct h5_lru_entry *e = h5_zalloc(sizeof *e);

	if (!e)
		return NULL;
	e->slot = make_slot(lru, key->owner, key->address);
	if (!e->slot) {
		free(e);
		return NULL;
	}
	e->key = *key;
	e->references = 1;
	e->loading = true;
	LL_PREPEND2(e->slot->entries, e, others);
	return e;
}

static void fill(struct h5_lru *lru, struct h5_lru_entry *e, void *value, size_t cost)
{
	e->value = value;
	e->cost = cost + sizeof *e;
	lru->stats.bytes += e->cost;
	lru->stats.entries++;
}

static int load_entry(struct h5_lru *lru, struct h5_lru_entry *e, h5_lru_load *load, void *arg)
{
	void *value = NULL;
	size_t cost = 0;
	int rc;

	pthread_mutex_unlock(&lru->lock);
	rc = load(arg, &value, &cost);
	pthread_mutex_lock(&lru->lock);
	e->loading = false;
	if (rc) {
		unlink_entry(lru, e);
		free(e);
	} else {
		fill(lru, e, value, cost);
	}
	pthread_cond_broadcast(&lru->loaded);
	return rc;
}

/* Waits until something has happened, or until it is time to ask whether the request is still wanted. */
static int wait_for(struct h5_lru *lru, pthread_cond_t *what)
{
	h5_wait_begins();
	h5_thread_wait_a_second(what, &lru->lock);
	return h5_interrupt_check();
}

/* One more reference to a value that is there. */
static void refer(struct h5_lru *lru, struct h5_lru_entry *e)
{
	lru->stats.hits++;
	if (!e->references++)
		DL_DELETE(lru->idle, e);
}

/* Charges the request for the bytes over the budget. */
static int charge(struct h5_lru *lru, struct h5_lru_entry *e)
{
	struct h5_charge made = {0};
	int rc = h5_charge_set(&made, e->cost);

	if (rc) {
		h5_lru_put_used(lru, e, 1, 1);
		return rc;
	}
	pthread_mutex_lock(&lru->lock);
	e->charge = made;
	pthread_mutex_unlock(&lru->lock);
	return 0;
}

static int get(struct h5_lru *lru, const struct h5_lru_key *key, bool wait, h5_lru_load *load, void *arg,
	       struct h5_lru_entry **entry)
{
	struct h5_lru_entry *e, *dead = NULL;
	bool over = false;
	int rc = 0;

	pthread_mutex_lock(&lru->lock);
	while ((e = find(lru, key)) && e->loading && !rc)
		rc = wait ? wait_for(lru, &lru->loaded) : -EAGAIN;
	if (rc) {
		e = NULL;
	} else if (e) {
		refer(lru, e);
	} else {
		lru->stats.misses++;
		e = insert(lru, key);
		rc = e ? load_entry(lru, e, load, arg) : h5_fail(-ENOMEM, key->address, "out of memory");
		dead = evict(lru, lru->budget, true);
		over = !rc && lru->stats.bytes > budget_left(lru, lru->budget);
	}
	pthread_mutex_unlock(&lru->lock);
	release_all(dead);
	if (over)
		rc = charge(lru, e);
	*entry = rc ? NULL : e;
	return rc;
}

int h5_lru_get(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg,
	       struct h5_lru_entry **entry)
{
	return get(lru, key, true, load, arg, entry);
}

int h5_lru_try(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg,
	       struct h5_lru_entry **entry)
{
	return get(lru, key, false, load, arg, entry);
}

bool h5_lru_find(struct h5_lru *lru, const struct h5_lru_key *key, struct h5_lru_entry **entry)
{
	struct h5_lru_entry *e;

	pthread_mutex_lock(&lru->lock);
	e = find(lru, key);
	if (e && e->loading)
		e = NULL;
	if (e)
		refer(lru, e);
	pthread_mutex_unlock(&lru->lock);
	*entry = e;
	return e;
}

/* ---- loading ahead ---- */

/* Keys of the same hash are taken for one another, which does no harm: a value is not loaded ahead. */
static unsigned hash_dropped(const struct h5_lru_key *key)
{
	const uint64_t all[] = {key->owner, key->variant, key->address};

	return h5_hash(all, sizeof all);
}

bool h5_lru_plan(struct h5_lru *lru, const struct h5_lru_key *key)
{
	unsigned hash = hash_dropped(key);
	bool has;

	pthread_mutex_lock(&lru->lock);
	has = find(lru, key);
	if (!has && lru->dropped[hash % DROPPED] == hash)
		lru->dropped[hash % DROPPED] = 0;
	pthread_mutex_unlock(&lru->lock);
	return !has;
}

int h5_lru_load_ahead(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg)
{
	struct h5_lru_entry *e, *dead = NULL;
	unsigned hash = hash_dropped(key);
	int rc = 0;

	pthread_mutex_lock(&lru->lock);
	if (lru->dropped[hash % DROPPED] != hash && !find(lru, key)) {
		lru->stats.misses++;
		e = insert(lru, key);
		rc = e ? load_entry(lru, e, load, arg) : h5_fail(-ENOMEM, key->address, "out of memory");
		if (!rc) {
			e->references = 0;
			DL_PREPEND(lru->idle, e);
		}
		dead = evict(lru, lru->budget, true);
	}
	pthread_mutex_unlock(&lru->lock);
	release_all(dead);
	return rc;
}

bool h5_lru_has(struct h5_lru *lru, const struct h5_lru_key *key)
{
	bool has;

	pthread_mutex_lock(&lru->lock);
	has = find(lru, key);
	pthread_mutex_unlock(&lru->lock);
	return has;
}

const void *h5_lru_value(const struct h5_lru_entry *entry)
{
	return entry->value;
}

void h5_lru_put_used(struct h5_lru *lru, struct h5_lru_entry *e, uint64_t used, uint64_t all)
{
	struct h5_lru_entry *dead = NULL;
	struct h5_charge made = {0};

	if (!e)
		return;
	pthread_mutex_lock(&lru->lock);
	assert(e->references && !e->loading);
	e->used += used;
	if (e->used >= all && e->slot) {
		unsigned hash = hash_dropped(&e->key);

		unlink_entry(lru, e);
		lru->dropped[hash % DROPPED] = hash;
	}
	if (e->references == 1) {
		made = e->charge;
		e->charge = (struct h5_charge){0};
	}
	if (!--e->references && !e->slot) {
		drop(lru, e);
		LL_PREPEND(dead, e);
	} else if (!e->references) {
		DL_PREPEND(lru->idle, e);
		dead = evict(lru, lru->budget, true);
	}
	pthread_mutex_unlock(&lru->lock);
	release_all(dead);
	h5_charge_release(&made);
}

void h5_lru_add(struct h5_lru *lru, const struct h5_lru_key *key, void *value, size_t cost)
{
	struct h5_lru_entry *e, *dead = NULL;

	pthread_mutex_lock(&lru->lock);
	assert(!find(lru, key));
	e = insert(lru, key);
	if (e) {
		e->loading = false;
		e->references = 0;
		fill(lru, e, value, cost);
		DL_PREPEND(lru->idle, e);
		dead = evict(lru, lru->budget, true);
	}
	pthread_mutex_unlock(&lru->lock);
	release_all(dead);
	if (!e)
		key->kind->release(value);
}

void h5_lru_put(struct h5_lru *lru, struct h5_lru_entry *e)
{
	h5_lru_put_used(lru, e, 0, UINT64_MAX);
}

void h5_lru_forget(struct h5_lru *lru, uint64_t owner, uint64_t address, const struct h5_lru_kind *but)
{
	struct h5_lru_entry *e, *next, *dead = NULL;
	struct slot *slot;

	pthread_mutex_lock(&lru->lock);
	slot = find_slot(lru, owner, address);
	LL_FOREACH_SAFE2(slot ? slot->entries : NULL, e, next, others)
	{
		assert(!e->loading);
		if (e->key.kind == but)
			continue;
		unlink_entry(lru, e);
		if (e->references)
			continue;
		DL_DELETE(lru->idle, e);
		drop(lru, e);
		LL_PREPEND(dead, e);
	}
	pthread_mutex_unlock(&lru->lock);
	release_all(dead);
}

static bool has_room(const struct h5_lru *lru, size_t n)
{
	size_t most = lru->budget > RESERVED_LEAST ? lru->budget : RESERVED_LEAST;

	return !lru->reserved || n <= budget_left(lru, most);
}

/* In the order of arrival: otherwise threads that need little room would keep one that needs much from ever
 * getting it. */
int h5_lru_reserve(struct h5_lru *lru, size_t n)
{
	struct h5_lru_entry *dead = NULL;
	struct h5_lru_turn turn;
	int rc = 0;

	pthread_mutex_lock(&lru->lock);
	DL_APPEND(lru->turns, &turn);
	while (!rc && (lru->turns != &turn || !has_room(lru, n)))
		rc = wait_for(lru, &lru->room);
	DL_DELETE(lru->turns, &turn);
	if (!rc) {
		lru->reserved += n;
		dead = evict(lru, lru->budget, false);
	}
	pthread_cond_broadcast(&lru->room);
	pthread_mutex_unlock(&lru->lock);
	release_all(dead);
	return rc;
}

void h5_lru_unreserve(struct h5_lru *lru, size_t n)
{
	pthread_mutex_lock(&lru->lock);
	assert(lru->reserved >= n);
	lru->reserved -= n;
	pthread_cond_broadcast(&lru->room);
	pthread_mutex_unlock(&lru->lock);
}

void h5_lru_press(struct h5_lru *lru, size_t n)
{
	struct h5_lru_entry *dead;

	pthread_mutex_lock(&lru->lock);
	lru->pressed = n;
	dead = evict(lru, lru->budget, false);
	pthread_cond_broadcast(&lru->room);
	pthread_mutex_unlock(&lru->lock);
	release_all(dead);
}

void h5_lru_stats(struct h5_lru *lru, struct h5_lru_stats *stats)
{
	pthread_mutex_lock(&lru->lock);
	*stats = lru->stats;
	pthread_mutex_unlock(&lru->lock);
}
