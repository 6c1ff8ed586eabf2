#include "vfs/replace.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "dataset/writer.h"

#include <stdlib.h>

enum { PIECE = 1 << 20 }; /* bytes that are copied at once */

/* Gives the dataset as many rows as the bytes are. */
static int fit(struct h5_dataset_writer *writer, uint64_t size)
{
	const uint64_t row = h5_dataset_writer_row(writer);

	if (size == h5_dataset_writer_size(writer))
		return 0;
	if (!h5_dataset_writer_can_resize(writer) || size % row ||
	    size / row > h5_dataset_writer_max_rows(writer))
		return h5_fail(-EINVAL, h5_dataset_writer_participant(writer)->address,
			       "%ju bytes do not fit the type and shape of the dataset", (uintmax_t)size);
	return h5_dataset_writer_resize(writer, size / row);
}

static int copy(struct h5_vfs *vfs, const struct h5_dataset *from, struct h5_dataset_writer *writer,
		uint8_t *piece)
{
	int rc = fit(writer, from->size);

	for (uint64_t at = 0; at < from->size && !rc; at += PIECE) {
		size_t n = (size_t)h5_min(PIECE, from->size - at);

		rc = h5_dataset_read(from, at, piece, n);
		if (!rc)
			rc = h5_dataset_writer_write(writer, at, piece, n);
		if (!rc && h5_tx_held(vfs->file) > vfs->options.gather)
			rc = h5_dataset_writer_settle(writer);
	}
	return rc;
}

static int copy_from(struct h5_vfs *vfs, const struct h5_dataset *from, uint64_t to)
{
	struct h5_dataset_writer *writer;
	uint8_t *piece = malloc(PIECE);
	int rc = piece ? 0 : h5_fail(-ENOMEM, to, "out of memory");

	if (!rc)
		rc = h5_dataset_writer_get(vfs->file, to, vfs->options.external_write, &writer);
	if (!rc) {
		rc = copy(vfs, from, writer, piece);
		h5_dataset_writer_put(writer);
	}
	free(piece);
	return rc;
}

int h5_replace_contents(struct h5_vfs *vfs, uint64_t from, uint64_t to)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc = h5_tx_settle(vfs->file);

	if (!rc)
		rc = h5_dataset_get(vfs->file, from, &ref, &dataset);
	if (rc)
		return rc;
	rc = copy_from(vfs, dataset, to);
	h5_file_put(vfs->file, ref);
	return rc;
}
