/* Filter 1: a zlib stream (RFC 1950). values[0] is the level. libdeflate is faster than zlib, and used if
 * configure has found it. It accepts all that zlib accepts, and also streams that define, but do not use,
 * codes for lengths and distances that do not exist. */
#include "base/checked.h"
#include "base/error.h"
#include "filter/filters.h"

#include <assert.h>
#include <stdlib.h>
#include <zlib.h>
#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>
#include <pthread.h>
#endif

enum {
	EXPANSION_MAX = 1032, /* most bytes decoded from one byte: a match of 258 takes two bits */
	LEVEL_MAX = 9,
	SMALL = 64, /* bytes; libdeflate does not compress a smaller input */
};

static int no_memory(void)
{
	return h5_fail(-ENOMEM, H5_UNDEF, "deflate: out of memory");
}

static int pack_by_zlib(int level, const uint8_t *data, size_t size, struct h5_filter_buf *out)
{
	uLongf stored = compressBound(size);
	int rc = h5_filter_buf_reserve(out, stored);

	if (rc)
		return rc;
	/* There is enough room, so only memory can be missing. */
	if (compress2(out->data, &stored, data, size, level) != Z_OK)
		return no_memory();
	out->size = stored;
	return 0;
}

#ifdef HAVE_LIBDEFLATE

/* Each thread keeps its decompressor, and the compressor of the level that it used last. A new decompressor
 * clears 11 KiB, as much as many a chunk has. A new compressor is 650 KiB, which malloc() may have to get
 * from the kernel. */
struct coders {
	struct libdeflate_decompressor *decompressor;
	struct libdeflate_compressor *compressor;
	int level; /* of the compressor */
};

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* frees the coders with their thread */

static void free_coders(void *arg)
{
	struct coders *coders = arg;

	libdeflate_free_decompressor(coders->decompressor);
	libdeflate_free_compressor(coders->compressor);
	free(coders);
}

static void make_key(void)
{
	int rc = pthread_key_create(&key, free_coders);

	assert(!rc); /* there are more than a thousand keys, and no memory is needed */
	(void)rc;
}

/* NULL: out of memory. */
static struct coders *get_coders(void)
{
	static _Thread_local struct coders *coders;

	if (coders)
		return coders;
	pthread_once(&key_once, make_key);
	coders = calloc(1, sizeof *coders);
	pthread_setspecific(key, coders);
	return coders;
}

/* NULL: out of memory. */
static struct libdeflate_decompressor *get_decompressor(void)
{
	struct coders *coders = get_coders();

	if (coders && !coders->decompressor)
		coders->decompressor = libdeflate_alloc_decompressor();
	return coders ? coders->decompressor : NULL;
}

/* NULL: out of memory. */
static struct libdeflate_compressor *get_compressor(int level)
{
	struct coders *coders = get_coders();

	if (!coders)
		return NULL;
	if (coders->level != level) {
		libdeflate_free_compressor(coders->compressor);
		coders->compressor = NULL;
		coders->level = level;
	}
	if (!coders->compressor)
		coders->compressor = libdeflate_alloc_compressor(level);
	return coders->compressor;
}

/* Decodes at most `room` bytes, for which *out has room. Bytes behind the stream are ignored. */
static int unpack(const struct h5_filter_buf *in, struct h5_filter_buf *out, size_t room)
{
	struct libdeflate_decompressor *d = get_decompressor();
	enum libdeflate_result result;

	if (!d)
		return no_memory();
	result = libdeflate_zlib_decompress(d, in->data, in->size, out->data, room, &out->size);
	if (result == LIBDEFLATE_SUCCESS)
		return 0;
	if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
		return h5_filter_too_long("deflate", room);
	return h5_fail(-EUCLEAN, H5_UNDEF, "deflate: a bad stream, or a truncated one");
}

static int pack(int level, const uint8_t *data, size_t size, struct h5_filter_buf *out)
{
	struct libdeflate_compressor *c;
	int rc;

	if (size < SMALL)
		return pack_by_zlib(level, data, size, out);
	c = get_compressor(level);
	if (!c)
		return no_memory();
	rc = h5_filter_buf_reserve(out, libdeflate_zlib_compress_bound(c, size));
	if (!rc) {
		out->size = libdeflate_zlib_compress(c, data, size, out->data, out->capacity);
		/* There is enough room, so this does not happen. */
		if (!out->size)
			rc = h5_fail(-EIO, H5_UNDEF, "deflate: cannot compress");
	}
	return rc;
}

#else
#define pack pack_by_zlib

static int inflate_all(z_stream *z, struct h5_filter_buf *out, size_t room)
{
	int status;

	z->next_out = out->data;
	z->avail_out = (uInt)room;
	/* Enough room also for the end of the stream: it gives no bytes. */
	status = inflate(z, Z_FINISH);
	out->size = room - z->avail_out;
	if (status == Z_STREAM_END)
		return 0;
	if (status == Z_MEM_ERROR)
		return no_memory();
	if (status == Z_BUF_ERROR && z->avail_in)
		return h5_filter_too_long("deflate", room);
	if (status == Z_BUF_ERROR)
		return h5_fail(-EUCLEAN, H5_UNDEF, "deflate: the stream is truncated");
	return h5_fail(-EUCLEAN, H5_UNDEF, "deflate: %s", z->msg ? z->msg : "bad stream");
}

/* Decodes at most `room` bytes, for which *out has room. Bytes behind the stream are ignored. */
static int unpack(const struct h5_filter_buf *in, struct h5_filter_buf *out, size_t room)
{
	z_stream z = {.next_in = in->data, .avail_in = (uInt)in->size};
	int rc;

	if (inflateInit(&z) != Z_OK)
		return no_memory();
	rc = inflate_all(&z, out, room);
	inflateEnd(&z);
	return rc;
}

#endif

int h5_deflate_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		      struct h5_filter_buf *out, size_t limit)
{
	size_t room;
	int rc;

	(void)values; /* the level, of no meaning here */
	(void)count;
	if (in->size > UINT32_MAX || limit > UINT32_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "deflate: %zu bytes in one chunk", in->size);
	room = (size_t)h5_min(limit, EXPANSION_MAX * ((uint64_t)in->size + 1));
	rc = h5_filter_buf_reserve(out, room);
	if (rc)
		return rc;
	assert(room <= out->capacity);
	return unpack(in, out, room);
}

int h5_deflate_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		      struct h5_filter_buf *out)
{
	if (count < 1 || values[0] > LEVEL_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "deflate: no level, or none of 0 to 9");
	return pack((int)values[0], data, size, out);
}
