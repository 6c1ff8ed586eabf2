#include "format/cache_image.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/lookup3.h"

/*   offset  size  field
 *        0     1  version, 0
 *        1     O  address of the image
 *              L  its size                     */
int h5_cache_image_message_decode(struct h5_reader *r, struct h5_cache_image_message *message)
{
	uint8_t version = h5_read_u8(r);

	message->address = h5_read_offset(r);
	message->size = h5_read_length(r);
	if (!r->err && version)
		return h5_fail(-ENOTSUP, r->address, "cache image message: version %u is not supported",
			       version);
	return h5_reader_check(r, "cache image message");
}

/*   offset  size  field
 *        0     4  signature "MDCI"
 *        4     1  version, 0
 *        5     1  flags
 *        6     L  size of the image
 *              4  number of entries
 *                 entries
 *              4  checksum                     */
int h5_cache_image_decode(struct h5_reader *r, uint32_t *entries)
{
	size_t size = h5_reader_left(r);
	uint8_t version;

	if (!h5_read_signature(r, "MDCI"))
		return h5_fail(-EUCLEAN, r->address, "cache image: wrong signature");
	version = h5_read_u8(r);
	h5_reader_skip(r, 1);
	h5_read_length(r);
	*entries = h5_read_u32(r);
	if (r->err || h5_reader_left(r) < 4)
		return h5_fail(-EUCLEAN, r->address, "cache image: truncated");
	if (version)
		return h5_fail(-ENOTSUP, r->address, "cache image: version %u is not supported", version);
	if (!h5_checksum_matches(h5_uint_from(r->end - 4, 4), h5_lookup3(r->begin, size - 4, 0)))
		return h5_fail(-EUCLEAN, r->address, "cache image: wrong checksum");
	r->end -= 4;
	return 0;
}

/*   offset  size  field
 *        0     1  type of the entry
 *        1     1  flags
 *        2     1  ring
 *        3     1  age
 *        4     2  number of flush dependency children
 *        6     2  number of dirty ones of these
 *        8     2  number of flush dependency parents P
 *       10     4  rank in the LRU list
 *       14     O  address
 *              L  size
 *                 addresses of the parents, P x O
 *                 the bytes                    */
int h5_cache_image_entry_decode(struct h5_reader *r, struct h5_cache_image_entry *entry)
{
	unsigned parents;

	h5_reader_skip(r, 8);
	parents = h5_read_u16(r);
	h5_reader_skip(r, 4);
	entry->address = h5_read_offset(r);
	entry->size = h5_read_length(r);
	h5_reader_skip(r, (size_t)parents * r->size_of_offsets);
	entry->data = h5_read_bytes(r, entry->size);
	return h5_reader_check(r, "cache image entry");
}
