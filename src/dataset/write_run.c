/* Whole chunks without filters, from the memory of who writes them to the file, neighbours with one write. */
#include "base/error.h"
#include "change/transaction.h"
#include "dataset/write_private.h"

static uint64_t run_size(const struct h5_dataset_writer *w, const struct h5_chunk_run *run)
{
	return run->count * w->dataset->chunk_size;
}

/* Where chunk i lies, or is to lie. */
static struct h5_chunk chunk_of(const struct h5_dataset_writer *w, const struct h5_chunk_run *run, unsigned i)
{
	return (struct h5_chunk){.address = run->address + i * w->dataset->chunk_size,
				 .size = w->dataset->chunk_size};
}

static bool is_new(const struct h5_place *place)
{
	return place->stored.address == H5_UNDEF;
}

int h5_chunk_run_add(struct h5_dataset_writer *w, struct h5_chunk_run *run, struct h5_place *place,
		     const uint8_t *data)
{
	uint64_t size = w->dataset->chunk_size, address = place->stored.address;
	int rc = 0;

	/* Before the index blocks that the run's end may want: so neighbours stay together. */
	if (is_new(place))
		rc = h5_tx_allocate(w->file, H5_ALLOCATE_RAW, size, &address);
	if (rc)
		return rc;
	if (run->count == H5_CHUNK_RUN_MAX || (run->count && (address != run->address + run_size(w, run) ||
							      data != run->data + run_size(w, run))))
		rc = h5_chunk_run_end(w, run);
	if (rc) {
		if (is_new(place))
			h5_tx_free(w->file, address, size);
		return rc;
	}
	if (!run->count) {
		run->address = address;
		run->data = data;
	}
	run->places[run->count++] = place;
	return 0;
}

int h5_chunk_run_end(struct h5_dataset_writer *w, struct h5_chunk_run *run)
{
	int rc;

	if (!run->count)
		return 0;
	rc = h5_tx_write(w->file, run->address, run->data, (size_t)run_size(w, run));
	for (unsigned i = 0; i < run->count; i++) {
		struct h5_chunk chunk = chunk_of(w, run, i);

		if (!rc && is_new(run->places[i]))
			rc = h5_chunked_publish(w, run->places[i], &chunk);
		else if (!rc)
			h5_chunked_cover(w, run->places[i], 0, chunk.size);
		h5_tx_forget(w->file, chunk.address);
	}
	h5_chunk_run_drop(w, run);
	return rc;
}

/* Those that have got their place keep it. */
void h5_chunk_run_drop(struct h5_dataset_writer *w, struct h5_chunk_run *run)
{
	for (unsigned i = 0; i < run->count; i++)
		if (is_new(run->places[i]))
			h5_tx_free(w->file, chunk_of(w, run, i).address, w->dataset->chunk_size);
	run->count = 0;
}
