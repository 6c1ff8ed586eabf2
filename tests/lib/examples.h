/* Examples of structures of a file: bytes, and what is found in them, for tests/unit/check_*formats.c. */
#ifndef H5_TESTS_EXAMPLES_H
#define H5_TESTS_EXAMPLES_H

#include "base/buf.h"
#include "base/error.h"
#include "base/lookup3.h"
#include "base/reader.h"
#include "base/writer.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define U16(v)	   (v) & 0xff, (v) >> 8 & 0xff
#define U24(v)	   U16(v), (v) >> 16 & 0xff
#define U32(v)	   U16(v), U16((v) >> 16)
#define U64(v)	   U32(v), 0, 0, 0, 0
#define NONE16	   0xff, 0xff
#define NONE64	   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff
#define SUM	   0, 0, 0, 0 /* where the checksum is */

/* Decodes, and prints what it has found. */
typedef int decoder(struct h5_reader *r, struct h5_buf *out);

enum how {
	WHOLE = 1,  /* every shorter one is truncated */
	SUMMED = 2, /* it ends with a checksum */
};

struct example {
	decoder *decode;
	uint8_t size_of_offsets, size_of_lengths;
	const uint8_t *data;
	size_t size;
	unsigned how;
	int rc;
	const char *text; /* what is printed; of an error its text */
};

static inline int example_decode(const struct example *e, size_t n, struct h5_buf *out)
{
	/* A buffer of just that size, so that sanitizers see what is read beyond it. */
	uint8_t *copy = malloc(n + 1);
	struct h5_reader r;
	int rc;

	memcpy(copy, e->data, n);
	if (n == e->size && e->how & SUMMED)
		h5_uint_to(copy + n - 4, h5_lookup3(copy, n - 4, 0), 4);
	r = h5_reader_init(copy, n, 1000, e->size_of_offsets, e->size_of_lengths);
	h5_error_clear();
	rc = e->decode(&r, out);
	free(copy);
	return rc;
}

static inline void examples_check(const struct example *examples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct example *e = &examples[i];
		struct h5_buf out;
		int rc;

		h5_buf_init(&out, 10000);
		for (size_t n = 0; n < e->size && e->how & WHOLE; n++)
			ck_assert_msg(example_decode(e, n, &out) == -EUCLEAN, "example %zu: %zu bytes", i, n);
		h5_buf_release(&out);
		h5_buf_init(&out, 10000);
		rc = example_decode(e, e->size, &out);
		if (rc)
			h5_buf_printf(&out, "%s", h5_error_last()->text);
		h5_buf_byte(&out, 0);
		ck_assert_msg(rc == e->rc, "example %zu: %d, %s", i, rc, h5_error_last()->text);
		ck_assert_msg(!strcmp(out.data, e->text), "example %zu: \"%s\", not \"%s\"", i, out.data,
			      e->text);
		h5_buf_release(&out);
	}
}

#define CHECK(examples) examples_check(examples, sizeof(examples) / sizeof *(examples))

static inline void print_bytes(struct h5_buf *out, const char *what, const void *data, size_t n)
{
	h5_buf_printf(out, "%s", what);
	for (size_t i = 0; i < n; i++)
		h5_buf_printf(out, "%02x", ((const uint8_t *)data)[i]);
}

/* ---- what is written ---- */

static inline void check_written(const struct h5_writer *w, const uint8_t *expected, size_t n)
{
	ck_assert(!w->err);
	ck_assert_uint_eq(h5_writer_at(w), n);
	ck_assert_mem_eq(w->begin, expected, n);
	ck_assert_uint_eq(*w->p, 0xaa);
}

/* A summed block, without its sum. */
static inline void check_summed(const struct h5_writer *w, const uint8_t *expected, size_t n)
{
	ck_assert(!w->err);
	ck_assert_uint_eq(h5_writer_at(w), n + 4);
	ck_assert_uint_eq(h5_uint_from(w->p - 4, 4), h5_lookup3(w->begin, n, 0));
	ck_assert_mem_eq(w->begin, expected, n);
	ck_assert_uint_eq(*w->p, 0xaa);
}

static inline struct h5_writer begin(uint8_t *room, size_t n, uint8_t size_of_offsets,
				     uint8_t size_of_lengths)
{
	memset(room, 0xaa, n);
	return h5_writer_init(room, n, size_of_offsets, size_of_lengths);
}

#endif
