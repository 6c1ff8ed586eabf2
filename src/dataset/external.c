/* Data in external raw files: segments one after the other, each in some file. */
#include "base/buf.h"
#include "base/checked.h"
#include "base/error.h"
#include "dataset/writing.h"
#include "object/local_heap.h"
#include "store/file_set.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { WRITTEN_MAX = 16 }; /* that a writer holds open */

/* Reads from the file; beyond its end are zeros. */
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

/* n bytes from `from` of slot i are those at the offset of the dataset. */
typedef int visit_slot(void *arg, unsigned i, uint64_t from, uint64_t offset, size_t n);

static int walk_slots(const struct h5_dataset *dataset, uint64_t offset, size_t n, visit_slot *visit,
		      void *arg)
{
	uint64_t begin = 0, end; /* of the slot's bytes in the dataset */

	for (unsigned i = 0; i < dataset->files.count && n; i++, begin = end) {
		size_t part;
		int rc;

		if (!h5_add(begin, dataset->files.slots[i].size, &end))
			end = UINT64_MAX;
		if (offset >= end)
			continue;
		part = (size_t)h5_min(n, end - offset);
		rc = visit(arg, i, offset - begin, offset, part);
		if (rc)
			return rc;
		offset += part;
		n -= part;
	}
	return n ? h5_fail(-EUCLEAN, dataset->address, "dataset: its external files end before it") : 0;
}

struct read_request {
	const struct h5_dataset *dataset;
	uint64_t offset; /* of buf in the dataset */
	uint8_t *buf;
};

static int read_slot(void *arg, unsigned i, uint64_t from, uint64_t offset, size_t n)
{
	const struct read_request *q = arg;
	const struct h5_external_slot *slot = &q->dataset->files.slots[i];
	uint8_t *buf = q->buf + (offset - q->offset);
	struct h5_io *io;
	uint64_t at;
	int rc;

	if (!h5_add(slot->offset, from, &at))
		return h5_fail(-EUCLEAN, q->dataset->address, "dataset: offset in an external file");
	rc = open_slot(q->dataset, slot, false, &io);
	if (rc == -ENOENT || rc == -ENOTDIR) {
		h5_dataset_fill(q->dataset, offset, buf, n);
		rc = 0;
	} else if (!rc) {
		rc = read_raw(io, at, buf, n);
		h5_io_close(io);
	}
	return rc;
}

static int external_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	struct read_request q = {dataset, offset, buf};

	return walk_slots(dataset, offset, n, read_slot, &q);
}

static int external_storage(const struct h5_dataset *dataset, uint64_t *bytes)
{
	*bytes = dataset->size;
	return 0;
}

/* ---- writing ---- */

/* The raw files of the slots that were written since the last flush; NULL: the others. */
static struct h5_io **files_of(const struct h5_dataset_writer *writer)
{
	return writer->state;
}

static bool external_is_possible(const struct h5_dataset *dataset)
{
	(void)dataset;
	return true;
}

static int external_write_open(struct h5_dataset_writer *writer)
{
	writer->state = calloc(writer->dataset->files.count + 1, sizeof(struct h5_io *));
	return writer->state ? 0 : h5_fail(-ENOMEM, writer->address, "dataset: out of memory");
}

/* The journal knows nothing of these files: what was written to them is made durable before the commit. */
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

struct write_request {
	struct h5_dataset_writer *writer;
	uint64_t offset; /* of data in the dataset */
	const uint8_t *data;
};

static int write_slot(void *arg, unsigned i, uint64_t from, uint64_t offset, size_t n)
{
	const struct write_request *q = arg;
	struct h5_dataset_writer *writer = q->writer;
	const struct h5_external_slot *slot = &writer->dataset->files.slots[i];
	uint64_t at;
	int rc = 0;

	if (!h5_add(slot->offset, from, &at))
		return h5_fail(-EUCLEAN, writer->address, "dataset: offset in an external file");
	if (!files_of(writer)[i] && writer->dirty >= WRITTEN_MAX)
		rc = external_flush(writer);
	if (!rc && !files_of(writer)[i]) {
		rc = open_slot(writer->dataset, slot, true, &files_of(writer)[i]);
		writer->dirty += !rc;
	}
	return rc ? rc : h5_io_write(files_of(writer)[i], at, q->data + (offset - q->offset), n);
}

static int external_write(struct h5_dataset_writer *writer, uint64_t offset, const uint8_t *data, size_t n)
{
	struct write_request q = {writer, offset, data};

	return walk_slots(writer->dataset, offset, n, write_slot, &q);
}

static void external_write_close(struct h5_dataset_writer *writer)
{
	for (unsigned i = 0; writer->state && i < writer->dataset->files.count; i++)
		h5_io_close(files_of(writer)[i]);
	free(writer->state);
}

static const struct h5_write_ops external_writing = {
	.is_possible = external_is_possible,
	.open = external_write_open,
	.write = external_write,
	.flush = external_flush,
	.close = external_write_close,
};

const struct h5_layout_ops h5_layout_external = {
	.name = "external",
	.is_elsewhere = true,
	.read = external_read,
	.storage = external_storage,
	.write = &external_writing,
};
