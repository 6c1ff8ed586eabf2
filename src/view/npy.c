/* A dataset as a file of NumPy's NPY format, for numpy.load(..., mmap_mode='r'). */
#include "view/views.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "view/intake.h"
#include "view/npy_header.h"
#include "view/strings.h"

#include <stdlib.h>
#include <string.h>

/* The dictionary of the header. -ENOENT: NumPy has no such type. */
static int dictionary(const struct h5_view *v, struct h5_buf *out)
{
	bool good;

	h5_buf_init(out, H5_NPY_DICTIONARY_MAX);
	good = v->dataset && h5_datatype_npy(v->dataset->type, &v->dataset->space, out);
	if (out->err == -ENOMEM)
		return h5_fail(-ENOMEM, v->address, "npy: out of memory");
	return good && !out->err ? 0 : -ENOENT;
}

static int npy_shows(const struct h5_view *v)
{
	struct h5_buf text;
	int rc = dictionary(v, &text);

	h5_buf_release(&text);
	return rc;
}

static int npy_open(struct h5_view *v, bool reading)
{
	struct h5_buf text;
	int rc = dictionary(v, &text);

	(void)reading;
	if (!rc)
		h5_npy_header_make(&text, &v->head);
	h5_buf_release(&text);
	if (rc)
		return rc;
	v->dataset_from = v->head.size;
	if (!h5_add(v->head.size, v->dataset->size, &v->size))
		v->size = UINT64_MAX;
	return v->head.err;
}

/* ---- strings ---- */

/* Reads whole elements, since only the rest of a string tells what is padding. */
static int read_replaced(const struct h5_dataset *dataset, uint64_t offset, void *buf, size_t n)
{
	const struct h5_datatype *type = dataset->type;
	size_t before = (size_t)(offset % type->size), all = before + n;
	uint8_t *elements;
	int rc;

	if (type->size > H5_ELEMENT_MOST)
		return h5_fail(-EFBIG, dataset->address, "npy: strings in an element of %u bytes",
			       type->size);
	all += (type->size - all % type->size) % type->size;
	elements = malloc(all);
	if (!elements)
		return h5_fail(-ENOMEM, dataset->address, "npy: out of memory");
	rc = h5_dataset_read(dataset, offset - before, elements, all);
	for (size_t i = 0; !rc && i < all; i += type->size) {
		h5_strings_pad_with_zeros(type, elements + i);
		if (!(i / type->size % 4096))
			rc = h5_interrupt_check();
	}
	if (!rc)
		memcpy(buf, elements + before, n);
	free(elements);
	return rc;
}

static int npy_read(const struct h5_view *v, uint64_t offset, void *buf, size_t n)
{
	if (h5_strings_have_padding(v->dataset->type))
		return read_replaced(v->dataset, offset - v->head.size, buf, n);
	return h5_dataset_read(v->dataset, offset - v->head.size, buf, n);
}

const struct h5_view_ops h5_view_npy = {
	.name = "npy",
	.suffix = ".npy",
	.shows = npy_shows,
	.open = npy_open,
	.read = npy_read,
	.intake = &h5_intake_npy,
};
