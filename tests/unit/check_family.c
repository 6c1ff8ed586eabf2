/* A family of files that is written, over members that note each call. */
#include "base/error.h"
#include "io/io.h"
#include "unit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { EACH = 100, MOST = 5, LOG_SIZE = 400 };

/* A member in memory. The next call of a kind fails with that error, if there is one. */
struct piece {
	struct h5_io io;
	unsigned number;
	struct scene *scene;
	uint8_t bytes[EACH];
	uint64_t size;
	int write_error, resize_error, sync_error;
	bool is_open, is_unlocked;
};

struct scene {
	struct piece pieces[MOST];
	struct h5_io *io;
	int make_error; /* of the next member that is to be made */
	unsigned released;
	char log[LOG_SIZE]; /* the calls that changed something: "write 1 at 90 n 10, ..." */
};

static void note(struct scene *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct scene *s, const char *format, ...)
{
	size_t at = strlen(s->log);
	va_list arguments;

	if (at)
		at += (size_t)snprintf(s->log + at, LOG_SIZE - at, ", ");
	va_start(arguments, format);
	vsnprintf(s->log + at, LOG_SIZE - at, format, arguments);
	va_end(arguments);
	ck_assert_uint_lt(strlen(s->log), LOG_SIZE - 1);
}

/* These calls were made since the last time, in this order. */
static void expect(struct scene *s, const char *calls)
{
	ck_assert_str_eq(s->log, calls);
	s->log[0] = 0;
}

/* ---- a member ---- */

static int take_error(int *error)
{
	int rc = *error;

	*error = 0;
	return rc;
}

static int piece_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct piece *piece = (struct piece *)io;

	*got = offset > piece->size ? 0 : n < piece->size - offset ? n : (size_t)(piece->size - offset);
	memcpy(buf, piece->bytes + offset, *got);
	return 0;
}

static int piece_stat(struct h5_io *io, struct h5_io_stat *st)
{
	const struct piece *piece = (struct piece *)io;

	*st = (struct h5_io_stat){.size = piece->size,
				  .stored = piece->size,
				  .end = piece->size,
				  .inode = piece->number + 1,
				  .links = 1,
				  .locked = !piece->is_unlocked};
	return 0;
}

static int piece_write(struct h5_io *io, uint64_t offset, const void *buf, size_t n)
{
	struct piece *piece = (struct piece *)io;

	note(piece->scene, "write %u at %ju n %zu", piece->number, (uintmax_t)offset, n);
	ck_assert(n && offset <= EACH && n <= EACH - offset);
	if (piece->write_error)
		return take_error(&piece->write_error);
	memcpy(piece->bytes + offset, buf, n);
	piece->size = piece->size > offset + n ? piece->size : offset + n;
	return 0;
}

static int piece_resize(struct h5_io *io, uint64_t size)
{
	struct piece *piece = (struct piece *)io;

	note(piece->scene, "resize %u to %ju", piece->number, (uintmax_t)size);
	ck_assert(size <= EACH || size == INT64_MAX); /* the largest one, which no bytes are written to */
	if (piece->resize_error)
		return take_error(&piece->resize_error);
	if (size < piece->size)
		memset(piece->bytes + size, 0, (size_t)(piece->size - size));
	piece->size = size;
	return 0;
}

static int piece_sync(struct h5_io *io)
{
	struct piece *piece = (struct piece *)io;

	note(piece->scene, "sync %u", piece->number);
	return take_error(&piece->sync_error);
}

static int piece_punch(struct h5_io *io, uint64_t offset, uint64_t n)
{
	struct piece *piece = (struct piece *)io;

	note(piece->scene, "punch %u at %ju n %ju", piece->number, (uintmax_t)offset, (uintmax_t)n);
	memset(piece->bytes + offset, 0, (size_t)n);
	return 0;
}

static int piece_unlock(struct h5_io *io)
{
	note(((struct piece *)io)->scene, "unlock %u", ((struct piece *)io)->number);
	return 0;
}

static void piece_close(struct h5_io *io)
{
	((struct piece *)io)->is_open = false;
}

static const struct h5_io_ops piece_ops = {.read = piece_read,
					   .stat = piece_stat,
					   .write = piece_write,
					   .resize = piece_resize,
					   .sync = piece_sync,
					   .punch = piece_punch,
					   .unlock = piece_unlock,
					   .close = piece_close};

static struct h5_io_member open_piece(struct scene *s, unsigned number)
{
	struct piece *piece = &s->pieces[number];
	char *name;

	ck_assert(!piece->is_open);
	piece->io.ops = &piece_ops;
	piece->number = number;
	piece->scene = s;
	piece->is_open = true;
	ck_assert_int_gt(asprintf(&name, "piece %u", number), 0);
	return (struct h5_io_member){.io = &piece->io, .start = number * EACH, .name = name};
}

/* ---- the family ---- */

static int make_piece(void *arg, unsigned number, struct h5_io_member *member)
{
	struct scene *s = arg;

	note(s, "make %u", number);
	if (s->make_error)
		return take_error(&s->make_error);
	*member = open_piece(s, number);
	return 0;
}

static void note_release(void *arg)
{
	((struct scene *)arg)->released++;
}

/* Full members, the last of which has `rest` bytes. What the family syncs when it is new is synced. */
static void begin(struct scene *s, unsigned count, uint64_t rest)
{
	const struct h5_io_family family = {
		.size = EACH, .most = MOST, .make = make_piece, .release = note_release, .arg = s};
	struct h5_io_member members[MOST];

	memset(s, 0, sizeof *s);
	for (unsigned i = 0; i < count; i++) {
		members[i] = open_piece(s, i);
		memset(s->pieces[i].bytes, 'a' + (int)i, EACH);
		s->pieces[i].size = i + 1 < count ? EACH : rest;
	}
	ck_assert_int_eq(h5_io_open_family(members, count, &family, &s->io), 0);
	ck_assert_int_eq(h5_io_sync(s->io), 0);
	s->log[0] = 0;
}

static void end(struct scene *s)
{
	h5_io_close(s->io);
	ck_assert_uint_eq(s->released, 1);
	for (unsigned i = 0; i < MOST; i++)
		ck_assert(!s->pieces[i].is_open);
}

static void write_bytes(struct scene *s, uint64_t offset, size_t n, int rc)
{
	uint8_t bytes[MOST * EACH];

	memset(bytes, 'z', n);
	ck_assert_int_eq(h5_io_write(s->io, offset, bytes, n), rc);
}

static void sync_all(struct scene *s, int rc, const char *calls)
{
	s->log[0] = 0;
	ck_assert_int_eq(h5_io_sync(s->io), rc);
	expect(s, calls);
}

/* ---- syncs ---- */

START_TEST(a_new_family_syncs_all)
{
	struct scene s;
	const struct h5_io_family family = {
		.size = EACH, .most = MOST, .make = make_piece, .release = note_release, .arg = &s};
	struct h5_io_member members[3];

	memset(&s, 0, sizeof s);
	for (unsigned i = 0; i < 3; i++)
		members[i] = open_piece(&s, i);
	ck_assert_int_eq(h5_io_open_family(members, 3, &family, &s.io), 0);
	sync_all(&s, 0, "sync 0, sync 1, sync 2");
	sync_all(&s, 0, "");
	end(&s);
}
END_TEST

START_TEST(a_sync_reaches_what_was_written)
{
	struct scene s;

	begin(&s, 4, 50);
	sync_all(&s, 0, "");
	for (unsigned i = 0; i < 4; i++) {
		char calls[20];

		write_bytes(&s, i * EACH + 5, 20, 0);
		snprintf(calls, sizeof calls, "sync %u", i);
		sync_all(&s, 0, calls);
	}
	write_bytes(&s, 2 * EACH - 1, 2, 0);
	sync_all(&s, 0, "sync 1, sync 2");
	write_bytes(&s, 350, 1, 0);
	write_bytes(&s, 0, 1, 0);
	sync_all(&s, 0, "sync 0, sync 3");
	ck_assert_int_eq(h5_io_punch(s.io, 190, 20), 0);
	sync_all(&s, 0, "sync 1, sync 2");
	ck_assert_int_eq(h5_io_resize(s.io, 320), 0);
	sync_all(&s, 0, "sync 3");
	sync_all(&s, 0, "");
	end(&s);
}
END_TEST

/* Those that a failing sync has reached are not synced again; that one is, and the others behind it. */
START_TEST(a_failing_sync_is_made_again)
{
	struct scene s;

	begin(&s, 4, 50);
	write_bytes(&s, 0, 350, 0);
	s.pieces[1].sync_error = -EIO;
	sync_all(&s, -EIO, "sync 0, sync 1");
	ck_assert_msg(strstr(h5_error_last()->text, "piece 1"), "%s", h5_error_last()->text);
	write_bytes(&s, 0, 1, 0);
	s.pieces[3].sync_error = -ENOSPC;
	sync_all(&s, -ENOSPC, "sync 0, sync 1, sync 2, sync 3");
	sync_all(&s, 0, "sync 3");
	sync_all(&s, 0, "");
	/* A write that fails may have written something. */
	s.pieces[2].write_error = -EIO;
	write_bytes(&s, 250, 10, -EIO);
	sync_all(&s, 0, "sync 2");
	s.pieces[3].resize_error = -EIO;
	ck_assert_int_eq(h5_io_resize(s.io, 310), -EIO);
	sync_all(&s, 0, "sync 3");
	end(&s);
}
END_TEST

/* A member that was made for bytes that never came is a new file all the same. */
START_TEST(a_new_member_is_synced)
{
	struct scene s;

	begin(&s, 2, EACH);
	s.pieces[1].write_error = -EIO;
	write_bytes(&s, EACH + 50, EACH, -EIO);
	sync_all(&s, 0, "sync 1, sync 2");
	sync_all(&s, 0, "");
	end(&s);
}
END_TEST

/* ---- writes ---- */

START_TEST(a_write_goes_to_all_its_members)
{
	uint8_t back[20];
	struct scene s;

	begin(&s, 3, EACH);
	write_bytes(&s, 95, 10, 0);
	expect(&s, "write 0 at 95 n 5, write 1 at 0 n 5");
	ck_assert_int_eq(h5_io_read(s.io, 90, back, 20), 0);
	ck_assert_mem_eq(back, "aaaaazzzzzzzzzzbbbbb", 20);
	write_bytes(&s, 99, 102, 0);
	expect(&s, "write 0 at 99 n 1, write 1 at 0 n 100, write 2 at 0 n 1");
	write_bytes(&s, 100, 100, 0);
	expect(&s, "write 1 at 0 n 100");
	/* It ends at the first member that fails. */
	s.pieces[1].write_error = -ENOSPC;
	write_bytes(&s, 50, 200, -ENOSPC);
	expect(&s, "write 0 at 50 n 50, write 1 at 0 n 100");
	ck_assert_msg(strstr(h5_error_last()->text, "piece 1"), "%s", h5_error_last()->text);
	ck_assert_int_eq(h5_io_punch(s.io, 150, 100), 0);
	expect(&s, "punch 1 at 50 n 50, punch 2 at 0 n 50");
	ck_assert_int_eq(h5_io_punch(s.io, 290, 100), 0);
	expect(&s, "punch 2 at 90 n 10");
	end(&s);
}
END_TEST

/* ---- new members ---- */

START_TEST(members_are_made)
{
	uint8_t back[20];
	struct scene s;

	begin(&s, 2, 30);
	/* The last member is full before the next one is there. */
	write_bytes(&s, 190, 20, 0);
	expect(&s, "resize 1 to 100, make 2, write 1 at 90 n 10, write 2 at 0 n 10");
	ck_assert_int_eq(h5_io_read(s.io, 190, back, 20), 0);
	ck_assert_mem_eq(back, "zzzzzzzzzzzzzzzzzzzz", 20);
	sync_all(&s, 0, "sync 1, sync 2");
	write_bytes(&s, 410, 10, 0);
	expect(&s, "resize 2 to 100, make 3, resize 3 to 100, make 4, write 4 at 10 n 10");
	sync_all(&s, 0, "sync 2, sync 3, sync 4");
	/* No more than the most. */
	write_bytes(&s, 495, 6, -EFBIG);
	ck_assert_int_eq(h5_io_resize(s.io, 501), -EFBIG);
	write_bytes(&s, (uint64_t)INT64_MAX - 3, 6, -EFBIG);
	ck_assert_int_eq(h5_io_resize(s.io, (uint64_t)INT64_MAX + 1), -EFBIG);
	sync_all(&s, 0, "");
	end(&s);
}
END_TEST

START_TEST(a_write_that_ends_with_a_member)
{
	struct scene s;

	begin(&s, 1, 30);
	write_bytes(&s, 190, 10, 0);
	expect(&s, "resize 0 to 100, make 1, write 1 at 90 n 10");
	end(&s);
}
END_TEST

START_TEST(a_member_that_cannot_be_made)
{
	struct h5_io_stat st;
	struct scene s;

	begin(&s, 1, 30);
	s.make_error = -EEXIST;
	write_bytes(&s, 250, 10, -EEXIST);
	expect(&s, "resize 0 to 100, make 1");
	sync_all(&s, 0, "sync 0");
	s.pieces[1].resize_error = -ENOSPC;
	write_bytes(&s, 250, 10, -ENOSPC);
	expect(&s, "make 1, resize 1 to 100");
	/* What there is now is a family, and goes on. */
	ck_assert_int_eq(h5_io_stat(s.io, &st), 0);
	ck_assert_uint_eq(st.size, EACH);
	ck_assert_uint_eq(st.end, EACH);
	write_bytes(&s, 250, 10, 0);
	expect(&s, "resize 1 to 100, make 2, write 2 at 50 n 10");
	ck_assert_int_eq(h5_io_stat(s.io, &st), 0);
	ck_assert_uint_eq(st.size, 260);
	ck_assert_uint_eq(st.end, 260);
	sync_all(&s, 0, "sync 1, sync 2");
	end(&s);
}
END_TEST

/* ---- sizes ---- */

START_TEST(sizes)
{
	struct h5_io_stat st;
	struct scene s;

	begin(&s, 4, 50);
	/* The last member goes first; none is closed. */
	ck_assert_int_eq(h5_io_resize(s.io, 120), 0);
	expect(&s, "resize 3 to 0, resize 2 to 0, resize 1 to 20");
	ck_assert_int_eq(h5_io_stat(s.io, &st), 0);
	ck_assert_uint_eq(st.size, 120);
	ck_assert_uint_eq(st.end, 120);
	sync_all(&s, 0, "sync 1, sync 2, sync 3");
	ck_assert_int_eq(h5_io_resize(s.io, 120), 0);
	expect(&s, "");
	/* The first one grows first. */
	ck_assert_int_eq(h5_io_resize(s.io, 370), 0);
	expect(&s, "resize 1 to 100, resize 2 to 100, resize 3 to 70");
	sync_all(&s, 0, "sync 1, sync 2, sync 3");
	ck_assert_int_eq(h5_io_resize(s.io, 450), 0);
	expect(&s, "resize 3 to 100, make 4, resize 4 to 50");
	sync_all(&s, 0, "sync 3, sync 4");
	ck_assert_int_eq(h5_io_resize(s.io, 200), 0);
	expect(&s, "resize 4 to 0, resize 3 to 0, resize 2 to 0");
	ck_assert_int_eq(h5_io_resize(s.io, 0), 0);
	expect(&s, "resize 1 to 0, resize 0 to 0");
	ck_assert_int_eq(h5_io_stat(s.io, &st), 0);
	ck_assert_uint_eq(st.size, 0);
	ck_assert_uint_eq(st.end, 0);
	end(&s);
}
END_TEST

START_TEST(the_largest_size)
{
	struct scene s;
	const struct h5_io_family family = {
		.size = INT64_MAX, .most = MOST, .make = make_piece, .release = note_release, .arg = &s};
	struct h5_io_member member;

	memset(&s, 0, sizeof s);
	member = open_piece(&s, 0);
	ck_assert_int_eq(h5_io_open_family(&member, 1, &family, &s.io), 0);
	ck_assert_int_eq(h5_io_resize(s.io, (uint64_t)INT64_MAX + 1), -EFBIG);
	expect(&s, "");
	ck_assert_int_eq(h5_io_resize(s.io, INT64_MAX), 0);
	expect(&s, "resize 0 to 9223372036854775807");
	end(&s);
}
END_TEST

START_TEST(a_failing_resize_leaves_no_gap)
{
	struct scene s;

	begin(&s, 4, 50);
	s.pieces[2].resize_error = -EIO;
	ck_assert_int_eq(h5_io_resize(s.io, 120), -EIO);
	expect(&s, "resize 3 to 0, resize 2 to 0");
	ck_assert_int_eq(h5_io_resize(s.io, 120), 0);
	expect(&s, "resize 2 to 0, resize 1 to 20");
	s.pieces[1].resize_error = -ENOSPC;
	ck_assert_int_eq(h5_io_resize(s.io, 350), -ENOSPC);
	expect(&s, "resize 1 to 100");
	end(&s);
}
END_TEST

/* ---- the rest ---- */

START_TEST(locks_and_identities)
{
	struct h5_io_stat st;
	struct scene s;

	begin(&s, 3, 50);
	ck_assert_int_eq(h5_io_stat(s.io, &st), 0);
	ck_assert(st.locked);
	for (unsigned i = 0; i < 3; i++) {
		s.pieces[i].is_unlocked = true;
		ck_assert_int_eq(h5_io_stat(s.io, &st), 0);
		ck_assert(!st.locked);
		s.pieces[i].is_unlocked = false;
	}
	write_bytes(&s, 300, 1, 0);
	for (unsigned i = 0; i < 4; i++)
		ck_assert(h5_io_members_have(s.io, 0, i + 1));
	ck_assert(!h5_io_members_have(s.io, 0, 5));
	ck_assert(!h5_io_members_have(s.io, 1, 1));
	s.log[0] = 0;
	ck_assert_int_eq(h5_io_unlock(s.io), 0);
	expect(&s, "unlock 0, unlock 1, unlock 2, unlock 3");
	end(&s);
}
END_TEST

UNIT_MAIN("family", a_new_family_syncs_all, a_sync_reaches_what_was_written, a_failing_sync_is_made_again,
	  a_new_member_is_synced, a_write_goes_to_all_its_members, members_are_made,
	  a_write_that_ends_with_a_member, a_member_that_cannot_be_made, sizes, the_largest_size,
	  a_failing_resize_leaves_no_gap, locks_and_identities)
