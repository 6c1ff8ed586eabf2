/* Bytes at the end of what can be read: a reader that looks behind them ends with a signal. */
#ifndef H5_TESTS_EDGE_H
#define H5_TESTS_EDGE_H

#include "unit.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct edge {
	char *memory;
	size_t size; /* of what can be read */
};

static inline struct edge edge_init(size_t most)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct edge edge = {.size = (most + page) / page * page};

	edge.memory =
		mmap(NULL, edge.size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(edge.memory, MAP_FAILED);
	ck_assert_int_eq(mprotect(edge.memory + edge.size, page, PROT_NONE), 0);
	return edge;
}

/* A copy of the n bytes, which ends at the edge. */
static inline const char *edge_put(const struct edge *edge, const char *bytes, size_t n)
{
	ck_assert_uint_le(n, edge->size);
	return memcpy(edge->memory + edge->size - n, bytes, n);
}

static inline void edge_release(struct edge *edge)
{
	munmap(edge->memory, edge->size + (size_t)sysconf(_SC_PAGESIZE));
}

#endif
