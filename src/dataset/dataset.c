#include "dataset/dataset.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/private.h"
#include "dataset/writing.h"
#include "format/fill_value.h"
#include "object/object.h"
#include "object/own_message.h"
#include "store/followers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	FILL_PIECE = 1 << 16, /* bytes of the fill value that are written at once */
	BLOCK = 512,	      /* bytes of a block of stat() */
	HOLE_LEAST = 1 << 16, /* so many zeros are a hole, not written */
};

static int decode_type(struct h5_dataset *dataset, struct h5_reader *r)
{
	return h5_datatype_decode(r, &dataset->type);
}

static int decode_space(struct h5_dataset *dataset, struct h5_reader *r)
{
	int rc = h5_dataspace_decode(r, &dataset->space);

	if (!rc && (!h5_mul(dataset->space.elements, dataset->type->size, &dataset->size) ||
		    dataset->size > INT64_MAX))
		dataset->size = UINT64_MAX;
	return rc;
}

static int decode_layout(struct h5_dataset *dataset, struct h5_reader *r)
{
	struct h5_layout layout;
	int rc = h5_layout_decode(r, &layout);

	if (rc)
		return rc;
	/* Versions 1 and 2 of the message have no size. */
	if (layout.class == H5_LAYOUT_CONTIGUOUS && layout.contiguous.size == UINT64_MAX)
		layout.contiguous.size = dataset->size;
	if (layout.class == H5_LAYOUT_COMPACT) {
		void *data = malloc((size_t)layout.compact.size + 1);

		if (!data)
			return h5_fail(-ENOMEM, dataset->address, "dataset: out of memory");
		layout.compact.data = memcpy(data, layout.compact.data, layout.compact.size);
	}
	dataset->layout = layout;
	return 0;
}

static int decode_sections(struct h5_dataset *dataset, struct h5_reader *r, bool early)
{
	struct h5_pipeline *pipelines;
	unsigned filters = 0;
	int rc;

	if (!dataset->layout.chunked.structured.sparse)
		return 0;
	if (dataset->section_pipelines)
		return h5_fail(-EUCLEAN, dataset->address, "dataset: two filter pipeline messages");
	pipelines = calloc(H5_SECTIONS, sizeof *pipelines);
	if (!pipelines)
		return h5_fail(-ENOMEM, dataset->address, "dataset: out of memory");
	rc = h5_section_pipelines_decode(r, early, H5_SECTIONS, pipelines);
	for (unsigned i = 0; i < H5_SECTIONS; i++)
		filters += pipelines[i].count;
	if (filters)
		dataset->section_pipelines = pipelines;
	else
		free(pipelines);
	return rc;
}

static int decode_section_pipelines(struct h5_dataset *dataset, struct h5_reader *r)
{
	return dataset->layout.class == H5_LAYOUT_STRUCTURED ? decode_sections(dataset, r, false) : 0;
}

static int decode_pipeline(struct h5_dataset *dataset, struct h5_reader *r)
{
	if (dataset->layout.class == H5_LAYOUT_STRUCTURED)
		return decode_sections(dataset, r, true);
	return h5_pipeline_decode(r, &dataset->pipeline);
}

static int set_fill(struct h5_dataset *dataset, const struct h5_fill_value *fill)
{
	free(dataset->fill);
	dataset->fill = NULL;
	/* A fill value of another size than the type is none. */
	dataset->early = fill->allocation == H5_ALLOCATION_EARLY;
	dataset->fill_never = fill->never_written;
	dataset->fill_defined = fill->defined && fill->size == dataset->type->size;
	if (!dataset->fill_defined)
		return 0;
	dataset->fill = malloc(fill->size);
	if (!dataset->fill)
		return h5_fail(-ENOMEM, dataset->address, "dataset: out of memory");
	memcpy(dataset->fill, fill->value, fill->size);
	return 0;
}

static int decode_old_fill(struct h5_dataset *dataset, struct h5_reader *r)
{
	struct h5_fill_value fill;
	int rc = h5_fill_value_old_decode(r, &fill);

	return rc ? rc : set_fill(dataset, &fill);
}

static int decode_fill(struct h5_dataset *dataset, struct h5_reader *r)
{
	struct h5_fill_value fill;
	int rc = h5_fill_value_decode(r, &fill);

	return rc ? rc : set_fill(dataset, &fill);
}

static int decode_external(struct h5_dataset *dataset, struct h5_reader *r)
{
	return h5_external_files_decode(r, &dataset->files);
}

struct message {
	enum h5_message_type type;
	const char *missing; /* NULL: may be missing */
	int (*decode)(struct h5_dataset *dataset, struct h5_reader *r);
};

/* In the order of decoding: the size needs the type, and the layout may need the size. */
static const struct message outline_messages[] = {
	{H5_MSG_DATATYPE, "dataset: no datatype message", decode_type},
	{H5_MSG_DATASPACE, "dataset: no dataspace message", decode_space},
	{H5_MSG_LAYOUT, "dataset: no data layout message", decode_layout},
	{0},
};

/* In the order of decoding: the new fill value message overrides the old one. */
static const struct message other_messages[] = {
	{H5_MSG_PIPELINE, NULL, decode_pipeline},
	{H5_MSG_STRUCTURED_PIPELINE, NULL, decode_section_pipelines},
	{H5_MSG_FILL_VALUE_OLD, NULL, decode_old_fill},
	{H5_MSG_FILL_VALUE, NULL, decode_fill},
	{H5_MSG_EXTERNAL_FILES, NULL, decode_external},
	{0},
};

static int decode_messages(struct h5_dataset *dataset, const struct h5_object *object,
			   const struct message *messages)
{
	for (; messages->decode; messages++) {
		const struct h5_message *message = h5_object_find(object, messages->type);
		struct h5_message_body body;
		int rc;

		if (!message && messages->missing)
			return h5_fail(-EUCLEAN, dataset->address, "%s", messages->missing);
		if (!message)
			continue;
		rc = h5_message_open(dataset->file, message, &body);
		if (rc)
			return rc;
		if (messages->type == H5_MSG_DATASPACE)
			dataset->shared_space = !h5_own_message_is_possible(dataset->file, message);
		if (messages->type == H5_MSG_LAYOUT)
			dataset->shared_layout = !h5_own_message_is_possible(dataset->file, message);
		rc = messages->decode(dataset, &body.reader);
		h5_message_release(dataset->file, &body);
		if (rc)
			return rc;
	}
	return 0;
}

/* Releases what an outline does not have. */
static void back_to_outline(struct h5_dataset *dataset)
{
	h5_chunk_index_close(dataset->index);
	h5_external_files_release(&dataset->files);
	h5_pipeline_release(&dataset->pipeline);
	for (unsigned i = 0; dataset->section_pipelines && i < H5_SECTIONS; i++)
		h5_pipeline_release(&dataset->section_pipelines[i]);
	free(dataset->section_pipelines);
	free(dataset->fill);
	dataset->index = NULL;
	dataset->section_pipelines = NULL;
	dataset->fill = NULL;
}

static void dataset_free(void *value)
{
	struct h5_dataset *dataset = value;

	if (dataset->is_whole)
		back_to_outline(dataset);
	h5_datatype_free(dataset->type);
	if (dataset->layout.class == H5_LAYOUT_COMPACT)
		free((void *)dataset->layout.compact.data);
	free(dataset);
}

static size_t pipeline_cost(const struct h5_pipeline *pipeline)
{
	size_t cost = 0;

	for (unsigned i = 0; i < pipeline->count; i++)
		cost += pipeline->filters[i].count * sizeof(uint32_t);
	return cost;
}

static size_t dataset_cost(const struct h5_dataset *dataset)
{
	size_t cost = sizeof *dataset + h5_datatype_cost(dataset->type);

	if (dataset->fill)
		cost += dataset->type->size;
	if (dataset->layout.class == H5_LAYOUT_COMPACT)
		cost += dataset->layout.compact.size;
	cost += pipeline_cost(&dataset->pipeline);
	for (unsigned i = 0; dataset->section_pipelines && i < H5_SECTIONS; i++)
		cost += sizeof *dataset->section_pipelines + pipeline_cost(&dataset->section_pipelines[i]);
	return cost + dataset->files.count * sizeof *dataset->files.slots;
}

static int decode_outline(struct h5_dataset *dataset, const struct h5_object *object)
{
	const struct h5_layouts *layouts = dataset->layouts;
	int rc = decode_messages(dataset, object, outline_messages);

	if (rc)
		return rc;
	dataset->external = h5_object_find(object, H5_MSG_EXTERNAL_FILES);
	if (dataset->external && dataset->layout.class != H5_LAYOUT_CONTIGUOUS)
		return h5_fail(-EUCLEAN, dataset->address, "dataset: external files, but not contiguous");
	dataset->ops = dataset->external ? layouts->external : layouts->by_class[dataset->layout.class];
	return 0;
}

int h5_dataset_outline_by(const struct h5_layouts *layouts, struct h5_file *file,
			  const struct h5_object *object, struct h5_dataset **out)
{
	struct h5_dataset *dataset;
	int rc;

	if (object->kind != H5_OBJECT_DATASET)
		return h5_fail(-EUCLEAN, object->address, "object: not a dataset");
	dataset = calloc(1, sizeof *dataset);
	if (!dataset)
		return h5_fail(-ENOMEM, object->address, "dataset: out of memory");
	dataset->layouts = layouts;
	dataset->file = file;
	dataset->address = object->address;
	dataset->number = h5_file_number(file);
	rc = decode_outline(dataset, object);
	if (rc) {
		dataset_free(dataset);
		return rc;
	}
	*out = dataset;
	return 0;
}

int h5_dataset_complete(struct h5_dataset *dataset, const struct h5_object *object)
{
	int rc;

	assert(!dataset->is_whole && dataset->address == object->address);
	rc = decode_messages(dataset, object, other_messages);
	if (!rc && dataset->ops->open)
		rc = dataset->ops->open(dataset);
	if (rc)
		back_to_outline(dataset);
	dataset->is_whole = !rc;
	return rc;
}

void h5_dataset_free(struct h5_dataset *dataset)
{
	if (dataset)
		dataset_free(dataset);
}

/* Completes a dataset that the cache is about to get. */
static int prepare_for_cache(struct h5_dataset *dataset, const struct h5_object *object)
{
	struct h5_file *file = dataset->file;
	int rc = h5_dataset_complete(dataset, object);

	return !rc && h5_dataset_is_virtual(dataset)
		       ? h5_followers_add(h5_file_shared(file)->followers, file, dataset->address)
		       : rc;
}

static int dataset_load(struct h5_file *file, uint64_t address, const void *layouts, void **value,
			size_t *cost)
{
	const struct h5_object *object;
	struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	uint64_t number = h5_file_number(file);
	int rc = h5_object_get(file, address, &ref, &object);

	if (rc)
		return rc;
	rc = h5_dataset_outline_by(layouts, file, object, &dataset);
	if (!rc && (rc = prepare_for_cache(dataset, object)))
		dataset_free(dataset);
	h5_file_put(file, ref);
	if (rc)
		return rc;
	dataset->number = number; /* as it was before the object was read */
	*value = dataset;
	*cost = dataset_cost(dataset);
	return 0;
}

int h5_dataset_get_by(const struct h5_layouts *layouts, struct h5_file *file, uint64_t address,
		      struct h5_lru_entry **ref, const struct h5_dataset **dataset)
{
	static const struct h5_block_type type = {{"dataset", dataset_free}, dataset_load};
	int rc = h5_file_block(file, &type, address, 0, layouts, ref);

	*dataset = rc ? NULL : h5_lru_value(*ref);
	return rc;
}

void h5_dataset_fill(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	size_t size = dataset->type->size, phase, done;

	if (!dataset->fill || dataset->fill_never) {
		memset(buf, 0, n);
		return;
	}
	/* Copies one element from the fill value; then what is there already, which doubles each time. */
	phase = (size_t)(offset % size);
	done = (size_t)h5_min(n, size - phase);
	memcpy(buf, dataset->fill + phase, done);
	if (done < n) {
		size_t head = (size_t)h5_min(n - done, phase);

		memcpy(buf + done, dataset->fill, head);
		done += head;
	}
	while (done < n) {
		/* `done` is a multiple of the size of an element */
		size_t more = (size_t)h5_min(n - done, done);

		memcpy(buf + done, buf, more);
		done += more;
	}
}

int h5_dataset_refuse_read(const struct h5_dataset *dataset)
{
	if (dataset->size == UINT64_MAX)
		return h5_fail(-EOVERFLOW, dataset->address, "dataset: more than 2^63-1 bytes");
	return h5_fail(-EINVAL, dataset->address, "dataset: read beyond its end");
}

uint64_t h5_dataset_storage_most(const struct h5_dataset *dataset, uint64_t size, uint64_t file)
{
	const struct h5_layout *layout = &dataset->layout;

	if (dataset->external)
		return size;
	switch (layout->class) {
	case H5_LAYOUT_COMPACT:
		return layout->compact.size;
	case H5_LAYOUT_CONTIGUOUS:
		return layout->contiguous.address == H5_UNDEF ? 0 : layout->contiguous.size;
	case H5_LAYOUT_CHUNKED:
		return layout->chunked.address == H5_UNDEF ? 0 : h5_min(size, file);
	case H5_LAYOUT_STRUCTURED:
		/* Programs look for holes in a file only if it has fewer blocks of 512 bytes than its size.
		 */
		return layout->chunked.address == H5_UNDEF || size < BLOCK
			       ? 0
			       : h5_min(size - size % BLOCK - BLOCK, file);
	default:
		return size;
	}
}

/* ---- holes ---- */

int h5_dataset_seek_nothing(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found)
{
	if (dataset->size - offset >= H5_HOLE_LEAST)
		*found = hole ? offset : dataset->size;
	else
		*found = hole ? dataset->size : offset;
	return 0;
}

static bool is_zero(const struct h5_dataset *dataset)
{
	return !dataset->fill || dataset->fill_never ||
	       (!dataset->fill[0] && !memcmp(dataset->fill, dataset->fill + 1, dataset->type->size - 1));
}

int h5_dataset_seek(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found)
{
	if (dataset->ops->seek && is_zero(dataset))
		return dataset->ops->seek(dataset, offset, hole, found);
	*found = hole ? dataset->size : offset;
	return 0;
}

int h5_dataset_seek_stored(const struct h5_dataset *dataset, uint64_t offset, uint64_t *found)
{
	*found = offset;
	return dataset->ops->seek ? dataset->ops->seek(dataset, offset, false, found) : 0;
}

/* ---- for layouts that can be written ---- */

int h5_write_needs(struct h5_dataset_writer *writer, enum h5_message_type type)
{
	int rc = h5_own_message_check(writer->file, writer->address, type);
	struct h5_error cause = *h5_error_last();

	return rc == -ENOTSUP ? h5_fail(-EPERM, cause.address, "%s", cause.text) : rc;
}

static bool fills_with_zeros(const struct h5_dataset *dataset)
{
	bool zeros = true;

	for (size_t i = 0; dataset->fill && i < dataset->type->size; i++)
		zeros &= !dataset->fill[i];
	return zeros;
}

int h5_write_fill_value(struct h5_dataset_writer *writer, uint64_t address, uint64_t offset, uint64_t n)
{
	uint8_t *piece;
	int rc;

	if (n >= HOLE_LEAST && !h5_tx_is_new(writer->file, address) && fills_with_zeros(writer->dataset) &&
	    h5_tx_punch(writer->file, address, n))
		return 0;
	piece = malloc(FILL_PIECE);
	rc = piece ? 0 : h5_fail(-ENOMEM, address, "out of memory");
	for (uint64_t done = 0; done < n && !rc; done += h5_min(n - done, FILL_PIECE)) {
		size_t part = (size_t)h5_min(n - done, FILL_PIECE);

		h5_dataset_fill(writer->dataset, offset + done, piece, part);
		rc = h5_interrupt_check();
		if (!rc)
			rc = h5_tx_write(writer->file, address + done, piece, part);
	}
	free(piece);
	return rc;
}
