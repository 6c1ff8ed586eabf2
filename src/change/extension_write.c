#include "change/extension_write.h"

#include "base/error.h"
#include "change/free_managers.h"
#include "change/member_ends.h"
#include "change/object_header_insert.h"
#include "change/private.h"
#include "store/extension.h"

/* ---- the metadata cache image ---- */

/* Finds the message of the image in the extension, which is to be released. */
static int find_image(struct h5_tx *tx, struct h5_header *extension, struct h5_cache_image_message *image)
{
	int rc = h5_extension_load(tx->file, extension);

	return rc ? rc : h5_extension_cache_image(tx->file, extension, image);
}

/* The blocks lie in the file, and not over the image itself. */
static int check_blocks(struct h5_tx *tx)
{
	const struct h5_patches *blocks = &h5_file_image(tx->file)->patches;
	struct h5_cache_image_message image;
	struct h5_header extension;
	int rc = find_image(tx, &extension, &image);

	for (size_t i = 0; i < blocks->count && !rc; i++) {
		uint64_t address = blocks->list[i]->offset - tx->space.base, n = blocks->list[i]->n;

		if (!h5_space_had(&tx->space, address, n) ||
		    (address < image.address + image.size && image.address < address + n))
			rc = h5_fail(-EUCLEAN, address, "cache image: a block where none can be");
	}
	h5_header_release(&extension);
	return rc;
}

/* The journal hashes the blocks, so that it is not replayed into a copy of the file that was made before they
 * were written; but not where cells change them, since it has these bytes itself. */
static int write_blocks(struct h5_tx *tx)
{
	const struct h5_patches *blocks = &h5_file_image(tx->file)->patches;
	int rc = 0;

	for (size_t i = 0; i < blocks->count && !rc; i++) {
		const struct h5_patch *block = blocks->list[i];

		rc = h5_io_write(h5_tx_medium(tx), block->offset, block->bytes, block->n);
		if (!rc)
			rc = h5_extents_add(&tx->superseded, block->offset - tx->space.base, block->n);
	}
	for (size_t i = 0; i < h5_tx_patch_count(tx) && !rc; i++) {
		const struct h5_patch *cell = &h5_tx_patch_at(tx, i)->over;

		rc = h5_extents_remove(&tx->superseded, cell->offset - tx->space.base, cell->n);
	}
	return rc;
}

/* Takes the message away, and gives up the space of the image. */
static int remove_message(struct h5_tx *tx)
{
	uint64_t address = tx->superblock.extension;
	struct h5_cache_image_message image;
	struct h5_header extension;
	int rc = find_image(tx, &extension, &image);

	if (!rc)
		rc = h5_header_remove(tx->file, address, h5_header_find(&extension, H5_MSG_CACHE_IMAGE));
	if (!rc)
		h5_tx_free(tx->file, image.address, image.size);
	h5_header_release(&extension);
	/* A commit before has tried it, and the change is still pending. */
	return rc == -ENODATA ? 0 : rc;
}

/* ---- */

/* In a unit. */
static int change_extension(struct h5_tx *tx)
{
	int rc = h5_file_image(tx->file) ? remove_message(tx) : 0;

	if (!rc && tx->persists)
		rc = h5_free_managers_drop(tx);
	return rc ? rc : h5_member_ends_write(tx);
}

/* In the commit, when all else is settled. */
static int write_extension(struct h5_tx *tx)
{
	int rc = h5_file_image(tx->file) ? write_blocks(tx) : 0;

	if (rc)
		return rc;
	h5_unit_begin(tx->file);
	h5_unit_hasten(tx->file, H5_STAGE_EXTENSION);
	return h5_unit_end(tx->file, change_extension(tx));
}

int h5_extension_write_prepare(struct h5_tx *tx, bool reclaims)
{
	int rc = h5_member_ends_prepare(tx);

	if (!rc && !reclaims && h5_file_image(tx->file))
		rc = check_blocks(tx);
	if (!rc && !reclaims)
		rc = h5_free_managers_read(tx);
	if (tx->persists || tx->space.pieces.count || (!reclaims && h5_file_image(tx->file)))
		tx->extension_change = write_extension;
	return rc;
}
