/* The tree as a Zarr group, of version 2 or 3: each group and each dataset is a directory, with files of
 * metadata and of chunks.
 *
 *   version 2    .zgroup .zattrs       of a group; the root has .zmetadata: those of all objects
 *                .zarray .zattrs 0.0   of a dataset, and its chunks by their coordinates
 *   version 3    zarr.json             of both; that of the root has those of all objects in it
 *                c/0/0                 chunks of a dataset */
#include "view/zarr.h"
#include "view/document.h"
#include "view/views.h"

#include "base/checked.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum h5_zarr_version version_of(const struct h5_view *view)
{
	return view->ops == &h5_view_zarr3 ? H5_ZARR_V3 : H5_ZARR_V2;
}

static int zarr_shows(const struct h5_view *v)
{
	struct h5_zarr_array array;
	bool is_bare = false;
	int rc;

	if (!v->dataset)
		return v->object->kind == H5_OBJECT_GROUP ? 0 : -ENOENT;
	rc = h5_zarr_array_init(&array, version_of(v), v->dataset);
	if (!rc)
		rc = h5_zarr_is_bare_dimension(v->file, v->object, &is_bare);
	return rc ? rc : is_bare ? -ENOENT : 0;
}

static bool is_root(const struct h5_view *v)
{
	return v->file == v->tree->file && v->address == v->tree->root;
}

/* ---- documents ---- */

/* Appends a document in ASCII. */
static int make_ascii(const struct h5_view *v, int (*make)(const struct h5_view *v, struct h5_buf *out),
		      struct h5_buf *out)
{
	struct h5_buf json;
	int rc;

	h5_buf_init(&json, out->limit);
	rc = make(v, &json);
	h5_zarr_add_ascii(out, &json);
	h5_buf_release(&json);
	return rc ? rc : out->err;
}

static int make_group(const struct h5_view *v, struct h5_buf *out)
{
	(void)v;
	h5_zarr_add_group(out);
	return out->err;
}

static int write_attributes(const struct h5_view *v, struct h5_buf *out)
{
	struct h5_zarr_array array;
	int rc = v->dataset ? h5_zarr_array_get(v, version_of(v), &array) : 0;

	return rc ? rc : h5_zarr_add_attributes(v, v->dataset ? &array : NULL, out);
}

static int write_array(const struct h5_view *v, struct h5_buf *out)
{
	struct h5_zarr_array array;
	int rc = h5_zarr_array_get(v, version_of(v), &array);

	return rc ? rc : h5_zarr_add_array(v, &array, out);
}

static int make_attributes(const struct h5_view *v, struct h5_buf *out)
{
	return make_ascii(v, write_attributes, out);
}

static int make_array(const struct h5_view *v, struct h5_buf *out)
{
	return make_ascii(v, write_array, out);
}

static const struct h5_document group_document = {H5_DOCUMENT_KIND("Zarr group"), H5_ZARR_METADATA_MAX,
						  make_group},
				attributes_document = {H5_DOCUMENT_KIND("Zarr attributes"),
						       H5_ZARR_METADATA_MAX, make_attributes},
				array_document = {H5_DOCUMENT_KIND("Zarr array"), H5_ZARR_METADATA_MAX,
						  make_array};

/* Adds a document of the present object to those of all. One that cannot be made is left out. */
static int add_document(const struct h5_zarr_tree *tree, const struct h5_document *kind, const char *name,
			struct h5_json *all)
{
	struct h5_buf text, path;
	int rc;

	h5_buf_init(&text, kind->most);
	h5_buf_init(&path, SIZE_MAX);
	rc = kind->make(&tree->object, &text);
	h5_buf_add(&path, tree->path.data, tree->path.size);
	h5_buf_text(&path, *name && path.size ? "/" : "");
	h5_buf_text(&path, name);
	h5_buf_byte(&path, 0);
	rc = rc ? rc : text.err ? text.err : path.err;
	if (!rc)
		h5_buf_add(h5_json_key(all, path.data), text.data, text.size);
	h5_buf_release(&text);
	h5_buf_release(&path);
	return h5_is_passing(rc) || rc == -EFBIG ? rc : all->out->err;
}

static int add_node_v3(const struct h5_view *v, struct h5_json *object);

static int write_part_v3(const struct h5_view *v, struct h5_buf *out)
{
	struct h5_json object;
	int rc;

	if (v->dataset)
		return write_array(v, out);
	object = h5_json_object(out);
	rc = add_node_v3(v, &object);
	h5_json_close(&object);
	return rc;
}

/* Metadata of one object of version 3, without those of others. */
static const struct h5_document part_document = {H5_DOCUMENT_KIND("Zarr metadata"), H5_ZARR_METADATA_MAX,
						 write_part_v3};

static int add_present(const struct h5_zarr_tree *tree, enum h5_zarr_version version, struct h5_json *all)
{
	const struct h5_document *own = tree->object.dataset ? &array_document : &group_document;
	int rc;

	if (version == H5_ZARR_V3)
		return tree->path.size ? add_document(tree, &part_document, "", all) : 0;
	rc = add_document(tree, own, tree->object.dataset ? ".zarray" : ".zgroup", all);
	return rc ? rc : add_document(tree, &attributes_document, ".zattrs", all);
}

static int add_all(const struct h5_view *v, struct h5_json *all)
{
	struct h5_zarr_tree tree;
	int rc = 0;

	h5_zarr_tree_begin(&tree, v);
	while (!rc && (rc = h5_zarr_tree_next(&tree)) > 0)
		rc = add_present(&tree, version_of(v), all);
	h5_zarr_tree_end(&tree);
	return rc;
}

static int write_all_v2(const struct h5_view *v, struct h5_buf *out)
{
	struct h5_json object = h5_json_object(out), all;
	int rc;

	all = h5_json_object(h5_json_key(&object, "metadata"));
	rc = add_all(v, &all);
	h5_json_close(&all);
	h5_json_number(h5_json_key(&object, "zarr_consolidated_format"), 1);
	h5_json_close(&object);
	return rc;
}

/* ---- version 3 ---- */

static int add_node_v3(const struct h5_view *v, struct h5_json *object)
{
	h5_json_number(h5_json_key(object, "zarr_format"), 3);
	h5_json_text(h5_json_key(object, "node_type"), "group");
	return h5_zarr_add_attributes(v, NULL, h5_json_key(object, "attributes"));
}

static int write_node_v3(const struct h5_view *v, struct h5_buf *out)
{
	struct h5_json object, consolidated, all;
	int rc;

	if (v->dataset || !is_root(v))
		return write_part_v3(v, out);
	object = h5_json_object(out);
	rc = add_node_v3(v, &object);
	consolidated = h5_json_object(h5_json_key(&object, "consolidated_metadata"));
	h5_json_text(h5_json_key(&consolidated, "kind"), "inline");
	h5_buf_text(h5_json_key(&consolidated, "must_understand"), "false");
	all = h5_json_object(h5_json_key(&consolidated, "metadata"));
	if (!rc)
		rc = add_all(v, &all);
	h5_json_close(&all);
	h5_json_close(&consolidated);
	h5_json_close(&object);
	return rc;
}

static int make_all_v2(const struct h5_view *v, struct h5_buf *out)
{
	return make_ascii(v, write_all_v2, out);
}

static int make_node_v3(const struct h5_view *v, struct h5_buf *out)
{
	return make_ascii(v, write_node_v3, out);
}

static const struct h5_document all_document = {H5_DOCUMENT_KIND("Zarr metadata of all"),
						H5_ZARR_DOCUMENT_MAX, make_all_v2},
				node_document = {H5_DOCUMENT_KIND("Zarr metadata of an object"),
						 H5_ZARR_DOCUMENT_MAX, make_node_v3};

/* The files of metadata of each kind of objects, in the order of a listing. */
struct metadata {
	const char *name;
	enum h5_zarr_version version;
	bool of_group, of_array, of_root;
	const struct h5_document *document;
};

static const struct metadata metadata[] = {
	{".zgroup", H5_ZARR_V2, true, false, false, &group_document},
	{".zarray", H5_ZARR_V2, false, true, false, &array_document},
	{".zattrs", H5_ZARR_V2, true, true, false, &attributes_document},
	{".zmetadata", H5_ZARR_V2, true, false, true, &all_document},
	{"zarr.json", H5_ZARR_V3, true, true, false, &node_document},
};

enum { METADATA = sizeof metadata / sizeof *metadata };

static bool is_there(const struct h5_view *v, const struct metadata *m)
{
	return m->version == version_of(v) && (v->dataset ? m->of_array : m->of_group) &&
	       (!m->of_root || is_root(v));
}

static const struct h5_document *find_document(const struct h5_view *v, const char *name)
{
	for (size_t i = 0; i < METADATA; i++)
		if (!strcmp(metadata[i].name, name) && is_there(v, &metadata[i]))
			return metadata[i].document;
	return NULL;
}

static bool zarr_is_taken(const char *name, size_t size)
{
	for (size_t i = 0; i < METADATA; i++)
		if (size == strlen(metadata[i].name) && !memcmp(metadata[i].name, name, size))
			return true;
	return false;
}

/* ---- names of chunks ---- */

/* The coordinate at the begin of a name; NULL: there is none, or it is not as we write it. */
static const char *read_coordinate(const char *p, uint64_t *coordinate)
{
	const char *begin = p;

	*coordinate = 0;
	for (; *p >= '0' && *p <= '9'; p++)
		if (!h5_mul(*coordinate, 10, coordinate) ||
		    !h5_add(*coordinate, (uint64_t)(*p - '0'), coordinate))
			return NULL;
	return p == begin || (*begin == '0' && p > begin + 1) ? NULL : p;
}

/* Coordinates that are known, of the first dimensions. */
struct prefix {
	unsigned count;
	uint64_t first, end; /* numbers of the chunks that begin like that */
};

/* -ENOENT: it is no name of a chunk, or of a directory of chunks. */
static int read_name(const struct h5_zarr_array *a, const char *name, struct prefix *prefix)
{
	char separator = a->version == H5_ZARR_V2 ? '.' : '/';
	const char *p = name;
	uint64_t coordinate;

	*prefix = (struct prefix){.end = a->chunks};
	if (a->version == H5_ZARR_V3) {
		if (*p++ != 'c' || (*p && *p++ != separator))
			return -ENOENT;
		if (!*p)
			return p[-1] == 'c' ? 0 : -ENOENT;
	} else if (!a->rank) {
		return strcmp(name, "0") ? -ENOENT : 0;
	}
	for (; prefix->count < a->rank; p++) {
		uint64_t each;

		p = read_coordinate(p, &coordinate);
		if (!p || coordinate >= a->grid[prefix->count])
			return -ENOENT;
		each = (prefix->end - prefix->first) / a->grid[prefix->count++];
		prefix->first += coordinate * each;
		prefix->end = prefix->first + each;
		if (!*p)
			return 0;
		if (*p != separator)
			return -ENOENT;
	}
	return -ENOENT;
}

/* Chunks of version 2 are in one directory; a name of fewer coordinates is none. */
static int zarr_find(const struct h5_view *v, const char *path, bool *is_directory, uint64_t *size)
{
	struct h5_zarr_chunk chunk;
	struct h5_zarr_array a;
	struct prefix prefix;
	int rc;

	*is_directory = false;
	*size = H5_UNDEF;
	if (find_document(v, path))
		return 0;
	rc = v->dataset ? h5_zarr_array_get(v, version_of(v), &a) : -ENOENT;
	if (!rc)
		rc = read_name(&a, path, &prefix);
	if (rc)
		return rc;
	if (prefix.count < a.rank) {
		*is_directory = true;
		return a.version == H5_ZARR_V3 ? 0 : -ENOENT;
	}
	rc = h5_zarr_chunk_find(&a, NULL, prefix.first, &chunk);
	if (!rc && chunk.source != H5_ZARR_MADE)
		*size = chunk.size;
	return rc;
}

/* ---- listings ---- */

static int next_document(const struct h5_view *v, uint64_t *position, char name[256])
{
	while (*position < METADATA) {
		const struct metadata *m = &metadata[(*position)++];

		if (is_there(v, m)) {
			strcpy(name, m->name);
			return 1;
		}
	}
	return 0;
}

/* The next chunk from the number on, or with `each` chunks in a directory, the next directory. *number is
 * that of the first chunk after it. */
static int next_chunk(const struct h5_zarr_array *a, uint64_t *number, uint64_t end, uint64_t each,
		      uint64_t *found)
{
	struct h5_chunk_cursor cursor = {0};
	int rc = h5_zarr_chunk_next(a, &cursor, number, end);

	if (a->dataset->index)
		h5_chunk_cursor_release(a->dataset->index, &cursor);
	if (rc || *number >= end)
		return rc;
	*found = *number;
	*number += each - (*number % each);
	return 1;
}

static int next_in_v2(const struct h5_zarr_array *a, uint64_t *position, char name[256])
{
	uint64_t number = *position - METADATA, found;
	int rc = number < a->chunks ? next_chunk(a, &number, a->chunks, 1, &found) : 0;

	*position = number + METADATA;
	if (rc > 0)
		h5_zarr_chunk_name(a, found, name);
	return rc;
}

/* `path` NULL: the directory of the dataset, which holds `c`. */
static int next_in_v3(const struct h5_zarr_array *a, const char *path, uint64_t *position, char name[256],
		      bool *is_directory)
{
	struct prefix prefix;
	uint64_t number, each, found;
	int rc;

	if (!path) {
		*is_directory = a->rank;
		strcpy(name, "c");
		number = 0;
		if ((*position)++ != METADATA)
			return 0;
		return a->rank ? 1 : next_chunk(a, &number, a->chunks, 1, &found);
	}
	rc = read_name(a, path, &prefix);
	if (rc || prefix.count >= a->rank || *position >= prefix.end - prefix.first)
		return rc;
	each = (prefix.end - prefix.first) / a->grid[prefix.count];
	number = prefix.first + *position;
	rc = next_chunk(a, &number, prefix.end, each, &found);
	*position = number - prefix.first;
	if (rc > 0)
		sprintf(name, "%" PRIu64, (found - prefix.first) / each);
	*is_directory = prefix.count + 1 < a->rank;
	return rc;
}

static int zarr_next(const struct h5_view *v, uint64_t *position, char name[256], bool *is_directory)
{
	struct h5_zarr_array a;
	int rc;

	*is_directory = false;
	if (!v->part && next_document(v, position, name))
		return 1;
	if (!v->dataset)
		return 0;
	rc = h5_zarr_array_get(v, version_of(v), &a);
	if (rc)
		return rc;
	return a.version == H5_ZARR_V2 ? next_in_v2(&a, position, name)
				       : next_in_v3(&a, v->part, position, name, is_directory);
}

/* ---- files ---- */

/* What an open file keeps. */
struct open_chunk {
	struct h5_zarr_array array;
	struct h5_zarr_chunk chunk;
	uint64_t number; /* all that are not stored have the same */
};

static int find_open(const struct h5_view *v, struct open_chunk *c)
{
	struct prefix prefix;
	int rc = h5_zarr_array_get(v, version_of(v), &c->array);

	if (!rc)
		rc = read_name(&c->array, v->part, &prefix);
	if (!rc && prefix.count < c->array.rank)
		rc = -ENOENT;
	if (rc)
		return rc;
	rc = h5_zarr_chunk_find(&c->array, NULL, prefix.first, &c->chunk);
	c->number = c->chunk.elements == H5_ZARR_FILL ? c->array.chunks : prefix.first;
	return rc;
}

static int make_chunk(const struct h5_view *v, struct h5_buf *out)
{
	struct open_chunk c;
	int rc = find_open(v, &c);

	return rc ? rc : h5_zarr_chunk_make(&c.array, &c.chunk, out);
}

/* A chunk that is encoded anew may be longer than its elements. */
static const struct h5_document chunk_document = {H5_DOCUMENT_KIND("Zarr chunk"), (size_t)1 << 31,
						  make_chunk};

static int open_chunk(struct h5_view *v)
{
	struct open_chunk *c = v->mine = calloc(1, sizeof *c);
	int rc = c ? find_open(v, c) : -ENOMEM;

	if (rc)
		return rc;
	v->size = c->chunk.size;
	return c->chunk.source == H5_ZARR_MADE ? h5_document_open(v, &chunk_document, c->number) : 0;
}

static int zarr_open(struct h5_view *v, bool reading)
{
	const struct h5_document *document = v->part ? find_document(v, v->part) : NULL;

	(void)reading;
	if (document)
		return h5_document_open(v, document, 0);
	return v->dataset && v->part ? open_chunk(v) : h5_fail(-EISDIR, v->address, "a directory of Zarr");
}

static int zarr_read(const struct h5_view *v, uint64_t offset, void *buf, size_t n)
{
	const struct open_chunk *c = v->mine;

	if (!c)
		return h5_document_read(v, find_document(v, v->part), 0, offset, buf, n);
	if (c->chunk.source == H5_ZARR_MADE)
		return h5_document_read(v, &chunk_document, c->number, offset, buf, n);
	return h5_zarr_chunk_read(&c->array, &c->chunk, offset, buf, n);
}

static const struct h5_view_directory_ops directory = {
	.is_taken = zarr_is_taken, .find = zarr_find, .next = zarr_next};

const struct h5_view_ops h5_view_zarr = {.name = "zarr",
					 .suffix = "",
					 .directory = &directory,
					 .shows = zarr_shows,
					 .open = zarr_open,
					 .read = zarr_read};
const struct h5_view_ops h5_view_zarr3 = {.name = "zarr3",
					  .suffix = "",
					  .directory = &directory,
					  .shows = zarr_shows,
					  .open = zarr_open,
					  .read = zarr_read};
