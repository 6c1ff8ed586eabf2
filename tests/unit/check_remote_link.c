/* The daemon's end of the link to a fetcher that is not sound, answers late, or not at all; while memory is
 * short; and with as much of everything as there may be. */
#include "base/wait.h"
#include "fault_alloc.h"
#include "io/remote_link.h"
#include "link_scene.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct scene scene;

static void send_reply(const struct h5_remote_reply *reply, size_t n)
{
	ck_assert_int_eq(send(scene.end.fd, reply, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* A read of one cell has been asked for: scene.log[0]. */
static void begin_read(uint64_t offset)
{
	const struct h5_io_range range = {offset, 1};

	begin(&scene, 100 * MIB, 16 * MIB);
	h5_io_want(scene.io, &range, 1, H5_WANTED_NOW);
	take_all(&scene);
	ck_assert_uint_eq(scene.count, 1);
	ck_assert_uint_eq(scene.log[0].n, CELL);
}

static void check_ended(void)
{
	uint8_t byte;

	ck_assert_int_eq(h5_io_read(scene.io, 10 * MIB, &byte, 1), -EIO);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "the process that fetches has ended"));
	ck_assert_int_eq(h5_io_read(scene.io, 50 * MIB, &byte, 1), -EIO);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "the process that fetches has ended"));
	/* What is here stays. */
	ck_assert_int_eq(h5_io_read(scene.io, MIB - 1, &byte, 1), 0);
	ck_assert(h5_remote_is_incomplete(scene.link));
	take_all(&scene);
	ck_assert_uint_eq(scene.count, 1);
}

/* ---- a fetcher that is not sound ---- */

/* Replies to a read, which differ from a sound one. */
static const struct {
	int64_t id, got;
	int code;
	size_t n;     /* bytes of the message */
	int expected; /* of the read; -EIO: the link has ended */
} replies[] = {
	{0, 0, 0, sizeof(struct h5_remote_reply), 0},
	{0, 0, -4095, sizeof(struct h5_remote_reply), -4095},
	{0, 0, -1, sizeof(struct h5_remote_reply), -1},
	{0, 0, -4096, sizeof(struct h5_remote_reply), -EIO},
	{0, 0, INT32_MIN, sizeof(struct h5_remote_reply), -EIO},
	{0, 0, 1, sizeof(struct h5_remote_reply), -EIO},
	{0, -1, 0, sizeof(struct h5_remote_reply), -EIO},
	{0, 1, 0, sizeof(struct h5_remote_reply), -EIO},
	{1, 0, 0, sizeof(struct h5_remote_reply), -EIO},
	{-1, 0, 0, sizeof(struct h5_remote_reply), -EIO},
	{H5_REMOTE_UNDER_WAY, 0, 0, sizeof(struct h5_remote_reply), -EIO},
	{0, 0, 0, sizeof(struct h5_remote_reply) - 1, -EIO},
	{0, 0, 0, 1, -EIO},
};
enum { REPLIES = sizeof replies / sizeof *replies };

START_TEST(replies_that_are_not_sound_end_the_link)
{
	struct h5_remote_reply reply = {0};
	uint8_t byte;

	begin_read(10 * MIB);
	reply.id = (uint32_t)(scene.log[0].id + replies[_i].id);
	reply.got = (uint64_t)(CELL + replies[_i].got);
	reply.code = replies[_i].code;
	send_reply(&reply, replies[_i].n);
	ck_assert_int_eq(h5_io_read(scene.io, 10 * MIB, &byte, 1), replies[_i].expected);
	if (replies[_i].expected == -EIO)
		check_ended();
	ck_assert_int_eq(h5_remote_is_incomplete(scene.link), replies[_i].expected != 0);
	end(&scene);
}
END_TEST

/* Nothing is under way by that number any more. */
START_TEST(a_second_reply_ends_the_link)
{
	uint8_t byte;

	begin_read(10 * MIB);
	reply_to(&scene, &scene.log[0], 0);
	ck_assert_int_eq(h5_io_read(scene.io, 10 * MIB, &byte, 1), 0);
	reply_to(&scene, &scene.log[0], 0);
	ck_assert_int_eq(h5_io_read(scene.io, 20 * MIB, &byte, 1), -EIO);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "the process that fetches has ended"));
	end(&scene);
}
END_TEST

/* A number of the error alone tells what it is. */
START_TEST(a_failure_without_a_text)
{
	uint8_t byte;

	begin_read(10 * MIB);
	reply_to(&scene, &scene.log[0], -EACCES);
	ck_assert_int_eq(h5_io_read(scene.io, 10 * MIB, &byte, 1), -EACCES);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, strerror(EACCES)));
	end(&scene);
}
END_TEST

/* What opening a file may be told. */
static const struct {
	uint64_t size, got;
	int code, expected;
	const char *text;
} openings[] = {
	{INT64_MAX, MIB, 0, 0, ""},
	{(uint64_t)INT64_MAX + 1, MIB, 0, -EIO, "has ended"},
	{UINT64_MAX, MIB, 0, -EIO, "has ended"},
	{MIB, MIB, 0, 0, ""},
	{MIB, MIB - 1, 0, -EIO, "has ended"},
	{MIB + 1, MIB + 1, 0, -EIO, "has ended"},
	{MIB - 1, MIB - 1, 0, 0, ""},
	{MIB - 1, MIB, 0, -EIO, "has ended"},
	{0, 0, 0, 0, ""},
	{0, 1, 0, -EIO, "has ended"},
	{UINT64_MAX, 77, -ENOENT, -ENOENT, "No such file"},
};
enum { OPENINGS = sizeof openings / sizeof *openings };

START_TEST(files_have_the_size_that_the_reply_tells)
{
	struct h5_remote_reply reply = {.id = 0,
					.code = openings[_i].code,
					.got = openings[_i].got,
					.size = openings[_i].size,
					.mtime = 1234567,
					.reason = H5_REMOTE_NOT_FOUND};
	struct h5_io_stat st;
	uint8_t byte;
	size_t got;
	int rc;

	memset(&scene, 0, sizeof scene);
	ck_assert_int_eq(h5_remote_new("http://server/x.h5", 16 * MIB, 1, &scene.link, &scene.end), 0);
	send_reply(&reply, sizeof reply);
	rc = h5_io_open_remote(scene.link, "", &scene.io);
	ck_assert_int_eq(rc, openings[_i].expected);
	if (rc) {
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, openings[_i].text));
		if (openings[_i].code)
			ck_assert_int_eq(h5_remote_reason(scene.link), H5_REMOTE_NOT_FOUND);
		ck_assert_int_eq(h5_remote_is_incomplete(scene.link), !openings[_i].code);
		h5_remote_close(scene.link);
		close(scene.end.fd);
		return;
	}
	ck_assert_int_eq(h5_io_stat(scene.io, &st), 0);
	ck_assert(st.locked); /* the store's version of it does not change */
	ck_assert_uint_eq(st.size, openings[_i].size);
	ck_assert_int_eq(st.mtime.tv_sec, 1234567);
	ck_assert_int_eq(h5_io_read_some(scene.io, openings[_i].size, &byte, 1, &got), 0);
	ck_assert_uint_eq(got, 0);
	if (openings[_i].size) {
		const uint64_t last = h5_min(openings[_i].size, MIB) - 1;

		ck_assert_int_eq(h5_io_read_some(scene.io, last, &byte, 1, &got), 0);
		ck_assert_uint_eq(got, 1);
	}
	end(&scene);
}
END_TEST

/* ---- a fetcher that is gone, or takes nothing ---- */

START_TEST(a_fetcher_that_is_gone)
{
	begin(&scene, 100 * MIB, 16 * MIB);
	shutdown(scene.end.fd, SHUT_RDWR);
	scene.count = 1;
	check_ended();
	end(&scene);
}
END_TEST

static unsigned notices;

static void count_notice(void)
{
	notices++;
}

/* Another thread may have to take the place of one that waits for the fetcher; not of one that need not wait.
 */
START_TEST(waits_are_told)
{
	uint8_t byte;

	begin_read(10 * MIB);
	reply_to(&scene, &scene.log[0], 0);
	notices = 0;
	h5_wait_set(count_notice);
	ck_assert_int_eq(h5_io_read(scene.io, 0, &byte, 1), 0);
	ck_assert_uint_eq(notices, 0);
	ck_assert_int_eq(h5_io_read(scene.io, 10 * MIB, &byte, 1), 0);
	ck_assert_uint_eq(notices, 1);
	h5_wait_set(NULL);
	end(&scene);
}
END_TEST

static void *read_ten(void *arg)
{
	int *rc = arg;
	uint8_t byte;

	*rc = h5_io_read(scene.io, 10 * MIB, &byte, 1);
	return NULL;
}

/* A thread that sends sees it before the one that waits at the socket does. */
START_TEST(two_threads_see_that_the_fetcher_is_gone)
{
	bool is_awaited = false;
	pthread_t reader;
	uint32_t taken;
	int rc;

	begin(&scene, 100 * MIB, 16 * MIB);
	ck_assert_int_eq(pthread_create(&reader, NULL, read_ten, &rc), 0);
	ck_assert(take(&scene, 0));
	while (!is_awaited) {
		pthread_mutex_lock(&scene.link->lock);
		is_awaited = scene.link->receiving;
		if (!is_awaited)
			pthread_mutex_unlock(&scene.link->lock);
		sched_yield();
	}
	shutdown(scene.end.fd, SHUT_RDWR);
	ck_assert_int_eq(h5_remote_ask(scene.link, 0, 50 * MIB / CELL, CELL, true, &taken), -EIO);
	ck_assert_uint_eq(taken, 0);
	ck_assert_uint_eq(scene.link->under_way, 0);
	pthread_mutex_unlock(&scene.link->lock);
	pthread_join(reader, NULL);
	ck_assert_int_eq(rc, -EIO);
	check_ended();
	end(&scene);
}
END_TEST

/* The socket is full. What could not be sent is asked for later. */
START_TEST(a_fetcher_that_takes_no_message)
{
	enum { RANGES = 20 };
	struct h5_io_range ranges[RANGES];
	uint64_t asked = 0;
	size_t first;

	for (size_t i = 0; i < RANGES; i++)
		ranges[i] = (struct h5_io_range){(2 + 4 * i) * MIB, 1};
	begin(&scene, 100 * MIB, 16 * MIB);
	ck_assert_int_eq(setsockopt(scene.link->fd, SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int)), 0);
	h5_io_want(scene.io, ranges, RANGES, H5_WANTED_NOW);
	take_all(&scene);
	first = scene.count;
	ck_assert_uint_gt(first, 0);
	ck_assert_uint_lt(first, RANGES);
	for (size_t i = 0; i < first; i++)
		reply_to(&scene, &scene.log[i], 0);
	begin_to_serve(&scene);
	for (size_t i = 0; i < RANGES; i++) {
		uint8_t byte;

		ck_assert_int_eq(h5_io_read(scene.io, ranges[i].offset, &byte, 1), 0);
	}
	end(&scene);
	for (size_t i = 0; i < scene.count; i++)
		asked += scene.log[i].n;
	ck_assert_uint_eq(asked, RANGES * CELL);
}
END_TEST

/* The requests that the daemon sent until the socket was full: the first one, and their number. */
static struct {
	struct h5_remote_request first;
	uint32_t count;
} before_full;

/* Until the daemon waits for a reply, with so many requests under way. */
static void wait_until_awaited(const struct scene *s, uint32_t under_way)
{
	bool is_awaited = false;

	while (!is_awaited) {
		pthread_mutex_lock(&s->link->lock);
		is_awaited = s->link->receiving && s->link->under_way == under_way;
		pthread_mutex_unlock(&s->link->lock);
		sched_yield();
	}
}

/* Replies to the first request before it takes any message, so that the socket is still full. */
static void *serve_when_awaited(void *arg)
{
	struct scene *s = arg;

	wait_until_awaited(s, before_full.count);
	reply_to(s, &before_full.first, 0);
	wait_until_awaited(s, before_full.count - 1);
	ck_assert(take(s, 0));
	while (take(s, 0))
		if (s->log[s->count - 1].what != H5_REMOTE_CLOSE)
			reply_to(s, &s->log[s->count - 1], 0);
	return NULL;
}

START_TEST(a_file_is_opened_when_the_fetcher_takes_messages_again)
{
	enum { WANTED = 20 };
	const struct h5_remote_pending *first;
	struct h5_io *io;
	uint8_t byte;

	begin(&scene, 100 * MIB, 16 * MIB);
	ck_assert_int_eq(setsockopt(scene.link->fd, SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int)), 0);
	for (uint64_t i = 0; i < WANTED; i++)
		h5_io_want(scene.io, &(struct h5_io_range){(10 + i) * MIB, 1}, 1, H5_WANTED_NOW);
	before_full.count = scene.link->under_way;
	ck_assert_uint_gt(before_full.count, 0);
	ck_assert_uint_lt(before_full.count, WANTED);
	for (first = scene.link->pending; !first->busy;)
		first++;
	before_full.first = (struct h5_remote_request){.id = first->id, .n = first->n};
	scene.served = true;
	ck_assert_int_eq(pthread_create(&scene.server, NULL, serve_when_awaited, &scene), 0);
	ck_assert_int_eq(h5_io_open_remote(scene.link, "y", &io), 0);
	ck_assert_int_eq(h5_io_read(io, 5, &byte, 1), 0);
	h5_io_close(io);
	end(&scene);
}
END_TEST

/* ---- as much as there may be ---- */

enum { READERS = H5_REMOTE_UNDER_WAY + 20 };

struct reader {
	pthread_t thread;
	unsigned number;
	bool opens;
	int rc;
};

static void *read_or_open(void *arg)
{
	struct reader *r = arg;
	struct h5_io *io;
	char name[16];
	uint8_t byte;

	if (!r->opens) {
		r->rc = h5_io_read(scene.io, (2 + r->number) * MIB, &byte, 1);
		return NULL;
	}
	snprintf(name, sizeof name, "%u", r->number);
	r->rc = h5_io_open_remote_version(scene.link, name, 1, CELL, &io);
	if (!r->rc) {
		r->rc = h5_io_read(io, 5, &byte, 1);
		h5_io_close(io);
	}
	return NULL;
}

/* More threads want something than requests may be under way: none of them fails. */
START_TEST(more_requests_than_there_may_be)
{
	static struct reader readers[READERS];

	begin(&scene, 200 * MIB, 256 * MIB);
	for (unsigned i = 0; i < READERS; i++) {
		readers[i] = (struct reader){.number = i, .opens = _i};
		ck_assert_int_eq(pthread_create(&readers[i].thread, NULL, read_or_open, &readers[i]), 0);
	}
	while (scene.count < H5_REMOTE_UNDER_WAY)
		ck_assert(take(&scene, 0));
	for (size_t i = 0; i < H5_REMOTE_UNDER_WAY; i++)
		reply_to(&scene, &scene.log[i], 0);
	begin_to_serve(&scene);
	for (unsigned i = 0; i < READERS; i++) {
		pthread_join(readers[i].thread, NULL);
		ck_assert_int_eq(readers[i].rc, 0);
	}
	end(&scene);
}
END_TEST

/* All cells wait for bytes. Who needs one more waits for a reply. */
START_TEST(more_cells_than_there_are)
{
	const struct h5_io_range all = {20 * MIB, 16 * MIB};
	struct h5_io *io;
	uint8_t byte;

	begin_with(&scene, 100 * MIB, 16 * MIB, 64);
	h5_io_want(scene.io, &all, 1, H5_WANTED_NOW);
	take_all(&scene);
	for (size_t i = 0; i < scene.count; i++)
		reply_to(&scene, &scene.log[i], 0);
	begin_to_serve(&scene);
	if (_i) {
		ck_assert_int_eq(h5_io_open_remote(scene.link, "y", &io), 0);
		h5_io_close(io);
	}
	ck_assert_int_eq(h5_io_read(scene.io, 60 * MIB, &byte, 1), 0);
	end(&scene);
}
END_TEST

/* All numbers of files are given out. Those of files that nobody uses are free again. */
START_TEST(more_files_than_there_may_be)
{
	struct h5_io **ios = calloc(H5_REMOTE_FILES + 1, sizeof(struct h5_io *));
	uint32_t asked;

	begin(&scene, CELL, 16 * MIB);
	begin_to_serve(&scene);
	for (unsigned i = 1; i <= H5_REMOTE_FILES; i++) {
		char name[16];
		int rc;

		snprintf(name, sizeof name, "%u", i);
		rc = h5_io_open_remote_version(scene.link, name, 1, CELL, &ios[i]);
		ck_assert_int_eq(rc, i < H5_REMOTE_FILES ? 0 : -ENFILE);
	}
	h5_io_close(ios[7]);
	asked = scene.link->next_id;
	ck_assert_int_eq(h5_io_open_remote_version(scene.link, "7", 1, CELL, &ios[7]), 0);
	ck_assert_uint_eq(scene.link->next_id, asked); /* it was still open */
	h5_io_close(ios[7]);
	ck_assert_int_eq(h5_io_open_remote_version(scene.link, "new", 1, CELL, &ios[7]), 0);
	ck_assert_uint_eq(scene.link->next_id, asked + 1);
	for (unsigned i = 1; i < H5_REMOTE_FILES; i++)
		h5_io_close(ios[i]);
	end(&scene);
	free(ios);
}
END_TEST

/* Names may have so many bytes, and one less than that is sent. */
START_TEST(names_have_their_limits)
{
	static char name[H5_REMOTE_NAME + 1], token[100];
	struct h5_io *io;
	char *page;
	size_t n;

	begin(&scene, 10, 16 * MIB);
	begin_to_serve(&scene);
	memset(name, 'n', H5_REMOTE_NAME);
	ck_assert_int_eq(h5_io_open_remote(scene.link, name, &io), -ENAMETOOLONG);
	ck_assert_int_eq(h5_remote_list(scene.link, name, NULL, &page, &n), -ENAMETOOLONG);
	name[H5_REMOTE_NAME - 1] = 0;
	ck_assert_int_eq(h5_io_open_remote(scene.link, name, &io), 0);
	h5_io_close(io);
	ck_assert_int_eq(h5_remote_list(scene.link, name, NULL, &page, &n), 0);
	ck_assert_uint_eq(n, 10);
	free(page);
	/* With a NUL and the token. */
	memset(token, 't', sizeof token - 1);
	name[H5_REMOTE_NAME - sizeof token] = 0;
	ck_assert_int_eq(h5_remote_list(scene.link, name, token, &page, &n), -ENAMETOOLONG);
	name[H5_REMOTE_NAME - sizeof token - 1] = 0;
	ck_assert_int_eq(h5_remote_list(scene.link, name, token, &page, &n), 0);
	free(page);
	end(&scene);
	ck_assert_uint_eq(scene.count, 5); /* and each page is closed */
	ck_assert_uint_eq(scene.log[0].name, H5_REMOTE_NAME - 1);
	ck_assert_uint_eq(scene.log[1].name, H5_REMOTE_NAME - 1);
	ck_assert_int_eq(scene.log[1].what, H5_REMOTE_LIST);
	ck_assert_int_eq(scene.log[2].what, H5_REMOTE_CLOSE);
	ck_assert_uint_eq(scene.log[3].name, H5_REMOTE_NAME - 1);
}
END_TEST

/* Pages of a listing. */
START_TEST(pages_have_their_limit)
{
	static const struct {
		uint64_t size;
		int code, rc; /* of what is asked for behind the first bytes */
	} pages[] = {{H5_REMOTE_LISTING + 1, 0, -EIO},
		     {H5_REMOTE_LISTING, 0, 0},
		     {2 * MIB, -EACCES, -EACCES},
		     {MIB, 0, 0},
		     {0, 0, 0}};

	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
		struct h5_remote_reply reply = {.id = 1};
		char *page;
		size_t n;

		begin(&scene, MIB, 32 * MIB);
		reply.size = pages[i].size;
		reply.got = h5_min(MIB, pages[i].size);
		send_reply(&reply, sizeof reply);
		if (pages[i].code) {
			reply = (struct h5_remote_reply){.id = 2, .code = pages[i].code};
			send_reply(&reply, sizeof reply);
		} else {
			scene.size = pages[i].size;
			memset(scene.end.memory, 'p', 32 * MIB);
		}
		if (!pages[i].code && pages[i].size > MIB && !pages[i].rc)
			for (unsigned id = 2; id < 9; id++) {
				reply = (struct h5_remote_reply){.id = id, .got = MIB};
				send_reply(&reply, sizeof reply);
			}
		ck_assert_int_eq(h5_remote_list(scene.link, "", NULL, &page, &n), pages[i].rc);
		if (!pages[i].rc) {
			ck_assert_uint_eq(n, pages[i].size);
			for (size_t k = 0; k < n; k++)
				ck_assert_int_eq(page[k], 'p');
			free(page);
		}
		end(&scene);
	}
}
END_TEST

/* ---- memory ---- */

static bool no_addresses; /* mmap() finds none */

/* The name that large files give it. */
void *__real_mmap64(void *address, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
	if (!no_addresses)
		return __real_mmap64(address, n, protection, flags, fd, offset);
	errno = ENOMEM;
	return MAP_FAILED;
}

START_TEST(addresses_are_short)
{
	const unsigned before = unit_descriptors();

	no_addresses = true;
	ck_assert_int_eq(h5_remote_new("http://server/x.h5", 16 * MIB, 1, &scene.link, &scene.end), -ENOMEM);
	no_addresses = false;
	ck_assert_str_eq(h5_error_last()->text, "no address space for 16777216 bytes");
	ck_assert_uint_eq(unit_descriptors(), before);
}
END_TEST

START_TEST(memory_is_short)
{
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct h5_io *io = NULL;
		char *page = NULL;
		size_t got;
		int rc;

		memset(&scene, 0, sizeof scene);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_remote_new("http://server/x.h5", 16 * MIB, 1, &scene.link, &scene.end);
		fault_alloc_count(false);
		if (!rc) {
			struct h5_remote_reply reply = {.id = 0, .got = 10, .size = 10};

			for (uint32_t i = 0; i < 2; i++) {
				reply.id = i;
				send_reply(&reply, sizeof reply);
			}
			fault_alloc_count(true);
			rc = h5_io_open_remote(scene.link, "name", &io);
			if (!rc)
				rc = h5_remote_list(scene.link, "", NULL, &page, &got);
			fault_alloc_count(false);
			if (!rc)
				free(page);
			if (io)
				h5_io_close(io);
			for (size_t i = 0; rc && i < H5_REMOTE_FILES; i++)
				ck_assert(!scene.link->users[i]);
			h5_remote_close(scene.link);
			close(scene.end.fd);
		}
		fired = fault_alloc_disarm();
		ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
	}
}
END_TEST

UNIT_MAIN_LOOPS("remote link", {replies_that_are_not_sound_end_the_link, REPLIES},
		{a_second_reply_ends_the_link, 1}, {a_failure_without_a_text, 1},
		{files_have_the_size_that_the_reply_tells, OPENINGS}, {waits_are_told, 1},
		{a_fetcher_that_is_gone, 1}, {two_threads_see_that_the_fetcher_is_gone, 1},
		{a_fetcher_that_takes_no_message, 1},
		{a_file_is_opened_when_the_fetcher_takes_messages_again, 1},
		{more_requests_than_there_may_be, 2}, {more_cells_than_there_are, 2},
		{more_files_than_there_may_be, 1}, {names_have_their_limits, 1}, {pages_have_their_limit, 1},
		{memory_is_short, 1}, {addresses_are_short, 1})
