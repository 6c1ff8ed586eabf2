/* The objects of the global heap: what refers to each, for h5fs --check. */
#ifndef H5_OFFLINE_CHECK_VALUES_H
#define H5_OFFLINE_CHECK_VALUES_H

#include "object/heap_set.h"

struct h5_check_values {
	struct h5_heap_set found;   /* something refers to these */
	struct h5_heap_set several; /* several values refer to these */
	bool incomplete;	    /* not all that refers to objects was found */
	uint64_t lost, lost_bytes;  /* objects that nothing refers to, and their bytes */
};

void h5_check_values_init(struct h5_check_values *values, struct h5_file *file);
void h5_check_values_release(struct h5_check_values *values);

/* True: every object that something refers to was found. */
bool h5_check_values_are_known(const struct h5_check_values *values);
/* Something refers to the object. *first: nothing that was found before refers to its collection. */
int h5_check_values_add(struct h5_check_values *values, uint64_t address, uint32_t index, bool *first);
/* True: there is a sound collection of so many bytes at the address, and nothing refers to any object of it.
 * Then its objects are counted as lost. All that refers to objects is known. */
bool h5_check_values_lose(struct h5_check_values *values, struct h5_file *file, uint64_t address,
			  uint64_t size);

/* An object and how often its collection says that it is referred to, which is wrong. `at_least`: how often
 * that was found. */
typedef int h5_check_values_wrong(void *arg, uint64_t address, uint32_t index, unsigned count,
				  unsigned at_least);
/* Counts the objects of all found collections that nothing refers to. libhdf5 does not count, so 0 is never
 * wrong.
 */
int h5_check_values_count(struct h5_check_values *values, struct h5_file *file, h5_check_values_wrong *wrong,
			  void *arg);

#endif
