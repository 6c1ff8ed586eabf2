/* The index of a writer of chunked data. */
#include "base/checked.h"
#include "base/error.h"
#include "dataset/chunked_store.h"

int h5_chunked_open_index(struct h5_dataset_writer *writer, const struct h5_chunk_layout *layout)
{
	struct h5_chunked_writer *state = h5_chunked_of(writer);
	const struct h5_dataset *dataset = writer->dataset;
	struct h5_dataspace space = dataset->space;
	struct h5_chunk_index *index;
	int rc;

	space.dims[0] = state->grid.dims[0];
	rc = h5_chunk_index_open(writer->file, writer->layout.version, layout, &space,
				 dataset->pipeline.count || dataset->section_pipelines, dataset->chunk_size,
				 &index);
	if (rc)
		return rc;
	h5_chunk_index_close(state->index);
	state->index = index;
	return 0;
}

int h5_chunked_allocate_all(struct h5_dataset_writer *writer)
{
	const struct h5_dataspace *space = &writer->dataset->space;
	struct h5_chunk_layout layout = *h5_chunk_index_layout(h5_chunked_of(writer)->index);
	uint64_t bytes = writer->dataset->chunk_size;
	int rc;

	for (unsigned i = 0; i < layout.rank; i++)
		if (!h5_mul(bytes, space->max[i] / layout.dims[i] + (space->max[i] % layout.dims[i] != 0),
			    &bytes))
			return h5_fail(-EUCLEAN, writer->address, "dataset: more than 2^64 bytes of chunks");
	rc = h5_tx_allocate(writer->file, H5_ALLOCATE_RAW, bytes, &layout.address);
	if (rc)
		return rc;
	rc = h5_write_fill_value(writer, layout.address, 0, bytes);
	if (!rc)
		rc = h5_chunked_open_index(writer, &layout);
	if (rc) {
		h5_tx_free(writer->file, layout.address, bytes);
		return rc;
	}
	writer->index_changed = true;
	h5_chunked_drop(writer, 0); /* they are known as not stored, which is wrong now */
	return 0;
}
