/* Structured chunks of sparse data. They differ from other chunks in how they are stored: section 0 says
 * which elements are defined, section 1 has their values; all other elements have the fill value.
 *
 * Writing: section 0 gets the blocks of defined elements. Values are always in row-major order then. */
#include "dataset/structured.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "dataset/boxes.h"
#include "dataset/private.h"
#include "format/structured_chunk.h"
#include "store/file.h"
#include "store/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Bytes of section 0 beside the coordinates, of which there are at most two of eight bytes for each
	 * dimension of an element. */
	SELECTION_OVERHEAD = 4096,
	SELECTION_MAX = 64 << 20, /* most bytes of section 0; no writer makes a larger one */
	COORDINATE_LEAST = 2,	  /* least bytes of a coordinate in section 0; in memory it takes eight */
	/* Blocks should not overlap. They may do so as long as they cover the chunk at most so many times. */
	PASSES = 4,
};

/* The defined elements of a chunk. */
struct marks {
	const struct h5_chunk_layout *layout;
	uint64_t address;	      /* of the chunk */
	uint64_t elements;	      /* of the chunk */
	uint64_t left;		      /* elements that blocks may still cover */
	uint64_t stride[H5_RANK_MAX]; /* elements from one index to the next */
	uint8_t *set;		      /* borrowed: 1 for each element that is defined */
};

static int mark_block(void *arg, unsigned rank, const uint64_t *first, const uint64_t *last)
{
	struct marks *m = arg;
	uint64_t at[H5_RANK_MAX], count[H5_RANK_MAX], covered = 1;

	for (unsigned i = 0; i < rank; i++) {
		if (last[i] >= m->layout->dims[i])
			return h5_fail(-EUCLEAN, m->address, "structured chunk: a block outside of it");
		at[i] = first[i];
		count[i] = last[i] - first[i] + 1;
		covered *= count[i]; /* at most the elements of the chunk */
	}
	if (covered > m->left)
		return h5_fail(-EUCLEAN, m->address, "structured chunk: blocks overlap too often");
	m->left -= covered;
	do {
		uint64_t begin = 0;

		for (unsigned i = 0; i < rank; i++)
			begin += at[i] * m->stride[i];
		memset(m->set + begin, 1, (size_t)count[rank - 1]);
	} while (h5_box_step(at, first, count, rank - 1));
	return 0;
}

/* The next element from `i` on that is defined, or is not; `n`: there is none. */
static uint64_t next(const uint8_t *marks, uint64_t n, uint64_t i, int defined)
{
	const uint8_t *p = memchr(marks + i, defined, (size_t)(n - i));

	return p ? (uint64_t)(p - marks) : n;
}

static uint64_t point(const struct h5_selection *selection, const struct marks *m, uint64_t i)
{
	uint64_t element = 0;

	for (unsigned j = 0; j < selection->rank; j++)
		element += selection->coordinates[i * selection->rank + j] * m->stride[j];
	return element;
}

static int mark(struct marks *m, const struct h5_selection *selection)
{
	memset(m->set, selection->kind == H5_SELECT_ALL, (size_t)m->elements);
	if (selection->kind == H5_SELECT_HYPERSLAB)
		return h5_selection_blocks(selection, mark_block, m);
	for (uint64_t i = 0; selection->kind == H5_SELECT_POINTS && i < selection->count; i++)
		m->set[point(selection, m, i)] = 1;
	return 0;
}

/* The values of section 1, which are taken one run after the other. */
struct values {
	const uint8_t *from; /* the next one; NULL: they are only counted */
	uint8_t *chunk;
	size_t element_size;
	uint64_t count; /* taken so far */
};

static void take(struct values *v, uint64_t element, uint64_t n)
{
	size_t bytes = (size_t)n * v->element_size;

	v->count += n;
	if (!v->from)
		return;
	memcpy(v->chunk + element * v->element_size, v->from, bytes);
	v->from += bytes;
}

/* Points in the order of their list, others in row-major order. */
static void take_all(const struct h5_selection *selection, const struct marks *m, struct values *v)
{
	uint64_t end;

	if (selection->kind == H5_SELECT_POINTS) {
		for (uint64_t i = 0; i < selection->count; i++)
			take(v, point(selection, m, i), 1);
		return;
	}
	for (uint64_t i = 0; (i = next(m->set, m->elements, i, 1)) < m->elements; i = end) {
		end = next(m->set, m->elements, i, 0);
		take(v, i, end - i);
	}
}

struct chunk {
	const struct h5_dataset *dataset;
	uint64_t address;
	const struct h5_pipeline *pipelines; /* NULL: not filtered */
	struct h5_section sections[H5_SECTIONS];
};

static int read_section(const struct chunk *chunk, unsigned i, uint8_t **data)
{
	const struct h5_section *section = &chunk->sections[i];
	const uint64_t address = chunk->address + section->offset;

	/* Section 0 begins with the chunk. Section 1 begins where that ends, which was inside the file. */
	assert(address >= chunk->address);
	return h5_pipeline_read(chunk->dataset->file,
				chunk->pipelines && chunk->pipelines[i].count ? &chunk->pipelines[i] : NULL,
				section->filter_mask, address, section->stored, section->size, data);
}

static int read_selection(const struct chunk *chunk, const struct marks *m, struct h5_selection *selection)
{
	uint64_t size = chunk->sections[0].size;
	struct h5_reader r;
	uint8_t *data;
	int rc;

	if (size > h5_min(16 * m->layout->rank * m->elements + SELECTION_OVERHEAD, SELECTION_MAX))
		return h5_fail(-EUCLEAN, chunk->address, "structured chunk: a selection of %ju bytes",
			       (uintmax_t)size);
	rc = read_section(chunk, 0, &data);
	if (rc)
		return rc;
	r = h5_file_reader(chunk->dataset->file, data, (size_t)size, chunk->address);
	rc = h5_defined_elements_decode(&r, m->layout, selection);
	free(data);
	return rc;
}

/* Puts the values of section 1 over the fill values in `data`. */
static int read_values(const struct chunk *chunk, const struct h5_selection *selection, const struct marks *m,
		       uint8_t *data)
{
	struct values v = {.chunk = data, .element_size = chunk->dataset->type->size};
	uint64_t bytes;
	uint8_t *from;
	int rc;

	take_all(selection, m, &v);
	if (!h5_mul(v.count, v.element_size, &bytes) || bytes != chunk->sections[1].size)
		return h5_fail(-EUCLEAN, chunk->address, "structured chunk: %ju bytes for %ju elements",
			       (uintmax_t)chunk->sections[1].size, (uintmax_t)v.count);
	if (!bytes)
		return 0;
	rc = read_section(chunk, 1, &from);
	if (rc)
		return rc;
	v.from = from;
	take_all(selection, m, &v);
	free(from);
	return 0;
}

static int marks_init(struct marks *m, const struct chunk *chunk)
{
	const struct h5_dataset *dataset = chunk->dataset;
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;

	int rc = h5_pipeline_check_size(dataset->file, 0, chunk->address, dataset->chunk_size);

	*m = (struct marks){.layout = layout, .address = chunk->address};
	if (rc)
		return rc;
	m->elements = dataset->chunk_size / layout->element_size;
	m->left = PASSES * m->elements;
	m->stride[layout->rank - 1] = 1;
	for (unsigned i = layout->rank - 1; i-- > 0;)
		m->stride[i] = m->stride[i + 1] * layout->dims[i + 1];
	return 0;
}

uint64_t h5_structured_need(const struct h5_dataset *dataset, const struct h5_chunk *chunk)
{
	const struct h5_pipeline *pipelines = dataset->section_pipelines;
	uint64_t sections[H5_SECTIONS] = {0}, need = dataset->chunk_size;
	struct h5_section found[H5_SECTIONS];

	if (h5_sections_decode(&dataset->layout.chunked, chunk->metadata, pipelines, chunk->size,
			       chunk->address, found))
		return need; /* reading will fail here, too */
	for (unsigned i = 0; i < H5_SECTIONS; i++)
		sections[i] = h5_pipeline_need(pipelines ? &pipelines[i] : NULL, found[i].stored,
					       h5_min(found[i].size, i ? need : SELECTION_MAX));
	/* The elements; a mark for each; the coordinates; and one section at a time. */
	need += h5_structured_marks(dataset);
	need += h5_min(found[0].size, SELECTION_MAX) / COORDINATE_LEAST * sizeof(uint64_t);
	return need + h5_max(sections[0], sections[1]);
}

int h5_structured_read(const struct h5_dataset *dataset, const struct h5_chunk *at, bool filtered,
		       uint8_t **out)
{
	struct chunk chunk = {.dataset = dataset, .address = at->address};
	struct h5_selection selection;
	struct marks m;
	uint8_t *data = NULL;
	int rc = marks_init(&m, &chunk);

	if (!rc)
		rc = h5_sections_decode(m.layout, at->metadata, dataset->section_pipelines, at->size,
					at->address, chunk.sections);
	if (rc)
		return rc;
	if (filtered)
		chunk.pipelines = dataset->section_pipelines;
	rc = read_selection(&chunk, &m, &selection);
	if (rc)
		return rc;
	data = malloc((size_t)(dataset->chunk_size + m.elements));
	if (!data) {
		rc = h5_fail(-ENOMEM, at->address, "structured chunk: out of memory");
		goto out;
	}
	m.set = data + dataset->chunk_size;
	rc = mark(&m, &selection);
	if (rc)
		goto out;
	h5_dataset_fill(dataset, 0, data, (size_t)dataset->chunk_size);
	rc = read_values(&chunk, &selection, &m, data);
out:
	h5_selection_release(&selection);
	if (rc)
		free(data);
	else
		*out = data;
	return rc;
}

/* ---- marks ---- */

/* The marks of elements that lie in n bytes from `begin` of the chunk. `whole`: only of those all of whose
 * bytes do. */
static uint8_t *marks_of(const struct h5_dataset *dataset, uint8_t *data, uint64_t begin, uint64_t n,
			 bool whole, uint64_t *count)
{
	const uint64_t size = dataset->type->size;
	uint64_t first = begin / size, end = (begin + n) / size;

	if (whole)
		first += begin % size != 0;
	else
		end += (begin + n) % size != 0;
	*count = end > first ? end - first : 0;
	return data + dataset->chunk_size + first;
}

void h5_structured_define(const struct h5_dataset *dataset, uint8_t *data, uint64_t begin, uint64_t n)
{
	uint64_t count;
	uint8_t *marks;

	if (!h5_structured_marks(dataset))
		return;
	marks = marks_of(dataset, data, begin, n, false, &count);
	memset(marks, 1, (size_t)count);
}

bool h5_structured_erase(const struct h5_dataset *dataset, uint8_t *data, uint64_t begin, uint64_t n)
{
	uint64_t count;
	uint8_t *marks;
	bool any;

	if (!h5_structured_marks(dataset))
		return false;
	marks = marks_of(dataset, data, begin, n, true, &count);
	any = memchr(marks, 1, (size_t)count);
	memset(marks, 0, (size_t)count);
	return any;
}

uint64_t h5_structured_run(const struct h5_dataset *dataset, const uint8_t *data, uint64_t begin, uint64_t n,
			   bool *defined)
{
	const uint64_t size = dataset->type->size, first = begin / size;
	const uint8_t *marks = data + dataset->chunk_size + first;
	uint64_t count = (begin + n - 1) / size + 1 - first, run;

	*defined = marks[0];
	run = next(marks, count, 0, !marks[0]);
	return h5_min((first + run) * size - begin, n);
}

/* ---- writing ---- */

/* The values of the defined elements, one after the other; the caller's, free(). */
static int gather_values(const struct h5_dataset *dataset, const uint8_t *data, uint8_t **out, size_t *size)
{
	const uint64_t elements = h5_structured_marks(dataset), element_size = dataset->type->size;
	const uint8_t *marks = data + dataset->chunk_size;
	uint64_t n = 0, end;

	for (uint64_t i = 0; i < elements; i++)
		n += marks[i];
	*size = 0;
	*out = malloc((size_t)(n * element_size));
	if (!*out)
		return h5_fail(-ENOMEM, dataset->address, "structured chunk: out of memory");
	for (uint64_t i = 0; (i = next(marks, elements, i, 1)) < elements; i = end) {
		size_t bytes;

		end = next(marks, elements, i, 0);
		bytes = (size_t)((end - i) * element_size);
		memcpy(*out + *size, data + i * element_size, bytes);
		*size += bytes;
	}
	return 0;
}

/* Runs the filters of section i, whose bytes *data are replaced. `raw`: all filters are skipped. */
static int filter_section(const struct h5_dataset *dataset, unsigned i, bool raw, uint8_t **data,
			  struct h5_section *section)
{
	const struct h5_pipeline *pipeline =
		dataset->section_pipelines ? &dataset->section_pipelines[i] : NULL;
	uint8_t *filtered;
	size_t stored;
	int rc;

	section->stored = section->size;
	if (!pipeline || !pipeline->count)
		return 0;
	if (raw) {
		section->filter_mask = (uint32_t)((UINT64_C(1) << pipeline->count) - 1);
		return 0;
	}
	rc = h5_pipeline_encode(pipeline, *data, (size_t)section->size, &filtered, &stored,
				&section->filter_mask);
	if (rc)
		return rc;
	section->stored = stored;
	free(*data);
	*data = filtered;
	return 0;
}

/* Puts section 1 behind section 0. */
static int join(uint8_t *parts[H5_SECTIONS], struct h5_section sections[H5_SECTIONS], struct h5_chunk *chunk,
		uint8_t **out)
{
	uint8_t *all;

	sections[1].offset = sections[0].stored;
	chunk->size = sections[0].stored + sections[1].stored;
	all = realloc(parts[0], (size_t)chunk->size);
	if (!all)
		return h5_fail(-ENOMEM, H5_UNDEF, "structured chunk: out of memory");
	memcpy(all + sections[1].offset, parts[1], (size_t)sections[1].stored);
	parts[0] = NULL;
	*out = all;
	return 0;
}

int h5_structured_encode(const struct h5_dataset *dataset, const uint8_t *data, bool raw,
			 struct h5_chunk *chunk, uint8_t **out)
{
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;
	const uint8_t *marks = data + dataset->chunk_size;
	struct h5_section sections[H5_SECTIONS] = {0};
	uint8_t *parts[H5_SECTIONS] = {0};
	size_t sizes[H5_SECTIONS] = {0};
	int rc;

	*out = NULL;
	*chunk = (struct h5_chunk){.address = H5_UNDEF};
	if (!memchr(marks, 1, (size_t)h5_structured_marks(dataset)))
		return 0;
	rc = h5_defined_elements_encode(layout, h5_file_superblock(dataset->file)->size_of_lengths, marks,
					&parts[0], &sizes[0]);
	if (!rc)
		rc = gather_values(dataset, data, &parts[1], &sizes[1]);
	for (unsigned i = 0; i < H5_SECTIONS && !rc; i++) {
		sections[i].size = sizes[i];
		rc = filter_section(dataset, i, raw, &parts[i], &sections[i]);
	}
	if (!rc)
		rc = join(parts, sections, chunk, out);
	if (!rc)
		rc = h5_sections_encode(layout, dataset->section_pipelines, sections, chunk->metadata);
	for (unsigned i = 0; i < H5_SECTIONS; i++)
		free(parts[i]);
	if (rc) {
		free(*out);
		*out = NULL;
	}
	return rc;
}

int h5_structured_can_encode(const struct h5_dataset *dataset)
{
	int rc = 0;

	if (dataset->layout.class != H5_LAYOUT_STRUCTURED)
		return 0;
	if (!dataset->layout.chunked.structured.sparse || !h5_datatype_is_fixed(dataset->type))
		return h5_fail(-ENOTSUP, dataset->address,
			       "dataset: structured chunks are only written for sparse data of fixed size");
	if (h5_tx_is_swmr(dataset->file))
		return h5_fail(-ENOTSUP, dataset->address, "dataset: SWMR readers cannot follow sparse data");
	for (unsigned i = 0; i < H5_SECTIONS && dataset->section_pipelines && !rc; i++)
		rc = h5_pipeline_can_encode(&dataset->section_pipelines[i]);
	return rc;
}
