/* Superblock, versions 0 to 3. Specification II.A. */
#ifndef H5_FORMAT_SUPERBLOCK_H
#define H5_FORMAT_SUPERBLOCK_H

#include "base/writer.h"

#include <stddef.h>
#include <stdint.h>

enum {
	H5_SUPERBLOCK_MAX = 140, /* most bytes of a superblock: version 1 with 8-byte offsets, and some */
	H5_FLAG_WRITING = 1,	 /* consistency flags */
	H5_FLAG_SWMR = 4,
};

#define H5_SIGNATURE "\x89HDF\r\n\x1a\n"

struct h5_superblock {
	uint8_t version;
	uint8_t size_of_offsets, size_of_lengths; /* 2, 4 or 8 */
	uint32_t consistency;			  /* file consistency flags */
	uint16_t group_leaf_k, group_internal_k;  /* version 1 B-trees of groups; 4 and 16 if not stored */
	uint16_t chunk_k;			  /* version 1 B-trees of chunks; 32 if not stored */
	uint64_t base;				  /* absolute; every other address is relative to it */
	uint64_t extension;			  /* superblock extension's object header, H5_UNDEF: none */
	uint64_t end; /* end-of-file address; it counts from the begin of the file, in every version */
	uint64_t driver_info; /* version 0 and 1; H5_UNDEF: none */
	uint64_t root;	      /* root group's object header */
};

/* Decodes the superblock in data, found at byte `position` of the file. */
int h5_superblock_decode(const uint8_t *data, size_t size, uint64_t position, struct h5_superblock *sb);
/* Bytes that it takes. */
size_t h5_superblock_size(const struct h5_superblock *sb);
enum { H5_SUPERBLOCK_NEW = 48 }; /* bytes of a superblock of version 2 or 3 with 8-byte offsets */

/* Writes the superblock of a new file, of version 2 or 3. */
void h5_superblock_encode(struct h5_writer *w, const struct h5_superblock *sb);
/* Writes end-of-file address and consistency flags into the bytes of a superblock that was decoded to `sb`,
 * and its checksum. Gives offset and size of the bytes that may have changed: in an old superblock only the
 * end-of-file address if the flags are the same, else all.
 *
 * sb->end is absolute, user block included: libhdf5 stores it so in all versions. If the bytes have another
 * base than sb->base (a user block was added or removed later), the stored end is moved by the difference. */
int h5_superblock_update(uint8_t *data, size_t size, const struct h5_superblock *sb, size_t *offset,
			 size_t *changed);

#endif
