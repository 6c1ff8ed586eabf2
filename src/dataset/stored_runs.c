#include "dataset/stored_runs.h"

#include "base/checked.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum {
	SHORT = 1024,	/* bytes that runs have less of on average if they are read together and copied */
	ROOM = 1 << 16, /* most bytes of these at once */
};

void h5_stored_runs_init(struct h5_stored_runs *runs, struct h5_file *file)
{
	runs->file = file;
	runs->count = 0;
	runs->room = NULL;
}

void h5_stored_runs_release(struct h5_stored_runs *runs)
{
	free(runs->room);
}

/* ---- what one call reads ---- */

/* Pieces that follow each other in the file. */
struct call {
	const struct h5_stored_piece *pieces;
	unsigned count;
	size_t runs;
	size_t size; /* bytes */
};

/* Short runs are read together and copied from there, which is quicker than the kernel is with so many
 * buffers. */
static bool is_copied(size_t runs, size_t size)
{
	return runs > 1 && size / runs < SHORT;
}

/* False: the call would have too many runs with this piece. */
static bool take(struct call *call, const struct h5_stored_piece *piece)
{
	const size_t runs = call->runs + piece->count, size = call->size + piece->count * piece->n;

	if (is_copied(runs, size) ? size > ROOM : runs > H5_IO_BUFFERS)
		return false;
	call->count++;
	call->runs = runs;
	call->size = size;
	return true;
}

/* The call that begins with the first of these pieces. */
static struct call call_of(const struct h5_stored_piece *pieces, unsigned count)
{
	struct call call = {.pieces = pieces};

	for (unsigned i = 0; i < count; i++)
		if (pieces[i].address != pieces->address + call.size || !take(&call, &pieces[i]))
			break;
	return call;
}

static int read_and_copy(struct h5_stored_runs *runs, const struct call *call)
{
	const uint8_t *from;
	int rc;

	if (!runs->room)
		runs->room = malloc(ROOM);
	if (!runs->room)
		return h5_fail(-ENOMEM, call->pieces->address, "dataset: out of memory");
	rc = h5_file_read(runs->file, call->pieces->address, runs->room, call->size);
	from = runs->room;
	for (unsigned i = 0; i < call->count && !rc; i++) {
		const struct h5_stored_piece *piece = &call->pieces[i];
		const struct h5_part_rows rows = {.first.n = piece->n,
						  .count = piece->count,
						  .chunk_step = piece->n,
						  .dataset_step = piece->apart};

		h5_copy_rows(&rows, from, piece->buf);
		from += piece->count * piece->n;
	}
	return rc;
}

static int read_to_buffers(const struct h5_stored_runs *runs, const struct call *call)
{
	struct iovec buffers[H5_IO_BUFFERS];
	unsigned count = 0;

	for (unsigned i = 0; i < call->count; i++)
		for (size_t j = 0; j < call->pieces[i].count; j++)
			buffers[count++] = (struct iovec){call->pieces[i].buf + j * call->pieces[i].apart,
							  call->pieces[i].n};
	return h5_file_readv(runs->file, call->pieces->address, buffers, count, call->size);
}

static int by_address(const void *a, const void *b)
{
	const struct h5_stored_piece *x = a, *y = b;

	return h5_compare(x->address, y->address);
}

int h5_stored_runs_flush(struct h5_stored_runs *runs)
{
	int rc = 0;

	qsort(runs->pieces, runs->count, sizeof *runs->pieces, by_address);
	for (unsigned i = 0; i < runs->count && !rc;) {
		struct call call = call_of(runs->pieces + i, runs->count - i);

		rc = is_copied(call.runs, call.size) ? read_and_copy(runs, &call)
						     : read_to_buffers(runs, &call);
		i += call.count;
	}
	runs->count = 0;
	return rc;
}

/* ---- runs ---- */

/* True: the run follows the last one, in the file and in the buffer, and is added to it. */
static bool lengthens(struct h5_stored_runs *runs, const struct h5_stored_piece *piece)
{
	struct h5_stored_piece *last = runs->pieces + runs->count - 1;

	if (!runs->count || piece->count != 1 || last->count != 1 ||
	    piece->address - last->address != last->n || piece->buf != last->buf + last->n)
		return false;
	last->n += piece->n;
	return true;
}

static int add(struct h5_stored_runs *runs, const struct h5_stored_piece *piece)
{
	int rc = 0;

	if (lengthens(runs, piece))
		return 0;
	if (runs->count == H5_STORED_PIECES)
		rc = h5_stored_runs_flush(runs);
	runs->pieces[runs->count++] = *piece;
	return rc;
}

int h5_stored_runs_add(struct h5_stored_runs *runs, uint64_t chunk, const struct h5_part_rows *rows,
		       uint8_t *buf)
{
	const bool together = rows->chunk_step == rows->first.n;
	const uint64_t most = !together ? 1 : rows->first.n < SHORT ? ROOM / rows->first.n : H5_IO_BUFFERS;
	struct h5_stored_piece piece = {.address = chunk + rows->first.in_chunk,
					.n = rows->first.n,
					.buf = buf,
					.apart = rows->dataset_step};
	int rc = 0;

	for (uint64_t left = rows->count; left && !rc; left -= piece.count) {
		piece.count = (size_t)h5_min(left, most);
		rc = add(runs, &piece);
		piece.address += piece.count * rows->chunk_step;
		piece.buf += piece.count * piece.apart;
	}
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
