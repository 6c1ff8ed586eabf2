/* A libcurl that connects to nothing, and a clock that nobody waits for: the test is the network. A program
 * that links this has $(fake_curl_flags). */
#ifndef H5_TESTS_FAKE_CURL_H
#define H5_TESTS_FAKE_CURL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_answer {
	const char *head; /* its lines, each with its end; NULL: none */
	const char *body;
	size_t size;	   /* bytes of the body */
	size_t piece;	   /* of these are handed over at once; 0: all */
	CURLcode result;   /* if all of them were taken */
	const char *words; /* in the buffer for errors; NULL: it stays as it is */
	long retry_after, time;
	const char *redirect; /* NULL: none */
};

struct fake_curl {
	/* Is called once for each HTTP request. False: there is never an answer. */
	bool (*ask)(void *arg, CURL *easy, struct fake_answer *answer);
	/* There is nothing to do for so long. */
	void (*wait)(void *arg, int milliseconds);
	void *arg;
	int64_t now;		 /* milliseconds; of both clocks */
	uint32_t chance;	 /* what getrandom() gives */
	bool no_chance;		 /* it fails */
	CURLMcode perform, poll; /* what the calls of these names return, instead of doing their work */
};

extern struct fake_curl fake_curl;

/* Whether both clocks tell fake_curl.now. */
void fake_curl_set_clock(bool on);

/* The value of an option that the fetcher has set; NULL or 0 if it has not set it. */
const char *fake_curl_text(CURL *easy, CURLoption option);
long fake_curl_number(CURL *easy, CURLoption option);
bool fake_curl_has(CURL *easy, CURLoption option);
/* The header line that begins so; NULL: there is none. */
const char *fake_curl_field(CURL *easy, const char *begin);

/* Of the calls from now on that may lack memory, the n-th does. */
void fake_curl_arm(unsigned long n);
bool fake_curl_disarm(void); /* true: one did */

#endif
