#include "unit_scene.h"

#include "fault_alloc.h"

#include <stdlib.h>
#include <string.h>

void scene_check_bytes(const struct scene *s, uint64_t at, uint8_t value, size_t n)
{
	bool was = fault_alloc_count(false), reads = s->fault && s->fault->reads;
	uint8_t expected[BLOCK], now[BLOCK];

	memset(expected, value, n);
	if (reads)
		s->fault->reads = false;
	SUCCEEDS(h5_file_read(s->file, at, now, n));
	if (reads)
		s->fault->reads = true;
	ck_assert_mem_eq(now, expected, n);
	fault_alloc_count(was);
}

int scene_patch(struct scene *s, uint64_t at, uint8_t value, size_t n, unsigned stage)
{
	uint8_t bytes[BLOCK];
	int rc;

	memset(bytes, value, n);
	rc = h5_tx_patch(s->file, at, bytes, n, stage);
	/* Inside of a unit, too, changes are seen at once. */
	if (!rc)
		scene_check_bytes(s, at, value, n);
	return rc;
}

uint64_t scene_new_block(struct h5_file *file, uint8_t value)
{
	uint64_t at = H5_UNDEF;
	uint8_t bytes[BLOCK];

	memset(bytes, value, sizeof bytes);
	SUCCEEDS(h5_tx_store(file, &at, bytes, sizeof bytes, H5_STAGE_BLOCK));
	return at;
}

uint8_t *scene_view(const struct scene *s)
{
	uint64_t end = s->other + BLOCK;
	uint8_t *bytes = malloc(end);

	ck_assert_ptr_nonnull(bytes);
	SUCCEEDS(h5_file_read(s->file, 0, bytes, end));
	return bytes;
}

void scene_init(struct scene *s)
{
	scene_init_wrapped(s, NULL);
}

void scene_init_wrapped(struct scene *s, struct fault_io *fault)
{
	memset(s, 0, sizeof *s);
	s->fault = fault;
	scratch_init(&s->scratch, "dataset_latest.h5");
	scratch_wrap(&s->scratch, fault);
	scratch_open(&s->scratch);
	s->file = s->scratch.file;
	s->size = h5_file_size(s->file);
	ck_assert_uint_gt(s->size, AT + 2 * H5_CELL);
	s->old = AT + H5_CELL;
	SUCCEEDS(scene_patch(s, AT + 100, 1, 32, H5_STAGE_BLOCK));
	SUCCEEDS(scene_patch(s, AT + 140, 2, 10, H5_STAGE_INDEX));
	s->put = scene_new_block(s->file, 3);
	s->other = scene_new_block(s->file, 4);
	ck_assert_uint_gt(s->other, s->put);
	s->known = (struct known){7, 0};
	s->before = scene_view(s);
}

void scene_release(struct scene *s)
{
	free(s->before);
	scratch_release(&s->scratch);
}
