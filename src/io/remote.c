#include "io/remote.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/siphash.h"
#include "io/remote_link.h"

#include <stdlib.h>
#include <string.h>

enum {
	BLOCK = 1 << 20, /* what is not announced comes in blocks */
	BLOCK_CELLS = BLOCK / H5_REMOTE_CELL,
	AT_ONCE = 32,	 /* parts of a long read that may be under way */
	CACHE_SHARE = 2, /* of the cells for what is under way */
};

struct remote {
	struct h5_io io;
	struct h5_remote *link; /* borrowed */
	uint32_t file;
	uint64_t size, identity;
	int64_t mtime;
};

/* Cells of a file, [first, end). */
struct span {
	uint64_t first, end;
};

/* ---- asking ---- */

/* Bytes of a request: many small parts are under way together, but none is smaller than a block. */
static uint64_t part_of(const struct span *span)
{
	uint64_t bytes = (span->end - span->first) * H5_REMOTE_CELL / AT_ONCE;

	return h5_min(h5_max(bytes - bytes % BLOCK, BLOCK), H5_REMOTE_PART) / H5_REMOTE_CELL;
}

/* Asks for the cells of the span that are not in the table. *next: where it stopped, if there was no room. */
static int ask(struct remote *f, struct span span, bool urgent)
{
	const struct h5_cells *cells = &f->link->cells;
	uint64_t part = part_of(&span), at = span.first;
	int rc = 0;

	while (at < span.end && !rc) {
		uint64_t end = at, n;
		uint32_t taken;

		while (end < span.end && end - at < part && h5_cells_find(cells, f->file, end) == H5_NO_CELL)
			end++;
		if (end == at) {
			at++;
			continue;
		}
		n = h5_min((end - at) * H5_REMOTE_CELL, f->size - at * H5_REMOTE_CELL);
		rc = h5_remote_ask(f->link, f->file, at, n, urgent, &taken);
		at += taken;
	}
	return rc;
}

/* The blocks around n bytes, but not more than may be under way. */
static struct span blocks_around(const struct remote *f, uint64_t offset, uint64_t n)
{
	uint64_t most = h5_max(f->link->cells.count / CACHE_SHARE, BLOCK_CELLS);
	uint64_t last = (f->size - 1) / H5_REMOTE_CELL + 1;
	struct span span = {offset / BLOCK * BLOCK_CELLS, ((offset + n - 1) / BLOCK + 1) * BLOCK_CELLS};

	span.end = h5_min(span.end, h5_min(last, span.first + most));
	return span;
}

/* ---- reading ---- */

/* Asks for what is missing of the range. Nothing may be asked for just now; then a reply is waited for. */
static int fetch(struct remote *f, uint64_t offset, uint64_t n)
{
	int rc = ask(f, blocks_around(f, offset, n), true);

	if (rc == -EAGAIN && h5_cells_find(&f->link->cells, f->file, offset / H5_REMOTE_CELL) == H5_NO_CELL)
		return h5_remote_wait(f->link);
	return rc == -EAGAIN ? 0 : rc;
}

static int await(struct remote *f, uint32_t i)
{
	const struct h5_cell *cell = &f->link->cells.list[i];
	int rc = 0;

	while (cell->state == H5_CELL_LOADING && !rc)
		rc = h5_remote_wait(f->link);
	if (rc || cell->state == H5_CELL_READY)
		return rc;
	return h5_fail(cell->code, cell->number * H5_REMOTE_CELL, "%s",
		       *f->link->failure ? f->link->failure : strerror(-cell->code));
}

/* Copies from the cell, of which the n bytes at the offset are a part. */
static int copy(struct remote *f, uint32_t i, uint64_t offset, void *buf, size_t n)
{
	struct h5_remote *link = f->link;
	int rc;

	h5_cells_hold(&link->cells, i);
	rc = await(f, i);
	if (!rc) {
		link->cells.list[i].used = true;
		pthread_mutex_unlock(&link->lock);
		memcpy(buf, link->memory + (size_t)i * H5_REMOTE_CELL + offset % H5_REMOTE_CELL, n);
		pthread_mutex_lock(&link->lock);
	}
	h5_cells_put(&link->cells, i);
	return rc;
}

/* Some of the n bytes at the offset: those of the first cell. */
static int read_cell(struct remote *f, uint64_t offset, void *buf, size_t n, size_t *got)
{
	uint64_t number = offset / H5_REMOTE_CELL;
	size_t part = (size_t)h5_min(n, H5_REMOTE_CELL - offset % H5_REMOTE_CELL);
	uint32_t i = H5_NO_CELL;
	int rc = 0;

	while (!rc && i == H5_NO_CELL) {
		if (f->link->stale[f->file])
			return h5_fail(-ESTALE, offset, "the file has changed since it was mounted");
		i = h5_cells_find(&f->link->cells, f->file, number);
		if (i == H5_NO_CELL)
			rc = fetch(f, offset, n);
	}
	if (!rc)
		rc = copy(f, i, offset, buf, part);
	if (!rc)
		*got = part;
	return rc;
}

static int remote_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	struct remote *f = (struct remote *)io;
	int rc = 0;

	*got = 0;
	if (offset >= f->size || !n)
		return 0;
	n = (size_t)h5_min(n, f->size - offset);
	pthread_mutex_lock(&f->link->lock);
	if (n > H5_REMOTE_CELL)
		rc = fetch(f, offset, n);
	while (*got < n && !rc) {
		size_t part = 0;

		rc = read_cell(f, offset + *got, (char *)buf + *got, n - *got, &part);
		*got += part;
	}
	pthread_mutex_unlock(&f->link->lock);
	return rc;
}

/* ---- */

static int remote_stat(struct h5_io *io, struct h5_io_stat *st)
{
	const struct remote *f = (struct remote *)io;
	const struct timespec mtime = {.tv_sec = (time_t)f->mtime};

	/* Other bytes than those of the first answer are never given, so nobody can write them. No device of
	 * a local file has this number. */
	*st = (struct h5_io_stat){.size = f->size,
				  .stored = f->size,
				  .end = f->size,
				  .device = UINT64_MAX,
				  .inode = f->identity,
				  .mtime = mtime,
				  .ctime = mtime,
				  .links = 1,
				  .mode = 0444,
				  .locked = true};
	return 0;
}

static void remote_close(struct h5_io *io)
{
	free(io);
}

static const struct h5_io_ops remote_ops = {.read = remote_read, .stat = remote_stat, .close = remote_close};

/* Names lead to the same file if they are the same. */
static uint64_t identity_of(const struct h5_remote *link, const char *name)
{
	static const uint8_t key[H5_SIPHASH_KEY] = "h5fs remote";
	uint64_t url = h5_siphash(key, link->url, strlen(link->url));

	return *name ? url ^ h5_siphash(key, name, strlen(name)) : url;
}

static int open_file(struct h5_remote *link, struct remote *f, const char *name)
{
	struct h5_remote_reply reply;
	int rc;

	if (link->files == H5_REMOTE_FILES)
		return h5_fail(-ENFILE, H5_UNDEF, "more than %d remote files", H5_REMOTE_FILES);
	f->file = link->files++;
	rc = h5_remote_ask_open(link, f->file, name, &reply);
	if (rc)
		return rc;
	if (!f->file)
		link->reason = reply.reason;
	if (reply.code)
		return h5_fail(reply.code, H5_UNDEF, "%s", *reply.text ? reply.text : strerror(-reply.code));
	f->size = reply.size;
	f->mtime = reply.mtime;
	return 0;
}

int h5_io_open_remote(struct h5_remote *link, const char *name, struct h5_io **io)
{
	struct remote *f = calloc(1, sizeof *f);
	int rc;

	if (!f)
		return -ENOMEM;
	f->io.ops = &remote_ops;
	f->link = link;
	f->identity = identity_of(link, name);
	pthread_mutex_lock(&link->lock);
	rc = open_file(link, f, name);
	pthread_mutex_unlock(&link->lock);
	if (rc)
		free(f);
	else
		*io = &f->io;
	return rc;
}

const char *h5_remote_url(const struct h5_remote *link)
{
	return link->url;
}

enum h5_remote_reason h5_remote_reason(const struct h5_remote *link)
{
	return link->reason;
}

void h5_remote_statistics(struct h5_remote *link, struct h5_remote_statistics *statistics)
{
	pthread_mutex_lock(&link->lock);
	*statistics = link->statistics;
	statistics->unused = link->cells.wasted * H5_REMOTE_CELL;
	pthread_mutex_unlock(&link->lock);
}
