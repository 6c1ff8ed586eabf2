/* Reads what a writer of chunked data holds in memory alone. */
#include "base/error.h"
#include "dataset/chunked_store.h"

#include <string.h>

/* Copies the part if it is in memory. */
static int peek_part(struct h5_dataset_writer *writer, const struct h5_part *part, uint8_t *data)
{
	struct h5_known_chunk *known;
	struct h5_run_iterator runs;
	int rc = h5_chunked_know(writer, part->scaled, &known);

	if (!rc && known->stored.address != H5_UNDEF)
		rc = -ENODATA;
	if (rc)
		return rc;
	h5_run_begin(&runs, part);
	while (h5_run_next(&runs)) {
		const struct h5_part_run *run = &runs.run;
		uint8_t *to = data + run->in_dataset;

		if (known->data)
			memcpy(to, known->data + run->in_chunk, run->n);
		else
			h5_dataset_fill(writer->dataset, run->in_dataset, to, run->n);
	}
	return 0;
}

int h5_chunked_peek(struct h5_dataset_writer *writer, uint8_t *data, size_t n)
{
	struct h5_part_iterator parts;
	int rc = 0;

	if (h5_chunk_index_layout(h5_chunked_of(writer)->index)->address != H5_UNDEF)
		return -ENODATA;
	h5_part_begin(&parts, &h5_chunked_of(writer)->grid, 0, n);
	while (!rc && (rc = h5_part_next(&parts)) > 0)
		rc = peek_part(writer, &parts.part, data);
	return rc;
}
