/* A dataset of fixed-length strings, of numbers or of opaque bytes as text: a value a line, without quotes.
 */
#include "view/views.h"

static int values_shows(const struct h5_view *v)
{
	switch (v->dataset ? v->dataset->type->class : H5_CLASS_COMPOUND) {
	case H5_CLASS_INTEGER:
	case H5_CLASS_FLOAT:
	case H5_CLASS_TIME:
	case H5_CLASS_STRING:
	case H5_CLASS_BITFIELD:
	case H5_CLASS_OPAQUE:
	case H5_CLASS_ENUM:
		return 0;
	default:
		return -ENOENT;
	}
}

static const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};

static int line(const struct h5_text_source *source, uint64_t i, const uint8_t *element, struct h5_buf *out)
{
	int rc = h5_value_text(&source->context, source->type, &scalar, element, out);

	(void)i;
	h5_buf_byte(out, '\n');
	return rc;
}

static const struct h5_text_form form = {.id = 4, .piece = line};

static int values_open(struct h5_view *v, bool reading)
{
	(void)reading;
	return h5_view_text_open(v, &form, NULL, false);
}

/* The text of an enumeration, or of a float, may be a word; a string is as it is. */
static int read_value(const struct h5_value_parser *parser, const struct h5_datatype *type, const char *text,
		      size_t n, const uint8_t *old, uint8_t *data)
{
	return h5_value_parse(parser, type, &scalar, text, n, old, data);
}

static const struct h5_line_form line_form = {read_value};

static int values_write(struct h5_view_input *in, uint64_t offset, const void *data, size_t n, bool append,
			size_t *written)
{
	(void)offset;
	(void)append;
	return h5_view_text_write(&line_form, in, data, n, written);
}

static int values_check(struct h5_view_input *in)
{
	return h5_view_text_check(&line_form, in);
}

static int values_finish(struct h5_view_input *in)
{
	return h5_view_text_finish(&line_form, in);
}

const struct h5_view_ops h5_view_values = {.name = "lines",
					   .is_text = true,
					   .suffix = "",
					   .shows = values_shows,
					   .open = values_open,
					   .read = h5_view_text_read,
					   .release = h5_view_text_release,
					   .write = values_write,
					   .check = values_check,
					   .finish = values_finish};
