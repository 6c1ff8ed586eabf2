/* Binary search. */
#ifndef H5_BASE_LOWER_BOUND_H
#define H5_BASE_LOWER_BOUND_H

#include <stddef.h>

/* The first index of 0 to count - 1 for which `is_below` is false, as a size_t; `count` if it is true for
 * all. `is_below` is an expression of the index `i`, evaluated for some of the indices. It must be true for
 * the indices before some point, and false from there on. For example, the first extent at or after an
 * address:
 *
 *	h5_lower_bound(i, count, extents[i].address < address) */
#define h5_lower_bound(i, count, is_below)                                                                   \
	({                                                                                                   \
		size_t bound_low = 0, bound_high = (count);                                                  \
		while (bound_low < bound_high) {                                                             \
			size_t i = bound_low + (bound_high - bound_low) / 2;                                 \
			if (is_below)                                                                        \
				bound_low = i + 1;                                                           \
			else                                                                                 \
				bound_high = i;                                                              \
		}                                                                                            \
		bound_low;                                                                                   \
	})

#endif
