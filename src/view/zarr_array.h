/* A dataset as a Zarr array: its shape and chunks, and how its bytes are encoded. The views zarr, zarr3 and
 * kerchunk.json share it. Zarr storage specification, versions 2 and 3.
 *
 * Chunks of a chunked dataset are chunks of the array. They are passed on as they are stored if each filter
 * is one that readers of Zarr have; else they are shown decoded. Other datasets are cut into chunks of whole
 * rows of about 1 MiB.
 *
 * A chunk that is not stored has no file, and readers take the fill value for its elements. But readers of
 * version 2 may take the fill value for the mark of missing data. So where it is none, an array may be
 * `filled`: it has a file for each chunk.
 *
 * A variable of netCDF-4 may be shorter than its unlimited dimension. The array has the length of the
 * dimension then; it is `extended`.
 *
 * An array may be shown decoded though its filters are known: that is longer, but programs read it faster,
 * since h5fs decodes in parallel. Small chunks are joined then, if they can be.
 *
 * A checksum that is the last filter is left out: it is 4 bytes at the end of a stored chunk, which not all
 * readers know. */
#ifndef H5_VIEW_ZARR_ARRAY_H
#define H5_VIEW_ZARR_ARRAY_H

#include "dataset/whole_chunk.h"
#include "view/view.h"

enum h5_zarr_version { H5_ZARR_V2 = 2, H5_ZARR_V3 = 3 };

struct h5_zarr_array {
	const struct h5_dataset *dataset; /* borrowed */
	enum h5_zarr_version version;
	unsigned rank; /* with the dimensions of an array type */
	uint64_t shape[H5_RANK_MAX], chunk[H5_RANK_MAX];
	uint64_t grid[H5_RANK_MAX]; /* chunks along each dimension */
	uint64_t chunks;	    /* in the grid; at most H5_ZARR_CHUNKS_MAX */
	uint64_t chunk_bytes;	    /* of a decoded chunk; of strings: of their elements in the file */
	bool is_chunked;	    /* its chunks are those of the dataset */
	bool is_passed;		    /* stored chunks are passed on as they are */
	bool has_checksum;	    /* then their last 4 bytes are left out */
	unsigned codecs;	    /* passed: so many of the first filters are codecs */
	bool is_strings;	    /* of variable length */
	bool has_padding;	    /* strings are padded in another way than by NumPy's zeros, or may be */
	bool is_filled;		    /* chunks that are not stored are shown, too */
	bool is_extended;	    /* the shape is larger than that of the dataset */
	bool has_mark;		    /* the fill value is the mark of missing data */
};

#define H5_ZARR_CHUNKS_MAX (UINT64_C(1) << 61)

/* The innermost type: that of the elements of an array type. */
const struct h5_datatype *h5_zarr_type(const struct h5_dataset *dataset);
/* -ENOENT: Zarr has no such array. */
int h5_zarr_array_init(struct h5_zarr_array *array, enum h5_zarr_version version,
		       const struct h5_dataset *dataset);
/* Makes the shape larger, to `shape`. Leaves it as it is if Zarr cannot show that: the dataset is not
 * chunked, there are too many chunks, or those at the old end cannot be encoded anew. */
int h5_zarr_array_extend(struct h5_zarr_array *array, const uint64_t *shape);
/* Shows all chunks decoded. */
void h5_zarr_array_decode(struct h5_zarr_array *array);
/* Shows small chunks of a decoded array, which is not extended, as chunks of rows, without regard to which
 * are stored. Leaves the array as it is if a row of them is too long, or does not lie together in the
 * dataset. */
void h5_zarr_array_join(struct h5_zarr_array *array);
/* So many chunks have elements both of the dataset and beyond its end. */
uint64_t h5_zarr_array_cut_chunks(const struct h5_zarr_array *array);
/* *can: a chunk that is not stored can be shown. */
int h5_zarr_array_can_fill(const struct h5_zarr_array *array, bool *can);
/* For an array that is not chunked: if not all of its chunks lie whole in `room` bytes from the begin of the
 * dataset on, makes it one chunk. */
void h5_zarr_array_fit(struct h5_zarr_array *array, uint64_t room);

/* ---- chunks ---- */

enum h5_zarr_source {
	H5_ZARR_STORED, /* n bytes at an address of the file */
	H5_ZARR_CHUNK,	/* the decoded chunk of the dataset */
	H5_ZARR_ROWS,	/* rows of the dataset; behind its end the fill value */
	H5_ZARR_FILL,	/* nothing is stored: fill values */
	H5_ZARR_MADE,	/* encoded anew, see zarr_chunk.c */
};

/* A chunk of the array that has a file. */
struct h5_zarr_chunk {
	enum h5_zarr_source source;
	enum h5_zarr_source elements; /* where its elements are; neither stored nor made */
	uint64_t scaled[H5_RANK_MAX]; /* coordinates of the chunk */
	struct h5_whole_chunk stored; /* chunked */
	uint64_t begin, rows_size;    /* rows: offset in the dataset, and bytes up to its end */
	uint64_t size;		      /* bytes of the file; made: 0 */
};

/* Finds the chunk of the number, which is less than `chunks`. -ENOENT: it has no file. */
int h5_zarr_chunk_find(const struct h5_zarr_array *array, struct h5_chunk_cursor *cursor, uint64_t number,
		       struct h5_zarr_chunk *chunk);
/* Its name in version 2. */
enum { H5_ZARR_NAME_MAX = 255 };
void h5_zarr_chunk_name(const struct h5_zarr_array *array, uint64_t number, char name[H5_ZARR_NAME_MAX + 1]);
/* n bytes at the offset, all inside the size of a chunk that is not made. */
int h5_zarr_chunk_read(const struct h5_zarr_array *array, const struct h5_zarr_chunk *chunk, uint64_t offset,
		       uint8_t *buf, size_t n);
/* Appends all bytes of a chunk that is made. */
int h5_zarr_chunk_make(const struct h5_zarr_array *array, const struct h5_zarr_chunk *chunk,
		       struct h5_buf *out);
/* Moves *number to the next chunk that has a file, itself included; `end`: there is none before. */
int h5_zarr_chunk_next(const struct h5_zarr_array *array, struct h5_chunk_cursor *cursor, uint64_t *number,
		       uint64_t end);
/* *complete: all chunks are stored. Of an array of very many chunks it is false without a look. */
int h5_zarr_is_complete(const struct h5_zarr_array *array, bool *complete);

#endif
