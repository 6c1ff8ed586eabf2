/* A dataset's chunk index in a scratch file, open for changes. */
#ifndef H5_TESTS_INDEX_TARGET_H
#define H5_TESTS_INDEX_TARGET_H

#include "change/transaction.h"
#include "chunk_index/chunk_index.h"
#include "scratch.h"

struct target {
	struct scratch scratch;
	char name[32];
	struct h5_file *file; /* NULL: it is closed */
	uint64_t header;
	struct h5_dataspace space;
	struct h5_layout layout;
	bool filtered;
	struct h5_chunk_index *index;
	uint32_t filter_mask;	/* of new chunks: they have passed no filter */
	uint64_t raw, raw_left; /* space for numbered chunks */
};

/* The dataset of the name in a copy of the fixture's file, open; `fault` as for scratch_wrap(). */
void target_init(struct target *t, const char *fixture, const char *name, struct fault_io *fault);
void target_open(struct target *t);
/* Reads the dataset's messages and opens the index, in the file that is open. */
int target_load(struct target *t);
/* Opens the index anew with what now stands in `layout` and `space`. */
int target_open_index(struct target *t);
void target_close(struct target *t); /* may run twice */
/* Closes and removes the file. */
void target_release(struct target *t);

/* What stands in the object header follows, and all is committed. */
int target_commit(struct target *t);
/* Chunks that a walk finds. */
uint64_t target_count(const struct target *t);
/* An h5_chunk_visit that counts in a uint64_t. */
int target_count_chunk(void *arg, const struct h5_chunk *chunk);
/* Closes the file. The dataset in it is as that one, in a path for the shell, and neither has anything wrong
 * with it (tests/judge/index_structure.py). */
void target_compare(struct target *t, const char *path, const char *name);

/* ---- chunks of one byte, numbered in the order of the index: chunk n has the value 7 n + 3 ---- */

int target_set(struct target *t, uint64_t n);
/* Those from first to before last. */
void target_set_range(struct target *t, uint64_t first, uint64_t last);
/* Publishes so many chunks. */
int target_publish(struct target *t, uint64_t n);
/* The first n chunks, a commit after each step. */
void target_append(struct target *t, uint64_t n, uint64_t step);
uint64_t target_value(const struct target *t, uint64_t n); /* H5_UNDEF: none */
void target_assert_stored(const struct target *t, uint64_t first, uint64_t last);
/* Chunks that a trim removes. */
uint64_t target_trim(struct target *t, uint64_t first);
/* The index is one block, which has no chunk, and takes one. Returns what a search for the next chunk said.
 */
uint64_t target_check_empty(struct target *t);

#endif
