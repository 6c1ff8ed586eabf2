#include "io/remote.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/siphash.h"
#include "io/remote_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct remote {
	struct h5_io io;
	struct h5_remote *link; /* borrowed */
	uint32_t file;
	uint64_t size, identity;
	int64_t mtime;
};

/* Also tells what the log shall say. */
static void unlock(struct h5_remote *link)
{
	char note[H5_REMOTE_TEXT];

	memcpy(note, link->note, sizeof note);
	link->note[0] = 0;
	pthread_mutex_unlock(&link->lock);
	if (*note && link->say)
		link->say(note);
}

/* ---- reading ---- */

/* Asks the fetcher for the bytes of the range that are not here yet. If it can take no request now, waits for
 * one of its replies. */
static int fetch(struct remote *f, uint64_t offset, uint64_t n)
{
	int rc = h5_remote_fetch(f->link, f->file, offset, n);

	if (rc == -EAGAIN && h5_cells_find(&f->link->cells, f->file, offset / H5_REMOTE_CELL) == H5_NO_CELL)
		return h5_remote_wait(f->link);
	return rc == -EAGAIN ? 0 : rc;
}

static int await(struct remote *f, uint32_t i)
{
	const struct h5_cell *cell = &f->link->cells.list[i];
	int rc = 0;

	while (cell->state == H5_CELL_LOADING && !rc) {
		rc = h5_remote_wait(f->link);
		h5_remote_feed(f->link);
	}
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
		h5_cells_use(&link->cells, i);
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
	unlock(f->link);
	return rc;
}

/* ---- */

static uint64_t remote_want(struct h5_io *io, const struct h5_io_range *ranges, size_t count,
			    enum h5_wanted when)
{
	struct remote *f = (struct remote *)io;

	pthread_mutex_lock(&f->link->lock);
	if (count && f->size && !f->link->stale[f->file])
		h5_remote_announce(f->link, f->file, ranges, count, when);
	unlock(f->link);
	return h5_remote_window(f->link);
}

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
	struct remote *f = (struct remote *)io;

	pthread_mutex_lock(&f->link->lock);
	f->link->left[f->file] = ++f->link->leavings;
	assert(f->link->users[f->file]);
	if (!--f->link->users[f->file])
		h5_remote_close_unused(f->link, false);
	unlock(f->link);
	free(f);
}

static const struct h5_io_ops remote_ops = {
	.read = remote_read, .want = remote_want, .stat = remote_stat, .close = remote_close};

/* Names lead to the same file if they are the same. */
static uint64_t identity_of(const struct h5_remote *link, const char *name)
{
	static const uint8_t key[H5_SIPHASH_KEY] = "h5fs remote";
	uint64_t url = h5_siphash(key, link->url, strlen(link->url));

	return *name ? url ^ h5_siphash(key, name, strlen(name)) : url;
}

static bool is_open(const struct h5_remote *link, uint32_t file, const char *name, uint64_t version)
{
	return link->known[file] && !strcmp(link->names[file], name) &&
	       (!version || link->versions[file] == version);
}

/* The number of the file of that name, if it was opened before; H5_REMOTE_FILES: it was not. A file that has
 * been replaced since does not count, so that it is opened anew; only the mounted file never is. */
static uint32_t find_open(const struct h5_remote *link, const char *name, uint64_t version)
{
	for (uint32_t i = 0; i < H5_REMOTE_FILES; i++)
		if (is_open(link, i, name, version) && (!link->stale[i] || !*name))
			return i;
	return H5_REMOTE_FILES;
}

static uint32_t find_free(const struct h5_remote *link)
{
	uint32_t i = 0;

	while (i < H5_REMOTE_FILES && link->names[i])
		i++;
	return i;
}

/* Finds a number for a file that will be opened, and gives it the name. */
static int take_number(struct h5_remote *link, const char *name, uint32_t *file)
{
	*file = find_free(link);
	if (*file == H5_REMOTE_FILES) {
		h5_remote_close_unused(link, true);
		*file = find_free(link);
	}
	if (*file == H5_REMOTE_FILES)
		return h5_fail(-ENFILE, H5_UNDEF, "more than %d remote files", H5_REMOTE_FILES);
	link->names[*file] = strdup(name);
	return link->names[*file] ? 0 : -ENOMEM;
}

/* Asks the server for the file. On success the caller is one of its users. */
static int ask_for(struct h5_remote *link, const struct h5_remote_opening *opening)
{
	struct h5_remote_reply reply;
	int rc;

	/* Before the answer is there: other threads have the lock while this one waits, and close what has
	 * no users. */
	link->users[opening->file]++;
	rc = h5_remote_ask_open(link, opening, &reply);
	if (!rc && !opening->size)
		link->reason = reply.reason;
	if (!rc && reply.code)
		rc = h5_fail(reply.code, H5_UNDEF, "%s", *reply.text ? reply.text : strerror(-reply.code));
	link->users[opening->file] -= !!rc;
	return rc;
}

/* Opens what is not open yet. find_open() will find it by `name` and `version`. */
static int open_anew(struct h5_remote *link, const char *name, uint64_t version,
		     struct h5_remote_opening *opening)
{
	int rc = take_number(link, name, &opening->file);

	if (rc)
		return rc;
	link->versions[opening->file] = version;
	return ask_for(link, opening);
}

/* The caller is a user of the file with that number. */
static void use(struct remote *f, uint32_t file)
{
	f->file = file;
	f->size = f->link->sizes[file];
	f->mtime = f->link->mtimes[file];
}

static int open_file(struct remote *f, const char *name, uint64_t version, uint64_t first)
{
	struct h5_remote_opening opening = {.what = H5_REMOTE_OPEN,
					    .file = find_open(f->link, name, version),
					    .name = name,
					    .size = strlen(name),
					    .first = first};
	int rc = 0;

	if (opening.file < H5_REMOTE_FILES)
		f->link->users[opening.file]++;
	else
		rc = open_anew(f->link, name, version, &opening);
	if (!rc)
		use(f, opening.file);
	return rc;
}

/* True: the URL ends in that name, percent-encoded or as it is. */
static bool ends_in(const char *url, const char *name)
{
	const char *p = strrchr(url, '/') + 1;

	if (!strcmp(p, name))
		return true;
	for (; *p && *name; p++, name++) {
		int byte = *p == '%' ? h5_hex_byte(p + 1) : -1;

		if ((byte < 0 ? *p : (char)byte) != *name)
			return false;
		p += byte < 0 ? 0 : 2;
	}
	return *p == *name;
}

int h5_io_open_remote_version(struct h5_remote *link, const char *name, uint64_t version, uint64_t first,
			      struct h5_io **io)
{
	struct remote *f = calloc(1, sizeof *f);
	int rc;

	if (!f)
		return -ENOMEM;
	/* The mounted file, by its own name. */
	if (ends_in(link->url, name))
		name = "";
	f->io.ops = &remote_ops;
	f->link = link;
	f->identity = identity_of(link, name);
	pthread_mutex_lock(&link->lock);
	rc = strlen(name) < H5_REMOTE_NAME ? open_file(f, name, version, first) : -ENAMETOOLONG;
	unlock(link);
	if (rc)
		free(f);
	else
		*io = &f->io;
	return rc;
}

int h5_io_open_remote(struct h5_remote *link, const char *name, struct h5_io **io)
{
	return h5_io_open_remote_version(link, name, 0, H5_REMOTE_FIRST, io);
}

uint64_t h5_remote_tag(struct h5_remote *link, const char *name, uint64_t version)
{
	uint64_t tag = 0;
	uint32_t i;

	pthread_mutex_lock(&link->lock);
	i = find_open(link, name, version);
	if (i < H5_REMOTE_FILES)
		tag = link->tags[i];
	unlock(link);
	return tag;
}

/* ---- listings ---- */

/* `name`: as struct h5_remote_request has it. */
static int open_page(struct remote *f, const char *name, size_t size)
{
	struct h5_remote_opening opening = {
		.what = H5_REMOTE_LIST, .name = name, .size = size, .first = H5_REMOTE_FIRST};
	int rc = open_anew(f->link, "/", 0, &opening);

	if (!rc)
		use(f, opening.file);
	return rc;
}

static int read_page(struct remote *f, char **page, size_t *n)
{
	int rc;

	if (f->size > H5_REMOTE_LISTING)
		return h5_fail(-EIO, H5_UNDEF, "a page of the listing is longer than it may be");
	*page = malloc((size_t)f->size + 1);
	if (!*page)
		return -ENOMEM;
	rc = remote_read(&f->io, 0, *page, (size_t)f->size, n);
	assert(rc || *n == f->size);
	if (rc)
		free(*page);
	return rc;
}

int h5_remote_list(struct h5_remote *link, const char *below, const char *token, char **page, size_t *got)
{
	char name[H5_REMOTE_NAME];
	size_t n = strlen(below), m = token ? strlen(token) + 1 : 0;
	struct remote *f;
	int rc;

	if (n + m >= sizeof name)
		return -ENAMETOOLONG;
	f = calloc(1, sizeof *f);
	if (!f)
		return -ENOMEM;
	memcpy(name, below, n);
	name[n] = 0;
	if (m)
		memcpy(name + n + 1, token, m - 1);
	f->io.ops = &remote_ops;
	f->link = link;
	pthread_mutex_lock(&link->lock);
	rc = open_page(f, name, n + m);
	unlock(link);
	if (rc) {
		free(f);
		return rc;
	}
	rc = read_page(f, page, got);
	h5_io_close(&f->io);
	return rc;
}

const char *h5_remote_url(const struct h5_remote *link)
{
	return link->url;
}

void h5_remote_set_listener(struct h5_remote *link, void (*say)(const char *note))
{
	link->say = say;
}

enum h5_remote_reason h5_remote_reason(const struct h5_remote *link)
{
	return link->reason;
}

bool h5_remote_is_incomplete(struct h5_remote *link)
{
	bool incomplete;

	pthread_mutex_lock(&link->lock);
	incomplete = link->incomplete;
	pthread_mutex_unlock(&link->lock);
	return incomplete;
}

void h5_remote_statistics(struct h5_remote *link, struct h5_remote_statistics *statistics)
{
	pthread_mutex_lock(&link->lock);
	h5_remote_take(link);
	*statistics = link->statistics;
	statistics->unused = link->cells.wasted;
	for (uint32_t i = 0; i < link->cells.count; i++)
		statistics->unused += link->cells.list[i].state == H5_CELL_READY && !link->cells.list[i].used;
	statistics->unused *= H5_REMOTE_CELL;
	unlock(link);
}
