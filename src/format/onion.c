#include "format/onion.h"

#include "base/checked.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/fletcher32.h"

#include <string.h>

enum { VERSION = 1, IS_WRITTEN = 1 };

int h5_onion_checksum(struct h5_reader *r, uint32_t computed, const char *what)
{
	uint32_t stored = h5_read_u32(r);
	int rc = h5_reader_check(r, what);

	if (!rc && !h5_checksum_matches(stored, computed))
		rc = h5_fail(-EUCLEAN, r->address, "%s: wrong checksum", what);
	return rc;
}

/* The checksum of what the reader has read from `begin` on, which comes next. */
static int check_read(struct h5_reader *r, const uint8_t *begin, const char *what)
{
	return r->err ? h5_reader_check(r, what)
		      : h5_onion_checksum(r, h5_fletcher32(begin, (size_t)(r->p - begin)), what);
}

static int check_version(struct h5_reader *r, const char *what)
{
	uint8_t version = h5_read_u8(r);

	return version == VERSION || r->err ? 0
					    : h5_fail(-ENOTSUP, r->address, "%s: version %u", what, version);
}

/*   offset  size  field
 *        0     4  "OHDH"
 *        4     1  version, 1
 *        5     3  flags; bit 0: a program writes; bit 1: records and history begin at multiples of a page
 *        8     4  bytes of a page, for those who write
 *       12     8  size of FILE when its first revision began
 *       20     8  offset of the history
 *       28     8  bytes of the history
 *       36     4  checksum */
int h5_onion_header_decode(struct h5_reader *r, struct h5_onion_header *header)
{
	const uint8_t *begin = r->p;
	int rc;

	if (!h5_read_signature(r, H5_ONION_SIGNATURE))
		return h5_fail(-EINVAL, r->address, "no history of an onion file");
	rc = check_version(r, "header of an onion file");
	header->is_written = h5_read_uint(r, 3) & IS_WRITTEN;
	h5_reader_skip(r, 4);
	header->origin_end = h5_read_u64(r);
	header->history = h5_read_u64(r);
	header->history_size = h5_read_u64(r);
	return rc ? rc : check_read(r, begin, "header of an onion file");
}

/*   offset  size  field
 *        0     4  "OWHS"
 *        4     1  version, 1
 *        5     3  reserved
 *        8     8  number of revisions n
 *       16  20*n  places of their records
 *             4  checksum */
int h5_onion_history_decode(struct h5_reader *r, uint64_t size, uint64_t *revisions)
{
	bool found = h5_read_signature(r, "OWHS");
	int rc = found ? check_version(r, "history") : h5_fail(-EUCLEAN, r->address, "history: no signature");
	uint64_t bytes;

	if (rc)
		return rc;
	h5_reader_skip(r, 3);
	*revisions = h5_read_u64(r);
	if (!h5_mul(*revisions, H5_ONION_PLACE_SIZE, &bytes) ||
	    !h5_add(bytes, H5_ONION_HISTORY_PREFIX_SIZE + H5_ONION_CHECKSUM_SIZE, &bytes) || bytes != size)
		return h5_fail(-EUCLEAN, r->address, "history: %ju revisions in %ju bytes",
			       (uintmax_t)*revisions, (uintmax_t)size);
	return h5_reader_check(r, "history");
}

/*   offset  size  field
 *        0     8  offset of the record
 *        8     8  bytes of the record
 *       16     4  checksum */
int h5_onion_place_decode(struct h5_reader *r, struct h5_onion_place *place)
{
	const uint8_t *begin = r->p;

	place->offset = h5_read_u64(r);
	place->size = h5_read_u64(r);
	return check_read(r, begin, "history: place of a record");
}

/*   offset  size  field
 *        0     4  "ORRS"
 *        4     1  version, 1
 *        5     3  reserved
 *        8     8  number of the revision, from 0 on
 *       16     8  number of the revision that it was made of
 *       24    16  time
 *       40     8  size of FILE
 *       48     4  bytes of a page
 *       52     8  number of pages n
 *       60     4  bytes of the comment m
 *       64  20*n  the index: the pages
 *             m  comment
 *             4  checksum
 *
 * The numbers say nothing that the places of the records do not, and libhdf5 gives one twice if it changes an
 * old revision. */
int h5_onion_record_decode(struct h5_reader *r, uint64_t size, struct h5_onion_record *record)
{
	bool found = h5_read_signature(r, "ORRS");
	int rc = found ? check_version(r, "record of a revision")
		       : h5_fail(-EUCLEAN, r->address, "record of a revision: no signature");
	const uint8_t *time;
	uint64_t bytes;

	if (rc)
		return rc;
	memset(record, 0, sizeof *record);
	h5_reader_skip(r, 3 + 8 + 8);
	time = h5_read_bytes(r, H5_ONION_TIME_SIZE);
	if (time)
		memcpy(record->time, time, H5_ONION_TIME_SIZE);
	record->end = h5_read_u64(r);
	record->page_size = h5_read_u32(r);
	record->pages = h5_read_u64(r);
	bytes = (uint64_t)h5_read_u32(r) + H5_ONION_RECORD_PREFIX_SIZE + H5_ONION_CHECKSUM_SIZE;
	if (r->err)
		return h5_reader_check(r, "record of a revision");
	if (!record->page_size || record->page_size & (record->page_size - 1))
		return h5_fail(-EUCLEAN, r->address, "record of a revision: pages of %u bytes",
			       record->page_size);
	if (record->pages > (UINT64_MAX - bytes) / H5_ONION_PAGE_SIZE ||
	    bytes + record->pages * H5_ONION_PAGE_SIZE != size)
		return h5_fail(-EUCLEAN, r->address, "record of a revision: %ju pages in %ju bytes",
			       (uintmax_t)record->pages, (uintmax_t)size);
	return 0;
}

/*   offset  size  field
 *        0     8  address of the page in FILE
 *        8     8  offset of the page in FILE.onion
 *       16     4  checksum */
int h5_onion_page_decode(struct h5_reader *r, uint32_t page_size, struct h5_onion_page *page)
{
	const uint8_t *begin = r->p;
	int rc;

	page->address = h5_read_u64(r);
	page->offset = h5_read_u64(r);
	rc = check_read(r, begin, "index of a revision");
	if (!rc && page->address & (page_size - 1))
		rc = h5_fail(-EUCLEAN, r->address, "index of a revision: a page begins at %ju",
			     (uintmax_t)page->address);
	return rc;
}
