/* The range of the numbers that a picture shows. */
#ifndef H5_VIEW_RANGE_H
#define H5_VIEW_RANGE_H

#include "dataset/dataset.h"

struct h5_range {
	double low, high; /* both 0: there are no finite numbers */
};

/* Of n elements from `first` on, which are numbers: the least and the greatest that are finite.
 * `without_extremes`: the 2nd and the 98th percentile instead, unless they are the same; if there are more
 * than H5_RANGE_SAMPLES elements, those of so many that are chosen from all. */
enum { H5_RANGE_SAMPLES = 1 << 16 };
int h5_range_find(const struct h5_dataset *dataset, uint64_t first, uint64_t n, bool without_extremes,
		  struct h5_range *range);

#endif
