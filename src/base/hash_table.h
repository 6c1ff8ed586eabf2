/* Hash tables: uthash. Where memory is short nothing is added; `hh.tbl` of what was to be added is NULL then.
 * Who includes this may define HASH_FUNCTION before.
 *
 * A table doubles while its chains are still short, so that a search touches few objects that are in no
 * processor's cache. */
#ifndef H5_BASE_HASH_TABLE_H
#define H5_BASE_HASH_TABLE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 4U /* objects of a chain; more: the table doubles */

#endif
