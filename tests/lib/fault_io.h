/* An h5_io around another one, that keeps what is written and fails on request: for fault loops and for
 * replaying crashes. Several files share one struct fault_io, so that the order between them is known. */
#ifndef H5_TESTS_FAULT_IO_H
#define H5_TESTS_FAULT_IO_H

#include "io/io.h"

enum fault_kind { FAULT_WRITE, FAULT_PUNCH, FAULT_RESIZE, FAULT_SYNC, FAULT_UNLOCK, FAULT_MARK };

struct fault_event {
	enum fault_kind kind;
	unsigned file;	 /* wrapped as which one, from 0 */
	uint64_t offset; /* of the bytes; the new size; the number of the mark */
	size_t size;
	uint8_t *data; /* owned; of FAULT_PUNCH zeros */
};

struct fault_io {
	bool record; /* keep the events */
	bool reads;  /* the calls are those to read, and no others */
	struct fault_event *events;
	size_t count, capacity;
	unsigned files;	     /* that were wrapped */
	unsigned long calls; /* to write, punch, resize, sync */
	unsigned long fail; /* the call that fails, counted from 1, and all behind it if `lasting`; 0: none */
	bool lasting;
	int error;	  /* what it returns. A failing write leaves whole sectors of its first half */
	unsigned torn_at; /* or whole units of so many bytes, of which a kill leaves pages; 0: sectors */
};

/* As the `wrap` hooks have it; `arg` is the struct fault_io, which outlives the h5_io. */
struct h5_io *fault_io_wrap(void *arg, struct h5_io *io);
/* The n-th call from now on fails. */
void fault_io_arm(struct fault_io *fault, unsigned long n);
/* No call fails any more; true: one did. */
bool fault_io_disarm(struct fault_io *fault);
/* A note between the events. */
void fault_io_mark(struct fault_io *fault, uint64_t number);
/* Writes all events to a file: for each, numbers little-endian, u8 kind (enum fault_kind), u8 file (0: the
 * HDF5 file, 1: the journal), u64 offset, u64 bytes, and these. 0 or a negative errno. */
int fault_io_save(const struct fault_io *fault, const char *path);
void fault_io_release(struct fault_io *fault); /* may run twice */

#endif
