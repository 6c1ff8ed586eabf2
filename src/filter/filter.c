#include "filter/filter.h"

#include "filter/filters.h"

static bool in_place(const uint32_t *values, unsigned count)
{
	(void)values;
	(void)count;
	return true;
}

/* Ids from the registry of the HDF Group. */
const struct h5_filter_ops h5_filters[] = {
	{1, "deflate", h5_deflate_decode, h5_deflate_encode, false, NULL},
	{H5_FILTER_SHUFFLE, "shuffle", h5_shuffle_decode, h5_shuffle_encode, false, h5_shuffle_is_identity},
	{3, "fletcher32", h5_fletcher32_decode, h5_fletcher32_encode, false, in_place},
	{4, "szip", h5_szip_decode, h5_szip_encode, true, NULL},
	{5, "nbit", h5_nbit_decode, h5_nbit_encode, false, NULL},
	{6, "scaleoffset", h5_scaleoffset_decode, h5_scaleoffset_encode, false, NULL},
	{305, "lzo", h5_lzo_decode, h5_lzo_encode, true, NULL},
	{307, "bzip2", h5_bzip2_decode, h5_bzip2_encode, false, NULL},
	{32000, "lzf", h5_lzf_decode, h5_lzf_encode, true, NULL},
	{32001, "blosc", h5_blosc_decode, h5_blosc_encode, true, NULL},
	{32003, "snappy", h5_snappy_decode, h5_snappy_encode, true, NULL},
	{32004, "lz4", h5_lz4_decode, h5_lz4_encode, false, NULL},
	{32008, "bitshuffle", h5_bitshuffle_decode, h5_bitshuffle_encode, false, NULL},
	{32013, "zfp", h5_zfp_decode, NULL, false, NULL},
	{32014, "fpzip", h5_fpzip_decode, h5_fpzip_encode, false, NULL},
	{32015, "zstd", h5_zstd_decode, h5_zstd_encode, false, NULL},
	{32018, "fcidecomp", h5_fcidecomp_decode, h5_fcidecomp_encode, true, NULL},
	{32019, "jpeg", h5_jpeg_decode, h5_jpeg_encode, false, NULL},
	{32020, "vbz", h5_vbz_decode, h5_vbz_encode, false, NULL},
	{32022, "bitgroom", h5_quantize_decode, NULL, false, in_place},
	{32023, "granular-bitround", h5_quantize_decode, NULL, false, in_place},
	{32026, "blosc2", h5_blosc2_decode, h5_blosc2_encode, true, NULL},
	{32032, "bitround", h5_quantize_decode, NULL, false, in_place},
	{.name = NULL},
};

/* Other registered filters, for their names in messages. */
static const struct {
	uint16_t id;
	const char *name;
} registered[] = {
	{257, "hzip"},	      {258, "fpzip"},	  {32002, "mafisc"},	 {32005, "apax"},
	{32006, "cbf"},	      {32007, "jpeg-xr"}, {32009, "spdp"},	 {32010, "lpc-rice"},
	{32011, "ccsds-123"}, {32012, "jpeg-ls"}, {32016, "b3d"},	 {32017, "sz"},
	{32021, "fapec"},     {32024, "sz3"},	  {32025, "delta-rice"}, {32027, "flac"},
	{32028, "sperr"},     {32029, "terse"},	  {32030, "ffmpeg"},	 {32031, "jpeg2000"},
};

const char *h5_filter_name(uint16_t id)
{
	const struct h5_filter_ops *ops = h5_filter_find(id);

	if (ops)
		return ops->name;
	for (unsigned i = 0; i < sizeof registered / sizeof *registered; i++)
		if (registered[i].id == id)
			return registered[i].name;
	return NULL;
}
