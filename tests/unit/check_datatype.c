#include "base/error.h"
#include "bytes.h"
#include "format/datatype.h"
#include "object/value.h"
#include "unit.h"

/* Messages are built by hand from the tables of the specification. */
static void prefix(struct bytes *b, unsigned version, unsigned class, uint32_t bits, uint32_t size)
{
	put(b, version << 4 | class, 1);
	put(b, bits, 3);
	put(b, size, 4);
}

static void put_integer(struct bytes *b, uint32_t bits, uint32_t size)
{
	prefix(b, 1, H5_CLASS_INTEGER, bits, size);
	put(b, 0, 2);
	put(b, 8 * size, 2);
}

static void put_double(struct bytes *b)
{
	prefix(b, 1, H5_CLASS_FLOAT, 0x3f20, 8);
	put(b, 0, 2);
	put(b, 64, 2);
	put(b, 52 | 11 << 8 | 0 << 16 | 52u << 24, 4);
	put(b, 1023, 4);
}

static int decode(const struct bytes *b, size_t n, struct h5_datatype **type)
{
	struct h5_reader r = h5_reader_init(b->data, n, 0, 8, 8);
	int rc = h5_datatype_decode(&r, type);

	if (!rc)
		ck_assert_uint_eq(h5_reader_left(&r), 0);
	return rc;
}

/* Bytes that the type takes at least. */
static size_t least_cost(const struct h5_datatype *type)
{
	size_t cost = sizeof *type;

	switch (type->class) {
	case H5_CLASS_OPAQUE:
		return cost + strlen(type->opaque.tag);
	case H5_CLASS_COMPOUND:
		for (unsigned i = 0; i < type->compound.count; i++)
			cost += sizeof *type->compound.members + strlen(type->compound.members[i].name) +
				least_cost(type->compound.members[i].type);
		return cost;
	case H5_CLASS_ENUM:
		for (unsigned i = 0; i < type->enumeration.count; i++)
			cost += sizeof *type->enumeration.members +
				strlen(type->enumeration.members[i].name) + type->size;
		return cost + least_cost(type->enumeration.base);
	case H5_CLASS_VLEN:
		return cost + least_cost(type->vlen.base);
	case H5_CLASS_ARRAY:
		return cost + least_cost(type->array.base);
	case H5_CLASS_COMPLEX:
		return cost + least_cost(type->complex.base);
	default:
		return cost;
	}
}

/* What every test of a good message does: decode all of it, and find every shorter one truncated. */
static struct h5_datatype *decoded(const struct bytes *b)
{
	struct h5_datatype *type;

	for (size_t n = 0; n < b->n; n++) {
		uint8_t *copy = malloc(n + 1);
		struct h5_reader r = h5_reader_init(memcpy(copy, b->data, n), n, 0, 8, 8);

		ck_assert_int_eq(h5_datatype_decode(&r, &type), -EUCLEAN);
		ck_assert_ptr_null(type);
		free(copy);
	}
	ck_assert_int_eq(decode(b, b->n, &type), 0);
	ck_assert_uint_ge(h5_datatype_cost(type), least_cost(type));
	ck_assert_uint_le(h5_datatype_cost(type), 2 * least_cost(type));
	return type;
}

static void refused(const struct bytes *b, int code)
{
	struct h5_datatype *type;

	ck_assert_int_eq(decode(b, b->n, &type), code);
	ck_assert_ptr_null(type);
}

START_TEST(integers)
{
	struct bytes b = {.n = 0};
	struct h5_datatype *t;

	prefix(&b, 1, H5_CLASS_INTEGER, 0x09, 4); /* big-endian, signed */
	put(&b, 3, 2);
	put(&b, 25, 2);
	t = decoded(&b);
	ck_assert_int_eq(t->class, H5_CLASS_INTEGER);
	ck_assert_int_eq(t->version, 1);
	ck_assert_uint_eq(t->size, 4);
	ck_assert_int_eq(t->order, H5_ORDER_BE);
	ck_assert(t->is_signed && h5_datatype_is_fixed(t));
	ck_assert_uint_eq(t->bit_offset, 3);
	ck_assert_uint_eq(t->precision, 25);
	h5_datatype_free(t);
	b.data[10] = 30; /* 3 + 30 bits in 32 */
	refused(&b, -EUCLEAN);
	b.data[10] = 0;
	refused(&b, -EUCLEAN);
}
END_TEST

START_TEST(floats)
{
	struct bytes b = {.n = 0};
	struct h5_datatype *t;

	put_double(&b);
	t = decoded(&b);
	ck_assert_int_eq(t->class, H5_CLASS_FLOAT);
	ck_assert_int_eq(t->fl.norm, H5_NORM_IMPLIED);
	ck_assert_uint_eq(t->fl.sign, 63);
	ck_assert_uint_eq(t->fl.exponent, 52);
	ck_assert_uint_eq(t->fl.exponent_size, 11);
	ck_assert_uint_eq(t->fl.mantissa, 0);
	ck_assert_uint_eq(t->fl.mantissa_size, 52);
	ck_assert_uint_eq(t->fl.bias, 1023);
	h5_datatype_free(t);

	/* Bits 0 and 6 together: VAX order, from version 3 on. */
	b.data[1] |= 0x41;
	t = decoded(&b);
	ck_assert_int_eq(t->order, H5_ORDER_BE);
	h5_datatype_free(t);
	b.data[0] = 3 << 4 | H5_CLASS_FLOAT;
	t = decoded(&b);
	ck_assert_int_eq(t->order, H5_ORDER_VAX);
	h5_datatype_free(t);
	b.data[1] &= (uint8_t)~1;
	refused(&b, -EUCLEAN);
	b.data[1] = 0x30; /* reserved normalization */
	refused(&b, -EUCLEAN);
	b.data[1] = 0x20;
	b.data[2] = 64; /* sign beyond the last bit */
	refused(&b, -EUCLEAN);
	b.data[2] = 63;
	b.data[12] = 54; /* exponent beyond it */
	refused(&b, -EUCLEAN);
}
END_TEST

START_TEST(times_bitfields_strings_opaques)
{
	struct bytes b = {.n = 0};
	struct h5_datatype *t;

	prefix(&b, 1, H5_CLASS_TIME, 1, 4);
	put(&b, 32, 2);
	t = decoded(&b);
	ck_assert_int_eq(t->order, H5_ORDER_BE);
	ck_assert_uint_eq(t->precision, 32);
	h5_datatype_free(t);

	b.n = 0;
	prefix(&b, 1, H5_CLASS_BITFIELD, 8, 2);
	put(&b, 4, 2);
	put(&b, 7, 2);
	t = decoded(&b);
	ck_assert(!t->is_signed);
	ck_assert_uint_eq(t->bit_offset, 4);
	ck_assert_uint_eq(t->precision, 7);
	h5_datatype_free(t);

	b.n = 0;
	prefix(&b, 1, H5_CLASS_STRING, 0x12, 10);
	t = decoded(&b);
	ck_assert_int_eq(t->string.padding, H5_PAD_SPACEPAD);
	ck_assert_int_eq(t->string.charset, H5_CHARSET_UTF8);
	h5_datatype_free(t);

	b.n = 0;
	prefix(&b, 1, H5_CLASS_OPAQUE, 16, 3);
	put_name(&b, "an opaque", true);
	t = decoded(&b);
	ck_assert_str_eq(t->opaque.tag, "an opaque");
	h5_datatype_free(t);
}
END_TEST

START_TEST(compounds_of_version_1_hold_arrays)
{
	struct bytes b = {.n = 0};
	const struct h5_member *m;
	struct h5_datatype *t;

	prefix(&b, 1, H5_CLASS_COMPOUND, 2, 32);
	put_name(&b, "scalar", true);
	put(&b, 24, 4);
	put(&b, 0, 12);
	for (int i = 0; i < 4; i++)
		put(&b, 0, 4);
	put_double(&b);
	put_name(&b, "an_array", true); /* with its NUL nine bytes: padded to 16 */
	put(&b, 0, 4);
	put(&b, 2, 12);
	for (uint64_t i = 0; i < 4; i++)
		put(&b, i < 2 ? 2 + i : 9, 4);
	put_integer(&b, 8, 4);
	t = decoded(&b);
	ck_assert_uint_eq(t->compound.count, 2);
	m = t->compound.members;
	ck_assert_str_eq(m[0].name, "scalar");
	ck_assert_uint_eq(m[0].offset, 24);
	ck_assert_int_eq(m[0].type->class, H5_CLASS_FLOAT);
	ck_assert_str_eq(m[1].name, "an_array");
	ck_assert_uint_eq(m[1].offset, 0);
	ck_assert_int_eq(m[1].type->class, H5_CLASS_ARRAY);
	ck_assert_uint_eq(m[1].type->size, 24);
	ck_assert_uint_eq(m[1].type->array.rank, 2);
	ck_assert_uint_eq(m[1].type->array.dims[0], 2);
	ck_assert_uint_eq(m[1].type->array.dims[1], 3);
	ck_assert_uint_eq(m[1].type->array.count, 6);
	ck_assert_int_eq(m[1].type->array.base->class, H5_CLASS_INTEGER);
	h5_datatype_free(t);
}
END_TEST

/* Rank and dimensions of the array member: more than four, or a product beyond any size. */
START_TEST(compounds_of_version_1_refuse_wild_arrays)
{
	for (int wild = 0; wild < 3; wild++) {
		struct bytes b = {.n = 0};

		prefix(&b, 1, H5_CLASS_COMPOUND, 1, 0x7fffffff);
		put_name(&b, "a", true);
		put(&b, 0, 4);
		put(&b, wild == 0 ? 5 : 4, 12);
		for (int i = 0; i < 4; i++)
			put(&b, wild == 1 ? UINT32_MAX : wild == 2 ? 0 : 1, 4);
		put_integer(&b, 8, 4);
		refused(&b, -EUCLEAN);
	}
}
END_TEST

START_TEST(compounds_of_later_versions)
{
	struct h5_datatype *t;
	struct bytes b = {.n = 0};

	prefix(&b, 2, H5_CLASS_COMPOUND, 1, 300);
	put_name(&b, "padded", true);
	put(&b, 296, 4);
	put_integer(&b, 0, 4);
	t = decoded(&b);
	ck_assert_str_eq(t->compound.members[0].name, "padded");
	ck_assert_uint_eq(t->compound.members[0].offset, 296);
	h5_datatype_free(t);

	/* Version 3: as many bytes of offset as the size needs: one up to 255, two up to 65,535, ... */
	for (unsigned width = 1; width <= 4; width++) {
		uint32_t size = width == 4 ? 0x80000000 : ((uint32_t)1 << 8 * width) - 1;

		b.n = 0;
		prefix(&b, 3, H5_CLASS_COMPOUND, 1, size);
		put_name(&b, "x", false);
		put(&b, size - 4, width);
		put_integer(&b, 0, 4);
		t = decoded(&b);
		ck_assert_uint_eq(t->compound.members[0].offset, size - 4);
		h5_datatype_free(t);
		b.data[10]++; /* one byte beyond the end */
		refused(&b, -EUCLEAN);
	}
	b.n = 0;
	prefix(&b, 3, H5_CLASS_COMPOUND, 0, 4);
	refused(&b, -EUCLEAN);
	b.n = 0;
	prefix(&b, 3, H5_CLASS_COMPOUND, 0xffff, 4);
	put_name(&b, "x", false);
	put(&b, 0, 1);
	put_integer(&b, 0, 4);
	refused(&b, -EUCLEAN);
}
END_TEST

START_TEST(references)
{
	for (unsigned kind = 0; kind <= 5; kind++) {
		struct bytes b = {.n = 0};
		struct h5_datatype *t;

		prefix(&b, 4, H5_CLASS_REFERENCE, kind | (kind > 1 ? 0x10 : 0), kind ? 18 : 8);
		if (kind > H5_REF_ATTRIBUTE) {
			refused(&b, -EUCLEAN);
			continue;
		}
		t = decoded(&b);
		ck_assert_uint_eq(t->reference.kind, kind);
		ck_assert(!h5_datatype_is_fixed(t));
		h5_datatype_free(t);
	}
}
END_TEST

START_TEST(enumerations)
{
	static const char *const names[] = {"RED", "EIGHT_OF", "AGAIN"};
	static const uint8_t values[] = {1, 0, 0xff, 0xff, 1, 0};

	for (unsigned version = 1; version <= 3; version++) {
		struct bytes b = {.n = 0};
		struct h5_datatype *t;

		prefix(&b, version, H5_CLASS_ENUM, 3, 2);
		put_integer(&b, 8, 2);
		for (int i = 0; i < 3; i++)
			put_name(&b, names[i], version < 3);
		memcpy(b.data + b.n, values, 6);
		b.n += 6;
		t = decoded(&b);
		ck_assert_uint_eq(t->enumeration.count, 3);
		for (int i = 0; i < 3; i++) {
			ck_assert_str_eq(t->enumeration.members[i].name, names[i]);
			ck_assert_mem_eq(t->enumeration.members[i].value, values + 2 * i, 2);
		}
		/* of two with one value the first */
		ck_assert_str_eq(h5_datatype_enum_member(t, values)->name, "RED");
		ck_assert_str_eq(h5_datatype_enum_member(t, values + 2)->name, "EIGHT_OF");
		ck_assert_ptr_null(h5_datatype_enum_member(t, (const uint8_t[]){2, 0}));
		ck_assert(h5_datatype_is_fixed(t));
		h5_datatype_free(t);
		b.data[4] = 4; /* not the base type's size */
		refused(&b, -EUCLEAN);
	}
}
END_TEST

START_TEST(variable_length)
{
	struct bytes b = {.n = 0};
	struct h5_datatype *t;

	prefix(&b, 1, H5_CLASS_VLEN, 0, 16);
	put_double(&b);
	t = decoded(&b);
	ck_assert(!t->vlen.is_string && !h5_datatype_is_fixed(t));
	ck_assert_int_eq(t->vlen.base->class, H5_CLASS_FLOAT);
	h5_datatype_free(t);
	b.data[1] = 0x21;
	b.data[2] = 0x01;
	t = decoded(&b);
	ck_assert(t->vlen.is_string);
	ck_assert_int_eq(t->vlen.padding, H5_PAD_SPACEPAD);
	ck_assert_int_eq(t->vlen.charset, H5_CHARSET_UTF8);
	h5_datatype_free(t);
	b.data[1] = 2;
	refused(&b, -EUCLEAN);
}
END_TEST

START_TEST(arrays)
{
	for (unsigned version = 1; version <= 4; version++) { /* version 1 as in version 2: old writers */
		struct bytes b = {.n = 0};
		struct h5_datatype *t;

		prefix(&b, version, H5_CLASS_ARRAY, 0, 24);
		put(&b, 2, version < 3 ? 4 : 1);
		put(&b, 2, 4);
		put(&b, 3, 4);
		if (version < 3)
			put(&b, 1ull << 32, 8);
		put_integer(&b, 8, 4);
		t = decoded(&b);
		ck_assert_uint_eq(t->array.rank, 2);
		ck_assert_uint_eq(t->array.dims[0], 2);
		ck_assert_uint_eq(t->array.dims[1], 3);
		ck_assert_uint_eq(t->array.count, 6);
		ck_assert(h5_datatype_is_fixed(t));
		h5_datatype_free(t);
		b.data[4] = 23;
		refused(&b, -EUCLEAN);
		b.data[4] = 24;
		b.data[8] = 33;
		refused(&b, -EUCLEAN);
	}
}
END_TEST

/* 2^64 elements of 4 bytes are none in 64 bits. */
START_TEST(arrays_of_overflowing_size)
{
	struct bytes b = {.n = 0};

	prefix(&b, 3, H5_CLASS_ARRAY, 0, 4);
	put(&b, 3, 1);
	put(&b, 1u << 31, 4);
	put(&b, 1u << 31, 4);
	put(&b, 4, 4);
	put_integer(&b, 8, 4);
	refused(&b, -EUCLEAN);
}
END_TEST

START_TEST(complex_numbers)
{
	struct bytes b = {.n = 0};
	struct h5_datatype *t;

	prefix(&b, 5, H5_CLASS_COMPLEX, 1, 16);
	put_double(&b);
	t = decoded(&b);
	ck_assert_int_eq(t->complex.base->class, H5_CLASS_FLOAT);
	ck_assert(h5_datatype_is_fixed(t));
	h5_datatype_free(t);
	b.data[4] = 8;
	refused(&b, -EUCLEAN);
	b.data[4] = 16;
	b.data[1] = 3; /* another form */
	refused(&b, -ENOTSUP);
}
END_TEST

static void nest(struct bytes *b, int levels)
{
	b->n = 0;
	for (int i = 1; i < levels; i++)
		prefix(b, 1, H5_CLASS_VLEN, 0, 16);
	put_integer(b, 0, 4);
}

START_TEST(nesting_is_bounded)
{
	struct h5_datatype *t;
	struct bytes b;

	nest(&b, H5_DATATYPE_DEPTH);
	t = decoded(&b);
	h5_datatype_free(t);
	nest(&b, H5_DATATYPE_DEPTH + 1);
	refused(&b, -EUCLEAN);
}
END_TEST

/* ---- questions ---- */

/* An integer with this precision, or a float of these sizes and places. */
static struct h5_datatype integer_of(uint32_t size, uint16_t precision, enum h5_byte_order order)
{
	return (struct h5_datatype){
		.class = H5_CLASS_INTEGER, .size = size, .precision = precision, .order = order};
}

static struct h5_datatype float_of(uint32_t size, unsigned exponent)
{
	const unsigned mantissa = 8 * size - 1 - exponent;

	return (struct h5_datatype){.class = H5_CLASS_FLOAT,
				    .size = size,
				    .precision = (uint16_t)(8 * size),
				    .fl = {.norm = H5_NORM_IMPLIED,
					   .sign = (uint8_t)(8 * size - 1),
					   .exponent = (uint8_t)mantissa,
					   .exponent_size = (uint8_t)exponent,
					   .mantissa_size = (uint8_t)mantissa,
					   .bias = (1u << (exponent - 1)) - 1}};
}

START_TEST(numbers_of_the_machine)
{
	static const struct {
		uint32_t size;
		unsigned exponent;
	} forms[] = {{2, 5}, {4, 8}, {8, 11}};
	struct h5_datatype t;

	for (uint32_t size = 1; size <= 9; size++) {
		bool fits = size == 1 || size == 2 || size == 4 || size == 8;

		t = integer_of(size, (uint16_t)(8 * size), H5_ORDER_BE);
		ck_assert(h5_datatype_is_native_integer(&t) == fits && h5_datatype_is_number(&t) == fits);
		t = integer_of(size, (uint16_t)(8 * size - 1), H5_ORDER_LE);
		ck_assert(!h5_datatype_is_native_integer(&t) && !h5_datatype_is_number(&t));
		t = integer_of(size, (uint16_t)(8 * size), H5_ORDER_VAX);
		ck_assert(!h5_datatype_is_native_integer(&t));
	}
	t = integer_of(4, 32, H5_ORDER_LE);
	t.class = H5_CLASS_BITFIELD;
	ck_assert(!h5_datatype_is_number(&t));
	for (unsigned i = 0; i < 3; i++) {
		const struct h5_datatype good = float_of(forms[i].size, forms[i].exponent);

		ck_assert(h5_datatype_is_ieee_float(&good) && h5_datatype_is_number(&good));
		for (unsigned change = 0; change < 8; change++) {
			t = good;
			switch (change) {
			case 0:
				t.order = H5_ORDER_VAX;
				break;
			case 1:
				t.fl.norm = H5_NORM_MSB_SET;
				break;
			case 2:
				t.fl.sign--;
				break;
			case 3:
				t.fl.exponent--;
				break;
			case 4:
				t.fl.exponent_size--;
				break;
			case 5:
				t.fl.mantissa++;
				break;
			case 6:
				t.fl.mantissa_size--;
				break;
			default:
				t.fl.bias++;
			}
			ck_assert_msg(!h5_datatype_is_ieee_float(&t), "change %u", change);
			ck_assert(!h5_datatype_is_number(&t));
		}
	}
	t = float_of(3, 11);
	ck_assert(!h5_datatype_is_ieee_float(&t));
}
END_TEST

/* An enumeration of two names, whose integers have `size` bytes. */
static bool is_boolean(const char *first, unsigned first_value, const char *second, unsigned second_value,
		       uint32_t size, unsigned count)
{
	struct bytes b = {.n = 0};
	struct h5_datatype *t;
	bool is;

	prefix(&b, 3, H5_CLASS_ENUM, count, size);
	put_integer(&b, 8, size);
	put_name(&b, first, false);
	if (count > 1)
		put_name(&b, second, false);
	if (count > 2)
		put_name(&b, "MORE", false);
	put(&b, first_value, size);
	put(&b, second_value, count > 1 ? size : 0);
	put(&b, 1, count > 2 ? size : 0);
	ck_assert_int_eq(decode(&b, b.n, &t), 0);
	is = h5_datatype_is_boolean(t);
	ck_assert(h5_datatype_is_number(t) && !h5_datatype_has_references(t));
	h5_datatype_free(t);
	return is;
}

START_TEST(booleans)
{
	ck_assert(is_boolean("FALSE", 0, "TRUE", 1, 1, 2));
	ck_assert(is_boolean("TRUE", 1, "FALSE", 0, 1, 2));
	ck_assert(!is_boolean("FALSE", 1, "TRUE", 0, 1, 2));
	ck_assert(!is_boolean("FALSE", 0, "TRUE", 2, 1, 2));
	ck_assert(!is_boolean("FALSE", 0, "FALSE", 0, 1, 2));
	ck_assert(!is_boolean("TRUE", 1, "TRUE", 1, 1, 2));
	ck_assert(!is_boolean("FALSE", 0, "true", 1, 1, 2));
	ck_assert(!is_boolean("TRUE", 2, "FALSE", 0, 1, 2));
	ck_assert(!is_boolean("FALSE", 0, "TRUE", 1, 2, 2));
	ck_assert(!is_boolean("FALSE", 0, "", 0, 1, 1));
	ck_assert(!is_boolean("FALSE", 0, "TRUE", 1, 1, 3));
}
END_TEST

START_TEST(references_within)
{
	struct h5_datatype number = integer_of(4, 32, H5_ORDER_LE),
			   reference = {.class = H5_CLASS_REFERENCE, .size = 8};
	struct h5_member members[] = {{"a", 0, &number}, {"b", 4, &reference}};
	struct h5_datatype list = {.class = H5_CLASS_VLEN, .vlen = {.base = &reference}},
			   array = {.class = H5_CLASS_ARRAY, .array = {.base = &reference}},
			   pair = {.class = H5_CLASS_COMPOUND, .compound = {.count = 2, .members = members}};

	ck_assert(h5_datatype_has_references(&reference) && !h5_datatype_has_references(&number));
	ck_assert(h5_datatype_has_references(&list) && h5_datatype_has_references(&array));
	ck_assert(h5_datatype_has_references(&pair) && !h5_datatype_is_fixed(&pair));
	ck_assert(!h5_datatype_is_fixed(&array) && !h5_datatype_is_fixed(&list));
	pair.compound.count = 1;
	ck_assert(!h5_datatype_has_references(&pair) && h5_datatype_is_fixed(&pair));
	list.vlen.is_string = true;
	ck_assert(!h5_datatype_has_references(&list));
	list.vlen.is_string = false;
	list.vlen.base = array.array.base = &number;
	ck_assert(!h5_datatype_has_references(&list) && !h5_datatype_has_references(&array));
	ck_assert(h5_datatype_is_fixed(&array));
}
END_TEST

/* Numbers of all sizes, in both orders. */
START_TEST(bits_of_numbers)
{
	const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

	for (uint32_t size = 1; size <= 8; size++) {
		struct h5_datatype t = integer_of(size, (uint16_t)(8 * size), H5_ORDER_LE);
		uint64_t little = 0, big = 0;

		for (unsigned i = 0; i < size; i++) {
			little |= (uint64_t)bytes[i] << 8 * i;
			big = big << 8 | bytes[i];
		}
		ck_assert_uint_eq(h5_datatype_bits(&t, bytes), little);
		t.order = H5_ORDER_BE;
		ck_assert_uint_eq(h5_datatype_bits(&t, bytes), big);
	}
}
END_TEST

/* A number's parts may reach its last bit, but not beyond. */
START_TEST(bits_up_to_the_last)
{
	/* Offset, precision, exponent's place and size, mantissa's; sign is elsewhere. */
	static const struct {
		unsigned at;
		uint8_t good, bad;
	} limits[] = {{8, 0, 1},    /* offset of 64 bits */
		      {10, 64, 65}, /* precision */
		      {12, 53, 54}, /* exponent of 11 bits */
		      {13, 12, 13}, {14, 12, 13} /* mantissa of 52 bits */, {15, 64, 65}, {2, 63, 64}};
	struct bytes b = {.n = 0};
	struct h5_datatype *t;

	put_double(&b);
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		uint8_t was = b.data[limits[i].at];

		b.data[limits[i].at] = limits[i].good;
		ck_assert_int_eq(decode(&b, b.n, &t), 0);
		h5_datatype_free(t);
		b.data[limits[i].at] = limits[i].bad;
		refused(&b, -EUCLEAN);
		b.data[limits[i].at] = was;
	}
	for (unsigned at = 13; at <= 15; at += 2) { /* sizes of nothing */
		uint8_t was = b.data[at];

		b.data[at] = 0;
		refused(&b, -EUCLEAN);
		b.data[at] = was;
	}
	b.data[12] = 0;
	b.data[13] = 32; /* the largest exponent that is computed with */
	ck_assert_int_eq(decode(&b, b.n, &t), 0);
	h5_datatype_free(t);
	b.data[13] = 33;
	refused(&b, -ENOTSUP);
	b.n = 0;
	prefix(&b, 1, H5_CLASS_INTEGER, 0, 4);
	put(&b, 3, 2);
	put(&b, 29, 2);
	ck_assert_int_eq(decode(&b, b.n, &t), 0);
	h5_datatype_free(t);
	b.n = 0;
	prefix(&b, 1, H5_CLASS_TIME, 0, 4);
	put(&b, 33, 2);
	refused(&b, -EUCLEAN);
}
END_TEST

START_TEST(nonsense_is_refused)
{
	struct bytes b = {.n = 0};

	put_integer(&b, 0, 4);
	b.data[4] = 0; /* size */
	refused(&b, -EUCLEAN);
	b.data[4] = 4;
	b.data[0] = 0x00; /* version */
	refused(&b, -EUCLEAN);
	b.data[0] = 0x60;
	refused(&b, -EUCLEAN);
	b.data[0] = 0x1c; /* class */
	refused(&b, -EUCLEAN);
}
END_TEST

/* Everything that can be said of a type, and of a value of zeros and one of ones where that is small. */
static void use(struct h5_file *file, const struct h5_datatype *t)
{
	struct h5_value_context context = {.file = file};
	uint8_t value[4096];
	struct h5_buf out;

	h5_buf_init(&out, 100000);
	h5_datatype_ddl(t, true, &out);
	h5_datatype_ddl(t, false, &out);
	h5_datatype_numpy(t, &out);
	for (int ones = 0; ones < 2 && t->size <= sizeof value; ones++) {
		memset(value, ones ? 0xff : 0, sizeof value);
		(void)h5_value_json(&context, t, value, &out);
	}
	h5_buf_release(&out);
}

/* A compound with a member of every class. */
static void put_all_classes(struct bytes *b)
{
	b->n = 0;
	prefix(b, 3, H5_CLASS_COMPOUND, 10, 120);
	put_name(b, "double", false);
	put(b, 0, 1);
	put_double(b);
	put_name(b, "enum", false);
	put(b, 8, 1);
	prefix(b, 3, H5_CLASS_ENUM, 2, 2);
	put_integer(b, 8, 2);
	put_name(b, "A", false);
	put_name(b, "B", false);
	put(b, 0x00010002, 4);
	put_name(b, "array", false);
	put(b, 16, 1);
	prefix(b, 3, H5_CLASS_ARRAY, 0, 24);
	put(b, 2, 1);
	put(b, 2, 4);
	put(b, 3, 4);
	put_integer(b, 8, 4);
	put_name(b, "opaque", false);
	put(b, 40, 1);
	prefix(b, 1, H5_CLASS_OPAQUE, 8, 3);
	put_name(b, "tag", true);
	put_name(b, "string", false);
	put(b, 44, 1);
	prefix(b, 1, H5_CLASS_STRING, 0x11, 10);
	put_name(b, "bits", false);
	put(b, 60, 1);
	prefix(b, 1, H5_CLASS_BITFIELD, 1, 4);
	put(b, 3, 2);
	put(b, 11, 2);
	put_name(b, "complex", false);
	put(b, 64, 1);
	prefix(b, 5, H5_CLASS_COMPLEX, 1, 16);
	put_double(b);
	put_name(b, "time", false);
	put(b, 80, 1);
	prefix(b, 1, H5_CLASS_TIME, 0, 4);
	put(b, 32, 2);
	put_name(b, "vlen", false);
	put(b, 84, 1);
	prefix(b, 1, H5_CLASS_VLEN, 0, 16);
	put_integer(b, 8, 2);
	put_name(b, "reference", false);
	put(b, 100, 1);
	prefix(b, 4, H5_CLASS_REFERENCE, 0x12, 18);
}

START_TEST(changed_bytes_do_no_harm)
{
	struct bytes b, container = {.n = 0};
	struct h5_datatype *t;
	struct h5_file_set *set;
	unsigned good = 0;

	put_superblock(&container);
	set = open_bytes(&container);
	put_all_classes(&b);
	h5_datatype_free(decoded(&b));
	for (size_t i = 0; i < b.n; i++) {
		uint8_t was = b.data[i];

		for (unsigned v = 0; v < 256; v++) {
			struct h5_reader r = h5_reader_init(b.data, b.n, 0, 8, 8);

			b.data[i] = (uint8_t)v;
			if (!h5_datatype_decode(&r, &t)) {
				use(h5_file_set_root(set), t);
				h5_datatype_free(t);
				good++;
			}
		}
		b.data[i] = was;
	}
	ck_assert_uint_gt(good, b.n); /* names and paddings may be anything */
	h5_file_set_close(set);
}
END_TEST

UNIT_MAIN("datatype", integers, floats, times_bitfields_strings_opaques, compounds_of_version_1_hold_arrays,
	  compounds_of_version_1_refuse_wild_arrays, compounds_of_later_versions, references, enumerations,
	  variable_length, arrays, arrays_of_overflowing_size, complex_numbers, nesting_is_bounded,
	  numbers_of_the_machine, booleans, references_within, bits_of_numbers, bits_up_to_the_last,
	  nonsense_is_refused, changed_bytes_do_no_harm)
