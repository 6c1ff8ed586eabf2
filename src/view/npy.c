/* A dataset as a file of NumPy's NPY format, for numpy.load(..., mmap_mode='r').
 *
 * The format is described in NumPy's numpy/lib/format.py.
 *
 *   size   field
 *      6   signature
 *      2   version: 1.0; 2.0 if the header is long; 3.0 if it is not ASCII
 *    2|4   length of the header, in little-endian order: 2 bytes in version 1.0
 *          header: a dictionary in Python's words, spaces and an end of line, so that the
 *          elements begin at a multiple of 64
 *          elements, in row-major order                                                    */
#include "view/views.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"

#include <stdlib.h>
#include <string.h>

enum {
	DICTIONARY_MAX = 1 << 24, /* most bytes; NumPy refuses more than 10,000, unless told otherwise */
	ALIGNMENT = 64,
	SIGNATURE = 6,
	/* Most bytes of an element with space-padded strings; a larger one is refused. */
	ELEMENT_MAX = 1 << 24,
};

/* The dictionary of the header. -ENOENT: NumPy has no such type. */
static int dictionary(const struct h5_view *v, struct h5_buf *out)
{
	bool good;

	h5_buf_init(out, DICTIONARY_MAX);
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

static bool is_ascii(const struct h5_buf *text)
{
	for (size_t i = 0; i < text->size; i++)
		if ((unsigned char)text->data[i] > 127)
			return false;
	return true;
}

static void make_head(const struct h5_buf *text, struct h5_buf *head)
{
	static const char signature[] = "\x93NUMPY";
	unsigned version = !is_ascii(text) ? 3 : text->size > UINT16_MAX - ALIGNMENT ? 2 : 1;
	size_t before = SIGNATURE + 2 + (version == 1 ? 2 : 4);
	size_t whole = (before + text->size + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

	h5_buf_init(head, SIZE_MAX);
	h5_buf_add(head, signature, SIGNATURE);
	h5_buf_byte(head, (char)version);
	h5_buf_byte(head, 0);
	for (size_t i = 0; i < before - SIGNATURE - 2; i++)
		h5_buf_byte(head, (char)((whole - before) >> (8 * i)));
	h5_buf_add(head, text->data, text->size);
	while (!head->err && head->size < whole - 1)
		h5_buf_byte(head, ' ');
	h5_buf_byte(head, '\n');
}

static int npy_open(struct h5_view *v, bool reading)
{
	struct h5_buf text;
	int rc = dictionary(v, &text);

	(void)reading;
	if (!rc)
		make_head(&text, &v->head);
	h5_buf_release(&text);
	if (rc)
		return rc;
	v->dataset_from = v->head.size;
	if (!h5_add(v->head.size, v->dataset->size, &v->size))
		v->size = UINT64_MAX;
	return v->head.err;
}

/* ---- strings ---- */

/* NumPy pads strings with zeros, Fortran programs with spaces. The recursion is bounded, since the decoder of
 * types bounds their depth. */
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

/* Replaces the spaces that pad strings by zeros, in one element. */
static void replace_spaces(const struct h5_datatype *t, uint8_t *element)
{
	size_t n = t->size;

	switch (t->class) {
	case H5_CLASS_STRING:
		while (t->string.padding == H5_PAD_SPACEPAD && n && element[n - 1] == ' ')
			element[--n] = 0;
		break;
	case H5_CLASS_ARRAY:
		for (uint64_t i = 0; has_spaces(t->array.base) && i < t->array.count; i++)
			replace_spaces(t->array.base, element + i * t->array.base->size);
		break;
	case H5_CLASS_COMPOUND:
		for (unsigned i = 0; i < t->compound.count; i++)
			replace_spaces(t->compound.members[i].type, element + t->compound.members[i].offset);
		break;
	default:
		break;
	}
}

/* Reads whole elements, since only the rest of a string tells if a space is padding. */
static int read_replaced(const struct h5_dataset *dataset, uint64_t offset, void *buf, size_t n)
{
	const struct h5_datatype *type = dataset->type;
	size_t before = (size_t)(offset % type->size), all = before + n;
	uint8_t *elements;
	int rc;

	if (type->size > ELEMENT_MAX)
		return h5_fail(-EFBIG, dataset->address, "npy: strings in an element of %u bytes",
			       type->size);
	all += (type->size - all % type->size) % type->size;
	elements = malloc(all);
	if (!elements)
		return h5_fail(-ENOMEM, dataset->address, "npy: out of memory");
	rc = h5_dataset_read(dataset, offset - before, elements, all);
	for (size_t i = 0; !rc && i < all; i += type->size) {
		replace_spaces(type, elements + i);
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
	if (has_spaces(v->dataset->type))
		return read_replaced(v->dataset, offset - v->head.size, buf, n);
	return h5_dataset_read(v->dataset, offset - v->head.size, buf, n);
}

const struct h5_view_ops h5_view_npy = {
	.name = "npy", .suffix = ".npy", .shows = npy_shows, .open = npy_open, .read = npy_read};
