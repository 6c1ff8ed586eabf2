/* The messages of types, as libhdf5 writes them. */
#include "format/convert.h"
#include "format/datatype_make.h"
#include "object/value.h"
#include "scratch.h"
#include "values.h"

static const char *const styles[] = {"earliest", "latest"};

static struct h5_datatype *decode(const void *body, size_t n)
{
	struct h5_reader r = h5_reader_init(body, n, 0, 8, 8);
	struct h5_datatype *type;

	SUCCEEDS(h5_datatype_decode(&r, &type));
	return type;
}

/* Nothing but padding may be behind the message. */
static void encodes_as(const struct h5_datatype *type, bool latest, const uint8_t *body, size_t n,
		       const char *name)
{
	struct h5_buf out;

	h5_buf_init(&out, UINT16_MAX);
	SUCCEEDS(h5_datatype_encode(type, latest, &out));
	if (out.size > n || n - out.size >= 8 || memcmp(out.data, body, out.size))
		ck_abort_msg("%s: other bytes", name);
	for (; n > out.size; n--)
		ck_assert_uint_eq(body[n - 1], 0);
	h5_buf_release(&out);
}

START_TEST(messages_as_libhdf5_writes_them)
{
	char fixture[64], path[4096], row[400], name[100], dtype[200];
	unsigned long long address;
	struct scratch s;
	unsigned n = 0;
	FILE *f;

	snprintf(fixture, sizeof fixture, "datatype_encode-%s.txt", styles[_i]);
	f = open_data(fixture, path, sizeof path);
	snprintf(fixture, sizeof fixture, "datatype_encode-%s.h5", styles[_i]);
	scratch_init(&s, fixture);
	scratch_open(&s);
	while (fgets(row, sizeof row, f)) {
		struct h5_datatype *type;
		uint8_t *body;
		size_t size;

		ck_assert_int_eq(sscanf(row, "type %llu %99s %199[^\n]", &address, name, dtype), 3);
		body = scratch_message(&s, address, H5_MSG_DATATYPE, &size);
		type = decode(body, size);
		encodes_as(type, _i, body, size, name);
		h5_datatype_free(type);
		free(body);
		n++;
	}
	ck_assert_uint_gt(n, 50);
	fclose(f);
	scratch_release(&s);
}
END_TEST

/* Types that libhdf5 1.10 cannot write, or not with the version that is asked for, are read back by our
 * decoder. */
static void reads_back(const struct h5_datatype *type, unsigned version)
{
	struct h5_datatype *again;
	struct h5_buf out;

	for (unsigned latest = 0; latest < 2; latest++) {
		h5_buf_init(&out, UINT16_MAX);
		SUCCEEDS(h5_datatype_encode(type, latest, &out));
		ck_assert_int_ge((uint8_t)out.data[0] >> 4, (int)version);
		again = decode(out.data, out.size);
		ck_assert(!h5_convert_is_needed(type, again));
		h5_datatype_free(again);
		h5_buf_release(&out);
	}
}

START_TEST(types_of_other_versions)
{
	struct h5_datatype vax = real(4, 8, 23, 129, H5_ORDER_VAX), f8 = real(8, 11, 52, 1023, H5_ORDER_BE);
	struct h5_datatype complex = {.class = H5_CLASS_COMPLEX, .size = 16, .complex = {&f8}};
	struct h5_datatype reference = {
		.class = H5_CLASS_REFERENCE, .size = 18, .reference = {H5_REF_ATTRIBUTE}};
	struct h5_datatype time = integer(8, 0, 64, false, H5_ORDER_BE);
	struct h5_member members[] = {
		{(char *)"v", 0, &vax}, {(char *)"c", 4, &complex}, {(char *)"r", 20, &reference}};
	struct h5_datatype all = {.class = H5_CLASS_COMPOUND, .size = 70000, .compound = {3, members}};

	time.class = H5_CLASS_TIME;
	reads_back(&vax, 3);
	reads_back(&complex, 5);
	reads_back(&reference, 4);
	reads_back(&time, 1);
	reads_back(&all, 5);
	all.compound.count = 1;
	reads_back(&all, 3);
}
END_TEST

START_TEST(too_large_for_a_message)
{
	struct h5_datatype *t = h5_datatype_make_compound(4000, 4000);
	struct h5_buf out;

	for (unsigned i = 0; i < 4000; i++)
		SUCCEEDS(h5_datatype_add_member(t, "a name that is not short", i,
						h5_datatype_make_integer(1, false, H5_ORDER_LE)));
	h5_buf_init(&out, UINT16_MAX);
	ck_assert_int_eq(h5_datatype_encode(t, true, &out), -E2BIG);
	h5_buf_release(&out);
	h5_datatype_free(t);
}
END_TEST

UNIT_MAIN_LOOPS("datatype_encode", {messages_as_libhdf5_writes_them, 2}, {types_of_other_versions, 1},
		{too_large_for_a_message, 1})
