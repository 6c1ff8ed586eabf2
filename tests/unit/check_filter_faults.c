/* Filters whose parameters say how large a chunk is, and libraries that fail: that is told, and nothing
 * leaks. */
#include "fault_alloc.h"
#include "filter_data.h"

/* ---- libraries ---- */

/* Functions of libraries, which the linker leads here. */
enum function {
	NONE,
	BLOSC_COMPRESS,
	SNAPPY_COMPRESS,
	LZ4_COMPRESS,
	DEFLATE_COMPRESS,
	JPEGLS_DECODER,
	JPEGLS_ENCODER,
	JPEGLS_ENCODE,
	LZO_INIT,
	LZO_COMPRESS,
	AEC_ENCODE,
};

static enum function failing;
static unsigned failed;

static bool fails(enum function function)
{
	failed += function == failing;
	return function == failing;
}

/* That of a library that is not there is NULL, and nobody calls its wrapper. */
#define WRAP(type, name, parameters, arguments, function, error)                                             \
	type __real_##name parameters __attribute__((weak));                                                 \
	type __wrap_##name parameters;                                                                       \
	type __wrap_##name parameters                                                                        \
	{                                                                                                    \
		return fails(function) ? (error) : __real_##name arguments;                                  \
	}

WRAP(int, blosc_compress_ctx,
     (int level, int shuffle, size_t each, size_t n, const void *from, void *to, size_t room,
      const char *compressor, size_t block, int threads),
     (level, shuffle, each, n, from, to, room, compressor, block, threads), BLOSC_COMPRESS, 0)
WRAP(int, snappy_compress, (const char *from, size_t n, char *to, size_t *stored), (from, n, to, stored),
     SNAPPY_COMPRESS, 2)
WRAP(int, LZ4_compress_default, (const char *from, char *to, int n, int room), (from, to, n, room),
     LZ4_COMPRESS, 0)
WRAP(size_t, libdeflate_zlib_compress, (void *c, const void *from, size_t n, void *to, size_t room),
     (c, from, n, to, room), DEFLATE_COMPRESS, 0)
WRAP(void *, charls_jpegls_decoder_create, (void), (), JPEGLS_DECODER, NULL)
WRAP(void *, charls_jpegls_encoder_create, (void), (), JPEGLS_ENCODER, NULL)
WRAP(int, charls_jpegls_encoder_encode_from_buffer, (void *e, const void *from, size_t n, uint32_t stride),
     (e, from, n, stride), JPEGLS_ENCODE, 13)
WRAP(int, __lzo_init_v2, (unsigned version, int a, int b, int c, int d, int e, int f, int g, int h, int i),
     (version, a, b, c, d, e, f, g, h, i), LZO_INIT, -1)
WRAP(int, lzo1x_1_compress, (const void *from, size_t n, void *to, size_t *stored, void *work),
     (from, n, to, stored, work), LZO_COMPRESS, -1)
/* It takes no input. */
WRAP(int, aec_encode, (void *stream, int flush), (stream, flush), AEC_ENCODE, 0)

/* Parameters of images of 200 x 200 bytes, and of so many numbers of four bytes. */
enum { SIDE = 200, PIXELS = SIDE * SIDE };
static const uint32_t jpeg_ls[13] = {1, 1, SIDE, SIDE, 8, 1}, jpeg[4] = {100, SIDE, SIDE, 0},
		      numbers[8] = {8, 0, PIXELS / 4, 1, 4, 0, 32, 0}, szip[4] = {32, 8, 8, 40},
		      blosc[3] = {2, 2, 4}, level[1] = {6};

START_TEST(libraries_fail)
{
	static const struct {
		enum function function;
		uint16_t id;
		const uint32_t *values;
		unsigned count;
		bool decodes;
		int rc;
		const char *said;
	} cases[] = {
		{BLOSC_COMPRESS, BLOSC, blosc, 3, false, -ENOMEM, "blosc: out of memory"},
		{SNAPPY_COMPRESS, SNAPPY, NULL, 0, false, -ENOMEM, "snappy: out of memory"},
		{LZ4_COMPRESS, LZ4, NULL, 0, false, -ENOMEM, "lz4: out of memory"},
		{DEFLATE_COMPRESS, DEFLATE, level, 1, false, -EIO, "deflate: cannot compress"},
		{JPEGLS_DECODER, FCIDECOMP, jpeg_ls, 13, true, -ENOMEM, "fcidecomp: out of memory"},
		{JPEGLS_ENCODER, FCIDECOMP, jpeg_ls, 13, false, -ENOMEM, "fcidecomp: out of memory"},
		{JPEGLS_ENCODE, FCIDECOMP, jpeg_ls, 13, false, -ENOMEM, "fcidecomp: out of memory"},
		{LZO_INIT, LZO, NULL, 0, true, -ENOTSUP, "lzo: the library does not fit this program"},
		{LZO_INIT, LZO, NULL, 0, false, -ENOTSUP, "lzo: the library does not fit this program"},
		{LZO_COMPRESS, LZO, NULL, 0, false, -EIO, "lzo: cannot compress"},
		{AEC_ENCODE, SZIP, szip, 4, false, -ENOTSUP, "szip: cannot encode 40000 bytes: -2"},
	};
	static uint8_t data[PIXELS];

	filter_data_fill(data, sizeof data, 3);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct h5_filter_ops *ops = h5_filter_find(cases[i].id);
		struct h5_filter_buf stored = {0}, out = {0};
		int rc;

		if (!ops->encode)
			continue;
		failing = NONE;
		failed = 0;
		if (cases[i].decodes)
			ck_assert_int_eq(
				ops->encode(cases[i].values, cases[i].count, data, sizeof data, &stored), 0);
		failing = cases[i].function;
		rc = cases[i].decodes
			     ? ops->decode(cases[i].values, cases[i].count, &stored, &out, sizeof data)
			     : ops->encode(cases[i].values, cases[i].count, data, sizeof data, &out);
		failing = NONE;
		/* Without libdeflate, zlib compresses. */
		ck_assert(failed || cases[i].function == DEFLATE_COMPRESS);
		ck_assert_msg(rc == (failed ? cases[i].rc : 0), "%zu: %d", i, rc);
		if (failed)
			ck_assert_str_eq(h5_error_last()->text, cases[i].said);
		h5_filter_buf_release(&stored);
		h5_filter_buf_release(&out);
	}
}
END_TEST

/* ---- memory ---- */

/* Each allocation fails once, while a chunk is encoded or decoded. */
static unsigned fail_allocations(const struct h5_filter_ops *ops, const uint32_t *values, unsigned count,
				 const uint8_t *data, size_t size)
{
	struct h5_filter_buf whole = {0};
	unsigned errors = 0;
	bool fired = true;

	ck_assert_int_eq(ops->encode(values, count, data, size, &whole), 0);
	for (unsigned long n = 1; fired; n++) {
		fired = false;
		for (unsigned decodes = 0; decodes < 2; decodes++) {
			struct h5_filter_buf out = {0};
			bool failed_now;
			int rc;

			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = decodes ? ops->decode(values, count, &whole, &out, size)
				     : ops->encode(values, count, data, size, &out);
			fault_alloc_count(false);
			failed_now = fault_alloc_disarm();
			ck_assert_msg(rc ? failed_now && rc == -ENOMEM
					 : out.size == (decodes ? size : whole.size),
				      "%s, %lu: %d", ops->name, n, rc);
			errors += rc && !decodes;
			fired |= failed_now;
			h5_filter_buf_release(&out);
		}
	}
	h5_filter_buf_release(&whole);
	return errors;
}

/* Noise takes more room than was reckoned with at first. */
START_TEST(memory_is_short)
{
	static const struct {
		uint16_t id;
		const uint32_t *values;
		unsigned count, least; /* errors */
	} cases[] = {{JPEG, jpeg, 4, 3}, {FCIDECOMP, jpeg_ls, 13, 2}, {NBIT, numbers, 8, 1}};
	static uint8_t data[PIXELS];

	filter_data_fill(data, sizeof data, 3);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (h5_filter_find(cases[i].id)->encode)
			ck_assert_uint_ge(fail_allocations(h5_filter_find(cases[i].id), cases[i].values,
							   cases[i].count, data, sizeof data),
					  cases[i].least);
}
END_TEST

/* ---- images of many scans ---- */

/* A progressive JPEG of 8 x 8 pixels in so many scans, at most 128: each has one bit of one coefficient,
 * which is 0. The only code of both tables is the bit 0: no difference, or the end of the block. */
static size_t make_scans(unsigned scans, uint8_t image[2048])
{
	static const uint8_t head[] = {0xff, 0xd8, 0xff, 0xdb, 0, 67, 0};
	static const uint8_t frame[] = {0xff, 0xc2, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0};
	size_t n = sizeof head;

	memcpy(image, head, n);
	memset(image + n, 1, 64);
	n += 64;
	memcpy(image + n, frame, sizeof frame);
	n += sizeof frame;
	for (unsigned table = 0; table < 2; table++) {
		const uint8_t codes[22] = {0xff, 0xc4, 0, 20, (uint8_t)(table << 4), 1};

		memcpy(image + n, codes, sizeof codes);
		n += sizeof codes;
	}
	for (unsigned i = 0; i < scans; i++) {
		const uint8_t k = (uint8_t)(i % 64), bits = i < 64 ? 0x01 : 0x10;
		const uint8_t scan[] = {0xff, 0xda, 0, 8, 1, 1, 0, k, k, bits, 0x7f};

		memcpy(image + n, scan, sizeof scan);
		n += sizeof scan;
	}
	memcpy(image + n, "\xff\xd9", 2);
	return n + 2;
}

/* Each takes work, however few bytes it has. */
START_TEST(images_have_a_hundred_scans_at_most)
{
	uint8_t image[2048];

	for (unsigned scans = 65; scans <= 128 && h5_filter_find(JPEG)->decode; scans++) {
		struct h5_filter_buf buf;
		int rc = decode(JPEG, NULL, 0, image, make_scans(scans, image), 64, &buf);

		ck_assert_msg(rc == (scans <= 100 ? 0 : -EUCLEAN), "%u: %d %s", scans, rc,
			      h5_error_last()->text);
		for (unsigned i = 0; !rc && i < 64; i++)
			ck_assert_int_eq(buf.data[i], 128);
		h5_filter_buf_release(&buf);
	}
}
END_TEST

UNIT_MAIN("filter faults", libraries_fail, memory_is_short, images_have_a_hundred_scans_at_most)
