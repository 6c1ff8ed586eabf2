/* A dataset as JSON Lines, one element a line, if its elements have no fixed size and are no strings. */
#include "view/views.h"

static int jsonl_shows(const struct h5_view *v)
{
	const struct h5_datatype *type = v->dataset ? v->dataset->type : NULL;

	if (!type || h5_datatype_is_fixed(type) || (type->class == H5_CLASS_VLEN && type->vlen.is_string))
		return -ENOENT;
	return 0;
}

static int line(const struct h5_text_source *source, uint64_t i, const uint8_t *element, struct h5_buf *out)
{
	int rc = h5_value_json(&source->context, source->type, element, out);

	(void)i;
	h5_buf_byte(out, '\n');
	return rc;
}

static const struct h5_text_form form = {.id = 2, .piece = line};

static int jsonl_open(struct h5_view *v, bool reading)
{
	(void)reading;
	return h5_view_text_open(v, &form, H5_TEXT_UNCHANGED);
}

const struct h5_view_ops h5_view_jsonl = {.name = "jsonl",
					  .shows = jsonl_shows,
					  .open = jsonl_open,
					  .read = h5_view_text_read,
					  .release = h5_view_text_release};
