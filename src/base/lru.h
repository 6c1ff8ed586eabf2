/* LRU cache of decoded things with a byte budget; one mechanism for index blocks and for chunks.
 *
 * A value is immutable and reference-counted. A miss loads outside the lock, behind an in-flight marker:
 * whoever asks for the same key meanwhile waits, so nothing is loaded twice. Failures are not cached. A wait
 * ends with -EINTR by h5_interrupt_check(). Values in use may take the cache over its budget, and are then
 * charged to the request that loads them (base/room.h); they are evicted, least recently used first, once
 * they are put back. What making values takes for a while is part of
 * the budget, too, where it is reserved.
 *
 * A loader may itself get other keys; the order of kinds in doc/locking.md keeps such chains free of cycles.
 */
#ifndef H5_BASE_LRU_H
#define H5_BASE_LRU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is cached: a constant vtable for each kind of value; its address is part of the key. */
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

/* A reference to the value of the key, loaded where it isn't there; until h5_lru_put(). */
int h5_lru_get(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg,
	       struct h5_lru_entry **entry);
/* The same, but -EAGAIN at once where another thread is loading it. */
int h5_lru_try(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg,
	       struct h5_lru_entry **entry);
/* A reference to the value if it is there; false: it isn't, or is being loaded. */
bool h5_lru_find(struct h5_lru *lru, const struct h5_lru_key *key, struct h5_lru_entry **entry);
/* True: the value is there or is being loaded. */
bool h5_lru_has(struct h5_lru *lru, const struct h5_lru_key *key);
/* The value stays valid until the reference is put. */
const void *h5_lru_value(const struct h5_lru_entry *entry);
/* NULL is fine. */
void h5_lru_put(struct h5_lru *lru, struct h5_lru_entry *entry);
/* As h5_lru_put() for a value that nobody is expected to ask for again: it is forgotten. */
void h5_lru_drop(struct h5_lru *lru, struct h5_lru_entry *entry);

/* Forgets all values under the owner's address, of every kind and variant: what is referenced lives on, but
 * is not found again. None of them may be loading. */
void h5_lru_forget(struct h5_lru *lru, uint64_t owner, uint64_t address);

/* Makes room in the budget for n bytes that work needs for a while: evicts, and waits for its turn while
 * others have reserved so much that they do not fit. One who is alone gets whatever it asks for. Who has
 * reserved must not wait for others, nor reserve more of the same. -EINTR. */
int h5_lru_reserve(struct h5_lru *lru, size_t n);
void h5_lru_unreserve(struct h5_lru *lru, size_t n);

/* Of the budget n bytes are used elsewhere: by requests that are counted in base/room.h. Evicts. */
void h5_lru_press(struct h5_lru *lru, size_t n);

void h5_lru_stats(struct h5_lru *lru, struct h5_lru_stats *stats);

#endif
