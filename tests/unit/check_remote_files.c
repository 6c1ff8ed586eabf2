/* The files of a link: what is known of them, and what becomes of their numbers, cells and announcements when
 * they close; what is known of the work, and how it ends. */
#include "base/interrupt.h"
#include "io/remote_plan.h"
#include "link_scene.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

enum { UNUSED = 64 }; /* files that stay open when nobody uses them */

static struct scene scene;

/* The reply to the request that opens the next file is there before it is made. */
static void prepare(int code, uint64_t version, enum h5_remote_reason reason)
{
	const struct h5_remote_reply reply = {.id = scene.link->next_id,
					      .code = code,
					      .reason = reason,
					      .got = code ? 0 : CELL,
					      .size = code ? 0 : scene.size,
					      .version = version};

	ck_assert_int_eq(send(scene.end.fd, &reply, sizeof reply, MSG_NOSIGNAL), sizeof reply);
}

/* Opens a file, of which one cell comes. */
static struct h5_io *open_named(const char *name, uint64_t version)
{
	struct h5_io *io = NULL;

	prepare(0, 70 + version, 0);
	ck_assert_int_eq(h5_io_open_remote_version(scene.link, name, version, CELL, &io), 0);
	take_all(&scene);
	ck_assert_int_eq(scene.log[scene.count - 1].what, H5_REMOTE_OPEN);
	ck_assert(scene.log[scene.count - 1].urgent);
	return io;
}

/* All files that nobody uses and that nothing is asked of close. */
static void close_unused(void)
{
	pthread_mutex_lock(&scene.link->lock);
	h5_remote_close_unused(scene.link, true);
	pthread_mutex_unlock(&scene.link->lock);
	take_all(&scene);
}

static void reply_to_all(size_t first)
{
	for (size_t end = scene.count; first < end; first++)
		if (scene.log[first].what == H5_REMOTE_READ)
			reply_to(&scene, &scene.log[first], 0);
}

static size_t count_of(enum h5_remote_what what, size_t first)
{
	size_t count = 0;

	for (; first < scene.count; first++)
		count += scene.log[first].what == what;
	return count;
}

/* ---- opening ---- */

/* Why another file than the mounted one cannot be opened is nothing to the mount. Its number is free again.
 */
START_TEST(a_file_that_cannot_be_opened)
{
	struct h5_io *io;

	begin(&scene, 100 * MIB, 16 * MIB);
	ck_assert_int_eq(h5_remote_reason(scene.link), H5_REMOTE_FINE);
	prepare(-ENOENT, 0, H5_REMOTE_NOT_FOUND);
	ck_assert_int_eq(h5_io_open_remote(scene.link, "no", &io), -ENOENT);
	ck_assert_int_eq(h5_remote_reason(scene.link), H5_REMOTE_FINE);
	ck_assert_uint_eq(scene.link->users[1], 0);
	ck_assert_ptr_null(scene.link->names[1]);
	/* Nothing of it stays, so the file that has its number is closed as others are. */
	io = open_named("yes", 1);
	ck_assert_uint_eq(scene.log[scene.count - 1].file, 1);
	ck_assert_uint_eq(scene.link->users[1], 1);
	h5_io_close(io);
	close_unused();
	ck_assert_int_eq(scene.log[scene.count - 1].what, H5_REMOTE_CLOSE);
	ck_assert_uint_eq(scene.log[scene.count - 1].file, 1);
	end(&scene);
}
END_TEST

/* The mounted file is open, and has the name that the URL ends in, percent-encoded or as it is. After the end
 * of the link no other one can be opened. */
START_TEST(the_mounted_file_by_its_name)
{
	static const struct {
		const char *end, *name;
		bool is_own;
	} cases[] = {{"x.h5", "x.h5", true},
		     {"x.h5", "", true},
		     {"x.h5", "x.h", false},
		     {"x.h5", "x.h55", false},
		     {"x.h5", "y.h5", false},
		     {"x.h5", "server/x.h5", false},
		     {"a%41%2f.h5", "aA/.h5", true},
		     {"a%41%2f.h5", "a%41%2f.h5", true},
		     {"a%41%2f.h5", "aA%2f.h5", false},
		     {"a%4.h5", "a%4.h5", true},
		     {"a%4", "a%4", true},
		     {"a%41", "aB", false},
		     {"%e4", "\xe4", true},
		     {"%e4", "\xe4.", false}};
	struct h5_io_stat st;

	begin(&scene, 100 * MIB, 16 * MIB);
	ck_assert_int_eq(h5_io_stat(scene.io, &st), 0);
	ck_assert(st.locked && st.mode == 0444 && st.links == 1 && st.device == UINT64_MAX);
	ck_assert(st.size == 100 * MIB && st.stored == st.size && st.end == st.size);
	h5_remote_end(scene.link);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char url[64];
		struct h5_io *io;
		int rc;

		snprintf(url, sizeof url, "http://server/%s", cases[i].end);
		free(scene.link->url);
		scene.link->url = strdup(url);
		rc = h5_io_open_remote(scene.link, cases[i].name, &io);
		ck_assert_msg(!rc == cases[i].is_own, "%s in %s: %d", cases[i].name, url, rc);
		if (!rc)
			h5_io_close(io);
	}
	end(&scene);
}
END_TEST

START_TEST(tags_of_files)
{
	struct h5_io *io;

	begin(&scene, 100 * MIB, 16 * MIB);
	io = open_named("y", 5);
	ck_assert_uint_eq(h5_remote_tag(scene.link, "y", 5), 75);
	ck_assert_uint_eq(h5_remote_tag(scene.link, "y", 0), 75);
	ck_assert_uint_eq(h5_remote_tag(scene.link, "", 0), 0);
	/* These are not open. */
	ck_assert_uint_eq(h5_remote_tag(scene.link, "y", 6), 0);
	ck_assert_uint_eq(h5_remote_tag(scene.link, "z", 5), 0);
	h5_io_close(io);
	end(&scene);
}
END_TEST

/* What opening a file brings was not announced: it neither fills the share of what was, nor makes room first.
 */
START_TEST(first_bytes_are_not_announced)
{
	uint8_t bytes[CELL];

	begin(&scene, 100 * MIB, 16 * MIB);
	ck_assert_uint_eq(scene.link->cells.waiting, 0);
	ck_assert_int_eq(h5_io_read(scene.io, CELL, bytes, CELL), 0);
	ck_assert_uint_eq(scene.link->cells.spent.count, 0);
	ck_assert_uint_eq(scene.link->cells.kept.count, MIB / CELL);
	end(&scene);
}
END_TEST

/* ---- closing ---- */

/* A file that gets the number of another one has none of its bytes. */
START_TEST(a_number_that_is_given_out_again)
{
	const struct h5_io_range range = {5 * MIB, 1};
	struct h5_io *io;
	uint8_t byte;
	size_t count;

	begin(&scene, 100 * MIB, 16 * MIB);
	memset(scene.end.memory, 'y', 16 * MIB);
	io = open_named("y", 1);
	h5_io_want(io, &range, 1, H5_WANTED_NOW);
	take_all(&scene);
	reply_to(&scene, &scene.log[scene.count - 1], 0);
	ck_assert_int_eq(h5_io_read(io, 5 * MIB, &byte, 1), 0);
	h5_io_close(io);
	/* It stays open for a while, with its bytes. */
	ck_assert_int_eq(h5_io_open_remote_version(scene.link, "y", 1, CELL, &io), 0);
	count = scene.count;
	ck_assert_int_eq(h5_io_read(io, 5 * MIB, &byte, 1), 0);
	h5_io_close(io);
	take_all(&scene);
	ck_assert_uint_eq(scene.count, count);
	close_unused();
	io = open_named("z", 1);
	ck_assert_uint_eq(scene.log[scene.count - 1].file, 1);
	count = scene.count;
	h5_io_want(io, &range, 1, H5_WANTED_NOW);
	take_all(&scene);
	ck_assert_uint_eq(scene.count, count + 1);
	ck_assert_uint_eq(scene.log[count].offset, 5 * MIB);
	h5_io_close(io);
	end(&scene);
}
END_TEST

static void announce(struct h5_io *io, uint64_t first, size_t count)
{
	for (size_t i = 0; i < count; i++)
		h5_io_want(io, &(struct h5_io_range){(first + i) * MIB, 1}, 1, H5_WANTED_SOON);
	take_all(&scene);
}

/* When a file closes, the ranges that it announced are forgotten, and those of other files stay. */
START_TEST(announcements_of_a_file_that_closes)
{
	enum { AT_ONCE = 5 };
	size_t first;
	struct h5_io *io;

	begin_with(&scene, 100 * MIB, 64 * MIB, 1);
	io = open_named("y", 1);
	first = scene.count;
	announce(io, 10, AT_ONCE + 4);
	announce(scene.io, 40, 3);
	ck_assert_uint_eq(scene.count, first + AT_ONCE);
	reply_to_all(first);
	h5_io_close(io);
	close_unused();
	ck_assert_int_eq(scene.log[scene.count - 1].what, H5_REMOTE_CLOSE);
	ck_assert_uint_eq(scene.log[scene.count - 1].file, 1);
	io = open_named("z", 1);
	ck_assert_uint_eq(scene.log[scene.count - 1].file, 1);
	first = scene.count;
	announce(io, 30, 1);
	ck_assert_uint_eq(scene.count, first + 4);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(scene.log[first + i].file, 0);
		ck_assert_uint_eq(scene.log[first + i].offset, (40 + i) * MIB);
	}
	ck_assert_uint_eq(scene.log[first + 3].file, 1);
	ck_assert_uint_eq(scene.log[first + 3].offset, 30 * MIB);
	h5_io_close(io);
	end(&scene);
}
END_TEST

/* A file that has changed announces ranges: they do not push out those of other files. */
START_TEST(announcements_of_a_file_that_has_changed)
{
	static struct h5_io_range ranges[H5_REMOTE_ANNOUNCED];
	const struct h5_io_range one = {2 * MIB, 1};
	struct h5_io *io;
	size_t first;
	uint8_t byte;

	begin_with(&scene, (uint64_t)H5_REMOTE_ANNOUNCED * MIB, 64 * MIB, 1);
	io = open_named("y", 1);
	h5_io_want(io, &one, 1, H5_WANTED_NOW);
	take_all(&scene);
	reply_to(&scene, &scene.log[scene.count - 1], -ESTALE);
	ck_assert_int_eq(h5_io_read(io, 2 * MIB, &byte, 1), -ESTALE);
	first = scene.count;
	announce(scene.io, 40, 8);
	ck_assert_uint_eq(scene.count, first + 5);
	for (size_t i = 0; i < H5_REMOTE_ANNOUNCED; i++)
		ranges[i] = (struct h5_io_range){i * MIB, 1};
	h5_io_want(io, ranges, H5_REMOTE_ANNOUNCED, H5_WANTED_SOON);
	reply_to_all(first);
	h5_io_want(scene.io, NULL, 0, H5_WANTED_SOON);
	ck_assert_int_eq(h5_io_read(scene.io, 40 * MIB, &byte, 1), 0);
	announce(scene.io, 60, 1);
	ck_assert_uint_eq(scene.count, first + 9);
	for (size_t i = 0; i < 8; i++)
		ck_assert_uint_eq(scene.log[first + i].offset, (40 + i) * MIB);
	ck_assert_uint_eq(scene.log[first + 8].offset, 60 * MIB);
	h5_io_close(io);
	end(&scene);
}
END_TEST

/* Of the files that nobody uses, the one goes whose last user went first; but one that has changed, and a
 * page of a listing, at once. */
START_TEST(files_close_in_the_order_of_their_last_use)
{
	static const unsigned first[] = {7, 3, 64, 1};
	enum { FIRST = sizeof first / sizeof *first };
	struct h5_io *ios[UNUSED + FIRST + 1];
	size_t count;

	begin(&scene, CELL, 16 * MIB);
	for (unsigned i = 1; i <= UNUSED + FIRST; i++) {
		char name[16];

		snprintf(name, sizeof name, "%u", i);
		ios[i] = open_named(name, 1);
		ck_assert_uint_eq(scene.log[scene.count - 1].file, i);
	}
	count = scene.count;
	for (unsigned i = 0; i < FIRST; i++) {
		h5_io_close(ios[first[i]]);
		ios[first[i]] = NULL;
	}
	for (unsigned i = 1; i <= UNUSED + FIRST; i++)
		if (ios[i])
			h5_io_close(ios[i]);
	take_all(&scene);
	ck_assert_uint_eq(scene.count, count + FIRST);
	for (unsigned i = 0; i < FIRST; i++) {
		ck_assert_int_eq(scene.log[count + i].what, H5_REMOTE_CLOSE);
		ck_assert_uint_eq(scene.log[count + i].file, first[i]);
	}
	/* One that is used again is the last one. */
	ck_assert_int_eq(h5_io_open_remote_version(scene.link, "2", 1, CELL, &ios[2]), 0);
	h5_io_close(ios[2]);
	ios[1] = open_named("new", 1);
	ck_assert_uint_eq(scene.log[scene.count - 1].file, 1);
	h5_io_close(ios[1]);
	take_all(&scene);
	ck_assert_uint_eq(count_of(H5_REMOTE_CLOSE, count), FIRST + 1);
	ck_assert_uint_eq(scene.log[scene.count - 1].file, 4);
	/* One that has changed. */
	ck_assert_int_eq(h5_io_open_remote_version(scene.link, "9", 1, CELL, &ios[9]), 0);
	scene.link->stale[9] = true;
	h5_io_close(ios[9]);
	take_all(&scene);
	ck_assert_uint_eq(count_of(H5_REMOTE_CLOSE, count), FIRST + 2);
	ck_assert_uint_eq(scene.log[scene.count - 1].file, 9);
	ck_assert(!scene.link->stale[9]);
	end(&scene);
}
END_TEST

/* All that have changed close when another one does, but none of which something is asked. */
START_TEST(files_that_close_together)
{
	const struct h5_io_range range = {50 * MIB, 1};
	struct h5_io *ios[6];
	char name[] = "0";

	begin(&scene, 100 * MIB, 16 * MIB);
	for (unsigned i = 1; i < 6; i++) {
		name[0] = (char)('0' + i);
		ios[i] = open_named(name, 1);
		ck_assert_uint_eq(scene.log[scene.count - 1].file, i);
	}
	h5_io_want(ios[3], &range, 1, H5_WANTED_NOW);
	take_all(&scene);
	ck_assert_int_eq(scene.log[scene.count - 1].what, H5_REMOTE_READ);
	for (unsigned i = 1; i < 5; i++)
		h5_io_close(ios[i]);
	take_all(&scene);
	ck_assert_uint_eq(count_of(H5_REMOTE_CLOSE, 0), 0);
	for (unsigned i = 1; i < 4; i++)
		scene.link->stale[i] = true;
	h5_io_close(ios[5]);
	take_all(&scene);
	ck_assert_uint_eq(count_of(H5_REMOTE_CLOSE, 0), 2);
	ck_assert_uint_eq(scene.log[scene.count - 2].file, 1);
	ck_assert_uint_eq(scene.log[scene.count - 1].file, 2);
	ck_assert(scene.link->known[3]);
	reply_to_all(0);
	close_unused();
	ck_assert_uint_eq(count_of(H5_REMOTE_CLOSE, 0), 5);
	ck_assert_uint_eq(scene.log[scene.count - 3].file, 3);
	end(&scene);
}
END_TEST

/* ---- what is known of the work ---- */

static char said[H5_REMOTE_TEXT];
static unsigned said_count;

static void say(const char *note)
{
	strcpy(said, note);
	said_count++;
}

/* Asks for one cell, in one request. */
static void ask_for(uint64_t offset)
{
	const struct h5_io_range range = {offset, 1};
	const size_t count = scene.count;

	h5_io_want(scene.io, &range, 1, H5_WANTED_NOW);
	take_all(&scene);
	ck_assert_uint_eq(scene.count, count + 1);
}

static void answer(size_t i, struct h5_remote_reply reply)
{
	reply.id = scene.log[i].id;
	ck_assert_int_eq(send(scene.end.fd, &reply, sizeof reply, MSG_NOSIGNAL), sizeof reply);
}

START_TEST(statistics_and_notes_add_up)
{
	struct h5_remote_statistics statistics;
	struct h5_remote_reply reply = {.got = CELL,
					.requests = 3,
					.repeated = 2,
					.received = 1000,
					.from_disk = 77,
					.text = "a note"};
	uint8_t byte;

	said_count = 0;
	begin(&scene, 100 * MIB, 16 * MIB);
	ask_for(10 * MIB);
	h5_remote_statistics(scene.link, &statistics);
	ck_assert_uint_eq(statistics.requests, 1);
	ck_assert_uint_eq(statistics.bytes, MIB);
	ck_assert_uint_eq(statistics.repeated, 0);
	ck_assert_uint_eq(statistics.from_disk, 0);
	ck_assert_uint_eq(statistics.unused, MIB);
	answer(0, reply);
	h5_remote_set_listener(scene.link, say);
	h5_remote_statistics(scene.link, &statistics);
	ck_assert_uint_eq(statistics.requests, 4);
	ck_assert_uint_eq(statistics.bytes, MIB + 1000);
	ck_assert_uint_eq(statistics.repeated, 2);
	ck_assert_uint_eq(statistics.from_disk, 77);
	ck_assert_uint_eq(statistics.unused, MIB + CELL);
	ck_assert_uint_eq(said_count, 1);
	ck_assert_str_eq(said, "a note");
	ck_assert_int_eq(h5_io_read(scene.io, 10 * MIB + CELL - 1, &byte, 1), 0);
	h5_remote_statistics(scene.link, &statistics);
	ck_assert_uint_eq(statistics.unused, MIB);
	ck_assert_uint_eq(said_count, 1);
	ask_for(20 * MIB);
	*reply.text = 0;
	answer(1, reply);
	h5_remote_statistics(scene.link, &statistics);
	ck_assert_uint_eq(statistics.requests, 7);
	ck_assert_uint_eq(statistics.bytes, MIB + 2000);
	ck_assert_uint_eq(statistics.repeated, 4);
	ck_assert_uint_eq(statistics.from_disk, 154);
	ck_assert_uint_eq(statistics.unused, MIB + CELL);
	ck_assert_uint_eq(said_count, 1);
	end(&scene);
}
END_TEST

/* Bytes that went unread count on. */
START_TEST(bytes_that_make_room_stay_unused)
{
	struct h5_remote_statistics statistics;

	begin_with(&scene, 100 * MIB, 16 * MIB, 64);
	begin_to_serve(&scene);
	for (uint64_t i = 1; i < 40; i++) {
		uint8_t byte;

		ck_assert_int_eq(h5_io_read(scene.io, i * MIB, &byte, 1), 0);
	}
	h5_remote_statistics(scene.link, &statistics);
	ck_assert_uint_eq(statistics.unused, 40 * MIB - 39 * CELL);
	end(&scene);
}
END_TEST

/* Once bytes of an open file could not be had, that stays so. A file that cannot be opened lacks none. */
START_TEST(what_is_incomplete_stays_so)
{
	struct h5_io *io;
	uint8_t byte;

	begin(&scene, 100 * MIB, 16 * MIB);
	prepare(-ENOENT, 0, H5_REMOTE_NOT_FOUND);
	ck_assert_int_eq(h5_io_open_remote(scene.link, "no", &io), -ENOENT);
	take_all(&scene);
	ck_assert(!h5_remote_is_incomplete(scene.link));
	for (uint64_t i = 1; i <= 3; i++) {
		ask_for(10 * i * MIB);
		reply_to(&scene, &scene.log[scene.count - 1], i == 2 ? -EACCES : 0);
		ck_assert_int_eq(h5_io_read(scene.io, 10 * i * MIB, &byte, 1), i == 2 ? -EACCES : 0);
		ck_assert_int_eq(h5_remote_is_incomplete(scene.link), i >= 2);
	}
	end(&scene);
}
END_TEST

/* ---- threads that wait ---- */

enum { TOO_LONG = 20 }; /* seconds */

/* Nobody looks again after a second: who waits has to be woken. */
static atomic_bool for_ever, is_waiting;

void __real_h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock);
void __wrap_h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock);
void __wrap_h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	struct timespec until;

	if (!for_ever) {
		__real_h5_thread_wait_a_second(condition, lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += TOO_LONG;
	is_waiting = true;
	if (pthread_cond_timedwait(condition, lock, &until))
		ck_abort_msg("a thread that waits is not woken");
}

struct reader {
	pthread_t thread;
	uint64_t offset;
	int rc;
};

static void *read_one(void *arg)
{
	struct reader *reader = arg;
	uint8_t byte;

	reader->rc = h5_io_read(scene.io, reader->offset, &byte, 1);
	return NULL;
}

static bool is_receiving(void)
{
	bool receiving;

	pthread_mutex_lock(&scene.link->lock);
	receiving = scene.link->receiving;
	pthread_mutex_unlock(&scene.link->lock);
	return receiving;
}

/* The first reader waits at the socket, the second one for the first. */
static void begin_to_read(struct reader readers[2])
{
	begin(&scene, 100 * MIB, 16 * MIB);
	for_ever = true;
	is_waiting = false;
	for (unsigned i = 0; i < 2; i++) {
		readers[i] = (struct reader){.offset = (10 + 40 * i) * MIB};
		ck_assert_int_eq(pthread_create(&readers[i].thread, NULL, read_one, &readers[i]), 0);
		ck_assert(take(&scene, 0));
		while (i ? !is_waiting : !is_receiving())
			sched_yield();
	}
}

static void end_reading(struct reader *reader, int rc)
{
	pthread_join(reader->thread, NULL);
	ck_assert_int_eq(reader->rc, rc);
}

/* The thread at the socket wakes the one whose bytes have come. */
START_TEST(a_reply_to_another_thread)
{
	struct reader readers[2];

	begin_to_read(readers);
	reply_to(&scene, &scene.log[1], 0);
	end_reading(&readers[1], 0);
	reply_to(&scene, &scene.log[0], 0);
	end_reading(&readers[0], 0);
	for_ever = false;
	end(&scene);
}
END_TEST

/* When the mount ends nobody waits any more, whether the fetcher has ended or not. */
START_TEST(the_end_of_the_link)
{
	struct reader readers[2];

	begin_to_read(readers);
	h5_remote_end(scene.link);
	end_reading(&readers[1], -EIO);
	shutdown(scene.end.fd, SHUT_RDWR);
	end_reading(&readers[0], -EIO);
	for_ever = false;
	end(&scene);
}
END_TEST

/* ---- the end of the fetcher ---- */

enum { FETCHER = 4000000, FOR_EVER = 100000 };

static struct {
	int calls;  /* to wait for the fetcher that it takes until it has ended; 0: nobody waits */
	int error;  /* of all calls before */
	int asked;  /* calls there were */
	int pauses; /* milliseconds */
} fetcher;

pid_t __real_waitpid(pid_t pid, int *status, int options);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	if (!fetcher.calls)
		return __real_waitpid(pid, status, options);
	ck_assert_int_eq(pid, FETCHER);
	ck_assert_int_eq(options, WNOHANG);
	/* It sees that the link has ended. */
	ck_assert_int_eq(recv(scene.end.fd, &(char){0}, 1, MSG_DONTWAIT), 0);
	if (++fetcher.asked == fetcher.calls)
		return pid;
	errno = fetcher.error;
	return fetcher.error ? -1 : 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	if (fds)
		return __real_poll(fds, count, for_ever && timeout ? -1 : timeout);
	fetcher.pauses += timeout;
	ck_assert_int_lt(fetcher.pauses, FOR_EVER);
	return 0;
}

/* The link waits until it has ended, but for 2 s at most. */
START_TEST(the_end_of_the_fetcher)
{
	static const struct {
		int calls, error, asked, pauses;
	} cases[] = {{1, 0, 1, 0},	  {2, 0, 2, 10},
		     {5, EINTR, 5, 40},	  {FOR_EVER, ECHILD, 1, 0},
		     {200, 0, 200, 1990}, {FOR_EVER, 0, 200, 2000}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(&scene, 100 * MIB, 16 * MIB);
		h5_io_close(scene.io);
		take_all(&scene);
		h5_remote_set_fetcher(scene.link, FETCHER);
		fetcher.calls = cases[i].calls;
		fetcher.error = cases[i].error;
		fetcher.asked = fetcher.pauses = 0;
		h5_remote_close(scene.link);
		fetcher.calls = 0;
		ck_assert_int_eq(fetcher.asked, cases[i].asked);
		ck_assert_int_eq(fetcher.pauses, cases[i].pauses);
		close(scene.end.fd);
	}
}
END_TEST

/* ---- what is not wanted any more ---- */

static bool is_unwanted(void *arg)
{
	(void)arg;
	return true;
}

/* Since long ago. */
static const struct h5_interrupt unwanted = {.ask = is_unwanted}, wanted;

/* A read that waits for bytes, or for a cell; an opening that waits for a cell. */
START_TEST(whoever_waits_can_be_interrupted)
{
	const struct h5_io_range all = {20 * MIB, 16 * MIB};
	struct h5_io *io;
	uint8_t byte;
	size_t count;

	begin_with(&scene, 100 * MIB, 16 * MIB, 64);
	h5_io_want(scene.io, &all, 1, H5_WANTED_NOW);
	take_all(&scene);
	h5_interrupt_set(&unwanted);
	ck_assert_int_eq(h5_io_read(scene.io, 20 * MIB, &byte, 1), -EINTR);
	ck_assert_int_eq(h5_io_read(scene.io, 60 * MIB, &byte, 1), -EINTR);
	ck_assert_int_eq(h5_io_open_remote(scene.link, "y", &io), -EINTR);
	h5_interrupt_set(&wanted);
	count = scene.count;
	take_all(&scene);
	ck_assert_uint_eq(scene.count, count);
	ck_assert_uint_eq(scene.link->users[1], 0);
	ck_assert_ptr_null(scene.link->names[1]);
	/* The others go on. */
	reply_to_all(0);
	ck_assert_int_eq(h5_io_read(scene.io, 20 * MIB, &byte, 1), 0);
	ck_assert(!h5_remote_is_incomplete(scene.link));
	end(&scene);
}
END_TEST

/* A read for whose first bytes there is room waits for these. */
START_TEST(room_for_a_part)
{
	const struct h5_io_range most = {20 * MIB, 16 * MIB - 4 * H5_REMOTE_CELL};
	uint8_t bytes[8 * H5_REMOTE_CELL];

	begin_with(&scene, 100 * MIB, 16 * MIB, 64);
	h5_io_want(scene.io, &most, 1, H5_WANTED_NOW);
	h5_interrupt_set(&unwanted);
	ck_assert_int_eq(h5_io_read(scene.io, 60 * MIB, bytes, sizeof bytes), -EINTR);
	h5_interrupt_set(&wanted);
	take_all(&scene);
	ck_assert_uint_eq(scene.log[scene.count - 1].offset, 60 * MIB);
	ck_assert_uint_lt(scene.log[scene.count - 1].n, sizeof bytes);
	reply_to_all(0);
	ck_assert_int_eq(h5_io_read(scene.io, 60 * MIB, bytes, H5_REMOTE_CELL), 0);
	end(&scene);
}
END_TEST

/* An opening that has been sent: the answer comes when nobody waits for it. */
START_TEST(an_answer_that_nobody_waits_for)
{
	struct h5_io *io;
	size_t count;

	begin(&scene, 100 * MIB, 16 * MIB);
	for (unsigned good = 0; good < 2; good++) {
		h5_interrupt_set(&unwanted);
		ck_assert_int_eq(h5_io_open_remote(scene.link, "y", &io), -EINTR);
		h5_interrupt_set(&wanted);
		take_all(&scene);
		count = scene.count;
		ck_assert_int_eq(scene.log[count - 1].what, H5_REMOTE_OPEN);
		ck_assert_uint_eq(scene.log[count - 1].file, 1);
		ck_assert_uint_eq(scene.link->users[1], 0);
		for (unsigned i = 0; i < H5_REMOTE_UNDER_WAY; i++)
			ck_assert_ptr_null(scene.link->pending[i].answer);
		reply_to(&scene, &scene.log[count - 1], good ? 0 : -ENOENT);
		pthread_mutex_lock(&scene.link->lock);
		h5_remote_take(scene.link);
		pthread_mutex_unlock(&scene.link->lock);
		ck_assert_int_eq(scene.link->known[1], good);
		ck_assert_int_eq(!scene.link->names[1], !good);
	}
	/* So it is open. */
	ck_assert_int_eq(h5_io_open_remote(scene.link, "y", &io), 0);
	h5_io_close(io);
	take_all(&scene);
	ck_assert_uint_eq(scene.count, count);
	end(&scene);
}
END_TEST

/* A file that nobody has used closes first, whatever file had its number before. */
START_TEST(a_file_that_nobody_has_used)
{
	struct h5_io *io;

	for (unsigned again = 0; again < 2; again++) {
		begin(&scene, CELL, 16 * MIB);
		if (again) {
			h5_io_close(open_named("x", 1));
			close_unused();
		}
		h5_interrupt_set(&unwanted);
		ck_assert_int_eq(h5_io_open_remote(scene.link, "y", &io), -EINTR);
		h5_interrupt_set(&wanted);
		take_all(&scene);
		ck_assert_uint_eq(scene.log[scene.count - 1].file, 1);
		reply_to(&scene, &scene.log[scene.count - 1], 0);
		pthread_mutex_lock(&scene.link->lock);
		h5_remote_take(scene.link);
		ck_assert(scene.link->known[1]);
		h5_remote_close_unused(scene.link, false);
		ck_assert(!scene.link->known[1]);
		pthread_mutex_unlock(&scene.link->lock);
		end(&scene);
	}
}
END_TEST

UNIT_MAIN("remote files", a_file_that_cannot_be_opened, the_mounted_file_by_its_name, tags_of_files,
	  first_bytes_are_not_announced, a_number_that_is_given_out_again,
	  announcements_of_a_file_that_closes, announcements_of_a_file_that_has_changed,
	  files_close_in_the_order_of_their_last_use, files_that_close_together, statistics_and_notes_add_up,
	  bytes_that_make_room_stay_unused, what_is_incomplete_stays_so, a_reply_to_another_thread,
	  the_end_of_the_link, the_end_of_the_fetcher, whoever_waits_can_be_interrupted,
	  an_answer_that_nobody_waits_for, a_file_that_nobody_has_used, room_for_a_part)
