/* The daemon's end of the link to its fetcher; the test is the fetcher. */
#ifndef H5_TESTS_LINK_SCENE_H
#define H5_TESTS_LINK_SCENE_H

#include "base/checked.h"
#include "base/error.h"
#include "io/remote.h"
#include "unit.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	KIB = 1 << 10,
	MIB = 1 << 20,
	CELL = H5_REMOTE_CELL,
	LOG_MAX = 1 << 15,
};

struct scene {
	struct h5_remote *link;
	struct h5_remote_end end;
	struct h5_io *io;
	uint64_t size;
	/* The requests in their order. Those to forget a file are left out. */
	struct h5_remote_request log[LOG_MAX];
	size_t count;
	pthread_t server;
	bool served;
};

static inline void reply_to(const struct scene *s, const struct h5_remote_request *request, int code)
{
	struct h5_remote_reply reply = {.id = request->id, .code = code, .requests = 1};

	if (!code)
		reply.got = h5_min(request->n, s->size);
	reply.received = reply.got;
	reply.size = s->size;
	ck_assert_int_eq(send(s->end.fd, &reply, sizeof reply, MSG_NOSIGNAL), sizeof reply);
}

/* Takes the next request of the daemon; false: there is none. */
static inline bool take(struct scene *s, int flags)
{
	struct h5_remote_message message;
	ssize_t n = recv(s->end.fd, &message, sizeof message, flags);

	if (n <= 0)
		return false;
	ck_assert_uint_lt(s->count, LOG_MAX);
	s->log[s->count++] = message.request;
	return true;
}

static inline void take_all(struct scene *s)
{
	while (take(s, MSG_DONTWAIT))
		;
}

/* A file of this size, of which the first mebibyte is there. */
static inline void begin_with(struct scene *s, uint64_t size, size_t cache, unsigned connections)
{
	const struct h5_remote_request first = {.n = H5_REMOTE_FIRST};

	memset(s, 0, sizeof *s);
	s->size = size;
	ck_assert_int_eq(h5_remote_new("http://server/x.h5", cache, connections, &s->link, &s->end), 0);
	reply_to(s, &first, 0);
	ck_assert_int_eq(h5_io_open_remote(s->link, "", &s->io), 0);
	take_all(s);
	ck_assert_uint_eq(s->count, 1);
	ck_assert_int_eq(s->log[0].what, H5_REMOTE_OPEN);
	s->count = 0;
}

static inline void begin(struct scene *s, uint64_t size, size_t cache)
{
	begin_with(s, size, cache, 32);
}

static inline void end(struct scene *s)
{
	h5_remote_end(s->link);
	shutdown(s->end.fd, SHUT_RDWR);
	if (s->served)
		pthread_join(s->server, NULL);
	h5_io_close(s->io);
	h5_remote_close(s->link);
	close(s->end.fd);
}

static inline void *serve(void *arg)
{
	struct scene *s = arg;

	while (take(s, 0))
		if (s->log[s->count - 1].what != H5_REMOTE_CLOSE)
			reply_to(s, &s->log[s->count - 1], 0);
	return NULL;
}

static inline void begin_to_serve(struct scene *s)
{
	s->served = true;
	ck_assert_int_eq(pthread_create(&s->server, NULL, serve, s), 0);
}

#endif
