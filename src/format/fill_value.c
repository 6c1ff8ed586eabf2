#include "format/fill_value.h"

#include "base/error.h"

#include <string.h>

enum {
	FLAG_UNDEFINED = 0x10, /* version 3 */
	FLAG_DEFINED = 0x20,
	WRITE_NEVER = 1, /* fill value write time */
	WRITE_IF_SET = 2,
};

/* Size (4 bytes, signed) and value. A size of 0 means the library's default, -1 `undefined`. */
static int decode_value(struct h5_reader *r, struct h5_fill_value *fill)
{
	uint32_t size = h5_read_u32(r);

	if (!size || size > INT32_MAX)
		return h5_reader_check(r, "fill value");
	fill->size = size;
	fill->value = h5_read_bytes(r, size);
	fill->defined = fill->value;
	return h5_reader_check(r, "fill value");
}

/*   offset  size  field
 *        0     1  version
 *                 versions 1 and 2:
 *        1     1  space allocation time
 *        2     1  fill value write time
 *        3     1  fill value defined
 *        4     4  size, and the value; not read if the value is not defined (version 2: missing)
 *                 version 3:
 *        1     1  flags: bits 0-1 allocation time, 2-3 write time, 4 undefined, 5 defined
 *        2     4  size, and the value; only if defined                                  */
int h5_fill_value_decode(struct h5_reader *r, struct h5_fill_value *fill)
{
	unsigned version = h5_read_u8(r);
	uint8_t flags;
	bool present;
	int rc = h5_reader_check(r, "fill value");

	memset(fill, 0, sizeof *fill);
	if (rc)
		return rc;
	switch (version) {
	case 1:
	case 2:
		fill->allocation = h5_read_u8(r);
		fill->never_written = h5_read_u8(r) == WRITE_NEVER;
		present = h5_read_u8(r);
		break;
	case 3:
		flags = h5_read_u8(r);
		fill->allocation = flags & 3;
		fill->never_written = (flags >> 2 & 3) == WRITE_NEVER;
		present = flags & FLAG_DEFINED;
		if (present && flags & FLAG_UNDEFINED)
			return h5_fail(-EUCLEAN, r->address, "fill value: both defined and undefined");
		break;
	default:
		return h5_fail(-ENOTSUP, r->address, "fill value: version %u is not supported", version);
	}
	return present ? decode_value(r, fill) : h5_reader_check(r, "fill value");
}

int h5_fill_value_old_decode(struct h5_reader *r, struct h5_fill_value *fill)
{
	memset(fill, 0, sizeof *fill);
	return decode_value(r, fill);
}

void h5_fill_value_encode(struct h5_writer *w, const struct h5_fill_value *fill)
{
	unsigned written = fill->never_written ? WRITE_NEVER : WRITE_IF_SET;

	h5_write_u8(w, 3);
	h5_write_u8(w, (uint8_t)(fill->allocation | written << 2 | (fill->defined ? FLAG_DEFINED : 0)));
	if (!fill->defined)
		return;
	h5_write_u32(w, fill->size);
	h5_write_bytes(w, fill->value, fill->size);
}
