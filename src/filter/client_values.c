#include "filter/client_values.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/reader.h"
#include "filter/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEFLATE = 1,
	FLETCHER32 = 3,
	SZIP = 4,
	NBIT = 5,
	SCALEOFFSET = 6,
	LZO = 305,
	BZIP2 = 307,
	LZF = 32000,
	BLOSC = 32001,
	SNAPPY = 32003,
	LZ4 = 32004,
	BITSHUFFLE = 32008,
	ZSTD = 32015,
	VBZ = 32020,
	LZF_FILTER = 4,	     /* version of h5py's filter */
	LZF_LIBRARY = 0x105, /* version of LibLZF in it */
	BLOSC_FORMAT = 2,    /* of the filter, and of the library's data */
	SZIP_K13 = 1,
	SZIP_LSB = 8,
	SZIP_MSB = 16,
	SZIP_RAW = 128,
	SZIP_BLOCKS_MAX = 128, /* of a scanline */
	SZIP_LINE_MAX = 4096,
	SCALE_INTEGERS = 2,
	SCALEOFFSET_VALUES = 20,
};

/* ---- parameters ---- */

/* A word for a number; the last of a list has none. */
struct word {
	const char *text;
	uint32_t value;
};

static const struct word szip_words[] = {{"ec", 4}, {"nn", 32}, {0}};
static const struct word bitshuffle_words[] = {{"none", 0}, {"lz4", 2}, {"zstd", 3}, {0}};
static const struct word shuffle_words[] = {{"noshuffle", 0}, {"shuffle", 1}, {"bitshuffle", 2}, {0}};
static const struct word blosc_words[] = {{"blosclz", 0}, {"lz4", 1},  {"lz4hc", 2}, {"snappy", 3},
					  {"zlib", 4},	  {"zstd", 5}, {0}};

/* In the order in which the user gives them. */
static const struct parameter {
	uint16_t id;
	uint8_t at; /* in the client values */
	uint32_t least, most, usual;
	const struct word *words; /* NULL: a number */
} table[] = {
	{DEFLATE, 0, 0, 9, 4, NULL},
	{SZIP, 0, 4, 32, 32, szip_words},
	{SZIP, 1, 2, 32, 8, NULL},
	{SCALEOFFSET, 1, 0, 64, 0, NULL},
	{LZO, 0, 1, 9, 1, NULL},
	{BZIP2, 0, 1, 9, 9, NULL},
	{BLOSC, 4, 0, 9, 5, NULL},
	{BLOSC, 5, 0, 2, 1, shuffle_words},
	{BLOSC, 6, 0, 5, 0, blosc_words},
	{LZ4, 0, 0, 1 << 30, 0, NULL},
	{BITSHUFFLE, 4, 0, 3, 0, bitshuffle_words},
	{BITSHUFFLE, 5, 0, 22, 0, NULL},
	{ZSTD, 0, 1, 22, 3, NULL},
	{VBZ, 3, 0, 22, 1, NULL},
};

/* NULL: the filter has no parameter i. */
static const struct parameter *find(uint16_t id, unsigned i)
{
	for (size_t k = 0; k < sizeof table / sizeof *table; k++)
		if (table[k].id == id && !i--)
			return &table[k];
	return NULL;
}

static bool read_word(const struct word *words, const char *text, size_t n, uint32_t *value)
{
	for (; words->text; words++) {
		*value = words->value;
		if (strlen(words->text) == n && !memcmp(words->text, text, n))
			return true;
	}
	return false;
}

static bool read_number(const char *text, size_t n, uint32_t *value)
{
	uint64_t number = 0;

	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9' || number > UINT32_MAX)
			return false;
		number = 10 * number + (uint64_t)(text[i] - '0');
	}
	*value = (uint32_t)number;
	return n && number <= UINT32_MAX;
}

/* All words of the list, for messages. */
static int refuse_word(const struct parameter *p, const char *text, size_t n)
{
	char words[80] = "";

	for (const struct word *word = p->words; word->text; word++)
		snprintf(words + strlen(words), sizeof words - strlen(words), " %s", word->text);
	return h5_fail(-EINVAL, H5_UNDEF, "filters: %s(%.*s): it is one of%s", h5_filter_name(p->id), (int)n,
		       text, words);
}

int h5_filter_parameter(uint16_t id, unsigned i, const char *text, size_t n, uint32_t *value)
{
	const struct parameter *p = find(id, i);

	if (!p)
		return h5_fail(-EINVAL, H5_UNDEF, "filters: %s has %u parameters", h5_filter_name(id), i);
	if (p->words)
		return read_word(p->words, text, n, value) ? 0 : refuse_word(p, text, n);
	if (read_number(text, n, value) && *value >= p->least && *value <= p->most)
		return 0;
	return h5_fail(-EINVAL, H5_UNDEF, "filters: %s(%.*s): it is a number from %u to %u",
		       h5_filter_name(id), (int)n, text, p->least, p->most);
}

void h5_filter_parameters_of(uint16_t id, const uint32_t *values, unsigned count,
			     struct h5_filter_parameters *parameters)
{
	const struct parameter *p;

	parameters->count = 0;
	while (parameters->count < H5_FILTER_PARAMETERS_MAX && (p = find(id, parameters->count)) &&
	       p->at < count) {
		uint32_t value = values[p->at];

		if (id == SZIP && !p->at)
			value &= 4 | 32;
		parameters->values[parameters->count++] = value;
	}
}

/* What the user has chosen, or the usual value. */
static uint32_t parameter(uint16_t id, const struct h5_filter_use *use, unsigned i)
{
	return i < use->parameters.count ? use->parameters.values[i] : find(id, i)->usual;
}

/* ---- filters of numbers ---- */

static int refuse(uint16_t id, const char *why)
{
	return h5_fail(-EINVAL, H5_UNDEF, "filters: %s %s", h5_filter_name(id), why);
}

/* As libhdf5: scanlines are lines of the chunk, if these suit the blocks. */
static int set_szip(const struct h5_filter_use *use, struct h5_client_values *values)
{
	const uint32_t block = parameter(SZIP, use, 1);
	const uint64_t elements = use->chunk_size / use->element_size;
	uint32_t bits = use->bits > 32 ? 64 : use->bits > 24 ? 32 : use->bits;
	uint64_t line = use->line;

	if (!use->numbers || use->element_size > 8)
		return refuse(SZIP, "takes only numbers");
	if (block % 2)
		return refuse(SZIP, "has blocks of an even number of pixels");
	if (line < block)
		line = elements;
	if (line < block)
		return refuse(SZIP, "has blocks that are larger than a chunk");
	line = h5_min(line, (uint64_t)block * SZIP_BLOCKS_MAX);
	*values = (struct h5_client_values){
		true,
		4,
		{parameter(SZIP, use, 0) | SZIP_K13 | SZIP_RAW | (use->is_big_endian ? SZIP_MSB : SZIP_LSB),
		 block, bits, (uint32_t)h5_min(line, SZIP_LINE_MAX)}};
	return 0;
}

/* The fill value is in the values, least significant part first. */
static int set_scaleoffset(const struct h5_filter_use *use, struct h5_client_values *values)
{
	const bool is_float = use->numbers == H5_FILTER_FLOATS;
	uint64_t fill = 0;

	if (!use->numbers || use->element_size > 8 || (is_float && use->element_size < 4))
		return refuse(SCALEOFFSET, "takes only numbers");
	if (is_float && !use->parameters.count)
		return refuse(SCALEOFFSET, "of floating point needs a number of digits");
	if (!is_float && parameter(SCALEOFFSET, use, 0) > 8 * use->element_size)
		return refuse(SCALEOFFSET, "has more bits than a number");
	for (uint32_t i = 0; i < use->element_size && use->fill; i++)
		fill |= (uint64_t)use->fill[use->is_big_endian ? use->element_size - 1 - i : i] << 8 * i;
	*values = (struct h5_client_values){true,
					    SCALEOFFSET_VALUES,
					    {is_float ? 0 : SCALE_INTEGERS, parameter(SCALEOFFSET, use, 0),
					     (uint32_t)(use->chunk_size / use->element_size), is_float,
					     use->element_size, use->is_signed, use->is_big_endian, 1,
					     (uint32_t)fill, (uint32_t)(fill >> 32)}};
	return 0;
}

static int set_nbit(const struct h5_filter_use *use, struct h5_client_values *values)
{
	const unsigned count = 3 + use->described;

	if (count > H5_CLIENT_VALUES_MAX)
		return refuse(NBIT, "cannot describe a type of so many parts");
	*values = (struct h5_client_values){
		true, count, {count, use->is_full, (uint32_t)(use->chunk_size / use->element_size)}};
	memcpy(values->values + 3, use->description, use->described * sizeof *use->description);
	return 0;
}

/* Integers of 1, 2 and 4 bytes are packed before they are compressed; version 0. */
static void set_vbz(const struct h5_filter_use *use, struct h5_client_values *values)
{
	const uint32_t size = use->element_size;
	const bool packs = use->numbers == H5_FILTER_INTEGERS && !use->is_big_endian &&
			   (size == 1 || size == 2 || size == 4);

	*values = (struct h5_client_values){
		false, 4, {0, packs ? size : 0, packs && use->is_signed, parameter(VBZ, use, 0)}};
}

/* ---- all filters ---- */

int h5_filter_values(uint16_t id, const struct h5_filter_use *use, struct h5_client_values *values)
{
	const uint32_t element = use->element_size, chunk = (uint32_t)use->chunk_size;

	switch (id) {
	case DEFLATE:
	case BZIP2:
	case ZSTD:
	case LZO:
		*values = (struct h5_client_values){id == DEFLATE || id == LZO, 1, {parameter(id, use, 0)}};
		return 0;
	case H5_FILTER_SHUFFLE:
		*values = (struct h5_client_values){true, 1, {element}};
		return 0;
	case SZIP:
		return set_szip(use, values);
	case NBIT:
		return set_nbit(use, values);
	case SCALEOFFSET:
		return set_scaleoffset(use, values);
	case FLETCHER32:
		*values = (struct h5_client_values){false, 0, {0}};
		return 0;
	case LZ4:
		*values = (struct h5_client_values){false, use->parameters.count, {parameter(LZ4, use, 0)}};
		return 0;
	case LZF:
		*values = (struct h5_client_values){true, 3, {LZF_FILTER, LZF_LIBRARY, chunk}};
		return 0;
	case SNAPPY:
		*values = (struct h5_client_values){true, 0, {0}};
		return 0;
	case BLOSC:
		*values = (struct h5_client_values){true,
						    7,
						    {BLOSC_FORMAT, BLOSC_FORMAT, element, chunk,
						     parameter(BLOSC, use, 0), parameter(BLOSC, use, 1),
						     parameter(BLOSC, use, 2)}};
		return 0;
	case BITSHUFFLE:
		/* Version 0.3; blocks of the usual size. */
		*values = (struct h5_client_values){
			false,
			5 + (use->parameters.count > 1),
			{0, 3, element, 0, parameter(BITSHUFFLE, use, 0), parameter(BITSHUFFLE, use, 1)}};
		return 0;
	case VBZ:
		set_vbz(use, values);
		return 0;
	default:
		return h5_fail(-ENOTSUP, H5_UNDEF, "filters: %s (%u) cannot be given to new datasets",
			       h5_filter_name(id) ? h5_filter_name(id) : "filter", id);
	}
}
