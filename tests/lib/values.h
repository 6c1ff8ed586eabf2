/* What the tests of values share. */
#ifndef H5_TESTS_VALUES_H
#define H5_TESTS_VALUES_H

#include "base/error.h"
#include "object/value.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file that the fixtures made; its path. */
static inline FILE *open_data(const char *name, char *path, size_t size)
{
	FILE *f;

	ck_assert_ptr_nonnull(getenv("H5FS_TEST_DATA"));
	snprintf(path, size, "%s/%s", getenv("H5FS_TEST_DATA"), name);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	return f;
}

/* The buffer holds what is expected, and is emptied. */
static inline void ends_with(struct h5_buf *out, const char *expected, size_t n, const char *what)
{
	ck_assert_int_eq(out->err, 0);
	ck_assert_msg(out->size == n && !memcmp(out->data ? out->data : "", expected, n),
		      "%s: %.*s, not %.*s", what, (int)out->size, out->data ? out->data : "", (int)n,
		      expected);
	out->size = 0;
}

/* Every object but one at address 9 has a path. */
static inline int path_of(void *arg, uint64_t address, struct h5_buf *path)
{
	(void)arg;
	if (address == 9)
		return -ENOENT;
	h5_buf_printf(path, "/at \"%llu\"", (unsigned long long)address);
	return 0;
}

static inline void json_is(struct h5_file *file, const struct h5_datatype *type, const void *data,
			   const char *expected)
{
	struct h5_value_context context = {.file = file, .object_path = path_of};
	struct h5_buf out;

	h5_buf_init(&out, 10000);
	ck_assert_int_eq(h5_value_json(&context, type, data, &out), 0);
	ends_with(&out, expected, strlen(expected), "JSON");
	h5_buf_release(&out);
}

static inline void text_is(const struct h5_datatype *type, const void *data, const char *expected)
{
	struct h5_value_context context = {.object_path = path_of};
	struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};
	struct h5_buf out;

	h5_buf_init(&out, 10000);
	ck_assert_int_eq(h5_value_text(&context, type, &scalar, data, &out), 0);
	ends_with(&out, expected, strlen(expected), "text");
	h5_buf_release(&out);
}

static inline struct h5_datatype integer(uint32_t size, uint16_t offset, uint16_t precision, bool is_signed,
					 enum h5_byte_order order)
{
	return (struct h5_datatype){.class = H5_CLASS_INTEGER,
				    .size = size,
				    .bit_offset = offset,
				    .precision = precision,
				    .is_signed = is_signed,
				    .order = order};
}

/* Sign, exponent and mantissa side by side, with an implied bit. */
static inline struct h5_datatype real(uint32_t size, unsigned exponent_size, unsigned mantissa_size,
				      uint32_t bias, enum h5_byte_order order)
{
	struct h5_datatype t = {.class = H5_CLASS_FLOAT, .size = size, .order = order};

	t.precision = (uint16_t)(1 + exponent_size + mantissa_size);
	t.fl.norm = H5_NORM_IMPLIED;
	t.fl.sign = (uint8_t)(exponent_size + mantissa_size);
	t.fl.exponent = t.fl.mantissa_size = (uint8_t)mantissa_size;
	t.fl.exponent_size = (uint8_t)exponent_size;
	t.fl.bias = bias;
	return t;
}

#endif
