#include "fuse/closer.h"

#include "base/thread.h"
#include "tree/tree.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct h5_closer {
	struct h5_tree *tree; /* borrowed */
	pthread_t thread;
};

static void *run(void *arg)
{
	struct h5_tree *tree = ((struct h5_closer *)arg)->tree;

	while (h5_tree_close_idle(tree))
		;
	return NULL;
}

int h5_closer_start(struct h5_tree *tree, struct h5_closer **out)
{
	struct h5_closer *c = malloc(sizeof *c);
	int rc;

	if (!c)
		return -ENOMEM;
	c->tree = tree;
	rc = h5_thread_start(&c->thread, run, c, 0);
	if (rc) {
		free(c);
		return rc;
	}
	*out = c;
	return 0;
}

void h5_closer_stop(struct h5_closer *c)
{
	if (!c)
		return;
	h5_tree_await_none(c->tree);
	pthread_join(c->thread, NULL);
	free(c);
}
