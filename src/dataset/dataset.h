/* Raw data of a dataset: any range of its bytes, in any layout.
 *
 * The bytes of a dataset are its elements in row-major order, each as stored. Specification IV.B. */
#ifndef H5_DATASET_DATASET_H
#define H5_DATASET_DATASET_H

#include "base/extents.h"
#include "chunk_index/chunk_index.h"
#include "format/dataspace.h"
#include "format/datatype.h"
#include "format/external_files.h"
#include "format/layout.h"
#include "format/pipeline.h"
#include "object/damage.h"
#include "object/object.h"

#include <assert.h>

struct h5_layout_ops;
struct h5_layouts;
struct h5_write_ops;

/* Most bytes of an element that is taken apart in memory: for its text, or for what it owns elsewhere in the
 * file. A larger one is refused (-EFBIG). */
enum { H5_ELEMENT_MOST = 1 << 24 };

struct h5_dataset {
	const struct h5_layout_ops *ops;
	const struct h5_layouts
		*layouts;     /* all that there are: a virtual dataset opens its sources by them */
	struct h5_file *file; /* borrowed */
	uint64_t address;     /* of the object header */
	uint64_t number;      /* of the file as it was read: h5_file_number() */
	struct h5_datatype *type;
	struct h5_dataspace space;
	uint64_t size;		 /* bytes: elements x element size; UINT64_MAX if that is more than 2^63-1 */
	struct h5_layout layout; /* the dataset owns its compact data */
	bool external;		 /* contiguous, in external raw files */
	bool shared_space, shared_layout;      /* the message is one that cannot change */
	bool is_whole;			       /* false: an outline, which lacks the members below */
	struct h5_pipeline pipeline;	       /* chunked */
	struct h5_pipeline *section_pipelines; /* structured: H5_SECTIONS of them; NULL: no filters */
	bool fill_defined;		       /* user-defined fill value */
	uint8_t *fill;			       /* one element; NULL: zeros */
	struct h5_chunk_index *index;	       /* chunked, structured; NULL: nothing stored */
	/* the rest is for src/dataset */
	uint64_t chunk_size; /* bytes of an unfiltered chunk */
	bool early;	     /* early allocation: libhdf5 relies on all chunks being stored */
	bool fill_never;     /* the fill value is never written: bytes that are not stored read as zeros */
	struct h5_external_files files;
};

/* Called after each chunk that was decoded, with its stored bytes. */
typedef void h5_check_done(void *arg, uint64_t bytes);

/* What a layout does. */
struct h5_layout_ops {
	const char *name;
	bool has_chunks;   /* h5_dataset_chunks() */
	bool is_sparse;	   /* h5_dataset_is_sparse() */
	bool is_virtual;   /* h5_dataset_is_virtual() */
	bool is_elsewhere; /* h5_dataset_is_elsewhere() */
	/* Completes and checks what was decoded from the messages. Reads at most the header of an index.
	 * NULL: nothing to do. */
	int (*open)(struct h5_dataset *dataset);
	/* As h5_dataset_read(); the range lies inside the dataset and isn't empty. */
	int (*read)(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n);
	/* As h5_dataset_storage(). NULL: the layout message tells. */
	int (*storage)(const struct h5_dataset *dataset, uint64_t *bytes);
	/* As h5_dataset_seek(), but whatever the fill value is. NULL: there are no holes. */
	int (*seek)(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found);
	/* Where a read that begins at this offset should end, so that it needs no more chunks or files than
	 * for its first byte. NULL: with that byte. */
	uint64_t (*window)(const struct h5_dataset *dataset, uint64_t offset);
	/* As h5_dataset_check(). NULL: there is nothing to verify. */
	int (*check)(const struct h5_dataset *dataset, struct h5_damage *damage, h5_check_done *done,
		     void *arg);
	/* Visits all space that only this dataset uses, beside its object header: elements, and the blocks
	 * that lead to them. NULL: there is none. */
	int (*extents)(const struct h5_dataset *dataset, const struct h5_extent_visits *visits);
	const struct h5_write_ops *write; /* NULL: it cannot be written */
};

/* All layouts. */
struct h5_layouts {
	const struct h5_layout_ops *by_class[H5_LAYOUT_STRUCTURED + 1], *external;
};

extern const struct h5_layouts h5_layouts;

/* h5_dataset_get() and h5_dataset_outline() by these layouts, for the layouts themselves. */
int h5_dataset_get_by(const struct h5_layouts *layouts, struct h5_file *file, uint64_t address,
		      struct h5_lru_entry **ref, const struct h5_dataset **dataset);
int h5_dataset_outline_by(const struct h5_layouts *layouts, struct h5_file *file,
			  const struct h5_object *object, struct h5_dataset **dataset);

/* A reference to the opened dataset, through the block cache; h5_file_put() gives it back. Reads the object
 * header, and the header of the chunk index if there is one. */
static inline int h5_dataset_get(struct h5_file *file, uint64_t address, struct h5_lru_entry **ref,
				 const struct h5_dataset **dataset)
{
	return h5_dataset_get_by(&h5_layouts, file, address, ref, dataset);
}

/* Decodes the outline of the dataset, without the cache: its type, dataspace and layout message. They are
 * enough for stat(), except for the size of a virtual dataset; nothing can be read through an outline. The
 * caller's, h5_dataset_free(). */
static inline int h5_dataset_outline(struct h5_file *file, const struct h5_object *object,
				     struct h5_dataset **dataset)
{
	return h5_dataset_outline_by(&h5_layouts, file, object, dataset);
}

/* Makes an outline of the object whole, as h5_dataset_get() opens it. After a failure it is still an outline,
 * as it was. */
int h5_dataset_complete(struct h5_dataset *dataset, const struct h5_object *object);
void h5_dataset_free(struct h5_dataset *dataset); /* NULL is fine */

/* In words: compact, contiguous, external, chunked, virtual or structured; of a chunked one: btree1, single,
 * implicit, farray, earray or btree2. */
static inline const char *h5_dataset_layout_name(const struct h5_dataset *dataset)
{
	return dataset->ops->name;
}

static inline const char *h5_dataset_index_name(const struct h5_dataset *dataset)
{
	return h5_chunk_index_name(dataset->layout.chunked.index);
}

/* The chunks of a chunked dataset; NULL: it is not chunked. */
static inline const struct h5_chunk_layout *h5_dataset_chunks(const struct h5_dataset *dataset)
{
	return dataset->ops->has_chunks ? &dataset->layout.chunked : NULL;
}

/* True: some elements may be undefined, and read as the fill value. */
static inline bool h5_dataset_is_sparse(const struct h5_dataset *dataset)
{
	return dataset->ops->is_sparse;
}

/* True: its elements are those of other datasets. */
static inline bool h5_dataset_is_virtual(const struct h5_dataset *dataset)
{
	return dataset->ops->is_virtual;
}

/* True: its elements are, or may be, in other files. */
static inline bool h5_dataset_is_elsewhere(const struct h5_dataset *dataset)
{
	return dataset->ops->is_elsewhere;
}

/* The error of a read outside of the dataset, or of a dataset that is too large to be read. */
int h5_dataset_refuse_read(const struct h5_dataset *dataset);

/* Reads n bytes from the offset, all inside `size`. Decodes only chunks that the range touches. */
static inline int h5_dataset_read(const struct h5_dataset *dataset, uint64_t offset, void *buf, size_t n)
{
	assert(dataset->is_whole);
	if (dataset->size == UINT64_MAX || offset > dataset->size || n > dataset->size - offset)
		return h5_dataset_refuse_read(dataset);
	return n ? dataset->ops->read(dataset, offset, buf, n) : 0;
}

/* Sets n bytes from the offset of the dataset to the fill value. */
void h5_dataset_fill(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n);

/* How many bytes to decode ahead of a sequential reader; 0: it is of no use. */
uint64_t h5_dataset_ahead(const struct h5_dataset *dataset);
/* Rounds `end`, up to which bytes are to be decoded ahead, up to whole chunks. The result is at most `size`.
 */
uint64_t h5_dataset_ahead_end(const struct h5_dataset *dataset, uint64_t end);
/* Starts to decode in the background: the chunks of n bytes from the offset, all inside `size`. */
void h5_dataset_read_ahead(const struct h5_dataset *dataset, uint64_t offset, uint64_t n);

/* Tells a file that is far away (h5_file_is_far()) that n bytes from the offset, all inside `size`, will be
 * read soon, or at once. */
void h5_dataset_want(const struct h5_dataset *dataset, uint64_t offset, uint64_t n, enum h5_wanted when);

/* Finds the next hole (`hole`), or the next byte that is in no hole, from the offset on, which is inside
 * `size`. *found is `size` if there is none. A hole is a run of at least H5_HOLE_LEAST bytes, counted from
 * the offset on, that are not stored and read as zeros. In structured chunks each element that is not defined
 * is one. Asks only the index; a damaged part of it is no hole. */
enum { H5_HOLE_LEAST = 4096 };
int h5_dataset_seek(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found);
/* Finds the next byte that is in no hole, but here bytes that are not stored are a hole whatever the fill
 * value is. */
int h5_dataset_seek_stored(const struct h5_dataset *dataset, uint64_t offset, uint64_t *found);

/* An upper bound of h5_dataset_storage() from the outline; exact unless there is an index to walk. `size`:
 * bytes of the dataset as the user sees it; `file`: bytes that are allocated to the whole file. */
uint64_t h5_dataset_storage_most(const struct h5_dataset *dataset, uint64_t size, uint64_t file);

/* Bytes allocated in the file, as H5Dget_storage_size counts them; walks the chunk index. */
static inline int h5_dataset_storage(const struct h5_dataset *dataset, uint64_t *bytes)
{
	assert(dataset->is_whole);
	if (dataset->ops->storage)
		return dataset->ops->storage(dataset, bytes);
	*bytes = h5_dataset_storage_most(dataset, dataset->size, UINT64_MAX);
	return 0;
}

/* Verifies what is stored of the dataset: that it lies inside the file, the whole chunk index, and every
 * chunk by decoding it. Notes what is damaged. If the chunk index is damaged, its chunks are not checked.
 * `chunk_done` may be NULL. */
static inline int h5_dataset_check(const struct h5_dataset *dataset, struct h5_damage *damage,
				   h5_check_done *chunk_done, void *arg)
{
	return dataset->ops->check ? dataset->ops->check(dataset, damage, chunk_done, arg) : 0;
}

#endif
