/* A dataset in which nothing is stored becomes what its user says. Properties may be set one by one, in any
 * order, so what was said of a dataset is kept. What was not said is chosen, or stays. */
#include "vfs/declare.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/json_read.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "dataset/create.h"
#include "dataset/removal.h"
#include "dataset/reshape.h"
#include "dataset/writer.h"
#include "object/numpy_parse.h"
#include "object/value_parse.h"
#include "vfs/objects.h"
#include "vfs/open_file.h"
#include "vfs/paths.h"
#include "vfs/plain.h"

#include <stdlib.h>
#include <string.h>

enum property { DTYPE, SHAPE, MAXSHAPE, CHUNKS, FILTERS, FILL, PROPERTIES };

static const char *const names[PROPERTIES] = {"dtype", "shape", "maxshape", "chunks", "filters", "fill"};

/* What h5fs.info has besides. So the value of one dataset can be set for another. */
static const char *const others[] = {"class",	"type",	 "layout",     "index",	  "format",
				     "address", "mtime", "superblock", "comment", "free"};

enum { DECLARED_MAX = 4096 }; /* datasets of which it is remembered */

/* What was said of a dataset. */
struct h5_declared {
	uint64_t address;
	char *said[PROPERTIES]; /* owned; NULL: nothing */
	unsigned rank;		/* before anything was said */
	uint64_t max[H5_RANK_MAX];
	UT_hash_handle hh;
};

static int nonsense(const char *what, const char *text)
{
	return h5_fail(-EINVAL, H5_UNDEF, "%s: %.100s", what, text);
}

/* ---- memory ---- */

static void forget(struct h5_vfs *vfs, struct h5_declared *declared)
{
	HASH_DEL(vfs->declared, declared);
	for (unsigned i = 0; i < PROPERTIES; i++)
		free(declared->said[i]);
	free(declared);
}

void h5_declared_free(struct h5_vfs *vfs)
{
	struct h5_declared *declared, *next;

	HASH_ITER(hh, vfs->declared, declared, next)
	forget(vfs, declared);
}

static struct h5_declared *remembered(struct h5_vfs *vfs, uint64_t address)
{
	struct h5_declared *declared;

	HASH_FIND(hh, vfs->declared, &address, sizeof address, declared);
	return declared;
}

void h5_declared_forget(struct h5_vfs *vfs, uint64_t address)
{
	struct h5_declared *declared = remembered(vfs, address);

	if (declared)
		forget(vfs, declared);
}

/* Moves what was said to the memory of the dataset, which was `old` before. Without memory only that is lost.
 */
static void remember(struct h5_vfs *vfs, const struct h5_dataset *old, char *said[PROPERTIES])
{
	const uint64_t address = old->address;
	struct h5_declared *declared = remembered(vfs, address), *made = NULL;

	if (!declared) {
		while (HASH_COUNT(vfs->declared) >= DECLARED_MAX)
			forget(vfs, vfs->declared);
		declared = made = calloc(1, sizeof *declared);
		if (!declared)
			return;
		declared->address = address;
		declared->rank = old->space.rank;
		memcpy(declared->max, old->space.max, sizeof declared->max);
		HASH_ADD(hh, vfs->declared, address, sizeof address, declared);
		if (!declared->hh.tbl) {
			free(made);
			return;
		}
	}
	for (unsigned i = 0; i < PROPERTIES; i++) {
		if (!said[i])
			continue;
		free(declared->said[i]);
		declared->said[i] = said[i];
		said[i] = NULL;
	}
}

/* ---- what is said ---- */

static int say(char *said[PROPERTIES], unsigned property, const char *text, size_t n)
{
	if (memchr(text, '\0', n))
		return nonsense("a text with a NUL byte", text);
	free(said[property]);
	said[property] = strndup(text, n);
	return said[property] ? 0 : h5_fail(-ENOMEM, H5_UNDEF, "declaring: out of memory");
}

static int say_member(char *said[PROPERTIES], const char *name, struct json_object *value)
{
	char room[H5_JSON_INTEGER_ROOM];
	const char *text = h5_json_number_text(value, room);

	for (unsigned i = 0; i < PROPERTIES; i++) {
		if (strcmp(names[i], name))
			continue;
		if (text)
			return say(said, i, text, strlen(text));
		if (!json_object_is_type(value, json_type_string))
			return nonsense("h5fs.info: no text", name);
		return say(said, i, json_object_get_string(value), (size_t)json_object_get_string_len(value));
	}
	for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
		if (!strcmp(others[i], name))
			return 0;
	return nonsense("h5fs.info: no property", name);
}

static int say_info(char *said[PROPERTIES], const char *text, size_t n)
{
	struct json_object_iterator i, end;
	struct h5_json_document document;
	int rc = h5_json_read(text, n, &document);

	if (rc)
		return rc;
	if (!json_object_is_type(document.root, json_type_object)) {
		rc = nonsense("h5fs.info", "an object is expected");
	} else {
		i = json_object_iter_begin(document.root);
		end = json_object_iter_end(document.root);
		for (; !rc && !json_object_iter_equal(&i, &end); json_object_iter_next(&i))
			rc = say_member(said, json_object_iter_peek_name(&i),
					json_object_iter_peek_value(&i));
	}
	h5_json_document_release(&document);
	return rc;
}

/* ---- what follows from it ---- */

/* The dataset as it is, and as it shall be. */
struct draft {
	struct h5_vfs *vfs;
	const struct h5_dataset *old;
	const struct h5_declared *before; /* NULL: nothing was said of it */
	const char *said[PROPERTIES];	  /* borrowed; NULL: nothing */
	struct h5_datatype *type;	  /* owned */
	uint8_t *fill;			  /* owned */
	struct h5_new_dataset new;
};

/* Reads `3,4` or, as a maximum, `inf,4`; without numbers the rank is 0. */
static int parse_dims(const char *text, bool may_be_unlimited, uint64_t *dims, unsigned *rank)
{
	const char *p = text;

	*rank = 0;
	while (*p) {
		char *next;

		if (*rank == H5_RANK_MAX)
			return nonsense("too many dimensions", text);
		errno = 0;
		if (may_be_unlimited && !strncmp(p, "inf", 3)) {
			dims[*rank] = H5_UNLIMITED;
			next = (char *)(uintptr_t)p + 3;
		} else {
			dims[*rank] = strtoull(p, &next, 10);
			if (*p < '0' || *p > '9' || errno || dims[*rank] > INT64_MAX)
				return nonsense("no number", p);
		}
		++*rank;
		if (*next && (*next != ',' || !next[1]))
			return nonsense("no list of numbers", text);
		p = *next ? next + 1 : next;
	}
	return 0;
}

static int draft_type(struct draft *d)
{
	const char *text = d->said[DTYPE];
	int rc = 0;

	d->new.type = d->old->type;
	if (!text)
		return 0;
	rc = h5_numpy_parse(text, strlen(text), h5_file_superblock(d->vfs->file)->size_of_offsets, &d->type);
	d->new.type = d->type;
	return rc;
}

/* The maximum that it had before anything was said, if the shape is within. */
static void choose_maximum(struct draft *d)
{
	const uint64_t *max = d->before ? d->before->max : d->old->space.max;
	struct h5_dataspace *space = &d->new.space;
	bool fits = space->rank == (d->before ? d->before->rank : d->old->space.rank);

	for (unsigned i = 0; i < space->rank && fits; i++)
		fits = space->dims[i] <= max[i];
	memcpy(space->max, fits ? max : space->dims, sizeof space->max);
	if (!fits && space->rank)
		space->max[0] = H5_UNLIMITED;
}

static int draft_space(struct draft *d)
{
	struct h5_dataspace *space = &d->new.space;
	unsigned rank;
	int rc = 0;

	*space = d->old->space;
	if (d->said[SHAPE] && !strcmp(d->said[SHAPE], "null")) {
		*space = (struct h5_dataspace){.kind = H5_SPACE_NULL};
	} else if (d->said[SHAPE]) {
		rc = parse_dims(d->said[SHAPE], false, space->dims, &space->rank);
		space->kind = space->rank ? H5_SPACE_SIMPLE : H5_SPACE_SCALAR;
		choose_maximum(d);
	}
	if (rc || !d->said[MAXSHAPE])
		return rc;
	rank = space->rank;
	rc = parse_dims(d->said[MAXSHAPE], true, space->max, &rank);
	if (rc || rank == space->rank)
		return rc;
	if (d->said[SHAPE])
		return nonsense("the maximum has another number of dimensions", d->said[MAXSHAPE]);
	*space = d->old->space; /* until the shape is said */
	return 0;
}

static bool can_be_contiguous(const struct draft *d)
{
	const struct h5_dataspace *space = &d->new.space;

	return !memcmp(space->dims, space->max, space->rank * sizeof *space->dims);
}

static int draft_filters(struct draft *d)
{
	const char *text = d->said[FILTERS];

	if (text)
		return h5_filter_list_parse(text, strlen(text), &d->new.filters);
	if (d->new.space.rank && d->old->ops->has_chunks)
		h5_filter_list_of(&d->old->pipeline, &d->new.filters);
	return 0;
}

/* Sets layout and chunks. */
static int draft_chunks(struct draft *d)
{
	const struct h5_dataspace *space = &d->new.space;
	const struct h5_chunk_layout *chunks = h5_dataset_chunks(d->old);
	const char *text = d->said[CHUNKS];
	unsigned rank = 0;
	int rc = text ? parse_dims(text, false, d->new.chunk, &rank) : 0;

	if (rc)
		return rc;
	d->new.layout = H5_LAYOUT_CHUNKED;
	if (rank && rank == space->rank)
		return 0;
	if (rank && d->said[SHAPE])
		return nonsense("chunks with another number of dimensions", text);
	if (!text && chunks && !d->said[DTYPE] && !d->said[SHAPE] && !d->said[MAXSHAPE]) {
		memcpy(d->new.chunk, chunks->dims, sizeof d->new.chunk);
		return 0;
	}
	if (can_be_contiguous(d) && !d->new.filters.count)
		d->new.layout = H5_LAYOUT_CONTIGUOUS;
	else if (!h5_dataset_choose_chunks(space, d->new.type->size, d->new.chunk))
		return nonsense("no chunks are possible", d->said[SHAPE] ? d->said[SHAPE] : "");
	return 0;
}

static int draft_fill(struct draft *d)
{
	const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};
	struct h5_value_context context = h5_paths_context(d->vfs, d->vfs->file);
	const struct h5_value_parser parser = {.context = &context};
	const char *text = d->said[FILL];
	int rc;

	if (!text) {
		d->new.fill = d->old->fill_defined && !d->said[DTYPE] ? d->old->fill : NULL;
		return 0;
	}
	if (!*text)
		return 0;
	d->fill = calloc(1, d->new.type->size);
	if (!d->fill)
		return h5_fail(-ENOMEM, H5_UNDEF, "declaring: out of memory");
	rc = h5_value_parse(&parser, d->new.type, &scalar, text, strlen(text), NULL, d->fill);
	if (rc == -EINVAL && !d->said[DTYPE])
		return 0; /* until the type is said */
	d->new.fill = d->fill;
	return rc;
}

static int draft(struct draft *d)
{
	int rc = draft_type(d);

	if (!rc)
		rc = draft_space(d);
	if (!rc)
		rc = draft_filters(d);
	if (!rc)
		rc = draft_chunks(d);
	return rc ? rc : draft_fill(d);
}

/* ---- may it be declared? ---- */

enum { STORED = 1 };

static int find_chunk(void *arg, const struct h5_chunk *chunk)
{
	(void)arg;
	(void)chunk;
	return STORED;
}

/* STORED, 0: nothing is stored, or an error. The chunks of a dataset may all have gone, while their index is
 * still there. */
static int find_data(const struct h5_dataset *dataset)
{
	switch (dataset->layout.class) {
	case H5_LAYOUT_CHUNKED:
		return dataset->index ? h5_chunk_index_walk(dataset->index, find_chunk, NULL) : 0;
	case H5_LAYOUT_CONTIGUOUS:
		return dataset->layout.contiguous.address == H5_UNDEF ? 0 : STORED;
	default:
		return STORED;
	}
}

/* True: a handle has written a part of a row, or new contents. */
static bool has_pending(struct h5_vfs *vfs, uint64_t address)
{
	const struct h5_handle *h;
	bool has = false;

	pthread_mutex_lock(&vfs->lock);
	DL_FOREACH(vfs->handles, h)
	has |= (h->replacement || (h->input.ops && h->input.filled)) && h->node->entity.address == address;
	pthread_mutex_unlock(&vfs->lock);
	return has;
}

static int check_empty(struct h5_vfs *vfs, const struct h5_dataset *dataset)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	uint32_t links;
	int rc;

	if (dataset->external || dataset->ops->is_elsewhere)
		return h5_fail(-ENOTSUP, dataset->address, "its data are elsewhere");
	rc = find_data(dataset);
	if (rc < 0)
		return rc;
	if (rc == STORED || has_pending(vfs, dataset->address))
		return h5_fail(-EBUSY, dataset->address, "it has data");
	rc = h5_object_get(vfs->file, dataset->address, &ref, &object);
	if (rc)
		return rc;
	links = object->references;
	h5_file_put(vfs->file, ref);
	return links > 1 ? h5_fail(-EBUSY, dataset->address, "it has %u names", links) : 0;
}

/* ---- setting ---- */

/* What is left of an index goes, too. */
static int define_anew(struct h5_vfs *vfs, const struct h5_dataset *old, const struct h5_new_dataset *new)
{
	int rc = 0;

	h5_unit_begin(vfs->file);
	if (old->index)
		rc = h5_dataset_give_up(old);
	if (!rc)
		rc = h5_dataset_define(vfs->file, old->address, new);
	return h5_unit_end(vfs->file, rc);
}

static int define(struct h5_vfs *vfs, const struct h5_dataset *old, char *said[PROPERTIES])
{
	const struct h5_declared *before = remembered(vfs, old->address);
	struct draft d = {.vfs = vfs, .old = old, .before = before};
	int rc = check_empty(vfs, old);

	for (unsigned i = 0; i < PROPERTIES; i++)
		d.said[i] = said[i] ? said[i] : before ? before->said[i] : NULL;
	if (!rc)
		rc = draft(&d);
	if (!rc)
		h5_dataset_writer_drop(vfs->file, old->address);
	if (!rc)
		rc = define_anew(vfs, old, &d.new);
	if (!rc) {
		h5_plain_remove(vfs, old->address);
		remember(vfs, old, said);
	}
	free(d.fill);
	h5_datatype_free(d.type);
	return rc;
}

/* The shape, if it is one that the dataset can get as it is. */
static int parse_shape(const struct h5_dataset *dataset, const char *text, uint64_t *dims)
{
	unsigned rank;
	int rc = parse_dims(text, false, dims, &rank);

	if (rc)
		return rc;
	if (!rank || rank != dataset->space.rank)
		return nonsense("another number of dimensions", text);
	for (unsigned i = 0; i < rank; i++)
		if (dims[i] > dataset->space.max[i])
			return nonsense("more than the maximum", text);
	return 0;
}

static int resize(struct h5_vfs *vfs, const struct h5_dataset *dataset, const uint64_t *dims)
{
	const unsigned rank = dataset->space.rank;
	struct h5_dataset_writer *writer;
	int rc;

	/* A part of a row belongs to rows as they are. */
	if (has_pending(vfs, dataset->address) &&
	    memcmp(dims + 1, dataset->space.dims + 1, (rank - 1) * sizeof *dims))
		return h5_fail(-EBUSY, dataset->address,
			       "a row is incomplete, or the contents are being replaced");
	rc = h5_dataset_writer_get(vfs->file, dataset->address, vfs->options.external_write, &writer);
	if (rc)
		return rc;
	rc = h5_dataset_reshape(writer, dims);
	h5_dataset_writer_put(writer);
	return rc;
}

static bool says_only_shape(char *const said[PROPERTIES])
{
	for (unsigned i = 0; i < PROPERTIES; i++)
		if (!said[i] != (i != SHAPE))
			return false;
	return true;
}

/* True: the user has not begun to say what the dataset shall be. */
static bool is_settled(struct h5_vfs *vfs, const struct h5_dataset *dataset)
{
	return h5_dataset_chunks(dataset) && h5_datatype_is_fixed(dataset->type) &&
	       !remembered(vfs, dataset->address) && !h5_plain_has(vfs, dataset->address);
}

/* If only the shape is said, a dataset that has data, or is settled, changes it and nothing else. -ENODATA:
 * it is to be declared. */
static int set_shape(struct h5_vfs *vfs, const struct h5_dataset *dataset, char *const said[PROPERTIES])
{
	uint64_t dims[H5_RANK_MAX];
	int found, rc;

	if (!says_only_shape(said))
		return -ENODATA;
	found = find_data(dataset);
	if (found < 0 || (!found && !is_settled(vfs, dataset)))
		return found ? found : -ENODATA;
	rc = parse_shape(dataset, said[SHAPE], dims);
	if (rc)
		return found ? rc : -ENODATA;
	if (found)
		h5_declared_forget(vfs, dataset->address); /* so it is settled, also if its data go */
	return resize(vfs, dataset, dims);
}

static int set_said(struct h5_vfs *vfs, uint64_t address, char *said[PROPERTIES])
{
	const struct h5_dataset_writer *writer = h5_dataset_writer_find(vfs->file, address);
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc = writer && h5_dataset_writer_is_dirty(writer) ? h5_tx_settle(vfs->file) : 0;

	if (!rc)
		rc = h5_dataset_get(vfs->file, address, &ref, &dataset);
	if (rc)
		return rc;
	rc = set_shape(vfs, dataset, said);
	if (rc == -ENODATA)
		rc = define(vfs, dataset, said);
	h5_file_put(vfs->file, ref);
	return rc;
}

/* Specification IV.A.2.n: the text and a NUL. */
static int set_comment(struct h5_vfs *vfs, uint64_t address, const char *text, size_t n)
{
	struct h5_new_message message = {.type = H5_MSG_COMMENT, .size = n + 1};
	const struct h5_message *old;
	struct h5_header header;
	char *body;
	int rc;

	if (memchr(text, '\0', n))
		return nonsense("a text with a NUL byte", text);
	body = strndup(text, n);
	if (!body)
		return h5_fail(-ENOMEM, address, "comment: out of memory");
	message.body = body;
	rc = h5_header_load(vfs->file, address, &header);
	if (!rc) {
		old = h5_header_find(&header, H5_MSG_COMMENT);
		rc = h5_tx_touch(vfs->file, address);
		if (!rc)
			rc = old ? h5_header_set(vfs->file, address, old, &message)
				 : h5_header_insert(vfs->file, address, &message);
		h5_tx_forget(vfs->file, address);
		h5_header_release(&header);
	}
	free(body);
	return rc;
}

static int say_property(char *said[PROPERTIES], const char *name, const char *text, size_t n)
{
	if (!strcmp(name, "info"))
		return say_info(said, text, n);
	for (unsigned i = 0; i < PROPERTIES; i++)
		if (!strcmp(names[i], name))
			return say(said, i, text, n);
	return -EPERM;
}

int h5_declare(struct h5_vfs *vfs, const struct h5_node *node, const char *name, const char *text, size_t n)
{
	char *said[PROPERTIES] = {NULL};
	int rc;

	assert(h5_is_locked_to_write(vfs));
	if (!strcmp(name, "comment"))
		return set_comment(vfs, node->entity.address, text, n);
	if (node->entity.kind != H5_NODE_DATASET)
		return h5_objects_refuse(node);
	rc = say_property(said, name, text, n);
	if (!rc)
		rc = set_said(vfs, node->entity.address, said);
	for (unsigned i = 0; i < PROPERTIES; i++)
		free(said[i]);
	return rc;
}
