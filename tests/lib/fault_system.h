/* System calls about names and files that fail on request: the linker leads those of the library here. A
 * program that links this has $(fault_system_flags). */
#ifndef H5_TESTS_FAULT_SYSTEM_H
#define H5_TESTS_FAULT_SYSTEM_H

/* The calls of that name (write, open64) from the n-th on, `count` of them, set errno to the error and return
 * -1. A file that is closed like that is closed. Error 0: write() takes one byte, statx() knows no time of
 * birth. Up to four names, each once. */
void fault_system_arm(const char *call, unsigned n, unsigned count, int error);
/* No call fails any more. */
void fault_system_disarm(void);
/* The names of the calls since the last one of fault_system_arm() or fault_system_disarm(), in their order,
 * each with a blank behind it. */
const char *fault_system_calls(void);
/* The folder that is read next seems to have so many names before its own, which are those of no file. */
void fault_system_add_names(unsigned count);

#endif
