/* Whether the work that a thread does is still wanted.
 *
 * A file can ask for hours of work in a few bytes: lines of text for 2^40 elements that nobody has written,
 * say. So whatever may take long asks now and then. The answer is kept per thread, like the detail of an
 * error: the one who serves the request and the loop that works on it are ten calls apart. */
#ifndef H5_BASE_INTERRUPT_H
#define H5_BASE_INTERRUPT_H

#include <stdbool.h>
#include <time.h>

/* True: it is not wanted any more. Cheap: it may be asked a million times a second. */
typedef bool h5_interrupt_ask(void *arg);

/* Whom a thread asks, and since when it works. */
struct h5_interrupt {
	h5_interrupt_ask *ask;
	void *arg;
	struct timespec begin;
};

/* At the begin of a request: whom this thread asks from now on; NULL: nobody. */
void h5_interrupt_begin(h5_interrupt_ask *ask, void *arg);

/* For a thread that does part of another one's work: takes over whom that one asks. */
void h5_interrupt_get(struct h5_interrupt *interrupt);
void h5_interrupt_set(const struct h5_interrupt *interrupt);

/* 0; -EINTR where the work shall end. In its first second it goes on whatever happens: nobody waits long for
 * it, and programs that get signals don't expect stat() or open() to fail for them. */
int h5_interrupt_check(void);

#endif
