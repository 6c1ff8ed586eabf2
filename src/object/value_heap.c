#include "object/value_heap.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "object/global_heap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A part of an element that refers to an object of the heap. */
struct part {
	size_t begin, size;		/* in the element */
	size_t pointer;			/* in the element: O address, 4 index */
	const struct h5_datatype *base; /* of `count` elements in the object; NULL: bytes without pointers */
	bool copied;			/* others may refer to the object, too */
	uint64_t count;
};

struct walk {
	struct h5_file *file;
	const uint8_t *data; /* the whole element */
	int (*part)(struct walk *walk, const struct part *part);
	/* for the function: */
	h5_value_heap_visit *visit;
	bool own; /* only objects that the element owns */
	struct h5_heap_sink *sink;
	const uint8_t *like;
	uint8_t *changed; /* `data` */
	void *arg;
};

/* See struct vlen_element in value.c, and reference.c. */
static bool find_part(const struct walk *walk, const struct h5_datatype *t, size_t at, struct part *part)
{
	struct h5_reader r = h5_file_reader(walk->file, walk->data + at, t->size, H5_UNDEF);
	uint64_t address;
	uint8_t kind;

	*part = (struct part){.begin = at, .size = t->size, .pointer = at};
	if (t->class == H5_CLASS_VLEN) {
		part->pointer += 4;
		part->count = h5_read_u32(&r);
		if (!t->vlen.is_string && !h5_datatype_is_fixed(t->vlen.base))
			part->base = t->vlen.base;
		if (!part->count)
			return false;
	} else if (t->reference.kind == H5_REF_OBJECT) {
		return false;
	} else if (t->reference.kind == H5_REF_REGION) {
		part->copied = true;
	} else {
		kind = h5_read_u8(&r);
		h5_reader_skip(&r, 5);
		part->pointer += 6;
		if (kind != H5_REF_REGION2 && kind != H5_REF_ATTRIBUTE)
			return false;
	}
	address = h5_read_offset(&r);
	(void)h5_read_u32(&r);
	return !r.err && address && address != H5_UNDEF;
}

/* Goes over the parts of an element of the type, which begins at byte `at` of the whole element. The
 * recursion is bounded, since the decoder bounds the depth of types. */
static int walk_parts(struct walk *walk, const struct h5_datatype *t, size_t at)
{
	struct part part;
	int rc = 0;

	if (h5_datatype_is_fixed(t))
		return 0;
	switch (t->class) {
	case H5_CLASS_VLEN:
	case H5_CLASS_REFERENCE:
		return find_part(walk, t, at, &part) ? walk->part(walk, &part) : 0;
	case H5_CLASS_COMPOUND:
		for (unsigned i = 0; i < t->compound.count && !rc; i++)
			rc = walk_parts(walk, t->compound.members[i].type,
					at + t->compound.members[i].offset);
		break;
	case H5_CLASS_ARRAY:
		for (size_t done = 0; done < t->size && !rc; done += t->array.base->size) {
			rc = h5_interrupt_check();
			if (!rc)
				rc = walk_parts(walk, t->array.base, at + done);
		}
		break;
	default:
		assert(false); /* others are fixed */
	}
	return rc;
}

static void read_pointer(const struct walk *walk, const struct part *part, uint64_t *address, uint32_t *index)
{
	struct h5_reader r = h5_file_reader(walk->file, walk->data + part->pointer,
					    part->begin + part->size - part->pointer, H5_UNDEF);

	*address = h5_read_offset(&r);
	*index = h5_read_u32(&r);
}

/* The object of the part, borrowed until h5_file_put(*ref). -EUCLEAN: it is shorter than its elements. */
static int open_object(const struct walk *walk, const struct part *part, struct h5_lru_entry **ref,
		       const uint8_t **data, size_t *n)
{
	uint64_t address, needed = 0;
	uint32_t index;
	int rc;

	read_pointer(walk, part, &address, &index);
	rc = h5_global_heap_get(walk->file, address, index, ref, data, n);
	if (rc || !part->base || (h5_mul(part->count, part->base->size, &needed) && needed <= *n))
		return rc;
	h5_file_put(walk->file, *ref);
	return h5_fail(-EUCLEAN, address, "variable-length element: longer than its global heap object");
}

/* ---- visiting ---- */

static int visit_element(const struct walk *outer, const struct h5_datatype *type, const uint8_t *data);

static int visit_part(struct walk *walk, const struct part *part)
{
	struct h5_lru_entry *ref;
	const uint8_t *data;
	uint64_t address;
	uint32_t index;
	size_t n;
	int rc;

	if (walk->own && part->copied)
		return 0;
	read_pointer(walk, part, &address, &index);
	rc = walk->visit(walk->arg, address, index);
	if (rc || !part->base)
		return rc;
	rc = open_object(walk, part, &ref, &data, &n);
	if (rc)
		return rc;
	for (uint64_t i = 0; i < part->count && !rc; i++) {
		rc = h5_interrupt_check();
		if (!rc)
			rc = visit_element(walk, part->base, data + i * part->base->size);
	}
	h5_file_put(walk->file, ref);
	return rc;
}

/* An element in an object, visited as the element that refers to the object is. */
static int visit_element(const struct walk *outer, const struct h5_datatype *type, const uint8_t *data)
{
	struct walk walk = *outer;

	walk.data = data;
	return walk_parts(&walk, type, 0);
}

int h5_value_heap_walk(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
		       h5_value_heap_visit *visit, void *arg)
{
	struct walk walk = {.file = file, .data = data, .part = visit_part, .visit = visit, .arg = arg};

	return walk_parts(&walk, type, 0);
}

int h5_value_heap_walk_own(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data,
			   h5_value_heap_visit *visit, void *arg)
{
	struct walk walk = {
		.file = file, .data = data, .part = visit_part, .visit = visit, .own = true, .arg = arg};

	return walk_parts(&walk, type, 0);
}

static int note_one(void *arg, uint64_t address, uint32_t index)
{
	(void)arg;
	(void)address;
	(void)index;
	return 1;
}

bool h5_value_heap_is_owner(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data)
{
	return h5_value_heap_walk(file, type, data, note_one, NULL) == 1;
}

/* ---- copying ---- */

/* Puts the bytes, and what they refer to, into the sink. */
static int put_copy(const struct walk *walk, const struct part *part, uint8_t *bytes, size_t n,
		    uint64_t *address, uint32_t *index)
{
	uint8_t *like = part->base ? malloc(n) : NULL;
	int rc = part->base && !like ? -ENOMEM : 0;

	if (like)
		memcpy(like, bytes, n);
	for (uint64_t i = 0; like && i < part->count && !rc; i++)
		rc = h5_value_heap_own(walk->sink, walk->file, part->base, like + i * part->base->size,
				       bytes + i * part->base->size);
	free(like);
	return rc ? rc : walk->sink->put(walk->sink, bytes, n, address, index);
}

static int copy_object(const struct walk *walk, const struct part *part, uint64_t *address, uint32_t *index)
{
	struct h5_lru_entry *ref;
	const uint8_t *data;
	uint8_t *bytes;
	size_t n;
	int rc = open_object(walk, part, &ref, &data, &n);

	if (rc)
		return rc;
	bytes = malloc(n + 1);
	if (bytes)
		memcpy(bytes, data, n);
	h5_file_put(walk->file, ref);
	rc = bytes ? put_copy(walk, part, bytes, n, address, index) : -ENOMEM;
	free(bytes);
	return rc;
}

static int own_part(struct walk *walk, const struct part *part)
{
	const struct h5_superblock *sb = h5_file_superblock(walk->file);
	struct h5_writer w;
	uint64_t address;
	uint32_t index;
	int rc;

	if (memcmp(walk->like + part->begin, walk->data + part->begin, part->size))
		return 0;
	rc = copy_object(walk, part, &address, &index);
	if (rc)
		return rc;
	w = h5_writer_init(walk->changed + part->pointer, part->begin + part->size - part->pointer,
			   sb->size_of_offsets, sb->size_of_lengths);
	h5_write_offset(&w, address);
	h5_write_u32(&w, index);
	return w.err;
}

int h5_value_heap_own(struct h5_heap_sink *sink, struct h5_file *file, const struct h5_datatype *type,
		      const uint8_t *like, uint8_t *data)
{
	struct walk walk = {
		.file = file, .data = data, .part = own_part, .sink = sink, .like = like, .changed = data};

	return walk_parts(&walk, type, 0);
}

static int disown_part(struct walk *walk, const struct part *part)
{
	memset(walk->changed + part->begin, 0, part->size);
	return 0;
}

void h5_value_heap_disown(struct h5_file *file, const struct h5_datatype *type, uint8_t *data)
{
	struct walk walk = {.file = file, .data = data, .part = disown_part, .changed = data};

	(void)walk_parts(&walk, type, 0);
}
