/* Raw data of a dataset: any range of its bytes, over every layout.
 *
 * The bytes of a dataset are its elements in row-major order, each as stored. Specification IV.B. */
#ifndef H5_DATASET_DATASET_H
#define H5_DATASET_DATASET_H

#include "chunk_index/chunk_index.h"
#include "format/dataspace.h"
#include "format/datatype.h"
#include "format/external_files.h"
#include "format/layout.h"
#include "format/pipeline.h"
#include "object/damage.h"
#include "object/object.h"

struct h5_layout_ops;
struct h5_layouts;

struct h5_dataset {
	const struct h5_layout_ops *ops;
	const struct h5_layouts *layouts; /* all that there are */
	struct h5_file *file;		  /* borrowed */
	uint64_t address;		  /* of the object header */
	uint64_t number;		  /* of the file as it was read: h5_file_number() */
	struct h5_datatype *type;
	struct h5_dataspace space;
	uint64_t size; /* bytes: elements x element size; UINT64_MAX where that passes 2^63-1 */
	struct h5_layout layout;
	bool external;			       /* contiguous, in external raw files */
	bool shared_space, shared_layout;      /* the message belongs to other objects too */
	struct h5_pipeline pipeline;	       /* chunked */
	struct h5_pipeline *section_pipelines; /* structured: H5_SECTIONS of them; NULL: no filters */
	bool fill_defined;		       /* user-defined fill value */
	uint8_t *fill;			       /* one element; NULL: zeros */
	struct h5_chunk_index *index;	       /* chunked, structured; NULL: nothing stored */
	/* the rest is src/dataset's */
	uint64_t chunk_size; /* bytes of an unfiltered chunk */
	bool early;	     /* early allocation: libhdf5 counts on it that all chunks are stored */
	bool fill_never;     /* the fill value is not for reading: what isn't stored reads as zeros */
	uint8_t *compact;    /* owned: the data of the compact layout */
	struct h5_external_files files;
};

/* A reference to the opened dataset, through the block cache; h5_file_put() gives it back. Reads the object
 * header and, where there is one, the header of the chunk index; no more. */
int h5_dataset_get(struct h5_file *file, uint64_t address, struct h5_lru_entry **ref,
		   const struct h5_dataset **dataset);

/* The dataset without the cache, for those who look at many, once each, and don't read them: a listing. The
 * caller's, h5_dataset_free(). */
int h5_dataset_decode(struct h5_file *file, const struct h5_object *object, struct h5_dataset **dataset);
void h5_dataset_free(struct h5_dataset *dataset); /* NULL is fine */

/* In words: compact, contiguous, external, chunked, virtual or structured; of a chunked one: btree1, single,
 * implicit, farray, earray or btree2. */
const char *h5_dataset_layout_name(const struct h5_dataset *dataset);
const char *h5_dataset_index_name(const struct h5_dataset *dataset);
/* The chunks of a chunked dataset; NULL: it is not chunked. */
const struct h5_chunk_layout *h5_dataset_chunks(const struct h5_dataset *dataset);
/* True: its elements are those of other datasets. */
bool h5_dataset_is_virtual(const struct h5_dataset *dataset);
/* True: its elements lie in other files, or may. */
bool h5_dataset_is_elsewhere(const struct h5_dataset *dataset);

/* n bytes from the offset, all inside `size`. Decodes no chunk but those that the range touches. */
int h5_dataset_read(const struct h5_dataset *dataset, uint64_t offset, void *buf, size_t n);

/* The bytes of a range that nothing is stored for. */
void h5_dataset_fill(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n);

/* How many bytes to decode ahead of one who reads in order; 0: it doesn't pay. */
uint64_t h5_dataset_ahead(const struct h5_dataset *dataset);
/* Starts to decode, in the background, the chunks of n bytes from the offset, all inside `size`. */
void h5_dataset_read_ahead(const struct h5_dataset *dataset, uint64_t offset, uint64_t n);

/* Finds the first byte from the offset on, which lies inside `size`, that belongs to a hole (`hole`), or to
 * none; *found is `size` where there is no such byte. A hole is a run of H5_HOLE_LEAST bytes or more, from
 * the offset on, that nothing is stored for and that read as zeros. Asks the index alone: what is damaged of
 * that is no hole. */
enum { H5_HOLE_LEAST = 4096 };
int h5_dataset_seek(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found);
/* The same for data, but what nothing is stored for is passed over even if it reads as a fill value. */
int h5_dataset_seek_stored(const struct h5_dataset *dataset, uint64_t offset, uint64_t *found);

/* Bytes allocated in the file, as H5Dget_storage_size counts them; walks the chunk index. */
int h5_dataset_storage(const struct h5_dataset *dataset, uint64_t *bytes);
/* The same if that is known without a walk. Otherwise the most that it can be: `size`, what a user sees of
 * the dataset, or `file`, the bytes that are allocated to the whole file. */
uint64_t h5_dataset_storage_most(const struct h5_dataset *dataset, uint64_t size, uint64_t file);

/* Hears of the stored bytes of each chunk that was decoded. */
typedef void h5_check_done(void *arg, uint64_t bytes);
/* Verifies what is stored of the dataset: that it lies inside the file, the whole chunk index, and every
 * chunk by decoding it; notes what is damaged. `chunk_done` may be NULL. A chunk index that fails ends the
 * check of its chunks. */
int h5_dataset_check(const struct h5_dataset *dataset, struct h5_damage *damage, h5_check_done *chunk_done,
		     void *arg);

#endif
