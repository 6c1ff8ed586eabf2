#include "dataset/known_chunks.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void h5_known_chunks_init(struct h5_known_chunks *all, unsigned rank, uint64_t chunk_size)
{
	*all = (struct h5_known_chunks){.rank = rank, .chunk_size = chunk_size};
	all->end = &all->first;
}

void h5_known_chunks_release(struct h5_known_chunks *all)
{
	while (all->first)
		h5_known_chunk_remove(all, &all->first);
	assert(!all->count && !all->bytes);
	free(all->buckets);
	all->buckets = NULL;
	all->bucket_count = 0;
}

static struct h5_known_chunk **bucket_of(const struct h5_known_chunks *all, const uint64_t *scaled)
{
	uint64_t hash = 0;

	for (unsigned i = 0; i < all->rank; i++)
		hash = (hash + scaled[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return &all->buckets[(hash >> 32) % all->bucket_count];
}

static bool is_at(const struct h5_known_chunks *all, const struct h5_known_chunk *known,
		  const uint64_t *scaled)
{
	return !memcmp(known->scaled, scaled, all->rank * sizeof *scaled);
}

struct h5_known_chunk *h5_known_chunk_find(struct h5_known_chunks *all, const uint64_t *scaled)
{
	struct h5_known_chunk *known = all->last_found;

	if (known && is_at(all, known, scaled))
		return known;
	known = all->bucket_count ? *bucket_of(all, scaled) : NULL;
	while (known && !is_at(all, known, scaled))
		known = known->chain;
	if (known)
		all->last_found = known;
	return known;
}

static int grow(struct h5_known_chunks *all)
{
	size_t n = all->bucket_count ? 2 * all->bucket_count : 16;
	struct h5_known_chunk **buckets = calloc(n, sizeof *buckets);

	if (!buckets)
		return h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	free(all->buckets);
	all->buckets = buckets;
	all->bucket_count = n;
	for (struct h5_known_chunk *known = all->first; known; known = known->next) {
		struct h5_known_chunk **bucket = bucket_of(all, known->scaled);

		known->chain = *bucket;
		*bucket = known;
	}
	return 0;
}

static size_t size_of(const struct h5_known_chunks *all)
{
	return sizeof(struct h5_known_chunk) + all->rank * sizeof(uint64_t);
}

int h5_known_chunk_add(struct h5_known_chunks *all, const uint64_t *scaled, const struct h5_chunk *stored,
		       struct h5_known_chunk **out)
{
	struct h5_known_chunk *known, **bucket;
	int rc = all->count < all->bucket_count ? 0 : grow(all);

	if (rc)
		return rc;
	known = calloc(1, size_of(all));
	if (!known)
		return h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	known->stored = *stored;
	memcpy(known->scaled, scaled, all->rank * sizeof *scaled);
	bucket = bucket_of(all, scaled);
	known->chain = *bucket;
	*bucket = known;
	*all->end = known;
	all->end = &known->next;
	all->count++;
	all->bytes += size_of(all);
	all->last_found = known;
	*out = known;
	return 0;
}

void h5_known_chunk_hold(struct h5_known_chunks *all, struct h5_known_chunk *known, uint8_t *data)
{
	assert(!known->data);
	known->data = data;
	all->bytes += (size_t)all->chunk_size;
}

void h5_known_chunk_remove(struct h5_known_chunks *all, struct h5_known_chunk **at)
{
	struct h5_known_chunk *known = *at, **link = bucket_of(all, known->scaled);

	while (*link != known)
		link = &(*link)->chain;
	*link = known->chain;
	*at = known->next;
	if (all->end == &known->next)
		all->end = at;
	if (all->last_found == known)
		all->last_found = NULL;
	all->count--;
	all->bytes -= size_of(all) + (known->data ? (size_t)all->chunk_size : 0);
	free(known->data);
	free(known);
}
