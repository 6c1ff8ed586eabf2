/* Chunks as libhdf5 or a filter's own library stored them, and what holds for all of them. */
#ifndef H5_TESTS_FILTER_SAMPLES_H
#define H5_TESTS_FILTER_SAMPLES_H

#include "base/error.h"
#include "filter/filter.h"
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLE_VALUES_MAX = 64 };

/* One line of a list from tests/fixtures: name, filter, parameters; a chunk as it was stored, and as it was.
 */
struct sample {
	char name[64];
	uint16_t id;
	uint32_t values[SAMPLE_VALUES_MAX];
	unsigned count;
	struct h5_filter_buf in, out;
};

static inline void sample_file(const char *name, const char *suffix, struct h5_filter_buf *buf)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/filter_%s.%s", getenv("H5FS_TEST_DATA"), name, suffix);
	f = fopen(path, "rb");
	ck_assert_msg(f, "%s", path);
	memset(buf, 0, sizeof *buf);
	ck_assert_int_eq(h5_filter_buf_reserve(buf, 1 << 16), 0);
	buf->size = fread(buf->data, 1, buf->capacity, f);
	fclose(f);
}

static inline FILE *samples_open(const char *listing)
{
	char path[512];
	FILE *list;

	snprintf(path, sizeof path, "%s/%s", getenv("H5FS_TEST_DATA"), listing);
	list = fopen(path, "r");
	ck_assert_msg(list, "%s", path);
	return list;
}

static inline void sample_release(struct sample *s)
{
	h5_filter_buf_release(&s->in);
	h5_filter_buf_release(&s->out);
}

static inline bool sample_is_built_in(const struct sample *s)
{
	/* Bitshuffle may compress with what another filter brings. */
	bool lz4 = s->id == 32008 && s->count > 4 && s->values[4] == 2,
	     zstd = s->id == 32008 && s->count > 4 && s->values[4] == 3;

	return h5_filter_find(lz4 ? 32004 : zstd ? 32015 : s->id)->decode;
}

/* The next sample of a filter that is built in. */
static inline bool sample_next(FILE *list, struct sample *s)
{
	char line[1024], *p;
	unsigned id;
	int n;

	do {
		if (!fgets(line, sizeof line, list))
			return false;
		ck_assert_int_eq(sscanf(line, "%63s %u%n", s->name, &id, &n), 2);
		s->id = (uint16_t)id;
		s->count = 0;
		for (p = line + n; sscanf(p, "%u%n", &s->values[s->count], &n) == 1; p += n)
			ck_assert_uint_lt(s->count++, SAMPLE_VALUES_MAX - 1);
	} while (!sample_is_built_in(s));
	sample_file(s->name, "in", &s->in);
	sample_file(s->name, "out", &s->out);
	return true;
}

/* Decodes *in, which is released. */
static inline int decode_buf(uint16_t id, const uint32_t *values, unsigned count, struct h5_filter_buf *in,
			     size_t limit, struct h5_filter_buf *out)
{
	const struct h5_filter_ops *ops = h5_filter_find(id);
	bool in_place = ops->decodes_in_place && ops->decodes_in_place(values, count);
	int rc;

	memset(out, 0, sizeof *out);
	rc = ops->decode(values, count, in, out, limit);
	/* No more than may come out; the one byte is for none at all. */
	ck_assert_uint_le(out->capacity, limit ? limit : 1);
	if (in_place)
		*out = *in;
	else
		h5_filter_buf_release(in);
	return rc;
}

/* Decodes a copy that is exactly as large as the bytes, so that sanitizers see what is read beyond it. */
static inline int decode(uint16_t id, const uint32_t *values, unsigned count, const void *in, size_t size,
			 size_t limit, struct h5_filter_buf *buf)
{
	struct h5_filter_buf copy = {0};

	ck_assert_int_eq(h5_filter_buf_reserve(&copy, size), 0);
	if (size)
		memcpy(copy.data, in, size);
	copy.size = size;
	return decode_buf(id, values, count, &copy, limit, buf);
}

/* Returns how many there were. */
static inline unsigned samples_are_decoded(const char *listing)
{
	FILE *list = samples_open(listing);
	struct sample s;
	unsigned n = 0;

	for (; sample_next(list, &s); n++) {
		struct h5_filter_buf buf;

		ck_assert_msg(!decode(s.id, s.values, s.count, s.in.data, s.in.size, s.out.size, &buf),
			      "%s: %s", s.name, h5_error_last()->text);
		ck_assert_msg(buf.size == s.out.size && !memcmp(buf.data, s.out.data, buf.size), "%s",
			      s.name);
		h5_filter_buf_release(&buf);
		sample_release(&s);
	}
	fclose(list);
	return n;
}

/* One byte less than comes out is too little, for every filter. */
static inline void samples_stop_at_the_limit(const char *listing)
{
	FILE *list = samples_open(listing);
	struct sample s;

	while (sample_next(list, &s)) {
		struct h5_filter_buf buf;

		ck_assert_msg(decode(s.id, s.values, s.count, s.in.data, s.in.size, s.out.size - 1, &buf) ==
				      -EOVERFLOW,
			      "%s", s.name);
		h5_filter_buf_release(&buf);
		sample_release(&s);
	}
	fclose(list);
}

/* Cut anywhere, a chunk gives an error or fewer bytes, or the right ones where only padding was cut. */
static inline void truncated_samples_are_seen(const char *listing)
{
	FILE *list = samples_open(listing);
	struct sample s;

	while (sample_next(list, &s)) {
		/* Each length near an end, of the others one in three. */
		for (size_t n = 0; n < s.in.size; n += n < 100 || n + 100 > s.in.size ? 1 : 3) {
			struct h5_filter_buf buf;
			int rc = decode(s.id, s.values, s.count, s.in.data, n, s.out.size, &buf);

			ck_assert_msg(rc == -EUCLEAN || rc == -EOVERFLOW ||
					      (!rc && (buf.size < s.out.size ||
						       !memcmp(buf.data, s.out.data, s.out.size))),
				      "%s: %zu of %zu bytes", s.name, n, s.in.size);
			h5_filter_buf_release(&buf);
		}
		sample_release(&s);
	}
	fclose(list);
}

/* Any damage: an error, or some bytes within the limit. Sanitizers watch the rest. */
static inline void damaged_samples_do_no_harm(const char *listing, int rounds)
{
	FILE *list = samples_open(listing);
	struct sample s;
	uint32_t random = 1;

	while (sample_next(list, &s)) {
		for (int i = 0; i < rounds; i++) {
			struct h5_filter_buf buf;
			uint32_t values[SAMPLE_VALUES_MAX];
			uint8_t *in = malloc(s.in.size);

			memcpy(in, s.in.data, s.in.size);
			memcpy(values, s.values, sizeof values);
			for (int k = 0; k < 1 + i % 3; k++) {
				random = random * 1664525 + 1013904223;
				in[(random >> 8) % s.in.size] ^= (uint8_t)(1 + random % 255);
			}
			random = random * 1664525 + 1013904223;
			if (i % 2 && s.count)
				values[(random >> 8) % s.count] ^= 1u << random % 32;
			if (!decode(s.id, values, s.count, in, s.in.size, s.out.size, &buf))
				ck_assert_uint_le(buf.size, s.out.size);
			h5_filter_buf_release(&buf);
			free(in);
		}
		sample_release(&s);
	}
	fclose(list);
}

#endif
