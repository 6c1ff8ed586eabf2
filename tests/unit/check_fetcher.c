/* The fetcher gets requests as a hostile daemon would send them. It must serve the valid ones, and end when
 * it gets one that is invalid. */
#include "config.h"

#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef HAVE_LIBCURL

#include "idle_fetcher.h"

enum { CELLS = 600, SIZE = 3 * H5_REMOTE_CELL - 100, LARGE = 1 << 30, GOOD_ID = 99 };

static struct h5_fetcher *begin(void)
{
	struct h5_fetcher *f = idle_fetcher_new(CELLS, LARGE, SIZE);

	ck_assert_ptr_nonnull(f);
	return f;
}

/* Sends the request with numbers of cells that begin at `cell`, and a name. The message is `extra` bytes
 * longer than the request says; if `extra` is negative, it is cut. */
static void say(int fd, const struct h5_remote_request *request, uint32_t cell, ssize_t extra)
{
	static struct h5_remote_message message;
	size_t size = sizeof *request + request->cells * sizeof *message.cells + request->name;

	message.request = *request;
	for (uint32_t i = 0; i < request->cells && i < H5_REMOTE_PART_CELLS; i++)
		message.cells[i] = cell + i;
	for (uint32_t i = 0; i < request->name && request->cells <= H5_REMOTE_PART_CELLS; i++)
		((char *)(message.cells + request->cells))[i] = 'n';
	size = (size_t)((ssize_t)size + extra);
	ck_assert_uint_le(size, sizeof message);
	ck_assert_int_eq(send(fd, &message, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Sends the request, and then a valid one. True: the fetcher has served the valid one, too. */
static bool goes_on(struct h5_fetcher *f, const struct h5_remote_request *request, uint32_t cell,
		    ssize_t extra)
{
	const struct h5_remote_request good = {
		.what = H5_REMOTE_READ, .id = GOOD_ID, .file = 1, .cells = 3, .n = SIZE};
	struct h5_remote_reply reply;
	bool served = false;
	int ends[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	say(ends[1], request, cell, extra);
	say(ends[1], &good, 0, 0);
	shutdown(ends[1], SHUT_WR);
	f->end.fd = ends[0];
	h5_fetcher_serve(f); /* until there is no message left */
	while (read(ends[1], &reply, sizeof reply) == sizeof reply)
		served |= reply.id == GOOD_ID && !reply.code && reply.got == SIZE;
	close(ends[0]);
	close(ends[1]);
	return served;
}

static const struct asked {
	struct h5_remote_request request;
	uint32_t cell; /* number of the first cell */
	ssize_t extra; /* how many bytes longer the message is than the request says */
	bool sound;    /* the fetcher must serve it */
} all[] = {
#define READ(in, at, bytes, count)                                                                           \
	.what = H5_REMOTE_READ, .file = (in), .offset = (at), .n = (bytes), .cells = (count)
#define CELL H5_REMOTE_CELL
	{.request = {READ(0, 0, CELL, 1)}, .sound = true},
	{.request = {READ(0, 5 * CELL, 2 * CELL, 2)}, .cell = CELLS - 2, .sound = true},
	{.request = {READ(0, LARGE - CELL, CELL, 1)}, .sound = true},
	{.request = {READ(0, 0, H5_REMOTE_PART, H5_REMOTE_PART_CELLS)}, .sound = true},
	{.request = {READ(1, 2 * CELL, CELL - 100, 1)}, .sound = true},
	/* Cells that are not there, or are not as many as the bytes take. */
	{.request = {READ(0, 0, 2 * CELL, 2)}, .cell = CELLS - 1},
	{.request = {READ(0, 0, CELL, 1)}, .cell = CELLS},
	{.request = {READ(0, 0, CELL, 2)}},
	{.request = {READ(0, 0, CELL + 1, 1)}},
	{.request = {READ(0, 0, H5_REMOTE_PART + CELL, H5_REMOTE_PART_CELLS + 1)}},
	/* Bytes that the file has not. */
	{.request = {READ(0, 0, 0, 0)}},
	{.request = {READ(0, 1, CELL, 1)}},
	{.request = {READ(0, LARGE, CELL, 1)}},
	{.request = {READ(0, LARGE - CELL, 2 * CELL, 2)}},
	{.request = {READ(1, 2 * CELL, CELL - 99, 1)}},
	{.request = {READ(1, UINT64_MAX - CELL + 1, CELL, 1)}},
	/* Files that are not open, or cannot be. */
	{.request = {READ(2, 0, CELL, 1)}},
	{.request = {READ(H5_REMOTE_FILES, 0, CELL, 1)}},
	{.request = {READ(UINT32_MAX, 0, CELL, 1)}},
	{.request = {READ(0, 0, CELL, 1), .name = 1}},
	/* Messages that are cut, or longer than they say. */
	{.request = {READ(0, 0, CELL, 1)}, .extra = -1},
	{.request = {READ(0, 0, CELL, 1)}, .extra = 1},
	{.request = {.what = H5_REMOTE_CLOSE}, .extra = -1},
	{.request = {.what = H5_REMOTE_OPEN, .file = 2, .n = CELL, .cells = 1, .name = 4}, .sound = true},
	{.request = {.what = H5_REMOTE_OPEN, .file = 2, .n = CELL, .cells = 1, .name = H5_REMOTE_NAME - 1},
	 .sound = true},
	{.request = {.what = H5_REMOTE_OPEN, .file = 2, .n = CELL, .cells = 1, .name = H5_REMOTE_NAME}},
	{.request = {.what = H5_REMOTE_OPEN, .file = 2, .offset = CELL, .n = CELL, .cells = 1}},
	{.request = {.what = H5_REMOTE_OPEN, .file = 0, .n = CELL, .cells = 1}},
	/* More than there are numbers for: no cells are as many as that. */
	{.request = {.what = H5_REMOTE_OPEN, .file = 2, .n = UINT64_MAX}},
	{.request = {.what = H5_REMOTE_OPEN, .file = 2, .n = UINT64_MAX - CELL + 2}},
	{.request = {.what = H5_REMOTE_OPEN, .file = 2, .n = UINT64_MAX - CELL + 1}},
	{.request = {.what = H5_REMOTE_LIST, .file = 2, .n = UINT64_MAX, .name = 4}},
	{.request = {.what = H5_REMOTE_OPEN, .file = 2, .n = H5_REMOTE_PART, .cells = H5_REMOTE_PART_CELLS},
	 .sound = true},
	/* Not of an object store: the daemon gets an error. */
	{.request = {.what = H5_REMOTE_LIST, .file = 2, .n = CELL, .cells = 1, .name = 4}, .sound = true},
	{.request = {.what = H5_REMOTE_LIST, .file = 2, .offset = CELL, .n = CELL, .cells = 1, .name = 4}},
	{.request = {.what = H5_REMOTE_CLOSE, .file = 0}, .sound = true},
	{.request = {.what = H5_REMOTE_CLOSE, .file = 2}},
	{.request = {.what = H5_REMOTE_CLOSE, .file = H5_REMOTE_FILES}},
	{.request = {.what = H5_REMOTE_CLOSE, .file = 0, .offset = CELL}},
	{.request = {.what = H5_REMOTE_CLOSE, .file = 0, .n = CELL, .cells = 1}},
	{.request = {.what = H5_REMOTE_CLOSE, .file = 0, .name = 1}},
	{.request = {.what = 0, .file = 0, .n = CELL, .cells = 1}},
	{.request = {.what = H5_REMOTE_CLOSE + 1, .file = 0, .n = CELL, .cells = 1}},
};

START_TEST(what_cannot_be_asked_ends_it)
{
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct h5_fetcher *f = begin();

		ck_assert_msg(goes_on(f, &all[i].request, all[i].cell, all[i].extra) == all[i].sound,
			      "request %zu", i);
		idle_fetcher_free(f);
	}
}
END_TEST

/* A file that is still asked for cannot be closed. */
START_TEST(what_is_under_way_stays_open)
{
	const struct h5_remote_request read = {READ(0, 0, CELL, 1)}, close_it = {.what = H5_REMOTE_CLOSE};
	struct h5_fetcher *f = begin();

	ck_assert(goes_on(f, &read, 0, 0));
	ck_assert(!goes_on(f, &close_it, 0, 0));
	idle_fetcher_free(f);
	f = begin();
	ck_assert(goes_on(f, &close_it, 0, 0));
	ck_assert(!goes_on(f, &read, 0, 0));
	idle_fetcher_free(f);
}
END_TEST

/* The fetcher ends when more requests are under way than it has room for. */
START_TEST(no_more_than_may_be_under_way)
{
	const struct h5_remote_request read = {READ(0, 0, CELL, 1)};
	struct h5_fetcher *f = begin();

	for (unsigned i = 0; i < H5_REMOTE_UNDER_WAY - 1; i++)
		ck_assert(goes_on(f, &read, 0, 0));
	ck_assert(!goes_on(f, &read, 0, 0)); /* it takes the last place, so the valid one has none */
	idle_fetcher_free(f);
}
END_TEST

UNIT_MAIN("fetcher", what_cannot_be_asked_ends_it, what_is_under_way_stays_open,
	  no_more_than_may_be_under_way)

#else

#include <stdio.h>

int main(void)
{
	puts("there is no libcurl, and so no fetcher");
	return 77;
}

#endif
