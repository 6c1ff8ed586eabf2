#include "base/checked.h"
#include "chunk_index/private.h"

/* How many chunks there can be along a dimension. The specification counts by the current size, but writers
 * count by the maximum, so that numbers stay when the dataset grows. */
static uint64_t chunks_along(const struct h5_chunk_index *index, unsigned i)
{
	uint64_t max = index->max[i], chunk = index->layout.dims[i];

	return max == H5_UNLIMITED ? H5_UNLIMITED : max / chunk + (max % chunk != 0);
}

int h5_chunk_index_number(struct h5_chunk_index *index, unsigned slowest)
{
	uint64_t n = 1;
	bool fits = true;

	for (unsigned i = index->layout.rank; i-- > 0;) {
		index->along[i] = chunks_along(index, i);
		if (i == slowest)
			continue;
		index->step[i] = n;
		fits = fits && index->max[i] != H5_UNLIMITED && h5_mul(n, index->along[i], &n);
	}
	index->step[slowest] = n;
	index->slowest = slowest;
	index->count = H5_UNLIMITED;
	if (index->max[slowest] != H5_UNLIMITED)
		fits = fits && h5_mul(n, index->along[slowest], &index->count);
	return fits ? 0 : h5_fail(-EUCLEAN, index->layout.address, "chunk index: too many chunks to number");
}

bool h5_chunk_index_number_of(const struct h5_chunk_index *index, const uint64_t *scaled, uint64_t *number)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < index->layout.rank; i++) {
		uint64_t steps;

		if (scaled[i] >= index->along[i] || !h5_mul(scaled[i], index->step[i], &steps) ||
		    !h5_add(n, steps, &n))
			return false;
	}
	*number = n;
	return true;
}
