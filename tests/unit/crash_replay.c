/* The judge of writing: what a crash leaves behind at any instant.
 *
 * Each workload (crash_workloads.c) is run once and its writes are recorded. Then the files are made up that
 * a crash may leave, and looked at by ourselves and by libhdf5 (crash_judge.py):
 *
 * kill: all writes up to any one, the last one cut at any page edge inside it. The file as it lies there,
 * without its journal.
 *
 * power cut: of what was written since the last sync of the file any sectors, in any order; the same for the
 * journal. After recovery, which may have crashed itself.
 *
 * mount: the same, opened for writing and closed.
 *
 * copied pair: the file as it was before any call, with the journal as it was before a later one. What a copy
 * of a living mount gets if it takes one file after the other.
 *
 * other programs: libhdf5 changes a file that was left by a crash. Recovery must not undo that.
 *
 * Always each dataset must have the rows of its last acknowledged commit or of one on its way, and all values
 * right. Arguments: what names of workloads begin with. H5FS_CRASH_SEED: another run of chance.
 * H5FS_CRASH_IMAGE: where to put the first file that is wrong. */
#include "crash_opinion.h"

#include "base/error.h"
#include "change/journal.h"
#include "change/open.h"
#include "store/file_set.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOURNAL "state.h5.h5fs-journal"

enum {
	PAGE = 4096,
	SECTOR = 512,
	POWER_CUTS = 30000, /* in all */
	FOREIGN = 1500,	    /* states that another program changes */
	COPIES = 6000,	    /* pairs that are copied */
	NEAR = 60,	    /* calls between the two copies, in most pairs */
	MOUNTS = 1500,	    /* states that are opened for writing, as a mount does it */
};

struct replay {
	char folder[64];
	struct crash_opinion opinion;
	uint64_t seed, random;
	struct h5_journal_record commit; /* the record in the journal at a kill */
	uint8_t *commit_bytes;
	unsigned long kills, cuts, mounts, foreign, torn, replayed, stale;
	unsigned long copies, copies_stale;
	unsigned moves; /* writes of this workload that are left to the journal */
	double share;	/* of all power cuts, for an event */
};

/* ---- which states are allowed ---- */

/* The first mark from event i on, or the last state: what a commit that is under way may bring. */
static unsigned next_mark(const struct crash_run *run, size_t i)
{
	for (; i < run->fault.count; i++)
		if (run->fault.events[i].kind == FAULT_MARK)
			return (unsigned)run->fault.events[i].offset;
	return run->state;
}

/* Before event i happens. */
static void allow(struct replay *p, size_t i)
{
	const struct fault_event *event = i ? &p->opinion.run->fault.events[i - 1] : NULL;

	if (!event)
		p->opinion.first = 0;
	else if (event->kind == FAULT_MARK)
		p->opinion.first = (unsigned)event->offset;
	if (!event || event->kind == FAULT_MARK)
		p->opinion.last = next_mark(p->opinion.run, i);
}

/* ---- recovery ---- */

static struct h5_journal_place place_of(const struct replay *p, int *dirfd)
{
	*dirfd = open(p->folder, O_PATH | O_DIRECTORY);
	return (struct h5_journal_place){.dirfd = *dirfd, .name = JOURNAL, .owner = geteuid(), .mode = 0600};
}

static void save_journal(const struct replay *p, const struct crash_image *journal)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", p->folder, JOURNAL);
	crash_image_save(journal, path);
}

/* Recovers the image by the journal, which is gone then. `crash`: sometimes it crashes itself, and is begun
 * again. */
static enum h5_recovery recover(struct replay *p, struct crash_image *image,
				const struct crash_image *journal, bool crash)
{
	struct h5_recovered recovered = {0};
	struct h5_io *io = crash_image_open(image), *overlay;
	struct fault_io fault = {.error = -EIO};
	int dirfd, rc = -EIO;
	struct h5_journal_place place = place_of(p, &dirfd);

	save_journal(p, journal);
	if (crash && !crash_draw(&p->random, 8)) {
		fault.fail = 1 + crash_draw(&p->random, 9);
		place.wrap = fault_io_wrap;
		place.wrap_arg = &fault;
		io = fault_io_wrap(&fault, io);
		rc = h5_journal_recover(&place, io, true, &overlay, &recovered);
		place.wrap = NULL;
		fault.fail = 0;
	}
	if (rc)
		rc = h5_journal_recover(&place, io, true, &overlay, &recovered);
	if (rc)
		crash_wrong(&p->opinion, NULL, h5_error_last()->text);
	h5_recovered_release(&recovered);
	h5_io_close(io);
	unlinkat(dirfd, JOURNAL, 0);
	close(dirfd);
	p->replayed += recovered.what == H5_RECOVERY_REPLAYED;
	return recovered.what;
}

/* What a mount for reading would show must be what a recovery makes. */
static void check_overlay(struct replay *p, struct crash_image *image, const struct crash_image *journal)
{
	struct crash_image shown = {0}, recovered = {0};
	struct h5_recovered what;
	struct h5_io *io = crash_image_open(image), *overlay;
	int dirfd;
	struct h5_journal_place place = place_of(p, &dirfd);

	save_journal(p, journal);
	if (h5_journal_recover(&place, io, false, &overlay, &what))
		crash_wrong(&p->opinion, NULL, h5_error_last()->text);
	io = overlay ? overlay : io;
	crash_image_resize(&shown, image->size);
	if (h5_io_read(io, 0, shown.data, shown.size))
		crash_wrong(&p->opinion, NULL, h5_error_last()->text);
	h5_io_close(io);
	h5_recovered_release(&what);
	close(dirfd);
	crash_image_copy(&recovered, image);
	recover(p, &recovered, journal, true);
	if (recovered.size != shown.size || memcmp(recovered.data, shown.data, shown.size) != 0)
		crash_wrong(&p->opinion, NULL, "a mount for reading shows another file");
	free(shown.data);
	free(recovered.data);
}

/* ---- kill ---- */

static void forget_commit(struct replay *p)
{
	h5_journal_record_release(&p->commit);
	free(p->commit_bytes);
	p->commit_bytes = NULL;
}

/* Remembers the record that is written to the journal. */
static void note_commit(struct replay *p, const struct fault_event *event)
{
	forget_commit(p);
	p->commit_bytes = malloc(event->size);
	memcpy(p->commit_bytes, event->data, event->size);
	if (h5_journal_record_decode(p->commit_bytes, event->size, &p->commit))
		forget_commit(p);
}

/* True: a change of committed metadata that is no cell. It is left to the journal. */
static bool needs_journal(const struct replay *p, const struct fault_event *event)
{
	for (unsigned i = 0; i < p->commit.patch_count; i++)
		if (p->commit.patches[i].offset == event->offset && p->commit.patches[i].size == event->size)
			return true;
	return false;
}

/* A kill in the middle of a write, at a page edge. */
static void kill_inside(struct replay *p, const struct crash_image *image, const struct crash_image *journal,
			const struct fault_event *event)
{
	bool excepted = needs_journal(p, event);
	struct crash_image cut = {0};
	uint64_t edge = (event->offset / PAGE + 1) * PAGE;

	/* Dataspace and layout of a dataset move out of the edge once. */
	if (excepted && edge < event->offset + event->size && ++p->moves > 2 * p->opinion.run->count)
		crash_wrong(&p->opinion, NULL, "too many writes that are no cells");
	for (uint64_t at = edge; at < event->offset + event->size; at += PAGE) {
		crash_image_copy(&cut, image);
		crash_image_apply(&cut, event, (size_t)(at - event->offset));
		snprintf(p->opinion.label, sizeof p->opinion.label,
			 "killed in the write of %zu bytes at %ju, at %ju", event->size,
			 (uintmax_t)event->offset, (uintmax_t)at);
		if (excepted) {
			p->torn++;
			if (recover(p, &cut, journal, false) == H5_RECOVERY_STALE)
				crash_wrong(&p->opinion, NULL, "its journal is stale");
		}
		crash_opinion_check(&p->opinion, &cut);
		p->kills++;
	}
	free(cut.data);
}

static void replay_kills(struct replay *p)
{
	struct crash_image image = {0}, journal = {0};
	const struct fault_io *fault = &p->opinion.run->fault;

	p->moves = 0;
	crash_image_write(&image, 0, p->opinion.run->before, p->opinion.run->size);
	for (size_t i = 0; i <= fault->count; i++) {
		const struct fault_event *event = i < fault->count ? &fault->events[i] : NULL;

		allow(p, i);
		snprintf(p->opinion.label, sizeof p->opinion.label, "killed before call %zu of %zu", i,
			 fault->count);
		if (!i || i == fault->count || fault->events[i - 1].kind == FAULT_MARK ||
		    (fault->events[i - 1].file == 0 && fault->events[i - 1].kind != FAULT_SYNC)) {
			crash_opinion_check(&p->opinion, &image);
			p->kills++;
		}
		if (!event || event->kind == FAULT_MARK)
			continue;
		if (event->file == 0 && event->kind == FAULT_WRITE)
			kill_inside(p, &image, &journal, event);
		if (event->file && event->kind == FAULT_WRITE && event->offset == H5_JOURNAL_HEADER)
			note_commit(p, event);
		crash_image_apply(event->file ? &journal : &image, event, event->size);
	}
	forget_commit(p);
	free(image.data);
	free(journal.data);
}

/* ---- power cut ---- */

/* A file and what was written to it since its last sync. */
struct medium {
	struct crash_image durable;
	const struct fault_event **pending;
	size_t count, capacity;
};

static void medium_add(struct medium *m, const struct fault_event *event)
{
	if (event->kind == FAULT_SYNC) {
		for (size_t i = 0; i < m->count; i++)
			crash_image_apply(&m->durable, m->pending[i], m->pending[i]->size);
		m->count = 0;
		return;
	}
	if (m->count == m->capacity) {
		m->capacity = 2 * m->capacity + 16;
		m->pending = realloc(m->pending, m->capacity * sizeof *m->pending);
	}
	m->pending[m->count++] = event;
}

/* What is found after a kill. */
static void cut_nothing(const struct medium *m, struct crash_image *image)
{
	crash_image_copy(image, &m->durable);
	for (size_t i = 0; i < m->count; i++)
		crash_image_apply(image, m->pending[i], m->pending[i]->size);
}

static void medium_release(struct medium *m)
{
	free(m->durable.data);
	free(m->pending);
}

/* The size of a file is that after any of its changes, as metadata of the file system come in order. */
static size_t any_size(struct replay *p, const struct medium *m)
{
	size_t size = m->durable.size, n = (size_t)crash_draw(&p->random, m->count + 1);

	if (crash_draw(&p->random, 2))
		n = m->count;
	for (size_t i = 0; i < n; i++) {
		const struct fault_event *event = m->pending[i];

		if (event->kind == FAULT_RESIZE)
			size = (size_t)event->offset;
		else if (event->offset + event->size > size)
			size = (size_t)event->offset + event->size;
	}
	return size;
}

/* Some sectors of a write. */
static void tear(struct replay *p, struct crash_image *image, const struct fault_event *event)
{
	for (size_t at = 0, n; at < event->size; at += n) {
		uint64_t offset = event->offset + at;

		n = SECTOR - (size_t)(offset % SECTOR);
		n = n < event->size - at ? n : event->size - at;
		if (crash_draw(&p->random, 2))
			crash_image_write(image, offset, event->data + at, n);
	}
}

/* What is found after a power cut. */
static void cut_power(struct replay *p, const struct medium *m, struct crash_image *image)
{
	size_t size = any_size(p, m), *order = calloc(m->count + 1, sizeof *order);
	unsigned mode = (unsigned)crash_draw(&p->random, 4); /* 0: nothing is lost but by its size */
	bool shuffle = crash_draw(&p->random, 2);

	crash_image_resize(image, 0);
	crash_image_copy(image, &m->durable);
	for (size_t i = 0; i < m->count; i++) {
		size_t j = shuffle ? (size_t)crash_draw(&p->random, i + 1) : i;

		order[i] = order[j];
		order[j] = i;
	}
	for (size_t i = 0; i < m->count; i++) {
		const struct fault_event *event = m->pending[order[i]];
		unsigned fate = mode ? (unsigned)crash_draw(&p->random, 3) : 1;

		if (event->kind != FAULT_WRITE && event->kind != FAULT_PUNCH)
			continue;
		if (fate == 1)
			crash_image_write(image, event->offset, event->data, event->size);
		else if (fate == 2)
			tear(p, image, event);
	}
	crash_image_resize(image, size);
	free(order);
}

static void replay_cut(struct replay *p, const struct medium media[2], size_t i)
{
	struct crash_image image = {0}, journal = {0};

	snprintf(p->opinion.label, sizeof p->opinion.label, "power cut %lu, before call %zu of %zu", p->cuts,
		 i, p->opinion.run->fault.count);
	cut_power(p, &media[0], &image);
	cut_power(p, &media[1], &journal);
	if (!crash_draw(&p->random, 16))
		check_overlay(p, &image, &journal);
	if (recover(p, &image, &journal, true) == H5_RECOVERY_STALE)
		crash_wrong(&p->opinion, NULL, "its journal is stale");
	crash_opinion_check(&p->opinion, &image);
	p->cuts++;
	free(image.data);
	free(journal.data);
}

/* ---- copied pair ---- */

static void replay_copy(struct replay *p, const struct medium media[2], size_t i)
{
	const struct fault_io *fault = &p->opinion.run->fault;
	size_t left = fault->count - i, most = crash_draw(&p->random, 4) && left > NEAR ? NEAR : left;
	size_t later = i + (size_t)crash_draw(&p->random, most + 1);
	struct crash_image image = {0}, journal = {0};
	unsigned last = p->opinion.last;

	snprintf(p->opinion.label, sizeof p->opinion.label,
		 "copied before call %zu of %zu, its journal before call %zu", i, fault->count, later);
	cut_nothing(&media[0], &image);
	cut_nothing(&media[1], &journal);
	for (size_t j = i; j < later; j++)
		if (fault->events[j].file && fault->events[j].kind != FAULT_MARK)
			crash_image_apply(&journal, &fault->events[j], fault->events[j].size);
	p->opinion.last = next_mark(p->opinion.run, later);
	p->copies_stale += recover(p, &image, &journal, false) == H5_RECOVERY_STALE;
	crash_opinion_check(&p->opinion, &image);
	p->opinion.last = last;
	p->copies++;
	free(image.data);
	free(journal.data);
}

/* ---- another program ---- */

/* libhdf5 changes the file, if it opens it at all, before it is recovered. */
static void replay_foreign(struct replay *p, const struct medium media[2], size_t i)
{
	static const char kinds[] = "oan";
	char kind = kinds[crash_draw(&p->random, 3)], path[128];
	struct crash_image image = {0}, journal = {0}, changed = {0};
	enum h5_recovery what;

	snprintf(p->opinion.label, sizeof p->opinion.label, "another program ('%c'), before call %zu of %zu",
		 kind, i, p->opinion.run->fault.count);
	snprintf(path, sizeof path, "%s/foreign.h5", p->folder);
	/* After a kill: one that a power cut has damaged is not for libhdf5 to change. */
	cut_nothing(&media[0], &image);
	cut_nothing(&media[1], &journal);
	if (crash_opinion_change(&p->opinion, &image, kind, path)) {
		crash_image_load(&changed, path);
		crash_image_copy(&image, &changed);
		what = recover(p, &changed, &journal, false);
		if (what != H5_RECOVERY_REPLAYED &&
		    (image.size != changed.size || memcmp(image.data, changed.data, image.size) != 0))
			crash_wrong(&p->opinion, NULL, "changed, though its journal was not replayed");
		crash_opinion_verify(&p->opinion, &changed);
		p->foreign++;
		p->stale += what == H5_RECOVERY_STALE;
	}
	unlink(path);
	free(image.data);
	free(journal.data);
	free(changed.data);
}

/* Opened for writing, and closed. */
static void replay_mount(struct replay *p, const struct medium media[2], size_t i)
{
	static const struct h5_file_set_options options = {
		.block_cache = 1 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_ALWAYS, .writable = true};
	struct crash_image image = {0}, journal = {0};
	struct h5_file_set *set;
	char path[128];

	snprintf(p->opinion.label, sizeof p->opinion.label,
		 "mount %lu after a power cut, before call %zu of %zu", p->mounts, i,
		 p->opinion.run->fault.count);
	snprintf(path, sizeof path, "%s/state.h5", p->folder);
	cut_power(p, &media[0], &image);
	cut_power(p, &media[1], &journal);
	crash_image_save(&image, path);
	save_journal(p, &journal);
	if (h5_open_file(path, &options, &set, NULL))
		crash_wrong(&p->opinion, NULL, h5_error_last()->text);
	h5_file_set_close(set);
	crash_image_load(&image, path);
	unlink(path);
	snprintf(path, sizeof path, "%s/%s", p->folder, JOURNAL);
	if (!access(path, F_OK))
		crash_wrong(&p->opinion, NULL, "the journal is still there");
	if (p->opinion.run->swmr) {
		crash_image_copy(&journal, &image);
		crash_clear_marks(&journal, p->opinion.run);
		if (memcmp(journal.data, image.data, image.size) != 0)
			crash_wrong(&p->opinion, NULL, "the marks are still there");
	}
	crash_opinion_check(&p->opinion, &image);
	p->mounts++;
	free(image.data);
	free(journal.data);
}

static void replay_cuts(struct replay *p)
{
	const struct fault_io *fault = &p->opinion.run->fault;
	struct medium media[2] = {0};

	crash_image_write(&media[0].durable, 0, p->opinion.run->before, p->opinion.run->size);
	for (size_t i = 0; i <= fault->count; i++) {
		double cuts = p->share * (double)POWER_CUTS;
		double foreign =
			p->opinion.run->swmr || p->opinion.run->is_ours ? 0 : p->share * (double)FOREIGN;
		double copies = p->share * (double)COPIES;
		double mounts = p->share * (double)MOUNTS;

		allow(p, i);
		for (; cuts * 1e6 > (double)crash_draw(&p->random, 1000000); cuts -= 1)
			replay_cut(p, media, i);
		for (; copies * 1e6 > (double)crash_draw(&p->random, 1000000); copies -= 1)
			replay_copy(p, media, i);
		for (; foreign * 1e6 > (double)crash_draw(&p->random, 1000000); foreign -= 1)
			replay_foreign(p, media, i);
		for (; mounts * 1e6 > (double)crash_draw(&p->random, 1000000); mounts -= 1)
			replay_mount(p, media, i);
		if (i < fault->count && fault->events[i].kind != FAULT_MARK)
			medium_add(&media[fault->events[i].file ? 1 : 0], &fault->events[i]);
	}
	medium_release(&media[0]);
	medium_release(&media[1]);
}

/* ---- */

static bool is_wanted(const struct crash_run *run, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strncmp(run->name, argv[i], strlen(argv[i])))
			return true;
	return argc == 1;
}

int main(int argc, char **argv)
{
	const char *seed = getenv("H5FS_CRASH_SEED");
	struct replay p = {.seed = seed ? strtoull(seed, NULL, 0) : 1};
	unsigned count = crash_workload_count();
	char command[128];
	bool good;

	snprintf(p.folder, sizeof p.folder, "%s/crash_replay.XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(p.folder))
		CRASH_FAILED("no folder");
	p.random = p.seed;
	crash_opinion_start(&p.opinion);
	for (unsigned i = 0; i < count; i++) {
		struct crash_run run;
		struct replay before = p;

		crash_run_init(&run, i, p.seed, p.folder, NULL);
		p.opinion.run = &run;
		p.share = 1.0 / count / (double)(run.fault.count + 1);
		if (is_wanted(&run, argc, argv)) {
			crash_opinion_begin(&p.opinion);
			replay_kills(&p);
			replay_cuts(&p);
			printf("%s: %zu calls, %lu kills (%lu for the journal), %lu power cuts, %lu by "
			       "others\n",
			       run.name, run.fault.count, p.kills - before.kills, p.torn - before.torn,
			       p.cuts - before.cuts, p.foreign - before.foreign);
			fflush(stdout);
		}
		crash_run_release(&run);
	}
	good = crash_opinion_end(&p.opinion);
	printf("%lu kills, %lu of them in writes that are left to the journal; %lu power cuts, %lu mounts "
	       "after one; %lu replays; "
	       "%lu copied pairs, %lu of them stale; "
	       "%lu changes by another program, after which %lu journals were stale\n",
	       p.kills, p.torn, p.cuts, p.mounts, p.replayed, p.copies, p.copies_stale, p.foreign, p.stale);
	snprintf(command, sizeof command, "rm -r %s", p.folder);
	good &= !system(command);
	return good ? 0 : 1;
}
