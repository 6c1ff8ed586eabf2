/* The elements of a dataset as they are stored, one after the other. */
#include "view/views.h"

static int raw_shows(const struct h5_view *v)
{
	return v->dataset && h5_datatype_is_fixed(v->dataset->type) ? 0 : -ENOENT;
}

static int raw_open(struct h5_view *v, bool reading)
{
	(void)reading;
	v->size = v->dataset->size;
	v->dataset_from = 0;
	return 0;
}

static int raw_read(const struct h5_view *v, uint64_t offset, void *buf, size_t n)
{
	return h5_dataset_read(v->dataset, offset, buf, n);
}

static int raw_seek(const struct h5_view *v, uint64_t offset, bool hole, uint64_t *found)
{
	return h5_dataset_seek(v->dataset, offset, hole, found);
}

const struct h5_view_ops h5_view_raw = {.name = "raw",
					.is_sized = true,
					.shows = raw_shows,
					.open = raw_open,
					.read = raw_read,
					.seek = raw_seek};
