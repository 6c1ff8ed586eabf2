#include "format/superblock.h"

#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"

#include <string.h>

/* Offset and size of the file consistency flags. */
static size_t flags_at(unsigned version)
{
	return version < 2 ? 20 : 11;
}

static unsigned flags_size(unsigned version)
{
	return version < 2 ? 4 : 1;
}

/* Offset of the base address, which is the first address; the end-of-file address is the third one. */
static size_t base_at(unsigned version)
{
	return version == 0 ? 24 : version == 1 ? 28 : 12;
}

static int check_sizes(const struct h5_superblock *sb, uint64_t position)
{
	const uint8_t sizes[] = {sb->size_of_offsets, sb->size_of_lengths};

	for (int i = 0; i < 2; i++) {
		const char *what = i ? "lengths" : "offsets";

		if (sizes[i] == 16 || sizes[i] == 32)
			return h5_fail(-ENOTSUP, position, "superblock: %s of %u bytes are not supported",
				       what, sizes[i]);
		if (sizes[i] != 2 && sizes[i] != 4 && sizes[i] != 8)
			return h5_fail(-EUCLEAN, position, "superblock: size of %s is %u", what, sizes[i]);
	}
	return 0;
}

/* Versions 0 and 1, from byte 9 on.
 *
 *   offset  size  field
 *        9     1  version of the free space information
 *       10     1  version of the root group's symbol table entry
 *       12     1  version of the shared header message format
 *       13     1  size of offsets O
 *       14     1  size of lengths
 *       16     2  group leaf node K
 *       18     2  group internal node K
 *       20     4  file consistency flags
 *       24     2  indexed storage internal node K, and 2 reserved: version 1 only
 *              O  each: base address, free space info address, end-of-file address, driver information
 *                 block address
 *                 root group symbol table entry: link name offset L, object header address O, ... */
static int decode_old(struct h5_reader *r, struct h5_superblock *sb, uint64_t position)
{
	int rc;

	h5_reader_skip(r, 4);
	sb->size_of_offsets = h5_read_u8(r);
	sb->size_of_lengths = h5_read_u8(r);
	h5_reader_skip(r, 1);
	rc = h5_reader_check(r, "superblock");
	if (!rc)
		rc = check_sizes(sb, position);
	if (rc)
		return rc;
	r->size_of_offsets = sb->size_of_offsets;
	r->size_of_lengths = sb->size_of_lengths;
	sb->group_leaf_k = h5_read_u16(r);
	sb->group_internal_k = h5_read_u16(r);
	sb->consistency = (uint32_t)h5_read_uint(r, flags_size(sb->version));
	sb->chunk_k = 32;
	if (sb->version == 1)
		sb->chunk_k = h5_read_u16(r);
	h5_reader_skip(r, base_at(sb->version) - h5_reader_at(r));
	sb->base = h5_read_offset(r);
	h5_read_offset(r); /* free space info */
	sb->end = h5_read_offset(r);
	sb->driver_info = h5_read_offset(r);
	h5_read_length(r); /* link name offset */
	sb->root = h5_read_offset(r);
	sb->extension = H5_UNDEF;
	return h5_reader_check(r, "superblock");
}

/* Versions 2 and 3, from byte 9 on.
 *
 *   offset  size  field
 *        9     1  size of offsets O
 *       10     1  size of lengths
 *       11     1  file consistency flags
 *       12     O  each: base address, superblock extension address, end-of-file address, root group
 *                 object header address
 *              4  checksum                                                                        */
static int decode_new(struct h5_reader *r, struct h5_superblock *sb, uint64_t position)
{
	int rc;

	sb->size_of_offsets = h5_read_u8(r);
	sb->size_of_lengths = h5_read_u8(r);
	sb->consistency = (uint32_t)h5_read_uint(r, flags_size(sb->version));
	rc = h5_reader_check(r, "superblock");
	if (!rc)
		rc = check_sizes(sb, position);
	if (rc)
		return rc;
	r->size_of_offsets = sb->size_of_offsets;
	r->size_of_lengths = sb->size_of_lengths;
	sb->base = h5_read_offset(r);
	sb->extension = h5_read_offset(r);
	sb->end = h5_read_offset(r);
	sb->root = h5_read_offset(r);
	sb->driver_info = H5_UNDEF;
	sb->group_leaf_k = 4;
	sb->group_internal_k = 16;
	sb->chunk_k = 32;
	return h5_reader_checksum(r, "superblock");
}

int h5_superblock_decode(const uint8_t *data, size_t size, uint64_t position, struct h5_superblock *sb)
{
	struct h5_reader r = h5_reader_init(data, size, position, 8, 8);
	int rc;

	memset(sb, 0, sizeof *sb);
	h5_reader_skip(&r, 8); /* format signature */
	sb->version = h5_read_u8(&r);
	if (sb->version > 3)
		return h5_fail(-ENOTSUP, position, "superblock: version %u is not supported", sb->version);
	rc = sb->version < 2 ? decode_old(&r, sb, position) : decode_new(&r, sb, position);
	if (!rc && sb->root == H5_UNDEF)
		rc = h5_fail(-EUCLEAN, position, "superblock: no root group");
	if (!rc && sb->base == H5_UNDEF)
		rc = h5_fail(-EUCLEAN, position, "superblock: no base address");
	return rc;
}

/* In versions 0 and 1 a symbol table entry ends it: a name of the size of lengths, an address, and 24 bytes.
 */
size_t h5_superblock_size(const struct h5_superblock *sb)
{
	if (sb->version > 1)
		return 12 + 4 * (size_t)sb->size_of_offsets + 4;
	return base_at(sb->version) + 5 * (size_t)sb->size_of_offsets + sb->size_of_lengths + 24;
}

void h5_superblock_encode(struct h5_writer *w, const struct h5_superblock *sb)
{
	w->err |= sb->version != 2 && sb->version != 3;
	h5_write_bytes(w, H5_SIGNATURE, sizeof H5_SIGNATURE - 1);
	h5_write_u8(w, sb->version);
	h5_write_u8(w, sb->size_of_offsets);
	h5_write_u8(w, sb->size_of_lengths);
	h5_write_u8(w, (uint8_t)sb->consistency);
	h5_write_offset(w, sb->base);
	h5_write_offset(w, sb->extension);
	h5_write_offset(w, sb->end);
	h5_write_offset(w, sb->root);
	h5_write_checksum(w);
}

int h5_superblock_update(uint8_t *data, size_t size, const struct h5_superblock *sb, size_t *offset,
			 size_t *changed)
{
	size_t flags = flags_at(sb->version), base = base_at(sb->version);
	size_t end = base + 2 * (size_t)sb->size_of_offsets;
	unsigned width = flags_size(sb->version);
	struct h5_writer w = h5_writer_init(data, size, sb->size_of_offsets, sb->size_of_lengths);
	bool marked;

	if (size < end + sb->size_of_offsets)
		return h5_fail(-EUCLEAN, H5_UNDEF, "superblock: truncated");
	marked = h5_uint_from(data + flags, width) != sb->consistency;
	h5_uint_to(data + flags, sb->consistency, width);
	w.p = data + end;
	h5_write_offset(&w, sb->end - sb->base + h5_uint_from(data + base, sb->size_of_offsets));
	*offset = sb->version > 1 ? 0 : marked ? flags : end;
	if (sb->version > 1) {
		w.p += sb->size_of_offsets; /* root group */
		h5_write_checksum(&w);
	}
	*changed = h5_writer_at(&w) - *offset;
	return h5_writer_check(&w, "superblock");
}
