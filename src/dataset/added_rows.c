/* Rows of elements with data in the heap, such as lines of text, come one by one, and are small. So they
 * gather in memory, and the layout gets many at once: to find the chunk for each would take most of the time.
 * Their data in the heap go to the transaction at the same time. */
#include "base/array.h"
#include "dataset/writing.h"

#include <string.h>

enum { MOST = 1 << 16 }; /* bytes that gather */

int h5_added_rows_put(struct h5_dataset_writer *writer)
{
	const size_t n = writer->added_size;
	int rc;

	if (!n)
		return 0;
	/* As soon as the layout has them, it may commit, and so settle this writer. */
	writer->added_size = 0;
	rc = writer->ops->grow(writer, writer->rows + n / writer->row, writer->added);
	if (rc)
		writer->added_size = n;
	else
		(void)h5_heap_batch_flush(&writer->heap); /* if it fails, settling tries again */
	return rc;
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
	rc = size < MOST ? 0 : h5_added_rows_put(writer);
	if (rc)
		writer->added_size -= n;
	return rc;
}

int h5_added_rows_append(struct h5_dataset_writer *writer, const void *data, size_t n)
{
	if (n < MOST || writer->added_size)
		return gather(writer, data, n);
	return writer->ops->grow(writer, writer->rows + n / writer->row, data);
}
