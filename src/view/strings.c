#include "view/strings.h"

#include <string.h>

bool h5_strings_have_padding(const struct h5_datatype *t)
{
	bool has = false;

	switch (t->class) {
	case H5_CLASS_STRING:
		return t->string.padding == H5_PAD_SPACEPAD ||
		       (t->string.padding == H5_PAD_NULLTERM && t->size > 1);
	case H5_CLASS_ARRAY:
		return h5_strings_have_padding(t->array.base);
	case H5_CLASS_COMPOUND:
		for (unsigned i = 0; i < t->compound.count; i++)
			has |= h5_strings_have_padding(t->compound.members[i].type);
		return has;
	default:
		return false;
	}
}

static void replace_in_string(const struct h5_datatype *t, uint8_t *element)
{
	size_t n = t->size;

	if (t->string.padding == H5_PAD_NULLTERM)
		n = strnlen((const char *)element, n);
	while (t->string.padding == H5_PAD_SPACEPAD && n && element[n - 1] == ' ')
		n--;
	memset(element + n, 0, t->size - n);
}

void h5_strings_pad_with_zeros(const struct h5_datatype *t, uint8_t *element)
{
	const struct h5_member *m;

	switch (t->class) {
	case H5_CLASS_STRING:
		replace_in_string(t, element);
		break;
	case H5_CLASS_ARRAY:
		for (uint64_t i = 0; h5_strings_have_padding(t->array.base) && i < t->array.count; i++)
			h5_strings_pad_with_zeros(t->array.base, element + i * t->array.base->size);
		break;
	case H5_CLASS_COMPOUND:
		for (unsigned i = 0; i < t->compound.count; i++) {
			m = &t->compound.members[i];
			h5_strings_pad_with_zeros(m->type, element + m->offset);
		}
		break;
	default:
		break;
	}
}
