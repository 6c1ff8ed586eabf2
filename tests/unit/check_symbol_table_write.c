/* Links of old-style groups, made, changed and removed, against a model and by libhdf5
 * (tests/judge/symbol_table_judge.py). */
#include "symbol_model.h"

#include <stdio.h>
#include <string.h>

static const struct file {
	const char *name;
	unsigned links;
} files[] = {{"0", 0},	     {"1", 1},	      {"8", 8},	      {"100", 100},  {"removed", 100},
	     {"block", 100}, {"narrow", 500}, {"small", 700}, {"wide", 600}, {"20000", 20000}};

enum { FILES = sizeof files / sizeof *files };

START_TEST(random_changes)
{
	const struct file *f = &files[_i];
	struct symbol_model *m = symbol_model_begin(f->name, f->links, NULL);
	unsigned n = f->links < 1000 ? f->links + 300 : 25000;

	symbol_check(m);
	for (unsigned round = 0; round < 10; round++) {
		symbol_shake(m, 60, n, round % 2 ? 30 : 80);
		symbol_model_commit(m);
	}
	symbol_model_reopen(m);
	symbol_check(m);
	symbol_shake(m, 1000, n, 90);
	symbol_check(m);
	symbol_judge(m);
	symbol_shake(m, 1000, n, 10);
	symbol_model_commit(m);
	symbol_shake(m, 300, n, 50);
	symbol_check(m);
	symbol_judge(m);
	symbol_model_end(m);
}
END_TEST

UNIT_MAIN_LOOPS("symbol_table_write", {random_changes, FILES})
