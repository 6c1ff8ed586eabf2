/* Rows of elements with data in the heap, such as lines of text, come one by one, and are small. So they
 * gather in memory, and the layout gets many at once: to find the chunk for each would take most of the time.
 * Their data in the heap go to the transaction at the same time. */
#include "base/array.h"
#include "dataset/chunk_cache.h"
#include "dataset/writing.h"

#include <assert.h>
#include <string.h>

enum { MOST = 1 << 16 }; /* bytes that gather */

/* The layout gets the rows in the first n bytes. */
static int put(struct h5_dataset_writer *writer, size_t n)
{
	const size_t all = writer->added_size;
	int rc;

	/* As soon as the layout has them, it may commit, and so settle this writer. */
	writer->added_size = 0;
	rc = writer->ops->grow(writer, writer->rows + n / writer->row, writer->added);
	if (rc) {
		writer->added_size = all;
		return rc;
	}
	memmove(writer->added, writer->added + n, all - n);
	writer->added_size = all - n;
	(void)h5_heap_batch_flush(&writer->heap); /* if it fails, settling tries again */
	return 0;
}

int h5_added_rows_put(struct h5_dataset_writer *writer)
{
	return writer->added_size ? put(writer, writer->added_size) : 0;
}

/* Bytes at the end of n new ones, at least MOST, which begin a band of chunks. They wait for more if they are
 * few, so that the layout gets whole chunks. */
static size_t waiting(const struct h5_dataset_writer *writer, size_t n)
{
	uint64_t rest;

	/* No other layout can have more rows. */
	assert(h5_dataset_chunks(writer->dataset));
	rest = (writer->rows * writer->row + n) % h5_chunks_band(writer->dataset);
	return rest < MOST ? (size_t)rest : 0;
}

static int gather(struct h5_dataset_writer *writer, const void *data, size_t n)
{
	const size_t size = writer->added_size + n;
	int rc = size <= writer->added_capacity
			 ? 0
			 : h5_array_reserve(&writer->added, &writer->added_capacity, size, NULL);

	if (rc)
		return rc;
	memcpy(writer->added + writer->added_size, data, n);
	writer->added_size = size;
	rc = size < MOST ? 0 : put(writer, size - waiting(writer, size));
	if (rc)
		writer->added_size -= n;
	return rc;
}

int h5_added_rows_append(struct h5_dataset_writer *writer, const void *data, size_t n)
{
	if (n < MOST || writer->added_size || waiting(writer, n))
		return gather(writer, data, n);
	return writer->ops->grow(writer, writer->rows + n / writer->row, data);
}
