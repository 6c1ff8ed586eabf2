/* The file of libhdf5's onion driver, FILE.onion: the revisions of FILE. Not in the specification: see
 * libhdf5's H5FDonion. All numbers are little-endian. */
#ifndef H5_FORMAT_ONION_H
#define H5_FORMAT_ONION_H

#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>

/* The begin of FILE.onion. */
#define H5_ONION_SIGNATURE "OHDH"
/* All that FILE has if it was made with its first revision. */
#define H5_ONION_STUB "ONIONEOF"

enum {
	H5_ONION_HEADER_SIZE = 40,	   /* at the begin of the file */
	H5_ONION_HISTORY_PREFIX_SIZE = 16, /* the history without places and checksum */
	H5_ONION_PLACE_SIZE = 20,
	H5_ONION_RECORD_PREFIX_SIZE = 64, /* a record without index, comment and checksum */
	H5_ONION_PAGE_SIZE = 20,
	H5_ONION_CHECKSUM_SIZE = 4, /* at the end of each: Fletcher's, of all before it */
	H5_ONION_TIME_SIZE = 16,
};

struct h5_onion_header {
	bool is_written;		/* a program writes a revision, or has crashed */
	uint64_t origin_end;		/* size of FILE when its first revision began */
	uint64_t history, history_size; /* where the history is, and its bytes */
};

/* -EINVAL: the bytes are not the begin of such a file. */
int h5_onion_header_decode(struct h5_reader *r, struct h5_onion_header *header);

/* Decodes the prefix of a history of `size` bytes. */
int h5_onion_history_decode(struct h5_reader *r, uint64_t size, uint64_t *revisions);

/* The place of a revision's record in FILE.onion. */
struct h5_onion_place {
	uint64_t offset, size;
};

int h5_onion_place_decode(struct h5_reader *r, struct h5_onion_place *place);

struct h5_onion_record {
	char time[H5_ONION_TIME_SIZE + 1]; /* when the revision was finished: YYYYMMDDThhmmss, in UTC */
	uint64_t end;			   /* size of FILE in this revision */
	uint32_t page_size;		   /* a power of 2 */
	uint64_t pages;			   /* in the index: all that were changed since the origin */
};

/* Decodes the prefix of a record of `size` bytes. */
int h5_onion_record_decode(struct h5_reader *r, uint64_t size, struct h5_onion_record *record);

/* A page that was changed. */
struct h5_onion_page {
	uint64_t address; /* in FILE, a multiple of the size of a page */
	uint64_t offset;  /* in FILE.onion */
};

int h5_onion_page_decode(struct h5_reader *r, uint32_t page_size, struct h5_onion_page *page);

/* Reads the stored checksum, which is the next four bytes, and compares it with the computed one. `what` is
 * named in the error. */
int h5_onion_checksum(struct h5_reader *r, uint32_t computed, const char *what);

#endif
