/* Writing a dataset: ranges of its bytes in place, and its first dimension (doc/h5fs.1, Writing).
 *
 * A dataset has one writer, which holds the chunks that small writes gather in. It is a participant of the
 * file's transaction, which is the only list of writers. Not thread-safe, as change/transaction.h.
 *
 * Readers see what was written after h5_tx_settle(). */
#ifndef H5_DATASET_WRITER_H
#define H5_DATASET_WRITER_H

#include "change/transaction.h"
#include "dataset/dataset.h"
#include "object/heap_batch.h"

struct h5_dataset_writer;

/* False: h5_dataset_writer_get() refuses the dataset because of its layout. `external` as there. */
bool h5_dataset_has_writer(const struct h5_dataset *dataset, bool external);
/* False: h5_dataset_writer_get() refuses the dataset. True: it may still do so, for a reason that is found
 * only by reading more. Reads at most the object header, of a small compact dataset. */
bool h5_dataset_can_be_written(const struct h5_dataset *dataset, bool external);
/* The writer of the dataset, which is opened if there is none. Counts one more user. `external`: external raw
 * files may be written. Reads no more than h5_dataset_get(). -EPERM: a dataset that is read-only by its
 * nature (virtual, external without the option, shared dataspace). -ENOTSUP: one that this version cannot
 * write (a filter, an index, structured chunks that are not of sparse data). The detail says why. */
int h5_dataset_writer_get(struct h5_file *file, uint64_t address, bool external,
			  struct h5_dataset_writer **writer);
/* Counts one user less. The writer stays open for the next one, at least until all that it has gathered is
 * committed. */
void h5_dataset_writer_put(struct h5_dataset_writer *writer);
/* The same, but it does not stay open if nobody else uses it and all is settled: for datasets of which there
 * are many. */
void h5_dataset_writer_put_soon(struct h5_dataset_writer *writer);
/* The writer of the dataset; NULL: there is none now. */
struct h5_dataset_writer *h5_dataset_writer_find(struct h5_file *file, uint64_t address);
/* The dataset becomes another one: its writer, if there is one, forgets what it knows, and what was not
 * settled is lost. */
void h5_dataset_writer_drop(struct h5_file *file, uint64_t address);
/* Closes the writer; what was not settled is lost. NULL is fine. */
void h5_dataset_writer_close(struct h5_dataset_writer *writer);
/* The dataset goes away, and nobody uses its writer any more: closes the writer if there is one. Outside of
 * units of change. */
void h5_dataset_writer_forget(struct h5_file *file, uint64_t address);
/* Closes all writers of the file. */
void h5_dataset_writers_close(struct h5_file *file);

/* Opens the dataset again if h5_tx_drop() was called for the writer. Fails as h5_dataset_writer_get(). To be
 * called before all functions below. */
int h5_dataset_writer_ready(struct h5_dataset_writer *writer);
/* What the transaction knows of the writer. */
const struct h5_tx_participant *h5_dataset_writer_participant(const struct h5_dataset_writer *writer);

/* Bytes of the dataset as it is being written, and of a row. A row is one index of dimension 0; 0: there are
 * none (the dataset is scalar, or has another dimension of size 0). */
uint64_t h5_dataset_writer_size(const struct h5_dataset_writer *writer);
uint64_t h5_dataset_writer_row(const struct h5_dataset_writer *writer);
/* True: dimension 0 may change. */
bool h5_dataset_writer_can_resize(const struct h5_dataset_writer *writer);
/* Rows that dimension 0 may have: the present number if it cannot change. */
uint64_t h5_dataset_writer_max_rows(const struct h5_dataset_writer *writer);

/* The dataset as it was opened; borrowed until the writer is closed or dropped. */
const struct h5_dataset *h5_dataset_writer_dataset(const struct h5_dataset_writer *writer);
/* The user-defined fill value, one element; NULL: zeros. It may own objects of the heap. */
const uint8_t *h5_dataset_writer_fill_value(const struct h5_dataset_writer *writer);
/* Takes the data of elements of variable length that are just being added: they go to the file with these
 * elements. */
struct h5_heap_batch *h5_dataset_writer_heap(struct h5_dataset_writer *writer);

/* Overwrites n bytes at the offset, all inside the dataset, whose elements own nothing in the heap. */
int h5_dataset_writer_write(struct h5_dataset_writer *writer, uint64_t offset, const void *data, size_t n);
/* Sets n bytes at the offset, all inside the dataset, to the fill value. Chunks all of whose bytes these are
 * give up their space. */
int h5_dataset_writer_punch(struct h5_dataset_writer *writer, uint64_t offset, uint64_t n);
/* Adds whole rows after the last one. n: a multiple of the row size. -EFBIG: more than the maximum; nothing
 * is added. */
int h5_dataset_writer_append(struct h5_dataset_writer *writer, const void *data, size_t n);
/* Sets dimension 0. New rows have the fill value. With fewer rows, it commits before and after. -EFBIG: more
 * than the maximum; -EPERM: the size cannot change. */
int h5_dataset_writer_resize(struct h5_dataset_writer *writer, uint64_t rows);
/* Brings gathered chunks, index, layout and dataspace into the transaction, as h5_tx_settle() does for all
 * writers. Cheap if nothing has changed. */
int h5_dataset_writer_settle(struct h5_dataset_writer *writer);
/* Copies all of the dataset, its n bytes, if nothing of it has been stored yet. -ENODATA: something has. */
int h5_dataset_writer_peek(struct h5_dataset_writer *writer, void *data, size_t n);
/* True: h5_dataset_writer_settle() has something to do. */
bool h5_dataset_writer_is_dirty(const struct h5_dataset_writer *writer);
/* Bytes of memory that settling frees. */
size_t h5_dataset_writer_held(const struct h5_dataset_writer *writer);

#endif
