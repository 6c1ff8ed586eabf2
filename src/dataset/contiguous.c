/* Data in one piece: in the object header (compact), or elsewhere in the file (contiguous). */
#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "dataset/writing.h"
#include "object/own_message.h"
#include "store/object_header.h"

#include <stdlib.h>
#include <string.h>

/* Fewer bytes may be stored than the dataspace needs. Only reads of missing bytes fail. */
static int check_stored(const struct h5_dataset *dataset, uint64_t stored, uint64_t offset, uint64_t n)
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

/* A read loads nothing but its own bytes, so it need not end anywhere. */
static uint64_t no_window(const struct h5_dataset *dataset, uint64_t offset)
{
	(void)dataset;
	(void)offset;
	return UINT64_MAX;
}

/* A message with as many bytes of data has room for the continuation message that may take its place. */
enum { COMPACT_SMALL = 16 };

static bool compact_is_possible(const struct h5_dataset *dataset)
{
	return !dataset->shared_layout &&
	       (dataset->layout.compact.size >= COMPACT_SMALL ||
		!h5_own_message_check(dataset->file, dataset->address, H5_MSG_LAYOUT));
}

static int compact_write_open(struct h5_dataset_writer *writer)
{
	size_t n = writer->layout.compact.size;
	int rc = h5_write_needs(writer, H5_MSG_LAYOUT);

	if (rc)
		return rc;
	writer->state = malloc(n + 1);
	if (!writer->state)
		return h5_fail(-ENOMEM, writer->address, "dataset: out of memory");
	/* A replacement begins with the old bytes, too: it writes each byte before it counts. */
	memcpy(writer->state, writer->layout.compact.data, n);
	writer->layout.compact.data = writer->state;
	return 0;
}

static int compact_write(struct h5_dataset_writer *writer, uint64_t offset, const uint8_t *data, size_t n)
{
	int rc = check_stored(writer->dataset, writer->layout.compact.size, offset, n);

	if (rc)
		return rc;
	memcpy((uint8_t *)writer->state + offset, data, n);
	writer->layout_changed = true;
	return 0;
}

static void compact_write_close(struct h5_dataset_writer *writer)
{
	free(writer->state);
}

static const struct h5_write_ops compact_writing = {
	.is_possible = compact_is_possible,
	.open = compact_write_open,
	.write = compact_write,
	.close = compact_write_close,
};

const struct h5_layout_ops h5_layout_compact = {
	.name = "compact",
	.read = compact_read,
	.window = no_window,
	.write = &compact_writing,
};

/* ---- contiguous ---- */

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

static int contiguous_seek(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found)
{
	if (dataset->layout.contiguous.address == H5_UNDEF)
		return h5_dataset_seek_nothing(dataset, offset, hole, found);
	*found = hole ? dataset->size : offset;
	return 0;
}

static int check_inside(const struct h5_dataset *dataset)
{
	uint64_t address = dataset->layout.contiguous.address, size = dataset->layout.contiguous.size;
	uint64_t end = h5_file_end(dataset->file);

	if (address != H5_UNDEF && (address > end || size > end - address))
		return h5_fail(-EUCLEAN, address, "dataset: its data reach beyond the end of the file");
	return 0;
}

static int contiguous_check(const struct h5_dataset *dataset, struct h5_damage *damage, h5_check_done *done,
			    void *arg)
{
	(void)done;
	(void)arg;
	return h5_damage_note(damage, check_inside(dataset));
}

static int contiguous_extents(const struct h5_dataset *dataset, const struct h5_extent_visits *visits)
{
	uint64_t address = dataset->layout.contiguous.address;

	return address == H5_UNDEF ? 0 : visits->data(visits->arg, address, dataset->layout.contiguous.size);
}

static bool contiguous_is_possible(const struct h5_dataset *dataset)
{
	return dataset->layout.contiguous.address != H5_UNDEF || !dataset->shared_layout;
}

static int contiguous_write_open(struct h5_dataset_writer *writer)
{
	return writer->layout.contiguous.address == H5_UNDEF ? h5_write_needs(writer, H5_MSG_LAYOUT) : 0;
}

/* The first write allocates and writes all of the data: n bytes at the offset as given, the rest as the fill
 * value. A writer that is apart writes the rest later. */
static int contiguous_allocate(struct h5_dataset_writer *writer, uint64_t offset, const uint8_t *data,
			       size_t n)
{
	uint64_t size = writer->layout.contiguous.size, address, end = offset + n;
	int rc;

	if (size != writer->dataset->size)
		return h5_fail(-EUCLEAN, writer->address, "dataset: %llu bytes in storage of %llu",
			       (unsigned long long)writer->dataset->size, (unsigned long long)size);
	rc = h5_tx_allocate(writer->file, H5_ALLOCATE_RAW, size, &address);
	if (rc)
		return rc;
	if (!writer->apart)
		rc = h5_write_fill_value(writer, address, 0, offset);
	if (!rc)
		rc = h5_tx_write(writer->file, address + offset, data, n);
	if (!rc && !writer->apart)
		rc = h5_write_fill_value(writer, address + end, end, size - end);
	if (rc) {
		h5_tx_free(writer->file, address, size);
		return rc;
	}
	writer->layout.contiguous.address = address;
	writer->layout_changed = true;
	return 0;
}

/* The address of n bytes that are stored. */
static int find_stored(const struct h5_dataset_writer *writer, uint64_t offset, uint64_t n, uint64_t *address)
{
	const struct h5_layout *layout = &writer->layout;
	int rc = check_stored(writer->dataset, layout->contiguous.size, offset, n);

	if (!rc && !h5_add(layout->contiguous.address, offset, address))
		rc = h5_fail(-EUCLEAN, writer->address, "dataset: its data lie beyond any file");
	return rc;
}

static int contiguous_write(struct h5_dataset_writer *writer, uint64_t offset, const uint8_t *data, size_t n)
{
	uint64_t address;
	int rc;

	if (writer->layout.contiguous.address == H5_UNDEF)
		return contiguous_allocate(writer, offset, data, n);
	rc = find_stored(writer, offset, n, &address);
	return rc ? rc : h5_tx_write(writer->file, address, data, n);
}

/* Data that are not stored have the fill value already. */
static int contiguous_punch(struct h5_dataset_writer *writer, uint64_t offset, uint64_t n)
{
	uint64_t address;
	int rc;

	if (writer->layout.contiguous.address == H5_UNDEF)
		return 0;
	rc = find_stored(writer, offset, n, &address);
	return rc ? rc : h5_write_fill_value(writer, address, offset, n);
}

static const struct h5_write_ops contiguous_writing = {
	.is_possible = contiguous_is_possible,
	.open = contiguous_write_open,
	.write = contiguous_write,
	.punch = contiguous_punch,
};

const struct h5_layout_ops h5_layout_contiguous = {
	.name = "contiguous",
	.read = contiguous_read,
	.seek = contiguous_seek,
	.window = no_window,
	.check = contiguous_check,
	.extents = contiguous_extents,
	.write = &contiguous_writing,
};
