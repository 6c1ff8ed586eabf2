#include "base/error.h"
#include "bytes.h"
#include "format/dataspace.h"
#include "unit.h"

/* Messages are built by hand from the tables of the specification. */
static int decode_space(const struct bytes *b, uint8_t size_of_lengths, struct h5_dataspace *space)
{
	struct h5_reader r = h5_reader_init(b->data, b->n, 0, 8, size_of_lengths);

	return h5_dataspace_decode(&r, space);
}

START_TEST(dataspaces_of_both_versions)
{
	for (unsigned version = 1; version <= 2; version++)
		for (unsigned size = 2; size <= 8; size *= 2) {
			struct bytes b = {.n = 0};
			struct h5_dataspace s;

			put(&b, version | 2 << 8 | 1 << 16 | (version == 2 ? 1u << 24 : 0), 4);
			put(&b, 0, version == 1 ? 4 : 0);
			put(&b, 6, size);
			put(&b, 8, size);
			put(&b, UINT64_MAX, size);
			put(&b, 9, size);
			ck_assert_int_eq(decode_space(&b, (uint8_t)size, &s), 0);
			ck_assert_int_eq(s.kind, H5_SPACE_SIMPLE);
			ck_assert_uint_eq(s.rank, 2);
			ck_assert_uint_eq(s.dims[0], 6);
			ck_assert_uint_eq(s.dims[1], 8);
			ck_assert(s.max[0] == H5_UNLIMITED);
			ck_assert_uint_eq(s.max[1], 9);
			ck_assert_uint_eq(s.elements, 48);
			while (b.n--)
				ck_assert_int_eq(decode_space(&b, (uint8_t)size, &s), -EUCLEAN);
		}
}
END_TEST

START_TEST(dataspaces_without_dimensions)
{
	struct bytes scalar1 = {{1}, 8}, scalar2 = {{2}, 4}, null = {{2, 0, 0, 2}, 4},
		     wrong = {{2, 1, 0, 2, 0}, 12};
	struct bytes fixed = {{2, 1, 0, 1, 5}, 12};
	struct h5_dataspace s;

	ck_assert_int_eq(decode_space(&scalar1, 8, &s), 0);
	ck_assert(s.kind == H5_SPACE_SCALAR && s.elements == 1);
	ck_assert_int_eq(decode_space(&scalar2, 8, &s), 0);
	ck_assert(s.kind == H5_SPACE_SCALAR && s.elements == 1);
	ck_assert_int_eq(decode_space(&null, 8, &s), 0);
	ck_assert(s.kind == H5_SPACE_NULL && s.elements == 0);
	ck_assert_int_eq(decode_space(&wrong, 8, &s), -EUCLEAN);
	ck_assert_int_eq(decode_space(&fixed, 8, &s), 0);
	ck_assert(s.max[0] == 5);
}
END_TEST

START_TEST(dataspaces_refused)
{
	struct bytes b = {.n = 0};
	struct h5_dataspace s;

	put(&b, 2 | 33 << 8 | 1 << 24, 4);
	put(&b, 0, 8);
	b.n = sizeof b.data;
	ck_assert_int_eq(decode_space(&b, 8, &s), -EUCLEAN);
	b.data[1] = 2;
	b.data[3] = 3;
	ck_assert_int_eq(decode_space(&b, 8, &s), -EUCLEAN);
	b.data[3] = 1;
	b.data[0] = 3;
	ck_assert_int_eq(decode_space(&b, 8, &s), -EUCLEAN);
	b.data[0] = 2;
	memset(b.data + 4, 0xfe, 16); /* a product beyond 64 bits is no error, it only saturates */
	ck_assert_int_eq(decode_space(&b, 8, &s), 0);
	ck_assert(s.elements == UINT64_MAX);
}
END_TEST

UNIT_MAIN("dataspace", dataspaces_of_both_versions, dataspaces_without_dimensions, dataspaces_refused)
