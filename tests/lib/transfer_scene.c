#include "config.h"

#include "transfer_scene.h"

#include "fault_alloc.h"
#include "idle_fetcher.h"
#include "remote/listing.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct scene scene;
uint8_t content[LARGE];

_Static_assert((int)LARGE > (int)WHOLE, "files that come whole, and one byte more");

/* ---- the network ---- */

static void check_request(CURL *easy, const struct step *step)
{
	ck_assert_str_eq(fake_curl_text(easy, CURLOPT_URL), step->url ? step->url : OWN);
	if (step->range)
		ck_assert_pstr_eq(fake_curl_text(easy, CURLOPT_RANGE), *step->range ? step->range : NULL);
	for (size_t i = 0; i < 4 && step->fields[i]; i++) {
		const char *field = step->fields[i];

		if (*field == '!')
			ck_assert_pstr_eq(fake_curl_field(easy, field + 1), NULL);
		else
			ck_assert_pstr_eq(fake_curl_field(easy, field), field);
	}
	if (step->at)
		ck_assert_int_eq(fake_curl.now - START, step->at);
}

static bool answer(void *arg, CURL *easy, struct fake_answer *a)
{
	const struct step *step;

	(void)arg;
	/* The fetcher still knows what it learned before the failure, and asks for the next step. */
	while (scene.again && scene.next + 1 < scene.count &&
	       strcmp(fake_curl_text(easy, CURLOPT_URL), scene.steps[scene.next].url))
		scene.next++;
	step = &scene.steps[scene.next];
	ck_assert_msg(scene.next < scene.count, "one more request: %s", fake_curl_text(easy, CURLOPT_URL));
	check_request(easy, step);
	*a = (struct fake_answer){.head = step->head,
				  .body = step->body ? step->body : (const char *)content + step->from,
				  .size = step->body ? strlen(step->body) : step->n,
				  .piece = step->piece,
				  .result = step->result,
				  .words = step->words,
				  .retry_after = step->retry,
				  .time = step->time,
				  .redirect = step->redirect};
	scene.next++;
	return true;
}

static bool is_idle(void)
{
	for (size_t i = 0; i < H5_REMOTE_UNDER_WAY; i++)
		if (scene.f->transfers[i].state != H5_TRANSFER_FREE)
			return false;
	return true;
}

static void sleep_for(void *arg, int milliseconds)
{
	(void)arg;
	ck_assert_uint_lt(++scene.waits, 100);
	/* The fetcher serves again, so what is open stays so when it ends. */
	if (is_idle()) {
		shutdown(scene.ends[1], SHUT_WR);
		scene.used = scene.f->sources_used;
		scene.f->sources_used = 0;
	}
	fake_curl.now += milliseconds;
}

/* ---- the daemon ---- */

static void begin_with(uint32_t cells, uint64_t size)
{
	memset(&scene, 0, sizeof scene);
	for (size_t i = 0; i < sizeof content; i++)
		content[i] = (uint8_t)(i * 7 + i / 256 + i / 65536 * 13);
	scene.f = idle_fetcher_new(cells, size, CELL);
	ck_assert_ptr_nonnull(scene.f);
	strcpy(scene.f->sources[0].tag, "\"a\"");
	scene.f->options.whole = WHOLE;
	scene.f->options.tries = TRIES;
	scene.f->options.timeout = 30;
	scene.f->options.connections = 2;
	fake_curl = (struct fake_curl){.ask = answer, .wait = sleep_for, .now = START, .chance = 50};
}

void begin(void)
{
	begin_with(CELLS, SIZE);
}

void begin_large(void)
{
	begin_with(BLOCKS, LARGE);
}

void end(void)
{
	idle_fetcher_free(scene.f);
}

static int serve(void)
{
	int status;

	fake_curl_set_clock(true);
	fault_alloc_count(true);
	status = h5_fetcher_serve(scene.f);
	fault_alloc_count(false);
	fake_curl_set_clock(false);
	scene.f->sources_used = scene.used;
	return status;
}

static void send_request(const struct h5_remote_request *request, const char *name, size_t n)
{
	static struct h5_remote_message message;
	size_t size;

	message.request = *request;
	message.request.cells = (uint32_t)((request->n + CELL - 1) / CELL);
	message.request.name = (uint32_t)n;
	/* Not in their order. */
	for (uint32_t i = 0; i < message.request.cells; i++)
		message.cells[i] = scene.f->end.cells - 1 - i;
	if (n)
		memcpy(message.cells + message.request.cells, name, n);
	size = sizeof *request + message.request.cells * sizeof *message.cells + message.request.name;
	ck_assert_int_eq(send(scene.ends[1], &message, size, MSG_NOSIGNAL), (ssize_t)size);
}

const struct h5_remote_reply *try(struct h5_remote_request request, const struct step *steps, size_t count)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, scene.ends),
			 0);
	scene.f->end.fd = scene.ends[0];
	scene.steps = steps;
	scene.count = count;
	scene.next = scene.waits = 0;
	send_request(&request, scene.name, scene.name_size);
	ck_assert_int_eq(serve(), EXIT_SUCCESS);
	ck_assert_int_eq(read(scene.ends[1], &scene.reply, sizeof scene.reply), sizeof scene.reply);
	ck_assert_int_eq(recv(scene.ends[1], &(char){0}, 1, 0), -1); /* there is no other one */
	close(scene.ends[0]);
	close(scene.ends[1]);
	ck_assert_uint_eq(scene.reply.id, request.id);
	return &scene.reply;
}

const struct h5_remote_reply *ask(struct h5_remote_request request, const struct step *steps, size_t count)
{
	try(request, steps, count);
	ck_assert_uint_eq(scene.next, count);
	return &scene.reply;
}

void check_cells(const struct h5_remote_request *request, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		size_t cell = scene.f->end.cells - 1 - (size_t)(i / CELL);

		ck_assert_msg(scene.f->end.memory[cell * CELL + i % CELL] == content[request->offset + i],
			      "byte %ju", (uintmax_t)i);
	}
}

void check_reply(const struct h5_remote_reply *reply, const struct expected *e, const char *of)
{
	ck_assert_msg(reply->code == e->code && reply->reason == e->reason, "%s: %d, %u, %s", of, reply->code,
		      reply->reason, reply->text);
	ck_assert_msg(!strcmp(reply->text, e->text ? e->text : ""), "%s: %s", of, reply->text);
	ck_assert_msg(reply->repeated == e->repeated, "%s: %u", of, reply->repeated);
	if (!e->code) {
		ck_assert_msg(reply->got == e->got && reply->size == e->size, "%s: %ju of %ju", of,
			      (uintmax_t)reply->got, (uintmax_t)reply->size);
		ck_assert(!e->tag || reply->version == h5_listing_version(e->tag));
	}
}

void close_file(uint32_t file)
{
	const struct h5_remote_request closing = {.what = H5_REMOTE_CLOSE, .file = file};

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, scene.ends),
			 0);
	scene.f->end.fd = scene.ends[0];
	scene.waits = 0;
	send_request(&closing, NULL, 0);
	ck_assert_int_eq(serve(), EXIT_SUCCESS);
	ck_assert_int_eq(scene.waits, 1);
	close(scene.ends[0]);
	close(scene.ends[1]);
}

static size_t count_steps(const struct scenario *s)
{
	size_t count = 0;

	while (count < STEPS && (s->steps[count].head || s->steps[count].result))
		count++;
	return count;
}

static void check_result(const struct scenario *s, const struct h5_remote_request *request)
{
	check_reply(&scene.reply, &s->expected, s->name);
	if (!s->expected.code)
		check_cells(request, s->expected.got);
}

void run(const struct scenario *s, const struct h5_remote_request *request)
{
	ask(*request, s->steps, count_steps(s));
	check_result(s, request);
}

void run_short(const struct scenario *s, const struct h5_remote_request *request, void (*start)(void),
	       const char *const texts[])
{
	static const struct {
		void (*arm)(unsigned long n);
		bool (*disarm)(void);
	} lacks[] = {{fake_curl_arm, fake_curl_disarm}, {fault_alloc_arm, fault_alloc_disarm}};

	for (size_t i = 0; i < 2; i++) {
		bool fired = true;

		for (unsigned long n = 1; fired; n++) {
			start();
			lacks[i].arm(n);
			try(*request, s->steps, count_steps(s));
			fired = lacks[i].disarm();
			if (fired && scene.reply.code) {
				size_t k = 0;

				while (texts[k] && strcmp(texts[k], scene.reply.text))
					k++;
				ck_assert_msg(texts[k], "%s: %s", s->name, scene.reply.text);
				scene.again = true;
				run(s, request);
			}
			ck_assert_uint_eq(scene.next, count_steps(s));
			check_result(s, request);
			end();
		}
	}
}

const struct h5_remote_request opening = {.what = H5_REMOTE_OPEN, .id = 7, .file = 2, .n = N};

const struct h5_remote_request reading = {
	.what = H5_REMOTE_READ, .id = 9, .file = 0, .offset = CELL, .n = N - 100};
