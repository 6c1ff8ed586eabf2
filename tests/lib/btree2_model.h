/* Chunks of 4 bytes under a version 2 B-tree, set and removed at random beside a model in memory: for
 * tests/unit/check_btree2_*.c. Files are those of tests/fixtures/btree2_write.py. */
#ifndef H5_TESTS_BTREE2_MODEL_H
#define H5_TESTS_BTREE2_MODEL_H

#include "change/btree2_write.h"
#include "format/btree2.h"
#include "index_target.h"

/* ---- one chunk ---- */

/* Puts it into new space. */
int btree2_set(struct target *t, const uint64_t *scaled, uint32_t value);
int btree2_remove(struct target *t, const uint64_t *scaled);

/* ---- what holds for every tree ---- */

struct btree2_block {
	uint64_t address;
	size_t size; /* with checksum */
};

struct btree2_tree {
	const struct target *target;
	struct btree2_block *blocks; /* the header first; NULL: not asked for */
	size_t block_count;
	struct h5_btree2_header header;
	uint64_t previous[H5_RANK_MAX]; /* record */
	bool any;
};

/* The whole tree; `target`, and `blocks` where they are asked for, are set. */
void btree2_check(struct btree2_tree *tree);

/* ---- the model ---- */

enum { MODEL_MAX = 40 * 40 * 8 };

struct model {
	struct target t;
	uint32_t node_size;
	uint64_t shape[3];	    /* chunks; further dimensions have one */
	uint32_t values[MODEL_MAX]; /* 0: no chunk */
	uint32_t value;
	uint64_t random;
};

/* An empty dataset of the name, whose tree will have nodes of this size. `fault` as for scratch_wrap(). */
struct model *model_begin(const char *name, uint32_t node_size, const uint64_t shape[3],
			  struct fault_io *fault);
/* A number below n. */
uint64_t model_choose(struct model *m, uint64_t n);
/* Chunk i, in row-major order. */
void model_scaled(const struct model *m, size_t i, uint64_t *scaled);
size_t model_size(const struct model *m);
int model_set(struct model *m, size_t i);
int model_remove(struct model *m, size_t i);
/* Sets and removes chunks here and there; `grow`: sets in a hundred. */
void model_shake(struct model *m, unsigned times, unsigned grow);
/* The index has what the model has. */
void model_check(const struct model *m);
/* Commits, and checks what is found after opening the file anew. */
void model_reopen(struct model *m);
/* libhdf5 reads the file (tests/judge/btree2_judge.py); seed: and changes it. */
void model_judge(struct model *m, unsigned seed);
void model_end(struct model *m);

#endif
