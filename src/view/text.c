#include "view/text.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/lower_bound.h"
#include "store/file_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	SAMPLE_BYTES = 1 << 16, /* most bytes between two samples, unless a piece is longer */
	SAMPLE_PIECES = 4096,	/* most pieces between two samples */
	CHECKED = 16,		/* number of pieces of which one asks if the request is still wanted */
	FILLED_LEAST = 4096,	/* least elements in a row, not stored, that are measured together */
	SLAB_BYTES = 1 << 18,	/* bytes of elements that are read at once, about */
};

struct sample {
	uint64_t piece, offset;
	uint64_t each; /* bytes of each piece up to the next sample, if these are fill values; else 0 */
};

struct h5_text {
	int failed;    /* why there is no text; kept, since finding that out takes long */
	uint64_t size; /* bytes */
	size_t count, capacity;
	struct sample *samples; /* the first is of piece 0 at offset 0 */
};

/* Goes over pieces, from any one on. */
struct cursor {
	const struct h5_text_source *source;
	uint64_t heads; /* number of pieces before those of elements */
	uint64_t next;	/* number of the next piece */
	uint8_t *slab;	/* stored bytes of elements of a dataset, from slab_first on */
	uint64_t slab_first, slab_count, slab_capacity;
	struct h5_charge slab_charge;
	struct h5_buf piece;
};

static int cursor_init(struct cursor *c, const struct h5_text_source *source, uint64_t piece)
{
	uint64_t fit = SLAB_BYTES / source->type->size;
	int rc;

	*c = (struct cursor){.source = source, .next = piece};
	h5_buf_init(&c->piece, H5_TEXT_PIECE_MAX);
	if (source->type->size > H5_ELEMENT_MOST)
		return h5_fail(-EFBIG, source->address, "an element of %u bytes", source->type->size);
	if (source->form->heads)
		c->heads = source->form->heads(source);
	if (!source->dataset)
		return 0;
	c->slab_capacity = fit ? fit : 1;
	rc = h5_charge_set(&c->slab_charge, (size_t)c->slab_capacity * source->type->size);
	if (rc)
		return rc;
	c->slab = malloc((size_t)c->slab_capacity * source->type->size);
	return c->slab ? 0 : -ENOMEM;
}

static void cursor_release(struct cursor *c)
{
	free(c->slab);
	h5_charge_release(&c->slab_charge);
	h5_buf_release(&c->piece);
}

static int read_slab(struct cursor *c, uint64_t element)
{
	size_t size = c->source->type->size;
	uint64_t left = c->source->space->elements - element;
	int rc = h5_interrupt_check();

	if (rc)
		return rc;
	if (!left)
		return h5_fail(-EUCLEAN, c->source->address, "the text has changed");
	c->slab_first = element;
	c->slab_count = left < c->slab_capacity ? left : c->slab_capacity;
	return h5_dataset_read(c->source->dataset, (c->source->first + element) * size, c->slab,
			       (size_t)c->slab_count * size);
}

/* *data: the stored bytes of an element; those of a dataset are valid until the next call. */
static int get_element(struct cursor *c, uint64_t element, const uint8_t **data)
{
	size_t size = c->source->type->size;
	int rc = 0;

	if (!c->source->dataset) {
		*data = c->source->data + element * size;
		return 0;
	}
	if (element < c->slab_first || element >= c->slab_first + c->slab_count)
		rc = read_slab(c, element);
	*data = c->slab + (size_t)(element - c->slab_first) * size;
	return rc;
}

static int try_piece(struct cursor *c, uint64_t i, const uint8_t *element)
{
	const struct h5_text_form *form = c->source->form;
	int rc;

	c->piece.size = 0;
	rc = element ? form->piece(c->source, i - c->heads, element, &c->piece)
		     : form->head(c->source, i, &c->piece);
	return c->piece.err == -E2BIG ? -E2BIG : rc;
}

/* Makes piece i, in c->piece. */
static int make_piece(struct cursor *c, uint64_t i, const uint8_t *element)
{
	int rc = i % CHECKED ? 0 : h5_interrupt_check(); /* a long piece asks while it is made */

	if (!rc)
		rc = try_piece(c, i, element);
	if (rc == -E2BIG)
		return h5_fail(-EFBIG, c->source->address, "an element's text is over %d bytes",
			       H5_TEXT_PIECE_MAX);
	return rc ? rc : c->piece.err;
}

/* Goes past the next piece and tells its length. The piece is made only if nothing else tells that. */
static int pass(struct cursor *c, const uint8_t **element, uint64_t *length)
{
	const struct h5_text_form *form = c->source->form;
	uint64_t i = c->next++;
	int rc = 0;

	*element = NULL;
	if (i >= c->heads)
		rc = get_element(c, i - c->heads, element);
	if (rc)
		return rc;
	if (*element && form->length)
		return form->length(c->source, *element, length);
	rc = make_piece(c, i, *element);
	*length = c->piece.size;
	return rc;
}

void h5_text_close(struct h5_text *text)
{
	if (text)
		free(text->samples);
	free(text);
}

static int add_sample(struct h5_text *text, uint64_t piece)
{
	int rc = h5_array_reserve(&text->samples, &text->capacity, text->count + 1, NULL);

	if (!rc)
		text->samples[text->count++] = (struct sample){piece, text->size, 0};
	return rc;
}

/* *n: how many elements are not stored, from this one on. */
static int count_filled(const struct cursor *c, uint64_t element, uint64_t *n)
{
	const struct h5_dataset *dataset = c->source->dataset;
	uint64_t number = c->source->first + element, found;
	int rc = h5_dataset_seek_stored(dataset, number * dataset->type->size, &found);

	*n = rc ? 0 : h5_min(found / dataset->type->size - number, c->source->space->elements - element);
	return rc;
}

/* If many elements in a row are not stored, passes them all at once, since a file may claim any number of
 * them: all are the fill value, so each takes as many bytes of text as the first. */
static int pass_filled(struct cursor *c, struct h5_text *text)
{
	uint64_t element = c->next - c->heads, n, length, all;
	const uint8_t *data;
	int rc = count_filled(c, element, &n);

	if (rc || n < FILLED_LEAST)
		return rc;
	rc = add_sample(text, c->next);
	if (!rc)
		rc = pass(c, &data, &length);
	if (rc)
		return rc;
	if (!h5_mul(length, n, &all) || !h5_add(text->size, all, &text->size))
		text->size = UINT64_MAX;
	text->samples[text->count - 1].each = length;
	c->next += n - 1;
	return 0;
}

/* True: the next piece needs elements to be read. Pieces are measured in their order, so none is before the
 * slab. */
static bool is_at_slab(const struct cursor *c, uint64_t elements)
{
	uint64_t element = c->next - c->heads;

	return c->source->dataset && c->next >= c->heads && element < elements &&
	       element >= c->slab_first + c->slab_count;
}

static int measure(struct cursor *c, struct h5_text *text)
{
	uint64_t elements = c->source->space->elements;
	int rc = 0;

	while (!rc && (c->next < c->heads || c->next - c->heads < elements)) {
		const struct sample *last;
		const uint8_t *element;
		uint64_t length = 0;

		if (is_at_slab(c, elements))
			rc = pass_filled(c, text);
		if (rc || c->next - c->heads == elements)
			break;
		last = text->count ? &text->samples[text->count - 1] : NULL;
		if (!last || last->each || text->size - last->offset >= SAMPLE_BYTES ||
		    c->next - last->piece >= SAMPLE_PIECES)
			rc = add_sample(text, c->next);
		if (!rc)
			rc = pass(c, &element, &length);
		text->size += length;
		if (!rc && text->size > INT64_MAX)
			break;
	}
	if (!rc && text->size > INT64_MAX)
		rc = h5_fail(-EOVERFLOW, c->source->address, "text of more than 2^63-1 bytes");
	return rc;
}

int h5_text_open(const struct h5_text_source *source, struct h5_text **out)
{
	struct h5_text *text = calloc(1, sizeof *text);
	struct cursor c;
	int rc = cursor_init(&c, source, 0);

	if (!rc)
		rc = text ? measure(&c, text) : -ENOMEM;
	cursor_release(&c);
	if (rc) {
		h5_text_close(text);
		return rc;
	}
	*out = text;
	return 0;
}

static int text_load(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	struct h5_text *text;
	int rc = h5_text_open(arg, &text);

	(void)file;
	(void)address;
	if (rc == -EFBIG && (text = calloc(1, sizeof *text))) {
		text->failed = rc;
		rc = 0;
	}
	if (rc)
		return rc;
	*value = text;
	*cost = sizeof *text + text->count * sizeof *text->samples;
	return 0;
}

static void text_free(void *value)
{
	h5_text_close(value);
}

static const struct h5_block_type text_type = {{"text of a dataset", text_free}, text_load};

int h5_text_get(const struct h5_text_source *source, struct h5_lru_entry **ref, const struct h5_text **text)
{
	/* The high bits of states seldom differ. */
	uint64_t variant = source->state << 8 | source->form->id;
	int rc = h5_file_block(source->dataset->file, &text_type, source->address, variant, source, ref);

	*text = rc ? NULL : h5_lru_value(*ref);
	if (rc || !(*text)->failed)
		return rc;
	rc = (*text)->failed;
	h5_file_put(source->dataset->file, *ref);
	*ref = NULL;
	*text = NULL;
	return h5_fail(rc, source->address, "its text takes more than a request may (max_work, max_chunk)");
}

uint64_t h5_text_size(const struct h5_text *text)
{
	return text->size;
}

/* The last sample at or before the offset. */
static const struct sample *find_sample(const struct h5_text *text, uint64_t offset)
{
	size_t after = h5_lower_bound(i, text->count, text->samples[i].offset <= offset);

	assert(after);
	return &text->samples[after - 1];
}

/* Copies n bytes of the next pieces, without the first `skip` bytes; pieces inside those are only measured.
 */
static int copy_pieces(struct cursor *c, uint64_t skip, char *out, size_t n)
{
	while (n) {
		const uint8_t *element;
		uint64_t length;
		size_t part;
		int rc = pass(c, &element, &length);

		if (rc)
			return rc;
		if (length <= skip) {
			skip -= length;
			continue;
		}
		if (element && c->source->form->length)
			rc = make_piece(c, c->next - 1, element);
		if (rc)
			return rc;
		if (c->piece.size != length)
			return h5_fail(-EUCLEAN, c->source->address, "element %llu: its length has changed",
				       (unsigned long long)(c->next - 1 - c->heads));
		part = (size_t)(length - skip < n ? length - skip : n);
		memcpy(out, c->piece.data + skip, part);
		out += part;
		n -= part;
		skip = 0;
	}
	return 0;
}

int h5_text_read(const struct h5_text_source *source, const struct h5_text *text, uint64_t offset, void *buf,
		 size_t n)
{
	const struct sample *sample = find_sample(text, offset);
	uint64_t skip = offset - sample->offset, pieces = sample->each ? skip / sample->each : 0;
	struct cursor c;
	int rc = cursor_init(&c, source, sample->piece + pieces);

	if (!rc)
		rc = copy_pieces(&c, skip - pieces * sample->each, buf, n);
	cursor_release(&c);
	return rc;
}
