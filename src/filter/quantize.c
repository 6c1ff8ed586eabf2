/* Filters 32022, BitGroom, 32023, Granular BitRound, and 32032, BitRound: they clear bits of floats before
 * they are stored; there is nothing to decode. */
#include "base/error.h"
#include "filter/filters.h"

int h5_quantize_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		       struct h5_filter_buf *out, size_t limit)
{
	(void)values;
	(void)count;
	(void)out;
	if (in->size > limit)
		return h5_filter_too_long("quantize", limit);
	return 0;
}
