#include "io/remote_link.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/thread.h"
#include "base/wait.h"

#include <assert.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	WAIT = 1000,	 /* milliseconds at the socket */
	END_WAIT = 2000, /* milliseconds for the end of the fetcher */
	END_STEP = 10,
	UNUSED = 64, /* files that stay open when nobody uses them */
};

/* ---- opening and closing ---- */

static int share_memory(struct h5_remote *r, size_t size)
{
	void *memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return h5_fail(-ENOMEM, H5_UNDEF, "no address space for %zu bytes", size);
	r->memory = memory;
	return 0;
}

int h5_remote_new(const char *url, size_t cache, unsigned connections, struct h5_remote **remote,
		  struct h5_remote_end *end)
{
	struct h5_remote *r = calloc(1, sizeof *r);
	uint32_t count =
		(uint32_t)h5_min(h5_max(cache, H5_REMOTE_CACHE_LEAST) / H5_REMOTE_CELL, UINT32_MAX / 4);
	int ends[2] = {-1, -1}, rc;

	if (!r)
		return -ENOMEM;
	pthread_mutex_init(&r->lock, NULL);
	h5_thread_cond_init(&r->arrived);
	r->fd = -1;
	r->connections = connections;
	r->url = strdup(url);
	rc = r->url ? h5_cells_open(&r->cells, count) : -ENOMEM;
	if (!rc)
		rc = share_memory(r, (size_t)count * H5_REMOTE_CELL);
	if (!rc && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		rc = h5_fail(-errno, H5_UNDEF, "socketpair: %s", strerror(errno));
	r->fd = ends[0];
	if (rc) {
		h5_remote_close(r);
		return rc;
	}
	*end = (struct h5_remote_end){.fd = ends[1], .memory = r->memory, .cells = count};
	*remote = r;
	return 0;
}

void h5_remote_set_fetcher(struct h5_remote *r, pid_t fetcher)
{
	r->fetcher = fetcher;
}

void h5_remote_end(struct h5_remote *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->ended = true;
	pthread_cond_broadcast(&r->arrived);
	pthread_mutex_unlock(&r->lock);
}

/* The fetcher ends when it sees that the link has ended. Nobody waits longer if it does not look, since it
 * was stopped or is not sound. */
static void end_fetcher(struct h5_remote *r)
{
	if (r->fd >= 0)
		close(r->fd);
	for (int waited = 0; r->fetcher && waited < END_WAIT; waited += END_STEP) {
		pid_t ended = waitpid(r->fetcher, NULL, WNOHANG);

		if (ended == r->fetcher || (ended < 0 && errno != EINTR))
			return;
		poll(NULL, 0, END_STEP);
	}
}

void h5_remote_close(struct h5_remote *r)
{
	if (!r)
		return;
	end_fetcher(r);
	if (r->memory)
		munmap(r->memory, (size_t)r->cells.count * H5_REMOTE_CELL);
	for (size_t i = 0; i < H5_REMOTE_FILES; i++)
		free(r->names[i]);
	h5_cells_release(&r->cells);
	pthread_cond_destroy(&r->arrived);
	h5_mutex_destroy(&r->lock);
	free(r->url);
	free(r);
}

/* ---- replies ---- */

/* Nothing comes any more: what is waited for has failed. */
static void end_all(struct h5_remote *r)
{
	r->ended = true;
	for (uint32_t i = 0; i < H5_REMOTE_UNDER_WAY; i++) {
		struct h5_remote_pending *p = &r->pending[i];

		for (uint32_t k = 0; p->busy && k < p->count; k++)
			h5_cells_end(&r->cells, p->cells[k], -EIO);
		p->busy = false;
	}
	r->under_way = 0;
	r->incomplete = true;
	strcpy(r->failure, "the process that fetches has ended");
}

/* True: the reply is one to what was asked. */
static bool is_sound(const struct h5_remote_pending *p, const struct h5_remote_reply *reply)
{
	if (!p->busy || p->id != reply->id || reply->code > 0 || reply->code < -4095)
		return false;
	if (reply->code || !p->opens)
		return reply->code || reply->got == p->n;
	return reply->size <= INT64_MAX && reply->got == h5_min(p->n, reply->size);
}

static void free_number(struct h5_remote *r, uint32_t file)
{
	free(r->names[file]);
	r->names[file] = NULL;
}

/* Whoever asked may not wait any more: the file is known, or its number is free. */
static void take_opened(struct h5_remote *r, uint32_t file, const struct h5_remote_reply *reply)
{
	r->known[file] = !reply->code;
	if (reply->code) {
		free_number(r, file);
	} else {
		r->sizes[file] = reply->size;
		r->mtimes[file] = reply->mtime;
		r->tags[file] = reply->version;
	}
}

static void take_reply(struct h5_remote *r, const struct h5_remote_reply *reply)
{
	struct h5_remote_pending *p = &r->pending[reply->id % H5_REMOTE_UNDER_WAY];
	uint64_t full;

	if (!is_sound(p, reply)) {
		end_all(r);
		return;
	}
	r->statistics.requests += reply->requests;
	r->statistics.repeated += reply->repeated;
	r->statistics.bytes += reply->received;
	r->statistics.from_disk += reply->from_disk;
	full = (reply->got + H5_REMOTE_CELL - 1) / H5_REMOTE_CELL;
	for (uint32_t k = 0; k < p->count; k++)
		h5_cells_end(&r->cells, p->cells[k], reply->code ? reply->code : k < full ? 0 : -ENODATA);
	if (reply->code)
		memcpy(r->failure, reply->text, sizeof r->failure);
	else if (*reply->text)
		memcpy(r->note, reply->text, sizeof r->note);
	r->incomplete |= reply->code && !p->opens;
	if (reply->code == -ESTALE)
		r->stale[p->file] = true;
	if (p->opens)
		take_opened(r, p->file, reply);
	if (p->answer) {
		p->answer->reply = *reply;
		p->answer->there = true;
	}
	assert(p->busy && r->under_way);
	p->busy = false;
	r->under_way--;
}

/* False: there is none now. */
static bool receive(struct h5_remote *r, int wait)
{
	struct pollfd ready = {.fd = r->fd, .events = POLLIN};
	struct h5_remote_reply reply;
	int there;
	ssize_t n = -1;

	r->receiving = true;
	pthread_mutex_unlock(&r->lock);
	there = poll(&ready, 1, wait);
	if (there > 0)
		n = read(r->fd, &reply, sizeof reply); /* recv() is not allowed in the sandbox */
	pthread_mutex_lock(&r->lock);
	r->receiving = false;
	if (there > 0 && !(n < 0 && (errno == EINTR || errno == EAGAIN))) {
		reply.text[n == sizeof reply ? sizeof reply.text - 1 : 0] = 0;
		if (n == sizeof reply && !r->ended)
			take_reply(r, &reply);
		else
			end_all(r);
	}
	pthread_cond_broadcast(&r->arrived);
	return there > 0 && !r->ended;
}

void h5_remote_take(struct h5_remote *r)
{
	while (!r->receiving && !r->ended && r->under_way && receive(r, 0))
		;
}

static int fail_ended(const struct h5_remote *r)
{
	return h5_fail(-EIO, H5_UNDEF, "%s", *r->failure ? r->failure : "the mount ends");
}

int h5_remote_wait(struct h5_remote *r)
{
	int rc = h5_interrupt_check();

	if (rc)
		return rc;
	if (r->ended)
		return fail_ended(r);
	h5_wait_begins();
	if (r->receiving)
		h5_thread_wait_a_second(&r->arrived, &r->lock);
	else
		receive(r, WAIT);
	return 0;
}

/* ---- requests ---- */

/* A place for a request; NULL: there is none now. */
static struct h5_remote_pending *begin_request(struct h5_remote *r)
{
	struct h5_remote_pending *p;

	if (r->under_way == H5_REMOTE_UNDER_WAY)
		h5_remote_take(r);
	for (uint32_t i = 0; i < H5_REMOTE_UNDER_WAY; i++) {
		p = &r->pending[r->next_id % H5_REMOTE_UNDER_WAY];
		if (!p->busy) {
			p->id = r->next_id++;
			p->count = 0;
			p->answer = NULL;
			p->opens = false;
			return p;
		}
		r->next_id++;
	}
	return NULL;
}

static void take_cells(struct h5_remote *r, struct h5_remote_pending *p, uint64_t first, uint32_t count,
		       bool announced)
{
	while (p->count < count) {
		uint32_t i = h5_cells_take(&r->cells, p->file, first + p->count, announced);

		if (i == H5_NO_CELL)
			break;
		p->cells[p->count++] = i;
	}
}

static int send_request(struct h5_remote *r, struct h5_remote_pending *p, struct h5_remote_request *request,
			const char *name, size_t name_size)
{
	struct h5_remote_message message;
	uint8_t *end = (uint8_t *)message.cells + p->count * sizeof *message.cells;
	size_t size;
	int rc;

	request->id = p->id;
	request->file = p->file;
	request->cells = p->count;
	request->name = (uint32_t)name_size;
	request->n = p->n;
	message.request = *request;
	memcpy(message.cells, p->cells, p->count * sizeof *message.cells);
	memcpy(end, name, request->name);
	size = (size_t)(end - (uint8_t *)&message) + request->name;
	if (send(r->fd, &message, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size) {
		p->busy = true;
		r->under_way++;
		return 0;
	}
	/* If the fetcher does not take what was sent before, nobody waits for that with the lock. */
	rc = errno == EAGAIN ? -EAGAIN : -EIO;
	for (uint32_t k = 0; k < p->count; k++)
		h5_cells_end(&r->cells, p->cells[k], rc);
	if (rc == -EAGAIN)
		return rc;
	end_all(r);
	return h5_fail(-EIO, H5_UNDEF, "%s", r->failure);
}

int h5_remote_ask(struct h5_remote *r, uint32_t file, uint64_t first, uint64_t n, bool urgent,
		  uint32_t *taken)
{
	struct h5_remote_request request = {
		.what = H5_REMOTE_READ, .urgent = urgent, .offset = first * H5_REMOTE_CELL};
	struct h5_remote_pending *p;
	int rc;

	assert(n && n <= H5_REMOTE_PART);
	*taken = 0;
	if (r->stale[file])
		return h5_fail(-ESTALE, first * H5_REMOTE_CELL, "the file has changed since it was mounted");
	p = begin_request(r);
	if (r->ended)
		return fail_ended(r);
	if (!p)
		return -EAGAIN;
	p->file = file;
	take_cells(r, p, first, (uint32_t)((n + H5_REMOTE_CELL - 1) / H5_REMOTE_CELL), !urgent);
	if (!p->count)
		return -EAGAIN;
	p->n = h5_min(n, (uint64_t)p->count * H5_REMOTE_CELL);
	rc = send_request(r, p, &request, "", 0);
	*taken = rc ? 0 : p->count;
	return rc;
}

/* The answer may come when nobody waits for it any more. */
static void give_up(struct h5_remote *r, const struct h5_remote_answer *answer)
{
	for (uint32_t i = 0; i < H5_REMOTE_UNDER_WAY; i++)
		if (r->pending[i].answer == answer)
			r->pending[i].answer = NULL;
}

/* A place for the request that opens a file, with cells for its first bytes: as many as there are. */
static int begin_open(struct h5_remote *r, const struct h5_remote_opening *opening,
		      struct h5_remote_pending **out)
{
	int rc = 0;

	while (!rc) {
		struct h5_remote_pending *p = begin_request(r);

		if (r->ended)
			return fail_ended(r);
		if (p) {
			p->file = opening->file;
			take_cells(r, p, 0, (uint32_t)(opening->first / H5_REMOTE_CELL), false);
			*out = p;
			if (p->count)
				return 0;
		}
		rc = h5_remote_wait(r);
	}
	return rc;
}

static int send_open(struct h5_remote *r, const struct h5_remote_opening *opening,
		     struct h5_remote_answer *answer)
{
	struct h5_remote_request request = {.what = opening->what, .urgent = true};
	struct h5_remote_pending *p = NULL;
	int rc = begin_open(r, opening, &p);

	if (rc)
		return rc;
	p->n = (uint64_t)p->count * H5_REMOTE_CELL;
	p->opens = true;
	p->answer = answer;
	return send_request(r, p, &request, opening->name, opening->size);
}

int h5_remote_ask_open(struct h5_remote *r, const struct h5_remote_opening *opening,
		       struct h5_remote_reply *reply)
{
	struct h5_remote_answer answer = {0};
	int rc = send_open(r, opening, &answer);

	while (rc == -EAGAIN) {
		rc = h5_remote_wait(r);
		if (!rc)
			rc = send_open(r, opening, &answer);
	}
	if (rc)
		free_number(r, opening->file);
	while (!rc && !answer.there)
		rc = h5_remote_wait(r);
	give_up(r, &answer);
	*reply = answer.reply;
	return rc;
}

/* ---- files that nobody uses ---- */

static bool is_unused(const struct h5_remote *r, uint32_t file)
{
	return r->known[file] && !r->users[file];
}

static bool is_asked_of(const struct h5_remote *r, uint32_t file)
{
	for (uint32_t i = 0; i < H5_REMOTE_UNDER_WAY; i++)
		if (r->pending[i].busy && r->pending[i].file == file)
			return true;
	return false;
}

/* Forgets what was announced of the file and not asked for yet. */
static void take_back(struct h5_remote *r, uint32_t file)
{
	for (uint32_t i = 0; i < r->announced_count; i++) {
		struct h5_remote_span *span = &r->announced[(r->announced_first + i) % H5_REMOTE_ANNOUNCED];

		if (span->file == file)
			span->end = span->first;
	}
}

/* Tells the fetcher to close the file, and frees its number. False: the fetcher takes no message now. */
static bool close_file(struct h5_remote *r, uint32_t file)
{
	const struct h5_remote_request request = {.what = H5_REMOTE_CLOSE, .file = file};

	if (r->ended || send(r->fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof request)
		return false;
	take_back(r, file);
	h5_cells_forget(&r->cells, file);
	free_number(r, file);
	r->known[file] = r->stale[file] = false;
	r->left[file] = 0;
	return true;
}

/* How late the file was used; 0: it will not be opened again. The file of the least worth is closed first. */
static uint64_t worth_of(const struct h5_remote *r, uint32_t file)
{
	return r->stale[file] || *r->names[file] == '/' ? 0 : r->left[file];
}

void h5_remote_close_unused(struct h5_remote *r, bool all)
{
	uint32_t count, worst;

	h5_remote_take(r);
	do {
		count = 0;
		worst = H5_REMOTE_FILES;
		for (uint32_t i = 0; i < H5_REMOTE_FILES; i++) {
			if (!is_unused(r, i))
				continue;
			count++;
			if (!is_asked_of(r, i) &&
			    (worst == H5_REMOTE_FILES || worth_of(r, i) < worth_of(r, worst)))
				worst = i;
		}
	} while (worst < H5_REMOTE_FILES && (all || count > UNUSED || !worth_of(r, worst)) &&
		 close_file(r, worst));
}
