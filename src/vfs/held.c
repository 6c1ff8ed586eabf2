/* Contents of files that the kernel reads without opening them.
 *
 * A node's contents are opened with the first read, and stay open for the next ones. The daemon does
 * not learn when a program closes the file, so contents that no request uses are closed, but for a few that
 * were used last. */
#include "vfs/held.h"

#include "vfs/handle.h"

#include <assert.h>
#include <fcntl.h>

enum {
	SMALL_MAX = 16, /* most contents that hold no more than a reference to a dataset in the cache */
	LARGE_MAX = 4,	/* most others, such as texts */
};

static bool is_small(const struct h5_handle *h)
{
	return h->view.dataset && !h->view.own && !h->view.mine && !h->view.ref;
}

/* Makes it the one that was used last. With vfs->lock. */
static struct h5_handle *use(struct h5_vfs *vfs, struct h5_handle *h)
{
	if (h != vfs->held) {
		DL_DELETE(vfs->held, h);
		DL_PREPEND(vfs->held, h);
	}
	h->users++;
	return h;
}

/* With vfs->lock. */
static void add(struct h5_vfs *vfs, struct h5_handle *h)
{
	h->node->held = h;
	h->node->references++;
	DL_PREPEND(vfs->held, h);
	h->users = 1;
}

int h5_vfs_hold_file(struct h5_vfs *vfs, struct h5_node *node, struct h5_handle **handle)
{
	struct h5_handle *made;
	int rc;

	pthread_mutex_lock(&vfs->lock);
	*handle = node->held ? use(vfs, node->held) : NULL;
	pthread_mutex_unlock(&vfs->lock);
	if (*handle)
		return 0;
	rc = h5_handle_open(vfs, node, O_RDONLY, &made);
	if (rc)
		return rc;
	pthread_mutex_lock(&vfs->lock);
	if (node->held) { /* another request was faster */
		*handle = use(vfs, node->held);
	} else {
		add(vfs, made);
		*handle = made;
	}
	pthread_mutex_unlock(&vfs->lock);
	if (*handle != made)
		h5_handle_free(made);
	return 0;
}

/* Takes those out of the list that are too many. With vfs->lock. */
static struct h5_handle *take_old(struct h5_vfs *vfs)
{
	struct h5_handle *h, *next, *old = NULL;
	unsigned small = 0, large = 0;

	DL_FOREACH_SAFE(vfs->held, h, next)
	{
		unsigned *count = is_small(h) ? &small : &large;

		if (++*count <= (count == &small ? SMALL_MAX : LARGE_MAX) || h->users)
			continue;
		DL_DELETE(vfs->held, h);
		h->node->held = NULL;
		DL_APPEND(old, h);
	}
	return old;
}

static void close_all(struct h5_handle *list)
{
	struct h5_handle *h, *next;

	DL_FOREACH_SAFE(list, h, next)
	{
		struct h5_vfs *vfs = h->vfs;
		struct h5_node *node = h->node;

		h5_handle_free(h);
		h5_vfs_forget(vfs, node, 1);
	}
}

void h5_vfs_release_file(struct h5_handle *h)
{
	struct h5_vfs *vfs = h->vfs;
	struct h5_handle *old;

	pthread_mutex_lock(&vfs->lock);
	assert(h->users);
	h->users--;
	old = take_old(vfs);
	pthread_mutex_unlock(&vfs->lock);
	close_all(old);
}

void h5_held_close(struct h5_vfs *vfs)
{
	struct h5_handle *h;

	DL_FOREACH(vfs->held, h)
	h->node->held = NULL;
	close_all(vfs->held);
	vfs->held = NULL;
}
