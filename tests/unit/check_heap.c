#include "base/error.h"
#include "base/lookup3.h"
#include "format/fractal_heap.h"
#include "format/global_heap.h"
#include "object/attribute.h"
#include "object/fractal_heap.h"
#include "object/global_heap.h"
#include "object/heap_set.h"
#include "object/local_heap.h"
#include "object/local_heap_write.h"
#include "object/value_heap.h"
#include "objects.h"

#include <malloc.h>

#define SUCCEEDS(call) ck_assert_int_eq(call, 0)

/* A collection in a file that is nothing else: the superblock, and at 96 the collection. */
enum { FILE_SIZE = 96 + 4200, HEAP = 96, MOST = 1 << 17 };

struct built {
	uint8_t bytes[MOST];
	size_t size, at;
	struct h5_file_set *set;
	struct h5_file *file;
};

static void put(struct built *b, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		b->bytes[b->at++] = (uint8_t)(value >> (8 * i));
}

static void begin(struct built *b, uint8_t size_of_lengths)
{
	memset(b, 0, sizeof *b);
	b->size = FILE_SIZE;
	memcpy(b->bytes, H5_SIGNATURE, 8);
	b->bytes[13] = 8;
	b->bytes[14] = size_of_lengths;
	b->bytes[16] = 4;
	b->bytes[18] = 16;
	b->bytes[64] = HEAP; /* root */
	b->at = HEAP;
}

static void serve(struct built *b)
{
	ck_assert_int_eq(h5_file_set_open_memory(b->bytes, b->size, &objects_options, &b->set), 0);
	b->file = h5_file_set_root(b->set);
}

static void put_collection(struct built *b, uint64_t size, unsigned width)
{
	memcpy(b->bytes + HEAP, "GCOL", 4);
	b->at = HEAP + 4;
	put(b, 1, 4);
	put(b, size, width);
	b->at = HEAP + 16;
}

static void put_object(struct built *b, unsigned index, uint64_t size, unsigned width, const char *data)
{
	size_t begin_at = b->at;

	put(b, index, 2);
	put(b, 1, 6);
	put(b, size, width);
	b->at = begin_at + 16;
	if (data)
		memcpy(b->bytes + b->at, data, strlen(data));
	b->at += data ? (strlen(data) + 7) / 8 * 8 : 0;
}

static void assert_object(struct built *b, uint32_t index, const char *text)
{
	struct h5_lru_entry *ref;
	const uint8_t *data;
	size_t size;
	int rc = h5_global_heap_get(b->file, HEAP, index, &ref, &data, &size);

	if (!text) {
		ck_assert_int_eq(rc, -EUCLEAN);
		return;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_uint_eq(size, strlen(text));
	ck_assert_mem_eq(data, text, size);
	h5_file_put(b->file, ref);
}

START_TEST(global_heap_objects)
{
	/* Headers have 16 bytes at both sizes of lengths. */
	for (unsigned width = 4; width <= 8; width += 4) {
		struct built b;

		begin(&b, (uint8_t)width);
		put_collection(&b, 256, width);
		put_object(&b, 2, 5, width, "hello");
		put_object(&b, 1, 8, width, "12345678");
		put_object(&b, 700, 3, width, "abc");
		put_object(&b, 0, HEAP + 256 - b.at, width, NULL);
		serve(&b);
		assert_object(&b, 1, "12345678");
		assert_object(&b, 2, "hello");
		assert_object(&b, 700, "abc");
		assert_object(&b, 0, NULL);
		assert_object(&b, 3, NULL);
		assert_object(&b, 70000, NULL);
		h5_file_set_close(b.set);
	}
}
END_TEST

START_TEST(global_heap_damage)
{
	static const uint64_t sizes[] = {UINT64_MAX, FILE_SIZE - HEAP + 1, UINT64_C(1) << 62, 3};
	struct built b;

	for (unsigned i = 0; i < 4; i++) { /* sizes of the collection */
		begin(&b, 8);
		put_collection(&b, sizes[i], 8);
		put_object(&b, 1, 5, 8, "hello");
		serve(&b);
		assert_object(&b, 1, NULL);
		h5_file_set_close(b.set);
	}
	begin(&b, 8); /* an object that passes the end leaves those before it */
	put_collection(&b, 128, 8);
	put_object(&b, 1, 5, 8, "hello");
	put_object(&b, 2, 1000, 8, "hello");
	put_object(&b, 3, 5, 8, "hello");
	serve(&b);
	assert_object(&b, 1, "hello");
	assert_object(&b, 2, NULL);
	assert_object(&b, 3, NULL);
	h5_file_set_close(b.set);
	begin(&b, 8); /* signature, version */
	put_collection(&b, 128, 8);
	b.bytes[HEAP + 4] = 2;
	serve(&b);
	assert_object(&b, 1, NULL);
	h5_file_set_close(b.set);
}
END_TEST

/* Variable-length strings that h5py wrote. */
START_TEST(global_heap_of_strings)
{
	struct opened o = objects_open("old");
	struct h5_lru_entry *object_ref, *ref;
	const struct h5_object *object = object_named(&o, "attributes200", &object_ref);
	struct h5_attribute attribute;
	char name[16], text[16];
	const uint8_t *data;
	size_t size;

	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof name, "text%u", i);
		snprintf(text, sizeof text, "value %u", i);
		ck_assert_int_eq(h5_attribute_lookup(o.file, object, name, &attribute), 0);
		ck_assert_uint_eq(attribute.size, 16);
		ck_assert_uint_eq(h5_uint_from(attribute.data, 4), strlen(text));
		ck_assert_int_eq(h5_global_heap_get(o.file, h5_uint_from(attribute.data + 4, 8),
						    (uint32_t)h5_uint_from(attribute.data + 12, 4), &ref,
						    &data, &size),
				 0);
		ck_assert_uint_ge(size, strlen(text));
		ck_assert_mem_eq(data, text, strlen(text));
		h5_file_put(o.file, ref);
		h5_attribute_release(&attribute);
	}
	h5_file_put(o.file, object_ref);
	objects_close(&o);
}
END_TEST

START_TEST(local_heap_texts)
{
	struct h5_local_heap heap;
	struct h5_buf text;
	struct built b;

	begin(&b, 8);
	memcpy(b.bytes + HEAP, "HEAP", 4);
	b.at = HEAP + 8;
	put(&b, 16, 8);
	put(&b, 1, 8);
	put(&b, 512, 8);
	memcpy(b.bytes + 512, "\0one\0two\0\0\0\0\0end!", 18);
	serve(&b);
	ck_assert_int_eq(h5_local_heap_open(b.file, HEAP, &heap), 0);
	h5_buf_init(&text, 100);
	ck_assert_int_eq(h5_local_heap_text(&heap, 0, &text), 0);
	ck_assert_uint_eq(text.size, 0);
	ck_assert_int_eq(h5_local_heap_text(&heap, 1, &text), 0);
	ck_assert_int_eq(h5_local_heap_text(&heap, 6, &text), 0);
	ck_assert_uint_eq(text.size, 5);
	ck_assert_mem_eq(text.data, "onewo", 5);
	ck_assert_int_eq(h5_local_heap_text(&heap, 14, &text), -EUCLEAN); /* no NUL inside the heap */
	ck_assert_int_eq(h5_local_heap_text(&heap, 16, &text), -EUCLEAN);
	ck_assert_int_eq(h5_local_heap_text(&heap, UINT64_MAX, &text), -EUCLEAN);
	h5_buf_release(&text);
	h5_buf_init(&text, 2);
	ck_assert_int_eq(h5_local_heap_text(&heap, 1, &text), -EUCLEAN);
	h5_buf_release(&text);
	heap.address = UINT64_MAX - 4;
	h5_buf_init(&text, 100);
	ck_assert_int_eq(h5_local_heap_text(&heap, 1, &text), -EUCLEAN);
	h5_buf_release(&text);
	h5_file_set_close(b.set);
}
END_TEST

static int add_object(void *arg, const struct h5_global_heap_object *object)
{
	unsigned *sum = arg;

	*sum = *sum * 10 + object->index;
	return object->index == 7 ? 77 : 0;
}

/* All of a collection is visited only if all of it is in the file. */
START_TEST(global_heap_ends)
{
	static const struct {
		uint64_t size;
		int rc;
	} cases[] = {{4096, 0}, {4200, 0}, {4208, -EUCLEAN}, {UINT64_MAX - 7, -EUCLEAN}, {4088, -EUCLEAN}};
	struct built b;

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		unsigned sum = 0;
		uint64_t size;

		begin(&b, 8);
		put_collection(&b, cases[i].size, 8);
		put_object(&b, 1, 5, 8, "hello");
		put_object(&b, 0, cases[i].size - 16 - 24, 8, NULL);
		serve(&b);
		ck_assert_int_eq(h5_global_heap_each(b.file, HEAP, add_object, &sum, &size), cases[i].rc);
		ck_assert_uint_eq(sum, !cases[i].rc);
		ck_assert_uint_eq(size, cases[i].size);
		h5_file_set_close(b.set);
	}
}
END_TEST

/* What the visitor returns ends the visits. */
START_TEST(global_heap_visits_end)
{
	struct built b;
	uint64_t size;
	unsigned sum = 0;

	begin(&b, 8);
	put_collection(&b, 4096, 8);
	put_object(&b, 5, 5, 8, "hello");
	put_object(&b, 7, 5, 8, "hello");
	put_object(&b, 6, 5, 8, "hello");
	serve(&b);
	ck_assert_int_eq(h5_global_heap_each(b.file, HEAP, add_object, &sum, &size), 77);
	ck_assert_uint_eq(sum, 57);
	h5_file_set_close(b.set);
}
END_TEST

/* A heap with a data segment, and the numbers in its header. */
static void put_local_heap(struct built *b, uint64_t size, uint64_t free_block, uint64_t data)
{
	begin(b, 8);
	memcpy(b->bytes + HEAP, "HEAP", 4);
	b->at = HEAP + 8;
	put(b, size, 8);
	put(b, free_block, 8);
	put(b, data, 8);
}

struct extent_sum {
	unsigned count, end; /* the visit that ends the visits */
	uint64_t bytes, last;
};

static int sum_extents(void *arg, uint64_t address, uint64_t n)
{
	struct extent_sum *sum = arg;

	sum->count++;
	sum->bytes += n;
	sum->last = address;
	return sum->count == sum->end ? 77 : 0;
}

/* Nothing beyond the end of the file is taken for space of a heap. */
START_TEST(local_heap_extents)
{
	enum { DATA = 512 };
	static const struct {
		uint64_t size, data;
		int rc;
	} cases[] = {{FILE_SIZE - DATA, DATA, 0},
		     {FILE_SIZE - DATA + 1, DATA, -EUCLEAN},
		     {UINT64_MAX, DATA, -EUCLEAN},
		     {32, UINT64_MAX - 15, -EUCLEAN},
		     {0, DATA, 0}};
	struct built b;

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct extent_sum sum = {0};

		put_local_heap(&b, cases[i].size, 1, cases[i].data);
		serve(&b);
		ck_assert_int_eq(h5_local_heap_extents(b.file, HEAP, sum_extents, &sum), cases[i].rc);
		ck_assert_uint_eq(sum.bytes, cases[i].rc ? 0 : cases[i].size + 32);
		ck_assert_uint_eq(sum.count, cases[i].rc ? 0 : cases[i].size ? 2 : 1);
		if (!cases[i].rc)
			ck_assert_uint_eq(sum.last, HEAP);
		h5_file_set_close(b.set);
	}
}
END_TEST

/* Large segments are visited in pieces; what the visitor returns ends the visits. */
START_TEST(local_heap_pieces)
{
	enum { SIZE = H5_LOCAL_HEAP_PIECE + 1000 };
	struct built b;

	for (unsigned visit = 0; visit < 4; visit++) {
		struct extent_sum sum = {.end = visit};

		put_local_heap(&b, SIZE, 1, 512);
		b.size = MOST;
		serve(&b);
		ck_assert_int_eq(h5_local_heap_extents(b.file, HEAP, sum_extents, &sum), visit ? 77 : 0);
		ck_assert_uint_eq(sum.count, visit ? visit : 3);
		ck_assert_uint_eq(sum.bytes, visit == 1	  ? H5_LOCAL_HEAP_PIECE
					     : visit == 2 ? SIZE
							  : SIZE + 32);
		h5_file_set_close(b.set);
	}
}
END_TEST

/* Addresses that pass the largest one are not taken for small ones. */
START_TEST(local_heap_addresses)
{
	struct h5_local_heap heap = {.address = UINT64_MAX - H5_LOCAL_HEAP_PIECE + 1, .size = UINT64_MAX};
	struct h5_local_heap_free block;
	struct h5_buf text;
	struct built b;

	put_local_heap(&b, 16, 1, 512);
	serve(&b);
	heap.file = b.file;
	h5_buf_init(&text, 100);
	ck_assert_int_eq(h5_local_heap_text(&heap, H5_LOCAL_HEAP_PIECE + 520, &text), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "local heap: beyond the end of the file");
	ck_assert_uint_eq(text.size, 0);
	h5_buf_release(&text);
	ck_assert_int_eq(h5_local_heap_free_block(&heap, H5_LOCAL_HEAP_PIECE + 520, &block), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "local heap: a list of free blocks that leads nowhere");
	h5_file_set_close(b.set);
}
END_TEST

/* The list of free blocks: offsets and sizes at the edges of the heap, and circles. */
START_TEST(local_heap_lists)
{
#define NOWHERE "local heap: a list of free blocks that leads nowhere"
#define NONE	"local heap: a free block that is none"
	enum { DATA = 512, SIZE = 64, BLOCKS = 4 };
	static const struct {
		uint64_t first;
		struct {
			uint64_t at, next, size;
		} blocks[BLOCKS];
		int rc;
		const char *error;
	} cases[] = {
		{1, {{0}}, 0, ""},
		{48, {{48, 1, 16}}, 0, ""},
		{48, {{48, 1, 17}}, -EUCLEAN, NONE},
		{49, {{49, 1, 15}}, -EUCLEAN, NOWHERE},
		{56, {{56, 1, 8}}, -EUCLEAN, NOWHERE},
		{64, {{0}}, -EUCLEAN, NOWHERE},
		{UINT64_MAX, {{0}}, -EUCLEAN, NOWHERE},
		{8, {{8, 1, 56}}, 0, ""},
		{8, {{8, 1, 57}}, -EUCLEAN, NONE},
		{8, {{8, 0, 16}}, -EUCLEAN, NONE},
		{0, {{0, 16, 16}, {16, 32, 16}, {32, 48, 16}, {48, 1, 16}}, 0, ""},
		{0, {{0, 16, 16}, {16, 32, 16}, {32, 48, 16}, {48, 16, 16}}, -EUCLEAN, NOWHERE},
		{16, {{16, 16, 16}}, -EUCLEAN, NOWHERE},
		/* Five blocks that overlap, where there is room for four. */
		{0, {{0, 8, 16}, {16, 24, 32}, {32, 1, 8}}, -EUCLEAN, NOWHERE},
	};
	struct h5_local_heap heap;
	struct built b;

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		put_local_heap(&b, SIZE, cases[i].first, DATA);
		for (unsigned k = 0; k < BLOCKS && cases[i].blocks[k].size; k++) {
			b.at = DATA + (size_t)cases[i].blocks[k].at;
			put(&b, cases[i].blocks[k].next, 8);
			put(&b, cases[i].blocks[k].size, 8);
		}
		serve(&b);
		ck_assert_int_eq(h5_local_heap_open(b.file, HEAP, &heap), 0);
		h5_error_clear();
		ck_assert_msg(h5_local_heap_check(&heap) == cases[i].rc, "case %u", i);
		ck_assert_str_eq(h5_error_last()->text, cases[i].error);
		h5_file_set_close(b.set);
	}
}
END_TEST

/* ---- values in the heap ---- */

static struct h5_datatype
	byte_type = {.class = H5_CLASS_INTEGER, .size = 1},
	text_type = {.class = H5_CLASS_VLEN, .size = 16, .vlen = {.is_string = true, .base = &byte_type}},
	bytes_type = {.class = H5_CLASS_VLEN, .size = 16, .vlen = {.base = &byte_type}},
	texts_type = {.class = H5_CLASS_VLEN, .size = 16, .vlen = {.base = &text_type}},
	object_type = {.class = H5_CLASS_REFERENCE, .size = 8, .reference = {.kind = H5_REF_OBJECT}},
	region_type = {.class = H5_CLASS_REFERENCE, .size = 12, .reference = {.kind = H5_REF_REGION}},
	new_type = {.class = H5_CLASS_REFERENCE, .size = 18, .reference = {.kind = H5_REF_OBJECT2}},
	pair_type = {.class = H5_CLASS_ARRAY,
		     .size = 32,
		     .array = {.rank = 1, .dims = {2}, .count = 2, .base = &text_type}};
static struct h5_member members[] = {{"a", 0, &text_type}, {"b", 16, &byte_type}, {"c", 17, &pair_type}};
static struct h5_datatype compound_type = {
	.class = H5_CLASS_COMPOUND, .size = 49, .compound = {.count = 3, .members = members}};

/* count, address and index */
static void put_element(uint8_t *to, uint32_t count, uint64_t address, uint32_t index)
{
	h5_uint_to(to, count, 4);
	h5_uint_to(to + 4, address, 8);
	h5_uint_to(to + 12, index, 4);
}

/* A collection of an object 1 that has two texts, objects 2 and 3. */
static void put_texts(struct built *b)
{
	begin(b, 8);
	put_collection(b, 4096, 8);
	put_object(b, 1, 32, 8, NULL);
	put_element(b->bytes + b->at, 3, HEAP, 2);
	put_element(b->bytes + b->at + 16, 4, HEAP, 3);
	b->at += 32;
	put_object(b, 2, 3, 8, "abc");
	put_object(b, 3, 4, 8, "defg");
	serve(b);
}

struct visits {
	unsigned indexes, end; /* the index that ends the visits */
};

static int visit_object(void *arg, uint64_t address, uint32_t index)
{
	struct visits *v = arg;

	ck_assert_uint_eq(address, HEAP);
	v->indexes = 10 * v->indexes + index;
	return index == v->end ? 77 : 0;
}

static const struct {
	const struct h5_datatype *type;
	uint32_t count; /* of the first element; the kind of a new reference */
	uint64_t address;
	uint32_t index;
	unsigned end;
	int rc;
	unsigned indexes, own;
} walks[] = {
	{&text_type, 3, HEAP, 2, 0, 0, 2, 2},
	{&text_type, 3, HEAP, 9, 0, 0, 9, 9},
	{&text_type, 0, HEAP, 2, 0, 0, 0, 0},
	{&text_type, 3, 0, 2, 0, 0, 0, 0},
	{&text_type, 3, H5_UNDEF, 2, 0, 0, 0, 0},
	{&bytes_type, 300, HEAP, 2, 0, 0, 2, 2},
	{&texts_type, 2, HEAP, 1, 0, 0, 123, 123},
	{&texts_type, 1, HEAP, 1, 0, 0, 12, 12},
	{&texts_type, 2, HEAP, 1, 1, 77, 1, 1},
	{&texts_type, 2, HEAP, 1, 2, 77, 12, 12},
	{&texts_type, 3, HEAP, 1, 0, -EUCLEAN, 1, 1},
	{&texts_type, UINT32_MAX, HEAP, 1, 0, -EUCLEAN, 1, 1},
	{&texts_type, 1, HEAP, 9, 0, -EUCLEAN, 9, 9},
	{&object_type, 3, HEAP, 2, 0, 0, 0, 0},
	{&region_type, 0, HEAP, 3, 0, 0, 3, 0},
	{&new_type, H5_REF_OBJECT2, HEAP, 3, 0, 0, 0, 0},
	{&new_type, H5_REF_REGION2, HEAP, 3, 0, 0, 3, 3},
	{&new_type, H5_REF_ATTRIBUTE, HEAP, 2, 0, 0, 2, 2},
	{&new_type, H5_REF_ATTRIBUTE, 0, 2, 0, 0, 0, 0},
	{&new_type, 5, HEAP, 3, 0, 0, 0, 0},
	{&compound_type, 3, HEAP, 2, 0, 0, 232, 232},
	{&compound_type, 3, HEAP, 2, 2, 77, 2, 2},
	{&compound_type, 3, HEAP, 2, 3, 77, 23, 23},
};
enum { WALKS = sizeof walks / sizeof *walks, ELEMENT_MOST = 49 };

/* An element of the type; the array in the compound has the objects 3 and 2. */
static void make_element(int i, uint8_t element[ELEMENT_MOST])
{
	memset(element, 0xee, ELEMENT_MOST);
	if (walks[i].type == &new_type) {
		element[0] = (uint8_t)walks[i].count;
		h5_uint_to(element + 6, walks[i].address, 8);
		h5_uint_to(element + 14, walks[i].index, 4);
	} else if (walks[i].type == &region_type) {
		h5_uint_to(element, walks[i].address, 8);
		h5_uint_to(element + 8, walks[i].index, 4);
	} else {
		put_element(element, walks[i].count, walks[i].address, walks[i].index);
	}
	if (walks[i].type == &compound_type) {
		put_element(element + 17, 4, HEAP, 3);
		put_element(element + 33, 3, HEAP, 2);
	}
}

/* What elements refer to, and own; a walk ends with the first result that is not 0. */
START_TEST(values_are_walked)
{
	struct visits all = {.end = walks[_i].end}, own = all;
	uint8_t element[ELEMENT_MOST], empty[ELEMENT_MOST];
	const size_t n = walks[_i].type->size;
	struct built b;

	put_texts(&b);
	make_element(_i, element);
	ck_assert_int_eq(h5_value_heap_walk(b.file, walks[_i].type, element, visit_object, &all),
			 walks[_i].rc);
	ck_assert_uint_eq(all.indexes, walks[_i].indexes);
	ck_assert_int_eq(h5_value_heap_walk_own(b.file, walks[_i].type, element, visit_object, &own),
			 walks[_i].own ? walks[_i].rc : 0);
	ck_assert_uint_eq(own.indexes, walks[_i].own);
	ck_assert_int_eq(h5_value_heap_is_owner(b.file, walks[_i].type, element), walks[_i].indexes > 0);
	memcpy(empty, element, sizeof empty);
	h5_value_heap_disown(b.file, walks[_i].type, empty);
	ck_assert(!h5_value_heap_is_owner(b.file, walks[_i].type, empty));
	if (!walks[_i].indexes)
		ck_assert_mem_eq(empty, element, sizeof empty);
	else if (walks[_i].type == &compound_type)
		ck_assert_uint_eq(empty[16], 0xee);
	ck_assert_mem_eq(empty + n, element + n, sizeof empty - n);
	h5_file_set_close(b.set);
}
END_TEST

/* A sink whose n-th object is object n of a collection at 5000. */
struct counting_sink {
	struct h5_heap_sink sink;
	unsigned count, failing; /* objects; the number of the one that fails */
	uint8_t last[40];	 /* bytes of the last object */
	size_t size;
};

static int put_to_sink(struct h5_heap_sink *sink, const void *data, size_t n, uint64_t *address,
		       uint32_t *index)
{
	struct counting_sink *c = (struct counting_sink *)sink;

	if (++c->count == c->failing)
		return -ENOSPC;
	ck_assert_uint_le(n, sizeof c->last);
	memcpy(c->last, data, n);
	c->size = n;
	*address = 5000;
	*index = c->count;
	return 0;
}

/* Copies of values go to the sink, and what they refer to before them. What differs is nobody else's. */
START_TEST(values_are_copied)
{
	struct counting_sink sink = {.sink = {put_to_sink}};
	uint8_t element[16], like[16], expected[32];
	struct built b;

	put_texts(&b);
	put_element(element, 2, HEAP, 1);
	memcpy(like, element, sizeof like);
	SUCCEEDS(h5_value_heap_own(&sink.sink, b.file, &texts_type, like, element));
	ck_assert_uint_eq(sink.count, 3);
	put_element(expected, 3, 5000, 1);
	put_element(expected + 16, 4, 5000, 2);
	ck_assert_uint_eq(sink.size, 32);
	ck_assert_mem_eq(sink.last, expected, 32);
	put_element(expected, 2, 5000, 3);
	ck_assert_mem_eq(element, expected, 16);
	SUCCEEDS(h5_value_heap_own(&sink.sink, b.file, &texts_type, like, element));
	ck_assert_mem_eq(element, expected, 16);
	for (sink.failing = 1; sink.failing <= 3; sink.failing++) {
		sink.count = 0;
		memcpy(element, like, sizeof like);
		ck_assert_int_eq(h5_value_heap_own(&sink.sink, b.file, &texts_type, like, element), -ENOSPC);
		ck_assert_uint_eq(sink.count, sink.failing);
		ck_assert_mem_eq(element, like, sizeof like);
	}
	sink.failing = 0;
	put_element(element, 3, HEAP, 2);
	memcpy(like, element, sizeof like);
	SUCCEEDS(h5_value_heap_own(&sink.sink, b.file, &text_type, like, element));
	ck_assert_uint_eq(sink.size, 3);
	ck_assert_mem_eq(sink.last, "abc", 3);
	put_element(element, 3, HEAP, 1);
	memcpy(like, element, sizeof like);
	ck_assert_int_eq(h5_value_heap_own(&sink.sink, b.file, &texts_type, like, element), -EUCLEAN);
	h5_file_set_close(b.set);
}
END_TEST

/* ---- sets of objects ---- */

static int count_collection(void *arg, uint64_t address, const struct h5_heap_objects *objects)
{
	unsigned *count = arg;

	ck_assert(h5_heap_objects_have(objects, 1));
	ck_assert_uint_eq(address % 16, 0);
	return ++*count == 2 ? 77 : 0;
}

/* Objects come and go; those that cannot be are refused. Memory is not zero before it is used. */
START_TEST(sets_of_objects)
{
	static const uint32_t indexes[] = {1, 255, 256, 600, 65535};
	struct h5_heap_set set;
	unsigned count = 0;
	struct built b;

	mallopt(M_PERTURB, 0xa5);
	put_texts(&b);
	h5_heap_set_init(&set, b.file);
	ck_assert_uint_eq(set.most, FILE_SIZE / 16 + 1);
	ck_assert_int_eq(h5_heap_set_add(&set, 16, 0), -EUCLEAN);
	ck_assert_int_eq(h5_heap_set_add(&set, 16, 65536), -EUCLEAN);
	ck_assert_ptr_null(h5_heap_set_find(&set, 16));
	for (unsigned i = 0; i < 5; i++) {
		SUCCEEDS(h5_heap_set_add(&set, 16, indexes[i]));
		for (uint32_t index = 0, have = 0; index < 70000; index++) {
			bool has = have <= i && indexes[have] == index;

			have += has;
			if (h5_heap_set_has(&set, 16, index) != has)
				ck_abort_msg("object %u after %u", index, indexes[i]);
		}
	}
	h5_heap_set_remove(&set, 16, 256);
	h5_heap_set_remove(&set, 16, 257);
	h5_heap_set_remove(&set, 32, 1);
	ck_assert(!h5_heap_set_has(&set, 16, 256));
	ck_assert(h5_heap_set_has(&set, 16, 255));
	ck_assert(!h5_heap_set_has(&set, 32, 1));
	set.most = 3;
	SUCCEEDS(h5_heap_set_add(&set, 32, 1));
	h5_heap_set_remove(&set, 32, 256); /* as many as it has room for */
	SUCCEEDS(h5_heap_set_add(&set, 48, 1));
	ck_assert_int_eq(h5_heap_set_add(&set, 64, 1), -EUCLEAN);
	SUCCEEDS(h5_heap_set_add(&set, 48, 2));
	ck_assert_int_eq(h5_heap_set_each(&set, count_collection, &count), 77);
	ck_assert_uint_eq(count, 2);
	h5_heap_set_release(&set);
	ck_assert(!h5_heap_set_has(&set, 16, 1));
	ck_assert_uint_eq(set.bytes, 0);
	h5_heap_set_release(&set);
	h5_file_set_close(b.set);
}
END_TEST

/* What is in the set stays, and what needs no more memory comes, if there is too much of it. */
START_TEST(full_sets_of_objects)
{
	enum { MOST_BYTES = 64 << 20 };
	struct h5_heap_set set;
	struct built b;

	put_texts(&b);
	h5_heap_set_init(&set, b.file);
	SUCCEEDS(h5_heap_set_add(&set, 16, 1));
	ck_assert_uint_gt(set.bytes, 256 / 8);
	set.bytes = MOST_BYTES;
	SUCCEEDS(h5_heap_set_add(&set, 32, 1));
	ck_assert(!set.is_full);
	ck_assert_uint_gt(set.bytes, MOST_BYTES);
	SUCCEEDS(h5_heap_set_add(&set, 16, 255));
	ck_assert(!set.is_full);
	SUCCEEDS(h5_heap_set_add(&set, 16, 256));
	ck_assert(set.is_full);
	set.is_full = false;
	SUCCEEDS(h5_heap_set_add(&set, 48, 1));
	ck_assert(set.is_full);
	ck_assert(h5_heap_set_has(&set, 16, 255));
	ck_assert(!h5_heap_set_has(&set, 16, 256));
	ck_assert(h5_heap_set_has(&set, 32, 1));
	ck_assert(!h5_heap_set_has(&set, 48, 1));
	h5_heap_set_release(&set);
	h5_file_set_close(b.set);
}
END_TEST

/* The doubling table of the specification: width 4, blocks from 512 bytes to 64 KiB, 2^32 bytes. */
START_TEST(doubling_table)
{
	static const struct {
		uint64_t offset;
		unsigned row, column;
		uint64_t begin, size;
	} places[] = {
		{0, 0, 0, 0, 512},
		{511, 0, 0, 0, 512},
		{2047, 0, 3, 1536, 512},
		{2048, 1, 0, 2048, 512},
		{4095, 1, 3, 3584, 512},
		{4096, 2, 0, 4096, 1024},
		{6200, 2, 2, 6144, 1024},
		{8192, 3, 0, 8192, 2048},
		{524288, 9, 0, 524288, 131072},
		{4294967295, 21, 3, 4294967296 - 536870912, 536870912},
	};
	struct h5_fractal_heap heap = {.width = 4, .start_size = 512, .direct_max = 65536, .row_bits = 11};

	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		struct h5_fractal_heap_slot p = h5_fractal_heap_locate(&heap, places[i].offset);

		ck_assert_uint_eq(p.row, places[i].row);
		ck_assert_uint_eq(p.column, places[i].column);
		ck_assert_uint_eq(p.begin, places[i].begin);
		ck_assert_uint_eq(p.size, places[i].size);
	}
	ck_assert_uint_eq(h5_fractal_heap_rows(&heap, 131072), 7);
	ck_assert_uint_eq(h5_fractal_heap_rows(&heap, 2048), 1);
	ck_assert_uint_eq(h5_fractal_heap_rows(&heap, 1024), 0);
}
END_TEST

/* Heap IDs: managed, tiny, huge; and nonsense, in a heap whose blocks are good. */
START_TEST(heap_ids)
{
	struct opened o = objects_load("latest");
	uint8_t *header = objects_find(&o, "FRHP", 4, 0);
	uint64_t heap = (uint64_t)(header - o.bytes);
	struct h5_heap_object object;
	unsigned id_size;

	ck_assert_ptr_nonnull(header);
	objects_serve(&o);
	id_size = header[5]; /* behind signature and version */
	ck_assert(id_size == 7 || id_size == 8);
	ck_assert_int_eq(h5_fractal_heap_get(o.file, heap, (const uint8_t *)"\x22\x61\x62\x63\0\0\0", id_size,
					     &object),
			 0);
	ck_assert_uint_eq(object.size, 3);
	ck_assert_mem_eq(object.data, "abc", 3);
	h5_heap_object_release(&object);
	for (unsigned first = 0; first < 256; first++) {
		uint8_t id[8] = {(uint8_t)first, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
		int rc = h5_fractal_heap_get(o.file, heap, id, id_size, &object);

		ck_assert_int_eq(rc, first >> 4 == 2 && (first & 15) < id_size - 1 ? 0 : -EUCLEAN);
		h5_heap_object_release(&object);
	}
	ck_assert_int_eq(h5_fractal_heap_get(o.file, heap, (const uint8_t *)"\0", 1, &object), -EUCLEAN);
	ck_assert_int_eq(h5_fractal_heap_get(o.file, heap + 1, (const uint8_t *)"\0\0\0\0\0\0\0", 7, &object),
			 -EUCLEAN);
	objects_close(&o);
}
END_TEST

/* A header whose checksum is right and whose doubling table is nonsense. */
START_TEST(nonsense_headers)
{
	static const struct {
		unsigned at, size;
		uint64_t value;
	} changes[] = {
		{110, 2, 3},		     /* width */
		{110, 2, 0},		     /* width */
		{112, 8, 500},		     /* starting size */
		{112, 8, 0},		     /* starting size */
		{112, 8, UINT64_C(1) << 40}, /* starting size */
		{120, 8, 256},		     /* maximum direct size, below the starting size */
		{128, 2, 65},		     /* bits of the address space */
		{128, 2, 9},		     /* bits of the address space */
		{140, 2, 100},		     /* rows of the root */
		{5, 2, 0},		     /* heap ID length */
	};
	struct opened clean = objects_load("latest");
	uint8_t *header = objects_find(&clean, "FRHP", 4, 0);
	size_t at = (size_t)(header - clean.bytes);

	/* width 4, 512 or 1024 bytes, as libhdf5 writes it: the offsets above are right */
	ck_assert_uint_eq(h5_uint_from(header + 110, 2), 4);
	for (unsigned i = 0; i < sizeof changes / sizeof *changes; i++) {
		struct h5_reader r;
		struct h5_fractal_heap heap;
		uint8_t copy[146];
		uint32_t sum;

		memcpy(copy, clean.bytes + at, sizeof copy);
		for (unsigned k = 0; k < changes[i].size; k++)
			copy[changes[i].at + k] = (uint8_t)(changes[i].value >> (8 * k));
		sum = h5_lookup3(copy, 142, 0);
		for (unsigned k = 0; k < 4; k++)
			copy[142 + k] = (uint8_t)(sum >> (8 * k));
		r = h5_reader_init(copy, sizeof copy, 0, 8, 8);
		ck_assert_msg(h5_fractal_heap_decode(&r, &heap) == -EUCLEAN, "case %u", i);
		h5_fractal_heap_release(&heap);
		copy[142] ^= 1;
		memcpy(copy, clean.bytes + at, 142);
		r = h5_reader_init(copy, sizeof copy, 0, 8, 8);
		ck_assert_int_eq(h5_fractal_heap_decode(&r, &heap), -EUCLEAN);
		h5_fractal_heap_release(&heap);
	}
	free(clean.bytes);
}
END_TEST

/* Texts of a damaged heap may share their ends. All together have sixteen times as many bytes as the heap, at
 * most. */
START_TEST(local_heap_texts_that_overlap)
{
	enum { SIZE = 64, TIMES = 16 };
	uint8_t bytes[SIZE], used[SIZE / 8 + 1] = {1};
	struct h5_local_heap_collect collect = {
		.heap = {.size = SIZE}, .bytes = bytes, .used = used, .left = TIMES * SIZE};

	memset(bytes, 'a', sizeof bytes);
	bytes[SIZE - 1] = 0;
	ck_assert_int_eq(h5_local_heap_collect_keep(&collect, SIZE), -EUCLEAN);
	for (unsigned i = 0; i < TIMES; i++)
		ck_assert_int_eq(h5_local_heap_collect_keep(&collect, 1), 0);
	ck_assert_int_eq(h5_local_heap_collect_keep(&collect, 1), -EUCLEAN);
	/* A text that is in use needs no more bytes. */
	ck_assert_int_eq(h5_local_heap_collect_keep(&collect, 8), 0);
}
END_TEST

UNIT_MAIN_LOOPS("heap", {global_heap_objects, 1}, {global_heap_damage, 1}, {global_heap_ends, 1},
		{global_heap_visits_end, 1}, {local_heap_extents, 1}, {local_heap_pieces, 1},
		{local_heap_addresses, 1}, {local_heap_lists, 1}, {global_heap_of_strings, 1},
		{local_heap_texts, 1}, {local_heap_texts_that_overlap, 1}, {doubling_table, 1}, {heap_ids, 1},
		{nonsense_headers, 1}, {values_are_walked, WALKS}, {values_are_copied, 1},
		{sets_of_objects, 1}, {full_sets_of_objects, 1})
