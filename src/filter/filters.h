/* The decoders behind the table in filter.c; what they share is said at struct h5_filter_ops. */
#ifndef H5_FILTER_FILTERS_H
#define H5_FILTER_FILTERS_H

#include "config.h"
#include "filter/filter.h"

int h5_deflate_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
int h5_shuffle_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
int h5_fletcher32_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
int h5_nbit_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
int h5_scaleoffset_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
int h5_lzf_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
int h5_quantize_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
int h5_bitshuffle_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);

/* One block of what a filter stores in blocks: exactly `size` bytes come out. */
typedef int h5_filter_block(const uint8_t *data, size_t n, uint8_t *out, size_t size);

/* Those that need a library are NULL where configure left it out. */
#ifdef HAVE_LIBAEC
int h5_szip_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
#else
#define h5_szip_decode NULL
#endif
#ifdef HAVE_LZO
int h5_lzo_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
#else
#define h5_lzo_decode NULL
#endif
#ifdef HAVE_BZIP2
int h5_bzip2_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
#else
#define h5_bzip2_decode NULL
#endif
#ifdef HAVE_BLOSC
int h5_blosc_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
#else
#define h5_blosc_decode NULL
#endif
#ifdef HAVE_LZ4
int h5_lz4_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
h5_filter_block h5_lz4_block;
#else
#define h5_lz4_decode NULL
#define h5_lz4_block  NULL
#endif
#ifdef HAVE_ZFP
int h5_zfp_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
#else
#define h5_zfp_decode NULL
#endif
#ifdef HAVE_ZSTD
int h5_zstd_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
h5_filter_block h5_zstd_block;
#else
#define h5_zstd_decode NULL
#define h5_zstd_block  NULL
#endif

/* Ends a decoder that returns rc: 0 puts *out in the place of *buf, else *out is released. */
int h5_filter_buf_replace(struct h5_filter_buf *buf, struct h5_filter_buf *out, int rc);

#endif
