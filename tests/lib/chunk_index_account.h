/* What tests/fixtures/chunk_index.py says of its datasets, and their open indexes. */
#ifndef H5_TESTS_CHUNK_INDEX_ACCOUNT_H
#define H5_TESTS_CHUNK_INDEX_ACCOUNT_H

#include "base/checked.h"
#include "base/error.h"
#include "chunk_index/chunk_index.h"
#include "store/file_set.h"
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the fixture's account ---- */

struct expected {
	uint64_t offset[H5_RANK_MAX]; /* element coordinates */
	struct h5_chunk chunk;
	bool walked;
};

struct fixture {
	char file[64], name[64];
	uint64_t layout_address;
	size_t layout_size;
	bool filtered;
	struct h5_dataspace space;
	uint64_t step; /* values: 1, 2, ...; 0: chunks are listed */
	size_t count;
	struct expected *chunks; /* sorted by address */
};

static inline const char *data_path(const char *name)
{
	static char path[4096];
	const char *folder = getenv("H5FS_TEST_DATA");

	snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/data", name);
	return path;
}

static inline int by_address(const void *a, const void *b)
{
	const struct expected *x = a, *y = b;

	return x->chunk.address < y->chunk.address ? -1 : x->chunk.address > y->chunk.address;
}

static inline void read_chunks(FILE *text, struct fixture *f)
{
	ck_assert_int_eq(fscanf(text, "%zu", &f->count), 1);
	f->chunks = calloc(f->count + 1, sizeof *f->chunks);
	ck_assert_ptr_nonnull(f->chunks);
	for (size_t i = 0; i < f->count; i++) {
		struct expected *e = &f->chunks[i];

		for (unsigned d = 0; d < f->space.rank; d++)
			ck_assert_int_eq(fscanf(text, "%" SCNu64, &e->offset[d]), 1);
		ck_assert_int_eq(fscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu32, &e->chunk.address,
					&e->chunk.size, &e->chunk.filter_mask),
				 3);
	}
	qsort(f->chunks, f->count, sizeof *f->chunks, by_address);
}

/* The next paragraph; false at the end. */
static inline bool read_fixture(FILE *text, struct fixture *f)
{
	char word[16];
	int filtered;

	memset(f, 0, sizeof *f);
	if (fscanf(text, " dataset %63s %63s %*u %" SCNu64 " %zu %u %d", f->file, f->name, &f->layout_address,
		   &f->layout_size, &f->space.rank, &filtered) != 6)
		return false;
	ck_assert_uint_le(f->space.rank, H5_RANK_MAX);
	f->filtered = filtered;
	f->space.kind = H5_SPACE_SIMPLE;
	ck_assert_int_eq(fscanf(text, "%15s", word), 1);
	ck_assert_str_eq(word, "dims");
	for (unsigned d = 0; d < f->space.rank; d++)
		ck_assert_int_eq(fscanf(text, "%" SCNu64, &f->space.dims[d]), 1);
	ck_assert_int_eq(fscanf(text, "%15s", word), 1);
	ck_assert_str_eq(word, "max");
	for (unsigned d = 0; d < f->space.rank; d++) {
		int64_t max;

		ck_assert_int_eq(fscanf(text, "%" SCNd64, &max), 1);
		f->space.max[d] = max < 0 ? H5_UNLIMITED : (uint64_t)max;
	}
	ck_assert_int_eq(fscanf(text, "%15s", word), 1);
	if (!strcmp(word, "chunks"))
		read_chunks(text, f);
	else
		ck_assert_int_eq(fscanf(text, "%" SCNu64, &f->step), 1);
	return true;
}

static inline FILE *open_account(void)
{
	FILE *text = fopen(data_path("chunk_index.txt"), "r");

	ck_assert_ptr_nonnull(text);
	return text;
}

/* The account of one dataset. */
static inline struct fixture find_fixture(const char *file, const char *name)
{
	FILE *text = open_account();
	struct fixture f;
	bool found = false;

	while (!found && read_fixture(text, &f)) {
		found = !strcmp(f.file, file) && !strcmp(f.name, name);
		if (!found)
			free(f.chunks);
	}
	fclose(text);
	ck_assert_msg(found, "no dataset %s in %s", name, file);
	return f;
}

/* ---- an open index ---- */

struct opened {
	struct h5_file_set *set;
	struct h5_file *file;
	struct h5_layout layout;
	struct h5_chunk_index *index;
};

static const struct h5_file_set_options options = {.block_cache = 64 << 20, .chunk_cache = 1 << 20};

/* `set` is taken over. */
static inline int open_index(struct opened *o, struct h5_file_set *set, const struct fixture *f)
{
	uint8_t message[256];
	struct h5_reader r;
	uint64_t bytes;
	int rc;

	*o = (struct opened){.set = set, .file = h5_file_set_root(set)};
	ck_assert_uint_le(f->layout_size, sizeof message);
	rc = h5_file_read(o->file, f->layout_address, message, f->layout_size);
	if (rc)
		return rc;
	r = h5_file_reader(o->file, message, f->layout_size, f->layout_address);
	rc = h5_layout_decode(&r, &o->layout);
	if (!rc && o->layout.class != H5_LAYOUT_CHUNKED)
		rc = -EUCLEAN;
	if (rc)
		return rc;
	if (!h5_product(o->layout.chunked.dims, o->layout.chunked.rank, &bytes))
		return -EUCLEAN;
	return h5_chunk_index_open(o->file, o->layout.version, &o->layout.chunked, &f->space, f->filtered,
				   bytes * o->layout.chunked.element_size, &o->index);
}

static inline void close_index(struct opened *o)
{
	h5_chunk_index_close(o->index);
	h5_file_set_close(o->set);
}

/* The next chunk in row-major order; false after the last. */
static inline bool next_chunk(const struct fixture *f, const struct h5_chunk_layout *layout, uint64_t *scaled)
{
	for (unsigned d = f->space.rank; d-- > 0;) {
		if (++scaled[d] * layout->dims[d] < f->space.dims[d])
			return true;
		scaled[d] = 0;
	}
	return false;
}

static inline int count_chunk(void *arg, const struct h5_chunk *chunk)
{
	(void)chunk;
	++*(uint64_t *)arg;
	return 0;
}

#endif
