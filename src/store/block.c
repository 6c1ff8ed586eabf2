#include "store/block.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/room.h"

#include <stdlib.h>
#include <string.h>

int h5_block_read(struct h5_file *file, uint64_t address, size_t head, uint64_t n, const char *what,
		  void **out)
{
	uint64_t end = h5_file_end(file);
	struct h5_charge charge = {0};
	uint8_t *memory;
	int rc;

	if (address >= end || n > end - address)
		return h5_fail(-EUCLEAN, address, "%s: %ju bytes reach beyond the end of the file", what,
			       (uintmax_t)n);
	if (n > H5_BLOCK_MAX)
		return h5_fail(-ENOTSUP, address, "%s: a block of %ju bytes is not supported", what,
			       (uintmax_t)n);
	/* The block is charged while it is read; later the cache counts it. */
	rc = h5_charge_set(&charge, (size_t)n);
	if (rc)
		return rc;
	memory = malloc(head + (size_t)n);
	rc = memory ? h5_file_read(file, address, memory + head, (size_t)n)
		    : h5_fail(-ENOMEM, address, "%s: out of memory", what);
	h5_charge_release(&charge);
	if (rc) {
		free(memory);
		return rc;
	}
	memset(memory, 0, head);
	*out = memory;
	return 0;
}

int h5_block_open(struct h5_file *file, uint64_t address, uint64_t n, const char *what, void **memory,
		  struct h5_reader *r)
{
	int rc = h5_block_read(file, address, 0, n, what, memory);

	if (!rc)
		*r = h5_file_reader(file, *memory, (size_t)n, address);
	return rc;
}

/* Decodes a header of at most n bytes. */
static int decode_header(struct h5_file *file, uint64_t address, size_t n, h5_block_decode *decode,
			 void *header)
{
	uint8_t data[H5_BLOCK_HEADER_MAX];
	struct h5_reader r;
	size_t got;
	int rc = h5_file_read_some(file, address, data, n, &got);

	if (rc)
		return rc;
	r = h5_file_reader(file, data, got, address);
	return decode(&r, header);
}

int h5_block_decode_header(struct h5_file *file, uint64_t address, size_t max, h5_block_decode *decode,
			   void *header)
{
	size_t most = h5_min(max, H5_BLOCK_HEADER_MAX), pending = h5_file_pending(file, address);
	int rc = -EUCLEAN;

	if (pending)
		rc = decode_header(file, address, h5_min(pending, most), decode, header);
	/* Perhaps only a part of the header waits for the commit. */
	return rc == -EUCLEAN && pending < most ? decode_header(file, address, most, decode, header) : rc;
}

int h5_block_load_header(struct h5_file *file, uint64_t address, size_t max, h5_block_decode *decode,
			 size_t size, void **value, size_t *cost)
{
	void *header = calloc(1, size);
	int rc = header ? h5_block_decode_header(file, address, max, decode, header)
			: h5_fail(-ENOMEM, address, "out of memory");

	if (rc) {
		free(header);
		return rc;
	}
	*value = header;
	*cost = size;
	return 0;
}
