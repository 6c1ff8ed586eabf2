/* Hash tables, by uthash. If memory is short, nothing is added: `hh.tbl` of the new item stays NULL. A file
 * may define HASH_FUNCTION before it includes this.
 *
 * A table doubles as soon as one of its chains is too long. Short chains cost fewer cache misses,
 * but the table has more buckets, each of 16 bytes: with chains of 4, 10,000 items had 65,536 buckets. */
#ifndef H5_BASE_HASH_TABLE_H
#define H5_BASE_HASH_TABLE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 8U /* items of a chain; with more the table doubles */

#endif
