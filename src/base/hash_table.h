/* Hash tables, by uthash. If memory is short, nothing is added: `hh.tbl` of the new item stays NULL. A file
 * may define HASH_FUNCTION before it includes this.
 *
 * A table doubles while its chains are still short, because each item of a chain may cost a cache miss. */
#ifndef H5_BASE_HASH_TABLE_H
#define H5_BASE_HASH_TABLE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 4U /* items of a chain; with more the table doubles */

#endif
