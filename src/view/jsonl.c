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
	return h5_view_text_open(v, &form, NULL, h5_datatype_has_references(v->dataset->type));
}

static const struct h5_line_form line_form = {h5_value_parse_json};

static int jsonl_write(struct h5_view_input *in, uint64_t offset, const void *data, size_t n, bool append,
		       size_t *written)
{
	(void)offset;
	(void)append;
	return h5_view_text_write(&line_form, in, data, n, written);
}

static int jsonl_check(struct h5_view_input *in)
{
	return h5_view_text_check(&line_form, in);
}

static int jsonl_finish(struct h5_view_input *in)
{
	return h5_view_text_finish(&line_form, in);
}

const struct h5_view_ops h5_view_jsonl = {.name = "jsonl",
					  .is_text = true,
					  .shows = jsonl_shows,
					  .open = jsonl_open,
					  .read = h5_view_text_read,
					  .release = h5_view_text_release,
					  .write = jsonl_write,
					  .check = jsonl_check,
					  .finish = jsonl_finish};
