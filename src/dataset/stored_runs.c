#include "dataset/stored_runs.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

enum {
	SHORT = 1024,	 /* bytes that runs have less of on average if they are read together and copied */
	ROOM = 1 << 16,	 /* most bytes of these at once */
	BLOCK = 1 << 12, /* least bytes of short runs in a row that are read by themselves */
};

void h5_stored_runs_init(struct h5_stored_runs *runs, struct h5_file *file)
{
	runs->file = file;
	runs->count = 0;
	runs->size = 0;
	runs->room = NULL;
}

void h5_stored_runs_release(struct h5_stored_runs *runs)
{
	free(runs->room);
}

static bool has_room(struct h5_stored_runs *runs)
{
	if (!runs->room)
		runs->room = malloc(ROOM);
	return runs->room;
}

/* Short runs are read together and copied from there, which is quicker than the kernel is with so many
 * buffers. False: the runs are not short, or there is no memory. */
static bool are_copied(struct h5_stored_runs *runs)
{
	if (runs->count == 1 || runs->size > ROOM || runs->size / runs->count >= SHORT)
		return false;
	return has_room(runs);
}

static int read_and_copy(const struct h5_stored_runs *runs, unsigned count)
{
	const uint8_t *from = runs->room;
	int rc = h5_file_read(runs->file, runs->address, runs->room, runs->size);

	for (unsigned i = 0; i < count && !rc; i++) {
		memcpy(runs->buffers[i].iov_base, from, runs->buffers[i].iov_len);
		from += runs->buffers[i].iov_len;
	}
	return rc;
}

int h5_stored_runs_flush(struct h5_stored_runs *runs)
{
	unsigned count = runs->count;
	int rc;

	if (!count)
		return 0;
	rc = are_copied(runs) ? read_and_copy(runs, count)
			      : h5_file_readv(runs->file, runs->address, runs->buffers, count, runs->size);
	runs->count = 0;
	return rc;
}

/* True: the run follows the last one in the file, and there is room for it. */
static bool joins(const struct h5_stored_runs *runs, uint64_t address, size_t n)
{
	return runs->count && address >= runs->address && address - runs->address == runs->size &&
	       n <= SIZE_MAX - runs->size;
}

/* Asks for n bytes at the address; they are in buf after h5_stored_runs_flush(). */
static int add(struct h5_stored_runs *runs, uint64_t address, void *buf, size_t n)
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
		rc = h5_stored_runs_flush(runs);
		runs->address = address;
		runs->size = 0;
	}
	runs->buffers[runs->count++] = (struct iovec){buf, n};
	runs->size += n;
	return rc;
}

/* Short runs that follow each other in the chunk. */
static bool is_block(const struct h5_part_rows *rows)
{
	return rows->first.n < SHORT && rows->chunk_step == rows->first.n &&
	       rows->count >= BLOCK / rows->first.n;
}

static int read_block(struct h5_stored_runs *runs, uint64_t address, struct h5_part_rows rows, uint8_t *buf)
{
	const uint64_t most = ROOM / rows.first.n;
	int rc = 0;

	for (uint64_t left = rows.count; left && !rc; left -= rows.count) {
		const size_t size = (size_t)(rows.count = h5_min(left, most)) * rows.first.n;

		rc = h5_file_read(runs->file, address, runs->room, size);
		if (!rc)
			h5_copy_rows(&rows, runs->room, buf);
		address += size;
		buf += rows.count * rows.dataset_step;
	}
	return rc;
}

int h5_stored_runs_add(struct h5_stored_runs *runs, uint64_t chunk, const struct h5_part_rows *rows,
		       uint8_t *buf)
{
	const uint64_t address = chunk + rows->first.in_chunk;
	int rc = 0;

	if (is_block(rows) && has_room(runs))
		return read_block(runs, address, *rows, buf);
	for (uint64_t i = 0; i < rows->count && !rc; i++)
		rc = add(runs, address + i * rows->chunk_step, buf + i * rows->dataset_step, rows->first.n);
	return rc;
}

/* ---- copying ---- */

/* n bytes, from 16 to 32. They are read before any is written, so that the halves may overlap. */
static void copy_16_to_32(uint8_t *to, const uint8_t *from, size_t n)
{
	uint8_t first[16], last[16];

	memcpy(first, from, 16);
	memcpy(last, from + n - 16, 16);
	memcpy(to, first, 16);
	memcpy(to + n - 16, last, 16);
}

/* A call of memcpy() takes longer than to copy so few bytes. */
void h5_copy_rows(const struct h5_part_rows *rows, const uint8_t *from, uint8_t *to)
{
	const size_t n = rows->first.n;
	const bool few = n >= 16 && n <= 32, some = n > 32 && n <= 64;

	for (uint64_t i = 0; i < rows->count; i++) {
		if (few) {
			copy_16_to_32(to, from, n);
		} else if (some) {
			copy_16_to_32(to, from, 32);
			copy_16_to_32(to + n - 32, from + n - 32, 32);
		} else {
			memcpy(to, from, n);
		}
		from += rows->chunk_step;
		to += rows->dataset_step;
	}
}
