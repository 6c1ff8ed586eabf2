/* The decoders and encoders of all filters, for the table in filter.c and for filters that use others. */
#ifndef H5_FILTER_FILTERS_H
#define H5_FILTER_FILTERS_H

#include "config.h"
#include "filter/buffer.h"

#include <stdbool.h>
#include <stdint.h>

h5_filter_decode h5_deflate_decode, h5_shuffle_decode, h5_fletcher32_decode, h5_nbit_decode,
	h5_scaleoffset_decode, h5_lzf_decode, h5_quantize_decode, h5_bitshuffle_decode, h5_fpzip_decode;
h5_filter_encode h5_deflate_encode, h5_shuffle_encode, h5_fletcher32_encode, h5_nbit_encode,
	h5_scaleoffset_encode, h5_lzf_encode, h5_bitshuffle_encode, h5_fpzip_encode;

/* struct h5_filter_ops.decodes_in_place */
bool h5_shuffle_is_identity(const uint32_t *values, unsigned count);

/* Decodes one block of a filter that stores blocks, to exactly `size` bytes. */
typedef int h5_filter_block(const uint8_t *data, size_t n, uint8_t *out, size_t size);
/* Encodes n bytes to a block, which is appended. The level is the compressor's own, 0 its default. */
typedef int h5_filter_pack(const uint8_t *data, size_t n, int level, struct h5_filter_buf *out);

/* Filters whose library configure has not found are NULL. */
#ifdef HAVE_LIBAEC
h5_filter_decode h5_szip_decode;
h5_filter_encode h5_szip_encode;
#else
#define h5_szip_decode NULL
#define h5_szip_encode NULL
#endif
#ifdef HAVE_LZO
h5_filter_decode h5_lzo_decode;
h5_filter_encode h5_lzo_encode;
#else
#define h5_lzo_decode NULL
#define h5_lzo_encode NULL
#endif
#ifdef HAVE_BZIP2
h5_filter_decode h5_bzip2_decode;
h5_filter_encode h5_bzip2_encode;
#else
#define h5_bzip2_decode NULL
#define h5_bzip2_encode NULL
#endif
#ifdef HAVE_BLOSC
h5_filter_decode h5_blosc_decode;
h5_filter_encode h5_blosc_encode;
#else
#define h5_blosc_decode NULL
#define h5_blosc_encode NULL
#endif
#ifdef HAVE_BLOSC2
h5_filter_decode h5_blosc2_decode;
h5_filter_encode h5_blosc2_encode;
#else
#define h5_blosc2_decode NULL
#define h5_blosc2_encode NULL
#endif
#ifdef HAVE_LZ4
h5_filter_decode h5_lz4_decode;
h5_filter_encode h5_lz4_encode;
h5_filter_block h5_lz4_block;
h5_filter_pack h5_lz4_pack;
#else
#define h5_lz4_decode NULL
#define h5_lz4_encode NULL
#define h5_lz4_block  NULL
#define h5_lz4_pack   NULL
#endif
#ifdef HAVE_SNAPPY
h5_filter_decode h5_snappy_decode;
h5_filter_encode h5_snappy_encode;
#else
#define h5_snappy_decode NULL
#define h5_snappy_encode NULL
#endif
#ifdef HAVE_CHARLS
h5_filter_decode h5_fcidecomp_decode;
h5_filter_encode h5_fcidecomp_encode;
#else
#define h5_fcidecomp_decode NULL
#define h5_fcidecomp_encode NULL
#endif
#ifdef HAVE_JPEG
h5_filter_decode h5_jpeg_decode;
h5_filter_encode h5_jpeg_encode;
#else
#define h5_jpeg_decode NULL
#define h5_jpeg_encode NULL
#endif
#ifdef HAVE_ZFP
h5_filter_decode h5_zfp_decode;
#else
#define h5_zfp_decode NULL
#endif
#ifdef HAVE_ZSTD
h5_filter_decode h5_zstd_decode, h5_vbz_decode;
h5_filter_encode h5_zstd_encode, h5_vbz_encode;
/* Decodes the frames to at most `limit` bytes, like a h5_filter_decode. No more room is reserved than the
 * frame says that it needs. */
int h5_zstd_unpack(const uint8_t *data, size_t n, struct h5_filter_buf *out, size_t limit);
h5_filter_block h5_zstd_block;
h5_filter_pack h5_zstd_pack;
#else
#define h5_zstd_decode NULL
#define h5_zstd_encode NULL
#define h5_zstd_block  NULL
#define h5_zstd_pack   NULL
#define h5_vbz_decode  NULL
#define h5_vbz_encode  NULL
#endif

/* Client value i; `otherwise` if there are fewer. */
static inline uint32_t h5_filter_value(const uint32_t *values, unsigned count, unsigned i, uint32_t otherwise)
{
	return count > i ? values[i] : otherwise;
}

#endif
