/* The journal FILE.h5fs-journal as bytes: a format of h5fs's own. doc/writing.md says what it is for.
 *
 * It begins with a header of one sector, which is written once. Behind that is one record, which each commit
 * overwrites. */
#ifndef H5_FORMAT_JOURNAL_H
#define H5_FORMAT_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	H5_JOURNAL_SECTOR = 512, /* bytes of a sector, which a medium writes as a whole or not at all */
	H5_JOURNAL_HEADER = H5_JOURNAL_SECTOR,
	H5_JOURNAL_RECORD_MIN = 72,
	H5_JOURNAL_RECORD_MAX = 1 << 30,
	H5_JOURNAL_PIECE = 1 << 16, /* bytes of a piece for h5_journal_hash_next() */
	H5_JOURNAL_VERSION = 2,	    /* the version that is written; older ones are read */
};

/* Identifies a file, also after it was renamed. A new file may get the inode number of one that is gone, but
 * was born later. All 0: not known. */
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
	bool guard; /* a guard: must be as before, except where another patch changes it; `after` is not used.
		       Only guards may overlap others */
	const uint8_t *before, *after; /* borrowed */
};

/* Bytes that no patch changes, and that must be as they were, or there is no replay: new metadata blocks, new
 * raw data (since version 2), and bytes that the commit supersedes. They do not overlap each other. */
struct h5_journal_extent {
	uint64_t offset, size; /* absolute */
	uint64_t hash;	       /* by h5_journal_hash_next() of the record's version */
};

struct h5_journal_record {
	unsigned version; /* of a record that was decoded */
	uint8_t id[16];	  /* of the journal */
	uint64_t sequence;
	uint64_t size; /* least size of the file in bytes: all that the record describes ends there or before
			*/
	unsigned patch_count, extent_count, object_count;
	const struct h5_journal_patch *patches; /* in the order in which they are written */
	const struct h5_journal_extent *extents;
	const uint64_t *objects; /* addresses (relative to the base) of the object headers that change */
};

bool h5_journal_is_zero(const uint8_t *data, size_t n);
/* The hash of the version that is written. It finds accidental differences, not intended ones. */
uint64_t h5_journal_hash(const void *data, size_t n);
/* Computes the hash of a version piece by piece. All pieces but the last have H5_JOURNAL_PIECE bytes.
 * `before`: the result for the piece before; 0 for the first one. */
uint64_t h5_journal_hash_next(unsigned version, uint64_t before, const void *piece, size_t n);

void h5_journal_header_encode(const struct h5_journal_header *header, uint8_t data[H5_JOURNAL_HEADER]);
/* -ENODATA: empty, or not written completely; -EUCLEAN: something else; -ENOTSUP: of a later version. */
int h5_journal_header_decode(const uint8_t *data, size_t n, struct h5_journal_header *header);

/* True: both are known, and are the same. */
bool h5_journal_same_file(const struct h5_journal_file *a, const struct h5_journal_file *b);

/* Bytes of the record; -EFBIG: more than H5_JOURNAL_RECORD_MAX; -EUCLEAN: it breaks the rules above. */
int h5_journal_record_size(const struct h5_journal_record *record, size_t *size);
/* `size` is what the function above says. */
int h5_journal_record_encode(const struct h5_journal_record *record, uint8_t *data, size_t size);
/* The version of the record that begins with these H5_JOURNAL_RECORD_MIN bytes; 0: there is none. */
unsigned h5_journal_record_version(const uint8_t *data, size_t n);
/* Bytes of the record that begins with these (H5_JOURNAL_RECORD_MIN, or all up to its end); 0: there is none.
 */
size_t h5_journal_record_length(const uint8_t *data, size_t n);
/* Checks if the record that begins with these H5_JOURNAL_RECORD_MIN bytes can belong to a file of `file_size`
 * bytes, whose addresses end at `file_end`: each part of it describes at least one byte of the file. This
 * limits the memory that decoding takes, even if the journal is a long hole. -EUCLEAN: it cannot. */
int h5_journal_record_check(const uint8_t *data, uint64_t file_size, uint64_t file_end);
/* The patches borrow from `data`; the record owns its arrays. -ENODATA: empty, or not written completely;
 * -EUCLEAN: complete, but it makes no sense. */
int h5_journal_record_decode(const uint8_t *data, size_t n, struct h5_journal_record *record);
void h5_journal_record_release(struct h5_journal_record *record); /* of a decoded one; may run twice */

#endif
