#include "base/reader.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/little_endian.h"
#include "base/lookup3.h"

#include <string.h>

struct h5_reader h5_reader_init(const void *data, size_t size, uint64_t address, uint8_t size_of_offsets,
				uint8_t size_of_lengths)
{
	const uint8_t *p = data;

	return (struct h5_reader){.begin = p,
				  .p = p,
				  .end = p + size,
				  .address = address,
				  .size_of_offsets = size_of_offsets,
				  .size_of_lengths = size_of_lengths};
}

struct h5_reader h5_reader_sub(struct h5_reader *r, uint64_t n)
{
	struct h5_reader sub = *r;
	const uint8_t *p = h5_read_bytes(r, n);

	sub.address = h5_reader_address(&sub);
	sub.err = !p;
	sub.begin = sub.p = p ? p : r->end;
	sub.end = sub.p + (p ? n : 0);
	return sub;
}

uint64_t h5_reader_address(const struct h5_reader *r)
{
	return r->address == H5_UNDEF ? H5_UNDEF : r->address + h5_reader_at(r);
}

const uint8_t *h5_read_bytes(struct h5_reader *r, uint64_t n)
{
	const uint8_t *p = r->p;

	if (r->err || n > h5_reader_left(r)) {
		r->err = true;
		return NULL;
	}
	r->p += n;
	return p;
}

void h5_reader_skip(struct h5_reader *r, uint64_t n)
{
	(void)h5_read_bytes(r, n);
}

uint64_t h5_uint_from(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	/* Most numbers have 8 bytes. */
	if (n == sizeof v)
		return h5_le64(p);
	for (unsigned i = 0; i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

uint64_t h5_read_uint(struct h5_reader *r, unsigned n)
{
	const uint8_t *p;

	if (n > 8) {
		r->err = true;
		return 0;
	}
	p = h5_read_bytes(r, n);
	return p ? h5_uint_from(p, n) : 0;
}

uint8_t h5_read_u8(struct h5_reader *r)
{
	return (uint8_t)h5_read_uint(r, 1);
}

uint16_t h5_read_u16(struct h5_reader *r)
{
	return (uint16_t)h5_read_uint(r, 2);
}

uint32_t h5_read_u32(struct h5_reader *r)
{
	return (uint32_t)h5_read_uint(r, 4);
}

uint64_t h5_read_u64(struct h5_reader *r)
{
	return h5_read_uint(r, 8);
}

static uint64_t read_address_like(struct h5_reader *r, unsigned n)
{
	uint64_t v = h5_read_uint(r, n);

	return n && n < 8 && v == ((uint64_t)1 << (8 * n)) - 1 ? UINT64_MAX : v;
}

uint64_t h5_read_offset(struct h5_reader *r)
{
	return read_address_like(r, r->size_of_offsets);
}

uint64_t h5_read_length(struct h5_reader *r)
{
	return read_address_like(r, r->size_of_lengths);
}

bool h5_read_signature(struct h5_reader *r, const char signature[4])
{
	const uint8_t *p = h5_read_bytes(r, 4);

	return p && !memcmp(p, signature, 4);
}

int h5_reader_check(const struct h5_reader *r, const char *what)
{
	return r->err ? h5_fail(-EUCLEAN, r->address, "%s: truncated", what) : 0;
}

int h5_reader_checksum(struct h5_reader *r, const char *what)
{
	size_t n = h5_reader_at(r);
	uint32_t stored = h5_read_u32(r);
	int rc = h5_reader_check(r, what);

	if (!rc && !h5_checksum_matches(stored, h5_lookup3(r->begin, n, 0)))
		rc = h5_fail(-EUCLEAN, r->address, "%s: wrong checksum", what);
	return rc;
}
