/* Data in one piece: in the object header (compact), or elsewhere in the file (contiguous). */
#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "dataset/layouts.h"
#include "dataset/write_private.h"

#include <stdlib.h>
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

static int compact_write_open(struct h5_dataset_writer *w)
{
	size_t n = w->layout.compact.size;
	int rc = h5_write_needs(w, H5_MSG_LAYOUT);

	if (rc)
		return rc;
	w->compact = malloc(n + 1);
	if (!w->compact)
		return h5_fail(-ENOMEM, w->address, "dataset: out of memory");
	memcpy(w->compact, w->layout.compact.data, n);
	w->layout.compact.data = w->compact;
	return 0;
}

static int compact_write(struct h5_dataset_writer *w, uint64_t offset, const uint8_t *data, size_t n)
{
	int rc = check_stored(w->dataset, w->layout.compact.size, offset, n);

	if (rc)
		return rc;
	memcpy(w->compact + offset, data, n);
	w->layout_changed = true;
	return 0;
}

static void compact_write_close(struct h5_dataset_writer *w)
{
	free(w->compact);
}

const struct h5_write_ops h5_write_compact = {compact_write_open, compact_write, NULL, compact_write_close};

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

static int contiguous_write_open(struct h5_dataset_writer *w)
{
	return w->layout.contiguous.address == H5_UNDEF ? h5_write_needs(w, H5_MSG_LAYOUT) : 0;
}

/* The first write: all of it is stored now, n bytes at the offset as they are given. */
static int contiguous_allocate(struct h5_dataset_writer *w, uint64_t offset, const uint8_t *data, size_t n)
{
	uint64_t size = w->layout.contiguous.size, address;
	int rc;

	if (size != w->dataset->size)
		return h5_fail(-EUCLEAN, w->address, "dataset: %llu bytes in storage of %llu",
			       (unsigned long long)w->dataset->size, (unsigned long long)size);
	rc = h5_tx_allocate(w->file, H5_ALLOCATE_RAW, size, &address);
	if (rc)
		return rc;
	rc = h5_write_fill_value(w, address, 0, offset);
	if (!rc)
		rc = h5_tx_write(w->file, address + offset, data, n);
	if (!rc)
		rc = h5_write_fill_value(w, address + offset + n, offset + n, size - offset - n);
	if (rc) {
		h5_tx_free(w->file, address, size);
		return rc;
	}
	w->layout.contiguous.address = address;
	w->layout_changed = true;
	return 0;
}

static int contiguous_write(struct h5_dataset_writer *w, uint64_t offset, const uint8_t *data, size_t n)
{
	uint64_t address;
	int rc;

	if (w->layout.contiguous.address == H5_UNDEF)
		return contiguous_allocate(w, offset, data, n);
	rc = check_stored(w->dataset, w->layout.contiguous.size, offset, n);
	if (rc)
		return rc;
	if (!h5_add(w->layout.contiguous.address, offset, &address))
		return h5_fail(-EUCLEAN, w->address, "dataset: its data lie beyond any file");
	return h5_tx_write(w->file, address, data, n);
}

const struct h5_write_ops h5_write_contiguous = {contiguous_write_open, contiguous_write, NULL, NULL};
