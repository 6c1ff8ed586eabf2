/* References as JSON. Those of the old style are an address or a global heap ID. Those of libhdf5 1.12 are
 * not in the specification; their form is known from files that libhdf5 wrote. */
#include "object/value_private.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "format/selection.h"
#include "object/global_heap.h"
#include "object/object.h"

enum { FLAG_EXTERNAL = 1 };

/* A decoded reference of either style. */
struct reference {
	enum h5_reference_kind kind;
	uint64_t object;
	struct h5_lru_entry *heap; /* the collection that holds the rest; NULL: none */
	struct h5_reader rest;	   /* region: the selection; attribute: its name */
};

static int damaged(const char *what)
{
	return h5_fail(-EUCLEAN, H5_UNDEF, "reference: %s", what);
}

/* Opens the heap object with the ID (address, index) at `id`. -ENOENT: the ID is null. */
static int open_heap(struct h5_file *file, struct h5_reader *id, struct reference *ref)
{
	uint64_t address = h5_read_offset(id);
	uint32_t index = h5_read_u32(id);
	const uint8_t *data;
	size_t size;
	int rc = h5_reader_check(id, "reference");

	if (!rc && (!address || address == H5_UNDEF))
		rc = -ENOENT;
	if (!rc)
		rc = h5_global_heap_get(file, address, index, &ref->heap, &data, &size);
	if (!rc)
		ref->rest = h5_file_reader(file, data, size, H5_UNDEF);
	return rc;
}

static int read_old(struct h5_file *file, struct h5_reader *r, struct reference *ref)
{
	int rc = 0;

	if (ref->kind == H5_REF_REGION) {
		rc = open_heap(file, r, ref);
		r = &ref->rest;
	}
	if (rc)
		return rc;
	ref->object = h5_read_offset(r);
	return h5_reader_check(r, "reference");
}

/* 1 size, then an object token of that size: the address of the object header. */
static int read_token(struct h5_reader *r, struct reference *ref)
{
	uint8_t size = h5_read_u8(r);

	if (!r->err && size != r->size_of_offsets)
		return damaged("size of an object token");
	ref->object = h5_read_offset(r);
	return h5_reader_check(r, "reference");
}

/*   0  1  kind (0: null)
 *   1  1  flags (bit 0: of an object in another file)
 *   2     object: token
 *         others: 4 size, O heap address, 4 heap index of:  token
 *                                                           region: 4 size, 4 rank, selection
 *                                                           attribute: 2 size, name */
static int read_new(struct h5_file *file, struct h5_reader *r, struct reference *ref)
{
	uint8_t kind = h5_read_u8(r), flags = h5_read_u8(r);
	int rc;

	if (r->err || kind < H5_REF_OBJECT2 || kind > H5_REF_ATTRIBUTE || flags & FLAG_EXTERNAL)
		return -ENOENT;
	ref->kind = (enum h5_reference_kind)kind;
	if (kind == H5_REF_OBJECT2)
		return read_token(r, ref);
	h5_reader_skip(r, 4);
	rc = open_heap(file, r, ref);
	if (!rc)
		rc = read_token(&ref->rest, ref);
	if (!rc && kind == H5_REF_REGION2)
		h5_reader_skip(&ref->rest, 8);
	return rc;
}

/* Reads the extent of the dataset at the address. */
static int read_extent(struct h5_file *file, uint64_t address, struct h5_dataspace *space)
{
	const struct h5_message *message;
	const struct h5_object *object;
	struct h5_message_body body = {0};
	struct h5_lru_entry *entry;
	int rc = h5_object_get(file, address, &entry, &object);

	if (rc)
		return rc;
	message = h5_object_find(object, H5_MSG_DATASPACE);
	rc = message ? h5_message_open(file, message, &body)
		     : damaged("region of an object without a dataspace");
	if (!rc)
		rc = h5_dataspace_decode(&body.reader, space);
	h5_message_release(file, &body);
	h5_file_put(file, entry);
	return rc;
}

static void add_coordinates(struct h5_json *list, unsigned rank, const uint64_t *at)
{
	struct h5_json coordinates = h5_json_array(h5_json_item(list));

	for (unsigned i = 0; i < rank; i++)
		h5_json_number(h5_json_item(&coordinates), at[i]);
	h5_json_close(&coordinates);
}

/* Of a scalar a block is an empty list. */
static int add_block(void *arg, unsigned rank, const uint64_t *first, const uint64_t *last)
{
	struct h5_json *list = arg, block = h5_json_array(h5_json_item(list));

	if (rank) {
		add_coordinates(&block, rank, first);
		add_coordinates(&block, rank, last);
	}
	h5_json_close(&block);
	return list->out->err ? list->out->err : h5_interrupt_check();
}

static int selection_json(struct h5_selection *s, const struct h5_dataspace *space, struct h5_json *object)
{
	struct h5_json list =
		h5_json_array(h5_json_key(object, s->kind == H5_SELECT_POINTS ? "points" : "blocks"));
	static const uint64_t origin[H5_RANK_MAX];
	uint64_t last[H5_RANK_MAX];
	int rc = 0;

	if (s->kind == H5_SELECT_HYPERSLAB) {
		if (h5_selection_is_unlimited(s))
			h5_selection_clip(s, space->dims);
		rc = h5_selection_blocks(s, add_block, &list);
	} else if (s->kind == H5_SELECT_ALL && space->elements) {
		for (unsigned i = 0; i < space->rank; i++)
			last[i] = space->dims[i] - 1;
		rc = add_block(&list, space->rank, origin, last);
	} else if (s->kind == H5_SELECT_POINTS) {
		for (uint64_t i = 0; i < s->count && !list.out->err; i++)
			add_coordinates(&list, s->rank, s->coordinates + i * s->rank);
	}
	h5_json_close(&list);
	return rc;
}

static struct h5_json begin(struct h5_buf *out, const struct h5_buf *path)
{
	struct h5_json object = h5_json_object(out);

	h5_json_string(h5_json_key(&object, "object"), path->data, path->size);
	return object;
}

static int attribute_json(struct reference *ref, const struct h5_buf *path, struct h5_buf *out)
{
	size_t n = h5_read_u16(&ref->rest);
	const uint8_t *name = h5_read_bytes(&ref->rest, n);
	struct h5_json object;

	if (!name)
		return h5_reader_check(&ref->rest, "attribute reference");
	object = begin(out, path);
	h5_json_string(h5_json_key(&object, "attribute"), (const char *)name, n);
	h5_json_close(&object);
	return 0;
}

static int region_json(struct h5_file *file, struct reference *ref, const struct h5_buf *path,
		       struct h5_buf *out)
{
	struct h5_dataspace space = {0};
	struct h5_selection s;
	struct h5_json object;
	int rc = h5_selection_decode(&ref->rest, &s);

	if (rc)
		return rc;
	rc = read_extent(file, ref->object, &space);
	if (!rc && s.rank && s.rank != space.rank)
		rc = damaged("region of another rank than its dataset");
	if (!rc) {
		object = begin(out, path);
		rc = selection_json(&s, &space, &object);
		h5_json_close(&object);
	}
	h5_selection_release(&s);
	return rc;
}

/* -ENOENT: the reference is null. ref->heap is to be put on failure, too. */
static int read_reference(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
			  struct reference *ref)
{
	struct h5_reader r = h5_file_reader(file, data, type->size, H5_UNDEF);
	int rc = h5_interrupt_check();

	if (rc)
		return rc;
	rc = type->reference.kind <= H5_REF_REGION ? read_old(file, &r, ref) : read_new(file, &r, ref);
	return !rc && (!ref->object || ref->object == H5_UNDEF) ? -ENOENT : rc;
}

int h5_reference_object(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
			uint64_t *address)
{
	struct reference ref = {.kind = type->reference.kind};
	int rc = read_reference(file, type, data, &ref);

	*address = ref.object;
	h5_file_put(file, ref.heap);
	return rc;
}

static int reference(const struct h5_value_context *context, const struct h5_datatype *type,
		     const uint8_t *data, bool bare, struct reference *ref, struct h5_buf *path,
		     struct h5_buf *out)
{
	int rc = read_reference(context->file, type, data, ref);

	if (!rc)
		rc = context->object_path ? context->object_path(context->arg, ref->object, path) : -ENOENT;
	if (!rc)
		rc = path->err;
	if (rc)
		return rc;
	if (ref->kind == H5_REF_ATTRIBUTE)
		return attribute_json(ref, path, out);
	if (ref->kind == H5_REF_REGION || ref->kind == H5_REF_REGION2)
		return region_json(context->file, ref, path, out);
	h5_string_text(out, path->data, path->size, bare);
	return 0;
}

int h5_reference_json(const struct h5_value_context *context, const struct h5_datatype *type,
		      const uint8_t *data, bool bare, struct h5_buf *out)
{
	struct reference ref = {.kind = type->reference.kind};
	size_t begin = out->size;
	struct h5_buf path;
	int rc;

	h5_buf_init(&path, out->limit);
	rc = reference(context, type, data, bare, &ref, &path, out);
	/* A reference may outlive its target. Something else may then be at that address, or in the heap. So
	 * a reference that cannot be read is no damage of the file. */
	if (rc == -ENOENT || rc == -EUCLEAN) {
		out->size = begin;
		h5_buf_text(out, "null");
		rc = 0;
	}
	h5_buf_release(&path);
	h5_file_put(context->file, ref.heap);
	return rc;
}
