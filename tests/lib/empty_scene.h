/* A file without objects, open for writing, in which each test makes its own. A program that includes this is
 * linked with scratch. */
#ifndef H5_TESTS_EMPTY_SCENE_H
#define H5_TESTS_EMPTY_SCENE_H

#include "change/transaction.h"
#include "dataset/writer.h"
#include "scratch.h"

static struct scratch scratch;

static void setup(void)
{
	scratch_init(&scratch, "header_create-latest.h5");
	scratch_open(&scratch);
}

static void teardown(void)
{
	SUCCEEDS(h5_tx_commit(scratch.file));
	h5_dataset_writers_close(scratch.file);
	scratch_release(&scratch);
}

#endif
