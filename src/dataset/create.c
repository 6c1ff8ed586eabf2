#include "dataset/create.h"

#include "base/buf.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/writer.h"
#include "change/object_header_create.h"
#include "change/object_header_rewrite.h"
#include "change/transaction.h"
#include "format/fill_value.h"
#include "object/shared_table_write.h"

#include <stdlib.h>
#include <string.h>

enum {
	MESSAGE_MAX = 65535,
	MESSAGES_MAX = 5,
	ROOM = 64, /* bytes for later messages */
	CHUNK_LEAST = 64 << 10,
	CHUNK_MOST = 1 << 20,
	/* What libhdf5 sets for the indexes. */
	PAGE_BITS = 10,
	MAX_BITS = 32,
	INDEX_ELEMENTS = 4,
	MIN_POINTERS = 4,
	MIN_ELEMENTS = 16,
	NODE_SIZE = 2048,
	SPLIT_PERCENT = 100,
	MERGE_PERCENT = 40,
};

/* ---- what is possible ---- */

static int refuse(const char *what)
{
	return h5_fail(-EINVAL, H5_UNDEF, "a new dataset: %s", what);
}

static bool is_fixed(const struct h5_dataspace *space)
{
	return !memcmp(space->dims, space->max, space->rank * sizeof *space->dims);
}

static int check_space(const struct h5_new_dataset *how)
{
	const struct h5_dataspace *space = &how->space;
	uint64_t bytes;

	if (space->rank > H5_RANK_MAX || (space->kind == H5_SPACE_SIMPLE) != !!space->rank)
		return refuse("a dataspace of this rank is not possible");
	for (unsigned i = 0; i < space->rank; i++)
		if (space->dims[i] == H5_UNLIMITED || space->max[i] < space->dims[i])
			return refuse("its shape is larger than its maximum");
	if (!h5_product(space->dims, space->rank, &bytes) || !h5_mul(bytes, how->type->size, &bytes) ||
	    bytes > INT64_MAX)
		return refuse("more than 2^63-1 bytes");
	if (how->layout != H5_LAYOUT_CHUNKED && (!is_fixed(space) || how->filters.count))
		return refuse("only chunks can have filters, or a shape that changes");
	return 0;
}

static int check_chunks(const struct h5_new_dataset *how, uint64_t *bytes)
{
	const struct h5_dataspace *space = &how->space;

	if (!space->rank)
		return refuse("chunks need a dimension");
	for (unsigned i = 0; i < space->rank; i++)
		if (!how->chunk[i] || how->chunk[i] > UINT32_MAX || how->chunk[i] > space->max[i])
			return refuse("its chunks have a dimension of 0, or are larger than its maximum");
	if (!h5_product(how->chunk, space->rank, bytes) || !h5_mul(*bytes, how->type->size, bytes) ||
	    *bytes > UINT32_MAX)
		return refuse("chunks of 4 GiB or more");
	return 0;
}

bool h5_dataset_choose_chunks(const struct h5_dataspace *space, uint32_t element_size, uint64_t *chunk)
{
	uint64_t bytes = element_size, first;

	for (unsigned i = space->rank; i-- > 1;) {
		uint64_t most = space->dims[i] ? space->dims[i] : h5_min(space->max[i], 1024);

		chunk[i] = h5_max(h5_min(most, CHUNK_MOST / h5_min(bytes, CHUNK_MOST)), 1);
		bytes *= chunk[i];
		if (!most)
			return false;
	}
	if (!space->rank || !space->max[0])
		return false;
	first = (CHUNK_LEAST + bytes - 1) / bytes;
	chunk[0] = h5_min(first, space->max[0]);
	return true;
}

/* ---- the layout ---- */

static void choose_index(const struct h5_new_dataset *how, struct h5_chunk_layout *chunk)
{
	const struct h5_dataspace *space = &how->space;
	unsigned unlimited = 0;
	bool single = true;

	for (unsigned i = 0; i < space->rank; i++) {
		unlimited += space->max[i] == H5_UNLIMITED;
		single &= space->max[i] == space->dims[i] && space->dims[i] == how->chunk[i];
	}
	if (unlimited > 1) {
		chunk->index = H5_INDEX_BTREE2;
		chunk->btree2.node_size = NODE_SIZE;
		chunk->btree2.split_percent = SPLIT_PERCENT;
		chunk->btree2.merge_percent = MERGE_PERCENT;
	} else if (unlimited) {
		chunk->index = H5_INDEX_EXTENSIBLE_ARRAY;
		chunk->extensible_array.max_bits = MAX_BITS;
		chunk->extensible_array.index_elements = INDEX_ELEMENTS;
		chunk->extensible_array.min_pointers = MIN_POINTERS;
		chunk->extensible_array.min_elements = MIN_ELEMENTS;
		chunk->extensible_array.page_bits = PAGE_BITS;
	} else if (single) {
		chunk->index = H5_INDEX_SINGLE;
		chunk->single.filtered = how->filters.count;
	} else {
		chunk->index = H5_INDEX_FIXED_ARRAY;
		chunk->fixed_array.page_bits = PAGE_BITS;
	}
}

static void set_chunks(const struct h5_new_dataset *how, struct h5_layout *layout)
{
	struct h5_chunk_layout *chunk = &layout->chunked;

	chunk->rank = how->space.rank;
	memcpy(chunk->dims, how->chunk, sizeof chunk->dims);
	chunk->element_size = how->type->size;
	chunk->address = H5_UNDEF;
	if (layout->version == 3)
		chunk->index = H5_INDEX_BTREE1;
	else
		choose_index(how, chunk);
}

/* The elements of a compact dataset; free(). */
static int fill_elements(const struct h5_new_dataset *how, uint64_t elements, struct h5_layout *layout,
			 uint8_t **data)
{
	const uint32_t size = how->type->size;

	if (elements > MESSAGE_MAX / size)
		return refuse("too large for the object header");
	*data = calloc((size_t)elements + 1, size);
	if (!*data)
		return h5_fail(-ENOMEM, H5_UNDEF, "a new dataset: out of memory");
	for (uint64_t i = 0; i < elements && how->fill; i++)
		memcpy(*data + i * size, how->fill, size);
	layout->compact.data = *data;
	layout->compact.size = (uint32_t)(elements * size);
	return 0;
}

static uint64_t count_elements(const struct h5_dataspace *space)
{
	uint64_t n = 0;

	if (space->kind != H5_SPACE_NULL)
		h5_product(space->dims, space->rank, &n);
	return n;
}

/* ---- the messages ---- */

/* The messages of the header; the bodies lie one behind the other. */
struct messages {
	struct h5_file *file;
	struct h5_buf bodies;
	unsigned count;
	struct h5_new_message list[MESSAGES_MAX];
	size_t begin[MESSAGES_MAX];
	uint8_t *compact; /* owned */
};

static void end_message(struct messages *m, enum h5_message_type type, size_t begin)
{
	m->begin[m->count] = begin;
	m->list[m->count++] = (struct h5_new_message){.type = type, .size = m->bodies.size - begin};
}

/* Adds what the writer has written into a buffer. */
static int add_written(struct messages *m, enum h5_message_type type, const struct h5_writer *w)
{
	size_t begin = m->bodies.size;

	if (w->err)
		return h5_fail(-E2BIG, H5_UNDEF, "a new dataset: a message of its header is too large");
	h5_buf_add(&m->bodies, w->begin, h5_writer_at(w));
	end_message(m, type, begin);
	return m->bodies.err;
}

static int add_type(struct messages *m, const struct h5_datatype *type)
{
	size_t begin = m->bodies.size;
	struct h5_buf body;
	int rc;

	h5_buf_init(&body, MESSAGE_MAX);
	rc = h5_datatype_encode(type, h5_file_superblock(m->file)->version >= 3, &body);
	if (rc == -E2BIG)
		rc = h5_fail(-E2BIG, H5_UNDEF, "a new dataset: its type is too large");
	if (!rc) {
		h5_buf_add(&m->bodies, body.data, body.size);
		rc = m->bodies.err;
		end_message(m, H5_MSG_DATATYPE, begin);
	}
	h5_buf_release(&body);
	return rc;
}

static void encode_fill(const struct h5_new_dataset *how, struct h5_writer *w)
{
	static const uint8_t times[] = {[H5_LAYOUT_COMPACT] = H5_ALLOCATION_EARLY,
					[H5_LAYOUT_CONTIGUOUS] = H5_ALLOCATION_LATE,
					[H5_LAYOUT_CHUNKED] = H5_ALLOCATION_INCREMENTAL};
	const struct h5_fill_value fill = {.defined = how->fill,
					   .allocation = times[how->layout],
					   .size = how->type->size,
					   .value = how->fill};

	h5_fill_value_encode(w, &fill);
}

static int encode_layout(struct messages *m, const struct h5_new_dataset *how, struct h5_writer *w)
{
	struct h5_layout layout = {.version = h5_file_superblock(m->file)->version >= 3 ? 4 : 3,
				   .class = how->layout};
	uint64_t elements = count_elements(&how->space);
	int rc = 0;

	if (how->stored) {
		layout = *how->stored;
	} else if (how->layout == H5_LAYOUT_CHUNKED) {
		set_chunks(how, &layout);
	} else if (how->layout == H5_LAYOUT_CONTIGUOUS) {
		layout.contiguous.address = H5_UNDEF;
		layout.contiguous.size = elements * how->type->size;
	} else {
		rc = fill_elements(how, elements, &layout, &m->compact);
	}
	if (!rc)
		h5_layout_encode(w, &layout);
	return rc;
}

static int add_pipeline(struct messages *m, const struct h5_new_dataset *how, struct h5_writer *w)
{
	const struct h5_filtered what = {how->type, how->space.rank, how->chunk, how->fill};
	struct h5_pipeline pipeline;
	int rc;

	if (!how->filters.count)
		return 0;
	rc = h5_filter_list_make(&how->filters, &what, &pipeline);
	if (rc)
		return rc;
	h5_pipeline_message_encode(w, &pipeline);
	h5_pipeline_release(&pipeline);
	return add_written(m, H5_MSG_PIPELINE, w);
}

static int make_messages(struct messages *m, const struct h5_new_dataset *how, uint8_t *room)
{
	const struct h5_superblock *sb = h5_file_superblock(m->file);
	struct h5_writer w = h5_writer_init(room, MESSAGE_MAX, sb->size_of_offsets, sb->size_of_lengths);
	struct h5_dataspace space = how->space;
	struct h5_writer empty = w;
	int rc;

	/* Without maximum dimensions the index would not fit once the dataset has shrunk. */
	space.has_max = how->layout == H5_LAYOUT_CHUNKED;
	h5_dataspace_encode(&w, &space);
	rc = add_written(m, H5_MSG_DATASPACE, &w);
	if (!rc)
		rc = add_type(m, how->type);
	w = empty;
	encode_fill(how, &w);
	if (!rc)
		rc = add_written(m, H5_MSG_FILL_VALUE, &w);
	w = empty;
	if (!rc)
		rc = encode_layout(m, how, &w);
	if (!rc)
		rc = add_written(m, H5_MSG_LAYOUT, &w);
	w = empty;
	return rc ? rc : add_pipeline(m, how, &w);
}

/* Makes the messages; the caller calls end() on failure, too. */
static int begin(struct messages *m, struct h5_file *file, const struct h5_new_dataset *how)
{
	uint64_t chunk_size = 0;
	uint8_t *room;
	int rc = check_space(how);

	*m = (struct messages){.file = file};
	h5_buf_init(&m->bodies, SIZE_MAX);
	if (!rc && how->layout == H5_LAYOUT_CHUNKED)
		rc = check_chunks(how, &chunk_size);
	if (rc)
		return rc;
	room = malloc(MESSAGE_MAX);
	if (!room)
		return h5_fail(-ENOMEM, H5_UNDEF, "a new dataset: out of memory");
	rc = make_messages(m, how, room);
	for (unsigned i = 0; i < m->count && !rc; i++)
		m->list[i].body = m->bodies.data + m->begin[i];
	free(room);
	return rc;
}

static int end(struct messages *m, int rc)
{
	free(m->compact);
	h5_buf_release(&m->bodies);
	return rc;
}

int h5_dataset_create(struct h5_file *file, const struct h5_new_dataset *how, uint64_t *address)
{
	const struct h5_new_header style = {.times = true, .time = how->time, .room = ROOM};
	struct messages m;
	int rc = begin(&m, file, how);

	return end(&m, rc ? rc : h5_header_create(file, m.list, m.count, &style, address));
}

/* ---- defining anew ---- */

static bool is_same(const struct h5_message *old, const struct h5_new_message *new)
{
	return new && old->flags == new->flags && old->size == new->size &&
	       !memcmp(old->data, new->body, new->size);
}

static const struct h5_new_message *find_new(const struct messages *m, enum h5_message_type type)
{
	for (unsigned i = 0; i < m->count; i++)
		if (m->list[i].type == type)
			return &m->list[i];
	return NULL;
}

/* True: messages of this type define the dataset: its type, shape, fill value, filters and layout. */
static bool is_defining(enum h5_message_type type)
{
	return type == H5_MSG_FILL_VALUE_OLD || type == H5_MSG_FILL_VALUE || type == H5_MSG_PIPELINE ||
	       type == H5_MSG_LAYOUT || type == H5_MSG_DATATYPE || type == H5_MSG_DATASPACE;
}

/* Messages of a header that are replaced: what they use in the file's heaps of shared messages. Their bodies
 * are borrowed. */
struct replaced {
	struct h5_shared_use *uses; /* owned; NULL: a header was not loaded */
	size_t count;
};

static int note_replaced(const struct messages *m, const struct h5_message *old, struct replaced *replaced)
{
	int rc = h5_shared_use_of(m->file, old, &replaced->uses[replaced->count]);

	if (!rc)
		replaced->count++;
	return rc == -ENODATA ? 0 : rc;
}

/* Lists the messages that the header will have: list[0] to list[*count - 1]. 0: it has just these already;
 * 1: some differ. */
static int list_messages(const struct messages *m, const struct h5_header *header, struct h5_message *list,
			 size_t *count, struct replaced *replaced)
{
	bool changes = false;

	*count = 0;
	for (unsigned i = 0; i < header->count; i++) {
		const struct h5_message *old = &header->messages[i];
		const struct h5_new_message *new = find_new(m, old->type);
		int rc;

		if (!is_defining(old->type) || is_same(old, new)) {
			list[(*count)++] = *old;
			continue;
		}
		rc = note_replaced(m, old, replaced);
		if (rc)
			return rc;
		changes = true;
		if (new)
			list[(*count)++] = h5_new_message_get(new);
	}
	for (unsigned i = 0; i < m->count; i++) {
		if (h5_header_find(header, m->list[i].type))
			continue;
		list[(*count)++] = h5_new_message_get(&m->list[i]);
		changes = true;
	}
	return changes;
}

/* All at once: no kill shows elements as if they had another type or shape. */
static int put_messages(const struct messages *m, uint64_t address)
{
	struct h5_header header;
	struct replaced replaced = {0};
	struct h5_message *list = NULL;
	size_t count = 0;
	int rc = h5_header_load(m->file, address, &header);

	if (!rc) {
		list = calloc(header.count + MESSAGES_MAX, sizeof *list);
		replaced.uses = calloc(header.count + 1, sizeof *replaced.uses);
		if (!list || !replaced.uses)
			rc = h5_fail(-ENOMEM, address, "object header: out of memory");
	}
	if (!rc)
		rc = list_messages(m, &header, list, &count, &replaced);
	if (rc > 0)
		rc = h5_header_rewrite(m->file, address, list, count, H5_STAGE_OBJECT);
	if (!rc && replaced.count)
		rc = h5_shared_table_drop(m->file, address, replaced.uses, replaced.count, NULL, NULL);
	free(list);
	free(replaced.uses);
	h5_header_release(&header);
	return rc;
}

int h5_dataset_define(struct h5_file *file, uint64_t address, const struct h5_new_dataset *how)
{
	struct messages m;
	int rc = begin(&m, file, how);

	if (rc)
		return end(&m, rc);
	h5_unit_begin(file);
	rc = h5_tx_touch(file, address);
	if (!rc)
		rc = put_messages(&m, address);
	h5_tx_forget(file, address);
	return end(&m, h5_unit_end(file, rc));
}
