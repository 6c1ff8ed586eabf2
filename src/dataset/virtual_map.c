#include "dataset/virtual_map.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "format/virtual_mapping.h"
#include "object/global_heap.h"
#include "store/file_set.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAP_LEAST = 64 << 20,
	MAP_A_BYTE = 32, /* bytes of memory for each stored byte */
	MAP_MOST = 512 << 20,
	COUNTED_LEAST = 1 << 12, /* least stored bytes of a map that may become large */
};

struct h5_virtual_map {
	struct h5_dataspace space; /* the dataspace that the entries were made for */
	uint8_t *block;		   /* the heap object, which holds the names */
	size_t block_size;
	struct h5_virtual_entry *entries; /* by begin */
	/* The entries are a balanced tree: each is the root of the range whose middle it is. This is the
	 * largest end in that range. */
	uint64_t *ends;
	size_t count, cost;
};

static void map_free(void *value)
{
	struct h5_virtual_map *map = value;

	for (size_t i = 0; i < map->count; i++) {
		h5_shape_close(map->entries[i].source);
		h5_shape_close(map->entries[i].virtual);
	}
	free(map->entries);
	free(map->ends);
	free(map->block);
	free(map);
}

static int copy_block(const struct h5_dataset *dataset, struct h5_virtual_map *map)
{
	struct h5_lru_entry *ref = NULL;
	const uint8_t *data;
	int rc = h5_global_heap_get(dataset->file, dataset->layout.virtual.heap,
				    dataset->layout.virtual.index, &ref, &data, &map->block_size);

	if (rc)
		return rc;
	map->block = malloc(map->block_size + 1);
	if (map->block)
		memcpy(map->block, data, map->block_size);
	h5_file_put(dataset->file, ref);
	map->cost = sizeof *map + map->block_size;
	return map->block ? 0 : -ENOMEM;
}

/* Finds where the mapping's elements lie in the virtual dataset. 1: found; 0: it has none there. */
static int find_bounds(const struct h5_dataset *dataset, struct h5_virtual_entry *entry)
{
	const struct h5_dataspace *space = &dataset->space;
	int unlimited = h5_shape_unlimited(entry->virtual), rc;
	struct h5_hyperslab slab;
	struct h5_walk walk;

	if (!h5_shape_has_rank(entry->virtual, space->rank))
		return h5_fail(-EUCLEAN, dataset->address, "virtual dataset: selection of another rank");
	if (unlimited >= 0 &&
	    !h5_shape_cut(entry->virtual, h5_shape_slices(entry->virtual, space->dims[unlimited]), &slab))
		return h5_fail(-EUCLEAN, dataset->address, "virtual dataset: selection beyond 2^64");
	rc = h5_walk_init(&walk, entry->virtual, space->rank, space->dims, &slab);
	if (rc)
		return rc;
	if (!walk.inside)
		return h5_fail(-EUCLEAN, dataset->address, "virtual dataset: selection outside of it");
	if (!walk.count)
		return 0;
	h5_walk_bounds(&walk, &entry->begin, &entry->end);
	return 1;
}

static int add_entry(const struct h5_dataset *dataset, struct h5_virtual_map *map, uint64_t order,
		     struct h5_virtual_mapping *mapping)
{
	struct h5_virtual_entry *entry = &map->entries[map->count];
	/* Another rank is refused below. */
	bool fits = mapping->virtual.rank == dataset->space.rank;
	size_t cost = 0, more = 0;
	int rc = h5_shape_open(&mapping->virtual, fits ? dataset->space.dims : NULL, &entry->virtual, &cost);

	if (!rc)
		rc = h5_shape_open(&mapping->source, NULL, &entry->source, &more);
	entry->file = mapping->file;
	entry->dataset = mapping->dataset;
	entry->order = order;
	if (!rc)
		rc = find_bounds(dataset, entry);
	if (rc == 1) {
		map->count++;
		map->cost += cost + more + sizeof *entry + sizeof *map->ends;
		return 0;
	}
	h5_shape_close(entry->virtual);
	h5_shape_close(entry->source);
	memset(entry, 0, sizeof *entry);
	return rc;
}

static int by_begin(const void *a, const void *b)
{
	const struct h5_virtual_entry *x = a, *y = b;

	return h5_compare(x->begin, y->begin);
}

static uint64_t set_ends(struct h5_virtual_map *map, size_t low, size_t high)
{
	size_t middle = low + (high - low) / 2;
	uint64_t left, right, end;

	if (low == high)
		return 0;
	left = set_ends(map, low, middle);
	right = set_ends(map, middle + 1, high);
	end = map->entries[middle].end;
	end = left > end ? left : end;
	return map->ends[middle] = right > end ? right : end;
}

/* Bytes of memory that a map may take. Blocks that overlap in parts become many more than are stored. */
static size_t most_of(const struct h5_virtual_map *map)
{
	return (size_t)h5_min(MAP_LEAST + MAP_A_BYTE * (uint64_t)map->block_size, MAP_MOST);
}

static int decode(const struct h5_dataset *dataset, struct h5_virtual_map *map)
{
	struct h5_reader r = h5_file_reader(dataset->file, map->block, map->block_size, H5_UNDEF);
	struct h5_virtual_mapping mapping;
	struct h5_virtual_block block;
	int rc = h5_virtual_block_open(&r, &block);

	if (rc)
		return rc;
	map->entries = h5_calloc(block.count + 1, sizeof *map->entries);
	map->ends = h5_calloc(block.count + 1, sizeof *map->ends);
	rc = map->entries && map->ends ? 0 : -ENOMEM;
	for (uint64_t order = 0; !rc; order++) {
		rc = h5_interrupt_check();
		if (!rc)
			rc = h5_virtual_block_next(&block, &mapping);
		if (rc <= 0)
			break;
		rc = add_entry(dataset, map, order, &mapping);
		h5_virtual_mapping_release(&mapping);
		if (!rc && map->cost > most_of(map))
			rc = h5_fail(-EFBIG, dataset->address,
				     "virtual dataset: its mappings take more than %zu bytes of memory",
				     most_of(map));
	}
	h5_virtual_block_release(&block);
	return rc;
}

/* Maps that may become large are decoded one after the other. */
static int decode_counted(const struct h5_dataset *dataset, struct h5_virtual_map *map)
{
	struct h5_lru *budget = h5_file_set_chunks(h5_file_set_of(dataset->file));
	int rc;

	if (map->block_size < COUNTED_LEAST)
		return decode(dataset, map);
	rc = h5_lru_reserve(budget, most_of(map));
	if (rc)
		return rc;
	rc = decode(dataset, map);
	h5_lru_unreserve(budget, most_of(map));
	return rc;
}

static int map_load(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	const struct h5_dataset *dataset = arg;
	struct h5_virtual_map *map = calloc(1, sizeof *map);
	int rc = map ? 0 : -ENOMEM;

	(void)file;
	if (!rc) {
		map->space = dataset->space;
		rc = copy_block(dataset, map);
	}
	if (!rc)
		rc = decode_counted(dataset, map);
	if (rc) {
		if (map)
			map_free(map);
		return rc == -ENOMEM ? h5_fail(rc, address, "virtual dataset: out of memory") : rc;
	}
	qsort(map->entries, map->count, sizeof *map->entries, by_begin);
	set_ends(map, 0, map->count);
	*value = map;
	*cost = map->cost;
	return 0;
}

/* FNV-1a. The dimensions are in the key since they change with the extents of the sources. */
static uint64_t hash_dims(const struct h5_dataspace *space)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (unsigned i = 0; i < space->rank; i++)
		hash = (hash ^ space->dims[i]) * UINT64_C(0x100000001b3);
	return hash;
}

int h5_virtual_map_get(const struct h5_dataset *dataset, struct h5_lru_entry **ref,
		       const struct h5_virtual_map **map)
{
	static const struct h5_block_type type = {{"virtual dataset mappings", map_free}, map_load};
	int rc = h5_file_block(dataset->file, &type, dataset->address, hash_dims(&dataset->space), dataset,
			       ref);

	if (rc)
		return rc;
	*map = h5_lru_value(*ref);
	if ((*map)->space.rank == dataset->space.rank &&
	    !memcmp((*map)->space.dims, dataset->space.dims, dataset->space.rank * sizeof(uint64_t)))
		return 0;
	h5_file_put(dataset->file, *ref);
	return h5_fail(-EUCLEAN, dataset->address, "virtual dataset: extents with the same hash");
}

struct hits {
	const struct h5_virtual_entry **entries;
	size_t count, capacity;
};

static int add_hit(struct hits *hits, const struct h5_virtual_entry *entry)
{
	int rc = h5_array_reserve(&hits->entries, &hits->capacity, hits->count + 1, NULL);

	if (rc)
		return rc;
	hits->entries[hits->count++] = entry;
	return 0;
}

static int search(const struct h5_virtual_map *map, size_t low, size_t high, uint64_t begin, uint64_t end,
		  struct hits *hits)
{
	size_t middle = low + (high - low) / 2;
	const struct h5_virtual_entry *entry = &map->entries[middle];
	int rc;

	if (low == high || map->ends[middle] <= begin)
		return 0;
	rc = search(map, low, middle, begin, end, hits);
	if (rc || entry->begin >= end)
		return rc;
	if (entry->end > begin)
		rc = add_hit(hits, entry);
	return rc ? rc : search(map, middle + 1, high, begin, end, hits);
}

static int by_order_down(const void *a, const void *b)
{
	const struct h5_virtual_entry *x = *(const struct h5_virtual_entry *const *)a;
	const struct h5_virtual_entry *y = *(const struct h5_virtual_entry *const *)b;

	return (x->order < y->order) - (x->order > y->order);
}

int h5_virtual_map_find(const struct h5_virtual_map *map, uint64_t begin, uint64_t end,
			const struct h5_virtual_entry ***out, size_t *count)
{
	struct hits hits = {0};
	int rc = search(map, 0, map->count, begin, end, &hits);

	if (rc) {
		free(hits.entries);
		return rc;
	}
	if (hits.count)
		qsort(hits.entries, hits.count, sizeof *hits.entries, by_order_down);
	*out = hits.entries;
	*count = hits.count;
	return 0;
}
