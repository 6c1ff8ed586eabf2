/* External file list message (0x0007), version 1. Specification IV.A.2.h. */
#ifndef H5_FORMAT_EXTERNAL_FILES_H
#define H5_FORMAT_EXTERNAL_FILES_H

#include "base/reader.h"

#include <stdint.h>
#include <stdlib.h>

struct h5_external_slot {
	uint64_t name;	 /* offset in the local heap */
	uint64_t offset; /* bytes, in the external file */
	uint64_t size;	 /* bytes of the dataset that lie there; UINT64_MAX: all the rest */
};

struct h5_external_files {
	uint64_t heap; /* address of the local heap with the names */
	unsigned count;
	struct h5_external_slot *slots; /* in the order of the data */
};

int h5_external_files_decode(struct h5_reader *r, struct h5_external_files *files);
/* May run twice. */
static inline void h5_external_files_release(struct h5_external_files *files)
{
	free(files->slots);
	*files = (struct h5_external_files){0};
}

#endif
