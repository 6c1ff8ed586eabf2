#include "heap_scene.h"

#include "base/error.h"
#include "change/transaction.h"
#include "format/datatype_make.h"
#include "object/global_heap.h"
#include "object/heap_dead.h"
#include "object/value.h"

#include <stdio.h>
#include <string.h>

uint64_t heap_scene_random(struct heap_scene *s)
{
	s->state = s->state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return s->state >> 33;
}

void heap_scene_reopen(struct heap_scene *s)
{
	scratch_close(&s->scratch);
	scratch_open(&s->scratch);
	ck_assert(h5_tx_is_writable(s->scratch.file));
	h5_global_heap_writer_init(&s->heap, s->scratch.file);
	h5_heap_batch_release(&s->batch);
	h5_heap_batch_init(&s->batch, s->scratch.file);
}

int heap_scene_commit(struct heap_scene *s)
{
	int rc = h5_heap_batch_flush(&s->batch);

	return rc ? rc : h5_tx_commit(s->scratch.file);
}

void heap_scene_keep(struct heap_scene *s, unsigned i, const void *bytes, size_t n)
{
	free(s->model[i].bytes);
	s->model[i].bytes = malloc(n + 1);
	memcpy(s->model[i].bytes, bytes, n);
	s->model[i].n = n;
}

void heap_scene_begin(struct heap_scene *s, const char *style, struct fault_io *fault)
{
	char name[64], path[512];
	unsigned long long at[2];
	FILE *text;

	memset(s, 0, sizeof *s);
	snprintf(name, sizeof name, "global_heap_write-%s.txt", style);
	scratch_fixture(name, path);
	text = fopen(path, "r");
	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(fscanf(text, "strings %llu sequences %llu", &at[0], &at[1]), 2);
	fclose(text);
	for (unsigned i = 0; i < 2; i++)
		s->at[i] = at[i];
	for (unsigned i = 0; i < ELEMENTS; i++)
		heap_scene_keep(s, i, "", 0);
	heap_scene_keep(s, 0, "old", 3);
	heap_scene_keep(s, COUNT, "\1\0\0\0\2\0\0\0\3\0\0\0", 12);
	snprintf(name, sizeof name, "global_heap_write-%s.h5", style);
	scratch_init(&s->scratch, name);
	scratch_wrap(&s->scratch, fault);
	heap_scene_reopen(s);
}

void heap_scene_end(struct heap_scene *s)
{
	for (unsigned i = 0; i < ELEMENTS; i++)
		free(s->model[i].bytes);
	h5_heap_batch_release(&s->batch);
	scratch_release(&s->scratch);
}

uint64_t heap_scene_element_at(const struct heap_scene *s, unsigned i)
{
	return s->at[i / COUNT] + i % COUNT * ELEMENT;
}

int heap_scene_put(struct heap_scene *s, const void *bytes, size_t n, uint64_t *address, uint32_t *index)
{
	struct h5_heap_sink *sink = s->batched ? &s->batch.sink : &s->heap.sink;

	return sink->put(sink, bytes, n, address, index);
}

/* Gives up the object that an element has referred to. */
int heap_scene_give_up(struct heap_scene *s, const uint8_t *element)
{
	const uint64_t address = h5_uint_from(element + 4, 8);
	struct h5_heap_dead dead;
	int rc = 0;

	h5_heap_dead_init(&dead, s->scratch.file);
	if (address)
		rc = h5_heap_dead_add(&dead, address, (uint32_t)h5_uint_from(element + 12, 4));
	if (!rc)
		rc = h5_heap_dead_give_up(&dead, h5_tx_free_extent, s->scratch.file);
	h5_heap_dead_release(&dead);
	return rc;
}

int heap_scene_set(struct heap_scene *s, unsigned i, const void *bytes, size_t n)
{
	uint8_t element[ELEMENT] = {0}, old[ELEMENT];
	const struct h5_heap_mark mark = h5_heap_batch_mark(&s->batch);
	uint64_t address = 0;
	uint32_t index = 0;
	int rc = s->batched && n ? heap_scene_put(s, bytes, n, &address, &index) : 0;

	if (rc)
		h5_heap_batch_back(&s->batch, &mark);
	if (rc)
		return rc;
	h5_unit_begin(s->scratch.file);
	if (n && !s->batched)
		rc = heap_scene_put(s, bytes, n, &address, &index);
	if (!rc)
		rc = h5_file_read(s->scratch.file, heap_scene_element_at(s, i), old, sizeof old);
	h5_uint_to(element, i < COUNT ? n : n / 4, 4);
	h5_uint_to(element + 4, address, 8);
	h5_uint_to(element + 12, index, 4);
	if (!rc)
		rc = h5_tx_patch(s->scratch.file, heap_scene_element_at(s, i), element, sizeof element,
				 H5_STAGE_OBJECT);
	if (!rc && !s->batched)
		rc = heap_scene_give_up(s, old);
	rc = h5_unit_end(s->scratch.file, rc);
	if (rc && s->batched)
		h5_heap_batch_back(&s->batch, &mark);
	return rc;
}

void heap_scene_set_random(struct heap_scene *s, unsigned i, size_t n)
{
	uint8_t *bytes = malloc(n + 4);

	if (i >= COUNT)
		n -= n % 4;
	for (size_t at = 0; at < n; at++)
		bytes[at] = (uint8_t)('a' + heap_scene_random(s) % 26);
	SUCCEEDS(heap_scene_set(s, i, bytes, n));
	heap_scene_keep(s, i, bytes, n);
	free(bytes);
}

void heap_scene_verify(struct heap_scene *s)
{
	struct h5_datatype *type = h5_datatype_make_vlen_string(8, H5_CHARSET_UTF8);
	struct h5_buf out;

	SUCCEEDS(h5_heap_batch_flush(&s->batch));
	h5_buf_init(&out, SIZE_MAX);
	for (unsigned i = 0; i < ELEMENTS; i++) {
		uint8_t element[ELEMENT];
		uint64_t address;

		SUCCEEDS(h5_file_read(s->scratch.file, heap_scene_element_at(s, i), element, sizeof element));
		address = h5_uint_from(element + 4, 8);
		if (i >= COUNT) /* so that the length is in bytes */
			h5_uint_to(element, 4 * h5_uint_from(element, 4), 4);
		out.size = 0;
		SUCCEEDS(h5_value_vlen_string(s->scratch.file, type, element, &out));
		ck_assert_uint_eq(out.size, s->model[i].n);
		ck_assert(!out.size || !memcmp(out.data, s->model[i].bytes, out.size));
		if (address)
			SUCCEEDS(h5_global_heap_check(s->scratch.file, address));
	}
	h5_buf_release(&out);
	h5_datatype_free(type);
}

void heap_scene_write_model(const struct heap_scene *s, char path[128])
{
	FILE *f;

	snprintf(path, 128, "%s/model", scratch_folder());
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	for (unsigned i = 0; i < ELEMENTS; i++) {
		for (size_t at = 0; at < s->model[i].n; at++)
			fprintf(f, "%02x", s->model[i].bytes[at]);
		fputc('\n', f);
	}
	ck_assert_int_eq(fclose(f), 0);
}

void heap_scene_judge(struct heap_scene *s)
{
	char model[128];

	scratch_close(&s->scratch);
	heap_scene_write_model(s, model);
	scratch_judge_python("tests/judge/global_heap_judge.py %s %s", model, s->scratch.path);
}
