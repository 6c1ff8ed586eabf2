#include "format/driver_info.h"

#include "base/error.h"
#include "base/writer.h"

#include <stdbool.h>
#include <string.h>

enum {
	RAW_DATA = 3, /* of the kinds of data in the mapping */
	GLOBAL_HEAP = 4,
	MULTI_HEAD = 8, /* bytes before the addresses of members */
};

/* Family driver information, specification II.B.
 *
 *   offset  size  field
 *        0     8  size of a member file */
static int decode_family(struct h5_reader *r, struct h5_driver_info *info)
{
	info->driver = H5_DRIVER_FAMILY;
	info->member_size = h5_read_u64(r);
	if (!r->err && !info->member_size)
		return h5_fail(-EUCLEAN, r->address, "driver information: family members of 0 bytes");
	return 0;
}

/* A name and the NULs that fill it up to a multiple of 8. */
static int decode_name(struct h5_reader *r, char *name)
{
	const uint8_t *end = memchr(r->p, 0, h5_reader_left(r));
	size_t n = end ? (size_t)(end - r->p) : 0;

	if (!end || !n || n >= H5_DRIVER_NAME_SIZE)
		return h5_fail(-EUCLEAN, h5_reader_address(r), "driver information: name of a member");
	memcpy(name, r->p, n + 1);
	h5_reader_skip(r, (n + 8) / 8 * 8);
	return 0;
}

/* Multi driver information, specification II.B; the kinds of data, specification VI. The members are stored
 * in the order in which the mapping first names them. A kind of data that is mapped to 0 has a member of its
 * own.
 *
 *   offset  size  field
 *        0     6  member mapping, 1 to 6 for each kind of data: superblock, B-tree, raw data, global heap,
 *                 local heap, object header
 *        6     2  reserved
 *        8        for each member: its address 8, its end of address 8, from there on
 *                 for each member: its name, NUL-terminated, filled up to a multiple of 8 bytes */
static int decode_multi(struct h5_reader *r, struct h5_driver_info *info)
{
	unsigned seen[H5_DRIVER_MEMBERS_MAX + 1] = {0}; /* 1, 2, ...: the first, second, ... */
	int rc = 0;

	info->driver = H5_DRIVER_MULTI;
	for (unsigned kind = 1; kind <= H5_DRIVER_MEMBERS_MAX; kind++) {
		uint8_t member = h5_read_u8(r);

		if (!member)
			member = (uint8_t)kind;
		if (member > H5_DRIVER_MEMBERS_MAX)
			return h5_fail(-EUCLEAN, r->address, "driver information: mapping to member %u",
				       member);
		if (!seen[member])
			seen[member] = ++info->members;
		if (kind == RAW_DATA)
			info->raw = seen[member] - 1;
		else if (kind != GLOBAL_HEAP || seen[member] - 1 != info->raw)
			info->spread |= seen[member] > 1;
	}
	h5_reader_skip(r, 2);
	for (unsigned i = 0; i < info->members; i++) {
		info->member[i].start = h5_read_u64(r);
		info->member[i].end = h5_read_u64(r);
	}
	for (unsigned i = 0; i < info->members && !rc && !r->err; i++)
		rc = decode_name(r, info->member[i].name);
	return rc;
}

/* `length`: with the NUL. */
static int decode_folder(struct h5_reader *r, uint64_t length, char folder[H5_DRIVER_FOLDER_SIZE])
{
	if (!length)
		return 0;
	if (length > H5_DRIVER_FOLDER_SIZE || length > h5_reader_left(r) ||
	    memchr(r->p, 0, (size_t)length) != r->p + length - 1)
		return h5_fail(-EUCLEAN, h5_reader_address(r),
			       "driver information: folder of the configuration");
	memcpy(folder, r->p, (size_t)length);
	h5_reader_skip(r, (size_t)length);
	return 0;
}

size_t h5_driver_info_ends_size(unsigned members)
{
	return MULTI_HEAD + 16 * (size_t)members;
}

int h5_driver_info_set_ends(uint8_t *data, size_t n, const uint64_t *ends, unsigned members)
{
	if (n < h5_driver_info_ends_size(members))
		return h5_fail(-EUCLEAN, H5_UNDEF, "driver information: %zu bytes", n);
	for (unsigned i = 0; i < members; i++)
		h5_uint_to(data + MULTI_HEAD + 16 * i + 8, ends[i], 8);
	return 0;
}

/* Information of the subfiling driver. Not in the specification: see libhdf5's H5FDsubfiling.
 *
 *   offset  size  field
 *        0     4  magic number 0xFED01331
 *        4     4  version, 1
 *        8     4  1: the subfiles belong to I/O concentrators
 *       12     8  bytes of a stripe, signed
 *       20     8  number of subfiles, signed
 *       28     8  bytes N of the name below, NUL included; 0: the configuration file lies beside the stub
 *       36     N  name of the folder of the configuration file, NUL-terminated
 *       36+N      information on the driver of the subfiles */
static int decode_subfiling(struct h5_reader *r, struct h5_driver_info *info)
{
	uint32_t magic = h5_read_u32(r), version = h5_read_u32(r);
	uint64_t length;

	info->driver = H5_DRIVER_SUBFILING;
	h5_reader_skip(r, 4);
	info->stripe_size = h5_read_u64(r);
	info->subfiles = h5_read_u64(r);
	length = h5_read_u64(r);
	if (r->err)
		return 0;
	if (magic != 0xfed01331)
		return h5_fail(-EUCLEAN, r->address, "driver information: magic number 0x%x of subfiling",
			       magic);
	if (version != 1)
		return h5_fail(-ENOTSUP, r->address, "driver information: version %u of subfiling", version);
	if (!info->stripe_size || info->stripe_size > INT64_MAX)
		return h5_fail(-EUCLEAN, r->address, "driver information: stripes of %jd bytes",
			       (intmax_t)info->stripe_size);
	if (!info->subfiles || info->subfiles > INT64_MAX)
		return h5_fail(-EUCLEAN, r->address, "driver information: %jd subfiles",
			       (intmax_t)info->subfiles);
	return decode_folder(r, length, info->folder);
}

static int decode(struct h5_reader *r, const uint8_t *id, size_t size, struct h5_driver_info *info)
{
	struct h5_reader data = h5_reader_sub(r, size);
	int rc = h5_reader_check(r, "driver information");

	if (rc)
		return rc;
	if (!memcmp(id, "NCSAfami", 8))
		rc = decode_family(&data, info);
	else if (!memcmp(id, "NCSAmult", 8))
		rc = decode_multi(&data, info);
	else if (!memcmp(id, "Subfilin", 8))
		rc = decode_subfiling(&data, info);
	return rc ? rc : h5_reader_check(&data, "driver information");
}

/*   offset  size  field
 *        0     1  version, 0
 *        1     3  reserved
 *        4     4  size of the information N
 *        8     8  identification
 *       16     N  information             */
int h5_driver_info_block_decode(struct h5_reader *r, struct h5_driver_info *info)
{
	uint8_t version = h5_read_u8(r);
	uint32_t size;
	const uint8_t *id;

	memset(info, 0, sizeof *info);
	h5_reader_skip(r, 3);
	size = h5_read_u32(r);
	id = h5_read_bytes(r, 8);
	if (version)
		return h5_fail(-EUCLEAN, r->address, "driver information block: version %u", version);
	return decode(r, id, size, info);
}

uint32_t h5_driver_info_block_size(const uint8_t *head)
{
	return (uint32_t)h5_uint_from(head + 4, 4);
}

/*   offset  size  field
 *        0     1  version, 0
 *        1     8  identification
 *        9     2  size of the information N
 *       11     N  information             */
int h5_driver_info_message_decode(struct h5_reader *r, struct h5_driver_info *info)
{
	uint8_t version = h5_read_u8(r);
	const uint8_t *id = h5_read_bytes(r, 8);
	uint16_t size = h5_read_u16(r);

	memset(info, 0, sizeof *info);
	if (version)
		return h5_fail(-EUCLEAN, r->address, "driver info message: version %u", version);
	return decode(r, id, size, info);
}

/* The names are those of the specification; libhdf5 divides the addresses into equal parts. */
void h5_driver_info_multi_default(struct h5_driver_info *info)
{
	static const char names[H5_DRIVER_MEMBERS_MAX][8] = {"%s-s.h5", "%s-b.h5", "%s-r.h5",
							     "%s-g.h5", "%s-l.h5", "%s-o.h5"};

	memset(info, 0, sizeof *info);
	info->driver = H5_DRIVER_MULTI;
	info->members = H5_DRIVER_MEMBERS_MAX;
	info->raw = RAW_DATA - 1;
	info->spread = true;
	for (unsigned i = 0; i < H5_DRIVER_MEMBERS_MAX; i++) {
		info->member[i].start = i * ((UINT64_MAX - 1) / H5_DRIVER_MEMBERS_MAX);
		memcpy(info->member[i].name, names[i], sizeof names[i]);
	}
}
