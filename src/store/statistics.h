/* What has been done for the files of a set since it was opened. All threads add to the counters, so those
 * that are read together may be of different moments. */
#ifndef H5_STORE_STATISTICS_H
#define H5_STORE_STATISTICS_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/* Chunks, and blocks of heaps, through their filters. */
struct h5_filter_statistics {
	atomic_uint_fast64_t chunks, bytes; /* unfiltered bytes */
	atomic_uint_fast64_t time;	    /* nanoseconds, of all threads together */
};

struct h5_statistics {
	atomic_uint_fast64_t reads, bytes; /* of HDF5 files: calls, and the bytes that they gave */
	struct h5_filter_statistics decoded, encoded;
	atomic_uint_fast64_t commits;
};

static inline void h5_count(atomic_uint_fast64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline void h5_count_filtered(struct h5_filter_statistics *s, uint64_t bytes,
				     const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	h5_count(&s->chunks, 1);
	h5_count(&s->bytes, bytes);
	h5_count(&s->time, (uint64_t)((int64_t)(now.tv_sec - begin->tv_sec) * 1000000000 + now.tv_nsec -
				      begin->tv_nsec));
}

#endif
