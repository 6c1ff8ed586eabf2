/* The mappings of one virtual dataset, in a form in which those for a range of its elements are found. */
#ifndef H5_DATASET_VIRTUAL_MAP_H
#define H5_DATASET_VIRTUAL_MAP_H

#include "dataset/dataset.h"
#include "dataset/selection_walk.h"

struct h5_virtual_entry {
	const char *file, *dataset; /* of the source */
	struct h5_shape *source, *virtual;
	uint64_t begin, end; /* positions in the virtual dataset that hold the mapping's elements */
	uint64_t order;	     /* number among the stored mappings; a later one overrides an earlier one */
};

struct h5_virtual_map; /* immutable */

/* A reference to the map of a virtual dataset, through the block cache; h5_file_put() gives it back. */
int h5_virtual_map_get(const struct h5_dataset *dataset, struct h5_lru_entry **ref,
		       const struct h5_virtual_map **map);

/* The mappings that may have elements in the positions [begin, end), the last one first. *hits is the
 * caller's, free(); the entries live as long as the map. */
int h5_virtual_map_find(const struct h5_virtual_map *map, uint64_t begin, uint64_t end,
			const struct h5_virtual_entry ***hits, size_t *count);

#endif
