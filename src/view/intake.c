#include "view/intake.h"

#include "base/error.h"
#include "dataset/removal.h"
#include "format/datatype_make.h"

#include <time.h>

enum { TEXT_MAX = 256 << 20 }; /* bytes of a text in memory */

static int make_dataset(struct h5_intake *intake)
{
	struct h5_datatype *type = h5_datatype_make_integer(1, false, H5_ORDER_LE);
	const struct h5_new_dataset how = {
		.type = type,
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 1},
		.layout = H5_LAYOUT_CONTIGUOUS,
		.time = (uint32_t)time(NULL),
	};
	int rc = type ? h5_dataset_create(intake->file, &how, &intake->dataset)
		      : h5_fail(-ENOMEM, H5_UNDEF, "a new dataset: out of memory");

	h5_datatype_free(type);
	return rc;
}

int h5_intake_begin(struct h5_intake *intake)
{
	intake->stream = intake->dataset = H5_UNDEF;
	h5_buf_init(&intake->text, TEXT_MAX);
	return intake->ops->is_text ? 0 : make_dataset(intake);
}

static int refused(const struct h5_intake *intake)
{
	return h5_fail(intake->failure, intake->dataset, "the file was refused before");
}

int h5_intake_take(struct h5_intake *intake, const void *data, size_t n)
{
	if (intake->failure)
		return refused(intake);
	intake->failure = n ? intake->ops->take(intake, data, n) : 0;
	intake->taken += n;
	return intake->failure;
}

int h5_intake_finish(struct h5_intake *intake)
{
	return intake->failure ? refused(intake) : intake->ops->finish(intake);
}

void h5_intake_end(struct h5_intake *intake)
{
	if (intake->writer)
		h5_dataset_writer_put(intake->writer);
	intake->writer = NULL;
	if (intake->stream != H5_UNDEF && intake->stream != intake->dataset) {
		h5_dataset_writer_forget(intake->file, intake->stream);
		/* If that fails, its space is lost until it is reclaimed. */
		(void)h5_object_remove(intake->file, intake->stream);
	}
	intake->stream = H5_UNDEF;
	if (intake->state)
		intake->ops->release(intake->state);
	intake->state = NULL;
	h5_buf_release(&intake->text);
}

/* ---- for the operations ---- */

void h5_intake_choose(const struct h5_intake *intake, struct h5_new_dataset *how)
{
	how->layout = H5_LAYOUT_CONTIGUOUS;
	if (!how->space.rank)
		return;
	how->space.max[0] = H5_UNLIMITED;
	how->layout = H5_LAYOUT_CHUNKED;
	how->filters = intake->filters;
	if (h5_dataset_choose_chunks(&how->space, how->type->size, how->chunk))
		return;
	how->space.max[0] = how->space.dims[0];
	how->layout = H5_LAYOUT_CONTIGUOUS;
	how->filters.count = 0;
}

int h5_intake_define(struct h5_intake *intake, const struct h5_new_dataset *how)
{
	int rc = intake->is_defined ? h5_dataset_create(intake->file, how, &intake->dataset)
				    : h5_dataset_define(intake->file, intake->dataset, how);

	intake->is_defined |= !rc;
	return rc;
}

int h5_intake_open_stream(struct h5_intake *intake, const struct h5_new_dataset *how)
{
	int rc = h5_dataset_create(intake->file, how, &intake->stream);

	if (rc)
		intake->stream = H5_UNDEF;
	return rc ? rc : h5_dataset_writer_get(intake->file, intake->stream, false, &intake->writer);
}

int h5_intake_write(const struct h5_intake *intake, struct h5_dataset_writer *writer, uint64_t offset,
		    const void *data, size_t n)
{
	int rc = h5_dataset_writer_write(writer, offset, data, n);

	return !rc && h5_tx_held(intake->file) > intake->gather ? h5_dataset_writer_settle(writer) : rc;
}

/* ---- a text ---- */

static int take_text(struct h5_intake *intake, const uint8_t *data, size_t n)
{
	h5_buf_add(&intake->text, data, n);
	return intake->text.err == -E2BIG ? -EFBIG : intake->text.err;
}

const struct h5_intake_ops h5_intake_text = {.take = take_text, .is_text = true, .may_grow = true};
