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

void h5_reference_count_encode(struct h5_writer *w, uint32_t references)
{
	h5_write_u8(w, 0);
	h5_write_u32(w, references);
}

enum { GROUP_LIMITS = 0x01, GROUP_ESTIMATES = 0x02 }; /* flags of a group info message */

/*   size  field
 *      1  version, 0
 *      1  flags
 *   2, 2  most links as messages, least links in dense storage: if flag bit 0
 *   2, 2  expected number of links, expected bytes of a name: if flag bit 1 */
int h5_group_info_decode(struct h5_reader *r, struct h5_group_info *info)
{
	uint8_t version = h5_read_u8(r), flags = h5_read_u8(r);

	if (version || flags & ~(GROUP_LIMITS | GROUP_ESTIMATES))
		return h5_fail(-EUCLEAN, r->address, "group info message: version %u, flags %#x", version,
			       flags);
	*info = (struct h5_group_info){.has_limits = flags & GROUP_LIMITS,
				       .max_compact = 8,
				       .min_dense = 6,
				       .has_estimates = flags & GROUP_ESTIMATES,
				       .entries = 4,
				       .name_size = 8};
	if (info->has_limits) {
		info->max_compact = h5_read_u16(r);
		info->min_dense = h5_read_u16(r);
	}
	if (info->has_estimates) {
		info->entries = h5_read_u16(r);
		info->name_size = h5_read_u16(r);
	}
	return h5_reader_check(r, "group info message");
}

void h5_group_info_encode(struct h5_writer *w, const struct h5_group_info *info)
{
	h5_write_u8(w, 0);
	h5_write_u8(w, (uint8_t)((info->has_limits ? GROUP_LIMITS : 0) |
				 (info->has_estimates ? GROUP_ESTIMATES : 0)));
	if (info->has_limits) {
		h5_write_u16(w, info->max_compact);
		h5_write_u16(w, info->min_dense);
	}
	if (info->has_estimates) {
		h5_write_u16(w, info->entries);
		h5_write_u16(w, info->name_size);
	}
}
