#include "change/member_ends.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/object_header_edit.h"
#include "change/private.h"
#include "store/extension.h"
#include "store/file_open.h"

#include <assert.h>
#include <string.h>

/* Returns 0 if the bytes lie in one sector, so that a power cut leaves either the old ones or the new ones.
 * The driver information must always be whole: the members are found by it before the journal is replayed. */
static int check_sector(const struct h5_tx *tx, uint64_t address, uint64_t n)
{
	if (n <= h5_io_left_in_block(&tx->space.pieces, tx->space.base + address, H5_JOURNAL_SECTOR))
		return 0;
	return h5_fail(-ENOTSUP, address,
		       "driver information across the edge of a sector: writing is not supported");
}

static int check_extension(const struct h5_tx *tx, const struct h5_header *extension)
{
	int rc = 0;

	for (unsigned i = 0; i < extension->chunk_count; i++)
		rc = rc ? rc : check_sector(tx, extension->chunks[i].address, extension->chunks[i].size);
	return rc;
}

int h5_member_ends_prepare(struct h5_tx *tx)
{
	struct h5_header extension = {0};
	struct h5_driver_info info;
	uint64_t address;
	int rc;

	if (!tx->space.pieces.count)
		return 0;
	rc = h5_extension_load(tx->file, &extension);
	if (!rc)
		rc = h5_file_driver_info(tx->file, &extension, &info, &address);
	if (!rc && (address == H5_UNDEF || address < h5_superblock_size(&tx->superblock) ||
		    info.members != tx->space.others + 1))
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "driver information: not that of these files");
	if (!rc)
		rc = check_extension(tx, &extension);
	if (!rc)
		rc = check_sector(tx, address, h5_driver_info_ends_size(info.members));
	if (!rc && tx->superblock.extension != H5_UNDEF)
		rc = h5_header_may_change(tx->file, tx->superblock.extension);
	tx->member_ends = rc ? H5_UNDEF : address;
	h5_header_release(&extension);
	return rc;
}

/* Sets the ends in n bytes of driver information. */
static int set_ends(const struct h5_tx *tx, uint8_t *data, size_t n)
{
	uint64_t ends[H5_FILE_AREAS_MAX];

	for (unsigned i = 0; i <= tx->space.others; i++)
		ends[tx->space.areas[i].member] = tx->space.areas[i].end - tx->space.areas[i].start;
	return h5_driver_info_set_ends(data, n, ends, tx->space.others + 1);
}

static int change_message(const void *tx, uint8_t *body, size_t n)
{
	const size_t head = (size_t)h5_min(n, H5_DRIVER_MESSAGE_HEAD);

	return set_ends(tx, body + head, n - head);
}

static int change_block(struct h5_tx *tx)
{
	const size_t n = h5_driver_info_ends_size(tx->space.others + 1);
	uint8_t before[H5_DRIVER_BLOCK_MAX], after[H5_DRIVER_BLOCK_MAX];
	int rc = h5_file_read(tx->file, tx->member_ends, before, n);

	if (rc)
		return rc;
	memcpy(after, before, n);
	rc = set_ends(tx, after, n);
	assert(!rc);
	if (!memcmp(before, after, n))
		return 0;
	return h5_tx_patch(tx->file, tx->member_ends, after, n, H5_STAGE_EXTENSION);
}

int h5_member_ends_write(struct h5_tx *tx)
{
	if (!tx->space.pieces.count)
		return 0;
	if (tx->superblock.extension == H5_UNDEF)
		return change_block(tx);
	return h5_header_update_at(tx->file, tx->superblock.extension, H5_MSG_DRIVER_INFO, H5_STAGE_EXTENSION,
				   change_message, tx);
}
