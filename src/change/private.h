/* Between transaction.c and those that open and close a file for writing. */
#ifndef H5_STORE_TX_PRIVATE_H
#define H5_STORE_TX_PRIVATE_H

#include "change/journal.h"
#include "change/transaction.h"

struct h5_tx_options {
	struct h5_journal_place place;
	bool swmr;  /* readers along: marks are set, space is never used again */
	bool force; /* a file that is marked as being written, or has several names, is written all the same
		     */
	bool own_marks; /* what marks there are, a mount of ours has left */
};

/* Makes the file one that can be changed. -ENOTSUP, -EBUSY, ...: what can't be kept consistent is refused
 * (invariant 6). */
int h5_tx_open(struct h5_file *file, const struct h5_tx_options *options);
/* What is pending is lost. Everything committed is in the file without its journal, which is removed. NULL is
 * fine. */
void h5_tx_close(struct h5_tx *tx);
/* True: the n bytes at the address are all pending. */
bool h5_tx_holds(const struct h5_tx *tx, uint64_t address, size_t n);
/* Lays pending cells over bytes that were read from the address. */
void h5_tx_apply(const struct h5_tx *tx, uint64_t address, uint8_t *buf, size_t n);

#endif
