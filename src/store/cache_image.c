#include "store/cache_image.h"

#include "base/checked.h"
#include "base/error.h"
#include "io/overlay.h"
#include "store/block.h"
#include "store/extension.h"
#include "store/file.h"
#include "store/file_private.h"

#include <stdlib.h>

/* An io that reads as if the image had been written where it belongs. */
struct image {
	struct h5_overlay overlay;
	void *block;		  /* owned: the bytes of the image */
	struct h5_patch *patches; /* owned: its entries */
};

enum {
	ENTRY_MIN = 18,	     /* bytes of the smallest entry: with addresses and sizes of 2 bytes */
	IMAGE_MAX = 1 << 26, /* most bytes of an image; caches of metadata are much smaller */
};

static int by_offset(const void *a, const void *b)
{
	const struct h5_patch *x = a, *y = b;

	return h5_compare(x->offset, y->offset);
}

/* Makes patches of the entries, in any order. */
static int decode_entries(struct h5_reader *r, uint64_t base, struct h5_patch *patches, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct h5_cache_image_entry entry;
		uint64_t offset, end;
		int rc = h5_cache_image_entry_decode(r, &entry);

		if (rc)
			return rc;
		if (!h5_add(base, entry.address, &offset) || !h5_add(offset, entry.size, &end))
			return h5_fail(-EUCLEAN, r->address, "cache image: an entry at %ju",
				       (uintmax_t)entry.address);
		patches[i] = (struct h5_patch){offset, (size_t)entry.size, entry.data};
	}
	return 0;
}

/* True: the block lies over the superblock or the extension. These were read before the image, so the block
 * is left out. */
static bool is_read(const struct h5_file *file, const struct h5_header *extension,
		    const struct h5_patch *block)
{
	const struct h5_superblock *sb = h5_file_superblock(file);

	if (block->offset < sb->base + h5_superblock_size(sb))
		return true;
	for (unsigned i = 0; i < extension->chunk_count; i++) {
		const struct h5_header_chunk *chunk = &extension->chunks[i];

		if (block->offset < sb->base + chunk->address + chunk->size &&
		    sb->base + chunk->address < block->offset + block->n)
			return true;
	}
	return false;
}

static int decode(struct image *image, struct h5_reader *r, const struct h5_file *file,
		  const struct h5_header *extension)
{
	struct h5_patches *patches = &image->overlay.patches;
	uint32_t count;
	int rc = h5_cache_image_decode(r, &count);

	if (rc)
		return rc;
	if (count > h5_reader_left(r) / ENTRY_MIN)
		return h5_fail(-EUCLEAN, r->address, "cache image: %u entries do not fit", count);
	image->patches = calloc((size_t)count + 1, sizeof *image->patches);
	if (!image->patches || h5_patches_reserve(patches, count))
		return h5_fail(-ENOMEM, r->address, "cache image: out of memory");
	rc = decode_entries(r, h5_file_superblock(file)->base, image->patches, count);
	if (rc)
		return rc;
	qsort(image->patches, count, sizeof *image->patches, by_offset);
	for (uint32_t i = 0; i < count; i++) {
		struct h5_patch *patch = &image->patches[i];

		if (i && patch->offset - patch[-1].offset < patch[-1].n)
			return h5_fail(-EUCLEAN, r->address, "cache image: entries overlap");
		if (patch->n && !is_read(file, extension, patch))
			h5_patches_insert(patches, patches->count, patch);
	}
	return 0;
}

static void image_close(struct h5_io *io)
{
	struct image *image = (struct image *)io;

	h5_overlay_release(&image->overlay);
	free(image->patches);
	free(image->block);
	free(image);
}

/* Writes to the file beneath the image. A block that the image has is still read from the image. */
static int image_write(struct h5_io *io, uint64_t offset, const void *buf, size_t n)
{
	return h5_io_write(((struct h5_overlay *)io)->beneath, offset, buf, n);
}

static int image_resize(struct h5_io *io, uint64_t size)
{
	return h5_io_resize(((struct h5_overlay *)io)->beneath, size);
}

static int image_sync(struct h5_io *io)
{
	return h5_io_sync(((struct h5_overlay *)io)->beneath);
}

static int image_punch(struct h5_io *io, uint64_t offset, uint64_t n)
{
	return h5_io_punch(((struct h5_overlay *)io)->beneath, offset, n);
}

static const struct h5_io_ops image_ops = {.read = h5_overlay_read,
					   .readv = h5_overlay_readv,
					   .want = h5_overlay_want,
					   .stat = h5_overlay_stat,
					   .close = image_close};

static const struct h5_io_ops writable_image_ops = {.read = h5_overlay_read,
						    .readv = h5_overlay_readv,
						    .want = h5_overlay_want,
						    .stat = h5_overlay_stat,
						    .write = image_write,
						    .resize = image_resize,
						    .sync = image_sync,
						    .punch = image_punch,
						    .unlock = h5_overlay_unlock,
						    .close = image_close};

static int open_image(struct h5_file *file, const struct h5_header *extension,
		      const struct h5_cache_image_message *message, struct image **out)
{
	struct image *image = calloc(1, sizeof *image);
	struct h5_reader r;
	int rc;

	if (!image)
		return h5_fail(-ENOMEM, message->address, "cache image: out of memory");
	image->overlay.io.ops = h5_file_io(file)->ops->write ? &writable_image_ops : &image_ops;
	rc = h5_block_open(file, message->address, message->size, "cache image", &image->block, &r);
	if (!rc)
		rc = decode(image, &r, file, extension);
	if (rc)
		image_close(&image->overlay.io);
	else
		*out = image;
	return rc;
}

int h5_cache_image_lay_over(struct h5_file *file, const struct h5_header *extension)
{
	struct h5_cache_image_message message;
	struct image *image = NULL;
	int rc = h5_extension_cache_image(file, extension, &message);

	if (rc == -ENODATA)
		return 0;
	if (rc || message.address == H5_UNDEF)
		return rc;
	if (message.size > IMAGE_MAX)
		return h5_fail(-ENOTSUP, message.address, "cache image: %ju bytes", (uintmax_t)message.size);
	rc = open_image(file, extension, &message, &image);
	if (rc)
		return rc;
	image->overlay.beneath = h5_file_io(file);
	return h5_file_read_image(file, &image->overlay);
}
