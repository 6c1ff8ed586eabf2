#include "dataset/places.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

void h5_places_init(struct h5_places *places, unsigned rank, uint64_t chunk_size)
{
	*places = (struct h5_places){.rank = rank, .chunk_size = chunk_size};
	places->end = &places->first;
}

void h5_places_release(struct h5_places *places)
{
	while (places->first)
		h5_places_remove(places, &places->first);
	free(places->buckets);
	places->buckets = NULL;
	places->bucket_count = 0;
}

static struct h5_place **bucket_of(const struct h5_places *places, const uint64_t *scaled)
{
	uint64_t hash = 0;

	for (unsigned i = 0; i < places->rank; i++)
		hash = (hash + scaled[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return &places->buckets[(hash >> 32) % places->bucket_count];
}

static bool is_at(const struct h5_places *places, const struct h5_place *place, const uint64_t *scaled)
{
	return !memcmp(place->scaled, scaled, places->rank * sizeof *scaled);
}

struct h5_place *h5_places_find(struct h5_places *places, const uint64_t *scaled)
{
	struct h5_place *place = places->last_found;

	if (place && is_at(places, place, scaled))
		return place;
	place = places->bucket_count ? *bucket_of(places, scaled) : NULL;
	while (place && !is_at(places, place, scaled))
		place = place->chain;
	if (place)
		places->last_found = place;
	return place;
}

static int grow(struct h5_places *places)
{
	size_t n = places->bucket_count ? 2 * places->bucket_count : 16;
	struct h5_place **buckets = calloc(n, sizeof *buckets);

	if (!buckets)
		return h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	free(places->buckets);
	places->buckets = buckets;
	places->bucket_count = n;
	for (struct h5_place *place = places->first; place; place = place->next) {
		struct h5_place **bucket = bucket_of(places, place->scaled);

		place->chain = *bucket;
		*bucket = place;
	}
	return 0;
}

static size_t place_size(const struct h5_places *places)
{
	return sizeof(struct h5_place) + places->rank * sizeof(uint64_t);
}

int h5_places_add(struct h5_places *places, const uint64_t *scaled, const struct h5_chunk *stored,
		  struct h5_place **out)
{
	struct h5_place *place, **bucket;
	int rc = places->count < places->bucket_count ? 0 : grow(places);

	if (rc)
		return rc;
	place = calloc(1, place_size(places));
	if (!place)
		return h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	place->stored = *stored;
	memcpy(place->scaled, scaled, places->rank * sizeof *scaled);
	bucket = bucket_of(places, scaled);
	place->chain = *bucket;
	*bucket = place;
	*places->end = place;
	places->end = &place->next;
	places->count++;
	places->bytes += place_size(places);
	places->last_found = place;
	*out = place;
	return 0;
}

void h5_places_hold(struct h5_places *places, struct h5_place *place, uint8_t *data)
{
	place->data = data;
	places->bytes += (size_t)places->chunk_size;
}

void h5_places_remove(struct h5_places *places, struct h5_place **at)
{
	struct h5_place *place = *at, **link = bucket_of(places, place->scaled);

	while (*link != place)
		link = &(*link)->chain;
	*link = place->chain;
	*at = place->next;
	if (places->end == &place->next)
		places->end = at;
	if (places->last_found == place)
		places->last_found = NULL;
	places->count--;
	places->bytes -= place_size(places) + (place->data ? (size_t)places->chunk_size : 0);
	free(place->data);
	free(place);
}
