/* Changes of the mounted file: what may be changed, what must be done before and after a change, and commits.
 */
#include "vfs/private.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "change/transaction.h"
#include "store/statistics.h"
#include "vfs/changes.h"
#include "vfs/handle.h"
#include "vfs/paths.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECOND = 1000000000 };

/* A virtual dataset. Its size depends on its sources. */
struct h5_follower {
	struct {
		struct h5_file *file;
		uint64_t address;
	} key;
	UT_hash_handle hh;
};

uint64_t h5_state(const struct h5_vfs *vfs, const struct h5_file *file)
{
	/* Numbers of files fit in 32 bits. */
	return h5_file_number(file) << 32 ^ vfs->changes;
}

/* ---- before and after a change ---- */

bool h5_is_writable(const struct h5_vfs *vfs, const struct h5_dataset *dataset)
{
	return vfs->options.writable && dataset->file == h5_mounted_file(vfs) &&
	       dataset->space.kind != H5_SPACE_NULL && h5_view_of_dataset(dataset)->write &&
	       h5_dataset_has_writer(dataset, vfs->options.external_write);
}

static int given_up(void)
{
	return h5_fail(-EROFS, H5_UNDEF, "writing was given up after a failure");
}

/* 0: the node can be written, through *view. */
static int find_view(const struct h5_vfs *vfs, const struct h5_node *node, const struct h5_view_ops **view)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc;

	if (node->kind != H5_NODE_DATASET || node->file != h5_mounted_file(vfs))
		return -EPERM;
	if (!h5_tx_is_writable(node->file))
		return given_up();
	rc = h5_dataset_get(node->file, node->address, &ref, &dataset);
	if (rc)
		return rc;
	rc = h5_is_writable(vfs, dataset) ? 0 : -EPERM;
	*view = h5_view_of_dataset(dataset);
	h5_file_put(node->file, ref);
	return rc;
}

int h5_changes_open(struct h5_vfs *vfs, const struct h5_node *node, struct h5_view_input *input)
{
	int rc;

	assert(h5_is_locked_to_write(vfs));
	*input = (struct h5_view_input){.file = node->file, .address = node->address};
	rc = find_view(vfs, node, &input->ops);
	if (!rc)
		rc = h5_dataset_writer_get(node->file, node->address, vfs->options.external_write,
					   &input->writer);
	return rc;
}

void h5_changes_close(struct h5_view_input *input)
{
	h5_dataset_writer_put(input->writer);
	h5_view_input_release(input);
}

int h5_changes_begin(struct h5_vfs *vfs, struct h5_dataset_writer *writer)
{
	struct h5_file *file = h5_mounted_file(vfs);
	int rc = 0;

	assert(h5_is_locked_to_write(vfs));
	if (!h5_tx_is_writable(file))
		return given_up();
	if (h5_tx_held(file) > vfs->options.gather && h5_tx_settle(file))
		rc = h5_changes_commit(vfs, writer);
	return rc ? rc : h5_dataset_writer_ready(writer);
}

/* The kernel compares times to see if contents have changed, so each change gets a later time. */
static void set_time(struct timespec *changed)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec < changed->tv_sec ||
	    (now.tv_sec == changed->tv_sec && now.tv_nsec <= changed->tv_nsec)) {
		now = *changed;
		now.tv_nsec++;
	}
	if (now.tv_nsec >= SECOND) {
		now.tv_sec++;
		now.tv_nsec -= SECOND;
	}
	*changed = now;
}

int h5_changes_follow(struct h5_vfs *vfs, const struct h5_node *node)
{
	struct h5_follower *follower = NULL, *new;
	int rc = 0;

	if (!vfs->options.writable)
		return 0;
	new = calloc(1, sizeof *new);
	if (!new)
		return -ENOMEM;
	new->key.file = node->file;
	new->key.address = node->address;
	pthread_mutex_lock(&vfs->lock);
	HASH_FIND(hh, vfs->followers, &new->key, sizeof new->key, follower);
	if (!follower) {
		HASH_ADD(hh, vfs->followers, key, sizeof new->key, new);
		rc = new->hh.tbl ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&vfs->lock);
	if (follower || rc)
		free(new);
	return rc;
}

/* The lock is exclusive, so no other thread adds one. */
static void forget_followers(struct h5_vfs *vfs)
{
	struct h5_follower *follower, *next;

	HASH_ITER(hh, vfs->followers, follower, next)
	h5_lru_forget(h5_file_set_blocks(vfs->set), h5_file_number(follower->key.file),
		      follower->key.address);
}

void h5_changes_end(struct h5_vfs *vfs)
{
	assert(h5_is_locked_to_write(vfs));
	forget_followers(vfs);
	set_time(&vfs->changed);
	vfs->changes++;
}

/* ---- committing ---- */

/* Tells the handles of the dataset what became of the bytes that they have written: they are in the file, or,
 * if `lost` is an error, never will be. */
static void tell_handles(struct h5_vfs *vfs, uint64_t address, int lost)
{
	struct h5_handle *h;

	pthread_mutex_lock(&vfs->lock);
	DL_FOREACH(vfs->handles, h)
	{
		if (!h->input.ops || h->node->address != address)
			continue;
		if (lost && h->unsaved)
			h->lost = lost;
		/* The incomplete row came after the lost rows. */
		if (lost)
			h->input.filled = 0;
		h->unsaved = false;
	}
	pthread_mutex_unlock(&vfs->lock);
}

/* Gives up the changes of the dataset since the last commit, and says so in the log. */
static void lose(struct h5_vfs *vfs, struct h5_tx_participant *participant)
{
	tell_handles(vfs, participant->address, participant->failure);
	h5_tx_drop(h5_mounted_file(vfs), participant);
	h5_count(&vfs->lost_changes, 1);
	h5_log_about(vfs, participant->address, "what was written since the last commit is lost: %s",
		     strerror(-participant->failure));
}

/* After a commit with the result `rc`. If it was made, only the changes of datasets that could not be settled
 * are lost. If it failed, all uncommitted changes are, since they share one transaction. */
static void lose_uncommitted(struct h5_vfs *vfs, int rc)
{
	struct h5_tx_participant *participant;

	DL_FOREACH(h5_tx_participants(h5_mounted_file(vfs)), participant)
	{
		if (rc && participant->uncommitted && !participant->failure)
			participant->failure = rc;
		if (participant->failure)
			lose(vfs, participant);
	}
	if (rc)
		h5_tx_abandon(h5_mounted_file(vfs));
	h5_changes_end(vfs);
}

static void tell_committed(struct h5_vfs *vfs)
{
	struct h5_tx_participant *participant;

	DL_FOREACH(h5_tx_participants(h5_mounted_file(vfs)), participant)
	if (!participant->failure)
		tell_handles(vfs, participant->address, 0);
}

static bool has_uncommitted(const struct h5_vfs *vfs, const struct h5_dataset_writer *of)
{
	const struct h5_tx_participant *participant;

	if (of)
		return h5_dataset_writer_participant(of)->uncommitted;
	DL_SEARCH_SCALAR(h5_tx_participants(h5_mounted_file(vfs)), participant, uncommitted, true);
	return participant;
}

/* Why the commit lacks the changes of a dataset; 0: it has all changes. */
static int first_failure(const struct h5_vfs *vfs)
{
	const struct h5_tx_participant *participant;

	DL_FOREACH(h5_tx_participants(h5_mounted_file(vfs)), participant)
	if (participant->failure)
		return participant->failure;
	return 0;
}

int h5_changes_commit(struct h5_vfs *vfs, const struct h5_dataset_writer *of)
{
	struct h5_file *file = h5_mounted_file(vfs);
	int failure, rc;

	assert(h5_is_locked_to_write(vfs));
	if (!h5_tx_is_writable(file))
		return has_uncommitted(vfs, of) ? given_up() : 0;
	/* A commit covers all writers, so the caller's request cannot interrupt it. */
	h5_interrupt_begin(NULL, NULL);
	rc = h5_tx_commit(file);
	if (!h5_tx_is_writable(file)) {
		if (vfs->options.log)
			vfs->options.log("a commit has failed: the mount takes no more changes");
		return rc;
	}
	failure = rc ? rc : first_failure(vfs);
	if (failure)
		lose_uncommitted(vfs, rc);
	if (!rc)
		tell_committed(vfs);
	return of ? h5_dataset_writer_participant(of)->failure : failure;
}

void h5_changes_free(struct h5_vfs *vfs)
{
	struct h5_follower *follower, *next;

	h5_dataset_writers_close(h5_mounted_file(vfs));
	HASH_ITER(hh, vfs->followers, follower, next)
	{
		HASH_DEL(vfs->followers, follower);
		free(follower);
	}
}
