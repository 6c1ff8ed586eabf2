#include "dataset/runs.h"

void h5_runs_init(struct h5_runs *runs, struct h5_file *file)
{
	runs->file = file;
	runs->count = 0;
	runs->size = 0;
}

int h5_runs_flush(struct h5_runs *runs)
{
	unsigned count = runs->count;

	runs->count = 0;
	return count ? h5_file_readv(runs->file, runs->address, runs->buffers, count, runs->size) : 0;
}

/* True: the run follows the last one in the file, and there is room for it. */
static bool joins(const struct h5_runs *runs, uint64_t address, size_t n)
{
	return runs->count && address >= runs->address && address - runs->address == runs->size &&
	       n <= SIZE_MAX - runs->size;
}

int h5_runs_add(struct h5_runs *runs, uint64_t address, void *buf, size_t n)
{
	struct iovec *last = &runs->buffers[runs->count ? runs->count - 1 : 0];
	bool joined = joins(runs, address, n);
	int rc = 0;

	if (joined && (char *)last->iov_base + last->iov_len == buf) {
		last->iov_len += n;
		runs->size += n;
		return 0;
	}
	if (!joined || runs->count == H5_IO_BUFFERS) {
		rc = h5_runs_flush(runs);
		runs->address = address;
		runs->size = 0;
	}
	runs->buffers[runs->count++] = (struct iovec){buf, n};
	runs->size += n;
	return rc;
}
