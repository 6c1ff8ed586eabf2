/* The file kerchunk.json: a reference file of version 1, for fsspec. It has the metadata of the Zarr tree
 * (version 2), and in place of chunks where they lie in the HDF5 file.
 *
 * Nothing but an index of the text is kept: all arrays, and a sample of offsets with the chunks that stand
 * there. Any range of the text is made from the sample before it, so its memory does not grow with the number
 * of chunks.
 *
 * What cannot be referred to stands in the text itself, in base64: small arrays that are not passed on as
 * they are stored, or not stored, and chunks that were stored without one of the filters, or are cut by the
 * dataset's end. Larger arrays are left out, with a line in the log. If only what is not stored is the
 * reason, they have a fill value, or their own shape, instead. */
#include "base/array.h"
#include "base/base64.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/lower_bound.h"
#include "view/views.h"
#include "view/zarr.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	SAMPLE_BYTES = 1 << 16, /* of text between two samples, about */
	INLINE_MOST = 1 << 20,	/* bytes of elements of an array that stands in the text */
	PATHS_MOST = 1 << 30,
};

/* The first member says nothing; each of the others begins with a comma. */
#define HEAD "{\"version\":1,\"refs\":{\".zgroup\":\"{\\\"zarr_format\\\":2}\""
#define TAIL "}}\n"

#define HEAD_OF_OBJECT UINT64_MAX /* in place of a chunk's number: the metadata before the chunks */

/* A group or an array. */
struct entry {
	struct h5_file *file; /* borrowed */
	uint64_t address;
	size_t path; /* offset in `paths`, where it ends with NUL */
};

struct sample {
	uint64_t offset; /* in the text */
	size_t entry;
	uint64_t number; /* of the chunk whose text begins there, or that of the next one that is stored */
};

struct index {
	struct entry *entries;
	struct sample *samples;
	size_t count, capacity, sample_count, sample_capacity;
	struct h5_buf paths;
	struct h5_charge entries_charge, samples_charge;
	uint64_t size; /* of the text */
};

/* Text that is being made. */
struct writer {
	const struct h5_view *v; /* of the root */
	struct index *index;
	bool measures; /* nothing is copied, and the index grows */
	uint64_t at;   /* offset of what comes next */
	/* What is wanted of the text: */
	uint64_t from, to;
	uint8_t *out;
	struct h5_buf prefix, url; /* JSON: keys of the present object up to the last name; the URL */
	struct h5_buf piece;
};

/* ---- pieces of the text ---- */

static int put(struct writer *w)
{
	const struct h5_buf *p = &w->piece;
	uint64_t end = w->at + p->size, first = h5_max(w->at, w->from), last = h5_min(end, w->to);

	if (p->err)
		return p->err;
	if (!w->measures && first < last)
		memcpy(w->out + (first - w->from), p->data + (first - w->at), (size_t)(last - first));
	w->at = end;
	w->piece.size = 0;
	return 0;
}

static bool is_done(const struct writer *w)
{
	return !w->measures && w->at >= w->to;
}

static int add_sample(struct writer *w, size_t entry, uint64_t number)
{
	struct index *ix = w->index;
	int rc;

	if (!w->measures ||
	    (ix->sample_count && w->at - ix->samples[ix->sample_count - 1].offset < SAMPLE_BYTES))
		return 0;
	rc = h5_array_reserve(&ix->samples, &ix->sample_capacity, ix->sample_count + 1, &ix->samples_charge);
	if (!rc)
		ix->samples[ix->sample_count++] = (struct sample){w->at, entry, number};
	return rc;
}

/* Begins a member of the references. */
static void add_key(struct writer *w, const char *name)
{
	h5_buf_text(&w->piece, ",");
	h5_buf_add(&w->piece, w->prefix.data, w->prefix.size);
	h5_buf_text(&w->piece, name);
	h5_buf_text(&w->piece, "\":");
}

/* A document is a string of JSON. */
static int put_document(struct writer *w, const char *name, int rc, const struct h5_buf *json)
{
	struct h5_buf text;

	h5_buf_init(&text, json->limit);
	h5_zarr_add_ascii(&text, json);
	add_key(w, name);
	h5_json_string(&w->piece, text.data, text.size);
	rc = rc ? rc : text.err;
	h5_buf_release(&text);
	return rc ? rc : put(w);
}

static int put_metadata(struct writer *w, const struct h5_view *o, const struct h5_zarr_array *a)
{
	struct h5_buf json;
	int rc = 0;

	h5_buf_init(&json, H5_ZARR_METADATA_MAX);
	if (a)
		rc = h5_zarr_add_array(o, a, &json);
	else
		h5_zarr_add_group(&json);
	/* That of the root stands in the head. */
	if (a || w->prefix.size > 1)
		rc = put_document(w, a ? ".zarray" : ".zgroup", rc, &json);
	json.size = 0;
	if (!rc)
		rc = put_document(w, ".zattrs", h5_zarr_add_attributes(o, a, &json), &json);
	h5_buf_release(&json);
	return rc;
}

/* ---- chunks ---- */

/* True: addresses of the dataset's file are offsets in the file of the URL. */
static bool is_in_file(const struct h5_view *v, const struct h5_dataset *d)
{
	return d->file == v->file && h5_file_is_plain(v->file);
}

/* True: all of the array's chunks lie somewhere in the file, as Zarr wants them. */
static bool can_refer(const struct h5_view *v, const struct h5_zarr_array *a)
{
	const struct h5_dataset *d = a->dataset;

	if (!is_in_file(v, d) || a->is_strings || a->has_padding)
		return false;
	return a->is_chunked ? a->is_passed : d->layout.class == H5_LAYOUT_CONTIGUOUS && !d->external;
}

/* True: so many chunks may stand in the text. */
static bool fit_in_text(const struct h5_zarr_array *a, uint64_t chunks)
{
	uint64_t bytes;

	return h5_mul(chunks, a->chunk_bytes, &bytes) && bytes <= INLINE_MOST;
}

/* An array with the dataset's own shape. */
static int shrink(struct h5_zarr_array *a)
{
	bool has_mark = a->has_mark;
	int rc = h5_zarr_array_init(a, a->version, a->dataset);

	a->has_mark = has_mark;
	return rc;
}

/* Decides how the array is shown. -ENOTSUP: it is left out. */
static int plan(const struct h5_view *v, struct h5_zarr_array *a)
{
	const struct h5_dataset *d = a->dataset;
	uint64_t end = h5_file_end(d->file);
	int rc = 0;

	/* Chunks that are not stored, or only as the begin of one, have no place in the file. */
	a->is_filled = a->is_filled && fit_in_text(a, a->chunks);
	if (can_refer(v, a) && !fit_in_text(a, h5_zarr_array_cut_chunks(a)))
		rc = shrink(a);
	if (rc)
		return rc;
	if (can_refer(v, a)) {
		/* A chunk at the end may reach into what follows in the file: those bytes are not elements.
		 */
		if (!a->is_chunked && d->layout.contiguous.address < end)
			h5_zarr_array_fit(a, end - d->layout.contiguous.address);
		return 0;
	}
	h5_zarr_array_decode(a);
	if (!fit_in_text(a, a->chunks))
		return h5_fail(-ENOTSUP, d->address, "its chunks are not stored as Zarr has them");
	return 0;
}

static void add_reference(struct writer *w, uint64_t address, uint64_t size)
{
	h5_buf_byte(&w->piece, '[');
	h5_buf_add(&w->piece, w->url.data, w->url.size);
	h5_buf_printf(&w->piece, ",%" PRIu64 ",%" PRIu64 "]", h5_file_superblock(w->v->file)->base + address,
		      size);
}

static int read_chunk(const struct h5_zarr_array *a, const struct h5_zarr_chunk *c, struct h5_buf *out)
{
	struct h5_charge charge = {0};
	uint8_t *data;
	int rc;

	if (c->source == H5_ZARR_MADE)
		return h5_zarr_chunk_make(a, c, out);
	rc = h5_charge_set(&charge, (size_t)c->size);
	if (rc)
		return rc;
	data = malloc((size_t)c->size);
	rc = data ? h5_zarr_chunk_read(a, c, 0, data, (size_t)c->size) : -ENOMEM;
	if (!rc)
		h5_buf_add(out, data, (size_t)c->size);
	free(data);
	h5_charge_release(&charge);
	return rc ? rc : out->err;
}

static int add_inline(struct writer *w, const struct h5_zarr_array *a, const struct h5_zarr_chunk *c)
{
	struct h5_buf data;
	int rc;

	h5_buf_init(&data, SIZE_MAX);
	rc = read_chunk(a, c, &data);
	if (!rc) {
		h5_buf_text(&w->piece, "\"base64:");
		h5_base64(&w->piece, (const uint8_t *)data.data, data.size);
		h5_buf_byte(&w->piece, '"');
	}
	h5_buf_release(&data);
	return rc;
}

static int put_chunk(struct writer *w, const struct h5_zarr_array *a, const struct h5_zarr_chunk *c,
		     uint64_t number)
{
	char name[H5_ZARR_NAME_MAX + 1];
	int rc = 0;

	h5_zarr_chunk_name(a, number, name);
	add_key(w, name);
	if (c->source == H5_ZARR_STORED && is_in_file(w->v, a->dataset))
		add_reference(w, c->stored.wanted.chunk.address, c->size);
	else if (c->source == H5_ZARR_ROWS && can_refer(w->v, a))
		add_reference(w, a->dataset->layout.contiguous.address + c->begin, c->size);
	else
		rc = add_inline(w, a, c);
	return rc ? rc : put(w);
}

static int put_chunks(struct writer *w, const struct h5_zarr_array *a, size_t entry, uint64_t number)
{
	struct h5_chunk_cursor cursor = {0};
	struct h5_zarr_chunk chunk;
	int rc = 0;

	while (!rc && !is_done(w)) {
		rc = h5_zarr_chunk_next(a, &cursor, &number, a->chunks);
		if (rc || number >= a->chunks)
			break;
		rc = add_sample(w, entry, number);
		if (!rc)
			rc = h5_zarr_chunk_find(a, &cursor, number, &chunk);
		if (!rc)
			rc = put_chunk(w, a, &chunk, number);
		number++;
	}
	if (a->dataset->index)
		h5_chunk_cursor_release(a->dataset->index, &cursor);
	return rc;
}

/* ---- objects ---- */

static int set_prefix(struct writer *w, const char *path)
{
	w->prefix.size = 0;
	h5_json_text(&w->prefix, path);
	if (w->prefix.err)
		return w->prefix.err;
	w->prefix.size--; /* the quote */
	if (*path)
		h5_buf_byte(&w->prefix, '/');
	return w->prefix.err;
}

/* The text of an entry from a chunk on, or from its begin. */
static int put_object(struct writer *w, const struct h5_view *o, size_t entry, uint64_t number)
{
	struct h5_zarr_array a;
	int rc = w->url.err;

	if (!rc)
		rc = set_prefix(w, w->index->paths.data + w->index->entries[entry].path);
	if (!rc && o->dataset)
		rc = h5_zarr_array_get(o, H5_ZARR_V2, &a);
	if (!rc && o->dataset)
		rc = plan(w->v, &a);
	if (!rc && number == HEAD_OF_OBJECT) {
		rc = add_sample(w, entry, number);
		if (!rc)
			rc = put_metadata(w, o, o->dataset ? &a : NULL);
		number = 0;
	}
	return rc || !o->dataset ? rc : put_chunks(w, &a, entry, number);
}

static int put_text(struct writer *w, const char *text)
{
	h5_buf_text(&w->piece, text);
	return put(w);
}

static void writer_init(struct writer *w, const struct h5_view *v, struct index *index)
{
	*w = (struct writer){.v = v, .index = index};
	h5_buf_init(&w->prefix, 1 << 20);
	h5_buf_init(&w->url, 1 << 20);
	h5_buf_init(&w->piece, SIZE_MAX);
	h5_json_text(&w->url, v->tree->url ? v->tree->url : "");
}

static void writer_release(struct writer *w)
{
	h5_buf_release(&w->prefix);
	h5_buf_release(&w->url);
	h5_buf_release(&w->piece);
}

/* ---- the index ---- */

static void index_free(void *value)
{
	struct index *ix = value;

	free(ix->entries);
	free(ix->samples);
	h5_charge_release(&ix->entries_charge);
	h5_charge_release(&ix->samples_charge);
	h5_buf_release(&ix->paths);
	free(ix);
}

/* As it is below: it must have the ops by which the objects of the Zarr tree are shown. */
static struct h5_view zarr_root(const struct h5_view *v)
{
	return (struct h5_view){.ops = &h5_view_zarr,
				.file = v->file,
				.address = v->address,
				.tree = v->tree,
				.context = v->context,
				.state = v->state};
}

static int add_entry(struct index *ix, const struct h5_zarr_tree *tree)
{
	int rc = h5_array_reserve(&ix->entries, &ix->capacity, ix->count + 1, &ix->entries_charge);

	if (rc)
		return rc;
	ix->entries[ix->count++] = (struct entry){tree->object.file, tree->object.address, ix->paths.size};
	h5_buf_add(&ix->paths, tree->path.data, tree->path.size);
	h5_buf_byte(&ix->paths, 0);
	return ix->paths.err;
}

/* Measures the present object. One that cannot be shown whole is left out. */
static int measure_object(struct writer *w, const struct h5_zarr_tree *tree)
{
	struct index *ix = w->index;
	const size_t count = ix->count, paths = ix->paths.size, samples = ix->sample_count;
	const uint64_t at = w->at;
	int rc = add_entry(ix, tree);

	if (!rc)
		rc = put_object(w, &tree->object, count, HEAD_OF_OBJECT);
	if (!rc || h5_is_passing(rc) || rc == -EFBIG || !count)
		return rc;
	if (w->v->tree->log)
		w->v->tree->log("kerchunk.json: %s is left out: %s", ix->paths.data + paths,
				h5_error_last()->code == rc ? h5_error_last()->text : strerror(-rc));
	ix->count = count;
	ix->paths.size = paths;
	ix->sample_count = samples;
	w->at = at;
	w->piece.size = 0;
	return 0;
}

static int measure(struct writer *w)
{
	const struct h5_view root = zarr_root(w->v);
	struct h5_zarr_tree tree;
	int rc;

	h5_zarr_tree_begin(&tree, &root);
	w->measures = true;
	rc = put_text(w, HEAD);
	while (!rc && (rc = h5_zarr_tree_next(&tree)) > 0)
		rc = measure_object(w, &tree);
	h5_zarr_tree_end(&tree);
	if (!rc)
		rc = put_text(w, TAIL);
	w->index->size = w->at;
	return rc;
}

static int index_load(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	struct index *ix = calloc(1, sizeof *ix);
	struct writer w;
	int rc;

	(void)file;
	(void)address;
	if (!ix)
		return -ENOMEM;
	h5_buf_init(&ix->paths, PATHS_MOST);
	writer_init(&w, arg, ix);
	rc = measure(&w);
	writer_release(&w);
	if (rc) {
		index_free(ix);
		return rc;
	}
	/* The cache counts them from here on. */
	h5_charge_release(&ix->entries_charge);
	h5_charge_release(&ix->samples_charge);
	h5_charge_release(&ix->paths.charge);
	*value = ix;
	*cost = sizeof *ix + ix->capacity * sizeof *ix->entries + ix->sample_capacity * sizeof *ix->samples +
		ix->paths.capacity;
	return 0;
}

static const struct h5_block_type index_type = {{"index of kerchunk.json", index_free}, index_load};

static int get_index(const struct h5_view *v, struct h5_lru_entry **ref, const struct index **index)
{
	int rc = h5_file_block(v->file, &index_type, v->address, v->state, v, ref);

	*index = rc ? NULL : h5_lru_value(*ref);
	return rc;
}

/* ---- the view ---- */

static int kerchunk_shows(const struct h5_view *v)
{
	return v->object->kind == H5_OBJECT_GROUP ? 0 : -ENOENT;
}

static int kerchunk_open(struct h5_view *v, bool reading)
{
	const struct index *index;
	int rc = get_index(v, &v->ref, &index);

	(void)reading;
	if (!rc)
		v->size = index->size;
	return rc;
}

static void kerchunk_release(struct h5_view *v)
{
	h5_file_put(v->file, v->ref);
	v->ref = NULL;
}

/* The text of an entry, whose object is looked up again. */
static int put_entry(struct writer *w, size_t i, uint64_t number)
{
	const struct entry *entry = &w->index->entries[i];
	const struct h5_view root = zarr_root(w->v);
	struct h5_view o = h5_zarr_view(&root, entry->file, entry->address);
	int rc = h5_view_begin(&o, NULL);

	if (!rc)
		rc = put_object(w, &o, i, number);
	h5_view_release(&o);
	return rc;
}

static int write_range(struct writer *w)
{
	const struct index *ix = w->index;
	size_t after = h5_lower_bound(i, ix->sample_count, ix->samples[i].offset <= w->from), i = 0;
	uint64_t number = HEAD_OF_OBJECT;
	int rc = 0;

	if (after) {
		const struct sample *sample = &ix->samples[after - 1];

		w->at = sample->offset;
		i = sample->entry;
		number = sample->number;
	} else {
		rc = put_text(w, HEAD);
	}
	for (; !rc && i < ix->count && !is_done(w); i++, number = HEAD_OF_OBJECT)
		rc = put_entry(w, i, number);
	if (!rc && !is_done(w))
		rc = put_text(w, TAIL);
	if (!rc && w->at < w->to)
		rc = h5_fail(-EUCLEAN, w->v->address, "kerchunk.json: an object has changed");
	return rc;
}

static int kerchunk_read(const struct h5_view *v, uint64_t offset, void *buf, size_t n)
{
	/* Nothing of the index changes unless the writer measures. */
	struct index *index = (struct index *)(uintptr_t)h5_lru_value(v->ref);
	struct writer w;
	int rc;

	writer_init(&w, v, index);
	w.from = offset;
	w.to = offset + n;
	w.out = buf;
	rc = write_range(&w);
	writer_release(&w);
	return rc;
}

const struct h5_view_ops h5_view_kerchunk = {.name = "kerchunk.json",
					     .shows = kerchunk_shows,
					     .open = kerchunk_open,
					     .read = kerchunk_read,
					     .release = kerchunk_release};
