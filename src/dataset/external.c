/* Data in external raw files: segments one after the other, each in some file. */
#include "base/buf.h"
#include "base/checked.h"
#include "base/error.h"
#include "dataset/layouts.h"
#include "object/local_heap.h"
#include "store/file_set.h"

#include <limits.h>
#include <string.h>

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

/* n bytes from `from` of the slot are those at the offset of the dataset. */
static int read_slot(const struct h5_dataset *dataset, const struct h5_external_slot *slot, uint64_t from,
		     uint64_t offset, uint8_t *buf, size_t n)
{
	struct h5_buf name;
	struct h5_io *io;
	uint64_t at;
	int rc;

	if (!h5_add(slot->offset, from, &at))
		return h5_fail(-EUCLEAN, dataset->address, "dataset: offset in an external file");
	h5_buf_init(&name, PATH_MAX);
	rc = slot_name(dataset, slot, &name);
	if (rc)
		goto out;
	rc = h5_file_set_open_raw(h5_file_set_of(dataset->file), dataset->file, name.data, false, &io);
	if (rc == -ENOENT || rc == -ENOTDIR) {
		h5_dataset_fill(dataset, offset, buf, n);
		rc = 0;
	} else if (!rc) {
		rc = read_raw(io, at, buf, n);
		h5_io_close(io);
	}
out:
	h5_buf_release(&name);
	return rc;
}

static int external_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	uint64_t begin = 0, end; /* of the slot's bytes in the dataset */

	for (unsigned i = 0; i < dataset->files.count && n; i++, begin = end) {
		const struct h5_external_slot *slot = &dataset->files.slots[i];
		size_t part;
		int rc;

		if (!h5_add(begin, slot->size, &end))
			end = UINT64_MAX;
		if (offset >= end)
			continue;
		part = (size_t)h5_min(n, end - offset);
		rc = read_slot(dataset, slot, offset - begin, offset, buf, part);
		if (rc)
			return rc;
		offset += part;
		buf += part;
		n -= part;
	}
	return n ? h5_fail(-EUCLEAN, dataset->address, "dataset: its external files end before it") : 0;
}

static int external_storage(const struct h5_dataset *dataset, uint64_t *bytes)
{
	*bytes = dataset->size;
	return 0;
}

const struct h5_layout_ops h5_layout_external = {NULL, external_read, external_storage};
