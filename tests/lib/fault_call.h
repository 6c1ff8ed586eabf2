/* System calls of reading that fail on request: the linker leads them here. A program that links this has
 * $(fault_call_flags). */
#ifndef H5_TESTS_FAULT_CALL_H
#define H5_TESTS_FAULT_CALL_H

#include <stdbool.h>

enum call_fault {
	CALL_FAILS,	  /* EIO, of pread, preadv and fstat; */
	CALL_SHORT,	  /* they give half of the bytes; */
	CALL_INTERRUPTED, /* EINTR */
	CALL_LATE,	  /* after a while, in which other threads go on */
	CALL_OPENS_NONE,  /* EMFILE, of open, openat and openat2; */
	CALL_OPENS_GONE,  /* ENOENT */
};

/* The n-th of the calls from now on, in any thread, has the fault; `lasting`: and all behind it. */
void fault_call_arm(enum call_fault what, unsigned long n, bool lasting);
/* No call has a fault any more; true: one had. */
bool fault_call_disarm(void);

#endif
