/* The decoders behind the table in filter.c; what they share is said at struct h5_filter_ops. */
#ifndef H5_FILTER_FILTERS_H
#define H5_FILTER_FILTERS_H

#include "filter/filter.h"

int h5_deflate_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
int h5_shuffle_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
int h5_fletcher32_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
int h5_nbit_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
int h5_scaleoffset_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
int h5_lzf_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);

#endif
