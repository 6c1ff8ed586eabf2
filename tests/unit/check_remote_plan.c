/* What the daemon asks its fetcher for, and when: the test is the fetcher. */
#include "io/remote_cells.h"
#include "io/remote_link.h"
#include "link_scene.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

static uint64_t bytes_of(const struct scene *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->count; i++)
		n += s->log[i].n;
	return n;
}

static void want_every(struct scene *s, uint64_t first, uint64_t step, uint64_t n, size_t count,
		       enum h5_wanted when)
{
	struct h5_io_range *ranges = calloc(count, sizeof *ranges);

	for (size_t i = 0; i < count; i++)
		ranges[i] = (struct h5_io_range){first + i * step, n};
	ck_assert(h5_io_want(s->io, ranges, count, when));
	free(ranges);
	take_all(s);
}

static void expect(const struct scene *s, size_t i, uint64_t offset, uint64_t n)
{
	ck_assert_uint_lt(i, s->count);
	ck_assert_uint_eq(s->log[i].offset, offset);
	ck_assert_uint_eq(s->log[i].n, n);
}

static struct scene scene;

/* ---- data ---- */

START_TEST(a_link_without_descriptors)
{
	const int next = dup(0);
	unsigned made = 0, failed = 0;
	struct rlimit before, limit;

	close(next);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	for (unsigned more = 0; more < 5; more++) {
		struct h5_remote *link = NULL;
		struct h5_remote_end end = {.fd = -1};
		int rc;

		limit.rlim_cur = (rlim_t)next + more;
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		rc = h5_remote_new("http://host/", MIB, 1, &link, &end);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
		ck_assert(!rc || rc == -EMFILE);
		failed += rc != 0;
		if (!rc) {
			made++;
			ck_assert_int_ge(end.fd, 0);
			close(end.fd);
			h5_remote_close(link);
		}
	}
	ck_assert(made && failed);
}
END_TEST

START_TEST(extents_are_joined_over_small_gaps)
{
	const struct h5_io_range ranges[] = {
		{10 * MIB + 5, 100}, {10 * MIB + 192 * KIB, CELL}, {11 * MIB, 1}, {12 * MIB, 20 * KIB}};

	begin(&scene, 100 * MIB, 64 * MIB);
	h5_io_want(scene.io, ranges, 4, H5_WANTED_NOW);
	take_all(&scene);
	ck_assert_uint_eq(scene.count, 3);
	expect(&scene, 0, 10 * MIB, 192 * KIB + CELL);
	expect(&scene, 1, 11 * MIB, CELL);
	expect(&scene, 2, 12 * MIB, 2 * CELL);
	/* A range that is read now is fetched before one that is read soon, and does not count as read ahead.
	 */
	h5_io_want(scene.io, &(struct h5_io_range){50 * MIB, 1}, 1, H5_WANTED_SOON);
	take_all(&scene);
	ck_assert_uint_eq(scene.count, 4);
	for (size_t i = 0; i < 4; i++)
		ck_assert_uint_eq(scene.log[i].urgent, i < 3);
	ck_assert_uint_eq(scene.link->cells.waiting, scene.log[3].n / CELL);
	end(&scene);
}
END_TEST

START_TEST(long_extents_are_cut_without_small_rests)
{
	begin(&scene, 1000 * (uint64_t)MIB, 256 * MIB);
	want_every(&scene, 10 * MIB, 0, 32 * MIB + CELL, 1, H5_WANTED_NOW);
	ck_assert_uint_eq(bytes_of(&scene), 32 * MIB + CELL);
	ck_assert_uint_eq(scene.count, 16);
	for (size_t i = 0; i < scene.count; i++) {
		ck_assert_uint_ge(scene.log[i].n, MIB);
		ck_assert_uint_le(scene.log[i].n, H5_REMOTE_PART);
	}
	end(&scene);
}
END_TEST

START_TEST(small_reads_bring_their_block_and_large_ones_themselves)
{
	static uint8_t buf[3 * CELL];

	begin(&scene, 100 * MIB - 5, 64 * MIB);
	begin_to_serve(&scene);
	ck_assert_int_eq(h5_io_read(scene.io, 7 * MIB + 12345, buf, 100), 0);
	ck_assert_int_eq(h5_io_read(scene.io, 7 * MIB, buf, sizeof buf), 0);
	ck_assert_int_eq(h5_io_read(scene.io, 9 * MIB, buf, sizeof buf), 0);
	/* Of this one the first cell is there. */
	ck_assert_int_eq(h5_io_read(scene.io, 9 * MIB + 2 * CELL, buf, sizeof buf), 0);
	ck_assert_int_eq(h5_io_read(scene.io, scene.size - 1, buf, 1), 0);
	end(&scene);
	ck_assert_uint_eq(scene.count, 4);
	expect(&scene, 0, 7 * MIB, MIB);
	expect(&scene, 1, 9 * MIB, 3 * CELL);
	expect(&scene, 2, 9 * MIB + 3 * CELL, 2 * CELL);
	expect(&scene, 3, 99 * MIB, MIB - 5);
	for (size_t i = 0; i < scene.count; i++)
		ck_assert_uint_eq(scene.log[i].urgent, 1);
}
END_TEST

/* A read of several cells, all of which are there, brings nothing that is around them. */
START_TEST(what_is_there_brings_nothing)
{
	const struct h5_io_range range = {7 * MIB + 5 * CELL, 2 * CELL};
	static uint8_t buf[2 * CELL];

	begin(&scene, 100 * MIB, 64 * MIB);
	begin_to_serve(&scene);
	h5_io_want(scene.io, &range, 1, H5_WANTED_NOW);
	for (uint64_t at = 0; at < 5; at++)
		ck_assert_int_eq(h5_io_read(scene.io, 7 * MIB + 5 * CELL + at, buf, 2 * CELL - at), 0);
	end(&scene);
	ck_assert_uint_eq(scene.count, 1);
	expect(&scene, 0, 7 * MIB + 5 * CELL, 2 * CELL);
}
END_TEST

/* A window that is as large as it may be: nothing is asked for twice, and nothing that was read is kept in
 * place of what will be. */
START_TEST(reading_in_order_asks_once)
{
	enum { STEP = 128 * KIB, WINDOW = 48 * MIB };
	static uint8_t buf[STEP];
	uint64_t wanted = MIB;

	begin(&scene, 400 * MIB, 64 * MIB);
	begin_to_serve(&scene);
	for (uint64_t at = 0; at < scene.size; at += STEP) {
		uint64_t to = h5_min(at + WINDOW, scene.size);
		struct h5_io_range range = {wanted, to - h5_min(wanted, to)};

		if (range.n >= WINDOW / 8 || to == scene.size) {
			wanted = to;
			if (range.n)
				h5_io_want(scene.io, &range, 1, H5_WANTED_SOON);
		}
		ck_assert_int_eq(h5_io_read(scene.io, at, buf, STEP), 0);
	}
	end(&scene);
	ck_assert_uint_eq(bytes_of(&scene), 399 * MIB);
	ck_assert_uint_lt(scene.count, 400);
}
END_TEST

/* Enough for all connections, and some that wait for one; more come with the replies. */
START_TEST(each_connection_has_a_request)
{
	static const unsigned connections[] = {1, 32, H5_REMOTE_CONNECTIONS};

	for (size_t i = 0; i < sizeof connections / sizeof *connections; i++) {
		begin_with(&scene, 2000 * (uint64_t)MIB, 256 * MIB, connections[i]);
		want_every(&scene, 2 * MIB, MIB, 512, 1000, H5_WANTED_SOON);
		ck_assert_uint_eq(scene.count, connections[i] + 4);
		want_every(&scene, 1100 * (uint64_t)MIB, MIB, 512, 500, H5_WANTED_NOW);
		ck_assert_uint_eq(scene.count, connections[i] + 24);
		end(&scene);
	}
}
END_TEST

/* If more is announced than there is room for, what came first is forgotten, and the rest asked for in its
 * order. */
START_TEST(what_was_announced_first_is_forgotten)
{
	enum { MORE = 7 };

	begin_with(&scene, 5000 * (uint64_t)MIB, 256 * MIB, 1);
	want_every(&scene, 2 * MIB, MIB, 512, H5_REMOTE_ANNOUNCED + MORE, H5_WANTED_SOON);
	ck_assert_uint_eq(scene.count, 5);
	for (size_t i = 0; i < scene.count; i++)
		ck_assert_uint_eq(scene.log[i].offset, (2 + MORE + i) * MIB);
	for (size_t done = 0; done < 20; done++) {
		ck_assert_uint_lt(done, scene.count);
		ck_assert_uint_eq(scene.log[done].offset, (2 + MORE + done) * MIB);
		reply_to(&scene, &scene.log[done], 0);
		h5_io_want(scene.io, &(struct h5_io_range){scene.log[0].offset, 1}, 1, H5_WANTED_SOON);
		take_all(&scene);
	}
	end(&scene);
}
END_TEST

/* Somebody reads in the middle of an announced range, most of which has not been asked for. The daemon asks
 * for what is read before it asks for the rest. */
START_TEST(what_is_read_comes_before_what_is_announced)
{
	static uint8_t buf[CELL];
	const uint64_t at = 90 * MIB;
	size_t before;

	begin_with(&scene, 200 * MIB, 256 * MIB, 1);
	want_every(&scene, 2 * MIB, 0, 100 * MIB, 1, H5_WANTED_SOON);
	before = scene.count;
	begin_to_serve(&scene); /* it does not answer what was asked for before */
	ck_assert_int_eq(h5_io_read(scene.io, at, buf, sizeof buf), 0);
	end(&scene);
	ck_assert_uint_gt(scene.count, before);
	ck_assert_uint_eq(scene.log[before].offset, at);
	/* More of the range comes with it than what would be around a read that nobody has announced. */
	ck_assert_uint_gt(scene.log[before].n, MIB);
	ck_assert_uint_eq(scene.log[before].urgent, 1);
}
END_TEST

/* The larger the cache, the more comes ahead; it comes in so many parts that all connections have one if it
 * is all of the window, 160 MiB, or a step of it. */
START_TEST(a_window_is_for_all_connections)
{
	static const struct {
		unsigned connections;
		size_t parts;
	} cases[] = {{1, 4}, {32, 6}, {64, 13}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin_with(&scene, 2000 * (uint64_t)MIB, 256 * MIB, cases[i].connections);
		ck_assert_uint_eq(h5_io_want(scene.io, NULL, 0, H5_WANTED_SOON), 160 * MIB);
		want_every(&scene, 100 * MIB, MIB, 32 * MIB, 1, H5_WANTED_SOON);
		ck_assert_uint_eq(scene.count, cases[i].parts);
		ck_assert_uint_eq(bytes_of(&scene), 32 * MIB);
		end(&scene);
	}
	begin(&scene, 2000 * (uint64_t)MIB, 512 * (size_t)MIB);
	ck_assert_uint_eq(h5_io_want(scene.io, NULL, 0, H5_WANTED_SOON), 320 * MIB);
	end(&scene);
}
END_TEST

/* ---- metadata ---- */

START_TEST(metadata_bring_what_is_around_them)
{
	begin(&scene, 100 * MIB, 128 * MIB);
	want_every(&scene, 10 * MIB, 200 * KIB, 512, 100, H5_WANTED_AROUND);
	ck_assert_uint_eq(scene.log[0].offset, 10 * MIB - 512 * KIB);
	ck_assert_uint_le(scene.count, 20);
	ck_assert_uint_ge(bytes_of(&scene), 99 * 200 * KIB + MIB);
	ck_assert_uint_le(bytes_of(&scene), 99 * 200 * KIB + MIB + 2 * CELL);
	scene.count = 0;
	/* What is under way is no reason to ask for what is around it. */
	want_every(&scene, 10 * MIB - 400 * KIB, 50 * KIB, 512, 100, H5_WANTED_AROUND);
	ck_assert_uint_eq(scene.count, 0);
	end(&scene);
}
END_TEST

/* 1,000 headers of a file of which all data would come. The rest is asked for once there are replies. */
START_TEST(metadata_far_apart_come_alone)
{
	begin(&scene, 2000 * (uint64_t)MIB, 256 * MIB);
	want_every(&scene, 2 * MIB, MIB, 512, 1000, H5_WANTED_AROUND);
	ck_assert_uint_gt(scene.count, 32);
	ck_assert_uint_lt(scene.count, H5_REMOTE_UNDER_WAY);
	for (size_t done = 0; done < scene.count; done++) {
		ck_assert_uint_le(scene.log[done].n, CELL);
		reply_to(&scene, &scene.log[done], 0);
		h5_io_want(scene.io, &(struct h5_io_range){2 * MIB, 1}, 1, H5_WANTED_SOON);
		take_all(&scene);
	}
	ck_assert_uint_eq(scene.count, 1000);
	end(&scene);
}
END_TEST

/* So little of them that not all data come. Leaves of an index are among the chunks that they lead to: as
 * many of these as come ahead of a reader (store/want.h) have all that may lie around them. */
START_TEST(less_is_around_metadata_if_that_is_much)
{
	static const struct {
		size_t count;
		enum h5_wanted when;
		uint64_t margin;
	} cases[] = {{30, H5_WANTED_AROUND, 512 * KIB},
		     {40, H5_WANTED_AROUND, 256 * KIB},
		     {63, H5_WANTED_AMONG, 512 * KIB},
		     {80, H5_WANTED_AMONG, 256 * KIB}};

	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		const uint64_t margin = cases[k].margin;

		begin_with(&scene, 2000 * (uint64_t)MIB, 256 * MIB, H5_REMOTE_CONNECTIONS);
		want_every(&scene, 2 * MIB, 3 * MIB, 512, cases[k].count, cases[k].when);
		ck_assert_uint_eq(scene.count, cases[k].count);
		for (size_t i = 0; i < scene.count; i++) {
			ck_assert_uint_eq(scene.log[i].offset, (2 + 3 * i) * MIB - margin);
			ck_assert_uint_ge(scene.log[i].n, 2 * margin);
			ck_assert_uint_le(scene.log[i].n, 2 * margin + CELL);
		}
		end(&scene);
	}
}
END_TEST

/* They are not worth a request each, if what is between them is little. */
START_TEST(metadata_that_lie_loosely_are_joined_as_far_as_that_is_little)
{
	begin(&scene, 2000 * (uint64_t)MIB, 256 * MIB);
	want_every(&scene, 2 * MIB, 40 * KIB, 512, 2000, H5_WANTED_AROUND);
	ck_assert_uint_gt(scene.count, 32);
	for (size_t i = 0; i < scene.count; i++)
		ck_assert_uint_le(scene.log[i].n, 2 * CELL);
	end(&scene);
}
END_TEST

/* ---- */

/* Who reads in order uses few cells again and again, though others are empty: new memory is slow. */
START_TEST(cells_that_were_read_in_order_are_used_again)
{
	struct h5_cells cells;
	uint32_t most = 0;

	ck_assert_int_eq(h5_cells_open(&cells, 64), 0);
	for (uint64_t number = 0; number < 1000; number++) {
		uint32_t i = h5_cells_take(&cells, 0, number, true);

		ck_assert_uint_ne(i, H5_NO_CELL);
		if (i > most)
			most = i;
		h5_cells_end(&cells, i, 0);
		h5_cells_hold(&cells, i);
		h5_cells_use(&cells, i);
		h5_cells_put(&cells, i);
	}
	ck_assert_uint_lt(most, 8);
	ck_assert_uint_ne(h5_cells_find(&cells, 0, 999), H5_NO_CELL);
	ck_assert_uint_ne(h5_cells_find(&cells, 0, 997), H5_NO_CELL);
	h5_cells_release(&cells);
}
END_TEST

START_TEST(a_file_that_has_changed_is_asked_for_no_more)
{
	uint8_t buf[10];
	size_t got;

	begin(&scene, 2000 * (uint64_t)MIB, 256 * MIB);
	want_every(&scene, 2 * MIB, MIB, 512, 1000, H5_WANTED_SOON);
	ck_assert_uint_gt(scene.count, 0);
	for (size_t i = 0, n = scene.count; i < n; i++)
		reply_to(&scene, &scene.log[i], -ESTALE);
	want_every(&scene, 2 * MIB, MIB, 512, 10, H5_WANTED_NOW);
	scene.count = 0;
	ck_assert_int_eq(h5_io_read_some(scene.io, 900 * MIB, buf, sizeof buf, &got), -ESTALE);
	ck_assert_int_eq(h5_io_read_some(scene.io, 0, buf, sizeof buf, &got), -ESTALE);
	take_all(&scene);
	ck_assert_uint_eq(scene.count, 0);
	end(&scene);
}
END_TEST

/* ---- a fetcher that is not sound, and the end ---- */

/* A fetcher may send a text without a NUL. The daemon puts one at its end. */
START_TEST(a_text_without_an_end)
{
	struct h5_remote_reply reply = {.code = -EIO};
	const char *text;
	uint8_t byte;

	begin(&scene, 100 * MIB, 64 * MIB);
	want_every(&scene, 10 * MIB, 0, 1, 1, H5_WANTED_NOW);
	ck_assert_uint_eq(scene.count, 1);
	reply.id = scene.log[0].id;
	memset(reply.text, 'x', sizeof reply.text);
	ck_assert_int_eq(send(scene.end.fd, &reply, sizeof reply, MSG_NOSIGNAL), sizeof reply);
	ck_assert_int_eq(h5_io_read(scene.io, 10 * MIB, &byte, 1), -EIO);
	text = strstr(h5_error_last()->text, "xxx");
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(strlen(text), sizeof reply.text - 1);
	ck_assert_uint_eq(strspn(text, "x"), sizeof reply.text - 1);
	end(&scene);
}
END_TEST

static void *read_a_byte(void *arg)
{
	const struct scene *s = arg;
	uint8_t byte;

	return (void *)(intptr_t)h5_io_read(s->io, 10 * MIB, &byte, 1);
}

/* A reader that waits for bytes fails at once when the daemon ends the link. */
START_TEST(the_daemon_ends_the_link)
{
	pthread_t reader;
	void *rc;

	begin(&scene, 100 * MIB, 64 * MIB);
	ck_assert_int_eq(pthread_create(&reader, NULL, read_a_byte, &scene), 0);
	ck_assert(take(&scene, 0));
	h5_remote_end(scene.link);
	ck_assert_int_eq(pthread_join(reader, &rc), 0);
	ck_assert_int_eq((int)(intptr_t)rc, -EIO);
	end(&scene);
}
END_TEST

UNIT_MAIN("remote_plan", a_text_without_an_end, the_daemon_ends_the_link, a_link_without_descriptors,
	  extents_are_joined_over_small_gaps, long_extents_are_cut_without_small_rests,
	  small_reads_bring_their_block_and_large_ones_themselves, what_is_there_brings_nothing,
	  reading_in_order_asks_once, each_connection_has_a_request, what_was_announced_first_is_forgotten,
	  what_is_read_comes_before_what_is_announced, a_window_is_for_all_connections,
	  metadata_bring_what_is_around_them, less_is_around_metadata_if_that_is_much,
	  metadata_far_apart_come_alone, metadata_that_lie_loosely_are_joined_as_far_as_that_is_little,
	  cells_that_were_read_in_order_are_used_again, a_file_that_has_changed_is_asked_for_no_more)
