/* The journal FILE.h5fs-journal as bytes: a format of h5fs's own. doc/writing.md says what it is for.
 *
 * It begins with a header of one sector, written once; behind that stands one record, which each commit
 * overwrites. */
#ifndef H5_FORMAT_JOURNAL_H
#define H5_FORMAT_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	H5_JOURNAL_SECTOR = 512, /* what a medium writes whole or not at all */
	H5_JOURNAL_HEADER = H5_JOURNAL_SECTOR,
	H5_JOURNAL_RECORD_MIN = 72,
	H5_JOURNAL_RECORD_MAX = 1 << 30,
	H5_JOURNAL_PIECE = 1 << 16, /* of h5_journal_hash_next() */
	H5_JOURNAL_VERSION = 2,	    /* that is written; older ones are read */
};

/* What stays with a file that is renamed, and that no other file has: a new file may have the inode number of
 * one that is gone, but is younger. All 0: not known. */
struct h5_journal_file {
	uint64_t inode;
	uint64_t born; /* seconds since 1970 */
	uint32_t nanoseconds;
};

struct h5_journal_header {
	uint8_t id[16];		     /* random, of the mount */
	bool swmr;		     /* marks in the superblock are this mount's own */
	struct h5_journal_file file; /* whose journal it is */
};

/* Bytes that a commit changes in place. */
struct h5_journal_patch {
	uint64_t offset; /* absolute: user block included */
	uint32_t size;
	bool guard; /* must be as before where no other patch changes it; `after` isn't used. The others do
		       not overlap */
	const uint8_t *before, *after; /* borrowed */
};

/* Bytes that no patch changes and that must be what they were for a replay: new metadata blocks, new raw data
 * (since version 2), and what the commit supersedes. They do not overlap each other. */
struct h5_journal_extent {
	uint64_t offset, size; /* absolute */
	uint64_t hash;	       /* by h5_journal_hash_next() of the record's version */
};

struct h5_journal_record {
	unsigned version; /* of one that was decoded */
	uint8_t id[16];	  /* of the journal */
	uint64_t sequence;
	uint64_t size; /* bytes that the file has at least: all that is told here lies before it */
	unsigned patch_count, extent_count, object_count;
	const struct h5_journal_patch *patches; /* in the order in which they are made */
	const struct h5_journal_extent *extents;
	const uint64_t *objects; /* addresses (relative to the base) of the object headers that change */
};

bool h5_journal_is_zero(const uint8_t *data, size_t n);
/* Of the version that is written. It is for differences by chance, not by intent. */
uint64_t h5_journal_hash(const void *data, size_t n);
/* The hash of a version piece by piece: each but the last of H5_JOURNAL_PIECE bytes, the first one with
 * `before` 0. */
uint64_t h5_journal_hash_next(unsigned version, uint64_t before, const void *piece, size_t n);

void h5_journal_header_encode(const struct h5_journal_header *header, uint8_t data[H5_JOURNAL_HEADER]);
/* -ENODATA: empty, or not written completely; -EUCLEAN: something else; -ENOTSUP: of a later version. */
int h5_journal_header_decode(const uint8_t *data, size_t n, struct h5_journal_header *header);

/* True: both are known, and the same. */
bool h5_journal_same_file(const struct h5_journal_file *a, const struct h5_journal_file *b);

/* Bytes of the record; -EFBIG: more than H5_JOURNAL_RECORD_MAX; -EUCLEAN: it breaks what is said above. */
int h5_journal_record_size(const struct h5_journal_record *record, size_t *size);
/* `size` is what the function above says. */
int h5_journal_record_encode(const struct h5_journal_record *record, uint8_t *data, size_t size);
/* The version of the record that begins with these H5_JOURNAL_RECORD_MIN bytes; 0: there is none. */
unsigned h5_journal_record_version(const uint8_t *data, size_t n);
/* Bytes of the record that begins with these (H5_JOURNAL_RECORD_MIN, or all up to its end); 0: there is none.
 */
size_t h5_journal_record_length(const uint8_t *data, size_t n);
/* Whether the record that begins with these H5_JOURNAL_RECORD_MIN bytes can be one of a file of `file_size`
 * bytes: each of its parts stands for a byte of the file at least. So a file bounds what decoding the record
 * takes, however long a hole the journal is. -EUCLEAN: nobody can have meant that. */
int h5_journal_record_check(const uint8_t *data, uint64_t file_size);
/* The patches borrow from `data`; the arrays are the record's. -ENODATA: empty, or not written completely;
 * -EUCLEAN: nobody can have meant that. */
int h5_journal_record_decode(const uint8_t *data, size_t n, struct h5_journal_record *record);
void h5_journal_record_release(struct h5_journal_record *record); /* of a decoded one; may run twice */

#endif
