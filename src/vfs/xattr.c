/* Extended attributes (doc/h5fs.1, EXTENDED ATTRIBUTES): those of the object, and those that h5fs adds. These
 * are properties of the object, h5fs.NAME: each has a function, and one table has them all; h5fs.info is made
 * from that table. */
#include "vfs/private.h"

#include "base/error.h"
#include "object/file_space.h"
#include "object/filter_list.h"
#include "object/json.h"
#include "object/object.h"
#include "vfs/paths.h"
#include "vfs/reading.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* The object whose properties are asked for. */
struct subject {
	struct h5_vfs *vfs;
	struct h5_node *node;
	const struct h5_object *object;
	const struct h5_dataset *dataset; /* NULL: it is no dataset */
	const struct h5_datatype *type;	  /* of a dataset or committed datatype; NULL: none */
};

/* -ENODATA: the object has no such property. */
typedef int property(const struct subject *s, struct h5_buf *out);

static void add_dims(struct h5_buf *out, const uint64_t *dims, unsigned rank)
{
	for (unsigned i = 0; i < rank; i++) {
		if (i)
			h5_buf_byte(out, ',');
		if (dims[i] == H5_UNLIMITED)
			h5_buf_text(out, "inf");
		else
			h5_buf_printf(out, "%" PRIu64, dims[i]);
	}
}

/* ---- of any object ---- */

static int get_class(const struct subject *s, struct h5_buf *out)
{
	static const char *const names[] = {[H5_OBJECT_GROUP] = "group",
					    [H5_OBJECT_DATASET] = "dataset",
					    [H5_OBJECT_DATATYPE] = "datatype"};

	if (s->object->kind == H5_OBJECT_UNKNOWN)
		return -ENODATA;
	h5_buf_text(out, names[s->object->kind]);
	return 0;
}

static int get_address(const struct subject *s, struct h5_buf *out)
{
	h5_buf_printf(out, "%" PRIu64, s->object->address);
	return 0;
}

static int get_mtime(const struct subject *s, struct h5_buf *out)
{
	if (!s->object->has_mtime)
		return -ENODATA;
	h5_buf_printf(out, "%" PRId64, s->object->mtime);
	return 0;
}

static int get_unlisted(const struct subject *s, struct h5_buf *out)
{
	uint64_t count;
	int rc = h5_attributes_unlisted(s->vfs, s->node, &count);

	if (!rc)
		h5_buf_printf(out, "%" PRIu64, count);
	return rc;
}

static int get_superblock(const struct subject *s, struct h5_buf *out)
{
	if (s->node != s->vfs->root)
		return -ENODATA;
	h5_buf_printf(out, "%u", h5_file_superblock(s->node->entity.file)->version);
	return 0;
}

static int get_free(const struct subject *s, struct h5_buf *out)
{
	uint64_t bytes;
	int rc = s->node == s->vfs->root ? h5_file_space_free(s->node->entity.file, &bytes) : -ENODATA;

	if (!rc)
		h5_buf_printf(out, "%" PRIu64, bytes);
	return rc;
}

static int get_stats(const struct subject *s, struct h5_buf *out)
{
	return s->node == s->vfs->root ? h5_vfs_statistics(s->vfs, out) : -ENODATA;
}

static int get_pid(const struct subject *s, struct h5_buf *out)
{
	if (s->node != s->vfs->root)
		return -ENODATA;
	h5_buf_printf(out, "%d", (int)getpid());
	return 0;
}

/* Object comment message: text and a NUL. Specification IV.A.2.n. */
static int get_comment(const struct subject *s, struct h5_buf *out)
{
	const struct h5_message *message = h5_object_find(s->object, H5_MSG_COMMENT);

	if (!message)
		return -ENODATA;
	h5_buf_add(out, message->data, strnlen((const char *)message->data, message->size));
	return out->err;
}

/* ---- of datasets and committed datatypes ---- */

static int get_dtype(const struct subject *s, struct h5_buf *out)
{
	if (!s->type)
		return -ENODATA;
	h5_datatype_numpy(s->type, out);
	return 0;
}

static int get_type(const struct subject *s, struct h5_buf *out)
{
	if (!s->type)
		return -ENODATA;
	h5_datatype_ddl(s->type, true, out);
	return 0;
}

/* ---- of datasets ---- */

static int get_shape(const struct subject *s, struct h5_buf *out)
{
	if (!s->dataset)
		return -ENODATA;
	if (s->dataset->space.kind == H5_SPACE_NULL)
		h5_buf_text(out, "null");
	else
		add_dims(out, s->dataset->space.dims, s->dataset->space.rank);
	return 0;
}

static int get_maxshape(const struct subject *s, struct h5_buf *out)
{
	if (!s->dataset || s->dataset->space.kind == H5_SPACE_NULL)
		return -ENODATA;
	add_dims(out, s->dataset->space.max, s->dataset->space.rank);
	return 0;
}

static int get_layout(const struct subject *s, struct h5_buf *out)
{
	if (!s->dataset)
		return -ENODATA;
	h5_buf_text(out, h5_dataset_layout_name(s->dataset));
	return 0;
}

static bool is_chunked(const struct subject *s)
{
	return s->dataset && h5_dataset_chunks(s->dataset);
}

static int get_chunks(const struct subject *s, struct h5_buf *out)
{
	if (!is_chunked(s))
		return -ENODATA;
	add_dims(out, s->dataset->layout.chunked.dims, s->dataset->layout.chunked.rank);
	return 0;
}

static int get_index(const struct subject *s, struct h5_buf *out)
{
	if (!is_chunked(s))
		return -ENODATA;
	h5_buf_text(out, h5_dataset_index_name(s->dataset));
	return 0;
}

static int get_filters(const struct subject *s, struct h5_buf *out)
{
	if (!is_chunked(s))
		return -ENODATA;
	h5_filter_list_print(&s->dataset->pipeline, out);
	return 0;
}

static int get_fill(const struct subject *s, struct h5_buf *out)
{
	const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};
	struct h5_value_context context = h5_paths_context(s->vfs, s->node->entity.file);

	if (!s->dataset)
		return -ENODATA;
	if (!s->dataset->fill_defined || !s->dataset->fill)
		return 0;
	return h5_value_text(&context, s->dataset->type, &scalar, s->dataset->fill, out);
}

static int get_storage(const struct subject *s, struct h5_buf *out)
{
	uint64_t bytes;
	int rc;

	if (!s->dataset)
		return -ENODATA;
	rc = h5_dataset_storage(s->dataset, &bytes);
	if (!rc)
		h5_buf_printf(out, "%" PRIu64, bytes);
	return rc;
}

static int get_format(const struct subject *s, struct h5_buf *out)
{
	if (!s->dataset)
		return -ENODATA;
	h5_buf_text(out, h5_view_of_dataset(s->dataset)->name);
	return 0;
}

/* ---- all of them ---- */

static int get_info(const struct subject *s, struct h5_buf *out);

static const struct {
	const char *name;
	property *get;
	bool in_info;	/* it is part of h5fs.info: it takes no walk over an index */
	bool is_number; /* in the JSON of h5fs.info */
} properties[] = {
	{"class", get_class, true, false},	 {"dtype", get_dtype, true, false},
	{"type", get_type, true, false},	 {"shape", get_shape, true, false},
	{"maxshape", get_maxshape, true, false}, {"layout", get_layout, true, false},
	{"chunks", get_chunks, true, false},	 {"index", get_index, true, false},
	{"filters", get_filters, true, false},	 {"fill", get_fill, true, false},
	{"format", get_format, true, false},	 {"address", get_address, true, true},
	{"mtime", get_mtime, true, true},	 {"superblock", get_superblock, true, true},
	{"comment", get_comment, true, false},	 {"free", get_free, true, true},
	{"storage", get_storage, false, true},	 {"unlisted", get_unlisted, false, true},
	{"stats", get_stats, false, false},	 {"pid", get_pid, false, true},
	{"info", get_info, false, false},
};

enum { PROPERTIES = sizeof properties / sizeof *properties };

/* A property that there is no room for is left out. */
static void add_to_info(const struct subject *s, unsigned i, struct h5_json *info)
{
	const struct h5_json before = *info;
	size_t size = info->out->size;
	struct h5_buf value;

	h5_buf_init(&value, info->out->limit);
	if (!properties[i].get(s, &value) && !value.err) {
		h5_json_key(info, properties[i].name);
		if (properties[i].is_number)
			h5_buf_add(info->out, value.data, value.size);
		else
			h5_json_string(info->out, value.data, value.size);
	}
	if (info->out->err) {
		*info = before;
		info->out->size = size;
		info->out->err = 0;
	}
	h5_buf_release(&value);
}

static int get_info(const struct subject *s, struct h5_buf *out)
{
	struct h5_json info = h5_json_object(out);

	out->limit--; /* for the bracket that closes it */
	for (unsigned i = 0; i < PROPERTIES; i++)
		if (properties[i].in_info)
			add_to_info(s, i, &info);
	out->limit++;
	h5_json_close(&info);
	return 0;
}

static int get_property(property *get, const struct subject *of, struct h5_buf *out)
{
	struct h5_lru_entry *dataset_ref = NULL;
	struct h5_datatype *committed = NULL;
	struct h5_file *file = of->node->entity.file;
	struct subject s = *of;
	int rc = 0;

	if (s.object->kind == H5_OBJECT_DATASET) {
		rc = h5_dataset_get(file, s.object->address, &dataset_ref, &s.dataset);
		s.type = rc ? NULL : s.dataset->type;
	} else if (s.object->kind == H5_OBJECT_DATATYPE) {
		rc = h5_object_datatype(file, s.object, &committed);
		s.type = committed;
	}
	/* These need only the header, so a dataset that cannot be opened has them, too. */
	if (!rc || get == get_class || get == get_address || get == get_mtime)
		rc = get(&s, out);
	h5_datatype_free(committed);
	h5_file_put(file, dataset_ref);
	return rc ? rc : out->err;
}

static int find_property(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out)
{
	struct subject s = {.vfs = vfs, .node = node};
	struct h5_lru_entry *ref;
	unsigned i = 0;
	int rc;

	while (i < PROPERTIES && strcmp(properties[i].name, name))
		i++;
	if (i == PROPERTIES)
		return -ENODATA;
	rc = h5_object_get(node->entity.file, node->entity.address, &ref, &s.object);
	if (rc)
		return rc;
	rc = get_property(properties[i].get, &s, out);
	h5_file_put(node->entity.file, ref);
	return rc;
}

/* ---- requests ---- */

/* The file of a view has the attributes of the object that it shows. */
static bool has_attributes(const struct h5_node *node)
{
	bool is_object = !node->entity.target || h5_node_is_part(node);

	return !h5_is_added(node->entity.kind) && is_object;
}

/* The part of the name after the prefix; NULL: it has another one. */
static const char *after(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) ? NULL : name + n;
}

static int get(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out)
{
	const char *rest;

	if (!has_attributes(node))
		return -ENODATA;
	out->limit = H5_XATTR_MAX;
	rest = after(name, "user.");
	if (rest)
		return h5_attributes_get(vfs, node, rest, H5_ATTRIBUTE_LISTED, out);
	rest = after(name, "h5fs.raw.");
	if (rest)
		return h5_attributes_get(vfs, node, rest, H5_ATTRIBUTE_RAW, out);
	rest = after(name, "h5fs.type.");
	if (rest)
		return h5_attributes_get(vfs, node, rest, H5_ATTRIBUTE_TYPE, out);
	rest = after(name, "h5fs.");
	return rest ? find_property(vfs, node, rest, out) : -ENODATA;
}

int h5_vfs_getxattr(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out)
{
	struct h5_reading reading = {.vfs = vfs};
	size_t before = out->size;
	int rc;

	while (h5_reading_next(&reading, &rc)) {
		out->size = before;
		out->err = 0;
		rc = get(vfs, node, name, out);
	}
	return rc;
}

int h5_vfs_listxattr(struct h5_vfs *vfs, struct h5_node *node, struct h5_buf *out)
{
	struct h5_reading reading = {.vfs = vfs};
	size_t before = out->size;
	int rc;

	while (h5_reading_next(&reading, &rc)) {
		out->size = before;
		out->err = 0;
		rc = has_attributes(node) ? h5_attributes_list(vfs, node, out) : 0;
	}
	return rc;
}
