/* Runs of whole chunks without filters, which are written with one call. */
#include "change/transaction.h"
#include "dataset/chunked_store.h"

#include <assert.h>

static uint64_t run_size(const struct h5_dataset_writer *writer, const struct h5_chunk_run *run)
{
	return run->count * writer->dataset->chunk_size;
}

/* The place of chunk i of the run in the file. */
static struct h5_chunk chunk_of(const struct h5_dataset_writer *writer, const struct h5_chunk_run *run,
				unsigned i)
{
	return (struct h5_chunk){.address = run->address + i * writer->dataset->chunk_size,
				 .size = writer->dataset->chunk_size};
}

static bool is_new(const struct h5_known_chunk *known)
{
	return known->stored.address == H5_UNDEF;
}

int h5_chunk_run_add(struct h5_dataset_writer *writer, struct h5_chunk_run *run, struct h5_known_chunk *known,
		     const uint8_t *data)
{
	uint64_t size = writer->dataset->chunk_size, address = known->stored.address;
	int rc = 0;

	assert(!h5_chunked_of(writer)->encodes && !known->data);
	/* Space is allocated now, before blocks of the index need any, so that neighbours lie side by
	 * side. */
	if (is_new(known))
		rc = h5_tx_allocate(writer->file, H5_ALLOCATE_RAW, size, &address);
	if (rc)
		return rc;
	if (run->count == H5_CHUNK_RUN_MAX ||
	    (run->count &&
	     (address != run->address + run_size(writer, run) || data != run->data + run_size(writer, run))))
		rc = h5_chunk_run_end(writer, run);
	if (rc) {
		if (is_new(known))
			h5_tx_free(writer->file, address, size);
		return rc;
	}
	if (!run->count) {
		run->address = address;
		run->data = data;
	}
	run->known[run->count++] = known;
	return 0;
}

int h5_chunk_run_end(struct h5_dataset_writer *writer, struct h5_chunk_run *run)
{
	int rc;

	if (!run->count)
		return 0;
	rc = h5_tx_write(writer->file, run->address, run->data, (size_t)run_size(writer, run));
	for (unsigned i = 0; i < run->count; i++) {
		struct h5_chunk chunk = chunk_of(writer, run, i);

		if (!rc && is_new(run->known[i]))
			rc = h5_chunked_publish(writer, run->known[i], &chunk);
		else if (!rc)
			h5_chunked_cover(writer, run->known[i], 0, chunk.size);
		h5_tx_forget(writer->file, chunk.address);
	}
	h5_chunk_run_drop(writer, run);
	return rc;
}

/* Chunks that are stored by now keep their space. */
void h5_chunk_run_drop(struct h5_dataset_writer *writer, struct h5_chunk_run *run)
{
	for (unsigned i = 0; i < run->count; i++)
		if (is_new(run->known[i]))
			h5_tx_free(writer->file, chunk_of(writer, run, i).address,
				   writer->dataset->chunk_size);
	run->count = 0;
}
