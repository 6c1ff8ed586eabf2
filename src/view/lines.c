/* A dataset of variable-length strings as text: the strings as they are, one a line. */
#include "view/views.h"

static int lines_shows(const struct h5_view *v)
{
	const struct h5_datatype *type = v->dataset ? v->dataset->type : NULL;

	return type && type->class == H5_CLASS_VLEN && type->vlen.is_string ? 0 : -ENOENT;
}

static int line(const struct h5_text_source *source, uint64_t i, const uint8_t *element, struct h5_buf *out)
{
	int rc = h5_value_vlen_string(source->context.file, source->type, element, out);

	(void)i;
	h5_buf_byte(out, '\n');
	return rc;
}

/* The element tells the length, so no heap is read. */
static int line_length(const struct h5_text_source *source, const uint8_t *element, uint64_t *length)
{
	int rc = h5_value_vlen_length(source->context.file, source->type, element, length);

	*length += 1;
	return rc;
}

static const struct h5_text_form form = {.id = 1, .piece = line, .length = line_length};

static int lines_open(struct h5_view *v, bool reading)
{
	(void)reading;
	return h5_view_text_open(v, &form, NULL, false);
}

static int read_line(const struct h5_value_parser *parser, const struct h5_datatype *type, const char *text,
		     size_t n, const uint8_t *old, uint8_t *data)
{
	(void)old;
	return h5_value_parse_vlen_string(parser, type, text, n, data);
}

static const struct h5_line_form line_form = {read_line};

static int lines_write(struct h5_view_input *in, uint64_t offset, const void *data, size_t n, bool append,
		       size_t *written)
{
	(void)offset;
	(void)append;
	return h5_view_text_write(&line_form, in, data, n, written);
}

static int lines_check(struct h5_view_input *in)
{
	return h5_view_text_check(&line_form, in);
}

static int lines_finish(struct h5_view_input *in)
{
	return h5_view_text_finish(&line_form, in);
}

const struct h5_view_ops h5_view_lines = {.name = "lines",
					  .is_text = true,
					  .shows = lines_shows,
					  .open = lines_open,
					  .read = h5_view_text_read,
					  .release = h5_view_text_release,
					  .write = lines_write,
					  .check = lines_check,
					  .finish = lines_finish};
