/* The targets that write in a file. The last bytes of an input are what is done to the file that the others
 * are. */
#ifndef H5_TESTS_FUZZ_WRITE_H
#define H5_TESTS_FUZZ_WRITE_H

#include <stddef.h>
#include <stdint.h>

enum {
	FUZZ_OPERATIONS = 96, /* bytes at the end of the input of fuzz_write() */
	FUZZ_OPERATION = 6,   /* bytes of one of these */
	FUZZ_REQUESTS = 128,
	FUZZ_REQUEST = 8,
};

/* Datasets are written. */
void fuzz_write(const void *arg, const uint8_t *data, size_t size);
/* Objects, names and attributes are made, changed and removed. */
void fuzz_requests(const void *arg, const uint8_t *data, size_t size);

#endif
