#include "filter/filter.h"

#include "base/error.h"
#include "filter/filters.h"

#include <stdlib.h>
#include <string.h>

/* Ids from the registry of the HDF Group. */
static const struct h5_filter_ops filters[] = {
	{1, "deflate", h5_deflate_decode, NULL},
	{2, "shuffle", h5_shuffle_decode, NULL},
	{3, "fletcher32", h5_fletcher32_decode, NULL},
	{4, "szip", h5_szip_decode, NULL},
	{5, "nbit", h5_nbit_decode, NULL},
	{6, "scaleoffset", h5_scaleoffset_decode, NULL},
	{305, "lzo", h5_lzo_decode, NULL},
	{307, "bzip2", h5_bzip2_decode, NULL},
	{32000, "lzf", h5_lzf_decode, NULL},
	{32001, "blosc", h5_blosc_decode, NULL},
	{32004, "lz4", h5_lz4_decode, NULL},
	{32008, "bitshuffle", h5_bitshuffle_decode, NULL},
	{32013, "zfp", h5_zfp_decode, NULL},
	{32015, "zstd", h5_zstd_decode, NULL},
	{32022, "bitgroom", h5_quantize_decode, NULL},
	{32023, "bitround", h5_quantize_decode, NULL},
};

const struct h5_filter_ops *h5_filter_at(unsigned n)
{
	return n < sizeof filters / sizeof *filters ? &filters[n] : NULL;
}

const struct h5_filter_ops *h5_filter_find(uint16_t id)
{
	for (unsigned i = 0; i < sizeof filters / sizeof *filters; i++)
		if (filters[i].id == id)
			return &filters[i];
	return NULL;
}

int h5_filter_buf_reserve(struct h5_filter_buf *buf, size_t capacity)
{
	uint8_t *data;

	/* At least one byte, so that data is there even for an empty result. */
	if (!capacity)
		capacity = 1;
	if (capacity <= buf->capacity)
		return 0;
	data = realloc(buf->data, capacity);
	if (!data)
		return h5_fail(-ENOMEM, H5_UNDEF, "no memory for a chunk of %zu bytes", capacity);
	buf->data = data;
	buf->capacity = capacity;
	return 0;
}

void h5_filter_buf_release(struct h5_filter_buf *buf)
{
	free(buf->data);
	memset(buf, 0, sizeof *buf);
}

int h5_filter_buf_replace(struct h5_filter_buf *buf, struct h5_filter_buf *out, int rc)
{
	h5_filter_buf_release(rc ? out : buf);
	if (!rc)
		*buf = *out;
	return rc;
}
