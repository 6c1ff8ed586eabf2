/* The decoders and encoders behind the table in filter.c; what they share is said at struct h5_filter_ops. */
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

h5_filter_encode h5_deflate_encode, h5_shuffle_encode, h5_fletcher32_encode, h5_nbit_encode,
	h5_scaleoffset_encode, h5_lzf_encode, h5_bitshuffle_encode;

/* One block of what a filter stores in blocks: exactly `size` bytes come out. */
typedef int h5_filter_block(const uint8_t *data, size_t n, uint8_t *out, size_t size);
/* The other way: appends the block that n bytes give. The level is the compressor's own, 0 its default. */
typedef int h5_filter_pack(const uint8_t *data, size_t n, int level, struct h5_filter_buf *out);

/* Those that need a library are NULL where configure left it out. */
#ifdef HAVE_LIBAEC
int h5_szip_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
h5_filter_encode h5_szip_encode;
#else
#define h5_szip_decode NULL
#define h5_szip_encode NULL
#endif
#ifdef HAVE_LZO
int h5_lzo_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
h5_filter_encode h5_lzo_encode;
#else
#define h5_lzo_decode NULL
#define h5_lzo_encode NULL
#endif
#ifdef HAVE_BZIP2
int h5_bzip2_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
h5_filter_encode h5_bzip2_encode;
#else
#define h5_bzip2_decode NULL
#define h5_bzip2_encode NULL
#endif
#ifdef HAVE_BLOSC
int h5_blosc_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
h5_filter_encode h5_blosc_encode;
#else
#define h5_blosc_decode NULL
#define h5_blosc_encode NULL
#endif
#ifdef HAVE_LZ4
int h5_lz4_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
h5_filter_encode h5_lz4_encode;
h5_filter_block h5_lz4_block;
h5_filter_pack h5_lz4_pack;
#else
#define h5_lz4_decode NULL
#define h5_lz4_encode NULL
#define h5_lz4_block  NULL
#define h5_lz4_pack   NULL
#endif
#ifdef HAVE_ZFP
int h5_zfp_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
#else
#define h5_zfp_decode NULL
#endif
#ifdef HAVE_ZSTD
int h5_zstd_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit);
h5_filter_encode h5_zstd_encode;
h5_filter_block h5_zstd_block;
h5_filter_pack h5_zstd_pack;
#else
#define h5_zstd_decode NULL
#define h5_zstd_encode NULL
#define h5_zstd_block  NULL
#define h5_zstd_pack   NULL
#endif

/* Ends a decoder that returns rc: 0 puts *out in the place of *buf, else *out is released. */
int h5_filter_buf_replace(struct h5_filter_buf *buf, struct h5_filter_buf *out, int rc);

#endif
