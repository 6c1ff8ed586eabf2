#include "format/free_space.h"

#include "base/error.h"

enum { OLD_MANAGERS = 6, OLD_STRATEGY_PERSIST = 1, STRATEGY_PAGE = 1 };

/* Version 0                                      version 1
 *
 *   offset  size  field                            offset  size  field
 *        0     1  version, 0                            0     1  version, 1
 *        1     1  strategy; 1: persistent               1     1  strategy
 *        2     L  threshold                             2     1  persistent
 *              O  of each of 6 managers,                3     L  threshold
 *                 if persistent                               L  size of a file space page
 *                                                             2  threshold of the page end
 *                                                             O  end of the file before the managers
 *                                                             O  of each of 12 managers, if persistent */
int h5_file_space_info_decode(struct h5_reader *r, struct h5_file_space_info *info)
{
	uint8_t version = h5_read_u8(r), strategy = h5_read_u8(r);

	if (!r->err && version > 1)
		return h5_fail(-ENOTSUP, r->address, "file space info message: version %u is not supported",
			       version);
	info->persist = version ? h5_read_u8(r) : strategy == OLD_STRATEGY_PERSIST;
	h5_read_length(r);
	info->page_size = 0;
	if (version) {
		uint64_t size = h5_read_length(r);

		if (strategy == STRATEGY_PAGE)
			info->page_size = size;
		h5_reader_skip(r, 2);
		h5_read_offset(r);
	}
	info->count = !info->persist ? 0 : version ? H5_FREE_SPACE_MANAGERS : OLD_MANAGERS;
	for (unsigned i = 0; i < info->count; i++)
		info->managers[i] = h5_read_offset(r);
	return h5_reader_check(r, "file space info message");
}

/*   offset  size  field
 *        0     4  signature "FSHD"
 *        4     1  version, 0
 *        5     1  client: 0 fractal heap, 1 file
 *        6     L  total space tracked
 *              L  number of sections; of serialized ones; of unserialized ones
 *              2  number of section classes; shrink percent; expand percent; size of the address space
 *              L  maximum section size
 *              O  address of the serialized section list
 *              L  size of the list used; allocated
 *              4  checksum                                                                           */
int h5_free_space_header_decode(struct h5_reader *r, struct h5_free_space_header *header)
{
	uint8_t version;

	if (!h5_read_signature(r, "FSHD"))
		return h5_fail(-EUCLEAN, r->address, "free-space manager: wrong signature");
	version = h5_read_u8(r);
	if (!r->err && version)
		return h5_fail(-ENOTSUP, r->address, "free-space manager: version %u is not supported",
			       version);
	h5_reader_skip(r, 1);
	header->total = h5_read_length(r);
	header->sections = h5_read_length(r);
	h5_read_length(r);
	h5_read_length(r);
	h5_reader_skip(r, 8);
	h5_read_length(r);
	header->list = h5_read_offset(r);
	header->list_size = h5_read_length(r);
	h5_read_length(r);
	return h5_reader_checksum(r, "free-space manager");
}

/*   offset  size  field
 *        0     4  signature "FSSE"
 *        4     1  version, 0
 *        5     O  address of the manager's header
 *                 sections
 *              4  checksum             */
int h5_free_space_list_check(struct h5_reader *r, uint64_t header)
{
	bool is_list = h5_read_signature(r, "FSSE");
	uint8_t version = h5_read_u8(r);
	uint64_t owner = h5_read_offset(r);

	if (!is_list)
		return h5_fail(-EUCLEAN, r->address, "free-space section list: wrong signature");
	if (version)
		return h5_fail(-ENOTSUP, r->address, "free-space section list: version %u is not supported",
			       version);
	if (owner != header)
		return h5_fail(-EUCLEAN, r->address,
			       "free-space section list: it belongs to another manager");
	if (h5_reader_left(r) >= 4)
		h5_reader_skip(r, h5_reader_left(r) - 4);
	return h5_reader_checksum(r, "free-space section list");
}
