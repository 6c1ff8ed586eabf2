/* A dataset of two dimensions, or of three whose last is 3 or 4 (red, green, blue, alpha), as a picture. One
 * of more dimensions is a directory of pictures, see pages.h.
 *
 * Portable Network Graphics (PNG) Specification, ISO/IEC 15948; RFC 1950, RFC 1951. The pixels are not
 * compressed, so the offset of each is known without the pixels before it:
 *
 *   size    field
 *      8    signature
 *     25    IHDR
 *    780    PLTE, if numbers are shown in colours
 *  13/14    tRNS, of the sample of NaN, if a number can be NaN
 *     14    IDAT: header of the zlib stream
 *           IDAT, for each 65535 bytes of rows:
 *   12+5      chunk, header of a stored block
 *   65535     bytes of rows, fewer in the last block; a row is a filter type (0: none) and samples
 *     16    IDAT: checksum of all rows
 *     12    IEND
 *
 * Unsigned 8-bit integers are samples as they are. Of booleans, TRUE is 255. Other numbers are scaled: the
 * least finite one becomes 0, the greatest 255 (8-bit integers, and numbers in colours) or 65535. If all are
 * the same, they become 0. NaN and -Infinity become 0, Infinity the greatest sample.
 *
 * But if each pixel is one float, NaN alone becomes 0, which is transparent, and the least one becomes 1, as
 * -Infinity does. The least and the greatest are percentiles then, since one outlier would leave no tones for
 * the others. */
#include "view/views.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "format/convert.h"
#include "view/pages.h"
#include "view/range.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define ELEMENTS_MAX                                                                                         \
	(UINT64_C(1) << 36) /* all are read when the file is opened, to find the darkest and the brightest   \
			     */

enum {
	SIDE_MAX = INT32_MAX, /* most pixels of a side: the limit of PNG */
	BLOCK = 65535,	      /* most bytes of rows in a stored block */
	CHUNK = 12,	      /* bytes of a chunk around its data */
	BLOCK_HEAD = 5,
	TAIL = CHUNK + 4 + CHUNK, /* bytes of the last IDAT, and IEND */
	ELEMENT_MAX = 8,
};

/* How elements become samples. */
struct tones {
	bool scaled; /* false: the elements are samples already, or booleans */
	struct h5_range range;
	uint32_t adler; /* of all rows */
};

struct picture {
	const struct h5_dataset *dataset;
	uint64_t first, elements; /* of the dataset, that are shown */
	uint32_t width, height;
	unsigned channels, depth; /* bytes of a sample */
	enum h5_colours colours;
	bool has_gaps;	 /* NaN is transparent */
	uint64_t stride; /* bytes of a row, with its filter type */
	uint64_t rows;	 /* bytes of all rows */
	uint64_t blocks;
	uint64_t state; /* of its tones in the cache */
};

static bool is_plain(const struct h5_datatype *t)
{
	return t->class == H5_CLASS_INTEGER && t->size == 1 && !t->is_signed;
}

/* Dimensions before those of a picture, of a dataset that has at least two. */
static unsigned count_leading(const struct h5_dataset *d)
{
	unsigned rank = d->space.rank;
	uint64_t last = d->space.dims[rank - 1];

	return rank > 2 && (last == 3 || last == 4) ? rank - 3 : rank - 2;
}

static int png_shows(const struct h5_view *v)
{
	const struct h5_dataset *d = v->dataset;

	if (!d || !h5_datatype_is_number(d->type) || d->space.rank < 2)
		return -ENOENT;
	return h5_pages_can_list(d, count_leading(d)) ? 0 : -ENOENT;
}

/* A picture without pixels has no rows. */
static int picture_init(struct picture *p, const struct h5_view *v)
{
	const struct h5_dataset *d = v->dataset;
	const uint64_t *dims;
	struct h5_page page;
	int rc = h5_page_get(v, count_leading(d), &page);

	if (rc)
		return rc;
	*p = (struct picture){.dataset = d, .first = page.first, .elements = page.space.elements};
	dims = page.space.dims;
	if (dims[0] > SIDE_MAX || dims[1] > SIDE_MAX || p->elements > ELEMENTS_MAX)
		return h5_fail(-EOVERFLOW, d->address, "more elements than a picture may have");
	p->height = (uint32_t)dims[0];
	p->width = (uint32_t)dims[1];
	p->channels = page.space.rank == 2 ? 1 : (unsigned)dims[2];
	p->state = h5_page_state(&page, v->state);
	p->colours = p->channels == 1 ? v->colours : H5_COLOURS_GREY;
	p->depth = d->type->size == 1 || p->colours ? 1 : 2;
	p->has_gaps = p->channels == 1 && d->type->class == H5_CLASS_FLOAT;
	p->stride = 1 + (uint64_t)p->width * p->channels * p->depth;
	p->rows = p->width ? p->height * p->stride : 0;
	p->blocks = p->rows / BLOCK + (p->rows % BLOCK != 0);
	return 0;
}

/* ---- samples ---- */

static void scale(const struct picture *p, const struct h5_range *range, const double *values, size_t n,
		  uint8_t *out)
{
	double most = p->depth == 1 ? UINT8_MAX : UINT16_MAX, low = range->low / 2;
	double span = range->high / 2 - low, least = p->has_gaps;

	for (size_t i = 0; i < n; i++) {
		double v = values[i], part = 0; /* of NaN, too, since it is not above anything */
		uint16_t sample;

		if (v > range->low)
			part = v < range->high && span > 0 ? (v / 2 - low) / span : 1;
		sample = p->has_gaps && isnan(v) ? 0 : (uint16_t)(least + part * (most - least) + 0.5);
		if (p->depth == 1) {
			out[i] = (uint8_t)sample;
		} else {
			sample = htobe16(sample);
			memcpy(out + 2 * i, &sample, sizeof sample);
		}
	}
}

/* Makes the samples of n elements of the picture, at most BLOCK + 1, from `first` on. `work` has room for the
 * elements. */
static int make_samples(const struct picture *p, const struct tones *t, uint64_t first, size_t n,
			uint8_t *work, uint8_t *out)
{
	size_t size = p->dataset->type->size;
	double values[512];
	int rc;

	first += p->first;
	if (is_plain(p->dataset->type))
		return h5_dataset_read(p->dataset, first, out, n);
	rc = h5_dataset_read(p->dataset, first * size, work, n * size);
	for (size_t i = 0, part; i < n && !rc; i += part) {
		part = (size_t)h5_min(n - i, 512);
		if (t->scaled) {
			h5_convert_to_doubles(p->dataset->type, work + i * size, part, values);
			scale(p, &t->range, values, part, out + i * p->depth);
		} else {
			for (size_t k = i; k < i + part; k++)
				out[k] = work[k] ? UINT8_MAX : 0;
		}
	}
	return rc;
}

/* The number of filter types among the first `offset` bytes of rows. */
static uint64_t count_filters(const struct picture *p, uint64_t offset)
{
	return offset / p->stride + (offset % p->stride != 0);
}

/* Memory to make one block in. */
struct work {
	uint8_t elements[(BLOCK + 1) * ELEMENT_MAX], samples[2 * (BLOCK + 1)];
	uint8_t block[CHUNK + BLOCK_HEAD + BLOCK];
};

/* Makes n bytes of rows, at most BLOCK, from `offset` on. */
static int make_rows(const struct picture *p, const struct tones *t, uint64_t offset, size_t n,
		     struct work *work, uint8_t *out)
{
	uint64_t from = offset - count_filters(p, offset), to = offset + n - count_filters(p, offset + n);
	uint64_t first = from / p->depth, last = (to + p->depth - 1) / p->depth;
	const uint8_t *samples = work->samples + from % p->depth;
	int rc = h5_interrupt_check();

	if (!rc && last > first)
		rc = make_samples(p, t, first, (size_t)(last - first), work->elements, work->samples);
	for (uint64_t end = offset + n; offset < end && !rc;) {
		uint64_t at = offset % p->stride, run = at ? h5_min(p->stride - at, end - offset) : 1;

		if (at) {
			memcpy(out, samples, (size_t)run);
			samples += run;
		} else {
			*out = 0;
		}
		out += run;
		offset += run;
	}
	return rc;
}

/* ---- tones: all elements are read for them ---- */

static int find_tones(const struct picture *p, struct work *work, struct tones *t)
{
	uint32_t adler = (uint32_t)adler32(0, NULL, 0);
	int rc = 0;

	t->scaled = !is_plain(p->dataset->type) && !h5_datatype_is_boolean(p->dataset->type);
	if (t->scaled)
		rc = h5_range_find(p->dataset, p->first, p->elements, p->has_gaps, &t->range);
	for (uint64_t at = 0, n; at < p->rows && !rc; at += n) {
		n = h5_min(p->rows - at, BLOCK);
		rc = make_rows(p, t, at, (size_t)n, work, work->block);
		adler = (uint32_t)adler32(adler, work->block, (uInt)n);
	}
	t->adler = adler;
	return rc;
}

static int tones_load(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	struct tones *t = calloc(1, sizeof *t);
	struct work *work = malloc(sizeof *work);
	int rc = t && work ? find_tones(arg, work, t) : -ENOMEM;

	(void)file;
	(void)address;
	free(work);
	if (rc) {
		free(t);
		return rc;
	}
	*value = t;
	*cost = sizeof *t;
	return 0;
}

static const struct h5_block_type tones_type = {{"tones of a picture", free}, tones_load};

/* ---- the file ---- */

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof v);
	return p + sizeof v;
}

/* Completes the chunk at p, whose n bytes of data are at p + 8; returns its end. */
static uint8_t *end_chunk(uint8_t *p, const char *type, size_t n)
{
	put_u32(p, (uint32_t)n);
	memcpy(p + 4, type, 4);
	return put_u32(p + 8 + n, (uint32_t)crc32(0, p + 4, (uInt)(n + 4)));
}

/* These make a chunk of zeros something else. NaN, if there can be one, is the first of the colours. */
static uint8_t *add_colours(const struct picture *p, uint8_t *at)
{
	const int least = p->has_gaps;

	for (int i = least; i <= UINT8_MAX; i++)
		h5_colours_of(p->colours, (double)(i - least) / (UINT8_MAX - least), at + 8 + 3 * i);
	return end_chunk(at, "PLTE", 3 * (UINT8_MAX + 1));
}

/* Makes the sample 0 transparent. */
static uint8_t *add_gaps(const struct picture *p, uint8_t *at)
{
	return end_chunk(at, "tRNS", p->colours ? 1 : 2);
}

/* Types of pixels: 0, grey; 2, red, green and blue; 3, a colour of PLTE; 6, with alpha. */
static uint8_t type_of(const struct picture *p)
{
	if (p->colours)
		return 3;
	return p->channels == 1 ? 0 : p->channels == 3 ? 2 : 6;
}

static void make_head(const struct picture *p, struct h5_buf *head)
{
	uint8_t bytes[1024] = "\x89PNG\r\n\x1a\n", *at = bytes + 8;
	uint8_t *data = put_u32(put_u32(at + 8, p->width), p->height);

	data[0] = (uint8_t)(8 * p->depth);
	data[1] = type_of(p);
	at = end_chunk(at, "IHDR", 13);
	if (p->colours)
		at = add_colours(p, at);
	if (p->has_gaps)
		at = add_gaps(p, at);
	memcpy(at + 8, "\x78\x01", 2);
	at = end_chunk(at, "IDAT", 2);
	h5_buf_init(head, sizeof bytes);
	h5_buf_add(head, bytes, (size_t)(at - bytes));
}

/* Bytes of the file. */
static uint64_t count_bytes(const struct picture *p, const struct h5_buf *head)
{
	return p->rows ? head->size + p->rows + p->blocks * (CHUNK + BLOCK_HEAD) + TAIL : 0;
}

static int png_open(struct h5_view *v, bool reading)
{
	struct picture *p = v->mine = malloc(sizeof *p);
	int rc = p ? picture_init(p, v) : -ENOMEM;

	if (rc || !p->rows)
		return rc;
	make_head(p, &v->head);
	v->size = count_bytes(p, &v->head);
	if (reading && !v->head.err)
		rc = h5_file_block(v->file, &tones_type, v->address, p->state, p, &v->ref);
	return rc ? rc : v->head.err;
}

/* Makes block i as it is in the file. */
static int make_block(const struct picture *p, const struct tones *t, uint64_t i, struct work *work,
		      size_t *size)
{
	size_t n = (size_t)h5_min(p->rows - i * BLOCK, BLOCK);
	uint8_t *data = work->block + 8;
	int rc = make_rows(p, t, i * BLOCK, n, work, data + BLOCK_HEAD);

	data[0] = i + 1 == p->blocks; /* the last one; type 0: stored */
	data[1] = (uint8_t)n;
	data[2] = (uint8_t)(n >> 8);
	data[3] = (uint8_t)~n;
	data[4] = (uint8_t)(~n >> 8);
	*size = (size_t)(end_chunk(work->block, "IDAT", BLOCK_HEAD + n) - work->block);
	return rc;
}

static void make_tail(const struct tones *t, struct work *work, size_t *size)
{
	uint8_t *at = work->block;

	put_u32(at + 8, t->adler);
	at = end_chunk(at, "IDAT", 4);
	at = end_chunk(at, "IEND", 0);
	*size = (size_t)(at - work->block);
}

static int png_read(const struct h5_view *v, uint64_t offset, void *buf, size_t n)
{
	const struct tones *t = h5_lru_value(v->ref);
	const struct picture *p = v->mine;
	struct work *work = malloc(sizeof *work);
	uint8_t *out = buf;
	int rc = work ? 0 : -ENOMEM;

	offset -= v->head.size;
	while (n && !rc) {
		/* The tail takes the place of a block after the last one. */
		uint64_t whole = CHUNK + BLOCK_HEAD + BLOCK, all = p->rows + p->blocks * (CHUNK + BLOCK_HEAD);
		uint64_t i = offset < all ? offset / whole : p->blocks;
		size_t skip = (size_t)(offset - (offset < all ? i * whole : all)), size, part;

		if (i < p->blocks)
			rc = make_block(p, t, i, work, &size);
		else
			make_tail(t, work, &size);
		if (rc)
			break;
		part = (size_t)h5_min(n, size - skip);
		memcpy(out, work->block + skip, part);
		out += part;
		offset += part;
		n -= part;
	}
	free(work);
	return rc;
}

static void png_release(struct h5_view *v)
{
	h5_file_put(v->file, v->ref);
	v->ref = NULL;
}

/* ---- pages ---- */

static bool png_is_directory(const struct h5_view *v)
{
	return v->dataset && v->dataset->space.rank > 1 && count_leading(v->dataset);
}

static int png_find(const struct h5_view *view, const char *path, bool *is_directory, uint64_t *size)
{
	int rc = h5_pages_find(view, count_leading(view->dataset), path, is_directory);
	struct h5_view v = *view;
	struct picture p;
	struct h5_buf head;

	if (rc || *is_directory)
		return rc;
	v.part = path;
	if (picture_init(&p, &v))
		return 0; /* opening it tells why */
	make_head(&p, &head);
	*size = head.err ? *size : count_bytes(&p, &head);
	h5_buf_release(&head);
	return 0;
}

static int png_next(const struct h5_view *v, uint64_t *position, char name[256], bool *is_directory)
{
	return h5_pages_next(v, count_leading(v->dataset), position, name, is_directory);
}

static const struct h5_view_directory_ops pages = {
	.is_one = png_is_directory, .find = png_find, .next = png_next};

const struct h5_view_ops h5_view_png = {.name = "png",
					.suffix = ".png",
					.directory = &pages,
					.shows = png_shows,
					.open = png_open,
					.read = png_read,
					.release = png_release};
