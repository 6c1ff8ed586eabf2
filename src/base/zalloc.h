/* Memory of zeros for what is small and lives briefly. It is calloc(1, n), but quicker: glibc's malloc()
 * takes such memory from the thread's own list of what is free, its calloc() does not.
 */
#ifndef H5_BASE_ZALLOC_H
#define H5_BASE_ZALLOC_H

#include <stddef.h>

void *h5_zalloc(size_t n); /* free(); NULL: out of memory */

#endif
