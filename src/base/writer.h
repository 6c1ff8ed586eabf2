/* Bounded writer of the bytes of a structure, little-endian: the counterpart of base/reader.h.
 *
 * Writing past the end sets `err` and writes nothing; an encoder checks it once, at its end. We know the size
 * of what we encode, so an error is a bug or damaged numbers, not a full disk. */
#ifndef H5_BASE_WRITER_H
#define H5_BASE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h5_writer {
	uint8_t *begin, *p, *end; /* borrowed */
	uint8_t size_of_offsets;  /* 2, 4 or 8; superblock */
	uint8_t size_of_lengths;
	bool err;
};

/* data NULL: nothing fits. */
static inline struct h5_writer h5_writer_init(void *data, size_t size, uint8_t size_of_offsets,
					      uint8_t size_of_lengths)
{
	return (struct h5_writer){.begin = data,
				  .p = data,
				  .end = data ? (uint8_t *)data + size : NULL,
				  .size_of_offsets = size_of_offsets,
				  .size_of_lengths = size_of_lengths};
}

/* Bytes written so far. */
static inline size_t h5_writer_at(const struct h5_writer *w)
{
	return (size_t)(w->p - w->begin);
}

void h5_write_bytes(struct h5_writer *w, const void *data, size_t n);
/* n times the byte. */
void h5_write_fill(struct h5_writer *w, uint8_t byte, size_t n);
void h5_write_u8(struct h5_writer *w, uint8_t value);
void h5_write_u16(struct h5_writer *w, uint16_t value);
void h5_write_u32(struct h5_writer *w, uint32_t value);
void h5_write_u64(struct h5_writer *w, uint64_t value);
/* The low n bytes, 0 to 8. */
void h5_write_uint(struct h5_writer *w, uint64_t value, unsigned n);
/* Fields of Size of Offsets / Size of Lengths bytes; H5_UNDEF is all ones at every size. A value that does
 * not fit sets `err`. */
void h5_write_offset(struct h5_writer *w, uint64_t value);
void h5_write_length(struct h5_writer *w, uint64_t value);
/* The lookup3 checksum of all that was written from `begin`. */
void h5_write_checksum(struct h5_writer *w);

/* 0, or -EOVERFLOW with "WHAT: ..." if something did not fit. */
int h5_writer_check(const struct h5_writer *w, const char *what);

/* Little-endian number of 0 to 8 bytes, anywhere; the counterpart of h5_uint_from(). */
void h5_uint_to(uint8_t *p, uint64_t value, unsigned n);

#endif
