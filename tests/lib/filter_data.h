/* What the tests that encode share: filters by their names, and bytes for them. */
#ifndef H5_TESTS_FILTER_DATA_H
#define H5_TESTS_FILTER_DATA_H

#include "filter_samples.h"
#include "store/pipeline.h"

enum {
	DEFLATE = 1,
	SHUFFLE,
	FLETCHER32,
	SZIP,
	NBIT,
	SCALEOFFSET,
	LZO = 305,
	BZIP2 = 307,
	LZF = 32000,
	BLOSC
};
enum {
	SNAPPY = 32003,
	LZ4,
	BITSHUFFLE = 32008,
	ZFP = 32013,
	FPZIP,
	ZSTD = 32015,
	FCIDECOMP = 32018,
	JPEG,
	VBZ,
	BITGROOM = 32022,
	BLOSC2 = 32026
};

static inline uint32_t filter_data_random(uint32_t *random)
{
	*random = *random * 1664525 + 1013904223;
	return *random >> 16;
}

/* Zeros, runs, small steps, noise. */
static inline void filter_data_fill(uint8_t *data, size_t size, unsigned kind)
{
	uint32_t random = (uint32_t)size + kind;

	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(kind == 0	? 0
				    : kind == 1 ? i / 100
				    : kind == 2 ? i % 4 ? 0 : filter_data_random(&random) % 8
						: filter_data_random(&random));
}

/* Undoes what h5_pipeline_encode() did. */
static inline struct h5_filter_buf filter_data_undo(const struct h5_pipeline *pipeline, uint32_t mask,
						    const uint8_t *stored, size_t size, size_t limit)
{
	struct h5_filter_buf buf = {0};

	ck_assert_int_eq(h5_filter_buf_copy(&buf, stored, size), 0);
	for (unsigned i = pipeline->count; i-- > 0;) {
		const struct h5_filter_info *info = &pipeline->filters[i];

		if (!(mask >> i & 1)) {
			struct h5_filter_buf out;

			ck_assert_msg(!decode_buf(info->id, info->values, info->count, &buf, 2 * limit + 1000,
						  &out),
				      "%s", h5_error_last()->text);
			buf = out;
		}
	}
	return buf;
}

#endif
