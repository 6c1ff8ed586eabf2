/* A file of NumPy's NPY format becomes a dataset: its elements go there while they come. Those of an array in
 * Fortran's order go to a dataset whose dimensions are reversed, and are put into order in the end. */
#include "view/intake.h"

#include "base/checked.h"
#include "base/error.h"
#include "object/value.h"
#include "view/npy_header.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	PIECE = 16 << 20, /* bytes that are put into order at once */
	RUN = 512,	  /* elements that are read at once, if a row has more than fit in a piece */
};

struct state {
	struct h5_buf head;
	struct h5_npy_header header;
};

static struct state *state_of(const struct h5_intake *intake)
{
	return intake->state;
}

/* ---- the dataset ---- */

static void reverse(struct h5_dataspace *space)
{
	for (unsigned i = 0, k = space->rank; i + 1 < k--; i++) {
		uint64_t dim = space->dims[i];

		space->dims[i] = space->max[i] = space->dims[k];
		space->dims[k] = space->max[k] = dim;
	}
}

static bool is_reordered(const struct h5_npy_header *header)
{
	return header->is_fortran && header->space.rank > 1 && header->space.elements;
}

/* *same: NumPy sees no difference between arrays of both types and shapes. */
static int compare(const struct h5_new_dataset *a, const struct h5_new_dataset *b, bool *same)
{
	struct h5_buf first, second;
	int rc;

	h5_buf_init(&first, SIZE_MAX);
	h5_buf_init(&second, SIZE_MAX);
	*same = h5_datatype_npy(a->type, &a->space, &first) && h5_datatype_npy(b->type, &b->space, &second);
	rc = first.err ? first.err : second.err;
	*same &= !rc && first.size == second.size && !memcmp(first.data, second.data, first.size);
	h5_buf_release(&first);
	h5_buf_release(&second);
	return rc == -ENOMEM ? rc : 0;
}

/* NumPy pads strings with zeros, Fortran programs with spaces. The recursion is bounded, since the
 * decoder of types bounds their depth. */
static bool has_spaces(const struct h5_datatype *t)
{
	switch (t->class) {
	case H5_CLASS_STRING:
		return t->string.padding == H5_PAD_SPACEPAD;
	case H5_CLASS_ARRAY:
		return has_spaces(t->array.base);
	case H5_CLASS_COMPOUND:
		for (unsigned i = 0; i < t->compound.count; i++)
			if (has_spaces(t->compound.members[i].type))
				return true;
		return false;
	default:
		return false;
	}
}

/* The dataset that is there keeps its type if it has the array's elements as they are: enumerations, strings
 * of another character set, arrays, of which NumPy makes dimensions. */
static int keep_type(const struct h5_dataset *target, struct h5_new_dataset *how)
{
	struct h5_new_dataset kept = *how;
	bool same;
	int rc;

	if (!h5_datatype_is_fixed(target->type) || has_spaces(target->type))
		return 0;
	kept.type = target->type;
	kept.space = target->space;
	if (kept.space.rank && how->space.rank)
		kept.space.dims[0] = how->space.dims[0];
	memcpy(kept.space.max, kept.space.dims, sizeof kept.space.max);
	rc = compare(&kept, how, &same);
	if (!rc && same)
		*how = kept;
	return rc;
}

static int define_target(struct h5_intake *intake, struct h5_new_dataset *how)
{
	const struct h5_dataset *target;
	struct h5_lru_entry *ref = NULL;
	int rc = 0;

	if (intake->target != H5_UNDEF) {
		rc = h5_dataset_get(intake->file, intake->target, &ref, &target);
		if (!rc)
			rc = keep_type(target, how);
	}
	if (!rc) {
		h5_intake_choose(intake, how);
		rc = h5_intake_define(intake, how);
	}
	h5_file_put(intake->file, ref);
	return rc;
}

static int define(struct h5_intake *intake, const struct h5_npy_header *header)
{
	struct h5_new_dataset how = {
		.type = header->type, .space = header->space, .time = (uint32_t)time(NULL)};
	int rc = define_target(intake, &how);

	if (rc)
		return rc;
	how.type = header->type;
	if (is_reordered(header)) {
		how.space = header->space;
		reverse(&how.space);
		h5_intake_choose(intake, &how);
		how.filters.count = 0;
		return h5_intake_open_stream(intake, &how);
	}
	intake->stream = intake->dataset;
	return h5_dataset_writer_get(intake->file, intake->stream, false, &intake->writer);
}

/* ---- the header ---- */

static int begin_elements(struct h5_intake *intake, struct state *state)
{
	const uint8_t size_of_offsets = h5_file_superblock(intake->file)->size_of_offsets;
	int rc = h5_npy_header_read((const uint8_t *)state->head.data, state->head.size, size_of_offsets,
				    &state->header);

	return rc ? rc : define(intake, &state->header);
}

/* Takes bytes of the header from *data, and moves it behind them. */
static int take_header(struct h5_intake *intake, const uint8_t **data, size_t *n)
{
	struct state *state = intake->state ? intake->state : calloc(1, sizeof *state);

	if (!state)
		return h5_fail(-ENOMEM, intake->dataset, "npy: out of memory");
	if (!intake->state)
		h5_buf_init(&state->head, H5_NPY_DICTIONARY_MAX + H5_NPY_PREAMBLE);
	intake->state = state;
	while (*n) {
		size_t size, more;
		int rc = h5_npy_header_size((const uint8_t *)state->head.data, state->head.size, &size);

		if (rc)
			return rc;
		more = size ? h5_min(*n, size - state->head.size) : 1;
		h5_buf_add(&state->head, *data, more);
		if (state->head.err)
			return state->head.err;
		*data += more;
		*n -= more;
		if (size && state->head.size == size)
			return begin_elements(intake, state);
	}
	return 0;
}

/* Bytes of elements that were taken. */
static uint64_t elements_taken(const struct h5_intake *intake)
{
	const struct state *state = intake->state;

	return state && intake->taken > state->head.size ? intake->taken - state->head.size : 0;
}

static int take(struct h5_intake *intake, const uint8_t *data, size_t n)
{
	const uint64_t from = elements_taken(intake);
	int rc = intake->writer ? 0 : take_header(intake, &data, &n);

	if (rc || !n)
		return rc;
	rc = h5_dataset_writer_ready(intake->writer);
	if (rc)
		return rc;
	if (n > h5_dataset_writer_size(intake->writer) - from)
		return h5_fail(-EINVAL, intake->dataset, "npy: more bytes than the array has");
	return h5_dataset_writer_write(intake->writer, from, data, n);
}

/* ---- Fortran's order ---- */

/* The array as rows of its first dimension. `from` has the dimensions reversed, so there the elements of
 * different rows at the same place in a row are neighbours. */
struct reordering {
	const struct h5_intake *intake;
	const struct h5_npy_header *header;
	const struct h5_dataset *from;
	struct h5_dataset_writer *to;
	uint64_t row;	     /* elements of a row */
	uint64_t rows, part; /* of a piece: rows, and elements of each of them */
	uint8_t *run, *piece;
};

/* The place in `from` of the element of row 0 that is at that place of the row, in rows. */
static uint64_t reversed_place(const struct h5_dataspace *space, uint64_t place)
{
	uint64_t reversed = 0, dims[H5_RANK_MAX];

	for (unsigned i = space->rank; i-- > 1; place /= space->dims[i])
		dims[i] = place % space->dims[i];
	for (unsigned i = space->rank; i-- > 1;)
		reversed = reversed * space->dims[i] + dims[i];
	return reversed;
}

static int read_piece(const struct reordering *r, uint64_t row, uint64_t rows, uint64_t place, uint64_t part)
{
	const struct h5_dataspace *space = &r->header->space;
	const size_t size = r->header->type->size;
	int rc = 0;

	for (uint64_t i = 0; i < part && !rc; i++) {
		uint64_t at = reversed_place(space, place + i) * space->dims[0] + row;

		rc = h5_dataset_read(r->from, at * size, r->run, (size_t)rows * size);
		for (uint64_t k = 0; k < rows && !rc; k++)
			memcpy(r->piece + (k * part + i) * size, r->run + k * size, size);
	}
	return rc;
}

static int write_piece(const struct reordering *r, uint64_t row, uint64_t rows, uint64_t place, uint64_t part)
{
	const size_t size = r->header->type->size;
	int rc = 0;

	if (part == r->row)
		return h5_intake_write(r->intake, r->to, row * r->row * size, r->piece,
				       (size_t)(rows * part) * size);
	for (uint64_t k = 0; k < rows && !rc; k++)
		rc = h5_intake_write(r->intake, r->to, ((row + k) * r->row + place) * size,
				     r->piece + k * part * size, (size_t)part * size);
	return rc;
}

static int reorder_pieces(struct reordering *r)
{
	const struct h5_dataspace *space = &r->header->space;
	int rc = 0;

	for (uint64_t row = 0; row < space->dims[0] && !rc; row += r->rows)
		for (uint64_t place = 0; place < r->row && !rc; place += r->part) {
			uint64_t rows = h5_min(r->rows, space->dims[0] - row);
			uint64_t part = h5_min(r->part, r->row - place);

			rc = read_piece(r, row, rows, place, part);
			if (!rc)
				rc = write_piece(r, row, rows, place, part);
		}
	return rc;
}

static int reorder_from(struct reordering *r)
{
	const struct h5_dataspace *space = &r->header->space;
	const size_t size = r->header->type->size;
	const uint64_t room = h5_max(PIECE / size, 1);
	int rc;

	r->row = space->elements / space->dims[0];
	r->rows = h5_min(space->dims[0], h5_max(room / r->row, h5_min(room, RUN)));
	r->part = h5_min(r->row, h5_max(room / r->rows, 1));
	r->run = malloc((size_t)r->rows * size);
	r->piece = malloc((size_t)(r->rows * r->part) * size);
	rc = r->run && r->piece ? reorder_pieces(r)
				: h5_fail(-ENOMEM, r->from->address, "npy: out of memory");
	free(r->run);
	free(r->piece);
	return rc;
}

static int reorder(struct h5_intake *intake)
{
	struct reordering r = {.intake = intake, .header = &state_of(intake)->header};
	struct h5_lru_entry *ref;
	int rc = h5_dataset_writer_settle(intake->writer);

	if (!rc)
		rc = h5_dataset_get(intake->file, intake->stream, &ref, &r.from);
	if (rc)
		return rc;
	rc = h5_dataset_writer_get(intake->file, intake->dataset, false, &r.to);
	if (!rc) {
		rc = reorder_from(&r);
		if (!rc)
			rc = h5_dataset_writer_settle(r.to);
		h5_dataset_writer_put(r.to);
	}
	h5_file_put(intake->file, ref);
	return rc;
}

static int finish(struct h5_intake *intake)
{
	int rc;

	if (!intake->writer)
		return h5_fail(-EINVAL, intake->dataset, "npy: the file ends in its header");
	rc = h5_dataset_writer_ready(intake->writer);
	if (rc)
		return rc;
	if (elements_taken(intake) != h5_dataset_writer_size(intake->writer))
		return h5_fail(-EINVAL, intake->dataset, "npy: fewer bytes than the array has");
	return is_reordered(&state_of(intake)->header) ? reorder(intake)
						       : h5_dataset_writer_settle(intake->writer);
}

static void release(void *arg)
{
	struct state *state = arg;

	h5_npy_header_release(&state->header);
	h5_buf_release(&state->head);
	free(state);
}

const struct h5_intake_ops h5_intake_npy = {take, finish, release, .may_grow = false};
