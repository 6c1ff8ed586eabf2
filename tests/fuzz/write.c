/* Writes datasets of a file, commits, opens it again, and compares with what was acknowledged. */
#include "write.h"

#include "base/error.h"
#include "dataset/dataset.h"
#include "fuzz.h"
#include "mount.h"
#include "vfs/handle.h"
#include "vfs/node.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum {
	DATASETS = 8,	     /* that are written */
	BYTES_MAX = 1 << 18, /* bytes of a dataset that is */
};

/* What one dataset should read like. */
struct model {
	uint64_t address;
	uint64_t row; /* bytes; 0: it cannot grow */
	struct h5_handle *handle;
	uint8_t data[BYTES_MAX];
	size_t size;
	bool unknown; /* something failed half way */
};

struct scene {
	struct fuzz_mount mount;
	struct model *models; /* DATASETS */
	unsigned count;
	bool honest; /* fuzz_looks_honest(), and its datasets too */
	bool failed; /* a commit: what follows is not promised */
};

static void close_handles(struct scene *s)
{
	for (unsigned i = 0; i < s->count; i++) {
		if (s->models[i].handle)
			h5_vfs_close_file(s->models[i].handle);
		s->models[i].handle = NULL;
	}
}

/* ---- the datasets ---- */

static bool is_checksummed(struct h5_file *file, uint64_t address)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	bool yes;

	if (h5_object_get(file, address, &ref, &object))
		return false;
	yes = object->version >= 2;
	h5_file_put(file, ref);
	return yes;
}

static bool read_model(struct scene *s, struct h5_node *node, struct model *m)
{
	struct h5_handle *handle;
	bool good;

	(void)s;
	if (h5_vfs_open_file(s->mount.vfs, node, O_RDONLY, &handle))
		return false;
	good = !h5_vfs_read(handle, 0, m->data, BYTES_MAX, &m->size);
	h5_vfs_close_file(handle);
	return good;
}

static bool is_lossy(const struct h5_pipeline *pipeline)
{
	const struct h5_filter_ops *filter;

	for (unsigned i = 0; i < pipeline->count; i++) {
		filter = h5_filter_find(pipeline->filters[i].id);
		if (filter && fuzz_is_lossy(filter))
			return true;
	}
	return false;
}

/* A read need not return the bytes that were written. */
static bool is_changed(const struct h5_dataset *dataset)
{
	/* The mount shows text in a form of its own. */
	bool changed = !h5_datatype_is_fixed(dataset->type) || is_lossy(&dataset->pipeline);

	for (unsigned i = 0; dataset->section_pipelines && i < H5_SECTIONS; i++)
		changed |= is_lossy(&dataset->section_pipelines[i]);
	return changed;
}

static void add_dataset(void *arg, struct h5_node *node, const struct stat *st)
{
	struct scene *s = arg;
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	struct model *m = &s->models[s->count];
	bool grows;

	s->honest &= is_checksummed(node->entity.file, node->entity.address);
	if (s->count >= DATASETS || node->entity.kind != H5_NODE_DATASET || st->st_size > BYTES_MAX / 2)
		return;
	for (unsigned i = 0; i < s->count; i++)
		if (s->models[i].address == node->entity.address)
			return;
	if (h5_dataset_get(node->entity.file, node->entity.address, &ref, &dataset))
		return;
	m->address = node->entity.address;
	m->unknown = is_changed(dataset);
	grows = dataset->layout.class == H5_LAYOUT_CHUNKED || dataset->layout.class == H5_LAYOUT_STRUCTURED;
	m->row = grows && dataset->space.rank ? dataset->type->size : 0;
	for (unsigned i = 1; i < dataset->space.rank && m->row <= BYTES_MAX; i++)
		m->row *= dataset->space.dims[i] <= BYTES_MAX ? dataset->space.dims[i] : 0;
	h5_file_put(node->entity.file, ref);
	fuzz_request(&s->mount.budget);
	if (!read_model(s, node, m))
		return;
	/* The node lives as long as a handle is open. */
	fuzz_request(&s->mount.budget);
	if (!h5_vfs_open_file(s->mount.vfs, node, O_WRONLY, &m->handle))
		s->count++;
}

/* ---- what is done ---- */

/* A commit has failed, or a change: for a file that nobody has tampered with there is no reason to. */
static void note(struct scene *s, struct model *m, int rc)
{
	if (rc == -EINTR || rc == -ENOMEM)
		m->unknown = true;
	s->failed |= rc && !h5_is_passing(rc) && rc != -EFBIG && rc != -EINVAL && rc != -EPERM;
}

static void told(struct scene *s, struct model *m, uint64_t stale)
{
	if (stale != H5_NOT_STALE)
		h5_vfs_tell_size(s->mount.vfs, m->handle->node);
}

static void write_at(struct scene *s, struct model *m, uint64_t offset, size_t n, uint8_t value,
		     enum h5_write_where where)
{
	uint8_t *bytes = malloc(n ? n : 1);
	size_t written;
	uint64_t stale;
	int rc;

	FUZZ_HOLDS(bytes);
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(value + i * 7);
	fuzz_request(&s->mount.budget);
	rc = h5_vfs_write(m->handle, offset, bytes, n, where, &written, &stale);
	note(s, m, rc);
	told(s, m, stale);
	if (!rc) {
		FUZZ_HOLDS(written <= n && offset + written <= BYTES_MAX);
		memcpy(m->data + offset, bytes, written);
		if (offset + written > m->size)
			m->size = (size_t)offset + written;
	}
	free(bytes);
}

static void append(struct scene *s, struct model *m, unsigned rows, uint8_t value)
{
	size_t n = rows * (size_t)m->row;

	if (m->row && m->row <= BYTES_MAX && n <= BYTES_MAX - m->size)
		write_at(s, m, m->size, n, value, H5_WRITE_APPEND);
}

static void overwrite(struct scene *s, struct model *m, unsigned where, size_t n, uint8_t value)
{
	size_t offset = m->size * where / 256;

	write_at(s, m, offset, n < m->size - offset ? n : m->size - offset, value, H5_WRITE_AT);
}

/* Rows that are added read as something: what, is told by reading. */
static void truncate_to(struct scene *s, struct model *m, unsigned where)
{
	uint64_t stale, size = m->row ? (m->size * where / 128) / m->row * m->row : m->size * where / 128;
	struct h5_handle *handle;
	size_t got = 0;
	int rc;

	if (size > BYTES_MAX)
		return;
	fuzz_request(&s->mount.budget);
	rc = h5_vfs_truncate(s->mount.vfs, m->handle->node, m->handle, size, &stale);
	note(s, m, rc);
	told(s, m, stale);
	/* What keeps its size gets new contents, which are dropped unless they become as long. */
	if (!rc && !m->row && size != m->size)
		m->unknown = true;
	if (rc)
		return;
	if (size > m->size && !h5_vfs_open_file(s->mount.vfs, m->handle->node, O_RDONLY, &handle)) {
		rc = h5_vfs_read(handle, m->size, m->data + m->size, (size_t)size - m->size, &got);
		h5_vfs_close_file(handle);
		m->unknown |= rc || got != size - m->size;
	}
	m->size = (size_t)size;
}

static void check(struct scene *s, struct model *m, struct h5_node *node)
{
	static uint8_t data[BYTES_MAX];
	struct h5_handle *handle;
	size_t got;
	int rc;

	fuzz_request(&s->mount.budget);
	if (h5_vfs_open_file(s->mount.vfs, node, O_RDONLY, &handle)) {
		FUZZ_HOLDS(!s->honest || s->failed || m->unknown || s->mount.budget.checks < 0);
		return;
	}
	rc = h5_vfs_read(handle, 0, data, BYTES_MAX, &got);
	h5_vfs_close_file(handle);
	if (!s->honest || s->failed || m->unknown || s->mount.budget.checks < 0)
		return;
	FUZZ_HOLDS(!rc && got == m->size && !memcmp(data, m->data, got));
}

static void operate(struct scene *s, const uint8_t *op)
{
	struct model *m = &s->models[op[1] % s->count];

	switch (op[0] % 8) {
	case 0:
	case 1:
		append(s, m, op[2] % 32u * (op[3] % 4 ? 1 : 16), op[4]);
		break;
	case 2:
		overwrite(s, m, op[2], op[3] * (size_t)(op[4] % 16 ? 1 : 64), op[5]);
		break;
	case 3:
		truncate_to(s, m, op[2]);
		break;
	case 4:
		fuzz_request(&s->mount.budget);
		note(s, m, h5_vfs_fsync(m->handle));
		break;
	case 5:
		fuzz_request(&s->mount.budget);
		note(s, m, h5_vfs_flush(m->handle));
		break;
	case 6:
		fuzz_request(&s->mount.budget);
		note(s, m, h5_vfs_commit(s->mount.vfs));
		break;
	default:
		check(s, m, m->handle->node);
	}
}

/* ---- afterwards ---- */

static void check_file(void *arg, struct h5_node *node, const struct stat *st)
{
	struct scene *s = arg;

	(void)st;
	for (unsigned i = 0; i < s->count; i++)
		if (s->models[i].address == node->entity.address)
			check(s, &s->models[i], node);
}

static void use_file(struct scene *s, const uint8_t *operations)
{
	struct fuzz_walk walk = {.budget = &s->mount.budget, .file = add_dataset, .arg = s};
	bool finished;

	if (!fuzz_mount_open(&s->mount, true))
		return;
	walk.vfs = s->mount.vfs;
	fuzz_walk(&walk);
	s->honest &= !fuzz_mount_damage(&s->mount, &finished) && finished && !fuzz_wrong_checksums &&
		     s->mount.budget.nodes > 0;
	for (unsigned i = 0; s->count && i + FUZZ_OPERATION <= FUZZ_OPERATIONS; i += FUZZ_OPERATION)
		operate(s, operations + i);
	fuzz_request(&s->mount.budget);
	s->failed |= h5_vfs_commit(s->mount.vfs) != 0;
	close_handles(s);
	fuzz_mount_close(&s->mount);
	s->mount.budget = (struct fuzz_budget)FUZZ_BUDGET;
	fuzz_wrong_checksums = 0;
	if (!fuzz_mount_open(&s->mount, false)) {
		FUZZ_HOLDS(!s->honest || s->failed);
		return;
	}
	walk.vfs = s->mount.vfs;
	walk.file = check_file;
	fuzz_walk(&walk);
	FUZZ_HOLDS(!s->honest || s->failed ||
		   (!fuzz_mount_damage(&s->mount, &finished) && !fuzz_wrong_checksums));
	fuzz_mount_close(&s->mount);
}

void fuzz_write(const void *arg, const uint8_t *data, size_t size)
{
	static struct model models[DATASETS + 1];
	struct scene s = {.models = models};

	(void)arg;
	if (size < FUZZ_OPERATIONS)
		return;
	size -= FUZZ_OPERATIONS;
	fuzz_mount_begin(&s.mount, data, size);
	s.honest = fuzz_looks_honest(data, size);
	fuzz_wrong_checksums = 0;
	use_file(&s, data + size);
	fuzz_mount_end();
}
