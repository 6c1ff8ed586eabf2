#include "io/io.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/lower_bound.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct members {
	struct h5_io io;
	unsigned count;
	struct h5_io_member list[];
};

/* The member that holds the address: the last that does not start after it. The first starts at 0. */
static const struct h5_io_member *find(const struct members *m, uint64_t address)
{
	size_t after = h5_lower_bound(i, m->count, m->list[i].start <= address);

	assert(after);
	return &m->list[after - 1];
}

static int members_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct members *m = (const struct members *)io;
	const struct h5_io_member *member = find(m, offset), *end = m->list + m->count;
	char *p = buf;

	for (*got = 0; *got < n && member < end; member++) {
		uint64_t at = offset + *got;
		uint64_t left = (member + 1 < end ? member[1].start : UINT64_MAX) - at;
		size_t part = (size_t)h5_min(n - *got, left), there;
		int rc;

		if (!member->io)
			return h5_fail(-EIO, at, "%s is missing", member->name);
		rc = h5_io_read_some(member->io, at - member->start, p + *got, part, &there);
		if (rc)
			return h5_fail_in(rc, "%s", member->name);
		*got += there;
		if (there < part)
			break;
	}
	return 0;
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static int members_stat(struct h5_io *io, struct h5_io_stat *st)
{
	const struct members *m = (const struct members *)io;
	int rc = h5_io_stat(m->list[0].io, st);

	if (rc)
		return rc;
	st->size = st->stored = st->end = 0;
	for (unsigned i = 0; i < m->count; i++) {
		uint64_t start = m->list[i].start;
		uint64_t most = (i + 1 < m->count ? m->list[i + 1].start : UINT64_MAX) - start;
		struct h5_io_stat one;

		if (!m->list[i].io)
			continue;
		rc = h5_io_stat(m->list[i].io, &one);
		if (rc)
			return rc;
		st->size += h5_min(one.size, most);
		st->stored += h5_min(one.stored, most);
		st->locked &= one.locked;
		if (one.size)
			st->end = start + h5_min(one.size, most);
		if (is_later(&one.mtime, &st->mtime))
			st->mtime = one.mtime;
		if (is_later(&one.ctime, &st->ctime))
			st->ctime = one.ctime;
	}
	return 0;
}

void h5_io_members_release(struct h5_io_member *members, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		h5_io_close(members[i].io);
		free(members[i].name);
		members[i] = (struct h5_io_member){0};
	}
}

static void members_close(struct h5_io *io)
{
	struct members *m = (struct members *)io;

	h5_io_members_release(m->list, m->count);
	free(m);
}

static const struct h5_io_ops members_ops = {
	.read = members_read, .stat = members_stat, .close = members_close};

int h5_io_open_members(const struct h5_io_member *members, unsigned count, struct h5_io **io)
{
	struct members *m = calloc(1, sizeof *m + count * sizeof *members);

	if (!m)
		return -ENOMEM;
	m->io.ops = &members_ops;
	m->count = count;
	memcpy(m->list, members, count * sizeof *members);
	*io = &m->io;
	return 0;
}
