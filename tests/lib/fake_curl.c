#include "fake_curl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>
#include <time.h>

/* Macros that check the types of arguments. */
#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

enum { OPTIONS = 48, HANDLES = 160 };

struct option {
	CURLoption option;
	long number;
	char *text;    /* owned: a copy */
	void *pointer; /* borrowed */
};

struct handle {
	struct option options[OPTIONS];
	size_t count;
	size_t (*take_line)(char *data, size_t size, size_t n, void *arg);
	size_t (*take_body)(char *data, size_t size, size_t n, void *arg);
	bool added, asked, ended;
	long status;
	struct fake_answer answer;
	CURLMsg message;
};

struct fake_curl fake_curl;

static struct handle *handles[HANDLES];
static unsigned long calls, failing;
static bool has_clock;

void fake_curl_arm(unsigned long n)
{
	calls = 0;
	failing = n;
}

bool fake_curl_disarm(void)
{
	bool fired = failing && calls >= failing;

	failing = 0;
	return fired;
}

static bool fails(void)
{
	return ++calls == failing;
}

/* ---- the clocks ---- */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
time_t __real_time(time_t *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
time_t __wrap_time(time_t *now);
ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags);

void fake_curl_set_clock(bool on)
{
	has_clock = on;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (!has_clock)
		return __real_clock_gettime(clock, now);
	*now = (struct timespec){.tv_sec = fake_curl.now / 1000, .tv_nsec = fake_curl.now % 1000 * 1000000};
	return 0;
}

time_t __wrap_time(time_t *now)
{
	return has_clock ? fake_curl.now / 1000 : __real_time(now);
}

ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags)
{
	(void)flags;
	if (fake_curl.no_chance) {
		errno = EAGAIN;
		return -1;
	}
	memset(bytes, 0, n);
	memcpy(bytes, &fake_curl.chance, n < sizeof fake_curl.chance ? n : sizeof fake_curl.chance);
	return (ssize_t)n;
}

/* ---- handles ---- */

static struct option *find(struct handle *h, CURLoption option)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->options[i].option == option)
			return &h->options[i];
	return NULL;
}

const char *fake_curl_text(CURL *easy, CURLoption option)
{
	const struct option *o = find(easy, option);

	return o ? o->text : NULL;
}

long fake_curl_number(CURL *easy, CURLoption option)
{
	const struct option *o = find(easy, option);

	return o ? o->number : 0;
}

bool fake_curl_has(CURL *easy, CURLoption option)
{
	return find(easy, option);
}

const char *fake_curl_field(CURL *easy, const char *begin)
{
	const struct option *o = find(easy, CURLOPT_HTTPHEADER);

	for (const struct curl_slist *l = o ? o->pointer : NULL; l; l = l->next)
		if (!strncasecmp(l->data, begin, strlen(begin)))
			return l->data;
	return NULL;
}

CURLcode curl_global_init(long flags)
{
	(void)flags;
	return CURLE_OK;
}

CURL *curl_easy_init(void)
{
	struct handle *h = fails() ? NULL : calloc(1, sizeof *h);

	for (size_t i = 0; i < HANDLES && h; i++)
		if (!handles[i])
			return handles[i] = h;
	return h;
}

void curl_easy_reset(CURL *easy)
{
	struct handle *h = easy;

	for (size_t i = 0; i < h->count; i++)
		free(h->options[i].text);
	*h = (struct handle){.added = h->added};
}

void curl_easy_cleanup(CURL *easy)
{
	for (size_t i = 0; i < HANDLES; i++)
		if (handles[i] == easy)
			handles[i] = NULL;
	curl_easy_reset(easy);
	free(easy);
}

static bool is_text(CURLoption option)
{
	static const CURLoption texts[] = {CURLOPT_URL,	      CURLOPT_RANGE,	     CURLOPT_COPYPOSTFIELDS,
					   CURLOPT_PROXY,     CURLOPT_CUSTOMREQUEST, CURLOPT_CAINFO,
					   CURLOPT_USERAGENT, CURLOPT_AWS_SIGV4,     CURLOPT_USERNAME,
					   CURLOPT_PASSWORD};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i] == option)
			return true;
	return false;
}

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	struct handle *h = easy;
	struct option *o = find(h, option);
	va_list list;

	if ((is_text(option) || option == CURLOPT_HTTPHEADER) && fails())
		return CURLE_OUT_OF_MEMORY;
	if (!o) {
		if (h->count == OPTIONS)
			abort();
		o = &h->options[h->count++];
		*o = (struct option){.option = option};
	}
	va_start(list, option);
	if (option == CURLOPT_WRITEFUNCTION)
		h->take_body = va_arg(list, __typeof__(h->take_body));
	else if (option == CURLOPT_HEADERFUNCTION)
		h->take_line = va_arg(list, __typeof__(h->take_line));
	else if (option < CURLOPTTYPE_OBJECTPOINT)
		o->number = va_arg(list, long);
	else
		o->pointer = va_arg(list, void *);
	va_end(list);
	if (is_text(option)) {
		free(o->text);
		o->text = o->pointer ? strdup(o->pointer) : NULL;
		if (o->pointer && !o->text)
			return CURLE_OUT_OF_MEMORY;
	}
	return CURLE_OK;
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
	struct handle *h = easy;
	const struct option *private = find(h, CURLOPT_PRIVATE);
	va_list list;
	void *to;

	va_start(list, info);
	to = va_arg(list, void *);
	va_end(list);
	switch (info) {
	case CURLINFO_RESPONSE_CODE:
		*(long *)to = h->status;
		break;
	case CURLINFO_PRIVATE:
		*(char **)to = private ? private->pointer : NULL;
		break;
	case CURLINFO_FILETIME_T:
		*(curl_off_t *)to = h->answer.time;
		break;
	case CURLINFO_RETRY_AFTER:
		*(curl_off_t *)to = h->answer.retry_after;
		break;
	case CURLINFO_REDIRECT_URL:
		*(const char **)to = h->answer.redirect;
		break;
	default:
		abort();
	}
	return CURLE_OK;
}

const char *curl_easy_strerror(CURLcode code)
{
	static char text[32];

	snprintf(text, sizeof text, "error %d", (int)code);
	return text;
}

/* ---- lists ---- */

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
	struct curl_slist *item = fails() ? NULL : calloc(1, sizeof *item), *last = list;

	if (!item || !(item->data = strdup(text))) {
		free(item);
		return NULL;
	}
	while (last && last->next)
		last = last->next;
	if (last)
		last->next = item;
	return list ? list : item;
}

void curl_slist_free_all(struct curl_slist *list)
{
	while (list) {
		struct curl_slist *next = list->next;

		free(list->data);
		free(list);
		list = next;
	}
}

/* ---- many at once ---- */

CURLM *curl_multi_init(void)
{
	return calloc(1, 1);
}

CURLMcode curl_multi_cleanup(CURLM *multi)
{
	free(multi);
	for (size_t i = 0; i < HANDLES; i++)
		if (handles[i])
			curl_easy_cleanup(handles[i]);
	return CURLM_OK;
}

CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
	(void)multi;
	(void)option;
	return CURLM_OK;
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
	struct handle *h = easy;

	(void)multi;
	if (fails())
		return CURLM_OUT_OF_MEMORY;
	h->added = true;
	h->asked = h->ended = false;
	return CURLM_OK;
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *easy)
{
	(void)multi;
	((struct handle *)easy)->added = false;
	return CURLM_OK;
}

static bool take_lines(struct handle *h)
{
	const struct option *arg = find(h, CURLOPT_HEADERDATA);
	const char *line = h->answer.head ? h->answer.head : "";

	while (*line) {
		size_t n = strcspn(line, "\n");

		n += line[n] == '\n';
		if (!strncmp(line, "HTTP/", 5))
			h->status = atol(line + strcspn(line, " "));
		if (h->take_line && h->take_line((char *)line, 1, n, arg->pointer) != n)
			return false;
		line += n;
	}
	return true;
}

static bool take_pieces(struct handle *h)
{
	const struct option *arg = find(h, CURLOPT_WRITEDATA);

	for (size_t at = 0, n; at < h->answer.size; at += n) {
		n = h->answer.size - at;
		if (h->answer.piece && n > h->answer.piece)
			n = h->answer.piece;
		if (h->take_body((char *)h->answer.body + at, 1, n, arg->pointer) != n)
			return false;
	}
	return true;
}

/* The test itself has the machine's clock. */
static bool ask(struct handle *h)
{
	bool clock = has_clock, is_answered;

	has_clock = false;
	is_answered = fake_curl.ask(fake_curl.arg, h, &h->answer);
	has_clock = clock;
	return is_answered;
}

CURLMcode curl_multi_perform(CURLM *multi, int *running)
{
	(void)multi;
	*running = 0;
	if (fake_curl.perform)
		return fake_curl.perform;
	for (size_t i = 0; i < HANDLES; i++) {
		struct handle *h = handles[i];

		if (!h || !h->added || h->asked)
			continue;
		h->asked = true;
		h->answer = (struct fake_answer){0};
		h->status = 0;
		h->ended = ask(h);
		if (!h->ended)
			continue;
		if (h->answer.words)
			strcpy(find(h, CURLOPT_ERRORBUFFER)->pointer, h->answer.words);
		h->message = (CURLMsg){.msg = CURLMSG_DONE, .easy_handle = h};
		h->message.data.result =
			take_lines(h) && take_pieces(h) ? h->answer.result : CURLE_WRITE_ERROR;
	}
	return CURLM_OK;
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
	(void)multi;
	*left = 0;
	for (size_t i = 0; i < HANDLES; i++)
		if (handles[i] && handles[i]->ended) {
			handles[i]->ended = false;
			return &handles[i]->message;
		}
	return NULL;
}

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd *more, unsigned count, int milliseconds,
			  int *ready)
{
	(void)multi;
	(void)more;
	(void)count;
	(void)ready;
	if (fake_curl.poll)
		return fake_curl.poll;
	has_clock = false;
	fake_curl.wait(fake_curl.arg, milliseconds);
	has_clock = true;
	return CURLM_OK;
}
