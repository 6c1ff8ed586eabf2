/* The layouts of chunked data, and of structured chunks. */
#include "dataset/chunked.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"

static int chunked_open(struct h5_dataset *dataset)
{
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;

	if (dataset->space.rank != layout->rank)
		return h5_fail(-EUCLEAN, dataset->address, "dataset: chunks of rank %u, dataspace of rank %u",
			       layout->rank, dataset->space.rank);
	if (dataset->type->size != layout->element_size)
		return h5_fail(-EUCLEAN, dataset->address,
			       "dataset: chunks of %u-byte elements, datatype of %u bytes",
			       layout->element_size, dataset->type->size);
	if (!h5_product(layout->dims, layout->rank, &dataset->chunk_size) ||
	    !h5_mul(dataset->chunk_size, layout->element_size, &dataset->chunk_size))
		return h5_fail(-EUCLEAN, dataset->address, "dataset: chunks of more than 2^64 bytes");
	if (layout->address == H5_UNDEF)
		return 0;
	return h5_chunk_index_open(dataset->file, dataset->layout.version, layout, &dataset->space,
				   dataset->pipeline.count || dataset->section_pipelines, dataset->chunk_size,
				   &dataset->index);
}

static int add_stored(void *arg, const struct h5_chunk *chunk)
{
	uint64_t *bytes = arg;

	if (!h5_add(*bytes, chunk->size, bytes))
		return h5_fail(-EUCLEAN, chunk->address, "chunks: more than 2^64 bytes are stored");
	return h5_interrupt_check();
}

static int chunked_storage(const struct h5_dataset *dataset, uint64_t *bytes)
{
	*bytes = 0;
	return dataset->index ? h5_chunk_index_walk(dataset->index, add_stored, bytes) : 0;
}

/* A read ends with the chunk, or with the row if that comes first. */
static uint64_t chunked_window(const struct h5_dataset *dataset, uint64_t offset)
{
	const struct h5_chunk_layout *chunk = &dataset->layout.chunked;
	uint64_t row = dataset->space.dims[chunk->rank - 1] * dataset->type->size, at = offset % row, width;

	if (!h5_mul(chunk->dims[chunk->rank - 1], dataset->type->size, &width) || width > row)
		width = row;
	return offset - at + h5_min(row, (at / width + 1) * width);
}

const struct h5_layout_ops h5_layout_chunked = {
	.name = "chunked",
	.has_chunks = true,
	.open = chunked_open,
	.read = h5_chunked_read,
	.storage = chunked_storage,
	.seek = h5_chunked_seek,
	.window = chunked_window,
	.check = h5_chunked_check,
	.write = &h5_write_chunked,
};

/* ---- structured chunks ---- */

static int structured_open(struct h5_dataset *dataset)
{
	return dataset->layout.chunked.structured.sparse ? chunked_open(dataset) : 0;
}

static int structured_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	if (!dataset->layout.chunked.structured.sparse)
		return h5_fail(-ENOTSUP, dataset->address,
			       "dataset: structured chunks are only supported for sparse data of fixed size");
	return h5_chunked_read(dataset, offset, buf, n);
}

const struct h5_layout_ops h5_layout_structured = {
	.name = "structured",
	.open = structured_open,
	.read = structured_read,
	.storage = chunked_storage,
	.check = h5_chunked_check,
};
