/* Functions for the layouts that can be written. */
#include "dataset/writing.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "change/object_header_edit.h"
#include "store/object_header.h"

#include <stdlib.h>

enum { FILL_PIECE = 1 << 16 }; /* bytes that are written at once */

int h5_write_needs(struct h5_dataset_writer *writer, enum h5_message_type type)
{
	int rc = h5_header_can_replace(writer->file, writer->address, type);
	struct h5_error cause = *h5_error_last();

	return rc == -ENOTSUP ? h5_fail(-EPERM, cause.address, "%s", cause.text) : rc;
}

int h5_write_fill_value(struct h5_dataset_writer *writer, uint64_t address, uint64_t offset, uint64_t n)
{
	uint8_t *piece = malloc(FILL_PIECE);
	int rc = piece ? 0 : h5_fail(-ENOMEM, address, "out of memory");

	for (uint64_t done = 0; done < n && !rc; done += h5_min(n - done, FILL_PIECE)) {
		size_t part = (size_t)h5_min(n - done, FILL_PIECE);

		h5_dataset_fill(writer->dataset, offset + done, piece, part);
		rc = h5_interrupt_check();
		if (!rc)
			rc = h5_tx_write(writer->file, address + done, piece, part);
	}
	free(piece);
	return rc;
}
