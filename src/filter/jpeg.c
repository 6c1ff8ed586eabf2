/* Filter 32019: an image of bytes in JPEG.
 *
 * values: quality from 1 to 100; pixels of a line; lines; 1 if each pixel is three bytes, red, green and
 * blue, else 0. The decoder needs none of them. */
#include "base/checked.h"
#include "base/error.h"
#include "filter/filters.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

enum {
	V_QUALITY,
	V_PIXELS,
	V_LINES,
	V_COLOUR,
	V_COUNT,
	/* A few bytes of a chunk can make one more pass over the whole image. No encoder makes as many. */
	SCANS_MAX = 100,
	HEADERS = 1024, /* room for what is not a pixel */
};

/* libjpeg's own struct is the first member, by which its callbacks find the rest. */
struct errors {
	struct jpeg_error_mgr manager;
	jmp_buf failed;
	char text[JMSG_LENGTH_MAX];
};

struct decoder {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_progress_mgr progress;
	struct errors errors;
};

struct encoder {
	struct jpeg_compress_struct jpeg;
	struct jpeg_destination_mgr destination;
	struct errors errors;
	struct h5_filter_buf *out;
};

/* ---- errors ---- */

/* Instead of ending the process. */
static _Noreturn void leave(j_common_ptr jpeg)
{
	struct errors *errors = (struct errors *)jpeg->err;

	errors->manager.format_message(jpeg, errors->text);
	longjmp(errors->failed, 1);
}

/* Warnings are of level -1: libjpeg makes up for damage with pixels of its own. */
static void refuse_warning(j_common_ptr jpeg, int level)
{
	if (level < 0)
		leave(jpeg);
}

static void refuse_scans(j_common_ptr jpeg)
{
	if (((j_decompress_ptr)jpeg)->input_scan_number > SCANS_MAX)
		ERREXIT(jpeg, JERR_BAD_PROGRESSION);
}

static struct jpeg_error_mgr *init_errors(struct errors *errors)
{
	jpeg_std_error(&errors->manager);
	errors->manager.error_exit = leave;
	errors->manager.emit_message = refuse_warning;
	return &errors->manager;
}

static int fail(const struct errors *errors, int rc)
{
	if (errors->manager.msg_code == JERR_OUT_OF_MEMORY)
		rc = -ENOMEM;
	return h5_fail(rc, H5_UNDEF, "jpeg: %s", errors->text);
}

/* ---- decoding ---- */

/* How many bytes come out. */
static int prepare(struct decoder *d, const struct h5_filter_buf *in, size_t limit, size_t *size)
{
	uint64_t bytes;

	if (setjmp(d->errors.failed))
		return fail(&d->errors, -EUCLEAN);
	jpeg_create_decompress(&d->jpeg);
	d->progress.progress_monitor = refuse_scans;
	d->jpeg.progress = &d->progress;
	jpeg_mem_src(&d->jpeg, in->data, in->size);
	jpeg_read_header(&d->jpeg, TRUE);
	jpeg_calc_output_dimensions(&d->jpeg);
	if (!h5_mul(d->jpeg.output_width, d->jpeg.output_height, &bytes) ||
	    !h5_mul(bytes, (uint64_t)d->jpeg.output_components, &bytes) || bytes > limit)
		return h5_filter_too_long("jpeg", limit);
	*size = (size_t)bytes;
	return 0;
}

static int read_lines(struct decoder *d, uint8_t *data)
{
	if (setjmp(d->errors.failed))
		return fail(&d->errors, -EUCLEAN);
	jpeg_start_decompress(&d->jpeg);
	while (d->jpeg.output_scanline < d->jpeg.output_height) {
		JSAMPROW line = data + (size_t)d->jpeg.output_scanline * d->jpeg.output_width *
					       (size_t)d->jpeg.output_components;

		jpeg_read_scanlines(&d->jpeg, &line, 1);
	}
	jpeg_finish_decompress(&d->jpeg);
	return 0;
}

int h5_jpeg_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		   struct h5_filter_buf *out, size_t limit)
{
	struct decoder d = {.jpeg = {0}};
	size_t size;
	int rc;

	(void)values;
	(void)count;
	d.jpeg.err = init_errors(&d.errors);
	rc = prepare(&d, in, limit, &size);
	if (!rc)
		rc = h5_filter_buf_reserve(out, size);
	if (!rc)
		rc = read_lines(&d, out->data);
	if (!rc)
		out->size = size;
	jpeg_destroy_decompress(&d.jpeg);
	return rc;
}

/* ---- encoding ---- */

/* libjpeg writes into the free bytes of the buffer. */
static void give_room(struct encoder *e)
{
	e->destination.next_output_byte = e->out->data + e->out->size;
	e->destination.free_in_buffer = e->out->capacity - e->out->size;
}

static void begin(j_compress_ptr jpeg)
{
	give_room((struct encoder *)jpeg);
}

/* All bytes are used, whatever libjpeg's struct says. */
static boolean give_more(j_compress_ptr jpeg)
{
	struct encoder *e = (struct encoder *)jpeg;

	e->out->size = e->out->capacity;
	if (h5_filter_buf_grow(e->out, 1))
		ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
	give_room(e);
	return TRUE;
}

static void end(j_compress_ptr jpeg)
{
	struct encoder *e = (struct encoder *)jpeg;

	e->out->size = e->out->capacity - e->destination.free_in_buffer;
}

static int write_lines(struct encoder *e, const uint32_t *values, const uint8_t *data)
{
	const int quality = (int)h5_min(h5_max(values[V_QUALITY], 1), 100);

	if (setjmp(e->errors.failed))
		return fail(&e->errors, -ENOTSUP);
	jpeg_create_compress(&e->jpeg);
	e->destination = (struct jpeg_destination_mgr){
		.init_destination = begin, .empty_output_buffer = give_more, .term_destination = end};
	e->jpeg.dest = &e->destination;
	e->jpeg.image_width = values[V_PIXELS];
	e->jpeg.image_height = values[V_LINES];
	e->jpeg.input_components = values[V_COLOUR] ? 3 : 1;
	e->jpeg.in_color_space = values[V_COLOUR] ? JCS_RGB : JCS_GRAYSCALE;
	jpeg_set_defaults(&e->jpeg);
	jpeg_set_quality(&e->jpeg, quality, TRUE);
	jpeg_start_compress(&e->jpeg, TRUE);
	while (e->jpeg.next_scanline < e->jpeg.image_height) {
		/* It is only read. */
		JSAMPROW line = (JSAMPROW)(uintptr_t)data + (size_t)e->jpeg.next_scanline *
								    e->jpeg.image_width *
								    (size_t)e->jpeg.input_components;

		jpeg_write_scanlines(&e->jpeg, &line, 1);
	}
	jpeg_finish_compress(&e->jpeg);
	return 0;
}

static int check_values(const uint32_t *values, unsigned count, uint64_t *size)
{
	if (count != V_COUNT)
		return h5_fail(-ENOTSUP, H5_UNDEF, "jpeg: %u parameters instead of %u", count, V_COUNT);
	if (!values[V_PIXELS] || values[V_PIXELS] > JPEG_MAX_DIMENSION || !values[V_LINES] ||
	    values[V_LINES] > JPEG_MAX_DIMENSION || values[V_COLOUR] > 1)
		return h5_fail(-ENOTSUP, H5_UNDEF, "jpeg: an image of %u x %u, colour %u", values[V_LINES],
			       values[V_PIXELS], values[V_COLOUR]);
	*size = (uint64_t)values[V_PIXELS] * values[V_LINES] * (values[V_COLOUR] ? 3 : 1);
	return 0;
}

int h5_jpeg_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		   struct h5_filter_buf *out)
{
	struct encoder e = {.out = out};
	uint64_t whole = 0;
	int rc = check_values(values, count, &whole);

	if (rc || !size)
		return rc;
	if (size != whole)
		return h5_fail(-ENOTSUP, H5_UNDEF, "jpeg: %zu bytes instead of %ju", size, (uintmax_t)whole);
	rc = h5_filter_buf_reserve(out, size / 2 + HEADERS);
	if (rc)
		return rc;
	e.jpeg.err = init_errors(&e.errors);
	rc = write_lines(&e, values, data);
	jpeg_destroy_compress(&e.jpeg);
	return rc;
}
