/* What the programs of `make bench` share. Each measures itself and prints seconds; whatever fails ends it.
 */
#ifndef H5FS_BENCH_H
#define H5FS_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* When a writer calls for its rows to be durable. */
enum sync_when { SYNC_NONE, SYNC_END, SYNC_EACH };

__attribute__((format(printf, 1, 2), noreturn)) void die(const char *format, ...);
/* Seconds of a clock that only goes forward. */
double now(void);
uint64_t number(const char *text);
enum sync_when sync_when(const char *text);
void *allocate(size_t size);

/* A whole file, mapped and in memory, to write from. */
const char *map_source(const char *path, size_t *size);

/* The offsets in a text file, a number a line. */
uint64_t *read_offsets(const char *path, size_t *count);

/* Runs part(i, n, context) in n processes at once, for i = 0 ... n - 1; the seconds from their common start
 * to the end of the last. With n = 1 it is this process. */
typedef void part_fn(unsigned i, unsigned n, void *context);
double run_parts(part_fn *part, unsigned n, void *context);

#endif
