/* Filter 32018, FCIDECOMP: an image in JPEG-LS, as satellites of EUMETSAT send it.
 *
 * values: bytes of a sample; components, lines and samples of a line in a chunk; then how to encode it: bits
 * of a sample, components again, interleaving, the error that is allowed, and five values of JPEG-LS itself
 * (its largest sample, three thresholds and when counters are halved; 0: the usual ones). The decoder needs
 * none of them.
 *
 * Samples of two bytes are numbers in the memory of the writer, whose order of bytes is not stored: it is
 * taken for little endian. */
#include "base/checked.h"
#include "base/error.h"
#include "base/reader.h"
#include "filter/filters.h"

#include <charls/charls.h>
#include <stdbool.h>

enum {
	V_SAMPLE_BYTES,
	V_COMPONENTS,
	V_LINES,
	V_SAMPLES,
	V_BITS,
	V_COMPONENTS_AGAIN,
	V_INTERLEAVING,
	V_ERROR,
	V_LARGEST,
	V_THRESHOLD_1,
	V_THRESHOLD_2,
	V_THRESHOLD_3,
	V_RESET,
	V_COUNT,
	COMPONENTS_MAX = 255,
	SIDE_MAX = 65535,
	HEADERS = 1024, /* room for what is not a pixel of most images */
};

static int fail(charls_jpegls_errc error)
{
	if (error == CHARLS_JPEGLS_ERRC_NOT_ENOUGH_MEMORY)
		return h5_fail(-ENOMEM, H5_UNDEF, "fcidecomp: out of memory");
	return h5_fail(-EUCLEAN, H5_UNDEF, "fcidecomp: %s", charls_get_error_message(error));
}

/* CharLS 2.4.1 can go on for ever if the data end without a marker. */
static bool ends_with_marker(const struct h5_filter_buf *in)
{
	return in->size >= 2 && in->data[in->size - 2] == 0xff && in->data[in->size - 1] == 0xd9;
}

static int decode(charls_jpegls_decoder *decoder, const struct h5_filter_buf *in, struct h5_filter_buf *out,
		  size_t limit)
{
	charls_jpegls_errc error = charls_jpegls_decoder_set_source_buffer(decoder, in->data, in->size);
	charls_frame_info frame;
	size_t sample;
	uint64_t size;
	int rc;

	if (!error)
		error = charls_jpegls_decoder_read_header(decoder);
	if (!error)
		error = charls_jpegls_decoder_get_frame_info(decoder, &frame);
	if (error)
		return fail(error);
	sample = frame.bits_per_sample > 8 ? 2 : 1;
	if (!h5_mul(frame.width, frame.height, &size) ||
	    !h5_mul(size, (uint64_t)frame.component_count * sample, &size) || size > limit)
		return h5_filter_too_long("fcidecomp", limit);
	rc = h5_filter_buf_reserve(out, (size_t)size);
	if (rc)
		return rc;
	error = charls_jpegls_decoder_decode_to_buffer(decoder, out->data, (size_t)size, 0);
	if (error)
		return fail(error);
	out->size = (size_t)size;
	h5_filter_to_order(out->data, out->size, sample, false);
	return 0;
}

int h5_fcidecomp_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
			struct h5_filter_buf *out, size_t limit)
{
	charls_jpegls_decoder *decoder;
	int rc;

	(void)values;
	(void)count;
	if (!ends_with_marker(in))
		return h5_fail(-EUCLEAN, H5_UNDEF, "fcidecomp: no end of the image");
	decoder = charls_jpegls_decoder_create();
	if (!decoder)
		return fail(CHARLS_JPEGLS_ERRC_NOT_ENOUGH_MEMORY);
	rc = decode(decoder, in, out, limit);
	charls_jpegls_decoder_destroy(decoder);
	return rc;
}

/* CharLS ends the process if the preset largest sample is not 2^bits - 1, and encodes with thresholds that no
 * decoder takes. */
static bool preset_is_valid(const uint32_t *values)
{
	const uint32_t most = (1u << values[V_BITS]) - 1, *threshold = values + V_THRESHOLD_1;
	const bool usual = !threshold[0] && !threshold[1] && !threshold[2];
	const bool rising = values[V_ERROR] < threshold[0] && threshold[0] <= threshold[1] &&
			    threshold[1] <= threshold[2] && threshold[2] <= most;

	return (!values[V_LARGEST] || values[V_LARGEST] == most) && (usual || rising);
}

static int check_values(const uint32_t *values, unsigned count, uint64_t *size)
{
	if (count != V_COUNT)
		return h5_fail(-ENOTSUP, H5_UNDEF, "fcidecomp: %u parameters instead of %u", count, V_COUNT);
	if (!values[V_SAMPLE_BYTES] || values[V_SAMPLE_BYTES] > 2 || values[V_BITS] < 2 ||
	    values[V_BITS] > 16 || (values[V_BITS] > 8) != (values[V_SAMPLE_BYTES] == 2))
		return h5_fail(-ENOTSUP, H5_UNDEF, "fcidecomp: samples of %u bits in %u bytes",
			       values[V_BITS], values[V_SAMPLE_BYTES]);
	if (!values[V_COMPONENTS] || values[V_COMPONENTS] > COMPONENTS_MAX ||
	    values[V_COMPONENTS] != values[V_COMPONENTS_AGAIN] || !values[V_LINES] ||
	    values[V_LINES] > SIDE_MAX || !values[V_SAMPLES] || values[V_SAMPLES] > SIDE_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "fcidecomp: an image of %u (%u) x %u x %u",
			       values[V_COMPONENTS], values[V_COMPONENTS_AGAIN], values[V_LINES],
			       values[V_SAMPLES]);
	if (!preset_is_valid(values))
		return h5_fail(-ENOTSUP, H5_UNDEF, "fcidecomp: samples up to %u, thresholds %u, %u and %u",
			       values[V_LARGEST], values[V_THRESHOLD_1], values[V_THRESHOLD_2],
			       values[V_THRESHOLD_3]);
	*size = (uint64_t)values[V_COMPONENTS] * values[V_LINES] * values[V_SAMPLES] * values[V_SAMPLE_BYTES];
	return 0;
}

/* The library does not look whether samples have more bits than it was told. */
static int check_samples(const uint32_t *values, const uint8_t *data, size_t size)
{
	const uint32_t most = (1u << values[V_BITS]) - 1, bytes = values[V_SAMPLE_BYTES];

	for (size_t at = 0; at < size; at += bytes)
		if (h5_uint_from(data + at, bytes) > most)
			return h5_fail(-ENOTSUP, H5_UNDEF, "fcidecomp: a sample above %u", most);
	return 0;
}

static charls_jpegls_errc encode(charls_jpegls_encoder *encoder, const uint32_t *values, const uint8_t *data,
				 size_t size, struct h5_filter_buf *out)
{
	const charls_frame_info frame = {values[V_SAMPLES], values[V_LINES], (int32_t)values[V_BITS],
					 (int32_t)values[V_COMPONENTS]};
	const charls_jpegls_pc_parameters preset = {
		(int32_t)values[V_LARGEST], (int32_t)values[V_THRESHOLD_1], (int32_t)values[V_THRESHOLD_2],
		(int32_t)values[V_THRESHOLD_3], (int32_t)values[V_RESET]};
	charls_jpegls_errc error = charls_jpegls_encoder_set_frame_info(encoder, &frame);

	if (!error)
		error = charls_jpegls_encoder_set_near_lossless(encoder, (int32_t)values[V_ERROR]);
	if (!error)
		error = charls_jpegls_encoder_set_interleave_mode(
			encoder, (charls_interleave_mode)values[V_INTERLEAVING]);
	if (!error)
		error = charls_jpegls_encoder_set_preset_coding_parameters(encoder, &preset);
	if (!error)
		error = charls_jpegls_encoder_set_destination_buffer(encoder, out->data, out->capacity);
	if (!error)
		error = charls_jpegls_encoder_encode_from_buffer(encoder, data, size, 0);
	if (!error)
		error = charls_jpegls_encoder_get_bytes_written(encoder, &out->size);
	return error;
}

static int encode_samples(const uint32_t *values, const uint8_t *data, size_t size, struct h5_filter_buf *out)
{
	charls_jpegls_encoder *encoder;
	charls_jpegls_errc error;
	size_t room = size + HEADERS;
	int rc;

	/* Noise takes more bytes than it has, at most a few times as many; so do many components of few
	 * samples, each of which has a header. */
	do {
		rc = h5_filter_buf_reserve(out, room);
		if (rc)
			return rc;
		encoder = charls_jpegls_encoder_create();
		if (!encoder)
			return fail(CHARLS_JPEGLS_ERRC_NOT_ENOUGH_MEMORY);
		error = encode(encoder, values, data, size, out);
		charls_jpegls_encoder_destroy(encoder);
		room *= 2;
	} while (error == CHARLS_JPEGLS_ERRC_DESTINATION_BUFFER_TOO_SMALL);
	if (error == CHARLS_JPEGLS_ERRC_NOT_ENOUGH_MEMORY)
		return fail(error);
	if (error)
		return h5_fail(-ENOTSUP, H5_UNDEF, "fcidecomp: %s", charls_get_error_message(error));
	return 0;
}

int h5_fcidecomp_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
			struct h5_filter_buf *out)
{
	struct h5_filter_buf swapped = {0};
	uint64_t whole = 0;
	int rc = check_values(values, count, &whole);

	if (rc || !size)
		return rc;
	if (size != whole)
		return h5_fail(-ENOTSUP, H5_UNDEF, "fcidecomp: %zu bytes instead of %ju", size,
			       (uintmax_t)whole);
	rc = check_samples(values, data, size);
	if (rc)
		return rc;
	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		return encode_samples(values, data, size, out);
	rc = h5_filter_buf_copy(&swapped, data, size);
	if (!rc) {
		h5_filter_to_order(swapped.data, size, values[V_SAMPLE_BYTES], false);
		rc = encode_samples(values, swapped.data, size, out);
	}
	h5_filter_buf_release(&swapped);
	return rc;
}
