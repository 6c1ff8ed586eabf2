#include "io/pages.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/lower_bound.h"

#include <stdlib.h>
#include <string.h>

struct pages {
	struct h5_io io;
	struct h5_io_paged p;
};

/* Bytes of the origin, and zeros behind them. */
static int read_origin(const struct h5_io_paged *p, uint64_t offset, char *buf, size_t n, size_t *got)
{
	size_t there = offset < p->origin_end ? (size_t)h5_min(n, p->origin_end - offset) : 0;
	int rc;

	*got = n;
	if (there) {
		rc = h5_io_read_some(p->origin, offset, buf, there, got);
		if (rc || *got < there)
			return rc;
		*got = n;
	}
	memset(buf + there, 0, n - there);
	return 0;
}

static int pages_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct h5_io_paged *p = &((struct pages *)io)->p;
	size_t next;

	*got = 0;
	if (offset >= p->end)
		return 0;
	n = (size_t)h5_min(n, p->end - offset);
	next = h5_lower_bound(i, p->count, p->runs[i].start + p->runs[i].n <= offset);
	while (*got < n) {
		uint64_t at = offset + *got;
		const struct h5_io_run *run = next < p->count ? &p->runs[next] : NULL;
		bool inside = run && run->start <= at;
		uint64_t stop = inside ? run->start + run->n : run ? run->start : p->end;
		size_t part = (size_t)h5_min(n - *got, stop - at), there;
		char *to = (char *)buf + *got;
		int rc = inside ? h5_io_read_some(p->pages, run->offset + (at - run->start), to, part, &there)
				: read_origin(p, at, to, part, &there);

		if (rc)
			return rc;
		*got += there;
		if (there < part)
			break;
		next += inside;
	}
	return 0;
}

static int pages_stat(struct h5_io *io, struct h5_io_stat *st)
{
	const struct h5_io_paged *p = &((struct pages *)io)->p;
	struct h5_io_stat pages;
	int rc = h5_io_stat(p->origin, st);

	if (!rc)
		rc = h5_io_stat(p->pages, &pages);
	if (rc)
		return rc;
	st->size = st->end = p->end;
	if (!h5_add(st->stored, pages.stored, &st->stored) || st->stored > p->end)
		st->stored = p->end;
	h5_io_stat_join(st, &pages);
	if (p->time.tv_sec)
		st->mtime = st->ctime = p->time;
	st->device = p->device;
	st->inode = p->inode;
	return 0;
}

static void pages_close(struct h5_io *io)
{
	struct pages *pages = (struct pages *)io;

	*pages->p.open_runs -= pages->p.count;
	free(pages->p.runs);
	free(pages);
}

static const struct h5_io_ops pages_ops = {.read = pages_read, .stat = pages_stat, .close = pages_close};

int h5_io_open_paged(const struct h5_io_paged *paged, struct h5_io **io)
{
	struct pages *pages = calloc(1, sizeof *pages);

	if (!pages)
		return -ENOMEM;
	pages->io.ops = &pages_ops;
	pages->p = *paged;
	*io = &pages->io;
	return 0;
}
