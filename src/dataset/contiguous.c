/* Data in one piece: in the object header (compact), or elsewhere in the file (contiguous). */
#include "base/checked.h"
#include "base/error.h"
#include "dataset/layouts.h"

#include <string.h>

/* Fewer bytes may be stored than the dataspace asks for: only reads of what is missing fail. */
static int check_stored(const struct h5_dataset *dataset, uint64_t stored, uint64_t offset, size_t n)
{
	if (offset > stored || n > stored - offset)
		return h5_fail(-EUCLEAN, dataset->address, "dataset: %llu bytes are stored of %llu",
			       (unsigned long long)stored, (unsigned long long)dataset->size);
	return 0;
}

static int compact_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	int rc = check_stored(dataset, dataset->layout.compact.size, offset, n);

	if (!rc)
		memcpy(buf, dataset->layout.compact.data + offset, n);
	return rc;
}

static int compact_storage(const struct h5_dataset *dataset, uint64_t *bytes)
{
	*bytes = dataset->layout.compact.size;
	return 0;
}

const struct h5_layout_ops h5_layout_compact = {NULL, compact_read, compact_storage};

static int contiguous_open(struct h5_dataset *dataset)
{
	/* Versions 1 and 2 of the message leave it to the dataspace. */
	if (dataset->layout.contiguous.size == UINT64_MAX)
		dataset->layout.contiguous.size = dataset->size;
	return 0;
}

static int contiguous_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	uint64_t address;
	int rc;

	if (dataset->layout.contiguous.address == H5_UNDEF) {
		h5_dataset_fill(dataset, offset, buf, n);
		return 0;
	}
	rc = check_stored(dataset, dataset->layout.contiguous.size, offset, n);
	if (rc)
		return rc;
	if (!h5_add(dataset->layout.contiguous.address, offset, &address))
		return h5_fail(-EUCLEAN, dataset->address, "dataset: its data lie beyond any file");
	return h5_file_read(dataset->file, address, buf, n);
}

static int contiguous_storage(const struct h5_dataset *dataset, uint64_t *bytes)
{
	*bytes = dataset->layout.contiguous.address == H5_UNDEF ? 0 : dataset->layout.contiguous.size;
	return 0;
}

const struct h5_layout_ops h5_layout_contiguous = {contiguous_open, contiguous_read, contiguous_storage};
