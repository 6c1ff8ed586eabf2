#include "store/extension.h"

#include "base/error.h"

#include <stdlib.h>

/* ---- while the file is opened ---- */

int h5_extension_load(struct h5_file *file, struct h5_header *extension)
{
	uint64_t address = h5_file_superblock(file)->extension;

	*extension = (struct h5_header){0};
	if (address == H5_UNDEF)
		return 0;
	return h5_fail_in(h5_header_load(file, address, extension), "superblock extension");
}

/* A reader over the first message of the type. */
static int find(struct h5_file *file, const struct h5_header *extension, enum h5_message_type type,
		struct h5_reader *r)
{
	const struct h5_message *message = h5_header_find(extension, type);

	if (!message)
		return -ENODATA;
	*r = h5_file_reader(file, message->data, message->size, message->address);
	return 0;
}

int h5_extension_driver_info(struct h5_file *file, const struct h5_header *extension,
			     struct h5_driver_info *driver, uint64_t *address)
{
	struct h5_reader r;
	int rc = find(file, extension, H5_MSG_DRIVER_INFO, &r);

	if (rc)
		return rc;
	*address = r.address + H5_DRIVER_MESSAGE_HEAD;
	return h5_driver_info_message_decode(&r, driver);
}

int h5_extension_cache_image(struct h5_file *file, const struct h5_header *extension,
			     struct h5_cache_image_message *image)
{
	struct h5_reader r;
	int rc = find(file, extension, H5_MSG_CACHE_IMAGE, &r);

	return rc ? rc : h5_cache_image_message_decode(&r, image);
}

/* ---- later ---- */

static void release_extension(void *extension)
{
	h5_header_release(extension);
	free(extension);
}

static int load_extension(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	struct h5_header *extension = calloc(1, sizeof *extension);
	int rc = extension ? h5_extension_load(file, extension)
			   : h5_fail(-ENOMEM, address, "superblock extension: out of memory");

	(void)arg;
	if (rc) {
		free(extension);
		return rc;
	}
	/* From here on the cache counts it. */
	h5_charge_release(&extension->charge);
	*value = extension;
	*cost = sizeof *extension + extension->cost;
	return 0;
}

static const struct h5_block_type extension_block = {
	.kind = {.name = "superblock extension", .release = release_extension},
	.load = load_extension,
};

/* A message of the extension, borrowed until h5_file_put(). */
static int get(struct h5_file *file, enum h5_message_type type, struct h5_lru_entry **ref,
	       struct h5_reader *r)
{
	uint64_t address = h5_file_superblock(file)->extension;
	int rc;

	*ref = NULL;
	if (address == H5_UNDEF)
		return -ENODATA;
	rc = h5_file_block(file, &extension_block, address, 0, NULL, ref);
	return rc ? rc : find(file, h5_lru_value(*ref), type, r);
}

int h5_extension_btree_k(struct h5_file *file, struct h5_btree1_k *k)
{
	struct h5_lru_entry *ref;
	struct h5_reader r;
	int rc = get(file, H5_MSG_BTREE_K, &ref, &r);

	if (!rc)
		rc = h5_btree1_k_decode(&r, k);
	h5_file_put(file, ref);
	return rc;
}

int h5_extension_file_space(struct h5_file *file, struct h5_file_space_info *info)
{
	struct h5_lru_entry *ref;
	struct h5_reader r;
	int rc = get(file, H5_MSG_FILE_SPACE_INFO, &ref, &r);

	if (!rc)
		rc = h5_file_space_info_decode(&r, info);
	h5_file_put(file, ref);
	return rc;
}

int h5_extension_shared_table(struct h5_file *file, struct h5_shared_table_message *table)
{
	struct h5_lru_entry *ref;
	struct h5_reader r;
	int rc = get(file, H5_MSG_SHARED_TABLE, &ref, &r);

	if (!rc)
		rc = h5_shared_table_message_decode(&r, table);
	h5_file_put(file, ref);
	return rc;
}

int h5_extension_check(struct h5_file *file)
{
	uint64_t address = h5_file_superblock(file)->extension;
	struct h5_header extension;
	int rc;

	if (address == H5_UNDEF)
		return 0;
	rc = h5_header_load(file, address, &extension);
	if (rc)
		return rc;
	rc = h5_header_check(file, &extension);
	h5_header_release(&extension);
	return rc;
}

int h5_extension_extents(struct h5_file *file, h5_extent_visit *visit, void *arg)
{
	struct h5_header extension;
	int rc = h5_extension_load(file, &extension);

	if (rc)
		return rc;
	for (unsigned i = 0; i < extension.chunk_count && !rc; i++)
		rc = visit(arg, extension.chunks[i].address, extension.chunks[i].size);
	h5_header_release(&extension);
	return rc;
}
