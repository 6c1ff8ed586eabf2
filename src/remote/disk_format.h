/* The bytes of a file of the disk cache, which holds what was fetched of one version of one remote file. All
 * are pure functions.
 *
 *   0                the header, H5_DISK_HEADER bytes
 *   H5_DISK_MAP      the map: for each block of the remote file 8 bytes, its sum; 0: it is not here
 *   at a multiple    the blocks, each at its place; the file is sparse
 *   of a block
 *
 * A block counts as here only if its bytes have the sum that the map says. So it does not matter in which
 * order bytes and map reach the disk, nor where a crash has cut them off. Numbers are little-endian. */
#ifndef H5_REMOTE_DISK_FORMAT_H
#define H5_REMOTE_DISK_FORMAT_H

#include "base/sha256.h"
#include "io/remote_protocol.h"
#include "remote/response.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	H5_DISK_BLOCK = H5_REMOTE_CELL,
	H5_DISK_HEADER = 512,
	H5_DISK_MAP = 4096,	       /* offset */
	H5_DISK_SUM = 8,	       /* bytes of an entry of the map */
	H5_DISK_DIGITS = 32,	       /* hexadecimal, of each hash in a name */
	H5_DISK_NAME = 80,	       /* bytes of a name, its NUL included */
	H5_DISK_TAG = H5_RESPONSE_TAG, /* bytes of an entity tag, its NUL included */
};

/* What all names begin with; others' files in the folder are left alone. */
#define H5_DISK_PREFIX "h5fs-"
/* What those begin with that are being made. */
#define H5_DISK_NEW H5_DISK_PREFIX "new-"

struct h5_disk_header {
	uint8_t url[H5_SHA256]; /* the hash of the URL without what is secret of it */
	uint64_t size;		/* of the remote file */
	int64_t mtime;		/* of the remote file, seconds since 1970; 0: not known */
	char tag[H5_DISK_TAG];	/* a strong entity tag, with its quotes */
};

void h5_disk_encode(const struct h5_disk_header *header, uint8_t bytes[H5_DISK_HEADER]);
/* -EUCLEAN: they are no header of this version. */
int h5_disk_decode(const uint8_t bytes[H5_DISK_HEADER], struct h5_disk_header *header);

/* Which blocks a remote file has. */
uint64_t h5_disk_blocks(uint64_t size);
/* Bytes of a block, of which the last one may have fewer. */
size_t h5_disk_block_size(uint64_t size, uint64_t block);
/* Offset of a block. */
uint64_t h5_disk_offset(uint64_t size, uint64_t block);
/* Bytes of the cache file; false: more than a file can have. */
bool h5_disk_file_size(uint64_t size, uint64_t *bytes);

/* What sums depend on beside the bytes, so that those of another file or version are wrong. */
uint64_t h5_disk_seed(const struct h5_disk_header *header);
/* Never 0. Finds what is torn, or altered by accident; whoever may write the file can make right ones. */
uint64_t h5_disk_sum(uint64_t seed, uint64_t block, const void *data, size_t n);

/* The name of the file: of the URL, and of the tag. */
void h5_disk_name(const uint8_t url[H5_SHA256], const char *tag, char name[H5_DISK_NAME]);
/* True: it is a name for a version of the URL; NULL: of any. */
bool h5_disk_is_name(const char *name, const uint8_t url[H5_SHA256]);

#endif
