/* Memory that stands between the filters of a pipeline, kept for the next chunk: fresh memory costs a page
 * fault every 4 KiB. */
#ifndef H5_FILTER_SCRATCH_H
#define H5_FILTER_SCRATCH_H

#include "filter/filter.h"

struct h5_scratch {
	struct h5_scratch *next; /* of those that nobody uses */
	struct h5_filter_buf bufs[2];
};

/* For this thread alone until it is put back; NULL: no memory. The buffers have no bytes, but may have room.
 */
struct h5_scratch *h5_scratch_get(void);
/* Keeps it for others, or its memory would be too much to keep; NULL is fine. */
void h5_scratch_put(struct h5_scratch *scratch);

#endif
