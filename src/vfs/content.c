/* Contents of files: a dataset's bytes or lines, a committed datatype's DDL. */
#include "vfs/private.h"

#include "base/checked.h"
#include "base/error.h"
#include "object/message.h"
#include "store/statistics.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum {
	IN_ORDER = 4 << 20, /* bytes that reads in order may be apart */
	READS = 2,	    /* in order, before something is done ahead */
};

enum h5_format h5_content_format(const struct h5_dataset *dataset)
{
	const struct h5_datatype *type = dataset->type;

	if (h5_datatype_is_fixed(type))
		return H5_FORMAT_RAW;
	return type->class == H5_CLASS_VLEN && type->vlen.is_string ? H5_FORMAT_LINES : H5_FORMAT_JSONL;
}

struct h5_text_source h5_content_source(struct h5_vfs *vfs, const struct h5_dataset *dataset)
{
	bool lines = h5_content_format(dataset) == H5_FORMAT_LINES;

	return (struct h5_text_source){.form = lines ? &h5_text_lines : &h5_text_jsonl,
				       .context = h5_paths_context(vfs, dataset->file),
				       .address = dataset->address,
				       .type = dataset->type,
				       .space = &dataset->space,
				       .dataset = dataset};
}

int h5_content_ddl(struct h5_file *file, uint64_t address, struct h5_buf *out)
{
	const struct h5_object *object;
	struct h5_datatype *type = NULL;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, address, &ref, &object);

	if (rc)
		return rc;
	rc = h5_object_datatype(file, object, &type);
	if (rc == -ENODATA)
		rc = h5_fail(-EUCLEAN, address, "no datatype message");
	if (!rc) {
		h5_datatype_ddl(type, false, out);
		h5_buf_byte(out, '\n');
		rc = out->err;
	}
	h5_datatype_free(type);
	h5_file_put(file, ref);
	return rc;
}

/* ---- open files ---- */

static int open_dataset(struct h5_handle *h, const struct h5_node *node)
{
	int rc = h5_dataset_get(node->file, node->address, &h->dataset_ref, &h->dataset);

	if (rc)
		return rc;
	if (h->dataset->size > INT64_MAX)
		return h5_fail(-EOVERFLOW, node->address, "dataset of more than 2^63-1 bytes");
	if (h5_content_format(h->dataset) != H5_FORMAT_RAW) {
		h->lines = h5_content_source(h->vfs, h->dataset);
		return h5_text_get(&h->lines, &h->text_ref, &h->text);
	}
	h5_file_put(node->file, h->dataset_ref);
	h->dataset_ref = NULL;
	h->dataset = NULL;
	return 0;
}

/* An object that was damaged when its name was looked up: why. */
static int open_damaged(const struct h5_node *node)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(node->file, node->address, &ref, &object);

	if (rc)
		return rc;
	h5_file_put(node->file, ref);
	return h5_fail(-EUCLEAN, node->address, "neither group, nor dataset, nor datatype");
}

static int open_node(struct h5_handle *h, const struct h5_node *node)
{
	switch (node->kind) {
	case H5_NODE_DATASET:
		h->is_dataset = true;
		return open_dataset(h, node);
	case H5_NODE_DATATYPE:
		return h5_content_ddl(node->file, node->address, &h->ddl);
	case H5_NODE_VIEW:
		h->is_view = true;
		return h5_views_open(h->vfs, node, true, &h->view);
	case H5_NODE_DAMAGED:
		return open_damaged(node);
	case H5_NODE_DIRECTORY:
	case H5_NODE_VIEWS:
		return -EISDIR;
	default:
		return -ELOOP;
	}
}

/* May run twice. */
static void release_content(struct h5_handle *h)
{
	if (h->is_view)
		h5_view_release(&h->view);
	h->is_view = false;
	h5_file_put(h->file, h->text_ref);
	h5_file_put(h->file, h->dataset_ref);
	h->text_ref = h->dataset_ref = NULL;
	h5_buf_release(&h->ddl);
}

static bool is_change(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
}

static int open_in_mode(struct h5_handle *h, const struct h5_node *node, int flags)
{
	struct h5_account account = {0};
	bool change = is_change(flags);
	int rc;

	if (change && node->kind == H5_NODE_DATASET) {
		h->is_dataset = true;
		h5_lock_to_write(h->vfs);
		rc = h5_write_open(h, node, flags & O_TRUNC);
		h5_unlock(h->vfs);
		return rc;
	}
	do {
		release_content(h);
		h5_reading_begin(h->vfs, &account);
		rc = open_node(h, node);
	} while (h5_reading_again(h->vfs, &account, &rc));
	return !rc && change && !h->is_dataset ? -EPERM : rc;
}

static void handle_free(struct h5_handle *h)
{
	if (h->writer) {
		h5_lock_to_write(h->vfs);
		h5_write_close(h);
		h5_unlock(h->vfs);
	}
	release_content(h);
	free(h);
}

/* With vfs->lock: `by` is 1 or -1. */
static void count_handle(const struct h5_handle *h, int by)
{
	if (h->mode != O_WRONLY)
		h->node->cached += (unsigned)by;
	if (h->mode == O_RDWR)
		h->node->mapped += (unsigned)by;
	if (h->mode != O_RDONLY)
		h->node->writing += (unsigned)by;
}

/* With vfs->lock. The kernel adds each byte that it has sent to the size that it knows of a file, also those
 * of an incomplete row. So it takes pages that it keeps for part of the file up to there, and what they have
 * behind the last row are zeros: whoever reads through such pages while rows are written in pieces may get
 * these. Only h5_vfs_read() knows where a file ends. But direct handles can be mapped shared only if the
 * kernel says so; else mapping goes first as long as nobody writes the file. */
static bool is_to_be_direct(const struct h5_handle *h)
{
	if (h->mode == O_WRONLY)
		return true;
	return h->vfs->options.writable && (h->vfs->maps_direct || h->node->writing);
}

void h5_vfs_set_maps_direct(struct h5_vfs *vfs)
{
	vfs->maps_direct = true;
}

bool h5_vfs_is_direct(const struct h5_handle *h)
{
	return h->direct;
}

int h5_vfs_open_file(struct h5_vfs *vfs, struct h5_node *node, int flags, struct h5_handle **handle)
{
	struct h5_handle *h;
	int rc;

	if (is_change(flags) && !vfs->options.writable)
		return -EROFS;
	h = calloc(1, sizeof *h);
	if (!h)
		return -ENOMEM;
	h->vfs = vfs;
	h->node = node;
	h->mode = flags & O_ACCMODE;
	h->file = node->file;
	h->address = node->address;
	h5_buf_init(&h->ddl, SIZE_MAX);
	rc = open_in_mode(h, node, flags);
	if (rc) {
		handle_free(h);
		return rc;
	}
	pthread_mutex_lock(&vfs->lock);
	DL_PREPEND(vfs->handles, h);
	node->references++;
	h->direct = is_to_be_direct(h);
	count_handle(h, 1);
	pthread_mutex_unlock(&vfs->lock);
	*handle = h;
	return 0;
}

void h5_vfs_close_file(struct h5_handle *h)
{
	pthread_mutex_lock(&h->vfs->lock);
	DL_DELETE(h->vfs->handles, h);
	count_handle(h, -1);
	pthread_mutex_unlock(&h->vfs->lock);
	h5_vfs_forget(h->vfs, h->node, 1);
	handle_free(h);
}

void h5_handles_close(struct h5_vfs *vfs)
{
	while (vfs->handles)
		h5_vfs_close_file(vfs->handles);
}

/* ---- reading ---- */

/* The larger of what others have stored and of the value. */
static void raise(atomic_uint_fast64_t *to, uint64_t value)
{
	uint_fast64_t now = atomic_load(to);

	while (now < value && !atomic_compare_exchange_weak(to, &now, value))
		;
}

/* Who reads in order gets what comes next decoded meanwhile. The kernel's own reading ahead comes in several
 * requests at once, so in nearly this order. A mount for writing does without: nothing may be decoded while
 * something changes. */
static void read_ahead(struct h5_handle *h, const struct h5_dataset *dataset, uint64_t offset, size_t n)
{
	uint64_t read_to = h->read_to, window, from, to;
	uint_fast64_t ahead = h->ahead;

	if (h->vfs->options.writable)
		return;
	if (offset > read_to + IN_ORDER || read_to > offset + IN_ORDER) {
		h->in_order = 0;
		h->read_to = h->ahead = offset + n;
		return;
	}
	raise(&h->read_to, offset + n);
	if (h->in_order < READS) {
		h->in_order++;
		return;
	}
	window = h5_dataset_ahead(dataset);
	read_to = h->read_to;
	from = h5_max(read_to, ahead);
	to = h5_min(dataset->size, read_to + window);
	/* Who does not get to claim it leaves it to who did. */
	if (window && from < to && atomic_compare_exchange_strong(&h->ahead, &ahead, to))
		h5_dataset_read_ahead(dataset, from, to - from);
}

/* The dataset as it is shown now; h5_file_put(). */
static int get_raw(const struct h5_handle *h, struct h5_lru_entry **ref, const struct h5_dataset **dataset)
{
	return h5_dataset_get(h->file, h->address, ref, dataset);
}

static int read_raw(struct h5_handle *h, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc = get_raw(h, &ref, &dataset);

	if (rc)
		return rc;
	if (dataset->size > INT64_MAX)
		rc = h5_fail(-EOVERFLOW, h->address, "dataset of more than 2^63-1 bytes");
	else if (offset < dataset->size)
		*got = (size_t)h5_min(n, dataset->size - offset);
	if (*got) {
		read_ahead(h, dataset, offset, *got);
		rc = h5_dataset_read(dataset, offset, buf, *got);
	}
	h5_file_put(h->file, ref);
	return rc;
}

static int read_view_as(struct h5_handle *h, const struct h5_view *v, uint64_t offset, void *buf, size_t n,
			size_t *got)
{
	if (offset >= v->size)
		return 0;
	*got = (size_t)h5_min(n, v->size - offset);
	if (offset >= v->dataset_from)
		read_ahead(h, v->dataset, offset - v->dataset_from, *got);
	return h5_view_read(v, offset, buf, *got);
}

/* What has been changed since it was opened is opened anew. */
static int read_view(struct h5_handle *h, uint64_t offset, void *buf, size_t n, size_t *got)
{
	struct h5_view now;
	int rc;

	if (h->view.state == h5_state(h->vfs, h->file))
		return read_view_as(h, &h->view, offset, buf, n, got);
	rc = h5_views_open(h->vfs, h->node, true, &now);
	if (!rc)
		rc = read_view_as(h, &now, offset, buf, n, got);
	h5_view_release(&now);
	return rc;
}

static int read_handle(struct h5_handle *h, uint64_t offset, void *buf, size_t n, size_t *got)
{
	uint64_t size = h->text ? h5_text_size(h->text) : h->ddl.size;

	if (h->is_view)
		return read_view(h, offset, buf, n, got);
	if (h->is_dataset && !h->text)
		return read_raw(h, offset, buf, n, got);
	if (offset >= size)
		return 0;
	*got = (size_t)h5_min(n, size - offset);
	if (h->text)
		return h5_text_read(&h->lines, h->text, offset, buf, *got);
	memcpy(buf, h->ddl.data + offset, *got);
	return 0;
}

int h5_vfs_read(struct h5_handle *h, uint64_t offset, void *buf, size_t n, size_t *got)
{
	struct h5_account account = {0};
	int rc;

	do {
		*got = 0;
		h5_reading_begin(h->vfs, &account);
		rc = read_handle(h, offset, buf, n, got);
	} while (h5_reading_again(h->vfs, &account, &rc));
	h5_count(&h->vfs->bytes_read, *got);
	return rc;
}

/* ---- holes ---- */

static bool is_mapped(const struct h5_handle *h)
{
	bool mapped;

	pthread_mutex_lock(&h->vfs->lock);
	mapped = h->node->mapped;
	pthread_mutex_unlock(&h->vfs->lock);
	return mapped;
}

/* *size: of the file, and what there is no hole before. */
static int seek_raw(const struct h5_handle *h, uint64_t offset, bool hole, uint64_t *found, uint64_t *size)
{
	const uint64_t limit = h5_vfs_size_limit(h->vfs, h->node);
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc = get_raw(h, &ref, &dataset);

	if (rc)
		return rc;
	*size = h5_min(dataset->size, limit);
	*found = hole ? *size : offset;
	/* Of pages that are mapped and dirty, the kernel has told nothing. */
	if (offset < *size && *size <= INT64_MAX && !is_mapped(h))
		rc = h5_dataset_seek(dataset, offset, hole, found);
	*found = h5_min(*found, *size);
	h5_file_put(h->file, ref);
	return rc;
}

int h5_vfs_seek(struct h5_handle *h, uint64_t offset, bool hole, uint64_t *found)
{
	uint64_t size = h->is_view ? h->view.size : h->text ? h5_text_size(h->text) : h->ddl.size;
	struct h5_account account = {0};
	int rc = 0;

	*found = hole ? size : offset;
	if (h->is_dataset && !h->text) {
		do {
			h5_reading_begin(h->vfs, &account);
			rc = seek_raw(h, offset, hole, found, &size);
		} while (h5_reading_again(h->vfs, &account, &rc));
	}
	if (!rc && (offset >= size || (!hole && *found >= size)))
		return -ENXIO;
	return rc;
}
