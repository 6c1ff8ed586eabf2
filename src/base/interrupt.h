/* Whether the work that a thread does is still wanted, and not too much.
 *
 * A file can ask for hours of work in a few bytes: lines of text for 2^40 elements that nobody has written,
 * say. So whatever may take long asks now and then. The answer is kept per thread, like the detail of an
 * error: the one who serves the request and the loop that works on it are ten calls apart. */
#ifndef H5_BASE_INTERRUPT_H
#define H5_BASE_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* True: it is not wanted any more. Cheap: it may be asked a million times a second. */
typedef bool h5_interrupt_ask(void *arg);

/* Milliseconds of a processor that one thread may work for a request beyond its first second; 0: any. */
typedef uint64_t h5_interrupt_limit(void *arg);

/* Whom a thread asks, and since when it works. */
struct h5_interrupt {
	h5_interrupt_ask *ask;
	h5_interrupt_limit *limit; /* NULL: none */
	void *arg;
	struct timespec begin;
	/* In milliseconds, once the first second is over: what this thread had worked then, and may more. */
	uint64_t spent, most;
};

/* At the begin of a request: whom this thread asks from now on; NULL: nobody. */
void h5_interrupt_begin(h5_interrupt_ask *ask, void *arg);
/* After that: bounds the work. The limit is asked for with the same `arg`, and only once work takes long. */
void h5_interrupt_bound(h5_interrupt_limit *limit);

/* For a thread that does part of another one's work: takes over whom that one asks. */
void h5_interrupt_get(struct h5_interrupt *interrupt);
void h5_interrupt_set(const struct h5_interrupt *interrupt);

/* 0; -EFBIG where the work has passed its limit; -EINTR where it shall end. In its first second it goes on
 * whatever happens: nobody waits long for it, and programs that get signals don't expect stat() or open() to
 * fail for them. */
int h5_interrupt_check(void);

#endif
