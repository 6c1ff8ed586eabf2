/* New values of variable length: in a committed dataset, whose elements are then made to refer to them.
 * libhdf5 judges, in tests/judge/global_heap_judge.py. */
#include "base/error.h"
#include "change/private.h"
#include "crash_image.h"
#include "dataset/dataset.h"
#include "dataset/values.h"
#include "fault_alloc.h"
#include "heap_scene.h"
#include "object/global_heap.h"
#include "object/heap_dead.h"
#include "object/path.h"

#include <stdio.h>
#include <string.h>

static size_t some_size(struct heap_scene *s)
{
	static const size_t sizes[] = {0,    1,	   7,	 8,    9,    16,   100,	 2000, 4031,
				       4032, 4040, 4048, 4056, 4064, 4065, 4072, 8200, 100000};

	return heap_scene_random(s) % 3 ? heap_scene_random(s) % 300
					: sizes[heap_scene_random(s) % (sizeof sizes / sizeof *sizes)];
}

START_TEST(values_of_many_sizes)
{
	struct heap_scene s;

	heap_scene_begin(&s, _i % 2 ? "latest" : "earliest", NULL);
	s.batched = _i > 1;
	for (unsigned round = 0; round < 6; round++) {
		for (unsigned n = 0; n < 120; n++)
			heap_scene_set_random(&s, (unsigned)heap_scene_random(&s) % ELEMENTS, some_size(&s));
		if (round != 2)
			heap_scene_verify(&s);
		SUCCEEDS(heap_scene_commit(&s));
		if (round % 2)
			heap_scene_reopen(&s);
		heap_scene_verify(&s);
	}
	heap_scene_judge(&s);
	heap_scene_end(&s);
}
END_TEST

static int count_object(void *arg, const struct h5_global_heap_object *object)
{
	unsigned *count = arg;

	*count += object->index != 0;
	return 0;
}

enum { GOING = 6 };

/* Objects in one collection, committed, and how many are left as they go one by one. */
struct going {
	size_t large;	      /* bytes of every other object */
	uint8_t order[GOING]; /* of the objects */
	unsigned left[GOING];
};

static unsigned count_objects(struct heap_scene *s, uint64_t address)
{
	unsigned count = 0;
	uint64_t size;

	SUCCEEDS(h5_global_heap_each(s->scratch.file, address, count_object, &count, &size));
	SUCCEEDS(h5_global_heap_check(s->scratch.file, address));
	return count;
}

static void have_object(struct heap_scene *s, uint64_t address, unsigned i, bool there)
{
	struct h5_lru_entry *ref;
	const uint8_t *data;
	size_t n;
	int rc = h5_global_heap_get(s->scratch.file, address, i + 1, &ref, &data, &n);

	ck_assert_int_eq(rc, there ? 0 : -EUCLEAN);
	if (there)
		ck_assert_uint_eq(data[n - 1], 'a' + i);
	h5_file_put(s->scratch.file, ref);
}

/* Puts the objects into a collection of many pages, or of one. */
static uint64_t put_objects(struct heap_scene *s, size_t large)
{
	uint64_t address = H5_UNDEF;
	uint8_t bytes[5000];
	uint32_t index;

	s->batch.next_size = large > 4096 ? 1 << 16 : 4096;
	for (unsigned i = 0; i < GOING; i++) {
		memset(bytes, 'a' + (int)i, sizeof bytes);
		SUCCEEDS(s->batch.sink.put(&s->batch.sink, bytes, i % 2 ? large : 8 * i + 1, &address,
					   &index));
		ck_assert_uint_eq(index, i + 1);
	}
	SUCCEEDS(heap_scene_commit(s));
	return address;
}

static void remove_objects(struct heap_scene *s, const struct going *going)
{
	const uint64_t address = put_objects(s, going->large);
	uint8_t element[ELEMENT] = {0};
	struct h5_tx_watch watch = {0};
	uint64_t watched;

	h5_uint_to(element + 4, address, 8);
	for (unsigned i = 0; i < GOING; i++) {
		unsigned before = i ? going->left[i - 1] : GOING;

		watched = address + 20;
		h5_tx_watch(s->scratch.file, &watch, &watched);
		h5_uint_to(element + 12, going->order[i] + 1u, 4);
		SUCCEEDS(heap_scene_give_up(s, element));
		ck_assert_int_eq(watched == H5_UNDEF, going->left[i] < before);
		h5_tx_unwatch(s->scratch.file, &watch);
		if (!going->left[i])
			continue;
		SUCCEEDS(h5_tx_commit(s->scratch.file));
		ck_assert_uint_eq(count_objects(s, address), going->left[i]);
		have_object(s, address, going->order[i], going->left[i] == before);
		for (unsigned k = i + 1; k < GOING; k++)
			have_object(s, address, going->order[k], true);
	}
}

/* Of a collection in one page every object can go, in any order, and all of it with the last one. An object
 * of a larger one goes if one cell can take it out: here, if it is the last one. */
START_TEST(objects_go)
{
	static const struct going cases[] = {
		{100, {0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}},
		{100, {5, 4, 3, 2, 1, 0}, {5, 4, 3, 2, 1, 0}},
		{100, {2, 4, 0, 5, 1, 3}, {5, 4, 3, 2, 1, 0}},
		{5000, {5, 4, 3, 2, 1, 0}, {5, 4, 3, 2, 1, 0}},
		{5000, {0, 5, 1, 2, 4, 3}, {6, 5, 5, 5, 4, 3}},
	};
	struct heap_scene s;

	heap_scene_begin(&s, "latest", NULL);
	remove_objects(&s, &cases[_i]);
	heap_scene_verify(&s);
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	heap_scene_judge(&s);
	heap_scene_end(&s);
}
END_TEST

/* What a collection counts several uses of stays; so does all of one that libhdf5 would refuse, and of one to
 * which the same commit adds objects. */
START_TEST(objects_stay)
{
	uint8_t element[ELEMENT] = {0}, bytes[16];
	uint64_t address, size = 4096, more;
	uint32_t index;
	struct heap_scene s;

	heap_scene_begin(&s, "latest", NULL);
	address = put_objects(&s, 100);
	h5_uint_to(element + 4, address, 8);
	h5_uint_to(element + 12, 2, 4);
	h5_uint_to(bytes, 2, 2);
	SUCCEEDS(h5_tx_patch(s.scratch.file, address + 16 + 24 + 2, bytes, 2, H5_STAGE_BLOCK));
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	SUCCEEDS(heap_scene_give_up(&s, element));
	ck_assert_uint_eq(count_objects(&s, address), GOING);
	/* Others of it go all the same. */
	h5_uint_to(element + 12, 3, 4);
	SUCCEEDS(s.batch.sink.put(&s.batch.sink, "more", 4, &more, &index));
	ck_assert_uint_eq(more, address);
	SUCCEEDS(h5_heap_batch_flush(&s.batch));
	SUCCEEDS(heap_scene_give_up(&s, element));
	ck_assert_uint_eq(count_objects(&s, address), GOING + 1);
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	SUCCEEDS(heap_scene_give_up(&s, element));
	ck_assert_uint_eq(count_objects(&s, address), GOING);
	/* Since the end of the collection is elsewhere now, the batch goes on in another one. */
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	SUCCEEDS(s.batch.sink.put(&s.batch.sink, "more", 4, &more, &index));
	ck_assert_uint_ne(more, address);
	SUCCEEDS(heap_scene_commit(&s));
	h5_uint_to(bytes, size + 1, 8);
	SUCCEEDS(h5_tx_patch(s.scratch.file, address + 8, bytes, 8, H5_STAGE_BLOCK));
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	h5_uint_to(element + 12, 1, 4);
	SUCCEEDS(heap_scene_give_up(&s, element));
	SUCCEEDS(h5_file_read(s.scratch.file, address + 16, bytes, 2));
	ck_assert_uint_eq(h5_uint_from(bytes, 2), 1);
	heap_scene_end(&s);
}
END_TEST

/* Small values of a transaction share a collection, and large ones do not close it. */
START_TEST(collections_are_shared)
{
	uint64_t address[6];
	uint32_t index;
	struct heap_scene s;
	static const size_t sizes[] = {10, 20, 5000, 30, 3990, 40};
	char bytes[5000] = {1};

	heap_scene_begin(&s, "latest", NULL);
	for (unsigned i = 0; i < 6; i++)
		SUCCEEDS(h5_global_heap_put(&s.heap, bytes, sizes[i], &address[i], &index));
	ck_assert_uint_eq(index, 4);
	ck_assert_uint_eq(address[0], address[1]);
	ck_assert_uint_eq(address[0], address[3]);
	ck_assert_uint_eq(address[0], address[5]);
	ck_assert_uint_ne(address[2], address[0]);
	ck_assert_uint_ne(address[4], address[0]);
	for (unsigned i = 0; i < 6; i++)
		SUCCEEDS(h5_global_heap_check(s.scratch.file, address[i]));
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	SUCCEEDS(h5_global_heap_put(&s.heap, bytes, 10, &address[1], &index));
	ck_assert_uint_ne(address[0], address[1]);
	ck_assert_uint_eq(index, 1);
	h5_tx_free(s.scratch.file, address[1], 4096);
	SUCCEEDS(h5_global_heap_put(&s.heap, bytes, 10, &address[2], &index));
	ck_assert_uint_eq(index, 1);
	h5_tx_abandon(s.scratch.file);
	SUCCEEDS(h5_global_heap_put(&s.heap, bytes, 10, &address[2], &index));
	ck_assert_uint_eq(index, 1);
	heap_scene_end(&s);
}
END_TEST

/* The batch goes on in a committed collection only where a cell can take the place of its free space: not
 * where that begins eight bytes before the end of a page. */
START_TEST(free_space_across_pages)
{
	enum { HEADER = 16 };
	uint64_t address, other, used = 2 * HEADER + 8, want;
	static const char bytes[4096] = {1};
	uint32_t index;
	struct heap_scene s;

	heap_scene_begin(&s, "latest", NULL);
	SUCCEEDS(h5_tx_allocate(s.scratch.file, H5_ALLOCATE_METADATA, 2048, &other));
	s.batch.next_size = 6000; /* one of a page is never across its edge */
	SUCCEEDS(s.batch.sink.put(&s.batch.sink, bytes, 1, &address, &index));
	SUCCEEDS(heap_scene_commit(&s));
	ck_assert_uint_eq(h5_file_superblock(s.scratch.file)->base, 0);
	want = 4096 - address % 4096 - (_i ? 8 : HEADER);
	ck_assert_uint_gt(want, used + HEADER);
	SUCCEEDS(s.batch.sink.put(&s.batch.sink, bytes, (size_t)(want - used - HEADER), &other, &index));
	ck_assert_uint_eq(other, address);
	ck_assert_uint_eq(index, 2);
	SUCCEEDS(heap_scene_commit(&s));
	SUCCEEDS(s.batch.sink.put(&s.batch.sink, bytes, 1, &other, &index));
	ck_assert_int_eq(other == address, !_i);
	ck_assert_uint_eq(index, _i ? 1 : 3);
	SUCCEEDS(heap_scene_commit(&s));
	SUCCEEDS(h5_global_heap_check(s.scratch.file, address));
	heap_scene_end(&s);
}
END_TEST

/* SWMR readers keep what they know of a committed collection, so the batch begins another one. */
START_TEST(collections_that_readers_know)
{
	uint64_t address, other;
	uint32_t index;
	struct heap_scene s;

	for (unsigned swmr = 0; swmr < 2; swmr++) {
		heap_scene_begin(&s, "latest", NULL);
		h5_tx_find(s.scratch.file)->space.keeps = swmr;
		SUCCEEDS(s.batch.sink.put(&s.batch.sink, "one", 3, &address, &index));
		SUCCEEDS(heap_scene_commit(&s));
		SUCCEEDS(s.batch.sink.put(&s.batch.sink, "two", 3, &other, &index));
		ck_assert_int_eq(other == address, !swmr);
		ck_assert_uint_eq(index, swmr ? 1 : 2);
		SUCCEEDS(heap_scene_commit(&s));
		ck_assert_uint_eq(count_objects(&s, address), swmr ? 1 : 2);
		heap_scene_end(&s);
	}
}
END_TEST

/* Others change the collection in which the batch has gone on: it does not write over that. */
START_TEST(others_share_a_collection)
{
	uint8_t element[ELEMENT] = {0};
	uint64_t address, more;
	uint32_t index;
	struct heap_scene s;

	heap_scene_begin(&s, "latest", NULL);
	address = put_objects(&s, 100);
	SUCCEEDS(s.batch.sink.put(&s.batch.sink, "more", 4, &more, &index));
	ck_assert_uint_eq(more, address);
	h5_uint_to(element + 4, address, 8);
	h5_uint_to(element + 12, 3, 4);
	SUCCEEDS(heap_scene_give_up(&s, element));
	ck_assert_uint_eq(count_objects(&s, address), GOING - 1);
	ck_assert_int_eq(h5_heap_batch_flush(&s.batch), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "global heap collection: other values share it");
	ck_assert_uint_eq(count_objects(&s, address), GOING - 1);
	h5_heap_batch_release(&s.batch);
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	ck_assert_uint_eq(count_objects(&s, address), GOING - 1);
	heap_scene_end(&s);
}
END_TEST

/* Sizes of two bytes tell of no more than half of what they could. */
START_TEST(the_largest_object)
{
	enum { ROOM = 1 << 15, HEADER = 16 };
	static const char bytes[ROOM] = {1};
	struct h5_global_heap_writer writer;
	struct h5_heap_batch batch;
	struct h5_heap_sink *sink;
	struct scratch scratch;
	struct h5_lru_entry *ref;
	uint64_t address;
	const uint8_t *data;
	uint32_t index;
	size_t n;

	scratch_init(&scratch, "rare_sizes_820.h5");
	scratch_open(&scratch);
	ck_assert_uint_eq(h5_file_superblock(scratch.file)->size_of_lengths, 2);
	h5_global_heap_writer_init(&writer, scratch.file);
	h5_heap_batch_init(&batch, scratch.file);
	sink = _i ? &batch.sink : &writer.sink;
	ck_assert_int_eq(sink->put(sink, bytes, ROOM - HEADER + 1, &address, &index), -EFBIG);
	SUCCEEDS(sink->put(sink, bytes, ROOM - HEADER, &address, &index));
	SUCCEEDS(h5_heap_batch_flush(&batch));
	SUCCEEDS(h5_global_heap_get(scratch.file, address, index, &ref, &data, &n));
	ck_assert_uint_eq(n, ROOM - HEADER);
	ck_assert_mem_eq(data, bytes, n);
	h5_file_put(scratch.file, ref);
	h5_global_heap_writer_release(&writer);
	h5_heap_batch_release(&batch);
	h5_tx_abandon(scratch.file);
	scratch_release(&scratch);
}
END_TEST

/* Between any two cells of the commit each element has its old or its new value. */
START_TEST(killed_between_cells)
{
	struct fault_io record = {0};
	struct crash_image image = {0};
	char prefix[128];
	char model[128];
	struct heap_scene s;

	heap_scene_begin(&s, "earliest", &record);
	s.batched = _i;
	for (unsigned i = 1; i < 4; i++) /* a collection with free space, if they are batched */
		heap_scene_set_random(&s, i, 500);
	SUCCEEDS(heap_scene_commit(&s));
	crash_image_load(&image, s.scratch.path);
	record.record = true;
	for (unsigned i = 0; i < ELEMENTS; i += 31)
		heap_scene_set_random(&s, i, 1 + (_i ? 7 * i % 400 : some_size(&s)));
	SUCCEEDS(heap_scene_commit(&s));
	snprintf(prefix, sizeof prefix, "%s/state", scratch_folder());
	ck_assert_uint_gt(crash_image_save_states(&image, &record, prefix), 5);
	scratch_close(&s.scratch);
	heap_scene_write_model(&s, model);
	scratch_judge_python("tests/judge/global_heap_judge.py --states %s %s/state-*.h5", model,
			     scratch_folder());
	free(image.data);
	fault_io_release(&record);
	heap_scene_end(&s);
}
END_TEST

/* A failing allocation, or one of space: nothing has changed, and the next value goes in. */
START_TEST(nothing_is_left_of_a_failure)
{
	bool fired = true;
	struct heap_scene s;
	char bytes[6000];

	memset(bytes, 'x', sizeof bytes);
	heap_scene_begin(&s, "latest", NULL);
	heap_scene_set_random(&s, 1, 100);
	for (unsigned long n = 1; fired; n++) {
		unsigned i = 2 + (unsigned)n % 50;
		size_t size = n % 2 ? sizeof bytes : 50;
		struct h5_global_heap_writer before = s.heap;
		int rc;

		fault_alloc_arm(n / 2 + 1);
		fault_alloc_count(true);
		rc = heap_scene_set(&s, i, bytes, size);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		if (rc)
			ck_assert_mem_eq(&s.heap, &before, sizeof before);
		else
			heap_scene_keep(&s, i, bytes, size);
		heap_scene_verify(&s);
	}
	SUCCEEDS(h5_tx_commit(s.scratch.file));
	heap_scene_judge(&s);
	heap_scene_end(&s);
}
END_TEST

/* Writers bring a batch to the file because of what they count here. */
static void check_held(const struct h5_heap_batch *batch, bool any)
{
	size_t held = 0;

	for (size_t i = 0; i < batch->count; i++)
		held += batch->blocks[i].capacity;
	ck_assert_uint_eq(batch->held, held);
	ck_assert_int_eq(held > 0, any);
}

/* A batch goes on in the free space that its last commit has left, takes back what was put since a mark, and
 * gives back the end of a large collection. */
START_TEST(batches)
{
	uint64_t address[4], others;
	struct h5_heap_mark mark;
	uint32_t index[4];
	struct heap_scene s;
	char bytes[200] = {1};

	heap_scene_begin(&s, "latest", NULL);
	s.batched = true;
	SUCCEEDS(heap_scene_put(&s, bytes, 100, &address[0], &index[0]));
	SUCCEEDS(heap_scene_commit(&s));
	SUCCEEDS(heap_scene_put(&s, bytes, 100, &address[1], &index[1]));
	ck_assert_uint_eq(address[1], address[0]);
	ck_assert_uint_eq(index[1], 2);
	mark = h5_heap_batch_mark(&s.batch);
	/* The first collection has no room for another of 100 bytes then. */
	for (unsigned i = 0; i < 1000; i++)
		SUCCEEDS(heap_scene_put(&s, bytes, 20, &address[2], &index[2]));
	ck_assert_uint_ne(address[2], address[0]);
	check_held(&s.batch, true);
	h5_heap_batch_back(&s.batch, &mark);
	check_held(&s.batch, true);
	SUCCEEDS(heap_scene_put(&s, bytes, 100, &address[2], &index[2]));
	ck_assert_uint_eq(address[2], address[0]);
	ck_assert_uint_eq(index[2], 3);
	SUCCEEDS(h5_heap_batch_flush(&s.batch));
	check_held(&s.batch, false);
	/* one commit changes the free space of a committed collection once */
	SUCCEEDS(heap_scene_put(&s, bytes, 100, &address[3], &index[3]));
	ck_assert_uint_ne(address[3], address[0]);
	SUCCEEDS(heap_scene_commit(&s));
	SUCCEEDS(h5_global_heap_check(s.scratch.file, address[0]));
	SUCCEEDS(h5_global_heap_check(s.scratch.file, address[3]));
	others = h5_file_end(s.scratch.file);
	for (unsigned i = 0; i < 1000; i++)
		SUCCEEDS(heap_scene_put(&s, bytes, 16, &address[2], &index[2]));
	SUCCEEDS(heap_scene_commit(&s));
	ck_assert_uint_lt(h5_file_end(s.scratch.file) - others, 1000 * 32 + 3 * 4096);
	/* what was dropped with its transaction is not gone on with */
	SUCCEEDS(heap_scene_put(&s, bytes, 100, &address[0], &index[0]));
	SUCCEEDS(h5_heap_batch_flush(&s.batch));
	h5_tx_abandon(s.scratch.file);
	h5_heap_batch_release(&s.batch);
	check_held(&s.batch, false);
	SUCCEEDS(heap_scene_put(&s, bytes, 100, &address[1], &index[1]));
	ck_assert_uint_eq(index[1], 1);
	heap_scene_end(&s);
}
END_TEST

/* Collections get larger as objects come, and take no more memory than these need. */
START_TEST(collections_of_a_batch_grow)
{
	enum { HEADER = 16, LARGEST = 1 << 16, OBJECT = 4000, LEAST = 512 };
	const size_t sizes[] = {8, LEAST - 3 * HEADER - 8, 8};
	const size_t held[] = {LEAST, LEAST, 2 * LEAST};
	static const char bytes[OBJECT] = {1};
	uint64_t address, wanted = 4096;
	uint32_t index;
	struct heap_scene s;

	heap_scene_begin(&s, "latest", NULL);
	for (unsigned i = 0; i < 3; i++) {
		SUCCEEDS(s.batch.sink.put(&s.batch.sink, bytes, sizes[i], &address, &index));
		ck_assert_uint_eq(s.batch.held, held[i]);
	}
	for (unsigned i = 0; i < 60; i++)
		SUCCEEDS(s.batch.sink.put(&s.batch.sink, bytes, OBJECT, &address, &index));
	ck_assert_uint_eq(s.batch.count, 7);
	for (size_t i = 0; i < s.batch.count; i++, wanted = wanted < LARGEST ? 2 * wanted : LARGEST)
		ck_assert_uint_eq(s.batch.blocks[i].size, wanted);
	check_held(&s.batch, true);
	SUCCEEDS(heap_scene_commit(&s));
	heap_scene_end(&s);
}
END_TEST

static unsigned count_of(struct heap_scene *s, size_t length)
{
	unsigned count = 0;

	for (unsigned i = 0; i < ELEMENTS; i++) {
		uint8_t n[4];

		SUCCEEDS(h5_file_read(s->scratch.file, heap_scene_element_at(s, i), n, sizeof n));
		count += h5_uint_from(n, 4) == length;
	}
	return count;
}

/* Each write and sync fails once: all values are as before or all are new, and later ones go in. */
START_TEST(every_write_can_fail)
{
	enum { VALUES = 5, LENGTH = 3000 };
	char bytes[LENGTH];
	bool fired = true;

	memset(bytes, 'x', sizeof bytes);
	for (unsigned long fail = 1; fired; fail++) {
		struct fault_io fault = {.error = -EIO};
		struct heap_scene s;
		unsigned count;

		heap_scene_begin(&s, "earliest", &fault);
		for (unsigned i = 0; i < VALUES; i++)
			SUCCEEDS(heap_scene_set(&s, 1 + 40 * i, bytes, LENGTH));
		fault_io_arm(&fault, fail);
		if (h5_tx_commit(s.scratch.file) && h5_tx_is_writable(s.scratch.file))
			h5_tx_abandon(s.scratch.file);
		fired = fault_io_disarm(&fault);
		heap_scene_reopen(&s);
		count = count_of(&s, LENGTH);
		ck_assert(!count || count == VALUES);
		ck_assert(fired || count);
		if (count)
			for (unsigned i = 0; i < VALUES; i++)
				heap_scene_keep(&s, 1 + 40 * i, bytes, LENGTH);
		heap_scene_set_random(&s, 0, 200);
		SUCCEEDS(h5_tx_commit(s.scratch.file));
		heap_scene_verify(&s);
		if (fail % 4 == 1)
			heap_scene_judge(&s);
		heap_scene_end(&s);
		fault_io_release(&fault);
	}
}
END_TEST

struct given {
	uint64_t address;
	unsigned count;
};

static int note_given(void *arg, uint64_t address, uint64_t n)
{
	struct given *given = arg;

	ck_assert_uint_eq(n, 4096);
	given->address = address;
	given->count++;
	return 0;
}

/* A collection goes as a whole with all of its objects, also if these go at once; but not as long as it has
 * one that stays. */
START_TEST(a_collection_goes_at_once)
{
	for (unsigned stays = 0; stays <= GOING; stays++) {
		struct given given = {.count = 0};
		struct h5_heap_dead dead;
		struct heap_scene s;
		uint64_t address;

		heap_scene_begin(&s, _i ? "latest" : "earliest", NULL);
		address = put_objects(&s, 100);
		h5_heap_dead_init(&dead, s.scratch.file);
		for (uint32_t index = 1; index <= GOING; index++)
			if (index != stays)
				SUCCEEDS(h5_heap_dead_add(&dead, address, index));
		SUCCEEDS(h5_heap_dead_give_up(&dead, note_given, &given));
		ck_assert_uint_eq(given.count, !stays);
		ck_assert(stays || given.address == address);
		if (stays) {
			SUCCEEDS(heap_scene_commit(&s));
			ck_assert_uint_eq(count_objects(&s, address), 1);
			have_object(&s, address, stays - 1, true);
		}
		h5_heap_dead_release(&dead);
		heap_scene_end(&s);
	}
}
END_TEST

/* Elements of a table of 4 x 3 strings that lie outside of dimensions, and no others, give up their values.
 */
START_TEST(values_outside_of_dimensions)
{
	enum { ROWS = 4, COLUMNS = 3 };
	static const uint64_t dims[][2] = {{3, 2}, {2, 3}, {4, 1}, {4, 3}, {0, 3}, {4, 0}};
	const uint64_t *now = dims[_i];
	const struct h5_dataset *dataset;
	uint8_t data[ROWS * COLUMNS * ELEMENT];
	struct h5_lru_entry *ref;
	struct h5_heap_dead dead;
	struct heap_scene s;
	struct h5_file *in;
	uint64_t address;

	heap_scene_begin(&s, "latest", NULL);
	SUCCEEDS(h5_path_find(s.scratch.file, h5_file_superblock(s.scratch.file)->root, "table", 5, &in,
			      &address));
	SUCCEEDS(h5_dataset_get(in, address, &ref, &dataset));
	ck_assert_uint_eq(dataset->size, sizeof data);
	SUCCEEDS(h5_dataset_read(dataset, 0, data, sizeof data));
	h5_file_put(in, ref);
	h5_heap_dead_init(&dead, in);
	SUCCEEDS(h5_dataset_find_outside(in, address, now, &dead));
	for (unsigned i = 0; i < ROWS * COLUMNS; i++) {
		const uint8_t *element = data + (size_t)i * ELEMENT;
		const bool outside = i / COLUMNS >= now[0] || i % COLUMNS >= now[1];

		ck_assert(outside == h5_heap_set_has(&dead.set, h5_uint_from(element + 4, 8),
						     (uint32_t)h5_uint_from(element + 12, 4)));
	}
	h5_heap_dead_release(&dead);
	heap_scene_end(&s);
}
END_TEST

UNIT_MAIN_LOOPS("global_heap_write", {values_outside_of_dimensions, 6}, {a_collection_goes_at_once, 2},
		{values_of_many_sizes, 4}, {collections_are_shared, 1}, {batches, 1},
		{collections_of_a_batch_grow, 1}, {objects_go, 5}, {objects_stay, 1},
		{free_space_across_pages, 2}, {collections_that_readers_know, 1},
		{others_share_a_collection, 1}, {the_largest_object, 2}, {killed_between_cells, 2},
		{nothing_is_left_of_a_failure, 1}, {every_write_can_fail, 1})
