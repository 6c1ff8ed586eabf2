/* Undoes a filter pipeline on the stored bytes of a chunk, or of a fractal heap block, and runs it on those
 * of a chunk. */
#ifndef H5_STORE_PIPELINE_H
#define H5_STORE_PIPELINE_H

#include "format/pipeline.h"
#include "store/file.h"

/* Reads `stored` bytes at the address and decodes them; a set bit i in the mask: filter i was skipped.
 *
 * *data (owned by the caller, free()) holds exactly `size` bytes, the unfiltered size; a result of another
 * length is -EUCLEAN, more than max_chunk of the mount -EFBIG. A filter that is not there: -ENOTSUP, its id
 * and name in the detail. pipeline NULL: no filters. The memory that decoding takes is charged to the request
 * meanwhile (base/room.h); the caller charges *data. */
int h5_pipeline_read(struct h5_file *file, const struct h5_pipeline *pipeline, uint32_t mask,
		     uint64_t address, uint64_t stored, uint64_t size, uint8_t **data);

struct h5_pipeline_data {
	uint8_t *bytes; /* owned by the caller, free() */
	size_t size;
	/* Set by the caller: a shuffle of small elements, if it is undone last, may be left to
	 * h5_unshuffle(). */
	bool may_stay_shuffled;
	uint32_t element_size; /* of the shuffle that was left, or 1 */
};

/* The same for a chunk, but nothing is charged. libhdf5 reads a chunk even if its size is wrong: one that is
 * too short gives a smaller data->size; bytes behind `size` are ignored. At most `room` bytes are decoded;
 * -EOVERFLOW: there are more, and the caller may try with h5_pipeline_more_room(). */
int h5_pipeline_read_chunk(struct h5_file *file, const struct h5_pipeline *pipeline, uint32_t mask,
			   uint64_t address, uint64_t stored, uint64_t size, uint64_t room,
			   struct h5_pipeline_data *data);
/* The room to try next, up to max_chunk of the mount; 0: none. */
uint64_t h5_pipeline_more_room(struct h5_file *file, uint64_t room);
/* The most bytes of memory that reading so many stored bytes takes with a room of `size` bytes, the result
 * included. */
uint64_t h5_pipeline_need(const struct h5_pipeline *pipeline, uint64_t stored, uint64_t size);
/* 0; -EFBIG, with a detail: chunks of so many bytes, undone by so many filters, are over the limit of the
 * mount. h5_pipeline_read() asks the same. */
int h5_pipeline_check_size(struct h5_file *file, unsigned filters, uint64_t address, uint64_t size);

/* 0: all filters of the pipeline can be run on new chunks. -ENOTSUP: one cannot, even if it is optional; its
 * id and name in the detail. */
int h5_pipeline_can_encode(const struct h5_pipeline *pipeline);
/* Runs the pipeline on `size` bytes of a chunk. *out is the caller's, free(). A bit set in *mask: an optional
 * filter failed or gained nothing, and was skipped. What a mandatory compression yields is stored even if it
 * is larger than the data. -EFBIG: larger than h5_pipeline_read() takes. */
int h5_pipeline_encode(const struct h5_pipeline *pipeline, const uint8_t *data, size_t size, uint8_t **out,
		       size_t *stored, uint32_t *mask);

#endif
