/* Datasets of every layout, chunk index and filter (tests/fixtures/dataset_write.py), open for writing, each
 * beside a model in memory of what it holds: for tests/unit/check_dataset_*.c. */
#ifndef H5_TESTS_DATASET_MODEL_H
#define H5_TESTS_DATASET_MODEL_H

#include "dataset/writer.h"
#include "scratch.h"

enum {
	DATASETS_MAX = 300,
	DATA_MAX = 1 << 18,
};

struct model {
	char name[64];
	unsigned long long address, rows, row, most;
	size_t element;
	int error; /* of opening it for writing */
	uint8_t fill[64];
	uint8_t *data;
	size_t size;
	struct h5_dataset_writer *writer;
};

struct model_run {
	struct scratch scratch;
	char file_name[64];
	struct fault_io fault;
	struct model models[DATASETS_MAX];
	unsigned count;
	uint64_t random;
};

/* A number below this one. */
uint64_t model_draw(struct model_run *r, uint64_t below);
/* A copy of a fixture's file and its raw files, open for writing. */
void model_begin(struct model_run *r, const char *version, uint64_t seed);
/* The writers and the file; scratch_open() opens it again. */
void model_close(struct model_run *r);
void model_end(struct model_run *r);
struct model *model_find(struct model_run *r, const char *name);
/* Of the dataset; opened where it is not. */
struct h5_dataset_writer *model_writer(struct model_run *r, struct model *m);
void model_append_rows(struct model_run *r, struct model *m, const uint8_t *data, uint64_t rows);
/* What a reader finds, once the writer has settled. */
void model_compare(struct model_run *r, struct model *m);
void model_compare_all(struct model_run *r);
void model_commit(struct model_run *r);
/* libhdf5 compares the file with the models, and goes on. */
void model_judge(struct model_run *r);
/* Bytes that compress somewhat. */
void model_fill(struct model_run *r, uint8_t *data, size_t n);
/* Of the model alone. */
void model_set_rows(struct model *m, uint64_t rows);
/* The rest changes the dataset and its model by bytes that are drawn; more rows than there may be are
 * refused. */
void model_overwrite(struct model_run *r, struct model *m, uint64_t offset, size_t n);
void model_append(struct model_run *r, struct model *m, uint64_t rows);
void model_resize(struct model_run *r, struct model *m, uint64_t rows);
/* Commits, and compares all after opening the file anew. */
void model_reopen(struct model_run *r);

#endif
