/* An attribute as a file. It holds the text of the extended attribute, which may be of any length here. */
#include "view/views.h"

#include "base/checked.h"
#include "base/error.h"
#include "store/file_set.h"
#include "view/intake.h"

enum { BRACKETS_MAX = 1 << 20 }; /* bytes of brackets of an array without elements */

static int attrs_shows(const struct h5_view *v)
{
	return v->part ? 0 : -ENOENT;
}

/* How many dimensions, counted from the fastest one, begin at element i. At element 0 all do. */
static unsigned count_begun(const struct h5_dataspace *space, uint64_t i)
{
	unsigned n = 0;

	for (; n < space->rank && i % space->dims[space->rank - n - 1] == 0; n++)
		i /= space->dims[space->rank - n - 1];
	return n;
}

static void repeat(struct h5_buf *out, char c, unsigned n)
{
	while (n--)
		h5_buf_byte(out, c);
}

/* A scalar is the whole text. An element of an array comes with the brackets that open and close there. */
static int piece(const struct h5_text_source *source, uint64_t i, const uint8_t *element, struct h5_buf *out)
{
	const struct h5_dataspace *space = source->space;
	int rc;

	if (space->kind != H5_SPACE_SIMPLE)
		return h5_value_text(&source->context, source->type, space, element, out);
	if (i)
		h5_buf_byte(out, ',');
	repeat(out, '[', count_begun(space, i));
	rc = h5_value_json(&source->context, source->type, element, out);
	repeat(out, ']', count_begun(space, i + 1));
	return rc;
}

/* The text of an array without elements is brackets alone. */
static uint64_t count_heads(const struct h5_text_source *source)
{
	return source->space->elements ? 0 : 1;
}

static int head(const struct h5_text_source *source, uint64_t i, struct h5_buf *out)
{
	uint64_t pairs = 1;

	(void)i;
	for (unsigned k = 0; k < source->space->rank && source->space->dims[k]; k++)
		if (!h5_mul(pairs, source->space->dims[k], &pairs) || pairs > BRACKETS_MAX)
			return -E2BIG;
	return h5_value_text(&source->context, source->type, source->space, source->data, out);
}

static const struct h5_text_form form = {.heads = count_heads, .head = head, .piece = piece};

/* An open file does not hold the value, which may be large, between two requests. On success the caller calls
 * put_value(). */
static int get_value(const struct h5_view *v, struct h5_lru_entry **ref, struct h5_text_source *source)
{
	const struct h5_attribute *value;
	int rc = h5_attribute_get(v->file, v->address, v->part, v->state, ref, &value);

	if (rc)
		return rc;
	*source = (struct h5_text_source){.form = &form,
					  .context = v->context,
					  .address = v->address,
					  .type = value->type,
					  .space = &value->space,
					  .data = value->data};
	return 0;
}

static void put_value(const struct h5_view *v, struct h5_lru_entry *ref)
{
	h5_lru_put(h5_file_set_chunks(h5_file_set_of(v->file)), ref);
}

static int attrs_open(struct h5_view *v, bool reading)
{
	struct h5_text_source source;
	struct h5_lru_entry *ref;
	int rc = get_value(v, &ref, &source);

	(void)reading;
	if (rc)
		return rc;
	rc = h5_text_open(&source, &v->own);
	put_value(v, ref);
	if (!rc)
		v->size = h5_text_size(v->own);
	return rc;
}

static int attrs_read(const struct h5_view *v, uint64_t offset, void *buf, size_t n)
{
	struct h5_text_source source;
	struct h5_lru_entry *ref;
	int rc = get_value(v, &ref, &source);

	if (rc)
		return rc;
	rc = h5_text_read(&source, v->own, offset, buf, n);
	put_value(v, ref);
	return rc;
}

static void attrs_release(struct h5_view *v)
{
	h5_text_close(v->own);
	v->own = NULL;
}

const struct h5_view_ops h5_view_attrs = {.name = "attrs",
					  .suffix = "",
					  .of_attributes = true,
					  .shows = attrs_shows,
					  .open = attrs_open,
					  .read = attrs_read,
					  .release = attrs_release,
					  .intake = &h5_intake_text};
