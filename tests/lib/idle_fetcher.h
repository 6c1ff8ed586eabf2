/* A fetcher in this process, which serves messages and starts no transfer, since it has no connection. */
#ifndef H5_TESTS_IDLE_FETCHER_H
#define H5_TESTS_IDLE_FETCHER_H

#include "remote/private.h"

/* It has opened file 0, of `size` bytes, of which ranges are asked for, and file 1, of which all `whole`
 * bytes have come and are zeros. NULL: out of memory. */
struct h5_fetcher *idle_fetcher_new(uint32_t cells, uint64_t size, uint64_t whole);
void idle_fetcher_free(struct h5_fetcher *f);

#endif
