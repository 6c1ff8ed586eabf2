/* Hash tables, by uthash. If memory is short, nothing is added: `hh.tbl` of the new item stays NULL.
 *
 * Keys may come from the file, for instance addresses. Their hash depends on numbers that are other ones in
 * each process, so who writes a file cannot choose keys that all go to one chain. A key has no padding.
 *
 * A table doubles as soon as one of its chains is too long. Short chains cost fewer cache misses,
 * but the table has more buckets, each of 16 bytes: with chains of 4, 10,000 items had 65,536 buckets. */
#ifndef H5_BASE_HASH_TABLE_H
#define H5_BASE_HASH_TABLE_H

#include <stddef.h>

/* The hash of a key of `size` bytes. */
unsigned h5_hash(const void *key, size_t size);

#define HASH_FUNCTION(key, size, hash) ((hash) = h5_hash(key, size))
#define HASH_NONFATAL_OOM	       1
#include <uthash.h>
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 8U /* items of a chain; with more the table doubles */

#endif
