/* Dense links or attributes of a group, changed beside a model in memory: for tests/unit/check_dense_*.c. The
 * groups are those of tests/fixtures/dense_write.py. */
#ifndef H5_TESTS_DENSE_MODEL_H
#define H5_TESTS_DENSE_MODEL_H

#include "object/dense_write.h"
#include "scratch.h"

enum { DENSE_MAX = 6000, DENSE_NAME = 32, DENSE_MESSAGE = 61000 };

/* A message of the model: mN. */
struct dense_message {
	bool exists;
	unsigned version, size; /* of the path or of the attribute's bytes */
	int64_t order;
};

struct dense {
	struct scratch scratch;
	struct h5_file *file; /* NULL: it is closed */
	char name[40];
	enum h5_named_kind kind;
	uint64_t header; /* of the object */
	struct h5_named_info info;
	bool by_order;
	int64_t next_order;
	unsigned limit;	       /* messages are those from m0 to before this */
	const unsigned *sizes; /* of new messages */
	unsigned size_count;
	uint64_t random;
	struct dense_message messages[DENSE_MAX];
};

/* The group in a copy of the fixture's file, open; dense_end(). */
struct dense *dense_begin(const char *name, unsigned limit, struct fault_io *fault);
struct dense *dense_begin_in(const char *fixture, const char *name, unsigned limit, struct fault_io *fault);
void dense_end(struct dense *d);
void dense_open(struct dense *d);
int dense_load(struct dense *d); /* what the object header says */
void dense_close(struct dense *d);
uint64_t dense_choose(struct dense *d, uint64_t n);

/* The name of message i, and its n bytes; a static buffer. */
const char *dense_name(unsigned i);
const uint8_t *dense_message(const struct dense *d, unsigned i, unsigned version, unsigned size,
			     int64_t order, size_t *n);

/* One change, of the file and if it succeeds of the model. */
int dense_insert(struct dense *d, unsigned i, unsigned size);
int dense_replace(struct dense *d, unsigned i, unsigned size);
int dense_remove(struct dense *d, unsigned i);
/* Random changes; `grow`: insertions in a hundred. */
int dense_step(struct dense *d, unsigned grow);
void dense_shake(struct dense *d, unsigned times, unsigned grow);
/* Storage is made, if there is none. */
void dense_create(struct dense *d);

int dense_publish(struct dense *d); /* the info message follows */
int dense_commit(struct dense *d);
/* The storage is sound, and has what the model has. */
void dense_check(struct dense *d);
/* Commits and closes. */
void dense_rest(struct dense *d);
/* Commits, closes, has libhdf5 look (and with seed > 0, change a copy), and opens again. */
void dense_judge(struct dense *d, unsigned seed);
void dense_write_expected(const struct dense *d, const char *path);

#endif
