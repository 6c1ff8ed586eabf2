/* What can fail while something is read: an allocation, or a call. A program that includes this is linked
 * with fault_alloc and fault_call. */
#ifndef H5_TESTS_FAULT_KINDS_H
#define H5_TESTS_FAULT_KINDS_H

#include "fault_alloc.h"
#include "fault_call.h"

#include <errno.h>

struct fault {
	void (*arm)(unsigned long n); /* the n-th from now on fails */
	bool (*disarm)(void);	      /* true: one has failed */
	int error;
};

static inline void fault_arm_read(unsigned long n)
{
	fault_call_arm(CALL_FAILS, n, false);
}

static const struct fault faults[] = {{fault_alloc_arm, fault_alloc_disarm, -ENOMEM},
				      {fault_arm_read, fault_call_disarm, -EIO}};
enum { FAULTS = sizeof faults / sizeof *faults };

#endif
