#include "base/error.h"
#include "format/header_messages.h"
#include "object/object.h"
#include "objects.h"

START_TEST(kinds_and_references_are_as_h5py_says)
{
	for (unsigned i = 0; i < OBJECTS_FILES; i++) {
		struct opened o = objects_open(objects_files[i]);
		struct expected e = expected_open(objects_files[i]);
		unsigned objects = 0;

		while (expected_next(&e)) {
			struct h5_lru_entry *ref;
			const struct h5_object *object = object_at(&o, e.address, &ref);

			objects++;
			ck_assert_int_eq(object->kind, e.kind);
			ck_assert_uint_eq(object->references, e.references);
			h5_file_put(o.file, ref);
		}
		ck_assert_uint_gt(objects, 1);
		objects_close(&o);
	}
}
END_TEST

START_TEST(modification_time_of_both_versions)
{
	static const char *const names[] = {"old", "latest"};

	for (unsigned i = 0; i < 2; i++) {
		struct opened o = objects_open(names[i]);
		const struct h5_object *object;
		struct h5_lru_entry *ref;

		object = object_named(&o, "timed", &ref);
		ck_assert_uint_eq(object->version, i + 1);
		ck_assert(object->has_mtime);
		ck_assert_int_gt(object->mtime, 1600000000);
		h5_file_put(o.file, ref);
		object = object_named(&o, "typed0", &ref);
		ck_assert(!object->has_mtime);
		h5_file_put(o.file, ref);
		objects_close(&o);
	}
}
END_TEST

START_TEST(shared_message_is_that_of_the_other_header)
{
	struct opened o = objects_open("old");
	const struct h5_object *type, *typed;
	struct h5_lru_entry *type_ref, *typed_ref;
	const struct h5_message *own, *shared;
	struct h5_message_body body;

	type = object_named(&o, "type", &type_ref);
	typed = object_named(&o, "typed0", &typed_ref);
	own = h5_object_find(type, H5_MSG_DATATYPE);
	shared = h5_object_find(typed, H5_MSG_DATATYPE);
	ck_assert(shared->flags & H5_MSG_FLAG_SHARED);
	ck_assert_int_eq(h5_message_open(o.file, shared, &body), 0);
	ck_assert_uint_eq(h5_reader_left(&body.reader), own->size);
	ck_assert_mem_eq(body.reader.p, own->data, own->size);
	h5_message_release(o.file, &body);
	h5_message_release(o.file, &body);
	h5_file_put(o.file, typed_ref);
	h5_file_put(o.file, type_ref);
	objects_close(&o);
}
END_TEST

/* Every kind of shared message: they are in the file's shared message heaps. */
START_TEST(shared_message_heap)
{
	struct opened o = objects_open("shared");
	unsigned in_heap = 0;

	for (unsigned i = 0; i < 6; i++) {
		const struct h5_object *object;
		struct h5_lru_entry *ref;
		char name[8];

		snprintf(name, sizeof name, "data%u", i);
		object = object_named(&o, name, &ref);
		for (unsigned k = 0; k < object->count; k++) {
			struct h5_message_body body;

			ck_assert_int_eq(h5_message_open(o.file, &object->messages[k], &body), 0);
			in_heap += body.copy.data != NULL;
			h5_message_release(o.file, &body);
		}
		h5_file_put(o.file, ref);
	}
	ck_assert_uint_gt(in_heap, 12);
	objects_close(&o);
}
END_TEST

START_TEST(old_modification_time)
{
	const char *text = "19700102030405\0";
	struct h5_reader r = h5_reader_init(text, 16, 0, 8, 8);
	int64_t seconds;

	ck_assert_int_eq(h5_mtime_old_decode(&r, &seconds), 0);
	ck_assert_int_eq(seconds, 86400 + 3 * 3600 + 4 * 60 + 5);
	r = h5_reader_init("1970010203040x\0", 16, 0, 8, 8);
	ck_assert_int_eq(h5_mtime_old_decode(&r, &seconds), -EUCLEAN);
	r = h5_reader_init(text, 9, 0, 8, 8);
	ck_assert_int_eq(h5_mtime_old_decode(&r, &seconds), -EUCLEAN);
}
END_TEST

/* A file of a superblock and room for headers, built by hand. */
enum { BUILT = 4096, HEADER = 96 };

struct builder {
	uint8_t bytes[BUILT];
	size_t at;
};

static void put(struct builder *b, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		b->bytes[b->at++] = (uint8_t)(value >> (8 * i));
}

static void put_superblock(struct builder *b)
{
	memset(b, 0, sizeof *b);
	memcpy(b->bytes, H5_SIGNATURE, 8);
	b->at = 13;
	put(b, 0x0808, 2); /* sizes of offsets and lengths */
	b->at = 16;
	put(b, 4, 2);
	put(b, 16, 2);
	b->at = 24;
	put(b, 0, 8);
	put(b, UINT64_MAX, 8);
	put(b, BUILT, 8);
	put(b, UINT64_MAX, 8);
	put(b, 0, 8);
	put(b, HEADER, 8);
	b->at = HEADER;
}

static void put_header_v1(struct builder *b, unsigned messages, unsigned size)
{
	put(b, 1, 2);
	put(b, messages, 2);
	put(b, 7, 4);
	put(b, size, 8);
}

static void put_message_v1(struct builder *b, unsigned type, unsigned size, unsigned flags)
{
	put(b, type, 2);
	put(b, size, 2);
	put(b, flags, 4);
}

static void put_continuation_v1(struct builder *b, uint64_t address, uint64_t size)
{
	put_message_v1(b, H5_MSG_CONTINUATION, 16, 0);
	put(b, address, 8);
	put(b, size, 8);
}

static int get_built(const struct builder *b, unsigned *count)
{
	struct h5_file_set *set;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	struct h5_file *file;
	int rc;

	ck_assert_int_eq(h5_file_set_open_memory(b->bytes, BUILT, &objects_options, &set), 0);
	file = h5_file_set_root(set);
	rc = h5_object_get(file, HEADER, &ref, &object);
	if (!rc) {
		*count = object->count;
		h5_file_put(file, ref);
	}
	h5_file_set_close(set);
	return rc;
}

START_TEST(continuations_of_version_1)
{
	struct builder b;
	unsigned count;

	put_superblock(&b);
	put_header_v1(&b, 9, 24 + 16);
	put_continuation_v1(&b, 1024, 40);
	put_message_v1(&b, 0x77, 8, 0); /* an unknown message is kept */
	b.at = 1024;
	put_message_v1(&b, H5_MSG_NIL, 0, 0);
	put_continuation_v1(&b, 2048, 8); /* the rest of the block is a gap */
	b.at = 2048;
	put_message_v1(&b, H5_MSG_COMMENT, 0, 0);
	ck_assert_int_eq(get_built(&b, &count), 0);
	ck_assert_uint_eq(count, 2);
}
END_TEST

/* Of version 1 the prefix has the count; only version 2 has a message for it. */
START_TEST(reference_count_of_version_1)
{
	struct h5_file_set *set;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	struct builder b;

	put_superblock(&b);
	put_header_v1(&b, 1, 16);
	put_message_v1(&b, H5_MSG_REFERENCE_COUNT, 8, 0);
	put(&b, 0 | 99 << 8, 8);
	ck_assert_int_eq(h5_file_set_open_memory(b.bytes, BUILT, &objects_options, &set), 0);
	ck_assert_int_eq(h5_object_get(h5_file_set_root(set), HEADER, &ref, &object), 0);
	ck_assert_uint_eq(object->references, 7);
	h5_file_put(h5_file_set_root(set), ref);
	h5_file_set_close(set);
}
END_TEST

START_TEST(damaged_continuations_are_refused)
{
	static const struct {
		uint64_t address, size;
		int rc;
	} cases[] = {
		{HEADER, 40, -EUCLEAN},		     /* onto the header itself */
		{HEADER + 16, 24, -EUCLEAN},	     /* into it */
		{HEADER - 8, 24, -EUCLEAN},	     /* over its begin */
		{1024, BUILT, -EUCLEAN},	     /* beyond the end */
		{UINT64_MAX, 24, -EUCLEAN},	     /* nowhere */
		{1024, 0, -EUCLEAN},		     /* empty */
		{1024, UINT64_C(1) << 40, -ENOTSUP}, /* absurd */
		{1024, UINT64_MAX, -ENOTSUP},
		{1024, 24, -EUCLEAN}, /* its block points to itself */
	};
	unsigned count;

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct builder b;
		int rc;

		put_superblock(&b);
		put_header_v1(&b, 1, 24);
		put_continuation_v1(&b, cases[i].address, cases[i].size);
		b.at = 1024;
		put_continuation_v1(&b, 1024, 24);
		rc = get_built(&b, &count);
		ck_assert_msg(rc == cases[i].rc, "case %u: %d", i, rc);
	}
}
END_TEST

START_TEST(damaged_headers_are_refused)
{
	struct builder b;
	unsigned count;

	put_superblock(&b); /* zeros */
	ck_assert_int_eq(get_built(&b, &count), -EUCLEAN);
	put_superblock(&b); /* a message that passes the chunk's end */
	put_header_v1(&b, 1, 16);
	put_message_v1(&b, H5_MSG_COMMENT, 16, 0);
	ck_assert_int_eq(get_built(&b, &count), -EUCLEAN);
	put_superblock(&b); /* not aligned */
	put_header_v1(&b, 1, 16);
	put_message_v1(&b, H5_MSG_COMMENT, 3, 0);
	ck_assert_int_eq(get_built(&b, &count), -EUCLEAN);
	put_superblock(&b); /* a chunk that passes the file's end */
	put_header_v1(&b, 1, BUILT);
	ck_assert_int_eq(get_built(&b, &count), -EUCLEAN);
	put_superblock(&b); /* an unknown message that must be understood */
	put_header_v1(&b, 1, 16);
	put_message_v1(&b, 0x77, 8, H5_MSG_FLAG_FAIL_UNKNOWN);
	ck_assert_int_eq(get_built(&b, &count), -ENOTSUP);
}
END_TEST

/* One bit anywhere in a checksummed header. */
START_TEST(checksums_of_version_2)
{
	struct opened clean = objects_load("latest");

	for (unsigned i = 0; i < 40; i++) {
		struct opened o = clean;
		const struct h5_object *object;
		struct h5_lru_entry *ref;
		uint8_t *header;

		o.bytes = malloc(o.size);
		memcpy(o.bytes, clean.bytes, o.size);
		header = objects_find(&o, "OHDR", 4, 0);
		ck_assert_ptr_nonnull(header);
		header[i] ^= 4;
		objects_serve(&o);
		ck_assert_int_eq(h5_object_get(o.file, (uint64_t)(header - o.bytes), &ref, &object),
				 -EUCLEAN);
		objects_close(&o);
	}
	free(clean.bytes);
}
END_TEST

/* Every header with a continuation, which is then damaged. */
START_TEST(checksums_of_continuations)
{
	struct opened o = objects_load("latest");
	struct expected e = expected_open("latest");
	unsigned damaged = 0, good = 0;
	uint8_t *chunk = NULL;

	while ((chunk = objects_next(&o, "OCHK", 4, chunk)))
		chunk[6] ^= 0x10;
	objects_serve(&o);
	while (expected_next(&e)) {
		const struct h5_object *object;
		struct h5_lru_entry *ref;
		int rc;

		rc = h5_object_get(o.file, e.address, &ref, &object);
		ck_assert(!rc || rc == -EUCLEAN);
		damaged += rc != 0;
		good += !rc;
		h5_file_put(o.file, ref);
	}
	ck_assert_uint_gt(damaged, 0);
	ck_assert_uint_gt(good, 0);
	objects_close(&o);
}
END_TEST

UNIT_MAIN("object", kinds_and_references_are_as_h5py_says, modification_time_of_both_versions,
	  shared_message_is_that_of_the_other_header, shared_message_heap, old_modification_time,
	  continuations_of_version_1, reference_count_of_version_1, damaged_continuations_are_refused,
	  damaged_headers_are_refused, checksums_of_version_2, checksums_of_continuations)
