/* Free space that a file keeps track of: the File Space Info message (0x0017, in the superblock extension),
 * and header and section list of a free-space manager. Sources: specification III.H; for the message
 * libhdf5's public documentation. */
#ifndef H5_FORMAT_FREE_SPACE_H
#define H5_FORMAT_FREE_SPACE_H

#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>

enum { H5_FREE_SPACE_MANAGERS = 12, H5_FREE_SPACE_HEADER_MAX = 82 };

struct h5_file_space_info {
	bool persist;	    /* the file keeps track of its free space */
	uint64_t page_size; /* bytes of a page of the file space; 0: the file is not paged */
	unsigned count;
	uint64_t managers[H5_FREE_SPACE_MANAGERS]; /* addresses of headers; H5_UNDEF: none for that kind */
};

int h5_file_space_info_decode(struct h5_reader *r, struct h5_file_space_info *info);

struct h5_free_space_header {
	uint64_t total; /* bytes of free space that it tracks */
	uint64_t sections;
	uint64_t list;	    /* address of the section list; H5_UNDEF: none */
	uint64_t list_size; /* bytes of it that are used */
};

int h5_free_space_header_decode(struct h5_reader *r, struct h5_free_space_header *header);

/* Verifies a section list, but not the sections in it. `header`: address of the manager's. */
int h5_free_space_list_check(struct h5_reader *r, uint64_t header);

#endif
