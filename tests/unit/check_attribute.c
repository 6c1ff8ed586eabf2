#include "base/error.h"
#include "base/lookup3.h"
#include "object/attribute.h"
#include "objects.h"

struct listing {
	struct h5_buf text;
	const struct opened *opened;
	const struct h5_object *object;
	unsigned count;
};

/* An attribute by name is that of the listing. */
static void list_and_look_up(struct listing *l, const struct h5_attribute *attribute)
{
	struct h5_attribute found;
	bool in_heap;

	ck_assert_ptr_nonnull(attribute->type);
	ck_assert_int_eq(h5_attribute_lookup(l->opened->file, l->object, attribute->name, &found), 0);
	ck_assert_str_eq(found.name, attribute->name);
	ck_assert_uint_eq(found.size, attribute->size);
	ck_assert_mem_eq(found.data, attribute->data, found.size);
	ck_assert_uint_eq(found.space.elements * found.type->size, found.size);
	in_heap = found.type->class == H5_CLASS_VLEN;
	h5_buf_text(&l->text, "attribute ");
	add_hex(&l->text, found.name, strlen(found.name));
	h5_buf_printf(&l->text, " %zu ", found.size);
	add_hex(&l->text, found.data, in_heap ? 0 : found.size < 64 ? found.size : 64);
	h5_buf_text(&l->text, "\n");
	h5_attribute_release(&found);
	h5_attribute_release(&found);
	l->count++;
}

static int list_all(struct listing *l)
{
	struct h5_attribute_walk walk;
	const struct h5_attribute *attribute;
	int rc = h5_attribute_begin(&walk, l->opened->file, l->object);

	for (; !rc && (rc = h5_attribute_next(&walk, &attribute)) > 0; rc = 0)
		list_and_look_up(l, attribute);
	h5_attribute_end(&walk);
	return rc;
}

START_TEST(attributes_are_as_h5py_says)
{
	for (unsigned i = 0; i < OBJECTS_FILES; i++) {
		struct opened o = objects_open(objects_files[i]);
		struct expected e = expected_open(objects_files[i]);

		while (expected_next(&e)) {
			struct h5_lru_entry *ref;
			struct listing l = {.opened = &o, .object = object_at(&o, e.address, &ref)};
			struct h5_attribute none;

			h5_buf_init(&l.text, SIZE_MAX);
			ck_assert_int_eq(list_all(&l), 0);
			assert_text(&l.text, &e.attributes);
			ck_assert_int_eq(h5_attribute_lookup(o.file, l.object, "no such name", &none),
					 -ENODATA);
			h5_attribute_release(&none);
			h5_buf_release(&l.text);
			h5_file_put(o.file, ref);
		}
		objects_close(&o);
	}
}
END_TEST

/* Larger than an object header message, and than a managed object of the heap. */
START_TEST(large_attribute)
{
	struct opened o = objects_open("latest");
	struct h5_attribute attribute;
	struct h5_lru_entry *ref;
	const struct h5_object *object = object_named(&o, "attributes300", &ref);

	ck_assert_int_eq(h5_attribute_lookup(o.file, object, "large3", &attribute), 0);
	ck_assert_uint_eq(attribute.space.rank, 1);
	ck_assert_uint_eq(attribute.space.dims[0], 20003);
	ck_assert_uint_eq(attribute.size, 80012);
	for (uint32_t i = 0; i < 20003; i++)
		ck_assert_uint_eq(h5_uint_from(attribute.data + 4 * i, 4), i);
	h5_attribute_release(&attribute);
	h5_file_put(o.file, ref);
	objects_close(&o);
}
END_TEST

START_TEST(committed_type_of_an_attribute)
{
	struct opened o = objects_open("old");
	struct h5_attribute attribute;
	struct h5_lru_entry *ref;
	const struct h5_object *object = object_named(&o, "typed1", &ref);

	ck_assert_int_eq(h5_attribute_lookup(o.file, object, "typed", &attribute), 0);
	ck_assert_int_eq(attribute.type->class, H5_CLASS_COMPOUND);
	ck_assert_uint_eq(attribute.type->compound.count, 2);
	ck_assert_str_eq(attribute.type->compound.members[1].name, "b");
	ck_assert_uint_eq(attribute.size, 2 * (4 + 24));
	h5_attribute_release(&attribute);
	h5_file_put(o.file, ref);
	objects_close(&o);
}
END_TEST

/* The cache knows attributes by a hash of their names and what the caller adds to it. Two that are the same
 * there are not taken for each other. */
START_TEST(names_with_one_hash)
{
	struct opened o = objects_open("old");
	const char *const first = "text1", *const second = "number2";
	const uint64_t same = (uint64_t)h5_lookup3(first, 5, 0) << 32 ^ h5_lookup3(first, 5, 1) ^
			      (uint64_t)h5_lookup3(second, 7, 0) << 32 ^ h5_lookup3(second, 7, 1);
	const struct h5_attribute *attribute;
	struct h5_lru_entry *ref, *other = NULL;
	const struct h5_object *object = object_named(&o, "attributes3", &ref);
	const uint64_t address = object->address;

	h5_file_put(o.file, ref);
	ck_assert_int_eq(h5_attribute_get(o.file, address, first, 0, &ref, &attribute), 0);
	ck_assert_str_eq(attribute->name, first);
	ck_assert_int_eq(h5_attribute_get(o.file, address, second, same, &other, &attribute), -EUCLEAN);
	ck_assert_ptr_null(other);
	ck_assert_int_eq(h5_attribute_get(o.file, address, second, 0, &other, &attribute), 0);
	ck_assert_str_eq(attribute->name, second);
	h5_lru_put(h5_file_shared(o.file)->chunks, other);
	h5_lru_put(h5_file_shared(o.file)->chunks, ref);
	objects_close(&o);
}
END_TEST

/* Counts those with a value in counts[1], those with only a name in counts[0]. */
static int count_kinds(struct h5_file *file, const struct h5_object *object, unsigned counts[2])
{
	struct h5_attribute_walk walk;
	const struct h5_attribute *attribute;
	int rc = h5_attribute_begin(&walk, file, object);

	for (; !rc && (rc = h5_attribute_next(&walk, &attribute)) > 0; rc = 0)
		counts[attribute->type != NULL]++;
	h5_attribute_end(&walk);
	return rc;
}

/* The attribute message around the n-th place of the name has its byte at `offset` from the name replaced. */
static void damage_message(struct opened *o, const char *name, int offset, uint8_t byte)
{
	uint8_t *at = objects_find(o, name, strlen(name) + 1, 0);

	ck_assert_ptr_nonnull(at);
	at[offset] = byte;
}

/* In headers without checksums: attribute "text1" of the group of 3. */
static void check_damaged(int offset, uint8_t byte, unsigned good, unsigned named, int rc)
{
	struct opened o = objects_load("old");
	unsigned counts[2] = {0, 0};
	struct h5_attribute attribute;
	struct h5_lru_entry *ref;
	const struct h5_object *object;

	damage_message(&o, "text1", offset, byte);
	objects_serve(&o);
	object = object_named(&o, "attributes3", &ref);
	ck_assert_int_eq(count_kinds(o.file, object, counts), rc);
	ck_assert_uint_eq(counts[1], good);
	ck_assert_uint_eq(counts[0], named);
	ck_assert_int_eq(h5_attribute_lookup(o.file, object, "number2", &attribute), 0);
	h5_attribute_release(&attribute);
	ck_assert_int_eq(h5_attribute_lookup(o.file, object, "text1", &attribute), rc ? -ENODATA : -EUCLEAN);
	h5_file_put(o.file, ref);
	objects_close(&o);
}

/* Version 1 of the message: version, reserved, sizes of name, type and space (2 each), then the name. */
START_TEST(damaged_attribute_leaves_its_neighbours)
{
	enum { ALL = 3 * 3 + 2 };

	check_damaged(-8, 9, ALL - 1, 0, -EUCLEAN);    /* version */
	check_damaged(-5, 0x70, ALL - 1, 0, -EUCLEAN); /* name that passes the end */
	check_damaged(-3, 0x70, ALL - 1, 1, 0);	       /* type that passes the end */
	check_damaged(-1, 0x70, ALL - 1, 1, 0);	       /* space that does */
	check_damaged(8, 0x7f, ALL - 1, 1, 0);	       /* version and class of the type */
}
END_TEST

/* More elements than the message holds. */
START_TEST(data_beyond_the_message)
{
	struct opened o = objects_load("old");
	struct h5_attribute attribute;
	struct h5_lru_entry *ref;
	const struct h5_object *object;
	uint8_t *name = objects_find(&o, "number2", 8, 0), *dims;

	/* the dataspace follows the type: version 1, rank 1, flags, 5 reserved, the dimension */
	ck_assert_ptr_nonnull(name);
	dims = memmem(name, 64, "\x01\x01\x00\x00\x00\x00\x00\x00\x03", 9);
	if (!dims)
		dims = memmem(name, 64, "\x01\x01\x01\x00\x00\x00\x00\x00\x03", 9);
	ck_assert_ptr_nonnull(dims);
	objects_serve(&o);
	object = object_named(&o, "attributes3", &ref);
	ck_assert_int_eq(h5_attribute_lookup(o.file, object, "number2", &attribute), 0);
	h5_attribute_release(&attribute);
	h5_file_put(o.file, ref);
	h5_file_set_close(o.set);
	for (unsigned i = 0; i < 2; i++) {
		memset(dims + 8, i ? 0xff : 0, 8);
		dims[8] = i ? 0xfe : 100;
		objects_serve(&o);
		object = object_named(&o, "attributes3", &ref);
		ck_assert_int_eq(h5_attribute_lookup(o.file, object, "number2", &attribute), -EUCLEAN);
		h5_file_put(o.file, ref);
		if (!i)
			h5_file_set_close(o.set);
	}
	objects_close(&o);
}
END_TEST

/* The name index: its records' error is told, the object stays readable. */
START_TEST(damaged_dense_storage)
{
	struct opened o = objects_load("latest");
	unsigned counts[2] = {0, 0}, trees = 0;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	uint8_t *tree = NULL;

	while ((tree = objects_next(&o, "BTHD", 4, tree)))
		if (tree[5] == 8) {
			tree[7] ^= 1;
			trees++;
		}
	ck_assert_uint_gt(trees, 0);
	objects_serve(&o);
	object = object_named(&o, "attributes300", &ref);
	ck_assert_int_eq(object->kind, H5_OBJECT_GROUP);
	ck_assert_int_eq(count_kinds(o.file, object, counts), -EUCLEAN);
	ck_assert_uint_eq(counts[0] + counts[1], 0);
	h5_file_put(o.file, ref);
	objects_close(&o);
}
END_TEST

UNIT_MAIN("attribute", attributes_are_as_h5py_says, large_attribute, committed_type_of_an_attribute,
	  names_with_one_hash, damaged_attribute_leaves_its_neighbours, data_beyond_the_message,
	  damaged_dense_storage)
