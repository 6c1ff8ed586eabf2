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
 * other programs: libhdf5 changes a file that was left by a crash. Recovery must not undo that.
 *
 * Always each dataset must have the rows of its last acknowledged commit or of one on its way, and all values
 * right. H5FS_CRASH_STATES: how many power cuts in all; arguments: words that names of workloads begin with.
 */
#include "crash_workloads.h"

#include "base/error.h"
#include "format/superblock.h"
#include "store/file_set.h"
#include "store/journal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOURNAL "state.h5.h5fs-journal"

enum {
	PAGE = 4096,
	SECTOR = 512,
	POWER_CUTS = 30000, /* in all */
	FOREIGN = 1500,	    /* states that another program changes */
	MOUNTS = 1500,	    /* states that are opened for writing, as a mount does it */
};

/* ---- bytes of a file ---- */

struct image {
	uint8_t *data;
	size_t size, capacity;
};

static void image_resize(struct image *image, size_t size)
{
	if (size > image->capacity) {
		image->capacity = size + size / 2 + PAGE;
		image->data = realloc(image->data, image->capacity);
		if (!image->data)
			CRASH_FAILED("out of memory");
	}
	if (size > image->size)
		memset(image->data + image->size, 0, size - image->size);
	image->size = size;
}

static void image_write(struct image *image, uint64_t offset, const void *data, size_t n)
{
	if (offset + n > image->size)
		image_resize(image, (size_t)offset + n);
	if (n)
		memcpy(image->data + offset, data, n);
}

static void image_copy(struct image *to, const struct image *from)
{
	image_resize(to, from->size);
	if (from->size)
		memcpy(to->data, from->data, from->size);
}

/* The event, as far as its first n bytes. */
static void image_apply(struct image *image, const struct fault_event *event, size_t n)
{
	if (event->kind == FAULT_WRITE)
		image_write(image, event->offset, event->data, n);
	else if (event->kind == FAULT_RESIZE)
		image_resize(image, (size_t)event->offset);
}

static void image_save(const struct image *image, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, image->data, image->size) != (ssize_t)image->size || close(fd))
		CRASH_FAILED("%s cannot be written", path);
}

static void image_load(struct image *image, const char *path)
{
	int fd = open(path, O_RDONLY);
	off_t size = lseek(fd, 0, SEEK_END);

	image_resize(image, size < 0 ? 0 : (size_t)size);
	if (fd < 0 || pread(fd, image->data, image->size, 0) != (ssize_t)image->size || close(fd))
		CRASH_FAILED("%s cannot be read", path);
}

/* An h5_io over it, for recovery. */
struct image_io {
	struct h5_io io;
	struct image *image; /* borrowed */
};

static int image_io_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct image *image = ((struct image_io *)io)->image;
	size_t left = offset < image->size ? image->size - (size_t)offset : 0;

	*got = left < n ? left : n;
	if (*got)
		memcpy(buf, image->data + offset, *got);
	return 0;
}

static int image_io_stat(struct h5_io *io, struct h5_io_stat *st)
{
	uint64_t size = ((struct image_io *)io)->image->size;

	*st = (struct h5_io_stat){.size = size, .end = size, .locked = true, .links = 1};
	return 0;
}

static int image_io_write(struct h5_io *io, uint64_t offset, const void *buf, size_t n)
{
	image_write(((struct image_io *)io)->image, offset, buf, n);
	return 0;
}

static int image_io_sync(struct h5_io *io)
{
	(void)io;
	return 0;
}

static void image_io_close(struct h5_io *io)
{
	free(io);
}

static struct h5_io *image_open(struct image *image)
{
	static const struct h5_io_ops ops = {.read = image_io_read,
					     .stat = image_io_stat,
					     .write = image_io_write,
					     .sync = image_io_sync,
					     .close = image_io_close};
	struct image_io *io = calloc(1, sizeof *io);

	if (!io)
		CRASH_FAILED("out of memory");
	io->io.ops = &ops;
	io->image = image;
	return &io->io;
}

/* ---- all of it ---- */

struct replay {
	char folder[64];
	const struct crash_run *run;
	unsigned first, last; /* states that datasets may be in */
	char label[128];      /* which crash this is */
	uint64_t seed, random;
	pid_t judge;
	FILE *to_judge, *from_judge;
	struct image sent;		 /* the judge's image */
	struct image cleared;		 /* an image without marks */
	struct h5_journal_record commit; /* the record in the journal at a kill */
	uint8_t *commit_bytes;
	unsigned long kills, cuts, mounts, foreign, torn, replayed, stale;
	unsigned moves; /* writes of this workload that are left to the journal */
	double share;	/* of all power cuts, for an event */
};

static void wrong(const struct replay *p, const struct crash_dataset *d, const char *what)
{
	const char *path = getenv("H5FS_CRASH_IMAGE");

	if (path)
		image_save(&p->sent, path);
	CRASH_FAILED("%s: %s: %s: %s", p->run->name, p->label, d ? d->name : "file", what);
}

/* ---- libhdf5's opinion ---- */

static void start_judge(struct replay *p)
{
	const char *source = getenv("srcdir") ? getenv("srcdir") : ".";
	char path[512];
	int to[2], from[2];

	snprintf(path, sizeof path, "%s/tests/crash_judge.py", source);
	if (pipe(to) || pipe(from))
		CRASH_FAILED("no pipe");
	p->judge = fork();
	if (!p->judge) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		execl("/usr/bin/python3", "python3", "-X", "faulthandler", path, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	p->to_judge = fdopen(to[1], "wb");
	p->from_judge = fdopen(from[0], "r");
	if (p->judge < 0 || !p->to_judge || !p->from_judge)
		CRASH_FAILED("no judge");
}

/* True: it has found nothing wrong. */
static bool end_judge(struct replay *p)
{
	int status;

	fclose(p->to_judge);
	fclose(p->from_judge);
	return waitpid(p->judge, &status, 0) == p->judge && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void send(struct replay *p, const void *data, size_t n)
{
	if (fwrite(data, 1, n, p->to_judge) != n)
		CRASH_FAILED("the judge is gone");
}

static void send_number(struct replay *p, uint64_t value, size_t n)
{
	send(p, &value, n); /* little-endian, as the judge's numbers */
}

static void send_text(struct replay *p, const char *text)
{
	send_number(p, strlen(text), 4);
	send(p, text, strlen(text));
}

static void send_workload(struct replay *p)
{
	send(p, "W", 1);
	send_text(p, p->run->name);
	image_resize(&p->sent, 0);
	for (unsigned d = 0; d < p->run->count; d++) {
		const struct crash_dataset *dataset = &p->run->datasets[d];

		send(p, "D", 1);
		send_number(p, dataset->columns, 4);
		send_number(p, dataset->first, 4);
		send_text(p, dataset->name);
		for (size_t i = 0; i < dataset->count; i++) {
			const struct crash_content *c = &dataset->contents[i];

			send(p, "S", 1);
			send_number(p, d, 4);
			send_number(p, c->state, 4);
			send_number(p, c->overwritten, 1);
			send_number(p, c->rows, 8);
			send(p, c->values, crash_elements(dataset, c->rows) * sizeof *c->values);
		}
	}
}

static bool is_changed(const struct replay *p, const struct image *image, size_t at)
{
	size_t n = image->size - at < SECTOR ? image->size - at : SECTOR;

	return at + n > p->sent.size || memcmp(image->data + at, p->sent.data + at, n);
}

/* Runs of changed sectors, as pieces; their number. */
static unsigned send_pieces(struct replay *p, const struct image *image, bool count_only)
{
	unsigned pieces = 0;

	for (size_t at = 0, end; at < image->size; at = end) {
		end = at + SECTOR;
		if (!is_changed(p, image, at))
			continue;
		while (end < image->size && is_changed(p, image, end))
			end += SECTOR;
		end = end < image->size ? end : image->size;
		pieces++;
		if (!count_only) {
			send_number(p, at, 8);
			send_number(p, end - at, 4);
			send(p, image->data + at, end - at);
		}
	}
	return pieces;
}

static void send_image(struct replay *p, const struct image *image)
{
	send(p, "B", 1);
	send_number(p, image->size, 8);
	send_number(p, send_pieces(p, image, true), 4);
	send_pieces(p, image, false);
	image_copy(&p->sent, image);
}

/* ---- our own ---- */

/* As crash_judge.py does it. */
static void compare(const struct replay *p, const struct crash_dataset *d, const uint32_t *found, size_t rows)
{
	size_t begin = 0, end, n = crash_elements(d, rows) * sizeof *found;
	const uint8_t *bytes = (const uint8_t *)found;
	bool overwritten = false, has_rows = false;

	for (end = 0; end < d->count && d->contents[end].state <= p->last; end++) {
		if (d->contents[end].state <= p->first)
			begin = end;
		else
			overwritten |= d->contents[end].overwritten;
	}
	for (size_t i = begin; i < end; i++) {
		if (d->contents[i].rows != rows)
			continue;
		has_rows = true;
		if (!n || !memcmp(d->contents[i].values, found, n))
			return;
	}
	if (!has_rows)
		wrong(p, d, "a number of rows that it never had");
	if (!overwritten)
		wrong(p, d, "values that it never had");
	for (size_t at = 0; at < n; at++) {
		bool good = false;

		for (size_t i = begin; i < end && !good; i++) {
			const struct crash_content *c = &d->contents[i];

			good = at < crash_elements(d, c->rows) * sizeof *found &&
			       ((const uint8_t *)c->values)[at] == bytes[at];
		}
		if (!good)
			wrong(p, d, "overwritten values that it never had");
	}
}

static void read_dataset(const struct replay *p, struct h5_file *file, const struct crash_dataset *d)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref = NULL;
	size_t skipped = d->first * d->columns * sizeof(uint32_t);
	uint32_t *found = NULL;
	int rc = h5_dataset_get(file, d->address, &ref, &dataset);

	if (!rc && (dataset->size > UINT32_MAX || dataset->size < skipped))
		wrong(p, d, "a size that it never had");
	if (!rc) {
		found = malloc((size_t)dataset->size - skipped + 1);
		rc = h5_dataset_read(dataset, skipped, found, (size_t)dataset->size - skipped);
	}
	if (rc)
		wrong(p, d, h5_error_last()->text);
	compare(p, d, found, (size_t)dataset->size / d->columns / sizeof *found);
	free(found);
	h5_file_put(file, ref);
}

/* As h5clear does it. */
static void clear_marks(struct image *image, const struct crash_run *run)
{
	struct h5_superblock sb;
	size_t at = 0, offset, n;

	while (memcmp(run->before + at, H5_SIGNATURE, 8) != 0)
		at = at ? 2 * at : SECTOR;
	if (h5_superblock_decode(image->data + at, image->size - at, at, &sb))
		return;
	sb.consistency = 0;
	h5_superblock_update(image->data + at, image->size - at, &sb, &offset, &n);
}

/* Both opinions of a file. */
static void check(struct replay *p, const struct image *image)
{
	static const struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};
	struct h5_file_set *set;

	if (p->run->swmr) {
		image_copy(&p->cleared, image);
		clear_marks(&p->cleared, p->run);
		image = &p->cleared;
	}
	send_image(p, image);
	send(p, "C", 1);
	send_number(p, p->first, 4);
	send_number(p, p->last, 4);
	send_text(p, p->label);
	if (h5_file_set_open_memory(image->data, image->size, &options, &set))
		wrong(p, NULL, h5_error_last()->text);
	for (unsigned d = 0; d < p->run->count; d++)
		read_dataset(p, h5_file_set_root(set), &p->run->datasets[d]);
	h5_file_set_close(set);
}

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
	const struct fault_event *event = i ? &p->run->fault.events[i - 1] : NULL;

	if (!event)
		p->first = 0;
	else if (event->kind == FAULT_MARK)
		p->first = (unsigned)event->offset;
	if (!event || event->kind == FAULT_MARK)
		p->last = next_mark(p->run, i);
}

/* ---- recovery ---- */

static struct h5_journal_place place_of(const struct replay *p, int *dirfd)
{
	*dirfd = open(p->folder, O_PATH | O_DIRECTORY);
	return (struct h5_journal_place){.dirfd = *dirfd, .name = JOURNAL, .owner = geteuid(), .mode = 0600};
}

static void save_journal(const struct replay *p, const struct image *journal)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", p->folder, JOURNAL);
	image_save(journal, path);
}

/* Recovers the image by the journal, which is gone then. `crash`: sometimes it crashes itself, and is begun
 * again. */
static enum h5_recovery recover(struct replay *p, struct image *image, const struct image *journal,
				bool crash)
{
	struct h5_recovered recovered = {0};
	struct h5_io *io = image_open(image), *overlay;
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
		wrong(p, NULL, h5_error_last()->text);
	h5_recovered_release(&recovered);
	h5_io_close(io);
	unlinkat(dirfd, JOURNAL, 0);
	close(dirfd);
	p->replayed += recovered.what == H5_RECOVERY_REPLAYED;
	return recovered.what;
}

/* What a mount for reading would show must be what a recovery makes. */
static void check_overlay(struct replay *p, struct image *image, const struct image *journal)
{
	struct image shown = {0}, recovered = {0};
	struct h5_recovered what;
	struct h5_io *io = image_open(image), *overlay;
	int dirfd;
	struct h5_journal_place place = place_of(p, &dirfd);

	save_journal(p, journal);
	if (h5_journal_recover(&place, io, false, &overlay, &what))
		wrong(p, NULL, h5_error_last()->text);
	io = overlay ? overlay : io;
	image_resize(&shown, image->size);
	if (h5_io_read(io, 0, shown.data, shown.size))
		wrong(p, NULL, h5_error_last()->text);
	h5_io_close(io);
	h5_recovered_release(&what);
	close(dirfd);
	image_copy(&recovered, image);
	recover(p, &recovered, journal, true);
	if (recovered.size != shown.size || memcmp(recovered.data, shown.data, shown.size) != 0)
		wrong(p, NULL, "a mount for reading shows another file");
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
static void kill_inside(struct replay *p, const struct image *image, const struct image *journal,
			const struct fault_event *event)
{
	bool excepted = needs_journal(p, event);
	struct image cut = {0};
	uint64_t edge = (event->offset / PAGE + 1) * PAGE;

	/* Dataspace and layout of a dataset move out of the edge once. */
	if (excepted && edge < event->offset + event->size && ++p->moves > 2 * p->run->count)
		wrong(p, NULL, "too many writes that are no cells");
	for (uint64_t at = edge; at < event->offset + event->size; at += PAGE) {
		image_copy(&cut, image);
		image_apply(&cut, event, (size_t)(at - event->offset));
		snprintf(p->label, sizeof p->label, "killed in the write of %zu bytes at %ju, at %ju",
			 event->size, (uintmax_t)event->offset, (uintmax_t)at);
		if (excepted) {
			p->torn++;
			if (recover(p, &cut, journal, false) == H5_RECOVERY_STALE)
				wrong(p, NULL, "its journal is stale");
		}
		check(p, &cut);
		p->kills++;
	}
	free(cut.data);
}

static void replay_kills(struct replay *p)
{
	struct image image = {0}, journal = {0};
	const struct fault_io *fault = &p->run->fault;

	p->moves = 0;
	image_write(&image, 0, p->run->before, p->run->size);
	for (size_t i = 0; i <= fault->count; i++) {
		const struct fault_event *event = i < fault->count ? &fault->events[i] : NULL;

		allow(p, i);
		snprintf(p->label, sizeof p->label, "killed before call %zu of %zu", i, fault->count);
		if (!i || i == fault->count || fault->events[i - 1].kind == FAULT_MARK ||
		    (fault->events[i - 1].file == 0 && fault->events[i - 1].kind != FAULT_SYNC)) {
			check(p, &image);
			p->kills++;
		}
		if (!event || event->kind == FAULT_MARK)
			continue;
		if (event->file == 0 && event->kind == FAULT_WRITE)
			kill_inside(p, &image, &journal, event);
		if (event->file && event->kind == FAULT_WRITE && event->offset == H5_JOURNAL_HEADER)
			note_commit(p, event);
		image_apply(event->file ? &journal : &image, event, event->size);
	}
	forget_commit(p);
	free(image.data);
	free(journal.data);
}

/* ---- power cut ---- */

/* A file and what was written to it since its last sync. */
struct medium {
	struct image durable;
	const struct fault_event **pending;
	size_t count, capacity;
};

static void medium_add(struct medium *m, const struct fault_event *event)
{
	if (event->kind == FAULT_SYNC) {
		for (size_t i = 0; i < m->count; i++)
			image_apply(&m->durable, m->pending[i], m->pending[i]->size);
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
static void cut_nothing(const struct medium *m, struct image *image)
{
	image_copy(image, &m->durable);
	for (size_t i = 0; i < m->count; i++)
		image_apply(image, m->pending[i], m->pending[i]->size);
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
static void tear(struct replay *p, struct image *image, const struct fault_event *event)
{
	for (size_t at = 0, n; at < event->size; at += n) {
		uint64_t offset = event->offset + at;

		n = SECTOR - (size_t)(offset % SECTOR);
		n = n < event->size - at ? n : event->size - at;
		if (crash_draw(&p->random, 2))
			image_write(image, offset, event->data + at, n);
	}
}

/* What is found after a power cut. */
static void cut_power(struct replay *p, const struct medium *m, struct image *image)
{
	size_t size = any_size(p, m), *order = calloc(m->count + 1, sizeof *order);
	unsigned mode = (unsigned)crash_draw(&p->random, 4); /* 0: nothing is lost but by its size */
	bool shuffle = crash_draw(&p->random, 2);

	image_resize(image, 0);
	image_copy(image, &m->durable);
	for (size_t i = 0; i < m->count; i++) {
		size_t j = shuffle ? (size_t)crash_draw(&p->random, i + 1) : i;

		order[i] = order[j];
		order[j] = i;
	}
	for (size_t i = 0; i < m->count; i++) {
		const struct fault_event *event = m->pending[order[i]];
		unsigned fate = mode ? (unsigned)crash_draw(&p->random, 3) : 1;

		if (event->kind != FAULT_WRITE)
			continue;
		if (fate == 1)
			image_write(image, event->offset, event->data, event->size);
		else if (fate == 2)
			tear(p, image, event);
	}
	image_resize(image, size);
	free(order);
}

static void replay_cut(struct replay *p, const struct medium media[2], size_t i)
{
	struct image image = {0}, journal = {0};

	snprintf(p->label, sizeof p->label, "power cut %lu, before call %zu of %zu", p->cuts, i,
		 p->run->fault.count);
	cut_power(p, &media[0], &image);
	cut_power(p, &media[1], &journal);
	if (!crash_draw(&p->random, 16))
		check_overlay(p, &image, &journal);
	if (recover(p, &image, &journal, true) == H5_RECOVERY_STALE)
		wrong(p, NULL, "its journal is stale");
	check(p, &image);
	p->cuts++;
	free(image.data);
	free(journal.data);
}

/* ---- another program ---- */

/* libhdf5 changes the file, if it opens it at all, before it is recovered. */
static void replay_foreign(struct replay *p, const struct medium media[2], size_t i)
{
	static const char kinds[] = "oan";
	char kind = kinds[crash_draw(&p->random, 3)], path[128], answer[512];
	struct image image = {0}, journal = {0}, changed = {0};
	enum h5_recovery what;

	snprintf(p->label, sizeof p->label, "another program ('%c'), before call %zu of %zu", kind, i,
		 p->run->fault.count);
	snprintf(path, sizeof path, "%s/foreign.h5", p->folder);
	/* After a kill: one that a power cut has damaged is not for libhdf5 to change. */
	cut_nothing(&media[0], &image);
	cut_nothing(&media[1], &journal);
	send_image(p, &image);
	send(p, "F", 1);
	send(p, &kind, 1);
	send_number(p, p->first, 4);
	send_number(p, p->last, 4);
	send_text(p, path);
	fflush(p->to_judge);
	if (!fgets(answer, sizeof answer, p->from_judge))
		CRASH_FAILED("the judge is gone");
	if (!strcmp(answer, "ok\n")) {
		image_load(&changed, path);
		image_copy(&image, &changed);
		what = recover(p, &changed, &journal, false);
		if (what != H5_RECOVERY_REPLAYED &&
		    (image.size != changed.size || memcmp(image.data, changed.data, image.size) != 0))
			wrong(p, NULL, "changed, though its journal was not replayed");
		send_image(p, &changed);
		send(p, "V", 1);
		send_text(p, p->label);
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
	struct image image = {0}, journal = {0};
	struct h5_file_set *set;
	char path[128];

	snprintf(p->label, sizeof p->label, "mount %lu after a power cut, before call %zu of %zu", p->mounts,
		 i, p->run->fault.count);
	snprintf(path, sizeof path, "%s/state.h5", p->folder);
	cut_power(p, &media[0], &image);
	cut_power(p, &media[1], &journal);
	image_save(&image, path);
	save_journal(p, &journal);
	if (h5_file_set_open(path, &options, &set))
		wrong(p, NULL, h5_error_last()->text);
	h5_file_set_close(set);
	image_load(&image, path);
	unlink(path);
	snprintf(path, sizeof path, "%s/%s", p->folder, JOURNAL);
	if (!access(path, F_OK))
		wrong(p, NULL, "the journal is still there");
	if (p->run->swmr) {
		image_copy(&journal, &image);
		clear_marks(&journal, p->run);
		if (memcmp(journal.data, image.data, image.size) != 0)
			wrong(p, NULL, "the marks are still there");
	}
	check(p, &image);
	p->mounts++;
	free(image.data);
	free(journal.data);
}

static void replay_cuts(struct replay *p)
{
	const struct fault_io *fault = &p->run->fault;
	struct medium media[2] = {0};

	image_write(&media[0].durable, 0, p->run->before, p->run->size);
	for (size_t i = 0; i <= fault->count; i++) {
		double cuts = p->share * (double)POWER_CUTS;
		double foreign = p->run->swmr ? 0 : p->share * (double)FOREIGN;
		double mounts = p->share * (double)MOUNTS;

		allow(p, i);
		for (; cuts * 1e6 > (double)crash_draw(&p->random, 1000000); cuts -= 1)
			replay_cut(p, media, i);
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
	start_judge(&p);
	for (unsigned i = 0; i < count; i++) {
		struct crash_run run;
		struct replay before = p;

		crash_run_init(&run, i, p.seed, p.folder);
		p.run = &run;
		p.share = 1.0 / count / (double)(run.fault.count + 1);
		if (is_wanted(&run, argc, argv)) {
			send_workload(&p);
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
	good = end_judge(&p);
	printf("%lu kills, %lu of them in writes that are left to the journal; %lu power cuts, %lu mounts "
	       "after one; %lu replays; "
	       "%lu changes by another program, after which %lu journals were stale\n",
	       p.kills, p.torn, p.cuts, p.mounts, p.replayed, p.foreign, p.stale);
	snprintf(command, sizeof command, "rm -r %s", p.folder);
	good &= !system(command);
	free(p.sent.data);
	free(p.cleared.data);
	return good ? 0 : 1;
}
