#include "filter/client_values.h"

#include "base/error.h"
#include "filter/filter.h"

#include <stddef.h>

enum {
	DEFLATE = 1,
	FLETCHER32 = 3,
	BZIP2 = 307,
	LZF = 32000,
	BLOSC = 32001,
	LZ4 = 32004,
	BITSHUFFLE = 32008,
	ZSTD = 32015,
	LZF_FILTER = 4,	     /* version of h5py's filter */
	LZF_LIBRARY = 0x105, /* version of LibLZF in it */
	BLOSC_FORMAT = 2,    /* of the filter, and of the library's data */
};

/* The filters with a level, which is their only value. */
static const struct {
	uint16_t id;
	uint32_t least, most, usual;
} levels[] = {{DEFLATE, 0, 9, 4}, {BZIP2, 1, 9, 9}, {ZSTD, 1, 22, 3}};

enum { LEVELS = sizeof levels / sizeof *levels };

static unsigned find_level(uint16_t id)
{
	unsigned i = 0;

	while (i < LEVELS && levels[i].id != id)
		i++;
	return i;
}

bool h5_filter_has_level(uint16_t id)
{
	return find_level(id) < LEVELS;
}

static int set_level(unsigned i, const struct h5_filter_use *use, struct h5_client_values *values)
{
	uint32_t level = use->has_level ? use->level : levels[i].usual;

	if (level < levels[i].least || level > levels[i].most)
		return h5_fail(-EINVAL, H5_UNDEF, "filters: %s(%u): its levels are %u to %u",
			       h5_filter_name(levels[i].id), level, levels[i].least, levels[i].most);
	*values = (struct h5_client_values){levels[i].id == DEFLATE, 1, {level}};
	return 0;
}

int h5_filter_values(uint16_t id, const struct h5_filter_use *use, struct h5_client_values *values)
{
	const uint32_t element = use->element_size, chunk = (uint32_t)use->chunk_size;
	unsigned i = find_level(id);

	if (i < LEVELS)
		return set_level(i, use, values);
	if (use->has_level)
		return h5_fail(-EINVAL, H5_UNDEF, "filters: filter %u has no level", id);
	switch (id) {
	case H5_FILTER_SHUFFLE:
		*values = (struct h5_client_values){true, 1, {element}};
		return 0;
	case FLETCHER32:
	case LZ4:
		*values = (struct h5_client_values){false, 0, {0}};
		return 0;
	case LZF:
		*values = (struct h5_client_values){true, 3, {LZF_FILTER, LZF_LIBRARY, chunk}};
		return 0;
	case BLOSC:
		/* Level 5 after a shuffle of bytes, by the compressor of number 0. */
		*values = (struct h5_client_values){
			true, 7, {BLOSC_FORMAT, BLOSC_FORMAT, element, chunk, 5, 1, 0}};
		return 0;
	case BITSHUFFLE:
		/* Version 0.3; blocks of the usual size, which are not compressed. */
		*values = (struct h5_client_values){false, 5, {0, 3, element, 0, 0}};
		return 0;
	default:
		return h5_fail(-ENOTSUP, H5_UNDEF, "filters: %s (%u) cannot be given to new datasets",
			       h5_filter_name(id) ? h5_filter_name(id) : "filter", id);
	}
}
