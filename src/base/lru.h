/* LRU cache of decoded values with a budget in bytes, for index blocks and for chunks.
 *
 * A value is immutable and reference-counted. A miss loads the value outside the lock, and marks the key
 * meanwhile: other threads that ask for it wait, so nothing is loaded twice. Failures are not cached. A wait
 * may end with -EINTR (h5_interrupt_check()). Values in use may take the cache over its budget; then they are
 * charged to the request that loads them (base/room.h). Values that are not in use are evicted, the least
 * recently used first. Memory that loaders need for a while can be reserved in the same budget.
 *
 * A loader may itself get other keys; the order of kinds in doc/locking.md keeps such chains free of cycles.
 */
#ifndef H5_BASE_LRU_H
#define H5_BASE_LRU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One constant for each kind of value. Its address is part of the key. */
struct h5_lru_kind {
	const char *name;
	void (*release)(
		void *value); /* runs without the cache's lock: it may put references that the value holds */
};

struct h5_lru_key {
	const struct h5_lru_kind *kind;
	uint64_t owner;	  /* the open file */
	uint64_t address; /* in that file */
	uint64_t variant; /* whatever else the decoded form depends on: header address, rank, ...; 0: nothing
			   */
};

struct h5_lru;
struct h5_lru_entry; /* a reference to a cached value */

struct h5_lru_stats {
	uint64_t hits, misses, evictions;
	size_t bytes, entries;
};

/* On success *value (owned by the cache from then on) and *cost, its bytes. */
typedef int h5_lru_load(void *arg, void **value, size_t *cost);

int h5_lru_open(size_t budget, struct h5_lru **lru);
/* All references must have been put. NULL is fine. */
void h5_lru_close(struct h5_lru *lru);

/* Gives a reference to the value of the key, which is loaded if it is not there. To be put back by
 * h5_lru_put(). */
int h5_lru_get(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg,
	       struct h5_lru_entry **entry);
/* The same, but -EAGAIN at once if another thread is loading the value. */
int h5_lru_try(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg,
	       struct h5_lru_entry **entry);
/* Gives a reference to the value if it is there. False: it is not, or it is being loaded. */
bool h5_lru_find(struct h5_lru *lru, const struct h5_lru_key *key, struct h5_lru_entry **entry);
/* True: the value is there or is being loaded. */
bool h5_lru_has(struct h5_lru *lru, const struct h5_lru_key *key);
/* The value stays valid until the reference is put. */
const void *h5_lru_value(const struct h5_lru_entry *entry);
/* NULL is fine. */
void h5_lru_put(struct h5_lru *lru, struct h5_lru_entry *entry);
/* As h5_lru_put(), after so many bytes of the value were used. Once all of them were, by all threads
 * together, the cache drops the value: nobody is expected to ask for it again. */
void h5_lru_put_used(struct h5_lru *lru, struct h5_lru_entry *entry, uint64_t used, uint64_t all);

/* True: the value is not there, and nobody is loading it. Then h5_lru_load_ahead() shall load it, unless
 * somebody else does so first. */
bool h5_lru_plan(struct h5_lru *lru, const struct h5_lru_key *key);
/* Loads a value that was planned, and gives no reference. Does nothing if another thread is loading it, or if
 * it has been loaded, even if it was dropped since: then it comes too late. (If many were dropped since, it
 * may be loaded again.) */
int h5_lru_load_ahead(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg);

/* Gives the cache a value that it has not got and that nobody is loading. It owns the value from now on;
 * without memory it releases the value. */
void h5_lru_add(struct h5_lru *lru, const struct h5_lru_key *key, void *value, size_t cost);

/* Forgets all values at the owner's address, of every kind and variant; not those of the kind `but` (NULL:
 * none). Values with references live on, but are not found again. None of them may be loading. */
void h5_lru_forget(struct h5_lru *lru, uint64_t owner, uint64_t address, const struct h5_lru_kind *but);

/* Reserves n bytes of the budget for work that needs them for a while: evicts values, and waits for its turn
 * as long as others have reserved so much that the n bytes do not fit. If nobody else has reserved anything,
 * it gets any number of bytes. A thread that has reserved bytes must not wait for other threads, and must not
 * reserve more. -EINTR. */
int h5_lru_reserve(struct h5_lru *lru, size_t n);
void h5_lru_unreserve(struct h5_lru *lru, size_t n);

/* Takes n bytes from the budget, since requests use them (base/room.h). Evicts values that do not fit any
 * more. */
void h5_lru_press(struct h5_lru *lru, size_t n);

void h5_lru_stats(struct h5_lru *lru, struct h5_lru_stats *stats);

#endif
