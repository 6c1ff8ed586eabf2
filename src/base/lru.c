#include "base/lru.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/room.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define HASH_NONFATAL_OOM	       1
#define HASH_FUNCTION(key, size, hash) ((hash) = hash_key(key))
#include <uthash.h>
#include <utlist.h>

struct place_key {
	uint64_t owner, address;
};

/* Multiplying spreads all bits upwards. */
static unsigned hash_key(const struct place_key *key)
{
	uint64_t h = (key->owner + 1) * 0x9e3779b97f4a7c15 ^ key->address;

	return (unsigned)((h ^ h >> 32) * 0xd6e8feb86659fd93 >> 32);
}

/* All that is cached under one address. */
struct place {
	struct place_key key;
	struct h5_lru_entry *entries; /* by `others`; never NULL */
	UT_hash_handle hh;
};

struct h5_lru_entry {
	struct h5_lru_key key;
	struct place *place; /* lock: NULL: forgotten; released with its last reference */
	void *value;
	size_t cost;
	struct h5_charge charge;	  /* of the thread that loaded it, until it is first put back; lock */
	unsigned references;		  /* lock */
	bool loading;			  /* lock: in flight, value not there */
	struct h5_lru_entry *others;	  /* lock: the next one of the place, of another kind or variant */
	struct h5_lru_entry *prev, *next; /* lock: recency, head is the latest; only where references is 0 */
};

/* One who waits for room. */
struct h5_lru_turn {
	struct h5_lru_turn *prev, *next;
};

/* What may be reserved at once however small the budget is, and what may be kept of one value. */
static const size_t RESERVED_LEAST = (size_t)32 << 20, KEPT_MOST = (size_t)32 << 20;

struct h5_lru {
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t loaded;
	pthread_cond_t room;
	struct place *table;
	struct h5_lru_entry *idle; /* entries without references */
	size_t budget, reserved;
	size_t pressed;		   /* bytes of the budget that are used elsewhere */
	struct h5_lru_turn *turns; /* the first is the next one */
	struct h5_lru_stats stats;
};

int h5_lru_open(size_t budget, struct h5_lru **out)
{
	struct h5_lru *lru = calloc(1, sizeof *lru);
	pthread_condattr_t attributes;

	if (!lru)
		return -ENOMEM;
	pthread_mutex_init(&lru->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&lru->loaded, &attributes);
	pthread_cond_init(&lru->room, &attributes);
	pthread_condattr_destroy(&attributes);
	lru->budget = budget;
	*out = lru;
	return 0;
}

static struct place *find_place(struct h5_lru *lru, uint64_t owner, uint64_t address)
{
	struct place *place, sought = {.key = {owner, address}};

	HASH_FIND(hh, lru->table, &sought.key, sizeof sought.key, place);
	return place;
}

/* The place, made where there is none; NULL without memory. */
static struct place *make_place(struct h5_lru *lru, uint64_t owner, uint64_t address)
{
	struct place *place = find_place(lru, owner, address);

	if (place)
		return place;
	place = calloc(1, sizeof *place);
	if (!place)
		return NULL;
	place->key.owner = owner;
	place->key.address = address;
	HASH_ADD(hh, lru->table, key, sizeof place->key, place);
	if (!place->hh.tbl) {
		free(place);
		return NULL;
	}
	return place;
}

/* The entry is found no more. */
static void unlink_entry(struct h5_lru *lru, struct h5_lru_entry *e)
{
	struct place *place = e->place;

	LL_DELETE2(place->entries, e, others);
	e->place = NULL;
	if (place->entries)
		return;
	HASH_DEL(lru->table, place);
	free(place);
}

/* No longer counted; the caller releases it. */
static void drop(struct h5_lru *lru, struct h5_lru_entry *e)
{
	lru->stats.bytes -= e->cost;
	lru->stats.entries--;
}

/* The part of these bytes that is neither reserved nor used elsewhere. */
static size_t what_is_left(const struct h5_lru *lru, size_t most)
{
	size_t away = lru->reserved + lru->pressed;

	return most > away ? most - away : 0;
}

/* Takes what is over the budget, the least recently used first, but with `keep` not the last one, unless it
 * is large; a list by
 * `next` for release_all(). */
static struct h5_lru_entry *evict(struct h5_lru *lru, size_t most, bool keep)
{
	size_t budget = what_is_left(lru, most);
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

/* Outside the lock: a value may hold references to others, which it puts. */
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
	pthread_cond_destroy(&lru->room);
	pthread_cond_destroy(&lru->loaded);
	pthread_mutex_destroy(&lru->lock);
	free(lru);
}

static struct h5_lru_entry *find(struct h5_lru *lru, const struct h5_lru_key *key)
{
	struct place *place = find_place(lru, key->owner, key->address);
	struct h5_lru_entry *e = place ? place->entries : NULL;

	while (e && (e->key.kind != key->kind || e->key.variant != key->variant))
		e = e->others;
	return e;
}

/* A new in-flight entry with one reference; NULL without memory. */
static struct h5_lru_entry *insert(struct h5_lru *lru, const struct h5_lru_key *key)
{
	struct h5_lru_entry *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	e->place = make_place(lru, key->owner, key->address);
	if (!e->place) {
		free(e);
		return NULL;
	}
	e->key = *key;
	e->references = 1;
	e->loading = true;
	LL_PREPEND2(e->place->entries, e, others);
	return e;
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
		e->value = value;
		e->cost = cost + sizeof *e;
		lru->stats.bytes += e->cost;
		lru->stats.entries++;
	}
	pthread_cond_broadcast(&lru->loaded);
	return rc;
}

/* Waits until something has happened, or it is time to ask whether the wait still makes sense. */
static int wait_for(struct h5_lru *lru, pthread_cond_t *what)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	pthread_cond_timedwait(what, &lru->lock, &until);
	return h5_interrupt_check();
}

/* One more reference to a value that is there. */
static void refer(struct h5_lru *lru, struct h5_lru_entry *e)
{
	lru->stats.hits++;
	if (!e->references++)
		DL_DELETE(lru->idle, e);
}

/* The request is charged for the bytes over the budget. */
static int charge(struct h5_lru *lru, struct h5_lru_entry *e)
{
	struct h5_charge made = {0};
	int rc = h5_charge_set(&made, e->cost);

	if (rc) {
		h5_lru_drop(lru, e);
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
		over = !rc && lru->stats.bytes > what_is_left(lru, lru->budget);
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

static void put(struct h5_lru *lru, struct h5_lru_entry *e, bool forget)
{
	struct h5_lru_entry *dead = NULL;
	struct h5_charge made = {0};

	if (!e)
		return;
	pthread_mutex_lock(&lru->lock);
	if (forget && e->place)
		unlink_entry(lru, e);
	if (e->references == 1) {
		made = e->charge;
		e->charge = (struct h5_charge){0};
	}
	if (!--e->references && !e->place) {
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

void h5_lru_put(struct h5_lru *lru, struct h5_lru_entry *e)
{
	put(lru, e, false);
}

void h5_lru_drop(struct h5_lru *lru, struct h5_lru_entry *e)
{
	put(lru, e, true);
}

void h5_lru_forget(struct h5_lru *lru, uint64_t owner, uint64_t address)
{
	struct h5_lru_entry *dead = NULL;
	struct place *place;

	pthread_mutex_lock(&lru->lock);
	while ((place = find_place(lru, owner, address))) {
		struct h5_lru_entry *e = place->entries;

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

	return !lru->reserved || n <= what_is_left(lru, most);
}

/* In the order of coming: much room would never be there while others come for little. */
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
