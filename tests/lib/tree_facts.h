/* All that a mount would show of a file, as lines of text: what tests of damage compare. */
#ifndef H5_TESTS_TREE_FACTS_H
#define H5_TESTS_TREE_FACTS_H

#include "base/buf.h"

#include <stddef.h>

/* One thing that was asked for, and the answer: bytes in printable form, or `!` and an errno. */
struct tree_fact {
	const char *key, *value;
};

struct tree_facts {
	struct h5_buf text;
	struct tree_fact *facts; /* by key */
	size_t count;
};

/* Opens the bytes as a file, and asks for everything: names, attributes, properties, contents. Bounded in the
 * number of objects and in the bytes that it reads of each, so that it ends on any file. */
void tree_facts_gather(const void *bytes, size_t size, struct tree_facts *facts);
void tree_facts_release(struct tree_facts *facts);

/* The first answer that is neither the true one nor an error; NULL: there is none. A group or a list that has
 * an error may lack what comes behind it. */
const struct tree_fact *tree_facts_wrong(const struct tree_facts *facts, const struct tree_facts *truth);
/* The first answer that is this error; NULL: none. */
const struct tree_fact *tree_facts_failed(const struct tree_facts *facts, int error);

#endif
