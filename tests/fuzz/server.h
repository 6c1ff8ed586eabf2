/* The target remote_server: a whole fetcher, and a server that is hostile. */
#ifndef H5_TESTS_FUZZ_SERVER_H
#define H5_TESTS_FUZZ_SERVER_H

#include <stddef.h>
#include <stdint.h>

/* What the server sends through each connection: its size (2 bytes), then the bytes; before these, how the
 * file is asked for (4 bytes). */
void fuzz_server(const void *arg, const uint8_t *data, size_t size);

#endif
