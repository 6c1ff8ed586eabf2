/* Chunks of a Zarr array that are made from elements: strings of variable length, or padded in another way,
 * chunks that were stored without some of the filters, those that are not stored, and those of an extended
 * array that lie across the end of the dataset. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/writer.h"
#include "object/json.h"
#include "store/pipeline.h"
#include "view/strings.h"
#include "view/zarr_array.h"

#include <stdlib.h>
#include <string.h>

/* ---- elements ---- */

/* True: element i of the chunk is an element of the dataset. */
static bool is_inside(const struct h5_zarr_array *a, const struct h5_zarr_chunk *c, uint64_t i)
{
	for (unsigned d = a->dataset->space.rank; d-- > 0; i /= a->chunk[d])
		if (c->scaled[d] * a->chunk[d] + i % a->chunk[d] >= a->dataset->space.dims[d])
			return false;
	return true;
}

/* Sets the elements of the chunk that lie behind the dataset's end to the fill value. */
static int fill_outside(const struct h5_zarr_array *a, const struct h5_zarr_chunk *c, uint8_t *data)
{
	size_t size = a->dataset->type->size;
	int rc = 0;

	for (uint64_t i = 0; i < a->chunk_bytes / size && !rc; i++) {
		if (!is_inside(a, c, i))
			h5_dataset_fill(a->dataset, 0, data + i * size, size);
		rc = i % 4096 ? 0 : h5_interrupt_check();
	}
	return rc;
}

static int read_elements(const struct h5_zarr_array *a, const struct h5_zarr_chunk *c, uint8_t *data)
{
	struct h5_zarr_chunk plain = *c;
	int rc;

	plain.source = c->elements;
	rc = h5_zarr_chunk_read(a, &plain, 0, data, (size_t)a->chunk_bytes);
	return !rc && a->is_extended && c->elements == H5_ZARR_CHUNK ? fill_outside(a, c, data) : rc;
}

/* ---- strings: the codec vlen-utf8 ----
 *
 *   0  4  number of strings, little-endian
 *   4     for each string:
 *           0  4  its bytes
 *           4     these bytes, UTF-8    */

static void add_u32(struct h5_buf *out, uint32_t v)
{
	uint8_t bytes[4];

	h5_uint_to(bytes, v, sizeof bytes);
	h5_buf_add(out, bytes, sizeof bytes);
}

/* Readers refuse a chunk with bytes that are not UTF-8, so each such byte becomes U+FFFD. */
static void add_utf8(struct h5_buf *out, const uint8_t *p, size_t n)
{
	for (size_t at = 0; at < n && !out->err;) {
		size_t size = h5_utf8_sequence(p + at, n - at);

		if (size)
			h5_buf_add(out, p + at, size);
		else
			h5_buf_text(out, "\xef\xbf\xbd");
		at += size ? size : 1;
	}
}

static int add_string(const struct h5_dataset *d, const uint8_t *element, struct h5_buf *out)
{
	size_t begin = out->size;
	struct h5_lru_entry *ref;
	const uint8_t *data;
	uint64_t n;
	int rc = h5_value_vlen_open(d->file, d->type, element, &ref, &data, &n);

	if (rc)
		return rc;
	add_u32(out, 0);
	if (n)
		add_utf8(out, data, strnlen((const char *)data, (size_t)n));
	if (!out->err)
		h5_uint_to((uint8_t *)out->data + begin, out->size - begin - 4, 4);
	h5_file_put(d->file, ref);
	return out->err;
}

static int add_strings(const struct h5_zarr_array *a, const struct h5_zarr_chunk *c, const uint8_t *elements,
		       struct h5_buf *out)
{
	uint64_t size = a->dataset->type->size, count = a->chunk_bytes / size;
	int rc = 0;

	if (count > UINT32_MAX)
		return h5_fail(-ENOTSUP, a->dataset->address, "more than 2^32 strings in a chunk");
	add_u32(out, (uint32_t)count);
	for (uint64_t i = 0; i < count && !rc; i++) {
		if (c->elements == H5_ZARR_FILL || is_inside(a, c, i))
			rc = add_string(a->dataset, elements + i * size, out);
		else
			add_u32(out, 0);
		if (!rc)
			rc = i % 1024 ? out->err : h5_interrupt_check();
	}
	return rc;
}

/* ---- filters ---- */

static int add_encoded(const struct h5_zarr_array *a, const uint8_t *data, struct h5_buf *out)
{
	struct h5_pipeline codecs = a->dataset->pipeline;
	uint8_t *encoded;
	uint32_t mask;
	size_t n;
	int rc;

	if (!a->codecs) {
		h5_buf_add(out, data, (size_t)a->chunk_bytes);
		return out->err;
	}
	/* None of them may be left out. */
	codecs.count = a->codecs;
	for (unsigned i = 0; i < codecs.count; i++)
		codecs.filters[i].optional = false;
	rc = h5_pipeline_can_encode(&codecs);
	if (!rc)
		rc = h5_pipeline_encode(&codecs, data, (size_t)a->chunk_bytes, &encoded, &n, &mask);
	if (rc)
		return rc;
	h5_buf_add(out, encoded, n);
	free(encoded);
	return out->err;
}

/* ---- strings that are padded in another way ---- */

static int add_replaced(const struct h5_zarr_array *a, uint8_t *data, struct h5_buf *out)
{
	size_t size = a->dataset->type->size, all = (size_t)a->chunk_bytes;
	int rc = 0;

	for (size_t i = 0; i < all && !rc; i += size) {
		h5_strings_pad_with_zeros(a->dataset->type, data + i);
		rc = i / size % 4096 ? 0 : h5_interrupt_check();
	}
	h5_buf_add(out, data, all);
	return rc ? rc : out->err;
}

/* ---- all ---- */

int h5_zarr_chunk_make(const struct h5_zarr_array *a, const struct h5_zarr_chunk *c, struct h5_buf *out)
{
	struct h5_charge charge = {0};
	uint8_t *data;
	int rc = h5_pipeline_check_size(a->dataset->file, 1, a->dataset->address, a->chunk_bytes);

	if (!rc)
		rc = h5_charge_set(&charge, (size_t)a->chunk_bytes);
	if (rc)
		return rc;
	data = malloc((size_t)a->chunk_bytes);
	rc = data ? read_elements(a, c, data) : -ENOMEM;
	if (!rc && a->is_strings)
		rc = add_strings(a, c, data, out);
	else if (!rc)
		rc = a->has_padding ? add_replaced(a, data, out) : add_encoded(a, data, out);
	free(data);
	h5_charge_release(&charge);
	return rc;
}
