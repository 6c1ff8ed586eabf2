#include "base/writer.h"

#include "base/error.h"
#include "base/lookup3.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

/* The place of the next n bytes; NULL: they do not fit. */
static uint8_t *take(struct h5_writer *w, size_t n)
{
	uint8_t *p = w->p;

	if (w->err || n > (size_t)(w->end - p)) {
		w->err = true;
		return NULL;
	}
	w->p += n;
	return p;
}

void h5_write_bytes(struct h5_writer *w, const void *data, size_t n)
{
	uint8_t *p = take(w, n);

	if (p && n)
		memcpy(p, data, n);
}

void h5_write_fill(struct h5_writer *w, uint8_t byte, size_t n)
{
	uint8_t *p = n ? take(w, n) : NULL;

	if (p)
		memset(p, byte, n);
}

void h5_uint_to(uint8_t *p, uint64_t value, unsigned n)
{
	const uint64_t little = htole64(value);

	/* Most numbers have 8 bytes. */
	if (n == sizeof little)
		memcpy(p, &little, sizeof little);
	else
		for (unsigned i = 0; i < n; i++)
			p[i] = (uint8_t)(value >> 8 * i);
}

void h5_write_uint(struct h5_writer *w, uint64_t value, unsigned n)
{
	uint8_t *p = take(w, n);

	assert(n <= sizeof value);
	if (p)
		h5_uint_to(p, value, n);
}

void h5_write_u8(struct h5_writer *w, uint8_t value)
{
	h5_write_uint(w, value, 1);
}

void h5_write_u16(struct h5_writer *w, uint16_t value)
{
	h5_write_uint(w, value, 2);
}

void h5_write_u32(struct h5_writer *w, uint32_t value)
{
	h5_write_uint(w, value, 4);
}

void h5_write_u64(struct h5_writer *w, uint64_t value)
{
	h5_write_uint(w, value, 8);
}

/* All ones stand for "undefined", so the largest number is one less. */
static void write_address(struct h5_writer *w, uint64_t value, unsigned n)
{
	if (n < 8 && value != H5_UNDEF && value >= (UINT64_C(1) << 8 * n) - 1)
		w->err = true;
	h5_write_uint(w, value, n);
}

void h5_write_offset(struct h5_writer *w, uint64_t value)
{
	write_address(w, value, w->size_of_offsets);
}

void h5_write_length(struct h5_writer *w, uint64_t value)
{
	write_address(w, value, w->size_of_lengths);
}

void h5_write_checksum(struct h5_writer *w)
{
	h5_write_u32(w, h5_lookup3(w->begin, h5_writer_at(w), 0));
}

int h5_writer_check(const struct h5_writer *w, const char *what)
{
	return w->err ? h5_fail(-EOVERFLOW, H5_UNDEF, "%s: a value or the whole does not fit", what) : 0;
}
