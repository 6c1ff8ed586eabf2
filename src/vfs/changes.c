/* Changes of the mounted file: the lock around each request, what comes before and after a change, commits,
 * and the requests that write, by the rules of doc/h5fs.1, Writing.
 *
 * Writers gather small writes in memory, where readers do not look. So before a request reads, all writers
 * are settled: what they hold goes into the transaction, through which all reads go. That is rare. */
#include "vfs/private.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "change/transaction.h"
#include "store/statistics.h"
#include "vfs/followers.h"
#include "vfs/growth.h"
#include "vfs/handle.h"
#include "vfs/input.h"
#include "vfs/names.h"
#include "vfs/objects.h"
#include "vfs/paths.h"
#include "vfs/plain.h"
#include "vfs/replacing.h"
#include "vfs/source.h"
#include "vfs/times.h"

#include <assert.h>
#include <stdlib.h>
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

/* To be called after each change, also if it failed. */
static void end_change(struct h5_vfs *vfs)
{
	assert(h5_is_locked_to_write(vfs));
	if (vfs->followers)
		h5_followers_forget(vfs);
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
	if (rc)
		h5_tx_abandon(vfs->file);
	set_time(&vfs->changed);
	vfs->all_changed = vfs->changed;
	end_change(vfs);
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

static void about_to_wait(const struct h5_vfs *vfs)
{
	if (vfs->options.waits)
		vfs->options.waits();
}

/* Makes all changes durable. If those of a dataset cannot be, they are lost: the dataset is again as the last
 * commit has left it, and its handles remember the failure. Returns the failure of the dataset `of`; if that
 * is NULL, of any dataset. With the exclusive lock. */
static int commit(struct h5_vfs *vfs, const struct h5_dataset_writer *of)
{
	const uint64_t before = h5_objects_transaction(vfs);
	int result = -EROFS, rc;

	about_to_wait(vfs);
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
	return commit(vfs, NULL);
}

void h5_lock_to_write(struct h5_vfs *vfs)
{
	if (pthread_rwlock_trywrlock(&vfs->write_lock)) {
		about_to_wait(vfs);
		pthread_rwlock_wrlock(&vfs->write_lock);
	}
	/* A change is as much work as its user has given, and it must not end half done. */
	h5_interrupt_bound(NULL);
}

void h5_lock_to_read(struct h5_vfs *vfs)
{
	if (pthread_rwlock_tryrdlock(&vfs->write_lock)) {
		about_to_wait(vfs);
		pthread_rwlock_rdlock(&vfs->write_lock);
	}
	/* If writing was given up, nothing can be settled any more. */
	if (!h5_tx_is_unsettled(vfs->file) || !h5_tx_is_writable(vfs->file))
		return;
	pthread_rwlock_unlock(&vfs->write_lock);
	h5_lock_to_write(vfs);
	if (h5_tx_settle(vfs->file))
		(void)commit(vfs, NULL);
}

/* ---- requests that write ---- */

/* To be called before each change; with the writer that it goes through, if any. Settles all writers if they
 * have gathered too much in memory. */
static int begin_change(struct h5_vfs *vfs, struct h5_dataset_writer *writer)
{
	struct h5_file *file = vfs->file;
	int rc = 0;

	assert(h5_is_locked_to_write(vfs));
	if (!h5_tx_is_writable(file))
		return h5_input_give_up();
	if (h5_tx_held(file) > vfs->options.gather && h5_tx_settle(file))
		rc = commit(vfs, writer);
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
		rc = begin_change(vfs, NULL);
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
	end_change(vfs);
	h5_unlock(vfs);
}

static int write_all(struct h5_handle *h, uint64_t offset, const void *data, size_t n, bool append,
		     size_t *written)
{
	int rc = begin_change(h->vfs, h->input.writer);

	if (rc)
		return rc;
	h->unsaved = true;
	rc = h->input.ops->write(&h->input, offset, data, n, append, written);
	if (!h->replacement)
		h5_change_note(h->vfs, h->node);
	end_change(h->vfs);
	/* As POSIX has it: if a part was written, the next call tells why the rest was not. */
	return *written ? 0 : rc;
}

/* The same for new contents of a dataset that keeps its size. */
static int write_new(struct h5_handle *h, uint64_t offset, const void *data, size_t n,
		     enum h5_write_where where, size_t *written)
{
	int rc = begin_change(h->vfs, h->input.writer);

	if (rc)
		return rc;
	h->unsaved = true;
	rc = h5_replacing_write(h, offset, data, n, where, written);
	end_change(h->vfs);
	return rc;
}

/* The bytes of a file of text whose size the kernel has to be told if it grows. */
static int write_text(struct h5_handle *h, uint64_t offset, const void *data, size_t n, bool append,
		      size_t *written, uint64_t *stale)
{
	uint64_t before = H5_NOT_STALE;
	int rc = append ? 0 : h5_input_check_end(h, offset);

	if (!rc && h->direct && !h->replacement && h5_growth_is_watched(h->vfs, h->node))
		rc = h5_input_text_size(h->vfs, h->node, &before);
	if (!rc)
		rc = write_all(h, offset, data, n, append, written);
	h5_input_refused(h, rc);
	if (*written)
		h->input.next = offset + *written;
	if (*written && before != H5_NOT_STALE)
		*stale = h5_growth_hide(h->vfs, h->node, before, before, false);
	return rc;
}

/* n bytes of raw elements. */
static int write_raw(struct h5_handle *h, uint64_t offset, const void *data, size_t n, bool append,
		     size_t *written, uint64_t *stale)
{
	uint64_t size = h5_dataset_writer_size(h->input.writer);
	int rc = 0;

	if (append)
		offset = size;
	if (h5_plain_has(h->vfs, h->node->entity.address))
		rc = h5_plain_grow(h->vfs, h->input.writer, offset + n);
	if (!rc)
		rc = write_all(h, offset, data, n, append, written);
	if (!rc && h->direct && h5_dataset_writer_size(h->input.writer) > size)
		*stale = h5_growth_hide(h->vfs, h->node, size, offset, false);
	return rc;
}

int h5_vfs_write(struct h5_handle *h, uint64_t offset, const void *buf, size_t n, enum h5_write_where where,
		 size_t *written, uint64_t *stale)
{
	const bool append = where == H5_WRITE_APPEND;
	uint64_t size, left = n;
	bool is_new;
	int rc;

	*written = 0;
	*stale = H5_NOT_STALE;
	if (!h->input.ops)
		return -EBADF;
	h5_lock_to_write(h->vfs);
	is_new = h->replacement && !h5_view_is_text(h->input.ops);
	rc = is_new ? write_new(h, offset, buf, n, where, written) : h5_dataset_writer_ready(h->input.writer);
	if (rc || is_new) {
		h5_unlock(h->vfs);
		h5_count(&h->vfs->bytes_written, *written);
		return rc;
	}
	size = h5_dataset_writer_size(h->input.writer);
	if (where == H5_WRITE_INSIDE)
		left = offset < size ? h5_min(n, size - offset) : 0;
	rc = h5_view_is_text(h->input.ops) ? write_text(h, offset, buf, n, append, written, stale)
					   : write_raw(h, offset, buf, (size_t)left, append, written, stale);
	h5_unlock(h->vfs);
	h5_count(&h->vfs->bytes_written, *written);
	/* The rest of a mapped page, beyond the end, belongs to no file. */
	if (!rc && where == H5_WRITE_INSIDE && *written == left)
		*written = n;
	return rc;
}

/* ---- requests that commit ---- */

static int check_row(struct h5_handle *h)
{
	int rc;

	if (h->input.filled && h->input.ops->check) {
		rc = h->input.ops->check(&h->input);
		h5_input_log(h, rc);
		return rc;
	}
	return h->input.filled ? h5_fail(-EINVAL, h->node->entity.address, "the last row is incomplete") : 0;
}

/* Tells each handle once that bytes were lost which it has written: by `rc`, or by its own error. */
static int tell_loss(struct h5_handle *h, int rc)
{
	int lost = h->lost;

	h->lost = 0;
	if (rc || !lost)
		return rc;
	return h5_fail(lost, h->node->entity.address, "what was written could not be stored, and is lost");
}

/* New contents take the place of the old ones. -EINVAL: they are not complete. */
static int finish_new(struct h5_handle *h, bool flush)
{
	int rc;

	if (!h->replacement || (flush && h5_replacing_waits(h)))
		return 0;
	rc = begin_change(h->vfs, h->input.writer);
	if (rc)
		return rc;
	rc = h5_replacing_finish(h);
	if (!rc)
		h5_change_note(h->vfs, h->node);
	end_change(h->vfs);
	return rc;
}

int h5_vfs_flush(struct h5_handle *h)
{
	int rc;

	if (!h->input.ops)
		return 0;
	h5_lock_to_write(h->vfs);
	rc = finish_new(h, true);
	if (!rc && h->unsaved && h5_plain_has(h->vfs, h->node->entity.address))
		rc = h5_plain_fit(h->vfs, h->input.writer);
	else if (!rc && h->unsaved && h->vfs->options.commit_at_close)
		rc = commit(h->vfs, h->input.writer);
	rc = tell_loss(h, rc);
	if (!rc)
		rc = check_row(h);
	h5_unlock(h->vfs);
	return rc;
}

int h5_vfs_fsync(struct h5_handle *h)
{
	int rc, committed;

	if (!h->vfs->options.writable)
		return 0;
	h5_lock_to_write(h->vfs);
	rc = finish_new(h, false);
	if (!rc && h->unsaved && h5_plain_has(h->vfs, h->node->entity.address))
		rc = h5_plain_fit(h->vfs, h->input.writer);
	committed = commit(h->vfs, h->input.writer);
	rc = rc ? rc : committed;
	rc = tell_loss(h, rc);
	rc = h5_objects_tell_loss(h->node, rc);
	if (!rc)
		rc = check_row(h);
	h5_unlock(h->vfs);
	return rc;
}

int h5_vfs_fsync_directory(struct h5_vfs *vfs, const struct h5_node *directory)
{
	int rc;

	if (!vfs->options.writable)
		return 0;
	h5_lock_to_write(vfs);
	rc = h5_objects_tell_loss(directory, commit(vfs, NULL));
	h5_unlock(vfs);
	return rc;
}

int h5_vfs_commit(struct h5_vfs *vfs)
{
	int rc;

	if (!vfs->options.writable)
		return 0;
	h5_lock_to_write(vfs);
	rc = commit(vfs, NULL);
	h5_unlock(vfs);
	return rc;
}

/* ---- size, opening and closing ---- */

static int set_size(struct h5_vfs *vfs, const struct h5_node *node, struct h5_dataset_writer *writer,
		    uint64_t size)
{
	uint64_t row = h5_dataset_writer_row(writer);
	int rc;

	if (size == h5_dataset_writer_size(writer))
		return 0;
	if (!h5_dataset_writer_can_resize(writer))
		return h5_fail(-EPERM, node->entity.address, "the size of the dataset cannot change");
	if (size % row)
		return h5_fail(-EINVAL, node->entity.address, "no whole rows of %ju bytes", (uintmax_t)row);
	rc = begin_change(vfs, writer);
	if (rc)
		return rc;
	rc = h5_plain_grow(vfs, writer, size);
	if (!rc)
		rc = h5_dataset_writer_resize(writer, size / row);
	h5_change_note(vfs, node);
	end_change(vfs);
	return rc;
}

static int set_text_size(struct h5_vfs *vfs, const struct h5_node *node, const struct h5_view_input *input,
			 uint64_t size)
{
	int rc = begin_change(vfs, input->writer);

	if (rc)
		return rc;
	rc = h5_replacing_set_text_size(vfs, node, input, size);
	h5_change_note(vfs, node);
	end_change(vfs);
	return rc;
}

int h5_vfs_truncate(struct h5_vfs *vfs, struct h5_node *node, struct h5_handle *handle, uint64_t size,
		    uint64_t *stale)
{
	struct h5_view_input input;
	uint64_t before;
	int rc;

	*stale = H5_NOT_STALE;
	if (!vfs->options.writable)
		return -EROFS;
	if (node->entity.kind == H5_NODE_DIRECTORY)
		return -EISDIR;
	h5_lock_to_write(vfs);
	if (handle && h5_replacing_truncates(handle, size)) {
		rc = begin_change(vfs, handle->input.writer);
		if (!rc) {
			rc = h5_view_is_text(handle->input.ops) ? h5_replacing_resize_text(handle, size)
								: h5_replacing_resize(handle, size);
			end_change(vfs);
		}
		goto out;
	}
	rc = h5_input_open(vfs, node, &input);
	if (rc)
		goto out;
	before = h5_dataset_writer_size(input.writer);
	rc = h5_view_is_text(input.ops) ? set_text_size(vfs, node, &input, size)
					: set_size(vfs, node, input.writer, size);
	if (!rc && size > before && !h5_view_is_text(input.ops))
		*stale = h5_growth_hide(vfs, node, before, before, true);
	if (!rc && handle)
		handle->unsaved = true;
	h5_input_close(&input);
out:
	h5_unlock(vfs);
	return rc;
}

int h5_changes_open(struct h5_handle *h, const struct h5_node *node, bool cut)
{
	struct h5_view_input input;
	int rc = h5_input_open(h->vfs, node, &input);

	if (rc)
		return rc;
	if (cut && (h5_view_is_text(input.ops) || h5_dataset_keeps_size(input.writer)) &&
	    !h5_tx_is_swmr(h->vfs->file))
		rc = h5_replacing_begin(h, &input);
	else if (cut)
		rc = set_size(h->vfs, node, input.writer, 0);
	if (rc) {
		h5_input_close(&input);
		return rc;
	}
	h->input = input;
	h->input.replacement = h->replacement;
	h->unsaved = cut;
	return 0;
}

/* The last line may end without a newline. */
static void finish(struct h5_handle *h)
{
	int rc = begin_change(h->vfs, h->input.writer);

	if (!rc)
		rc = h->input.ops->finish(&h->input);
	h5_change_note(h->vfs, h->node);
	end_change(h->vfs);
	if (!rc && !h->replacement && h->vfs->options.commit_at_close)
		(void)commit(h->vfs, h->input.writer);
}

void h5_changes_close(struct h5_handle *h)
{
	if (h->input.filled && h->input.ops->finish)
		finish(h);
	if (h->input.filled)
		h5_input_drop(h);
	if (h->replacement && !finish_new(h, false) && h->vfs->options.commit_at_close)
		(void)commit(h->vfs, h->input.writer);
	if (h->replacement)
		h5_replacing_end(h);
	/* Of plain files there may be thousands in one transaction. */
	if (h5_plain_has(h->vfs, h->node->entity.address)) {
		h5_dataset_writer_put_soon(h->input.writer);
		h5_view_input_release(&h->input);
	} else {
		h5_input_close(&h->input);
	}
}
