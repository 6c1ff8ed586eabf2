/* Fuzz targets: functions that take any bytes, and must neither crash, leak, hang, nor break a promise of
 * what they call. libFuzzer, AFL++ (main.c) and `make check` (replay.c) drive them.
 *
 * Checksums don't matter in these programs: all are taken for right (checksum.c). */
#ifndef H5_TESTS_FUZZ_H
#define H5_TESTS_FUZZ_H

#include "base/reader.h"
#include "filter/filter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuzz_target {
	char name[40]; /* also of its folder in tests/fuzz/corpus */
	void (*run)(const void *arg, const uint8_t *data, size_t size);
	const void *arg;
	size_t tail; /* bytes at the end that are worth as much change as all before */
};

/* The n-th target there is; false: no more. */
bool fuzz_target_at(unsigned n, struct fuzz_target *target);
/* The one of the name. */
bool fuzz_target_find(const char *name, struct fuzz_target *target);

/* The targets of one source each, in the form of the function above. */
bool fuzz_message_at(unsigned n, struct fuzz_target *target);	 /* messages.c */
bool fuzz_block_at(unsigned n, struct fuzz_target *target);	 /* blocks.c */
bool fuzz_filter_at(unsigned n, struct fuzz_target *target);	 /* filters.c */
bool fuzz_file_at(unsigned n, struct fuzz_target *target);	 /* files.c */
bool fuzz_text_at(unsigned n, struct fuzz_target *target);	 /* texts.c */
bool fuzz_credential_at(unsigned n, struct fuzz_target *target); /* credentials.c */
bool fuzz_remote_at(unsigned n, struct fuzz_target *target);	 /* remote.c */

/* Ends the program where a promise is broken. */
#define FUZZ_HOLDS(condition)                                                                                \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			fuzz_broken(__FILE__, __LINE__, #condition);                                         \
	} while (0)
_Noreturn void fuzz_broken(const char *file, int line, const char *condition);

/* Looks at each byte, so that AddressSanitizer does. */
void fuzz_touch(const void *data, size_t n);

/* Over an input whose first byte tells the sizes of addresses and lengths: the rest of it. */
struct h5_reader fuzz_reader(const uint8_t *data, size_t size);

/* Some filters keep no more of an element than their values say. */
bool fuzz_is_lossy(const struct h5_filter_ops *filter);

/* How many checksums were wrong since it was last 0. */
extern unsigned fuzz_wrong_checksums;

/* Decodes a message of an object header in the way of its target, where there is one for the type. */
void fuzz_message(unsigned type, struct h5_reader *r);

#endif
