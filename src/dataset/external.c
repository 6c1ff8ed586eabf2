/* Data in external raw files: a list of slots, each a range of some file. */
#include "base/buf.h"
#include "base/checked.h"
#include "base/error.h"
#include "dataset/writing.h"
#include "object/local_heap.h"
#include "store/file_set.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { WRITTEN_MAX = 16 }; /* files that a writer keeps open */

/* Reads from a raw file; bytes beyond its end are zeros. */
static int read_raw(struct h5_io *io, uint64_t offset, uint8_t *buf, size_t n)
{
	struct h5_io_stat st;
	size_t there = 0;
	int rc = h5_io_stat(io, &st);

	if (!rc && offset < st.size) {
		there = (size_t)h5_min(n, st.size - offset);
		rc = h5_io_read(io, offset, buf, there);
	}
	if (!rc)
		memset(buf + there, 0, n - there);
	return rc;
}

static int slot_name(const struct h5_dataset *dataset, const struct h5_external_slot *slot,
		     struct h5_buf *name)
{
	struct h5_local_heap heap;
	int rc = h5_local_heap_open(dataset->file, dataset->files.heap, &heap);

	if (!rc)
		rc = h5_local_heap_text(&heap, slot->name, name);
	if (rc)
		return rc;
	h5_buf_byte(name, 0);
	return name->err ? h5_fail(name->err, dataset->address, "dataset: name of an external file") : 0;
}

/* The raw file of a slot; the caller closes it. */
static int open_slot(const struct h5_dataset *dataset, const struct h5_external_slot *slot, bool writable,
		     struct h5_io **io)
{
	struct h5_buf name;
	int rc;

	h5_buf_init(&name, PATH_MAX);
	rc = slot_name(dataset, slot, &name);
	if (!rc)
		rc = h5_file_set_open_raw(h5_file_set_of(dataset->file), dataset->file, name.data, writable,
					  io);
	h5_buf_release(&name);
	return rc;
}

/* Goes through the slots that a range of the dataset's bytes lies in. */
struct slots {
	const struct h5_dataset *dataset;
	unsigned i;	 /* the present slot */
	uint64_t at;	 /* where the slot's bytes of the range begin in the external file */
	uint64_t offset; /* where these bytes begin in the dataset */
	size_t n;	 /* number of these bytes */
	size_t left;	 /* bytes of the range from there on */
	uint64_t begin;	 /* where the slot's bytes begin in the dataset */
};

static void slots_begin(struct slots *slots, const struct h5_dataset *dataset, uint64_t offset, size_t n)
{
	*slots = (struct slots){.dataset = dataset, .offset = offset, .left = n};
}

/* 1: the next slot; 0: there are no more; or an error. */
static int slots_next(struct slots *slots)
{
	const struct h5_external_files *files = &slots->dataset->files;
	const struct h5_external_slot *slot;
	uint64_t end;

	if (slots->n) {
		slots->begin += files->slots[slots->i++].size;
		slots->offset += slots->n;
		slots->left -= slots->n;
		slots->n = 0;
	}
	if (!slots->left)
		return 0;
	for (;; slots->i++, slots->begin = end) {
		if (slots->i == files->count)
			return h5_fail(-EUCLEAN, slots->dataset->address,
				       "dataset: its external files are too small");
		slot = &files->slots[slots->i];
		if (!h5_add(slots->begin, slot->size, &end))
			end = UINT64_MAX;
		if (slots->offset < end)
			break;
	}
	slots->n = (size_t)h5_min(slots->left, end - slots->offset);
	if (!h5_add(slot->offset, slots->offset - slots->begin, &slots->at))
		return h5_fail(-EUCLEAN, slots->dataset->address,
			       "dataset: an offset in an external file is too large");
	return 1;
}

/* A file that is not there reads as the fill value. */
static int read_slot(const struct slots *slots, uint8_t *buf)
{
	struct h5_io *io;
	int rc = open_slot(slots->dataset, &slots->dataset->files.slots[slots->i], false, &io);

	if (rc == -ENOENT || rc == -ENOTDIR) {
		h5_dataset_fill(slots->dataset, slots->offset, buf, slots->n);
		return 0;
	}
	if (rc)
		return rc;
	rc = read_raw(io, slots->at, buf, slots->n);
	h5_io_close(io);
	return rc;
}

static int external_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	struct slots slots;
	int rc = 0;

	slots_begin(&slots, dataset, offset, n);
	while (!rc && (rc = slots_next(&slots)) > 0)
		rc = read_slot(&slots, buf + (slots.offset - offset));
	return rc;
}

/* ---- writing ---- */

/* The raw files of the slots that were written since the last flush; NULL: the others. */
static struct h5_io **files_of(const struct h5_dataset_writer *writer)
{
	return writer->state;
}

static int external_write_open(struct h5_dataset_writer *writer)
{
	writer->state = calloc(writer->dataset->files.count + 1, sizeof(struct h5_io *));
	return writer->state ? 0 : h5_fail(-ENOMEM, writer->address, "dataset: out of memory");
}

/* The journal does not cover these files, so they are synced before the commit. */
static int external_flush(struct h5_dataset_writer *writer)
{
	int rc = 0;

	for (unsigned i = 0; i < writer->dataset->files.count && !rc; i++) {
		if (!files_of(writer)[i])
			continue;
		rc = h5_io_sync(files_of(writer)[i]);
		if (rc)
			break;
		h5_io_close(files_of(writer)[i]);
		files_of(writer)[i] = NULL;
		writer->dirty--;
	}
	return rc;
}

static int write_slot(struct h5_dataset_writer *writer, const struct slots *slots, const uint8_t *data)
{
	struct h5_io **io = &files_of(writer)[slots->i];
	int rc = 0;

	if (!*io && writer->dirty >= WRITTEN_MAX)
		rc = external_flush(writer);
	if (!rc && !*io) {
		rc = open_slot(slots->dataset, &slots->dataset->files.slots[slots->i], true, io);
		writer->dirty += !rc;
	}
	return rc ? rc : h5_io_write(*io, slots->at, data, slots->n);
}

static int external_write(struct h5_dataset_writer *writer, uint64_t offset, const uint8_t *data, size_t n)
{
	struct slots slots;
	int rc = 0;

	slots_begin(&slots, writer->dataset, offset, n);
	while (!rc && (rc = slots_next(&slots)) > 0)
		rc = write_slot(writer, &slots, data + (slots.offset - offset));
	return rc;
}

static void external_write_close(struct h5_dataset_writer *writer)
{
	for (unsigned i = 0; writer->state && i < writer->dataset->files.count; i++)
		h5_io_close(files_of(writer)[i]);
	free(writer->state);
}

static const struct h5_write_ops external_writing = {
	.open = external_write_open,
	.write = external_write,
	.flush = external_flush,
	.close = external_write_close,
};

/* The raw files stay. */
static int external_extents(const struct h5_dataset *dataset, const struct h5_extent_visits *visits)
{
	return h5_local_heap_extents(dataset->file, dataset->files.heap, visits->block, visits->arg);
}

const struct h5_layout_ops h5_layout_external = {
	.name = "external",
	.is_elsewhere = true,
	.read = external_read,
	.extents = external_extents,
	.write = &external_writing,
};
