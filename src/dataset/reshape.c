/* By the rules of doc/writing.md. A dataset that becomes smaller has its new dimensions first, and loses
 * chunks and elements in a further commit. One that becomes larger has the fill value everywhere that its new
 * dimensions uncover, before it has these. */
#include "dataset/reshape.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/writing.h"
#include "object/own_message.h"

#include <assert.h>
#include <string.h>

/* ---- the dataspace ---- */

struct new_dims {
	const struct h5_dataset_writer *writer;
	const uint64_t *dims;
};

static int update_dims(const void *arg, uint8_t *body, size_t n)
{
	const struct new_dims *new = arg;
	struct h5_dataspace space = new->writer->dataset->space;

	memcpy(space.dims, new->dims, space.rank * sizeof *space.dims);
	return h5_dataspace_update(body, n, h5_file_superblock(new->writer->file)->size_of_lengths, &space);
}

/* All is settled. The writer's dataset is as it was until reopen(). */
static int put_dims(struct h5_dataset_writer *writer, const uint64_t *dims)
{
	const struct new_dims new = {writer, dims};

	return h5_own_message_update(writer->file, writer->address, H5_MSG_DATASPACE, update_dims, &new);
}

static int reopen(struct h5_dataset_writer *writer)
{
	h5_tx_report(writer->file, &writer->participant, false, 0);
	h5_tx_drop(writer->file, &writer->participant);
	return h5_dataset_writer_ready(writer);
}

static int commit(struct h5_dataset_writer *writer)
{
	int rc = h5_tx_is_writable(writer->file) ? h5_tx_commit(writer->file) : -EROFS;

	return rc ? rc : writer->participant.failure;
}

/* The dimensions that the dataset has now. */
static void get_dims(const struct h5_dataset_writer *writer, uint64_t *dims)
{
	memcpy(dims, writer->dataset->space.dims, writer->dataset->space.rank * sizeof *dims);
	dims[0] = writer->rows;
}

static int shrink(struct h5_dataset_writer *writer, const uint64_t *dims)
{
	uint64_t before[H5_RANK_MAX] = {0};
	struct h5_interrupt request;
	int rc = commit(writer);

	get_dims(writer, before);
	if (!rc)
		rc = put_dims(writer, dims);
	if (rc)
		return rc;
	rc = commit(writer);
	if (rc) {
		/* This must be done even if the request was interrupted. */
		h5_interrupt_pause(&request);
		(void)put_dims(writer, before);
		h5_interrupt_set(&request);
		return rc;
	}
	/* The dimensions are there, so the rest is to be done even if nobody waits for it. If it fails, it is
	 * tried again whenever the dataset is settled. */
	h5_interrupt_begin(NULL, NULL);
	for (unsigned i = 0; i < H5_RANK_MAX; i++)
		writer->outer[i] = writer->has_outer ? h5_max(writer->outer[i], before[i]) : before[i];
	writer->has_outer = true;
	if (!reopen(writer) && !h5_dataset_writer_settle(writer))
		(void)commit(writer);
	return 0;
}

static int grow(struct h5_dataset_writer *writer, const uint64_t *dims)
{
	uint64_t now[H5_RANK_MAX];
	int rc = h5_dataset_writer_ready(writer);

	if (rc)
		return rc;
	get_dims(writer, now);
	rc = writer->ops->uncover(writer, now, dims);
	if (!rc)
		rc = h5_dataset_writer_settle(writer);
	if (!rc)
		rc = put_dims(writer, dims);
	/* The dimensions are there. A writer that cannot be opened now will be when it is used. */
	if (!rc)
		(void)reopen(writer);
	return rc;
}

/* Dimensions shrink first; then the others grow. */
static int change(struct h5_dataset_writer *writer, const uint64_t *dims)
{
	const unsigned rank = writer->dataset->space.rank;
	uint64_t now[H5_RANK_MAX], least[H5_RANK_MAX];
	int rc = 0;

	get_dims(writer, now);
	for (unsigned i = 0; i < rank; i++)
		least[i] = h5_min(dims[i], now[i]);
	if (memcmp(least, dims, rank * sizeof *least))
		rc = h5_dataset_writer_check_growth(writer);
	if (!rc && memcmp(least, now, rank * sizeof *least))
		rc = h5_dataset_writer_shrink(writer, least, shrink);
	if (!rc && memcmp(least, dims, rank * sizeof *least))
		rc = grow(writer, dims);
	return rc;
}

/* 0: a dataset can have these dimensions. */
static int check_dims(const struct h5_dataset_writer *writer, const uint64_t *dims)
{
	const struct h5_dataspace *space = &writer->dataset->space;
	uint64_t bytes;

	for (unsigned i = 0; i < space->rank; i++)
		if (dims[i] > space->max[i] || dims[i] == H5_UNLIMITED)
			return h5_fail(-EINVAL, writer->address,
				       "dataset: dimension %u is larger than its maximum", i);
	if (!h5_product(dims, space->rank, &bytes) || !h5_mul(bytes, writer->dataset->type->size, &bytes) ||
	    bytes > INT64_MAX)
		return h5_fail(-EINVAL, writer->address, "dataset: more than 2^63-1 bytes");
	return 0;
}

/* True: dimensions other than 0 are the same. */
static bool has_row_of(const struct h5_dataspace *space, const uint64_t *dims)
{
	return !memcmp(dims + 1, space->dims + 1, (space->rank - 1) * sizeof *dims);
}

int h5_dataset_reshape(struct h5_dataset_writer *writer, const uint64_t *dims)
{
	const struct h5_dataspace *space = &writer->dataset->space;
	int rc = check_dims(writer, dims);

	assert(writer->ref);
	if (rc)
		return rc;
	/* Rows are a change that needs less. */
	if (space->rank && writer->row && has_row_of(space, dims))
		return h5_dataset_writer_resize(writer, dims[0]);
	rc = h5_dataset_writer_settle(writer);
	if (rc || !space->rank || (dims[0] == writer->rows && has_row_of(space, dims)))
		return rc;
	if (!writer->ops->can_reshape)
		return h5_fail(-EPERM, writer->address, "dataset: its shape cannot change");
	rc = writer->ops->can_reshape(writer);
	if (!rc)
		rc = change(writer, dims);
	h5_tx_report(writer->file, &writer->participant, h5_dataset_writer_is_dirty(writer),
		     h5_dataset_writer_held(writer));
	return rc;
}
