/* What a kill leaves between the cells of a commit: of contents that are replaced, with what they own in the
 * global heap, and of messages that several objects share. */
#include "base/lookup3.h"
#include "change/object_header_edit.h"
#include "crash_image.h"
#include "dataset/create.h"
#include "dataset/replacement.h"
#include "dataset/writer.h"
#include "format/datatype_make.h"
#include "format/shared_message.h"
#include "object/global_heap.h"
#include "object/numpy_parse.h"
#include "object/path.h"
#include "object/shared_table.h"
#include "removal_scene.h"

#include <stdio.h>
#include <string.h>

static void commit(struct scratch *s, struct fault_io *record, struct crash_image *image,
		   void (*check)(const void *arg, struct h5_file *file), const void *arg)
{
	record->record = true;
	SUCCEEDS(h5_tx_commit(s->file));
	ck_assert_uint_gt(crash_image_look(image, record, check, arg), 2);
}

/* ---- elements of variable length ---- */

enum { ELEMENT = 16, OLD = 10, NEW = 30, FIRST = 18, ROWS_MAX = 64 };

struct elements {
	uint64_t dataset;
	uint64_t collections[2]; /* of the old elements, and of some new ones */
};

static uint64_t make_texts(struct scratch *s)
{
	struct h5_new_dataset how = {.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .max = {H5_UNLIMITED}},
				     .layout = H5_LAYOUT_CHUNKED,
				     .chunk = {4}};
	struct h5_datatype *type;
	uint64_t address;

	SUCCEEDS(h5_numpy_parse("vlen str", 8, 8, &type));
	how.type = type;
	SUCCEEDS(h5_dataset_create(s->file, &how, &address));
	h5_datatype_free(type);
	return address;
}

static void put_text(struct h5_heap_sink *sink, const char *text, uint8_t element[ELEMENT], uint64_t *address)
{
	uint32_t index;

	SUCCEEDS(sink->put(sink, text, strlen(text), address, &index));
	h5_uint_to(element, strlen(text), 4);
	h5_uint_to(element + 4, *address, 8);
	h5_uint_to(element + 12, index, 4);
}

static void check_texts(const void *arg, struct h5_file *file)
{
	const struct elements *elements = arg;
	uint8_t data[ROWS_MAX * ELEMENT];
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref, *object;
	const uint8_t *text;
	uint64_t rows;
	size_t n;

	SUCCEEDS(h5_dataset_get(file, elements->dataset, &ref, &dataset));
	rows = dataset->space.dims[0];
	ck_assert(rows == OLD || rows == NEW);
	SUCCEEDS(h5_dataset_read(dataset, 0, data, rows * ELEMENT));
	for (uint64_t i = 0; i < rows; i++) {
		const uint8_t *element = data + i * ELEMENT;

		SUCCEEDS(h5_global_heap_get(file, h5_uint_from(element + 4, 8),
					    (uint32_t)h5_uint_from(element + 12, 4), &object, &text, &n));
		ck_assert_uint_eq(n, 3);
		ck_assert_mem_eq(text, rows == OLD ? "old" : "new", n);
		h5_file_put(file, object);
	}
	h5_file_put(file, ref);
}

static int pass_object(void *arg, const struct h5_global_heap_object *object)
{
	(void)arg;
	(void)object;
	return 0;
}

static void check_elements(const void *arg, struct h5_file *file)
{
	const struct elements *elements = arg;
	uint64_t size;

	check_texts(arg, file);
	for (unsigned i = 0; i < 2; i++)
		SUCCEEDS(h5_global_heap_each(file, elements->collections[i], pass_object, NULL, &size));
}

/* The old elements share their collection with something that stays; the last new ones go to the collection
 * of the first ones, which a commit knows. */
START_TEST(replaced_texts)
{
	struct h5_global_heap_writer heap;
	struct h5_dataset_writer *writer;
	uint8_t data[ROWS_MAX * ELEMENT];
	struct crash_image image = {0};
	struct fault_io record = {0};
	struct elements elements;
	struct h5_replacement *r;
	uint64_t known = 0;
	struct scratch s;

	scratch_init(&s, _i ? "header_create-latest.h5" : "header_create-v18.h5");
	scratch_wrap(&s, &record);
	scratch_open(&s);
	elements.dataset = make_texts(&s);
	h5_global_heap_writer_init(&heap, s.file);
	for (unsigned i = 0; i <= OLD; i++)
		put_text(&heap.sink, "old", data + i * ELEMENT, &elements.collections[0]);
	h5_global_heap_writer_release(&heap);
	SUCCEEDS(h5_dataset_writer_get(s.file, elements.dataset, false, &writer));
	SUCCEEDS(h5_dataset_writer_append(writer, data, OLD * ELEMENT));
	h5_dataset_writer_put(writer);
	SUCCEEDS(h5_tx_commit(s.file));
	SUCCEEDS(h5_replacement_begin_rows(s.file, elements.dataset, &r));
	for (unsigned i = 0; i < NEW; i++) {
		put_text(&h5_replacement_heap(r)->sink, "new", data + i * ELEMENT, &elements.collections[1]);
		SUCCEEDS(h5_replacement_append(r, data + i * ELEMENT, ELEMENT));
		if (i != FIRST)
			continue;
		SUCCEEDS(h5_tx_commit(s.file));
		crash_image_load(&image, s.path);
		record.record = true;
		known = elements.collections[1];
	}
	ck_assert_uint_eq(elements.collections[1], known);
	SUCCEEDS(h5_replacement_finish(r));
	h5_replacement_end(r);
	commit(&s, &record, &image, check_elements, &elements);
	h5_dataset_writers_close(s.file);
	scratch_release(&s);
	free(image.data);
}
END_TEST

/* ---- shared messages ---- */

enum { OBJECTS = 12, RECORDS_MAX = 200 };

struct uses {
	struct {
		unsigned types;
		uint8_t id[H5_SHARED_ID_SIZE];
		uint32_t hash, count, uses;
	} list[RECORDS_MAX];
	unsigned count;
};

static int add_record(void *arg, unsigned types, const struct h5_shared_record *record)
{
	struct uses *uses = arg;

	ck_assert_uint_lt(uses->count, RECORDS_MAX);
	uses->list[uses->count].types = types;
	uses->list[uses->count].uses = 0;
	memcpy(uses->list[uses->count].id, record->id, H5_SHARED_ID_SIZE);
	uses->list[uses->count].hash = record->hash;
	uses->list[uses->count++].count = record->count;
	return 0;
}

/* The record that leads to a message which a header shares, or whose copy the header that had it first keeps;
 * uses->count: none does. */
static unsigned record_of(const struct uses *uses, const struct h5_file *file,
			  const struct h5_message *message)
{
	const unsigned type = h5_shared_type_flag(message->type);
	struct h5_reader r = h5_message_reader(file, message);
	const bool is_shared = message->flags & H5_MSG_FLAG_SHARED;
	const uint32_t hash = h5_lookup3(message->data, message->size, message->type);
	struct h5_shared_message shared;
	unsigned i = 0;

	if (is_shared) {
		SUCCEEDS(h5_shared_message_decode(&r, &shared));
		ck_assert(shared.in_heap);
	}
	while (i < uses->count && (!(uses->list[i].types & type) ||
				   (is_shared ? memcmp(uses->list[i].id, shared.id, sizeof shared.id)
					      : uses->list[i].hash != hash)))
		i++;
	ck_assert(!is_shared || i < uses->count);
	return i;
}

static void add_use(struct uses *uses, const struct h5_file *file, const struct h5_message *message)
{
	unsigned i;

	if (!(message->flags & (H5_MSG_FLAG_SHARED | H5_MSG_FLAG_TRACKED)))
		return;
	i = record_of(uses, file, message);
	if (i == uses->count)
		return;
	uses->list[i].uses++;
	ck_assert_uint_le(uses->list[i].uses, uses->list[i].count);
}

/* Each message that a header shares has a record, which counts all headers. */
static void check_uses(const void *arg, struct h5_file *file)
{
	struct uses uses = {.count = 0};
	unsigned found = 0;

	(void)arg;
	SUCCEEDS(h5_shared_table_counts(file, add_record, &uses));
	for (unsigned k = 0; k < OBJECTS; k++) {
		struct h5_header header;
		uint64_t address;
		char path[16];
		int n = snprintf(path, sizeof path, "data%u", k);
		int rc = h5_path_find(file, h5_file_superblock(file)->root, path, (size_t)n, &file, &address);

		ck_assert(!rc || rc == -ENOENT);
		if (rc)
			continue;
		SUCCEEDS(h5_header_load(file, address, &header));
		for (unsigned i = 0; i < header.count; i++)
			add_use(&uses, file, &header.messages[i]);
		h5_header_release(&header);
		found++;
	}
	ck_assert_uint_gt(found, 0);
}

static void define(struct removal_scene *s, const char *path)
{
	struct h5_datatype *type = h5_datatype_make_integer(2, true, H5_ORDER_LE);
	const struct h5_new_dataset how = {.type = type,
					   .space = {.kind = H5_SPACE_SIMPLE,
						     .rank = 1,
						     .dims = {3},
						     .max = {H5_UNLIMITED},
						     .has_max = true},
					   .layout = H5_LAYOUT_CHUNKED,
					   .chunk = {16}};

	ck_assert_ptr_nonnull(type);
	SUCCEEDS(h5_dataset_define(s->scratch.file, removal_find(s, path), &how));
	h5_datatype_free(type);
}

/* Objects go, and others get messages of their own. */
START_TEST(uses_are_counted)
{
	const bool tree = _i % 2, moves = _i / 2;
	struct crash_image image = {0};
	struct removal_scene s = {0};

	scratch_init(&s.scratch, tree ? "rare_sohm_tree.h5" : "rare_sohm_list.h5");
	scratch_wrap(&s.scratch, &s.fault);
	scratch_open(&s.scratch);
	if (moves)
		(void)removal_put_table_across_pages(&s);
	crash_image_load(&image, s.scratch.path);
	for (unsigned left = OBJECTS; left-- > 1;) {
		char path[24];

		snprintf(path, sizeof path, "./data%u", left);
		if (left % 2)
			SUCCEEDS(removal_remove(&s, path));
		else
			define(&s, path);
		commit(&s.scratch, &s.fault, &image, check_uses, NULL);
	}
	removal_end(&s);
	free(image.data);
}
END_TEST

UNIT_MAIN_LOOPS("order of contents", {replaced_texts, 2}, {uses_are_counted, 4})
