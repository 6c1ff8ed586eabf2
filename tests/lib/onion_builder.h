/* Makes a file of the onion driver in memory, FILE.onion: pages, then records of revisions, then the history.
 */
#ifndef H5_TESTS_ONION_BUILDER_H
#define H5_TESTS_ONION_BUILDER_H

#include "base/fletcher32.h"
#include "unit.h"

#include <stdint.h>
#include <string.h>

enum { PAGE = 8, MOST = 3 << 20 };

#define TIME "20261123T104500"

static uint8_t onion_bytes[MOST]; /* of the onion file */
static size_t onion_size;

struct page {
	uint64_t address, offset;
};

static void put(const void *data, size_t n)
{
	ck_assert_uint_le(onion_size + n, MOST);
	memcpy(onion_bytes + onion_size, data, n);
	onion_size += n;
}

static void put_number(uint64_t number, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t byte = (uint8_t)(number >> 8 * i);

		put(&byte, 1);
	}
}

static void put_sum(size_t from)
{
	put_number(h5_fletcher32(onion_bytes + from, onion_size - from), 4);
}

static const char *time_text = TIME;
static struct {
	uint64_t offset, size;
} onion_places[70000];
static size_t onion_revisions;

/* The header follows when all else is there. */
static void onion_begin(void)
{
	onion_size = 40;
	onion_revisions = 0;
	time_text = TIME;
}

/* An entry of a list: two numbers, and their checksum. */
static void put_pair(uint64_t a, uint64_t b)
{
	size_t from = onion_size;

	put_number(a, 8);
	put_number(b, 8);
	put_sum(from);
}

static void put_record(uint64_t end, uint32_t page_size, const struct page *pages, size_t count,
		       size_t comment)
{
	size_t at = onion_size;

	put("ORRS\1\0\0\0", 8);
	put_number(onion_revisions, 8);
	put_number(onion_revisions, 8);
	put(time_text, 16);
	put_number(end, 8);
	put_number(page_size, 4);
	put_number(count, 8);
	put_number(comment, 4);
	for (size_t i = 0; i < count; i++)
		put_pair(pages[i].address, pages[i].offset);
	for (size_t i = 0; i < comment; i++)
		put("c", 1);
	put_sum(at);
	onion_places[onion_revisions].offset = at;
	onion_places[onion_revisions++].size = onion_size - at;
}

static void put_header(uint64_t origin_end, uint64_t history, uint64_t history_size, unsigned flags)
{
	size_t all = onion_size;

	onion_size = 0;
	put("OHDH\1", 5);
	put_number(flags, 3);
	put_number(PAGE, 4);
	put_number(origin_end, 8);
	put_number(history, 8);
	put_number(history_size, 8);
	put_sum(0);
	onion_size = all;
}

static void finish(uint64_t origin_end)
{
	size_t at = onion_size;

	put("OWHS\1\0\0\0", 8);
	put_number(onion_revisions, 8);
	for (size_t i = 0; i < onion_revisions; i++)
		put_pair(onion_places[i].offset, onion_places[i].size);
	put_sum(at);
	put_header(origin_end, at, onion_size - at, 0);
}

#endif
