/* A fetcher in the test's own process. It serves messages and starts no transfer, because it may use no
 * connection. */
#ifndef H5_TESTS_IDLE_FETCHER_H
#define H5_TESTS_IDLE_FETCHER_H

#include "remote/private.h"

/* Two files are open. File 0 has `size` bytes, and the server gives ranges of it. File 1 has `whole` bytes,
 * all of which are here and are zeros. NULL: out of memory. */
struct h5_fetcher *idle_fetcher_new(uint32_t cells, uint64_t size, uint64_t whole);
void idle_fetcher_free(struct h5_fetcher *f);

#endif
