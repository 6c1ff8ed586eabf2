#include "object/file_space.h"

#include "base/checked.h"
#include "base/error.h"
#include "format/free_space.h"
#include "object/object.h"
#include "store/block.h"

static int read_info(struct h5_file *file, struct h5_file_space_info *info)
{
	struct h5_message_body body;
	int rc = h5_message_open_extension(file, H5_MSG_FILE_SPACE_INFO, &body);

	if (rc)
		return rc;
	rc = h5_file_space_info_decode(&body.reader, info);
	h5_message_release(file, &body);
	return rc || info->persist ? rc : -ENODATA;
}

static int decode_header(struct h5_reader *r, void *header)
{
	return h5_free_space_header_decode(r, header);
}

int h5_file_space_free(struct h5_file *file, uint64_t *bytes)
{
	struct h5_free_space_header header;
	struct h5_file_space_info info;
	int rc = read_info(file, &info);

	*bytes = 0;
	for (unsigned i = 0; !rc && i < info.count; i++) {
		if (info.managers[i] == H5_UNDEF)
			continue;
		/* Not cached: only this question asks for them. */
		rc = h5_block_decode_header(file, info.managers[i], H5_FREE_SPACE_HEADER_MAX, decode_header,
					    &header);
		if (!rc && !h5_add(*bytes, header.total, bytes))
			rc = h5_fail(-EUCLEAN, info.managers[i],
				     "free-space managers: more than 2^64 bytes are free");
	}
	return rc;
}
