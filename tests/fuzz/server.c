/* A fetcher whose every connection leads to the input. Time passes only when nothing else happens, so pauses
 * and time limits cost none. */
#include "config.h"

#include "server.h"

#include "fuzz.h"

#ifdef HAVE_LIBCURL

#include "base/checked.h"
#include "remote/private.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OWN_HOST "10.1.2.3"
#define SECRET	 "X-Secret: for one server alone"

enum { CONNECTIONS_MAX = 24, CELLS = 40, GUARD = 0xa5, READS = 2, ROOM = 8 };

struct connection {
	int fd;	  /* the server's end */
	bool own; /* to the server of the URL */
};

/* The process has one: libcurl knows nothing of it. */
static struct {
	atomic_bool active;
	struct h5_reader script;
	uint64_t skew; /* milliseconds */
	unsigned count;
	struct connection connections[CONNECTIONS_MAX];
} net;
static _Thread_local bool is_fetcher;

/* ---- in place of the C library's and libcurl's ---- */

int clock_gettime(clockid_t id, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, id, now);

	if (!is_fetcher || id != CLOCK_MONOTONIC || rc)
		return rc;
	now->tv_sec += (time_t)(net.skew / 1000);
	return 0;
}

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd extra[], unsigned count, int timeout, int *ready)
{
	CURLMcode (*real)(CURLM *, struct curl_waitfd[], unsigned, int, int *) =
		(CURLMcode(*)(CURLM *, struct curl_waitfd[], unsigned, int, int *))dlsym(RTLD_NEXT,
											 "curl_multi_poll");
	int there = 0;
	CURLMcode rc = real(multi, extra, count, timeout > 0, &there);

	if (!there)
		net.skew += 1000;
	if (ready)
		*ready = there;
	return rc;
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(
			RTLD_NEXT, "getaddrinfo");

	if (net.active && host)
		host = "127.0.0.1";
	return real(host, service, hints, out);
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	const struct sockaddr_in *to = (const struct sockaddr_in *)address;
	const uint8_t *bytes;
	size_t n;
	int ends[2];

	if (!net.active || address->sa_family == AF_UNIX)
		return (int)syscall(SYS_connect, fd, address, size);
	if (address->sa_family != AF_INET || net.count == CONNECTIONS_MAX || !h5_reader_left(&net.script) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends)) {
		errno = ECONNREFUSED;
		return -1;
	}
	net.connections[net.count++] = (struct connection){
		.fd = ends[1],
		.own = to->sin_addr.s_addr == inet_addr(OWN_HOST) && to->sin_port == htons(80)};
	n = h5_read_u16(&net.script);
	n = h5_min(n, h5_reader_left(&net.script));
	bytes = h5_read_bytes(&net.script, n);
	(void)!send(ends[1], bytes, n, MSG_NOSIGNAL);
	shutdown(ends[1], SHUT_WR);
	dup2(ends[0], fd);
	close(ends[0]);
	return 0;
}

/* ---- what the server hears ---- */

static void listen_to(const struct connection *c)
{
	char heard[8192];
	ssize_t n = recv(c->fd, heard, sizeof heard - 1, MSG_DONTWAIT);

	close(c->fd);
	if (n <= 0)
		return;
	heard[n] = 0;
	FUZZ_HOLDS(c->own || !strstr(heard, SECRET));
	if (strncmp(heard, "GET ", 4))
		return; /* TLS */
	FUZZ_HOLDS(strstr(heard, "\r\nRange: bytes="));
	FUZZ_HOLDS(!c->own || strstr(heard, SECRET));
}

/* ---- the daemon ---- */

struct daemon {
	int fd;
	struct h5_remote_end end;
	uint8_t how[4];
};

/* Asks for bytes into cells of its own, and waits for the reply. */
static struct h5_remote_reply ask(struct daemon *d, struct h5_remote_request q, uint32_t first)
{
	struct h5_remote_message message;
	struct h5_remote_reply reply;

	q.cells = (uint32_t)((q.n + H5_REMOTE_CELL - 1) / H5_REMOTE_CELL);
	message.request = q;
	for (uint32_t i = 0; i < q.cells; i++)
		message.cells[i] = first + i;
	FUZZ_HOLDS(send(d->fd, &message, sizeof q + q.cells * sizeof *message.cells, MSG_NOSIGNAL) > 0);
	FUZZ_HOLDS(read(d->fd, &reply, sizeof reply) == sizeof reply);
	FUZZ_HOLDS(reply.id == q.id && reply.code <= 0 && memchr(reply.text, 0, sizeof reply.text));
	FUZZ_HOLDS(reply.code || reply.got == (q.what == H5_REMOTE_OPEN ? h5_min(q.n, reply.size) : q.n));
	FUZZ_HOLDS(reply.size <= INT64_MAX);
	return reply;
}

static bool is_guarded(const struct daemon *d, size_t from, size_t to)
{
	const uint8_t *p = d->end.memory + from;

	return from >= to || (*p == GUARD && !memcmp(p, p + 1, to - from - 1));
}

/* Opens the file, and reads of it, the last bytes too. Nothing is written but the bytes that were asked for.
 */
static void *use(void *arg)
{
	struct daemon *d = arg;
	uint32_t cells = 1 + d->how[0] % ROOM;
	struct h5_remote_request q = {.what = H5_REMOTE_OPEN, .n = (uint64_t)cells * H5_REMOTE_CELL};
	struct h5_remote_reply opened = ask(d, q, 1);

	FUZZ_HOLDS(is_guarded(d, 0, H5_REMOTE_CELL));
	FUZZ_HOLDS(is_guarded(d, (1 + (size_t)cells) * H5_REMOTE_CELL, CELLS * H5_REMOTE_CELL));
	q.what = H5_REMOTE_READ;
	for (unsigned i = 0; i < READS && !opened.code && opened.size; i++) {
		uint64_t last = (opened.size - 1) / H5_REMOTE_CELL;
		uint64_t cell = h5_min(last, d->how[1 + i]);
		uint32_t first = ROOM * (2 + i);

		q.id++;
		q.offset = cell * H5_REMOTE_CELL;
		q.n = h5_min(opened.size - q.offset, (uint64_t)(1 + d->how[3] % 4) * H5_REMOTE_CELL);
		ask(d, q, first);
		FUZZ_HOLDS(
			is_guarded(d, first * H5_REMOTE_CELL + (size_t)q.n, (first + ROOM) * H5_REMOTE_CELL));
	}
	close(d->fd);
	return NULL;
}

static void serve(struct h5_fetcher *f, struct daemon *d)
{
	pthread_t thread;

	FUZZ_HOLDS(!pthread_create(&thread, NULL, use, d));
	is_fetcher = true;
	h5_fetcher_serve(f);
	is_fetcher = false;
	close(f->end.fd);
	pthread_join(thread, NULL);
}

static void release(struct h5_fetcher *f)
{
	for (size_t i = 0; i < H5_REMOTE_UNDER_WAY; i++) {
		struct h5_transfer *t = &f->transfers[i];

		FUZZ_HOLDS(t->state == H5_TRANSFER_FREE);
		if (t->easy)
			curl_easy_cleanup(t->easy);
	}
	free(f->sources[0].url);
	free(f->sources[0].target);
	free(f->sources[0].whole);
	curl_multi_cleanup(f->multi);
	curl_slist_free_all(f->fields);
	free(f->url);
	free(f);
}

static struct h5_fetcher *make_fetcher(const struct daemon *d, int fd)
{
	struct h5_fetcher *f = calloc(1, sizeof *f);

	FUZZ_HOLDS(f);
	f->options = (struct h5_fetcher_options){.url = "",
						 .connections = 32,
						 .tries = 1 + d->how[3] / 4 % 4,
						 .timeout = 2,
						 .whole = d->how[3] >= 128 ? 1 << 17 : 0};
	f->end = d->end;
	f->end.fd = fd;
	f->multi = curl_multi_init();
	f->url = strdup("http://" OWN_HOST "/folder/x.h5");
	f->fields = curl_slist_append(NULL, SECRET);
	FUZZ_HOLDS(f->multi && f->url && f->fields);
	return f;
}

void fuzz_server(const void *arg, const uint8_t *data, size_t size)
{
	struct daemon d = {.end = {.cells = CELLS}};
	struct h5_fetcher *f;
	int ends[2];

	(void)arg;
	if (size < sizeof d.how)
		return;
	memcpy(d.how, data, sizeof d.how);
	net.script = h5_reader_init(data + sizeof d.how, size - sizeof d.how, 0, 8, 8);
	net.count = 0;
	net.skew = 0;
	d.end.memory = malloc((size_t)CELLS * H5_REMOTE_CELL);
	FUZZ_HOLDS(d.end.memory && !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	memset(d.end.memory, GUARD, (size_t)CELLS * H5_REMOTE_CELL);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	d.fd = ends[1];
	f = make_fetcher(&d, ends[0]);
	net.active = true;
	serve(f, &d);
	release(f);
	net.active = false;
	for (unsigned i = 0; i < net.count; i++)
		listen_to(&net.connections[i]);
	free(d.end.memory);
}

#endif
