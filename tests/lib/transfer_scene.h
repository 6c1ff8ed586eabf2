/* A fetcher whose requests a test makes, as the daemon does; the test is also the network, and the clock. Its
 * allocations count (fault_alloc.h). */
#ifndef H5_TESTS_TRANSFER_SCENE_H
#define H5_TESTS_TRANSFER_SCENE_H

#include "fake_curl.h"
#include "remote/private.h"

enum {
	CELL = H5_REMOTE_CELL,
	SIZE = 3 * CELL - 100, /* of the file */
	N = 2 * CELL,
	CELLS = 8,
	BLOCKS = 70, /* of a large file */
	LARGE = BLOCKS * CELL - 100,
	WHOLE = 60000, /* remote_whole= */
	TRIES = 4,
	STEPS = 16,
	START = 1000000000,
	NOTHING_TO_DO = 60 * 1000,
};

#define OWN "http://host/folder/x.h5"

/* An HTTP request that is expected, and its answer. */
struct step {
	const char *url;       /* NULL: OWN */
	const char *range;     /* NULL: any */
	const char *fields[4]; /* header lines, or what none may begin with, after a "!" */
	int64_t at;	       /* milliseconds from the begin on; 0: any */
	const char *head;      /* NULL: there is none */
	const char *body;      /* NULL: bytes of the file: */
	size_t from, n, piece;
	CURLcode result;
	const char *words; /* of libcurl, about the result */
	long retry, time;
	const char *redirect;
};

struct expected {
	int code;
	enum h5_remote_reason reason;
	const char *text; /* of the error */
	unsigned repeated;
	uint64_t got, size;
	const char *tag; /* the version is of this one; NULL: any */
};

struct scene {
	struct h5_fetcher *f;
	int ends[2];
	const struct step *steps;
	size_t count, next;
	bool again; /* the first steps may be left out */
	unsigned waits;
	size_t used;	  /* sources of the fetcher */
	const char *name; /* that the next requests have */
	size_t name_size; /* 0: they have none */
	struct h5_remote_request request;
	struct h5_remote_reply reply;
	unsigned replies;
};

extern struct scene scene;
extern uint8_t content[LARGE]; /* the bytes of the file */

#define FAILED(number, why, words, again)                                                                    \
	{                                                                                                    \
		.code = (number), .reason = (why), .text = words, .repeated = (again)                        \
	}

struct scenario {
	const char *name;
	struct step steps[STEPS];
	struct expected expected;
};

/* The fetcher of a test: file 0 is open, file 1 is here as a whole. */
void begin(void);
void begin_large(void); /* of LARGE bytes */
void end(void);

/* Makes the request: no more than the steps may come of it. */
const struct h5_remote_reply *try(struct h5_remote_request request, const struct step *steps, size_t count);
/* All of the steps must come of it. */
const struct h5_remote_reply *ask(struct h5_remote_request request, const struct step *steps, size_t count);
/* Makes the request of the scenario: the reply is what it expects. */
void run(const struct scenario *s, const struct h5_remote_request *request);
/* The same while memory is short: another call or allocation fails each time. Then the error is one of the
 * texts, or there is none; after it the request is served. */
void run_short(const struct scenario *s, const struct h5_remote_request *request, void (*start)(void),
	       const char *const texts[]);
void close_file(uint32_t file);
/* The bytes of the request that the reply says to be there are those of the file. */
void check_cells(const struct h5_remote_request *request, uint64_t n);
void check_reply(const struct h5_remote_reply *reply, const struct expected *e, const char *of);

/* Opens file 2. */
extern const struct h5_remote_request opening;
/* Reads what is behind the first cell of file 0. */
extern const struct h5_remote_request reading;

#define HEAD(status) "HTTP/1.1 " status " x\r\n"
#define TAG(tag)     "ETag: \"" tag "\"\r\n"
#define LINE(field)  field "\r\n"
#define END	     "\r\n"
#define RANGE(range) "Content-Range: bytes " range "\r\n"
#define REST	     RANGE("16384-49051/49052")
#define PART	     HEAD("206") RANGE("0-32767/49052") TAG("a") END
#define MINE	     "http://host/folder/x.h5?secret"
#define TRIED(...)                                                                                           \
	{.url = MINE, __VA_ARGS__}, {.url = MINE, __VA_ARGS__}, {.url = MINE, __VA_ARGS__},                  \
	{                                                                                                    \
		.url = MINE, __VA_ARGS__                                                                     \
	}
#define TRIED_TEXT ", after 4 tries"
#define LEADS(to)  .head = HEAD("302") END, .redirect = (to)

#endif
