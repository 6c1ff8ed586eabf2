/* Filter pipeline message (0x000B), versions 1 and 2. Specification IV.A.2.l. Structured chunks: message
 * 0x0019, and in RFC version 16 (see format/layout.h) 0x000B of versions 0 and 3. */
#ifndef H5_FORMAT_PIPELINE_H
#define H5_FORMAT_PIPELINE_H

#include "base/reader.h"
#include "base/writer.h"

#include <stdbool.h>
#include <stdint.h>

enum { H5_FILTERS_MAX = 32 };

struct h5_filter_info {
	uint16_t id;
	bool optional;	/* flag bit 0 */
	char *name;	/* NULL: the message has none */
	unsigned count; /* client data values */
	uint32_t *values;
};

struct h5_pipeline {
	unsigned count;				       /* 0: no filters */
	struct h5_filter_info filters[H5_FILTERS_MAX]; /* in the order of writing */
};

int h5_pipeline_decode(struct h5_reader *r, struct h5_pipeline *pipeline);
/* Writes version 2. */
void h5_pipeline_message_encode(struct h5_writer *w, const struct h5_pipeline *pipeline);
/* Decodes the pipelines of structured chunks, one for each of `n` sections; sections without filters have
 * empty ones. `early`: the message is 0x000B. All are initialised, also after an error. */
int h5_section_pipelines_decode(struct h5_reader *r, bool early, unsigned n, struct h5_pipeline *pipelines);
void h5_pipeline_release(struct h5_pipeline *pipeline); /* may run twice */

#endif
