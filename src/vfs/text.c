/* Datasets as text: one line an element, the bytes of a variable-length string or JSON.
 *
 * How long a line is, only the element tells. One pass over all elements gives the size of the text and an
 * index: samples (element, offset), at most SAMPLE_BYTES of text or SAMPLE_ELEMENTS elements apart, unless
 * one line is longer. A read starts at the sample before its offset. For strings the pass needs only the
 * stored lengths; no heap is read. */
#include "vfs/private.h"

#include "base/error.h"
#include "base/interrupt.h"

#include <stdlib.h>
#include <string.h>

enum {
	SAMPLE_BYTES = 1 << 16,
	SAMPLE_ELEMENTS = 4096,
	SLAB_BYTES = 1 << 18,	 /* elements are read in pieces of about this size */
	ELEMENT_MAX = 1 << 26,	 /* stored bytes; a larger one is refused */
	LINE_MAX_BYTES = 1 << 28 /* a longer line is refused */
};

struct sample {
	uint64_t element, offset;
};

struct h5_text {
	uint64_t size; /* bytes */
	size_t count;
	struct sample *samples; /* the first is 0, 0 */
};

/* Goes over the elements from a given one on, and makes the line of each. */
struct cursor {
	const struct h5_dataset *dataset;
	struct h5_value_source source;
	uint64_t element; /* the next one */
	uint8_t *slab;	  /* stored bytes of the elements from slab_first on */
	uint64_t slab_first;
	uint64_t slab_count, slab_capacity;
	struct h5_buf line;
};

static int cursor_init(struct cursor *c, struct h5_vfs *vfs, const struct h5_dataset *dataset,
		       uint64_t element)
{
	uint64_t fit = SLAB_BYTES / dataset->type->size;

	*c = (struct cursor){.dataset = dataset, .source = {vfs, dataset->file}, .element = element};
	h5_buf_init(&c->line, LINE_MAX_BYTES);
	if (dataset->type->size > ELEMENT_MAX)
		return h5_fail(-ENOTSUP, dataset->address, "an element of %u bytes", dataset->type->size);
	c->slab_capacity = fit ? fit : 1;
	c->slab = malloc((size_t)c->slab_capacity * dataset->type->size);
	return c->slab ? 0 : -ENOMEM;
}

static void cursor_release(struct cursor *c)
{
	free(c->slab);
	h5_buf_release(&c->line);
}

/* The stored bytes of the next element. */
static int cursor_next(struct cursor *c, const uint8_t **data)
{
	size_t size = c->dataset->type->size;

	if (c->element >= c->slab_first + c->slab_count) {
		uint64_t left = c->dataset->space.elements - c->element;
		int rc = h5_interrupt_check();

		if (rc)
			return rc;
		if (!left)
			return h5_fail(-EUCLEAN, c->dataset->address, "the text has changed");
		c->slab_first = c->element;
		c->slab_count = left < c->slab_capacity ? left : c->slab_capacity;
		rc = h5_dataset_read(c->dataset, c->element * size, c->slab, (size_t)c->slab_count * size);
		if (rc)
			return rc;
	}
	*data = c->slab + (size_t)(c->element - c->slab_first) * size;
	c->element++;
	return 0;
}

static bool is_lines(const struct cursor *c)
{
	return h5_content_format(c->dataset) == H5_FORMAT_LINES;
}

/* Makes c->line, with its end. */
static int make_line(struct cursor *c, const uint8_t *data)
{
	const struct h5_datatype *type = c->dataset->type;
	struct h5_value_context context = h5_paths_context(&c->source);
	int rc = h5_interrupt_check();

	c->line.size = 0;
	if (rc)
		return rc;
	rc = is_lines(c) ? h5_value_vlen_string(context.file, type, data, &c->line)
			 : h5_value_json(&context, type, data, &c->line);
	h5_buf_byte(&c->line, '\n');
	if (c->line.err == -E2BIG)
		return h5_fail(-ENOTSUP, c->dataset->address, "an element's text is over %d bytes",
			       LINE_MAX_BYTES);
	return rc ? rc : c->line.err;
}

/* Length of the line of an element, as cheaply as may be. */
static int line_length(struct cursor *c, const uint8_t *data, uint64_t *length)
{
	int rc;

	if (is_lines(c)) {
		rc = h5_value_vlen_length(c->dataset->file, c->dataset->type, data, length);
		*length += 1;
		return rc;
	}
	rc = make_line(c, data);
	*length = c->line.size;
	return rc;
}

static void text_free(void *value)
{
	struct h5_text *text = value;

	if (text)
		free(text->samples);
	free(text);
}

static int add_sample(struct h5_text *text, size_t *capacity, uint64_t element)
{
	if (text->count == *capacity) {
		size_t more = *capacity ? 2 * *capacity : 4;
		struct sample *samples = reallocarray(text->samples, more, sizeof *samples);

		if (!samples)
			return -ENOMEM;
		text->samples = samples;
		*capacity = more;
	}
	text->samples[text->count++] = (struct sample){element, text->size};
	return 0;
}

static int measure(struct cursor *c, struct h5_text *text)
{
	size_t capacity = 0;
	int rc = 0;

	while (!rc && c->element < c->dataset->space.elements) {
		const struct sample *last = text->count ? &text->samples[text->count - 1] : NULL;
		const uint8_t *data;
		uint64_t length = 0;

		if (!last || text->size - last->offset >= SAMPLE_BYTES ||
		    c->element - last->element >= SAMPLE_ELEMENTS)
			rc = add_sample(text, &capacity, c->element);
		if (!rc)
			rc = cursor_next(c, &data);
		if (!rc)
			rc = line_length(c, data, &length);
		text->size += length;
		if (!rc && text->size > INT64_MAX)
			rc = h5_fail(-EOVERFLOW, c->dataset->address, "text of more than 2^63-1 bytes");
	}
	return rc;
}

struct text_request {
	struct h5_vfs *vfs;
	const struct h5_dataset *dataset;
};

static int text_load(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	const struct text_request *q = arg;
	struct h5_text *text = calloc(1, sizeof *text);
	struct cursor c;
	int rc = cursor_init(&c, q->vfs, q->dataset, 0);

	(void)file;
	(void)address;
	if (!rc)
		rc = text ? measure(&c, text) : -ENOMEM;
	cursor_release(&c);
	if (rc) {
		text_free(text);
		return rc;
	}
	*value = text;
	*cost = sizeof *text + text->count * sizeof *text->samples;
	return 0;
}

static const struct h5_block_type text_type = {{"text of a dataset", text_free}, text_load};

int h5_text_get(struct h5_vfs *vfs, const struct h5_dataset *dataset, struct h5_lru_entry **ref,
		const struct h5_text **text)
{
	const struct text_request request = {vfs, dataset};
	int rc = h5_file_block(dataset->file, &text_type, dataset->address, 0, &request, ref);

	*text = rc ? NULL : h5_lru_value(*ref);
	return rc;
}

uint64_t h5_text_size(const struct h5_text *text)
{
	return text->size;
}

/* The last sample at or before the offset. */
static const struct sample *find_sample(const struct h5_text *text, uint64_t offset)
{
	size_t low = 0, high = text->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (text->samples[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return &text->samples[low];
}

/* Lines that end before `skip` bytes are only measured. */
static int copy_lines(struct cursor *c, uint64_t skip, char *out, size_t n)
{
	while (n) {
		const uint8_t *data;
		uint64_t length;
		size_t part;
		int rc = cursor_next(c, &data);

		if (!rc)
			rc = line_length(c, data, &length);
		if (rc)
			return rc;
		if (length <= skip) {
			skip -= length;
			continue;
		}
		if (is_lines(c))
			rc = make_line(c, data);
		if (rc)
			return rc;
		if (c->line.size != length)
			return h5_fail(-EUCLEAN, c->dataset->address, "element %llu: its length has changed",
				       (unsigned long long)c->element - 1);
		part = (size_t)(length - skip < n ? length - skip : n);
		memcpy(out, c->line.data + skip, part);
		out += part;
		n -= part;
		skip = 0;
	}
	return 0;
}

int h5_text_read(struct h5_vfs *vfs, const struct h5_dataset *dataset, const struct h5_text *text,
		 uint64_t offset, void *buf, size_t n)
{
	const struct sample *sample = find_sample(text, offset);
	struct cursor c;
	int rc = cursor_init(&c, vfs, dataset, sample->element);

	if (!rc)
		rc = copy_lines(&c, offset - sample->offset, buf, n);
	cursor_release(&c);
	return rc;
}
