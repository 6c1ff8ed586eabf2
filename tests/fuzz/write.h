/* The targets that open a file for writing. */
#ifndef H5_TESTS_FUZZ_WRITE_H
#define H5_TESTS_FUZZ_WRITE_H

#include <stddef.h>
#include <stdint.h>

/* The last FUZZ_OPERATIONS bytes are what is done to the file that the others are. */
enum { FUZZ_OPERATIONS = 96, FUZZ_OPERATION = 6 };

void fuzz_journal(const void *arg, const uint8_t *data, size_t size);
void fuzz_write(const void *arg, const uint8_t *data, size_t size);

#endif
