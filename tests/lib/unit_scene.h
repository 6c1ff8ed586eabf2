/* A transaction in which a unit of change begins. */
#ifndef H5_TESTS_UNIT_SCENE_H
#define H5_TESTS_UNIT_SCENE_H

#include "change/transaction.h"
#include "scratch.h"

enum { AT = 2048, BLOCK = 300, CHUNK = 1000 };

/* What is known of the file in memory, as an index' header is. */
struct known {
	uint64_t address;
	unsigned changes;
};

struct scene {
	struct scratch scratch;
	struct h5_file *file;
	struct fault_io *fault;		   /* through which the file is read and written; NULL: none */
	uint64_t size;			   /* bytes of the file at first */
	uint64_t put, other, old, raw, at; /* blocks: new ones before the unit; a committed one; new ones */
	struct known known;
	uint8_t *before; /* bytes of the file, pending changes and new blocks included */
	bool in_unit;
	unsigned fail; /* step of the unit that fails */
	unsigned step;
};

/* Begins a transaction, with changes of before the unit. */
void scene_init(struct scene *s);
/* The same with a file that can fail; what is read for checks does not. */
void scene_init_wrapped(struct scene *s, struct fault_io *fault);
void scene_release(struct scene *s);
/* n times the value is what the file seems to hold. */
void scene_check_bytes(const struct scene *s, uint64_t at, uint8_t value, size_t n);
/* Changes n bytes to the value. */
int scene_patch(struct scene *s, uint64_t at, uint8_t value, size_t n, unsigned stage);
/* The address of a new block that is full of the value. */
uint64_t scene_new_block(struct h5_file *file, uint8_t value);
/* Bytes of the file up to the last block of before the unit. To be freed. */
uint8_t *scene_view(const struct scene *s);

#endif
