#include "format/link.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum {
	NAME_WIDTH = 0x03, /* flags of a link message */
	HAS_ORDER = 0x04,
	HAS_TYPE = 0x08,
	HAS_CHARSET = 0x10,
	FLAGS_KNOWN = 0x1f,
};

/* The value of an external link: version and flags (0), file name, NUL, path, NUL. If the NULs are missing,
 * the link has a name but leads nowhere. */
static void read_external(const char *value, size_t n, struct h5_link *link)
{
	link->file = n ? value + 1 : value;
	n -= n ? 1 : 0;
	link->file_size = strnlen(link->file, n);
	n -= link->file_size;
	link->target = link->file + link->file_size + (n ? 1 : 0);
	link->target_size = n ? strnlen(link->target, n - 1) : 0;
}

/*   size  field
 *      1  version, 1
 *      1  flags
 *      1  link type, if flag bit 3; else it is a hard link
 *      8  creation order, if flag bit 2
 *      1  character set of the name, if flag bit 4
 *   1 << (flags & 3)  length of the name
 *         name
 *         hard: O address of the object header
 *         else: 2 length, and a value          */
int h5_link_decode(struct h5_reader *r, struct h5_link *link)
{
	uint8_t version = h5_read_u8(r), flags = h5_read_u8(r);
	const char *value;
	uint64_t length;

	memset(link, 0, sizeof *link);
	if (version != 1)
		return h5_fail(-EUCLEAN, r->address, "link message: version %u", version);
	if (flags & ~FLAGS_KNOWN)
		return h5_fail(-EUCLEAN, r->address, "link message: unknown flags %#x", flags);
	if (flags & HAS_TYPE)
		link->type = h5_read_u8(r);
	if (link->type > H5_LINK_SOFT && link->type < H5_LINK_EXTERNAL)
		return h5_fail(-EUCLEAN, r->address, "link message: type %u", link->type);
	link->has_order = flags & HAS_ORDER;
	if (link->has_order)
		link->order = (int64_t)h5_read_u64(r);
	if (flags & HAS_CHARSET)
		h5_reader_skip(r, 1);
	length = h5_read_uint(r, 1u << (flags & NAME_WIDTH));
	link->name = (const char *)h5_read_bytes(r, length);
	link->name_size = link->name ? (size_t)length : 0;
	if (link->type == H5_LINK_HARD) {
		link->address = h5_read_offset(r);
		return h5_reader_check(r, "link message");
	}
	length = h5_read_u16(r);
	value = (const char *)h5_read_bytes(r, length);
	if (value && link->type == H5_LINK_EXTERNAL) {
		read_external(value, (size_t)length, link);
	} else {
		link->target = value;
		link->target_size = value ? (size_t)length : 0;
	}
	return h5_reader_check(r, "link message");
}

static const char *copy_text(char **to, const char *from, size_t n)
{
	const char *at = *to;

	if (n)
		memcpy(*to, from, n);
	*to += n;
	return at;
}

int h5_link_copy(const struct h5_link *from, struct h5_link *to)
{
	char *text = malloc(from->name_size + from->target_size + from->file_size + 1);

	if (!text)
		return h5_fail(-ENOMEM, H5_UNDEF, "link: out of memory");
	*to = *from;
	to->owned = text;
	to->name = copy_text(&text, from->name, from->name_size);
	to->target = copy_text(&text, from->target, from->target_size);
	to->file = copy_text(&text, from->file, from->file_size);
	return 0;
}

void h5_link_release(struct h5_link *link)
{
	free(link->owned);
	*link = (struct h5_link){0};
}
