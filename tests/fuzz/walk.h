/* A walk over all that a mount shows of a file, as a user with find, cat, getfattr and lseek would do it. */
#ifndef H5_TESTS_FUZZ_WALK_H
#define H5_TESTS_FUZZ_WALK_H

#include "store/file_set.h"
#include "vfs/vfs.h"

#include <stdbool.h>

/* How much work one input may ask for. Big files are no finding; who does not ask if it is still wanted is
 * one, and libFuzzer's time limit finds it. */
struct fuzz_budget {
	long checks; /* of h5_interrupt_check(), over all requests */
	long nodes;
};

#define FUZZ_BUDGET                                                                                          \
	{                                                                                                    \
		.checks = 2000, .nodes = 300                                                                 \
	}

/* Begins a request of this thread: its work ends with -EINTR when the budget is used up. */
void fuzz_request(struct fuzz_budget *budget);

struct fuzz_walk {
	struct h5_vfs *vfs;
	struct fuzz_budget *budget;
	bool honest;	   /* fuzz_looks_honest() */
	bool views;	   /* in the views, too */
	size_t first_view; /* the one that is first; counted from any number on */
	/* Called for each file; may be NULL. */
	void (*file)(void *arg, struct h5_node *node, const struct stat *st);
	void *arg;
};

/* Not all files can keep promises: what a damaged index says depends on who asks, and where chunks of two
 * datasets overlap, or lie in metadata, writing one changes the other. True: nothing in it lacks a checksum;
 * nobody has changed a thing where these are right, too (fuzz_wrong_checksums). */
bool fuzz_looks_honest(const uint8_t *data, size_t size);

void fuzz_walk(const struct fuzz_walk *walk);

/* Small caches, so that they evict, or large ones. */
struct h5_file_set_options fuzz_set_options(bool small);

#endif
