#include "view/intake.h"

#include "base/error.h"
#include "dataset/removal.h"
#include "format/datatype_make.h"

#include <time.h>

int h5_intake_begin(struct h5_intake *intake)
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

	intake->stream = H5_UNDEF;
	h5_buf_init(&intake->head, H5_NPY_DICTIONARY_MAX + H5_NPY_PREAMBLE);
	h5_datatype_free(type);
	return rc;
}

int h5_intake_take(struct h5_intake *intake, const void *data, size_t n)
{
	if (!intake->failure)
		intake->failure = intake->ops->take(intake, data, n);
	if (intake->failure)
		return h5_fail(intake->failure, intake->dataset, "the file was refused before");
	intake->taken += n;
	return 0;
}

int h5_intake_finish(struct h5_intake *intake)
{
	if (intake->failure)
		return h5_fail(intake->failure, intake->dataset, "the file was refused before");
	return intake->ops->finish(intake);
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
	h5_npy_header_release(&intake->npy);
	h5_buf_release(&intake->head);
}
