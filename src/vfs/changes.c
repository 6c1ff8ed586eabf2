/* Changes of the mounted file: the lock around each request, what comes before and after a change, and
 * commits.
 *
 * Writers gather small writes in memory, where readers do not look. So before a request reads, all writers
 * are settled: what they hold goes into the transaction, through which all reads go. That is rare. */
#include "vfs/private.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/wait.h"
#include "change/transaction.h"
#include "store/followers.h"
#include "store/statistics.h"
#include "vfs/input.h"
#include "vfs/names.h"
#include "vfs/objects.h"
#include "vfs/open_file.h"
#include "vfs/paths.h"
#include "vfs/pending.h"
#include "vfs/source.h"
#include "vfs/times.h"

#include <assert.h>
#include <string.h>
#include <time.h>

enum { SECOND = 1000000000 };

/* ---- after a change ---- */

/* Each change has a later time than the one before. */
static void set_time(struct timespec *changed)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!h5_times_is_later(&now, changed)) {
		now = *changed;
		now.tv_nsec++;
	}
	if (now.tv_nsec >= SECOND) {
		now.tv_sec++;
		now.tv_nsec -= SECOND;
	}
	*changed = now;
}

void h5_change_note(struct h5_vfs *vfs, const struct h5_node *node)
{
	assert(h5_is_locked_to_write(vfs));
	set_time(&vfs->changed);
	if (node->shown)
		node->shown->changed = (struct h5_changed){vfs->changed, vfs->changed};
}

static void note_object(struct h5_vfs *vfs, uint64_t address, bool contents)
{
	assert(h5_is_locked_to_write(vfs));
	set_time(&vfs->changed);
	h5_objects_stamp(vfs, address, contents);
}

void h5_change_note_contents(struct h5_vfs *vfs, uint64_t address)
{
	note_object(vfs, address, true);
}

void h5_change_note_status(struct h5_vfs *vfs, uint64_t address)
{
	note_object(vfs, address, false);
}

void h5_change_note_object(struct h5_vfs *vfs, const struct h5_node *node)
{
	h5_change_note(vfs, node);
	if (node->shown)
		node->shown->changed_in = h5_objects_transaction(vfs);
}

void h5_change_done(struct h5_vfs *vfs)
{
	assert(h5_is_locked_to_write(vfs));
	h5_followers_forget(h5_file_set_shared(vfs->set)->followers);
	vfs->changes++;
	h5_objects_await(vfs);
}

/* ---- committing ---- */

/* Tells the handles that write through the participant what became of the bytes that they have written: they
 * are in the file, or, if `lost` is an error, never will be. */
static void tell_handles(struct h5_vfs *vfs, const struct h5_tx_participant *participant, int lost)
{
	struct h5_source *source;
	struct h5_handle *h;

	DL_FOREACH(vfs->sources, source)
	if (lost &&
	    (source->intake.dataset == participant->address || source->intake.stream == participant->address))
		source->intake.failure = lost;
	pthread_mutex_lock(&vfs->lock);
	DL_FOREACH(vfs->handles, h)
	{
		if (!h->input.ops || h5_handle_participant(h) != participant)
			continue;
		if (lost && (h->unsaved || h->replacement))
			h->lost = lost;
		/* The incomplete row was to follow the lost rows, so it is lost, too. */
		if (lost)
			h5_view_input_release(&h->input);
		h->unsaved = false;
	}
	pthread_mutex_unlock(&vfs->lock);
}

/* Gives up the changes of the dataset since the last commit, and says so in the log. */
static void lose(struct h5_vfs *vfs, struct h5_tx_participant *participant)
{
	tell_handles(vfs, participant, participant->failure);
	h5_tx_drop(vfs->file, participant);
	h5_count(&vfs->lost_changes, 1);
	h5_log_about(vfs, participant->address, "what was written since the last commit is lost: %s",
		     strerror(-participant->failure));
}

/* After a commit with the result `rc`. If it was made, only the changes of datasets that could not be settled
 * are lost. If it failed, all uncommitted changes are, since they share one transaction. */
static void lose_uncommitted(struct h5_vfs *vfs, int rc)
{
	struct h5_tx_participant *participant;
	struct h5_source *source;

	DL_FOREACH(vfs->sources, source)
	if (rc) {
		source->intake.failure = rc;
		source->intake.dataset = source->intake.stream = H5_UNDEF;
	}
	DL_FOREACH(h5_tx_participants(vfs->file), participant)
	{
		if (rc && participant->uncommitted && !participant->failure)
			participant->failure = rc;
		if (participant->failure)
			lose(vfs, participant);
	}
	if (rc) {
		h5_tx_abandon(vfs->file);
		h5_pending_lose(vfs);
	}
	set_time(&vfs->changed);
	vfs->all_changed = vfs->changed;
	h5_change_done(vfs);
}

static void tell_committed(struct h5_vfs *vfs)
{
	struct h5_tx_participant *participant;

	DL_FOREACH(h5_tx_participants(vfs->file), participant)
	if (!participant->failure)
		tell_handles(vfs, participant, 0);
}

static bool has_uncommitted(const struct h5_vfs *vfs, const struct h5_dataset_writer *of)
{
	const struct h5_tx_participant *participant;

	if (of)
		return h5_dataset_writer_participant(of)->uncommitted;
	DL_SEARCH_SCALAR(h5_tx_participants(vfs->file), participant, uncommitted, true);
	return participant;
}

/* Why the commit lacks the changes of a dataset; 0: it has all changes. */
static int first_failure(const struct h5_vfs *vfs)
{
	const struct h5_tx_participant *participant;

	DL_FOREACH(h5_tx_participants(vfs->file), participant)
	if (participant->failure)
		return participant->failure;
	return 0;
}

/* *result: of the commit; if it was made (0), it may lack changes of some datasets. Stays as it is if nothing
 * can be committed any more. */
static int commit_all(struct h5_vfs *vfs, const struct h5_dataset_writer *of, int *result)
{
	struct h5_file *file = vfs->file;
	int failure, rc;

	assert(h5_is_locked_to_write(vfs));
	if (!h5_tx_is_writable(file))
		return has_uncommitted(vfs, of) ? h5_input_give_up() : 0;
	/* A commit covers all writers, so the caller's request cannot interrupt it. */
	h5_interrupt_begin(NULL, NULL);
	if (vfs->help_names)
		h5_names_remove_help(vfs);
	if (h5_objects_has_unused(vfs))
		h5_objects_sweep(vfs);
	rc = h5_tx_commit(file);
	*result = rc;
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

int h5_changes_commit_of(struct h5_vfs *vfs, const struct h5_dataset_writer *of)
{
	const uint64_t before = h5_objects_transaction(vfs);
	int result = -EROFS, rc;

	h5_wait_begins();
	rc = commit_all(vfs, of, &result);
	if (!result && (vfs->changed_names || vfs->roles || vfs->help_names)) {
		h5_names_committed(vfs);
	} else if (result && h5_objects_transaction(vfs) != before) {
		h5_objects_lose(vfs, before, result);
		h5_names_lost(vfs, before);
	}
	return rc;
}

/* ---- the lock ---- */

int h5_changes_commit(struct h5_vfs *vfs)
{
	return h5_changes_commit_of(vfs, NULL);
}

void h5_lock_to_write(struct h5_vfs *vfs)
{
	if (pthread_rwlock_trywrlock(&vfs->write_lock)) {
		h5_wait_begins();
		pthread_rwlock_wrlock(&vfs->write_lock);
	}
	/* A change is as much work as its user has given, and it must not end half done. */
	h5_interrupt_bound(NULL);
}

void h5_lock_to_read(struct h5_vfs *vfs)
{
	if (pthread_rwlock_tryrdlock(&vfs->write_lock)) {
		h5_wait_begins();
		pthread_rwlock_rdlock(&vfs->write_lock);
	}
	/* If writing was given up, nothing can be settled any more. */
	if (!h5_tx_is_unsettled(vfs->file) || !h5_tx_is_writable(vfs->file))
		return;
	pthread_rwlock_unlock(&vfs->write_lock);
	h5_lock_to_write(vfs);
	if (h5_tx_settle(vfs->file))
		(void)h5_changes_commit_of(vfs, NULL);
}

/* ---- around each change ---- */

int h5_change_begin_through(struct h5_vfs *vfs, struct h5_dataset_writer *writer)
{
	struct h5_file *file = vfs->file;
	int rc = 0;

	assert(h5_is_locked_to_write(vfs));
	if (!h5_tx_is_writable(file))
		return h5_input_give_up();
	if (h5_tx_held(file) > vfs->options.gather && h5_tx_settle(file))
		rc = h5_changes_commit_of(vfs, writer);
	return rc || !writer ? rc : h5_dataset_writer_ready(writer);
}

int h5_change_check(const struct h5_vfs *vfs, const struct h5_node *node)
{
	if (!vfs->options.writable || (node->entity.file && node->entity.file != vfs->file))
		return -EROFS;
	return !node->entity.file || node->entity.view || node->entity.target ? -EPERM : 0;
}

int h5_change_begin_in(struct h5_vfs *vfs, const struct h5_node *node)
{
	int rc = 0;

	if (!vfs->options.writable || (node->entity.file && node->entity.file != vfs->file))
		return -EROFS;
	h5_lock_to_write(vfs);
	if (h5_tx_is_swmr(vfs->file))
		rc = h5_fail(-EPERM, node->entity.address, "with SWMR readers only elements change");
	if (!rc)
		rc = h5_change_begin_through(vfs, NULL);
	if (rc)
		h5_unlock(vfs);
	return rc;
}

int h5_change_begin(struct h5_vfs *vfs, const struct h5_node *node)
{
	int rc = h5_change_check(vfs, node);

	return rc ? rc : h5_change_begin_in(vfs, node);
}

void h5_change_end(struct h5_vfs *vfs)
{
	h5_change_done(vfs);
	h5_unlock(vfs);
}

/* ---- requests that commit ---- */

int h5_vfs_fsync_directory(struct h5_vfs *vfs, const struct h5_node *directory)
{
	int rc;

	if (!vfs->options.writable)
		return 0;
	h5_lock_to_write(vfs);
	rc = h5_objects_tell_loss(directory, h5_changes_commit_of(vfs, NULL));
	/* Whoever syncs the root wants to have done with the whole file. */
	if (!rc && directory == vfs->root)
		rc = h5_tx_give_back(vfs->file, H5_WASTE_LEAST);
	h5_unlock(vfs);
	return rc;
}

int h5_vfs_commit(struct h5_vfs *vfs)
{
	int rc;

	if (!vfs->options.writable)
		return 0;
	h5_lock_to_write(vfs);
	vfs->gives_back = true;
	rc = h5_changes_commit_of(vfs, NULL);
	vfs->gives_back = false;
	h5_unlock(vfs);
	return rc;
}
