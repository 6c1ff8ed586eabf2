/* A type as HDF5 DDL, spelled and indented as by h5dump 1.10. */
#include "object/value_private.h"

#include <string.h>

struct ddl {
	struct h5_buf *out;
	bool one_line;
	int depth;
};

static void type_ddl(struct ddl *ddl, const struct h5_datatype *t);

static void line(struct ddl *ddl)
{
	if (ddl->one_line)
		h5_buf_byte(ddl->out, ' ');
	else
		h5_buf_printf(ddl->out, "\n%*s", 3 * ddl->depth, "");
}

static void open_block(struct ddl *ddl, const char *what)
{
	h5_buf_printf(ddl->out, "%s {", what);
	ddl->depth++;
	line(ddl);
}

/* Ends a block after its last member. */
static void close_block(struct ddl *ddl)
{
	ddl->depth--;
	line(ddl);
	h5_buf_byte(ddl->out, '}');
}

static void number_ddl(struct ddl *ddl, const struct h5_datatype *t)
{
	bool whole = t->precision == 8 * (uint64_t)t->size && t->order != H5_ORDER_VAX;
	bool plain = whole && (t->size == 1 || t->size == 2 || t->size == 4 || t->size == 8);
	const char *order = t->order == H5_ORDER_BE ? "BE" : "LE";
	const char *endian = t->size == 1		? ""
			     : t->order == H5_ORDER_VAX ? " VAX-endian"
			     : t->order == H5_ORDER_BE	? " big-endian"
							: " little-endian";
	char letter = t->class == H5_CLASS_BITFIELD ? 'B' : t->is_signed ? 'I' : 'U';
	const char *word = t->class == H5_CLASS_FLOAT ? "floating-point"
			   : t->is_signed	      ? "integer"
						      : "unsigned integer";
	uint64_t bits = 8 * (uint64_t)t->size;

	if (t->class == H5_CLASS_FLOAT && h5_datatype_is_ieee_float(t))
		h5_buf_printf(ddl->out, "H5T_IEEE_F%u%s", (unsigned)bits, order);
	else if (t->class == H5_CLASS_FLOAT && t->order == H5_ORDER_VAX)
		h5_buf_printf(ddl->out, "H5T_VAX_F%llu", (unsigned long long)bits);
	else if (t->class != H5_CLASS_FLOAT && plain)
		h5_buf_printf(ddl->out, "H5T_STD_%c%u%s", letter, (unsigned)bits, order);
	else if (t->class == H5_CLASS_BITFIELD)
		h5_buf_text(ddl->out, "undefined bitfield");
	else
		h5_buf_printf(ddl->out, "%llu-bit%s %s %u-bit precision", (unsigned long long)bits, endian,
			      word, t->precision);
}

static void string_ddl(struct ddl *ddl, uint32_t size, enum h5_string_padding padding,
		       enum h5_charset charset)
{
	static const char *const pad[] = {"NULLTERM", "NULLPAD", "SPACEPAD"};

	open_block(ddl, "H5T_STRING");
	if (size)
		h5_buf_printf(ddl->out, "STRSIZE %u;", size);
	else
		h5_buf_text(ddl->out, "STRSIZE H5T_VARIABLE;");
	line(ddl);
	h5_buf_printf(ddl->out, "STRPAD H5T_STR_%s;", padding <= H5_PAD_SPACEPAD ? pad[padding] : "ERROR");
	line(ddl);
	h5_buf_printf(ddl->out, "CSET H5T_CSET_%s;", charset == H5_CHARSET_UTF8 ? "UTF8" : "ASCII");
	line(ddl);
	h5_buf_text(ddl->out, "CTYPE H5T_C_S1;");
	close_block(ddl);
}

static void compound_ddl(struct ddl *ddl, const struct h5_datatype *t)
{
	open_block(ddl, "H5T_COMPOUND");
	for (unsigned i = 0; i < t->compound.count && !ddl->out->err; i++) {
		if (i)
			line(ddl);
		type_ddl(ddl, t->compound.members[i].type);
		h5_buf_printf(ddl->out, " \"%s\";", t->compound.members[i].name);
	}
	close_block(ddl);
}

/* Values are aligned in one column, behind names of up to 16 bytes. */
static void enum_ddl(struct ddl *ddl, const struct h5_datatype *t)
{
	open_block(ddl, "H5T_ENUM");
	type_ddl(ddl, t->enumeration.base);
	h5_buf_byte(ddl->out, ';');
	for (unsigned i = 0; i < t->enumeration.count && !ddl->out->err; i++) {
		const struct h5_enum_member *m = &t->enumeration.members[i];
		size_t n = strlen(m->name), column = ddl->one_line || n > 16 ? n : 16;

		line(ddl);
		h5_buf_printf(ddl->out, "\"%s\"%*s ", m->name, (int)(column - n), "");
		h5_integer_text(ddl->out, t->enumeration.base, m->value);
		h5_buf_byte(ddl->out, ';');
	}
	close_block(ddl);
}

static void array_ddl(struct ddl *ddl, const struct h5_datatype *t)
{
	h5_buf_text(ddl->out, "H5T_ARRAY { ");
	for (unsigned i = 0; i < t->array.rank; i++)
		h5_buf_printf(ddl->out, "[%llu]", (unsigned long long)t->array.dims[i]);
	h5_buf_byte(ddl->out, ' ');
	type_ddl(ddl, t->array.base);
	h5_buf_text(ddl->out, " }");
}

static void type_ddl(struct ddl *ddl, const struct h5_datatype *t)
{
	switch (t->class) {
	case H5_CLASS_INTEGER:
	case H5_CLASS_FLOAT:
	case H5_CLASS_BITFIELD:
		number_ddl(ddl, t);
		break;
	case H5_CLASS_TIME:
		h5_buf_text(ddl->out, "H5T_TIME: not yet implemented"); /* the words of h5dump */
		break;
	case H5_CLASS_STRING:
		string_ddl(ddl, t->size, t->string.padding, t->string.charset);
		break;
	case H5_CLASS_OPAQUE:
		open_block(ddl, "H5T_OPAQUE");
		h5_buf_printf(ddl->out, "OPAQUE_TAG \"%s\";", t->opaque.tag);
		close_block(ddl);
		break;
	case H5_CLASS_COMPOUND:
		compound_ddl(ddl, t);
		break;
	case H5_CLASS_REFERENCE:
		h5_buf_printf(ddl->out, "H5T_REFERENCE { H5T_STD_REF%s }",
			      t->reference.kind == H5_REF_OBJECT   ? "_OBJECT"
			      : t->reference.kind == H5_REF_REGION ? "_DSETREG"
								   : "");
		break;
	case H5_CLASS_ENUM:
		enum_ddl(ddl, t);
		break;
	case H5_CLASS_VLEN:
		if (t->vlen.is_string) {
			string_ddl(ddl, 0, t->vlen.padding, t->vlen.charset);
			break;
		}
		h5_buf_text(ddl->out, "H5T_VLEN { ");
		type_ddl(ddl, t->vlen.base);
		h5_buf_byte(ddl->out, '}');
		break;
	case H5_CLASS_ARRAY:
		array_ddl(ddl, t);
		break;
	case H5_CLASS_COMPLEX:
		if (h5_datatype_is_ieee_float(t->complex.base)) {
			h5_buf_printf(ddl->out, "H5T_COMPLEX_IEEE_F%u%s", 8 * t->complex.base->size,
				      t->complex.base->order == H5_ORDER_BE ? "BE" : "LE");
			break;
		}
		h5_buf_text(ddl->out, "H5T_COMPLEX { ");
		type_ddl(ddl, t->complex.base);
		h5_buf_text(ddl->out, " }");
		break;
	}
}

void h5_datatype_ddl(const struct h5_datatype *type, bool one_line, struct h5_buf *out)
{
	struct ddl ddl = {.out = out, .one_line = one_line};

	type_ddl(&ddl, type);
}
