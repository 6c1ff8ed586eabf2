/* What is done to a file, and recorded, for tests/unit/crash_replay.c: each program of changes on each of the
 * files of tests/fixtures/crash_replay.py. */
#ifndef H5_TESTS_CRASH_WORKLOADS_H
#define H5_TESTS_CRASH_WORKLOADS_H

#include "dataset/writer.h"
#include "fault_io.h"

#define CRASH_FAILED(...)                                                                                    \
	do {                                                                                                 \
		fprintf(stderr, __VA_ARGS__);                                                                \
		fputc('\n', stderr);                                                                         \
		exit(1);                                                                                     \
	} while (0)

enum { CRASH_DATASETS_MAX = 4 };

/* What a dataset is from a state on. Each change of a dataset makes a state. */
struct crash_content {
	unsigned state;
	bool overwritten; /* elements that were committed were overwritten, perhaps in place */
	size_t rows;
	uint32_t *values; /* of the rows from `first` on; owned */
};

struct crash_dataset {
	char name[16];
	uint64_t address; /* of its object header */
	unsigned columns;
	uint32_t fill;
	size_t first; /* row that is looked at: before it nothing is stored */
	struct h5_dataset_writer *writer;
	struct crash_content *contents; /* in the order of their states; owned */
	size_t count;
};

struct crash_run {
	char name[64];
	bool swmr;    /* readers along */
	bool is_ours; /* libhdf5 cannot read it */
	unsigned count;
	struct crash_dataset datasets[CRASH_DATASETS_MAX];
	char path[512];
	struct h5_file *file; /* while it is changed */
	unsigned state;	      /* the last one */
	uint8_t *before;      /* the file; owned */
	size_t size;	      /* of it */
	/* File 0 is the HDF5 file, file 1 the journal. A mark is the state that was acknowledged. */
	struct fault_io fault;
	uint64_t random;
	/* Called when the file is open, and after each commit; NULL: nobody looks. */
	void (*look)(struct crash_run *run);
};

/* The numbers of elements that are looked at. */
size_t crash_elements(const struct crash_dataset *d, size_t rows);

/* The number of workloads; makes and records the i-th, in a file in the folder. */
unsigned crash_workload_count(void);
void crash_run_init(struct crash_run *run, unsigned i, uint64_t seed, const char *folder,
		    void (*look)(struct crash_run *run));
void crash_run_release(struct crash_run *run);

uint64_t crash_draw(uint64_t *random, uint64_t below);

#endif
