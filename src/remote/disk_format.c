#include "remote/disk_format.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/little_endian.h"
#include "base/reader.h"
#include "base/writer.h"

#include <stdio.h>
#include <string.h>

static const char signature[] = "H5FSDISK";

enum { VERSION = 1, SIGNATURE = sizeof signature - 1 };

/* ---- the header ----
 *
 * signature (8), version (4), bytes of a block (4), URL (32), size (8), time (8), length of the tag (2), tag,
 * zeros, checksum in the last 4 bytes */

void h5_disk_encode(const struct h5_disk_header *header, uint8_t bytes[H5_DISK_HEADER])
{
	struct h5_writer w = h5_writer_init(bytes, H5_DISK_HEADER, 8, 8);
	size_t n = strlen(header->tag);

	h5_write_bytes(&w, signature, SIGNATURE);
	h5_write_u32(&w, VERSION);
	h5_write_u32(&w, H5_DISK_BLOCK);
	h5_write_bytes(&w, header->url, H5_SHA256);
	h5_write_u64(&w, header->size);
	h5_write_u64(&w, (uint64_t)header->mtime);
	h5_write_u16(&w, (uint16_t)n);
	h5_write_bytes(&w, header->tag, n);
	h5_write_fill(&w, 0, H5_DISK_HEADER - 4 - h5_writer_at(&w));
	h5_write_checksum(&w);
}

static int unsound(const char *what)
{
	return h5_fail(-EUCLEAN, H5_UNDEF, "%s", what);
}

int h5_disk_decode(const uint8_t bytes[H5_DISK_HEADER], struct h5_disk_header *header)
{
	struct h5_reader r = h5_reader_init(bytes, H5_DISK_HEADER, 0, 8, 8);
	const uint8_t *mark = h5_read_bytes(&r, SIGNATURE), *url, *tag;
	uint32_t version = h5_read_u32(&r), block = h5_read_u32(&r);
	uint16_t n;

	*header = (struct h5_disk_header){0};
	if (memcmp(mark, signature, SIGNATURE) || version != VERSION || block != H5_DISK_BLOCK)
		return unsound("not a file of this cache");
	url = h5_read_bytes(&r, H5_SHA256);
	memcpy(header->url, url, H5_SHA256);
	header->size = h5_read_u64(&r);
	header->mtime = (int64_t)h5_read_u64(&r);
	n = h5_read_u16(&r);
	tag = n < H5_DISK_TAG ? h5_read_bytes(&r, n) : NULL;
	if (!tag)
		return unsound("the header is damaged");
	memcpy(header->tag, tag, n);
	h5_reader_skip(&r, H5_DISK_HEADER - 4 - h5_reader_at(&r));
	if (h5_reader_checksum(&r, "the header") || !h5_response_is_strong(header->tag) ||
	    strlen(header->tag) != n || header->size > INT64_MAX)
		return unsound("the header is damaged");
	return 0;
}

/* ---- places ---- */

uint64_t h5_disk_blocks(uint64_t size)
{
	return size / H5_DISK_BLOCK + !!(size % H5_DISK_BLOCK);
}

size_t h5_disk_block_size(uint64_t size, uint64_t block)
{
	return (size_t)h5_min(H5_DISK_BLOCK, size - block * H5_DISK_BLOCK);
}

/* Of the first block. */
static uint64_t data_offset(uint64_t size)
{
	uint64_t map = H5_DISK_MAP + h5_disk_blocks(size) * H5_DISK_SUM;

	return (map + H5_DISK_BLOCK - 1) / H5_DISK_BLOCK * H5_DISK_BLOCK;
}

uint64_t h5_disk_offset(uint64_t size, uint64_t block)
{
	return data_offset(size) + block * H5_DISK_BLOCK;
}

bool h5_disk_file_size(uint64_t size, uint64_t *bytes)
{
	return h5_add(data_offset(size), size, bytes) && *bytes <= INT64_MAX;
}

/* ---- sums ---- */

uint64_t h5_disk_seed(const struct h5_disk_header *header)
{
	uint8_t all[H5_SHA256 + 8 + H5_DISK_TAG] = {0}, hash[H5_SHA256];
	struct h5_writer w = h5_writer_init(all, sizeof all, 8, 8);

	h5_write_bytes(&w, header->url, H5_SHA256);
	h5_write_u64(&w, header->size);
	h5_write_bytes(&w, header->tag, strlen(header->tag));
	h5_sha256(all, h5_writer_at(&w), hash);
	return h5_uint_from(hash, 8);
}

/* One to one for each `word`, and for each `state`: no single word can change without the result doing so. */
static uint64_t mix(uint64_t state, uint64_t word)
{
	uint64_t v = (state ^ word) * UINT64_C(0x9fb21c651e98df25);

	return v << 29 | v >> 35;
}

/* Four sums side by side, of every fourth word each, since a processor multiplies several at once. */
uint64_t h5_disk_sum(uint64_t seed, uint64_t block, const void *data, size_t n)
{
	uint64_t lanes[4] = {seed, ~seed, seed + block, block}, sum;
	const uint8_t *p = data;
	uint8_t rest[32] = {0};
	size_t left = n;

	for (; left >= 32; left -= 32, p += 32)
		for (unsigned i = 0; i < 4; i++)
			lanes[i] = mix(lanes[i], h5_le64(p + 8 * i));
	if (left)
		memcpy(rest, p, left);
	sum = mix(seed ^ n, block);
	for (unsigned i = 0; i < 4; i++) {
		sum = mix(sum, mix(lanes[i], h5_le64(rest + 8 * i)));
		sum ^= sum >> 32;
	}
	return sum ? sum : 1;
}

/* ---- names ---- */

static void put_digits(char *out, const uint8_t hash[H5_SHA256])
{
	for (unsigned i = 0; i < H5_DISK_DIGITS / 2; i++)
		snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

void h5_disk_name(const uint8_t url[H5_SHA256], const char *tag, char name[H5_DISK_NAME])
{
	uint8_t hash[H5_SHA256];
	char *p = stpcpy(name, H5_DISK_PREFIX);

	h5_sha256(tag, strlen(tag), hash);
	put_digits(p, url);
	p[H5_DISK_DIGITS] = '-';
	put_digits(p + H5_DISK_DIGITS + 1, hash);
}

static bool are_digits(const char *p)
{
	return strspn(p, "0123456789abcdef") >= H5_DISK_DIGITS;
}

bool h5_disk_is_name(const char *name, const uint8_t url[H5_SHA256])
{
	const char *first = name + strlen(H5_DISK_PREFIX), *second = first + H5_DISK_DIGITS + 1;
	char digits[H5_DISK_DIGITS + 1];

	if (strncmp(name, H5_DISK_PREFIX, strlen(H5_DISK_PREFIX)) || !are_digits(first) ||
	    first[H5_DISK_DIGITS] != '-' || !are_digits(second) || second[H5_DISK_DIGITS])
		return false;
	if (!url)
		return true;
	put_digits(digits, url);
	return !memcmp(first, digits, H5_DISK_DIGITS);
}
