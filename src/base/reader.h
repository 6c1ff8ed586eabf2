/* Bounded reader over bytes of a file, little-endian.
 *
 * Reading past the end gives zeros and sets `err`, which stays set: a decoder reads all its fields and asks
 * once, with h5_reader_check(), before it uses any of them as a count or a length. */
#ifndef H5_BASE_READER_H
#define H5_BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h5_reader {
	const uint8_t *begin, *p, *end; /* borrowed */
	uint64_t address;		/* of `begin` in the file; H5_UNDEF: nowhere */
	uint8_t size_of_offsets;	/* 2, 4 or 8; superblock */
	uint8_t size_of_lengths;
	bool err;
};

struct h5_reader h5_reader_init(const void *data, size_t size, uint64_t address, uint8_t size_of_offsets,
				uint8_t size_of_lengths);

/* A reader of the next n bytes; `r` passes over them. */
struct h5_reader h5_reader_sub(struct h5_reader *r, uint64_t n);

static inline size_t h5_reader_left(const struct h5_reader *r)
{
	return (size_t)(r->end - r->p);
}

/* Bytes read so far. */
static inline size_t h5_reader_at(const struct h5_reader *r)
{
	return (size_t)(r->p - r->begin);
}

/* File address of the next byte. */
uint64_t h5_reader_address(const struct h5_reader *r);

/* The next n bytes, borrowed from the reader's memory; NULL if there are fewer. */
const uint8_t *h5_read_bytes(struct h5_reader *r, uint64_t n);
void h5_reader_skip(struct h5_reader *r, uint64_t n);

uint8_t h5_read_u8(struct h5_reader *r);
uint16_t h5_read_u16(struct h5_reader *r);
uint32_t h5_read_u32(struct h5_reader *r);
uint64_t h5_read_u64(struct h5_reader *r);
/* n bytes, 0 to 8. */
uint64_t h5_read_uint(struct h5_reader *r, unsigned n);

/* A field of Size of Offsets / Size of Lengths bytes; all ones gives UINT64_MAX (H5_UNDEF) at every size. */
uint64_t h5_read_offset(struct h5_reader *r);
uint64_t h5_read_length(struct h5_reader *r);

/* True if the next bytes are the signature; it is passed over. */
bool h5_read_signature(struct h5_reader *r, const char signature[4]);

/* 0, or -EUCLEAN with "WHAT: truncated" if something was read beyond the end. */
int h5_reader_check(const struct h5_reader *r, const char *what);

/* Verifies the lookup3 checksum in the next four bytes against all that was read before them from `begin`. */
int h5_reader_checksum(struct h5_reader *r, const char *what);

/* Little-endian number of 0 to 8 bytes; nothing is checked. */
uint64_t h5_uint_from(const uint8_t *p, unsigned n);

#endif
