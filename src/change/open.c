#include "change/open.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/extension_write.h"
#include "change/free_managers.h"
#include "change/private.h"
#include "io/named.h"
#include "store/extension.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds between two tries to lock: flock(2) waits for ever, or not at all. */
enum { PAUSE_MOST = 50 };

/* One try to open the file. */
struct opening {
	const struct h5_file_set_options *options;
	int folder; /* in which the file's name is looked up; -1: its path is */
	struct h5_journal_home journal;
	struct h5_opened opened;
};

/* ---- the journal ---- */

/* Makes the last error a warning. */
static int note(struct opening *opening, int code)
{
	const struct h5_error *e = h5_error_last();

	free(opening->opened.warning);
	opening->opened.warning = strdup(e->code == code ? e->text : strerror(-code));
	return opening->opened.warning ? 0 : -ENOMEM;
}

/* Finds the journal, which may have the name that the file had when it was mounted. */
static int look_for_journal(struct opening *opening)
{
	const struct h5_journal_place *place = &opening->journal.place;
	bool writable = opening->options->writable;
	char found[NAME_MAX + 1];
	int rc = h5_journal_check_beside(place);

	if (rc)
		return rc;
	rc = h5_journal_find(place, found, sizeof found);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	if (writable)
		rc = h5_journal_adopt(place, found);
	/* On a mount for reading, or if another process has it locked, it keeps its name. */
	if (!writable || rc == -EWOULDBLOCK) {
		strcpy(opening->journal.name, found);
		rc = 0;
	}
	if (!rc &&
	    asprintf(&opening->opened.warning, "its journal was found under another name, %s", found) < 0) {
		opening->opened.warning = NULL;
		rc = -ENOMEM;
	}
	return rc;
}

/* Replays the journal, or makes *io one that reads as if it had been. */
static int heed_journal(struct opening *opening, struct h5_io **io)
{
	struct h5_recovered *recovered = &opening->opened.recovered;
	bool writable = opening->options->writable;
	struct h5_io *overlay = NULL;
	int rc = look_for_journal(opening);

	if (!rc)
		rc = h5_journal_recover(&opening->journal.place, *io, writable, &overlay, recovered);
	/* A file that anybody could have put there must not keep the HDF5 file from being read. */
	if (rc && !writable && !h5_is_passing(rc)) {
		recovered->what = H5_RECOVERY_UNFIT;
		rc = note(opening, rc);
	}
	if (!rc && overlay)
		*io = overlay;
	return rc;
}

/* Opens the file, and takes its lock. */
static int open_and_lock(const struct opening *opening, const char *path, struct h5_io **io)
{
	const struct h5_file_set_options *options = opening->options;
	int flags = (options->writable ? O_RDWR : O_RDONLY) | O_NOCTTY | O_NONBLOCK, fd;

	if (opening->folder < 0)
		return h5_io_open_local(path, options->lock, options->writable, io);
	fd = h5_named_open_without_links(opening->folder, strrchr(path, '/') + 1, flags);
	return fd < 0 ? h5_fail(fd, H5_UNDEF, "%s", strerror(-fd))
		      : h5_io_open_fd(fd, options->lock, options->writable, io);
}

/* Opens the bytes of a local file, with all its pieces and its journal replayed. */
static int open_local(struct opening *opening, struct h5_file_set *set, struct h5_io **io)
{
	const struct h5_file_set_options *options = opening->options;
	const char *path = h5_file_set_path(set);
	int rc = open_and_lock(opening, path, io);

	if (rc)
		return rc;
	rc = h5_file_set_join(set, io);
	if (rc) {
		h5_io_close(*io);
		return rc;
	}
	if (options->wrap)
		*io = options->wrap(options->wrap_arg, *io);
	rc = h5_journal_home_open(&opening->journal, *io, path, h5_file_set_directory(set), options->journal);
	/* If we may not look for a journal, or it can have no name, there is none for us. */
	if ((rc == -EACCES || rc == -ENAMETOOLONG) && !options->writable)
		rc = 0;
	else if (!rc)
		rc = heed_journal(opening, io);
	if (!rc && opening->opened.recovered.what == H5_RECOVERY_BUSY && options->writable)
		rc = h5_fail(-EWOULDBLOCK, H5_UNDEF, "another h5fs writes it: its journal is in use");
	/* The lock has told us that nobody writes without marks. If we kept it, it would keep the writer out.
	 */
	if (!rc && options->swmr && !options->writable)
		rc = h5_io_unlock(*io);
	if (rc)
		h5_io_close(*io);
	return rc;
}

/* A file behind a URL has no journal, and nobody asks to change it: who makes a link to one refuses that
 * before anything is made or started. */
static int open_io(struct opening *opening, struct h5_file_set *set, struct h5_io **io)
{
	const struct h5_file_set_options *options = opening->options;

	if (!options->remote)
		return open_local(opening, set, io);
	assert(!options->writable);
	return h5_io_open_remote_version(options->remote, options->remote_name ? options->remote_name : "",
					 options->remote_version, H5_REMOTE_FIRST, io);
}

/* ---- what cannot be written: invariant 6 ---- */

/* In older versions the flags mean nothing. */
static bool is_marked(const struct h5_superblock *sb)
{
	return sb->version >= 3 && sb->consistency & (H5_FLAG_WRITING | H5_FLAG_SWMR);
}

static int check_superblock(struct h5_file *file, const struct opening *opening)
{
	const struct h5_superblock *sb = h5_file_superblock(file);

	/* An end that is undefined, or before the base, is beyond the file, too. */
	if (sb->end - sb->base > h5_file_end(file))
		return h5_fail(-EUCLEAN, 0, "the file is truncated: it cannot be written");
	if (is_marked(sb) && !opening->opened.recovered.swmr && !opening->options->force)
		return h5_fail(-EBUSY, 0,
			       "marked as open for writing: a program writes it, or has crashed (-o force)");
	if (opening->options->swmr && sb->version < 3)
		return h5_fail(-ENOTSUP, 0, "superblock version %u: swmr needs version 3", sb->version);
	if (opening->options->swmr && h5_file_image(file))
		return h5_fail(-ENOTSUP, 0, "a metadata cache image: swmr is not supported");
	return 0;
}

static int check_extension(struct h5_file *file, const struct opening *opening, struct h5_space *space)
{
	bool reclaims = opening->options->reclaims;
	uint64_t address = h5_file_superblock(file)->extension;
	struct h5_file_space_info info = {0};
	int rc = h5_extension_file_space(file, &info);

	if (rc == -ENODATA)
		return 0;
	space->fixed_end = info.persist;
	if (!rc && info.persist && !info.version && !reclaims)
		rc = h5_fail(-ENOTSUP, address,
			     "file space info of version 0: writing the file is not supported");
	if (!rc && info.persist && opening->options->swmr)
		rc = h5_fail(-ENOTSUP, address,
			     "the file keeps track of its free space: swmr is not supported");
	if (!rc && info.page_size && (info.page_size < 512 || info.page_size > (1 << 30)))
		rc = h5_fail(-EUCLEAN, address, "file space pages of %ju bytes", (uintmax_t)info.page_size);
	space->page = info.page_size;
	return rc;
}

/* Writes to several pieces are certain only inside one of them, so each must have room for a cell. libhdf5
 * makes no paged families, and lets nobody read one meanwhile. What keeps track of free space knows one end
 * of the file only. */
static int check_pieces(struct h5_file *file, const struct h5_space *space, const struct opening *opening)
{
	const bool multi = space->pieces.count;
	const char *what = multi ? "a file of the split or multi driver" : "a family of files";
	uint64_t least = space->pieces.size;

	if (!multi && !space->pieces.size)
		return 0;
	for (unsigned i = 0; i < space->others; i++) {
		uint64_t size = space->areas[i + 1].start - space->areas[i].start;

		least = least ? h5_min(least, size) : size;
	}
	if (least && least < H5_CELL)
		return h5_fail(-ENOTSUP, 0, "members of %ju bytes: only those of %d or more are written",
			       (uintmax_t)least, H5_CELL);
	if (opening->options->swmr)
		return h5_fail(-ENOTSUP, 0, "%s: swmr is not supported", what);
	if (space->page)
		return h5_fail(-ENOTSUP, 0, "%s with file space pages: writing is not supported", what);
	if (multi && (space->fixed_end || h5_file_image(file)))
		return h5_fail(-ENOTSUP, 0, "%s with %s: writing is not supported", what,
			       space->fixed_end ? "managers of its free space" : "a metadata cache image");
	return 0;
}

/* The areas as the file states them. */
static int set_areas(struct h5_file *file, struct h5_space *space)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	/* All bits set mean that there is none. */
	uint64_t limit =
		(sb->size_of_offsets < 8 ? (UINT64_C(1) << 8 * sb->size_of_offsets) - 1 : H5_UNDEF) - 1;
	struct h5_file_area areas[H5_FILE_AREAS_MAX];
	unsigned count = h5_file_areas(file, areas);
	int rc = 0;

	if (areas->end < h5_superblock_size(sb))
		return h5_fail(-EUCLEAN, 0, "the file ends in its superblock: it cannot be written");
	space->others = count - 1;
	for (unsigned i = 0; i < count && !rc; i++) {
		struct h5_area *area = &space->areas[i];
		uint64_t most, end;
		uint8_t last;

		if (!h5_add(areas[i].start, INT64_MAX, &most))
			most = limit;
		most = h5_min(most, limit) - sb->base;
		*area = (struct h5_area){.start = areas[i].start,
					 .committed_end = areas[i].end,
					 .limit = i < space->others ? h5_min(most, areas[i + 1].start - 1)
								    : most,
					 .member = areas[i].member};
		end = i ? h5_max(areas[i].end, area->start + H5_FILE_AREA_LEAST) : areas[i].end;
		area->end = area->least = end;
		if (areas[i].raw)
			space->raw = i;
		if (space->pieces.count && areas[i].end > areas[i].start)
			rc = h5_file_read(file, areas[i].end - 1, &last, sizeof last);
	}
	return rc == -EUCLEAN ? h5_fail(-EUCLEAN, 0, "a member is truncated: it cannot be written") : rc;
}

static int space_init(struct h5_file *file, const struct opening *opening, struct h5_space *space)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	struct h5_area *area = space->areas;
	struct h5_io_stat st;
	int rc = check_extension(file, opening, space);

	if (!rc)
		rc = h5_file_stat(file, &st);
	if (rc)
		return rc;
	space->base = sb->base;
	space->pieces = st.pieces;
	rc = set_areas(file, space);
	if (rc)
		return rc;
	/* What lies behind the stored end is no part of the file, and new blocks go there: as by libhdf5, an
	 * address that leads there is wrong. But a SWMR writer stores the end only when it closes the file.
	 */
	if (is_marked(sb) && !opening->opened.recovered.swmr && !space->pieces.count) {
		area->end = h5_file_end(file);
	} else if (!space->others && h5_file_end(file) > area->end) {
		h5_file_cut(file, area->end);
		h5_file_renumber(file);
	}
	space->keeps = opening->options->swmr;
	if (space->page)
		area->end += (space->page - area->end % space->page) % space->page;
	area->least = area->end;
	if (area->end > area->limit)
		return h5_fail(-ENOSPC, area->end,
			       "the file is larger than its addresses reach: it cannot be written");
	return check_pieces(file, space, opening);
}

static int check_file(struct h5_file *file, const struct opening *opening)
{
	struct h5_io_stat st;
	int rc = h5_file_can_change(file);

	if (!rc)
		rc = h5_file_stat(file, &st);
	if (!rc && st.links > 1 && !opening->options->force &&
	    !h5_journal_is_found_by_all(&opening->journal.place, st.links))
		rc = h5_fail(
			-EMLINK, H5_UNDEF,
			"the file has several names, and by some its journal would not be found (-o force)");
	return rc;
}

/* ---- the transaction ---- */

/* Pending changes are lost. The journal is removed if all commits are certain to be in the file.
 */
static void tx_end(struct h5_tx *tx)
{
	bool done;

	assert(!tx->unit.depth && !tx->participants);
	done = !tx->applying && !h5_tx_finish(tx);
	h5_journal_close(tx->journal, done);
	h5_tx_end_watches(tx);
	h5_tx_drop_all(tx);
	assert(!tx->held);
	h5_space_release(&tx->space);
	h5_extents_release(&tx->blocks);
	h5_extents_release(&tx->raw);
	h5_extents_release(&tx->covered);
	h5_extents_release(&tx->cells);
	h5_extents_release(&tx->superseded);
	h5_extents_release(&tx->objects);
	h5_tx_forget_hashes(tx);
	free(tx->hashed);
	free(tx->unit.notes);
}

/* The end of the mount, as far as it takes commits: these need the caches. */
static void tx_finish(struct h5_io *io)
{
	struct h5_tx *tx = (struct h5_tx *)io;

	h5_free_managers_write(tx);
	if (tx->space.pieces.count)
		(void)h5_tx_give_back(tx->file, 1);
}

static void tx_close(struct h5_io *io)
{
	struct h5_tx *tx = (struct h5_tx *)io;

	tx_end(tx);
	h5_overlay_release(&tx->overlay);
	free(tx);
}

/* It has no `write`: h5_tx_write() and the commit write to the io beneath. */
static const struct h5_io_ops tx_ops = {.read = h5_overlay_read,
					.readv = h5_overlay_readv,
					.stat = h5_overlay_stat,
					.finish = tx_finish,
					.close = tx_close};

/* First clears the marks that a killed mount has left, then removes its journal, which tells that they are
 * ours. */
static int leave_marks_behind(struct h5_tx *tx, const struct opening *opening)
{
	int rc = h5_tx_mark(tx, 0);

	return rc || !opening->opened.recovered.swmr ? rc : h5_journal_remove(&opening->journal.place);
}

static int tx_begin(struct h5_tx *tx, const struct opening *opening)
{
	bool swmr = opening->options->swmr;
	int rc = check_file(tx->file, opening);

	if (!rc)
		rc = check_superblock(tx->file, opening);
	if (!rc)
		rc = space_init(tx->file, opening, &tx->space);
	if (!rc)
		rc = h5_extension_write_prepare(tx, opening->options->reclaims);
	if (!rc)
		rc = leave_marks_behind(tx, opening);
	if (!rc)
		rc = h5_journal_create(&opening->journal.place, swmr, &tx->journal);
	tx->marked = !rc && swmr;
	if (tx->marked)
		rc = h5_tx_mark(tx, H5_FLAG_WRITING | H5_FLAG_SWMR);
	if (!rc && swmr)
		rc = h5_io_unlock(h5_tx_medium(tx));
	return rc;
}

/* Makes the file one that can be changed. */
static int tx_open(struct h5_file *file, const struct opening *opening)
{
	struct h5_tx *tx = calloc(1, sizeof *tx);
	int rc;

	if (!tx)
		return -ENOMEM;
	tx->file = file;
	tx->superblock = *h5_file_superblock(file);
	/* Space that was allocated may lie behind the present end of the file. */
	tx->overlay = (struct h5_overlay){.io.ops = &tx_ops, .beneath = h5_file_io(file), .endless = true};
	rc = tx_begin(tx, opening);
	if (rc) {
		tx->failed = true;
		tx_end(tx); /* the io beneath stays the file's */
		free(tx);
		return rc;
	}
	h5_file_lay_over(file, &tx->overlay);
	return 0;
}

/* ---- opening ---- */

/* Another program has written the file since. It must have left it sound, or we do not write. */
static int check_stale(const struct opening *opening, struct h5_file *file)
{
	const struct h5_recovered *recovered = &opening->opened.recovered;
	int rc = 0;

	for (unsigned i = 0; i < recovered->object_count && opening->options->check && !rc; i++)
		rc = opening->options->check(file, recovered->objects[i]);
	if (rc)
		return h5_fail_in(rc, "an object that a stale journal names");
	return h5_journal_set_aside(&opening->journal.place, recovered);
}

static int open_in_set(struct opening *opening, struct h5_file_set *set)
{
	struct h5_io *io;
	int rc = open_io(opening, set, &io);

	if (!rc)
		rc = h5_file_set_start(set, io);
	if (rc || !opening->options->writable)
		return rc;
	if (opening->opened.recovered.what == H5_RECOVERY_STALE)
		rc = check_stale(opening, h5_file_set_root(set));
	return rc ? rc : tx_open(h5_file_set_root(set), opening);
}

static void hand_out(struct opening *opening, struct h5_opened *opened)
{
	if (!opened)
		return;
	*opened = opening->opened;
	opened->journal_directory = opening->journal.place.dirfd;
	opening->opened = (struct h5_opened){.journal_directory = -1};
	opening->journal.place.dirfd = -1;
}

static int open_once(int folder, const char *path, const struct h5_file_set_options *options,
		     struct h5_file_set **out, struct h5_opened *opened)
{
	struct opening opening = {.options = options, .folder = folder, .opened.journal_directory = -1};
	struct h5_file_set *set;
	int rc = folder < 0 ? h5_file_set_new(path, options, &set)
			    : h5_file_set_new_in(folder, path, options, &set);

	if (rc)
		return rc;
	h5_journal_home_init(&opening.journal);
	opening.journal.place.wrap = options->wrap;
	opening.journal.place.wrap_arg = options->wrap_arg;
	opening.journal.place.progress = options->recovery_progress;
	opening.journal.place.progress_arg = options->recovery_arg;
	rc = open_in_set(&opening, set);
	if (rc) {
		h5_file_set_close(set);
	} else {
		hand_out(&opening, opened);
		*out = set;
	}
	h5_opened_release(&opening.opened);
	h5_journal_home_release(&opening.journal);
	return rc;
}

static uint64_t milliseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void sleep_milliseconds(uint64_t n)
{
	const struct timespec time = {.tv_nsec = (long)n * 1000000};

	nanosleep(&time, NULL);
}

/* Each try begins with the name, since the process that had the lock may have replaced the file or removed
 * its journal. Between two tries nothing is locked, so two processes never wait for each other. */
int h5_open_file_in(int folder, const char *path, const struct h5_file_set_options *options,
		    struct h5_file_set **set, struct h5_opened *opened)
{
	const uint64_t until = milliseconds_now() + (uint64_t)options->wait * 1000;
	uint64_t pause = 1;
	int rc = open_once(folder, path, options, set, opened);

	while (rc == -EWOULDBLOCK && milliseconds_now() < until) {
		sleep_milliseconds(pause);
		pause = h5_min(2 * pause, PAUSE_MOST);
		rc = open_once(folder, path, options, set, opened);
	}
	return rc == -EWOULDBLOCK && options->wait
		       ? h5_fail_in(rc, "waited for %u s (-o wait=)", options->wait)
		       : rc;
}

int h5_open_file(const char *path, const struct h5_file_set_options *options, struct h5_file_set **set,
		 struct h5_opened *opened)
{
	return h5_open_file_in(-1, path, options, set, opened);
}

void h5_opened_release(struct h5_opened *opened)
{
	h5_recovered_release(&opened->recovered);
	free(opened->warning);
	opened->warning = NULL;
	if (opened->journal_directory >= 0)
		close(opened->journal_directory);
	opened->journal_directory = -1;
}
