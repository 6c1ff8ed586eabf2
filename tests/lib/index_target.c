#include "index_target.h"

#include "base/checked.h"
#include "change/object_header_edit.h"
#include "object/path.h"

#include <string.h>

enum { RAW_STEP = 1000 };

int target_open_index(struct target *t)
{
	const struct h5_chunk_layout *layout = &t->layout.chunked;
	uint64_t size;

	ck_assert(h5_product(layout->dims, layout->rank, &size));
	h5_chunk_index_close(t->index);
	t->index = NULL;
	return h5_chunk_index_open(t->file, t->layout.version, layout, &t->space, t->filtered,
				   size * layout->element_size, &t->index);
}

int target_load(struct target *t)
{
	struct h5_header header;
	const struct h5_message *m;
	struct h5_reader r;

	SUCCEEDS(h5_header_load(t->file, t->header, &header));
	m = h5_header_find(&header, H5_MSG_DATASPACE);
	r = h5_file_reader(t->file, m->data, m->size, m->address);
	SUCCEEDS(h5_dataspace_decode(&r, &t->space));
	m = h5_header_find(&header, H5_MSG_LAYOUT);
	r = h5_file_reader(t->file, m->data, m->size, m->address);
	SUCCEEDS(h5_layout_decode(&r, &t->layout));
	t->filtered = h5_header_find(&header, H5_MSG_PIPELINE);
	h5_header_release(&header);
	t->raw_left = 0;
	return target_open_index(t);
}

static void open_scratch(struct target *t)
{
	scratch_open(&t->scratch);
	t->file = t->scratch.file;
}

void target_open(struct target *t)
{
	open_scratch(t);
	SUCCEEDS(target_load(t));
}

void target_init(struct target *t, const char *fixture, const char *name, struct fault_io *fault)
{
	struct h5_file *file;

	memset(t, 0, sizeof *t);
	ck_assert_uint_lt(strlen(name), sizeof t->name);
	strcpy(t->name, name);
	scratch_init(&t->scratch, fixture);
	scratch_wrap(&t->scratch, fault);
	open_scratch(t);
	SUCCEEDS(h5_path_find(t->file, h5_file_superblock(t->file)->root, name, strlen(name), &file,
			      &t->header));
	SUCCEEDS(target_load(t));
	t->filter_mask = t->filtered;
}

void target_close(struct target *t)
{
	h5_chunk_index_close(t->index);
	t->index = NULL;
	scratch_close(&t->scratch);
	t->file = NULL;
}

void target_release(struct target *t)
{
	target_close(t);
	scratch_release(&t->scratch);
}

static int update_layout(const void *arg, uint8_t *body, size_t n)
{
	const struct target *t = arg;
	const struct h5_superblock *sb = h5_file_superblock(t->file);

	SUCCEEDS(h5_layout_update(body, n, sb->size_of_offsets, sb->size_of_lengths, &t->layout));
	return 0;
}

static int update_space(const void *arg, uint8_t *body, size_t n)
{
	const struct target *t = arg;

	SUCCEEDS(h5_dataspace_update(body, n, h5_file_superblock(t->file)->size_of_lengths, &t->space));
	return 0;
}

int target_commit(struct target *t)
{
	int rc;

	t->layout.chunked = *h5_chunk_index_layout(t->index);
	rc = h5_header_update(t->file, t->header, H5_MSG_LAYOUT, update_layout, t);
	if (!rc)
		rc = h5_header_update(t->file, t->header, H5_MSG_DATASPACE, update_space, t);
	if (rc)
		return rc;
	/* What is left of the space is committed with the rest. */
	t->raw_left = 0;
	return h5_tx_commit(t->file);
}

int target_count_chunk(void *arg, const struct h5_chunk *chunk)
{
	(void)chunk;
	++*(uint64_t *)arg;
	return 0;
}

uint64_t target_count(const struct target *t)
{
	uint64_t n = 0;

	SUCCEEDS(h5_chunk_index_walk(t->index, target_count_chunk, &n));
	return n;
}

void target_compare(struct target *t, const char *path, const char *name)
{
	target_close(t);
	scratch_own_judge_python("tests/judge/index_structure.py '%s' %s '%s' %s", t->scratch.path, t->name,
				 path, name);
	scratch_judge_python("tests/judge/index_structure.py --values '%s' %s '%s' %s", t->scratch.path,
			     t->name, path, name);
}

/* ---- numbered chunks ---- */

/* Of two dimensions the one that grows is the slower one. */
static unsigned slow_dimension(const struct target *t)
{
	return t->space.rank > 1 && t->space.max[1] == H5_UNLIMITED;
}

static uint64_t row_length(const struct target *t)
{
	return t->space.rank > 1 ? t->space.dims[!slow_dimension(t)] : 1;
}

static void to_scaled(const struct target *t, uint64_t n, uint64_t *scaled)
{
	unsigned slow = slow_dimension(t);

	scaled[!slow] = n % row_length(t);
	scaled[slow] = n / row_length(t);
}

int target_set(struct target *t, uint64_t n)
{
	struct h5_chunk chunk = {.size = 1, .filter_mask = t->filter_mask};
	uint8_t value = (uint8_t)(n * 7 + 3);
	uint64_t scaled[H5_RANK_MAX];
	int rc = 0;

	if (!t->raw_left) {
		rc = h5_tx_allocate(t->file, H5_ALLOCATE_RAW, RAW_STEP, &t->raw);
		t->raw_left = rc ? 0 : RAW_STEP;
	}
	chunk.address = t->raw;
	if (!rc)
		rc = h5_tx_write(t->file, chunk.address, &value, 1);
	if (rc)
		return rc;
	t->raw++;
	t->raw_left--;
	to_scaled(t, n, scaled);
	return h5_chunk_index_set(t->index, scaled, &chunk);
}

void target_set_range(struct target *t, uint64_t first, uint64_t last)
{
	for (uint64_t n = first; n < last; n++)
		SUCCEEDS(target_set(t, n));
}

int target_publish(struct target *t, uint64_t n)
{
	t->space.dims[slow_dimension(t)] = n / row_length(t);
	h5_chunk_index_resize(t->index, t->space.dims);
	return target_commit(t);
}

void target_append(struct target *t, uint64_t n, uint64_t step)
{
	for (uint64_t first = 0; first < n; first += step) {
		uint64_t last = h5_min(first + step, n);

		target_set_range(t, first, last);
		SUCCEEDS(target_publish(t, last));
	}
}

uint64_t target_value(const struct target *t, uint64_t n)
{
	uint64_t scaled[H5_RANK_MAX];
	struct h5_chunk chunk;
	uint8_t value;

	to_scaled(t, n, scaled);
	SUCCEEDS(h5_chunk_index_lookup(t->index, NULL, scaled, &chunk));
	if (chunk.address == H5_UNDEF)
		return H5_UNDEF;
	if (chunk.size != 1 || chunk.filter_mask != t->filter_mask)
		ck_abort_msg("chunk %ju: %ju bytes, mask %u", (uintmax_t)n, (uintmax_t)chunk.size,
			     chunk.filter_mask);
	SUCCEEDS(h5_file_read(t->file, chunk.address, &value, 1));
	return value;
}

void target_assert_stored(const struct target *t, uint64_t first, uint64_t last)
{
	for (uint64_t n = first; n < last; n++)
		if (target_value(t, n) != (uint8_t)(n * 7 + 3))
			ck_abort_msg("chunk %ju", (uintmax_t)n);
}

uint64_t target_trim(struct target *t, uint64_t first)
{
	uint64_t n = 0;

	SUCCEEDS(h5_chunk_index_trim(t->index, first, target_count_chunk, &n));
	return n;
}

static int count_block(void *arg, uint64_t address, uint64_t n)
{
	(void)address;
	(void)n;
	++*(unsigned *)arg;
	return 0;
}

uint64_t target_check_empty(struct target *t)
{
	struct h5_chunk_cursor cursor = {0};
	const uint64_t n = 7;
	unsigned blocks = 0;
	const struct h5_extent_visits visits = {count_block, count_block, &blocks};
	uint64_t next;
	bool stored;

	ck_assert_uint_eq(target_value(t, n), H5_UNDEF);
	SUCCEEDS(h5_chunk_index_gap(t->index, &cursor, &n, &stored, &next));
	h5_chunk_cursor_release(t->index, &cursor);
	ck_assert(!stored);
	ck_assert_uint_eq(target_count(t), 0);
	SUCCEEDS(h5_chunk_index_extents(t->index, &visits));
	ck_assert_uint_eq(blocks, 1);
	ck_assert_uint_eq(target_trim(t, 0), 0);
	target_set_range(t, n, n + 1);
	SUCCEEDS(target_publish(t, 10));
	target_close(t);
	target_open(t);
	ck_assert_uint_eq(target_count(t), 1);
	target_assert_stored(t, n, n + 1);
	return next;
}
