#include "format/attribute.h"

#include "base/error.h"

#include <string.h>

enum {
	TYPE_SHARED = 0x01, /* flags of version 2 and 3 */
	SPACE_SHARED = 0x02,
};

/* Reads a part of n bytes. In version 1 it is padded to a multiple of 8, but the padding may be missing at
 * the end of the message.
 */
static struct h5_reader part(struct h5_reader *r, unsigned version, size_t n)
{
	struct h5_reader sub = h5_reader_sub(r, n);
	size_t padding = version == 1 ? (8 - n % 8) % 8 : 0, left = h5_reader_left(r);

	h5_reader_skip(r, padding < left ? padding : left);
	return sub;
}

/*   size  field
 *      1  version
 *      1  version 1: reserved; else flags
 *      2  name size, with its NUL
 *      2  datatype size
 *      2  dataspace size
 *      1  character set of the name: version 3
 *         name, datatype, dataspace: in version 1 each padded to a multiple of 8
 *         data                                                                  */
int h5_attribute_decode(struct h5_reader *r, struct h5_attribute_message *attribute)
{
	uint8_t version = h5_read_u8(r), flags = h5_read_u8(r);
	uint16_t name_size = h5_read_u16(r), type_size = h5_read_u16(r), space_size = h5_read_u16(r);
	struct h5_reader name;
	int rc;

	memset(attribute, 0, sizeof *attribute);
	if (version < 1 || version > 3)
		return h5_fail(-EUCLEAN, r->address, "attribute message: version %u", version);
	if (version == 3)
		h5_reader_skip(r, 1);
	name = part(r, version, name_size);
	rc = h5_reader_check(&name, "attribute message");
	if (rc)
		return rc;
	attribute->name = (const char *)name.p;
	attribute->name_size = strnlen(attribute->name, name_size);
	attribute->type_shared = version > 1 && flags & TYPE_SHARED;
	attribute->space_shared = version > 1 && flags & SPACE_SHARED;
	attribute->type = part(r, version, type_size);
	attribute->space = part(r, version, space_size);
	attribute->data = h5_reader_sub(r, h5_reader_left(r));
	return 0;
}
