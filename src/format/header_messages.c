#include "format/header_messages.h"

#include "base/error.h"

#include <time.h>

/*   size  field
 *      1  version, 1
 *      3  reserved
 *      4  seconds since 1970 */
int h5_mtime_decode(struct h5_reader *r, int64_t *seconds)
{
	uint8_t version = h5_read_u8(r);

	h5_reader_skip(r, 3);
	*seconds = h5_read_u32(r);
	if (version != 1)
		return h5_fail(-EUCLEAN, r->address, "modification time message: version %u", version);
	return h5_reader_check(r, "modification time message");
}

/* Reads a decimal number of n ASCII digits; -1: there is something else. */
static int read_digits(struct h5_reader *r, unsigned n)
{
	int number = 0;

	for (unsigned i = 0; i < n; i++) {
		uint8_t c = h5_read_u8(r);

		if (c < '0' || c > '9')
			return -1;
		number = 10 * number + (c - '0');
	}
	return number;
}

/*   size  field, decimal digits
 *      4  year
 *   5 x 2  month, day, hour, minute, second
 *      2  reserved                         */
int h5_mtime_old_decode(struct h5_reader *r, int64_t *seconds)
{
	int year = read_digits(r, 4), part[5];
	bool digits = year >= 0;
	struct tm tm = {0};

	for (unsigned i = 0; i < 5 && digits; i++) {
		part[i] = read_digits(r, 2);
		digits = part[i] >= 0;
	}
	if (r->err || !digits)
		return h5_fail(-EUCLEAN, r->address, "modification time message: not a date");
	tm.tm_year = year - 1900;
	tm.tm_mon = part[0] - 1;
	tm.tm_mday = part[1];
	tm.tm_hour = part[2];
	tm.tm_min = part[3];
	tm.tm_sec = part[4];
	*seconds = timegm(&tm);
	return 0;
}

/*   size  field
 *      1  version, 0
 *      4  reference count */
int h5_reference_count_decode(struct h5_reader *r, uint32_t *references)
{
	uint8_t version = h5_read_u8(r);

	*references = h5_read_u32(r);
	if (version)
		return h5_fail(-EUCLEAN, r->address, "reference count message: version %u", version);
	return h5_reader_check(r, "reference count message");
}
