#include "format/pipeline.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* A filter description, version 1 or 2.
 *
 *   offset  size  field
 *        0     2  filter identification value
 *        2     2  name length n; not in version 2 if the identification value is under 256
 *        4     2  flags: bit 0 optional
 *        6     2  number of client data values v
 *        8     n  name; in version 1 with zeros up to a multiple of eight, which n counts
 *            4*v  client data
 *              4  padding, if version is 1 and v is odd                              */
static int decode_filter(struct h5_reader *r, unsigned version, struct h5_filter_info *filter)
{
	const uint8_t *name, *values;
	size_t name_size = 0;
	int rc;

	filter->id = h5_read_u16(r);
	if (version == 1 || filter->id >= 256)
		name_size = h5_read_u16(r);
	filter->optional = h5_read_u16(r) & 1;
	filter->count = h5_read_u16(r);
	if (version == 1)
		name_size = (name_size + 7) / 8 * 8;
	name = h5_read_bytes(r, name_size);
	values = h5_read_bytes(r, 4 * (size_t)filter->count);
	if (version == 1 && filter->count % 2)
		h5_reader_skip(r, 4);
	rc = h5_reader_check(r, "filter pipeline");
	if (rc)
		return rc;
	if (name_size) {
		filter->name = strndup((const char *)name, name_size);
		if (!filter->name)
			return h5_fail(-ENOMEM, r->address, "filter pipeline: out of memory");
	}
	if (filter->count) {
		filter->values = calloc(filter->count, sizeof *filter->values);
		if (!filter->values)
			return h5_fail(-ENOMEM, r->address, "filter pipeline: out of memory");
	}
	for (unsigned i = 0; i < filter->count; i++)
		filter->values[i] = (uint32_t)h5_uint_from(values + 4 * (size_t)i, 4);
	return 0;
}

/* The message: version 1, number of filters 1, reserved 6 (version 1 only), filter descriptions. */
int h5_pipeline_decode(struct h5_reader *r, struct h5_pipeline *pipeline)
{
	unsigned version = h5_read_u8(r);
	unsigned count = h5_read_u8(r);
	int rc = h5_reader_check(r, "filter pipeline");

	memset(pipeline, 0, sizeof *pipeline);
	if (rc)
		return rc;
	if (version < 1 || version > 2)
		return h5_fail(-ENOTSUP, r->address, "filter pipeline: version %u is not supported", version);
	if (count > H5_FILTERS_MAX)
		return h5_fail(-EUCLEAN, r->address, "filter pipeline: %u filters", count);
	if (version == 1)
		h5_reader_skip(r, 6);
	pipeline->count = count;
	for (unsigned i = 0; i < count && !rc; i++)
		rc = decode_filter(r, version, &pipeline->filters[i]);
	if (rc)
		h5_pipeline_release(pipeline);
	return rc;
}

static void encode_filter(struct h5_writer *w, const struct h5_filter_info *filter)
{
	size_t name_size = filter->name ? strlen(filter->name) + 1 : 0;

	h5_write_u16(w, filter->id);
	if (filter->id >= 256)
		h5_write_u16(w, (uint16_t)name_size);
	h5_write_u16(w, filter->optional);
	h5_write_u16(w, (uint16_t)filter->count);
	if (filter->id >= 256)
		h5_write_bytes(w, filter->name, name_size);
	for (unsigned i = 0; i < filter->count; i++)
		h5_write_u32(w, filter->values[i]);
}

void h5_pipeline_message_encode(struct h5_writer *w, const struct h5_pipeline *pipeline)
{
	h5_write_u8(w, 2);
	h5_write_u8(w, (uint8_t)pipeline->count);
	for (unsigned i = 0; i < pipeline->count; i++)
		encode_filter(w, &pipeline->filters[i]);
}

static int decode_section(struct h5_reader *r, unsigned n, struct h5_pipeline *pipelines)
{
	unsigned section = h5_read_u8(r), count = h5_read_u8(r);
	struct h5_reader list = h5_reader_sub(r, h5_read_u16(r));
	struct h5_pipeline *pipeline;
	int rc = h5_reader_check(r, "filter pipeline");

	if (rc)
		return rc;
	if (section >= n || pipelines[section].count || count > H5_FILTERS_MAX)
		return h5_fail(-EUCLEAN, r->address, "filter pipeline: %u filters for section %u", count,
			       section);
	pipeline = &pipelines[section];
	pipeline->count = count;
	for (unsigned i = 0; i < count && !rc; i++)
		rc = decode_filter(&list, 2, &pipeline->filters[i]);
	if (!rc && h5_reader_left(&list))
		rc = h5_fail(-EUCLEAN, r->address, "filter pipeline: more bytes than filters for section %u",
			     section);
	return rc;
}

/* The message: version 1, number of filtered sections 1, and for each
 *
 *   offset  size  field
 *        0     1  section
 *        1     1  number of filters
 *        2     2  bytes of the filter descriptions
 *        4        filter descriptions of version 2 */
int h5_section_pipelines_decode(struct h5_reader *r, bool early, unsigned n, struct h5_pipeline *pipelines)
{
	unsigned version = h5_read_u8(r), sections = h5_read_u8(r);
	int rc = h5_reader_check(r, "filter pipeline");

	memset(pipelines, 0, n * sizeof *pipelines);
	if (rc)
		return rc;
	if (early ? version != 0 && version != 3 : version != 1)
		return h5_fail(-ENOTSUP, r->address,
			       "filter pipeline: version %u is not supported for structured chunks", version);
	for (unsigned i = 0; i < sections && !rc; i++)
		rc = decode_section(r, n, pipelines);
	for (unsigned i = 0; i < n && rc; i++)
		h5_pipeline_release(&pipelines[i]);
	return rc;
}

void h5_pipeline_release(struct h5_pipeline *pipeline)
{
	for (unsigned i = 0; i < pipeline->count; i++) {
		free(pipeline->filters[i].name);
		free(pipeline->filters[i].values);
	}
	memset(pipeline, 0, sizeof *pipeline);
}
