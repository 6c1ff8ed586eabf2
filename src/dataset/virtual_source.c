#include "dataset/virtual_source.h"

#include "base/buf.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/selection_walk.h"
#include "format/virtual_mapping.h"
#include "object/global_heap.h"
#include "object/object.h"
#include "object/path.h"
#include "store/file_set.h"

#include <inttypes.h>
#include <string.h>

enum {
	NAME_MOST = 1 << 16,
	SOURCES_MOST = 1 << 20, /* most sources that the extent of one dataset may depend on */
};

/* Replaces %b by the number of the block, and %% by a percent sign. */
static void expand_name(const char *name, uint64_t block, struct h5_buf *out)
{
	for (; *name; name++) {
		if (name[0] == '%' && name[1] == 'b')
			h5_buf_printf(out, "%" PRIu64, block);
		else
			h5_buf_byte(out, *name);
		name += name[0] == '%' && (name[1] == 'b' || name[1] == '%');
	}
	h5_buf_byte(out, 0);
}

static bool counts_blocks(const char *name)
{
	for (; *name; name++) {
		if (name[0] == '%' && name[1] == 'b')
			return true;
		name += name[0] == '%' && name[1] == '%';
	}
	return false;
}

static int find_in_file(struct h5_file *file, const char *name, struct h5_file **found_in, uint64_t *address)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	bool is_dataset;
	int rc = h5_path_find(file, h5_file_superblock(file)->root, name, strlen(name), found_in, address);

	/* Links in a circle lead nowhere. */
	if (rc == -ELOOP)
		return -ENOENT;
	if (!rc)
		rc = h5_object_get(*found_in, *address, &ref, &object);
	if (rc)
		return rc;
	is_dataset = object->kind == H5_OBJECT_DATASET;
	h5_file_put(*found_in, ref);
	return is_dataset ? 0 : -ENOENT;
}

int h5_virtual_find_source(struct h5_file *file, const char *file_name, const char *name, uint64_t block,
			   struct h5_file **found_in, uint64_t *address)
{
	struct h5_buf real_file, real_name;
	int rc;

	h5_buf_init(&real_file, NAME_MOST);
	h5_buf_init(&real_name, NAME_MOST);
	expand_name(file_name, block, &real_file);
	expand_name(name, block, &real_name);
	rc = real_file.err ? real_file.err : real_name.err;
	if (rc)
		h5_fail(rc, H5_UNDEF, "virtual dataset: name of a source");
	else if (strcmp(real_file.data, "."))
		rc = h5_file_set_find(h5_file_set_of(file), file, real_file.data, &file);
	/* As in libhdf5, a file that is not HDF5 is a source that is not there. */
	if (rc == -EINVAL)
		rc = -ENOENT;
	if (!rc)
		rc = find_in_file(file, real_name.data, found_in, address);
	h5_buf_release(&real_file);
	h5_buf_release(&real_name);
	return rc;
}

/* ---- extent ---- */

struct visit {
	unsigned depth;	  /* levels of virtual datasets that may yet follow */
	unsigned sources; /* number of sources that may still be asked */
};

/* The dimensions of one virtual dataset, as far as they are known. */
struct extent {
	struct h5_file *file;
	struct h5_dataspace *space;
	bool unlimited[H5_RANK_MAX]; /* a mapping is unlimited in this dimension */
	uint64_t available[H5_RANK_MAX];
	uint64_t least[H5_RANK_MAX]; /* least extent for the mappings that are limited in this dimension */
	bool unknown;		     /* a source could not be asked */
};

static int current_space(struct h5_file *file, const struct h5_layout *layout, struct h5_dataspace *space,
			 struct visit *visit);

static int decode_message(struct h5_file *file, const struct h5_object *object, enum h5_message_type type,
			  int (*decode)(struct h5_reader *r, void *into), void *into)
{
	const struct h5_message *message = h5_object_find(object, type);
	struct h5_message_body body;
	int rc;

	if (!message)
		return h5_fail(-EUCLEAN, object->address, "dataset: a message is missing");
	rc = h5_message_open(file, message, &body);
	if (rc)
		return rc;
	rc = decode(&body.reader, into);
	h5_message_release(file, &body);
	return rc;
}

static int decode_space(struct h5_reader *r, void *into)
{
	return h5_dataspace_decode(r, into);
}

static int decode_layout(struct h5_reader *r, void *into)
{
	return h5_layout_decode(r, into);
}

/* Not through h5_dataset_get(), which would wait for itself if virtual datasets are in a circle. */
static int source_space(struct h5_file *file, uint64_t address, struct h5_dataspace *space,
			struct visit *visit)
{
	struct h5_layout layout = {0};
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, address, &ref, &object);

	if (rc)
		return rc;
	rc = decode_message(file, object, H5_MSG_DATASPACE, decode_space, space);
	if (!rc)
		rc = decode_message(file, object, H5_MSG_LAYOUT, decode_layout, &layout);
	h5_file_put(file, ref);
	if (rc || layout.class != H5_LAYOUT_VIRTUAL)
		return rc;
	if (!visit->depth)
		return h5_fail(-ELOOP, address, "virtual dataset: too many sources in a row");
	visit->depth--;
	rc = current_space(file, &layout, space, visit);
	visit->depth++;
	return rc;
}

/* -ENOENT: the source is not there. */
static int find_source(const struct extent *extent, const struct h5_virtual_mapping *m, uint64_t block,
		       struct visit *visit, struct h5_file **file, uint64_t *address)
{
	int rc;

	if (!visit->sources)
		return h5_fail(-ENOTSUP, H5_UNDEF, "virtual dataset: more than %d sources", SOURCES_MOST);
	visit->sources--;
	rc = h5_interrupt_check();
	return rc ? rc : h5_virtual_find_source(extent->file, m->file, m->dataset, block, file, address);
}

/* The extent that one source gives, with which the virtual dataset grows. */
static int follow_source(struct extent *extent, const struct h5_virtual_mapping *m,
			 const struct h5_shape *virtual, const struct h5_shape *source, struct visit *visit,
			 uint64_t *available)
{
	struct h5_dataspace space;
	struct h5_file *file;
	uint64_t address;
	int rc = find_source(extent, m, 0, visit, &file, &address);

	if (!rc)
		rc = source_space(file, address, &space, visit);
	if (rc)
		return rc;
	if (!h5_shape_has_rank(source, space.rank))
		return h5_fail(-EUCLEAN, H5_UNDEF, "virtual dataset: source selection of another rank");
	*available =
		h5_shape_extent(virtual, h5_shape_slices(source, space.dims[h5_shape_unlimited(source)]));
	return 0;
}

/* If each block has a source of its own: counts them up to the first that is not there. */
static int count_sources(struct extent *extent, const struct h5_virtual_mapping *m,
			 const struct h5_shape *virtual, struct visit *visit, uint64_t *available)
{
	struct h5_hyperslab slab;
	struct h5_file *file;
	uint64_t address;

	if (!counts_blocks(m->file) && !counts_blocks(m->dataset))
		return h5_fail(-EUCLEAN, H5_UNDEF, "virtual dataset: one source for unlimited blocks");
	for (uint64_t block = 0; h5_shape_block(virtual, block, &slab); block++) {
		int rc = find_source(extent, m, block, visit, &file, &address);

		if (rc)
			return rc == -ENOENT ? 0 : rc;
		*available = slab.end;
	}
	return h5_fail(-EUCLEAN, H5_UNDEF, "virtual dataset: blocks beyond 2^64");
}

static int extend(struct extent *extent, struct h5_virtual_mapping *m, struct visit *visit)
{
	struct h5_shape *virtual = NULL, *source = NULL;
	uint64_t available = 0;
	size_t cost;
	int rc = h5_shape_open(&m->virtual, NULL, &virtual, &cost), d;

	if (!rc)
		rc = h5_shape_open(&m->source, NULL, &source, &cost);
	if (!rc) {
		rc = h5_shape_unlimited(source) < 0
			     ? count_sources(extent, m, virtual, visit, &available)
			     : follow_source(extent, m, virtual, source, visit, &available);
		d = h5_shape_unlimited(virtual);
		extent->unlimited[d] = true;
		if (available > extent->available[d])
			extent->available[d] = available;
	}
	h5_shape_close(virtual);
	h5_shape_close(source);
	if (rc && rc != -ENOENT)
		extent->unknown = true;
	return h5_is_passing(rc) || rc == -EFBIG ? rc : 0;
}

/* Notes what the mapping needs in its limited dimensions. */
static void need(struct extent *extent, const struct h5_selection *s)
{
	uint64_t items = s->kind == H5_SELECT_POINTS ? s->count : 2 * s->count;

	for (unsigned d = 0; d < s->rank; d++) {
		bool unlimited = s->regular && s->slabs[d].end == UINT64_MAX;

		if (s->regular && !unlimited && s->slabs[d].end > extent->least[d])
			extent->least[d] = s->slabs[d].end;
		for (uint64_t i = 0; i < items && !s->regular; i++)
			if (s->coordinates[i * s->rank + d] >= extent->least[d])
				extent->least[d] = s->coordinates[i * s->rank + d] + 1;
	}
}

static int ask_all(struct extent *extent, struct h5_virtual_block *block, struct visit *visit)
{
	struct h5_virtual_mapping m;
	int rc;

	while ((rc = h5_virtual_block_next(block, &m)) > 0) {
		if (m.virtual.rank && m.virtual.rank != extent->space->rank) {
			rc = h5_fail(-EUCLEAN, H5_UNDEF, "virtual dataset: selection of another rank");
		} else {
			need(extent, &m.virtual);
			rc = h5_selection_is_unlimited(&m.virtual) ? extend(extent, &m, visit) : 0;
		}
		h5_virtual_mapping_release(&m);
		if (rc)
			return rc;
	}
	return rc;
}

static void apply(const struct extent *extent)
{
	struct h5_dataspace *space = extent->space;

	for (unsigned d = 0; d < space->rank; d++) {
		uint64_t dim = extent->available[d];

		if (!extent->unlimited[d])
			continue;
		if (dim < extent->least[d])
			dim = extent->least[d];
		if (extent->unknown && dim < space->dims[d])
			dim = space->dims[d];
		space->dims[d] = h5_min(dim, space->max[d]);
	}
	if (!h5_product(space->dims, space->rank, &space->elements))
		space->elements = UINT64_MAX;
}

static bool can_grow(const struct h5_dataspace *space)
{
	for (unsigned d = 0; d < space->rank; d++)
		if (space->max[d] > space->dims[d])
			return true;
	return false;
}

static int current_space(struct h5_file *file, const struct h5_layout *layout, struct h5_dataspace *space,
			 struct visit *visit)
{
	struct extent extent = {.file = file, .space = space};
	struct h5_virtual_block block;
	struct h5_lru_entry *ref = NULL;
	struct h5_reader r;
	const uint8_t *data;
	size_t size;
	int rc;

	/* Most are of fixed size; then the mappings need not be read now. */
	if (!can_grow(space))
		return 0;
	rc = h5_global_heap_get(file, layout->virtual.heap, layout->virtual.index, &ref, &data, &size);
	if (rc)
		return rc;
	r = h5_file_reader(file, data, size, H5_UNDEF);
	rc = h5_virtual_block_open(&r, &block);
	if (!rc) {
		rc = ask_all(&extent, &block, visit);
		h5_virtual_block_release(&block);
	}
	h5_file_put(file, ref);
	if (!rc)
		apply(&extent);
	return rc;
}

int h5_virtual_extent(struct h5_file *file, const struct h5_layout *layout, struct h5_dataspace *space)
{
	struct visit visit = {.depth = H5_VIRTUAL_DEPTH, .sources = SOURCES_MOST};

	return current_space(file, layout, space, &visit);
}
