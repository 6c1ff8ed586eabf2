/* New contents for a dataset whose size stays as it is. They stream into new space, through a writer of their
 * own (chunks gather in memory as they do for any writer), and take the place of the old ones all at once.
 * Until then everybody else reads the old ones.
 *
 * The contents are like a file that was truncated: they have a size, which begins at 0, and bytes below it
 * that nobody has written have the fill value. They are complete when they have as many bytes as the dataset.
 *
 * The functions change the file, by the rules of change/transaction.h, outside of units. */
#ifndef H5_DATASET_REPLACEMENT_H
#define H5_DATASET_REPLACEMENT_H

#include "dataset/writer.h"

struct h5_replacement;

/* True: the writer's dataset has elements, and cannot have more rows than it has. */
bool h5_dataset_keeps_size(const struct h5_dataset_writer *writer);

/* Begins with no bytes. -EPERM: a dataset that cannot be replaced: external files, or SWMR readers, who
 * follow no layout that moves; or as h5_dataset_writer_get(). */
int h5_replacement_begin(struct h5_file *file, uint64_t address, struct h5_replacement **replacement);
/* The same, but if the dataset may have more rows than it has, its new contents have as many rows as are
 * appended. */
int h5_replacement_begin_rows(struct h5_file *file, uint64_t address, struct h5_replacement **replacement);
/* True: they may have any number of rows. */
bool h5_replacement_grows(const struct h5_replacement *replacement);
/* 0, or the error of a commit that has lost the contents. */
int h5_replacement_check_lost(const struct h5_replacement *replacement);
/* Takes the data of elements of variable length, as h5_dataset_writer_heap(). */
struct h5_heap_batch *h5_replacement_heap(struct h5_replacement *replacement);
/* Bytes that the contents have now, and that they must have in the end. */
uint64_t h5_replacement_size(const struct h5_replacement *replacement);
uint64_t h5_replacement_whole(const struct h5_replacement *replacement);
/* What the transaction knows of the writer. */
const struct h5_tx_participant *h5_replacement_participant(const struct h5_replacement *replacement);

/* Writes n bytes at the offset. -EFBIG: they end beyond the dataset. Then nothing is written, and the
 * contents cannot become complete any more, unless they are truncated to 0 bytes. All functions fail with the
 * error of a commit that has lost the contents. */
int h5_replacement_write(struct h5_replacement *replacement, uint64_t offset, const void *data, size_t n);
/* Writes n bytes at the end; if the contents grow, these are whole rows. Fails as h5_dataset_writer_append()
 * or h5_replacement_write(). */
int h5_replacement_append(struct h5_replacement *replacement, const void *data, size_t n);
/* A part of the contents was refused: they never become complete. */
void h5_replacement_spoil(struct h5_replacement *replacement);
/* The result of the last write to the contents. After a failure they are not complete until a write succeeds:
 * a program that ends then has not written all that it wanted. */
void h5_replacement_note(struct h5_replacement *replacement, int result);
/* The contents will have so many bytes; to be called before any are written. -EINVAL: the dataset cannot have
 * them. */
int h5_replacement_expect(struct h5_replacement *replacement, uint64_t size);
/* Reads *got of n bytes of the new contents; less only at their end. All writers are settled. Several threads
 * may read at once. */
int h5_replacement_read(struct h5_replacement *replacement, uint64_t offset, void *data, size_t n,
			size_t *got);
/* Sets the size. -EFBIG: it is larger than the dataset. */
int h5_replacement_resize(struct h5_replacement *replacement, uint64_t size);

/* 0: the contents are complete. -EINVAL: they are not; the detail says why. */
int h5_replacement_check(const struct h5_replacement *replacement);
/* Puts the new contents in the place of the old ones, with the next commit. Then the replacement is
 * over; the caller ends it. -EINVAL: as h5_replacement_check(), or the dataset has got another shape since.
 * On failure nothing has changed, and it may be tried again. */
int h5_replacement_finish(struct h5_replacement *replacement);
/* The same, and `also` changes something else in the same unit. If that fails, nothing has changed. */
int h5_replacement_finish_with(struct h5_replacement *replacement, int (*also)(void *arg), void *arg);
/* Gives up the new contents, unless they have taken their place. NULL is fine. */
void h5_replacement_end(struct h5_replacement *replacement);

#endif
