/* Ends work that nobody wants any more, or that takes too long.
 *
 * A few bytes of a file can ask for hours of work, such as lines of text for 2^40 elements that were never
 * written. So loops that may take long call h5_interrupt_check() now and then. The request that it asks
 * about is kept per thread, like the detail of an error: the function that serves the request and the loop
 * that works on it are ten calls apart. */
#ifndef H5_BASE_INTERRUPT_H
#define H5_BASE_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* True: the work is not wanted any more. Must be cheap: it may be called a million times a second. It is not
 * called in the first milliseconds of a request. */
typedef bool h5_interrupt_ask(void *arg);

/* Milliseconds of processor time that a thread may use for a request beyond its first second; 0: no limit. */
typedef uint64_t h5_interrupt_limit(void *arg);

/* Whom a thread asks, and since when it works. */
struct h5_interrupt {
	h5_interrupt_ask *ask;
	h5_interrupt_limit *limit; /* NULL: none */
	void *arg;
	struct timespec begin;
	/* In milliseconds, known once the first second is over: what this thread had used until then, and the
	 * limit. */
	uint64_t spent, most;
};

/* A request begins: this thread calls `ask` from now on; NULL: nothing. */
void h5_interrupt_begin(h5_interrupt_ask *ask, void *arg);
/* To be called after that, to limit the work. `limit` is called with the same `arg`, and only once work takes
 * long. */
void h5_interrupt_bound(h5_interrupt_limit *limit);

/* For a thread that does a part of another thread's work: what that other thread asks. */
void h5_interrupt_get(struct h5_interrupt *interrupt);
void h5_interrupt_set(const struct h5_interrupt *interrupt);
/* Until h5_interrupt_set(interrupt), nothing ends what this thread does, and its work has no limit. */
void h5_interrupt_pause(struct h5_interrupt *interrupt);

/* 0: go on. -EFBIG: the work has passed its limit. -EINTR: it is not wanted any more. In the first second of
 * a request it is always 0: nobody waits long for that, and programs do not expect stat() or open() to fail
 * because of a signal. */
int h5_interrupt_check(void);

#endif
