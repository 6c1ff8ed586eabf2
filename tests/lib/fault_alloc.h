/* Allocations that fail on request: the linker leads malloc & Co. here, those of the libraries too where no
 * sanitizer has functions of its own. A program that links this has $(fault_alloc_flags). */
#ifndef H5_TESTS_FAULT_ALLOC_H
#define H5_TESTS_FAULT_ALLOC_H

#include <stdbool.h>

/* Of the allocations that count from now on, in any thread, the n-th fails; 0: none does. */
void fault_alloc_arm(unsigned long n);
/* No allocation fails any more; true: one did. */
bool fault_alloc_disarm(void);
/* Whether allocations count: a call of the engine is under way, not the test's own. Returns what was before.
 */
bool fault_alloc_count(bool count);

/* True: allocations of libraries fail, too. */
bool fault_alloc_is_everywhere(void);

#endif
