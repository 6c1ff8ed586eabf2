/* An old-style group and a model of its links, for tests that change symbol tables. The files are those of
 * tests/fixtures/symbol_table_write.py, which makes the same names. */
#ifndef H5_TESTS_SYMBOL_MODEL_H
#define H5_TESTS_SYMBOL_MODEL_H

#include "change/transaction.h"
#include "object/symbol_table.h"
#include "object/symbol_table_write.h"
#include "scratch.h"

enum { SYMBOLS = 30000, TARGETS = 10, SYMBOL_NAME = 600 };

struct symbol_link {
	char kind;	 /* 'h', 's'; 0: there is none */
	unsigned target; /* number */
};

struct symbol_model {
	struct scratch scratch;
	struct h5_file *file;
	uint64_t group; /* header */
	uint64_t targets[TARGETS];
	struct h5_symbol_table table;
	struct symbol_link links[SYMBOLS]; /* by number */
	unsigned seed;
};

/* Opens a copy of symbol_table_write-NAME.h5, which has the links of the first numbers. */
struct symbol_model *symbol_model_begin(const char *name, unsigned links, struct fault_io *fault);
void symbol_model_end(struct symbol_model *m);
void symbol_model_open(struct symbol_model *m);
void symbol_model_reopen(struct symbol_model *m); /* after a commit */
void symbol_model_commit(struct symbol_model *m);

size_t symbol_name(unsigned i, char name[SYMBOL_NAME]);
unsigned symbol_random(struct symbol_model *m, unsigned n);

/* Changes of link i, made to the file, and to the model if they succeed. */
int symbol_insert(struct symbol_model *m, unsigned i, char kind, unsigned target);
int symbol_change(struct symbol_model *m, unsigned i, char kind, unsigned target);
int symbol_remove(struct symbol_model *m, unsigned i);
/* Changes that succeed, of the first n numbers: so many percent of them make links. */
void symbol_shake(struct symbol_model *m, unsigned changes, unsigned n, unsigned percent);

/* Our reader sees what the model says: in the listing, and by each name. */
void symbol_check(struct symbol_model *m);
/* Writes the model for tests/judge/symbol_table_judge.py. */
void symbol_save(const struct symbol_model *m, const char *path);
/* Closes the file, asks libhdf5 about it, and opens it again. */
void symbol_judge(struct symbol_model *m);

#endif
