/* Writing a dataset: ranges of its bytes in place, and its first dimension. MAPPING section 6.
 *
 * One writer for a dataset, made when it is first written and kept until the mount ends or the dataset was
 * not written for long: it holds the chunks that small writes gather in. Not thread-safe, as
 * change/transaction.h.
 *
 * Readers see what was written after h5_dataset_writer_settle(). */
#ifndef H5_DATASET_WRITER_H
#define H5_DATASET_WRITER_H

#include "dataset/dataset.h"

struct h5_dataset_writer;

/* False: h5_dataset_writer_open() refuses it. True: it does so at most for what only a walk finds. Reads the
 * object header of a small compact dataset, no more. */
bool h5_dataset_can_be_written(const struct h5_dataset *dataset, bool external);
/* 0; -EPERM: a dataset that is read-only by its nature (text, virtual, structured, external without the
 * option, shared dataspace); -ENOTSUP: one that this version cannot write (a filter, an index); the detail
 * says why. `external`: external raw files may be written. Reads no more than h5_dataset_get(). */
int h5_dataset_writer_open(struct h5_file *file, uint64_t address, bool external,
			   struct h5_dataset_writer **writer);
/* What was not settled is lost. NULL is fine. */
void h5_dataset_writer_close(struct h5_dataset_writer *writer);

/* Bytes of the dataset as it is being written, and of a row: one index of dimension 0, 0 where there is none
 * (scalar, an other dimension of size 0). */
uint64_t h5_dataset_writer_size(const struct h5_dataset_writer *writer);
uint64_t h5_dataset_writer_row(const struct h5_dataset_writer *writer);
/* Rows that dimension 0 may have: the present number where it cannot change. */
uint64_t h5_dataset_writer_max_rows(const struct h5_dataset_writer *writer);

/* Overwrites n bytes at the offset, all inside the dataset. */
int h5_dataset_writer_write(struct h5_dataset_writer *writer, uint64_t offset, const void *data, size_t n);
/* Adds whole rows behind the last one. n: a multiple of the row size; -EFBIG beyond the maximum, nothing is
 * added. */
int h5_dataset_writer_append(struct h5_dataset_writer *writer, const void *data, size_t n);
/* Sets dimension 0: new rows read as the fill value; for fewer rows it commits, before and afterwards. -EFBIG
 * beyond the maximum, -EPERM where the dataset's size cannot change. */
int h5_dataset_writer_resize(struct h5_dataset_writer *writer, uint64_t rows);
/* Brings gathered chunks, index, layout and dataspace into the transaction; to be called before any read and
 * before h5_tx_commit(). Cheap where nothing has changed. */
int h5_dataset_writer_settle(struct h5_dataset_writer *writer);
/* True: h5_dataset_writer_settle() has something to do. */
bool h5_dataset_writer_is_dirty(const struct h5_dataset_writer *writer);
/* Bytes of gathered chunks in memory that settling lets go of. */
size_t h5_dataset_writer_held(const struct h5_dataset_writer *writer);

#endif
