#include "filter/scratch.h"

#include "base/error.h"

#include <pthread.h>
#include <stdlib.h>

/* Of all that nobody uses; more would not be in any cache of a processor. */
static const size_t KEPT_MAX = 16 << 20;

/* The last one put back is the first one got: its memory is likely to be in this processor's cache. There are
 * as many as threads that ran filters at the same time. */
static struct {
	pthread_mutex_t lock;
	struct h5_scratch *first;
	size_t kept; /* bytes */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t room(const struct h5_scratch *scratch)
{
	return scratch->bufs[0].capacity + scratch->bufs[1].capacity;
}

struct h5_scratch *h5_scratch_get(void)
{
	struct h5_scratch *scratch;

	pthread_mutex_lock(&pool.lock);
	scratch = pool.first;
	if (scratch) {
		pool.first = scratch->next;
		pool.kept -= room(scratch);
	}
	pthread_mutex_unlock(&pool.lock);
	if (!scratch)
		scratch = calloc(1, sizeof *scratch);
	if (!scratch)
		h5_fail(-ENOMEM, H5_UNDEF, "no memory to run filters");
	return scratch;
}

void h5_scratch_put(struct h5_scratch *scratch)
{
	bool keep;

	if (!scratch)
		return;
	scratch->bufs[0].size = scratch->bufs[1].size = 0;
	pthread_mutex_lock(&pool.lock);
	keep = room(scratch) <= KEPT_MAX - pool.kept;
	if (keep) {
		pool.kept += room(scratch);
		scratch->next = pool.first;
		pool.first = scratch;
	}
	pthread_mutex_unlock(&pool.lock);
	if (keep)
		return;
	h5_filter_buf_release(&scratch->bufs[0]);
	h5_filter_buf_release(&scratch->bufs[1]);
	free(scratch);
}
