#include "io/io.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/lower_bound.h"
#include "base/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct members {
	struct h5_io io;
	atomic_uint count; /* the members before are complete */
	struct h5_io_pieces pieces;
	/* Of a family that can be written; else all 0: */
	struct h5_io_family family;
	pthread_mutex_t lock; /* held while a member is added */
	/* Of what can be written, for each member: something was written that no sync has made certain. */
	atomic_bool *unsynced;
	struct h5_io_member list[];
};

/* The member that holds the address: the last that does not start after it. The first starts at 0. */
static const struct h5_io_member *find(const struct members *m, unsigned count, uint64_t address)
{
	size_t after = h5_lower_bound(i, count, m->list[i].start <= address);

	assert(after);
	return &m->list[after - 1];
}

static int members_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct members *m = (const struct members *)io;
	unsigned count = m->count;
	const struct h5_io_member *member = find(m, count, offset), *end = m->list + count;
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

static int members_stat(struct h5_io *io, struct h5_io_stat *st)
{
	const struct members *m = (const struct members *)io;
	unsigned count = m->count;
	int rc = h5_io_stat(m->list[0].io, st);

	if (rc)
		return rc;
	st->size = st->stored = st->end = 0;
	st->pieces = m->pieces;
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = m->list[i].start;
		uint64_t most = (i + 1 < count ? m->list[i + 1].start : UINT64_MAX) - start;
		struct h5_io_stat one;

		if (!m->list[i].io)
			continue;
		rc = h5_io_stat(m->list[i].io, &one);
		if (rc)
			return rc;
		st->size += h5_min(one.size, most);
		st->stored += h5_min(one.stored, most);
		st->links = h5_max(st->links, one.links);
		h5_io_stat_join(st, &one);
		if (one.size)
			st->end = start + h5_min(one.size, most);
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
	if (m->family.release)
		m->family.release(m->family.arg);
	h5_mutex_destroy(&m->lock);
	free(m->unsynced);
	free(m);
}

/* All locks are given up, or a failure is told. */
static int members_unlock(struct h5_io *io)
{
	const struct members *m = (const struct members *)io;
	int rc = 0;

	for (unsigned i = 0; i < m->count; i++) {
		int failed = m->list[i].io ? h5_io_unlock(m->list[i].io) : 0;

		rc = rc ? rc : failed;
	}
	return rc;
}

static const struct h5_io_ops members_ops = {
	.read = members_read, .stat = members_stat, .unlock = members_unlock, .close = members_close};

static int members_new(const struct h5_io_member *members, unsigned count, unsigned most,
		       struct members **out)
{
	struct members *m = calloc(1, sizeof *m + most * sizeof *members);

	if (!m)
		return -ENOMEM;
	pthread_mutex_init(&m->lock, NULL);
	m->io.ops = &members_ops;
	m->count = count;
	memcpy(m->list, members, count * sizeof *members);
	*out = m;
	return 0;
}

int h5_io_open_members(const struct h5_io_member *members, unsigned count, struct h5_io **io)
{
	struct members *m;
	int rc = members_new(members, count, count, &m);

	if (!rc)
		*io = &m->io;
	return rc;
}

/* ---- what can be written ---- */

/* The same with room for `most`. */
static int writable_new(const struct h5_io_member *members, unsigned count, unsigned most,
			struct members **out)
{
	struct members *m;
	int rc = members_new(members, count, most, &m);

	assert(count && count <= most);
	if (rc)
		return rc;
	m->unsynced = calloc(most, sizeof *m->unsynced);
	if (!m->unsynced) {
		h5_mutex_destroy(&m->lock);
		free(m);
		return -ENOMEM;
	}
	/* A process that was killed may have written what the kernel has in memory only. */
	for (unsigned i = 0; i < count; i++)
		m->unsynced[i] = true;
	*out = m;
	return 0;
}

/* The member that holds the address, and (*left) how many bytes from there on it can hold; 0: the address
 * lies behind all members of a family. */
static unsigned find_member(const struct members *m, uint64_t address, uint64_t *left)
{
	unsigned count = m->count, i = (unsigned)(find(m, count, address) - m->list);
	uint64_t end = i + 1 < count	? m->list[i + 1].start
		       : m->pieces.size ? m->list[i].start + m->pieces.size
					: UINT64_MAX;

	*left = end > address ? end - address : 0;
	return i;
}

/* All members that the bytes lie in are there. */
static int members_write(struct members *m, uint64_t offset, const void *buf, size_t n)
{
	const uint8_t *p = buf;
	int rc = 0;

	while (n && !rc) {
		uint64_t left;
		unsigned i = find_member(m, offset, &left);
		size_t part = (size_t)h5_min(n, left);

		m->unsynced[i] = true;
		rc = h5_fail_in(h5_io_write(m->list[i].io, offset - m->list[i].start, p, part), "%s",
				m->list[i].name);
		p += part;
		offset += part;
		n -= part;
	}
	return rc;
}

static int members_punch(struct h5_io *io, uint64_t offset, uint64_t n)
{
	struct members *m = (struct members *)io;
	int rc = 0;

	while (n && !rc) {
		uint64_t left, part;
		unsigned i = find_member(m, offset, &left);

		if (!left)
			break;
		part = h5_min(n, left);
		m->unsynced[i] = true;
		rc = h5_io_punch(m->list[i].io, offset - m->list[i].start, part);
		offset += part;
		n -= part;
	}
	return rc;
}

static int members_sync(struct h5_io *io)
{
	struct members *m = (struct members *)io;

	for (unsigned i = 0; i < m->count; i++) {
		int rc = atomic_exchange(&m->unsynced[i], false) ? h5_io_sync(m->list[i].io) : 0;

		if (rc) {
			m->unsynced[i] = true;
			return h5_fail_in(rc, "%s", m->list[i].name);
		}
	}
	return 0;
}

static int member_resize(struct members *m, unsigned i, uint64_t size)
{
	struct h5_io_stat st;
	int rc = h5_io_stat(m->list[i].io, &st);

	if (rc || st.size == size)
		return rc;
	m->unsynced[i] = true;
	return h5_fail_in(h5_io_resize(m->list[i].io, size), "%s", m->list[i].name);
}

/* ---- a family ---- */

/* With the lock. Makes the next member. All members but the last have their full size. */
static int add_member(struct members *m)
{
	unsigned count = m->count;
	struct h5_io_member member = {0};
	int rc = 0;

	if (count == m->family.most)
		return h5_fail(-EFBIG, count * m->family.size, "a family of more than %u members",
			       m->family.most);
	/* One after the other, so that a failure leaves no gap. */
	rc = member_resize(m, count - 1, m->family.size);
	if (!rc)
		rc = m->family.make(m->family.arg, count, &member);
	if (rc)
		return rc;
	member.start = count * m->family.size;
	m->list[count] = member;
	m->unsynced[count] = true;
	m->count = count + 1;
	return 0;
}

/* Makes all members that the addresses before `end` lie in. */
static int reach(struct members *m, uint64_t end)
{
	int rc = 0;

	if (end <= m->count * m->family.size)
		return 0;
	pthread_mutex_lock(&m->lock);
	while (!rc && end > m->count * m->family.size)
		rc = add_member(m);
	pthread_mutex_unlock(&m->lock);
	return rc;
}

static int family_write(struct h5_io *io, uint64_t offset, const void *buf, size_t n)
{
	struct members *m = (struct members *)io;
	int rc = offset > (uint64_t)INT64_MAX - n
			 ? h5_fail(-EFBIG, offset, "write beyond the largest file offset")
			 : reach(m, offset + n);

	return rc ? rc : members_write(m, offset, buf, n);
}

/* As libhdf5 does, keeps the members behind the end, as empty files. It cuts the last member first, and
 * extends the first member first: if it stops on the way, all members before the last that is not empty are
 * still full. */
static int family_resize(struct h5_io *io, uint64_t size)
{
	struct members *m = (struct members *)io;
	const uint64_t each = m->family.size;
	uint64_t last = size ? (size - 1) / each : 0;
	int rc = size > INT64_MAX ? h5_fail(-EFBIG, size, "size beyond the largest file offset")
				  : reach(m, size);

	for (unsigned i = m->count; i-- > last + 1 && !rc;)
		rc = member_resize(m, i, 0);
	for (unsigned i = 0; i < last && !rc; i++)
		rc = member_resize(m, i, each);
	return rc ? rc : member_resize(m, (unsigned)last, size - last * each);
}

static const struct h5_io_ops family_ops = {.read = members_read,
					    .stat = members_stat,
					    .write = family_write,
					    .resize = family_resize,
					    .sync = members_sync,
					    .punch = members_punch,
					    .unlock = members_unlock,
					    .close = members_close};

int h5_io_open_family(const struct h5_io_member *members, unsigned count, const struct h5_io_family *family,
		      struct h5_io **io)
{
	struct members *m;
	int rc = writable_new(members, count, family->most, &m);

	if (rc)
		return rc;
	m->io.ops = &family_ops;
	m->family = *family;
	m->pieces.size = family->size;
	*io = &m->io;
	return 0;
}

/* ---- members of the multi driver ---- */

static int multi_resize(struct h5_io *io, uint64_t size)
{
	struct members *m = (struct members *)io;
	uint64_t left;
	unsigned i;

	assert(size);
	i = find_member(m, size - 1, &left);
	return member_resize(m, i, size - m->list[i].start);
}

static int multi_write(struct h5_io *io, uint64_t offset, const void *buf, size_t n)
{
	return n > UINT64_MAX - offset ? h5_fail(-EFBIG, offset, "write beyond the last address")
				       : members_write((struct members *)io, offset, buf, n);
}

static const struct h5_io_ops multi_ops = {.read = members_read,
					   .stat = members_stat,
					   .write = multi_write,
					   .resize = multi_resize,
					   .sync = members_sync,
					   .punch = members_punch,
					   .unlock = members_unlock,
					   .close = members_close};

int h5_io_open_multi(const struct h5_io_member *members, unsigned count, struct h5_io **io)
{
	struct members *m;
	int rc = writable_new(members, count, H5_IO_MEMBERS_MAX, &m);

	if (rc)
		return rc;
	m->io.ops = &multi_ops;
	m->pieces.count = count;
	for (unsigned i = 0; i < count; i++)
		m->pieces.start[i] = members[i].start;
	*io = &m->io;
	return 0;
}

/* ---- */

bool h5_io_members_have(const struct h5_io *io, uint64_t device, uint64_t inode)
{
	const struct members *m = (const struct members *)io;
	struct h5_io_stat st;

	assert(io->ops == &members_ops || io->ops == &family_ops || io->ops == &multi_ops);
	for (unsigned i = 0; i < m->count; i++)
		if (m->list[i].io && !h5_io_stat(m->list[i].io, &st) && st.device == device &&
		    st.inode == inode)
			return true;
	return false;
}
