/* Files that are damaged byte by byte, and all that a mount would show of them: an answer to everything that
 * is asked, in memory that is in proportion, and never wrong data where a checksum watches.
 *
 * In `make check` only some bytes of each file take part; H5FS_MALFORMED=all in the environment makes it all
 * of them (`make malformed`). */
#include "base/error.h"
#include "base/lookup3.h"
#include "tree_facts.h"
#include "unit.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- memory: the linker leads malloc & Co. here ---- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

/* Files here have less than 20 KB. */
enum { LARGEST_MAX = 17 << 20, PEAK_MAX = 32 << 20 };

static size_t largest, held, peak;

static void *count(void *p, size_t n)
{
	if (n > largest)
		largest = n;
	if (p)
		held += malloc_usable_size(p);
	if (held > peak)
		peak = held;
	return p;
}

static void discount(void *p)
{
	size_t n = p ? malloc_usable_size(p) : 0;

	held -= n < held ? n : held; /* strdup() & Co. are not counted */
}

void *__wrap_malloc(size_t n)
{
	return count(__real_malloc(n), n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return count(__real_calloc(n, size), n * size);
}

void *__wrap_realloc(void *p, size_t n)
{
	discount(p);
	return count(__real_realloc(p, n), n);
}

void __wrap_free(void *p)
{
	discount(p);
	__real_free(p);
}

/* ---- files ---- */

static const char *const files[] = {"malformed_old_groups",  "malformed_old_types",   "malformed_old_chunks",
				    "malformed_old_filters", "malformed_new_groups",  "malformed_new_types",
				    "malformed_new_chunks",  "malformed_new_filters", "malformed_new_dense",
				    "malformed_new_virtual", "malformed_paged",	      "malformed_userblock",
				    "structured_kind0_line"};
enum { FILES = sizeof files / sizeof *files };

struct image {
	const char *name;
	uint8_t *bytes;
	size_t size;
	struct tree_facts truth;
};

static const char *data_path(const char *name, const char *suffix)
{
	static char path[512];
	const char *folder = getenv("H5FS_TEST_DATA");

	snprintf(path, sizeof path, "%s/%s%s", folder ? folder : "tests/data", name, suffix);
	return path;
}

static void load(struct image *m, const char *name)
{
	FILE *f = fopen(data_path(name, ".h5"), "rb");

	ck_assert_ptr_nonnull(f);
	m->name = name;
	m->bytes = malloc(1 << 20);
	m->size = fread(m->bytes, 1, 1 << 20, f);
	ck_assert_uint_lt(m->size, 1 << 20);
	fclose(f);
	tree_facts_gather(m->bytes, m->size, &m->truth);
	ck_assert_uint_gt(m->truth.count, 20);
}

static void release(struct image *m)
{
	tree_facts_release(&m->truth);
	free(m->bytes);
}

/* How far it is from one byte that takes part to the next: so that a file is looked at about `times` times.
 */
static size_t stride(const struct image *m, size_t times)
{
	const char *how = getenv("H5FS_MALFORMED");

	if (how && !strcmp(how, "all"))
		return 1;
	/* Odd, so that all bytes of numbers have their turn. */
	return m->size / times | 1;
}

/* Looks at everything; the caller releases the facts. */
static void look(const struct image *m, const uint8_t *bytes, size_t size, size_t at,
		 struct tree_facts *facts)
{
	const struct tree_fact *failed;

	largest = held = peak = 0;
	tree_facts_gather(bytes, size, facts);
	ck_assert_msg(largest <= LARGEST_MAX && peak <= PEAK_MAX, "%s at %zu: %zu bytes at once, %zu in all",
		      m->name, at, largest, peak);
	failed = tree_facts_failed(facts, ENOMEM);
	ck_assert_msg(!failed, "%s at %zu: %s asks for too much memory", m->name, at,
		      failed ? failed->key : "");
}

/* ---- tests ---- */

enum { TIMES = 600 };

START_TEST(truncated_files)
{
	struct tree_facts facts;
	struct image m;

	load(&m, files[_i]);
	for (size_t size = 0; size < m.size; size += stride(&m, TIMES)) {
		/* In memory of that size, so that a sanitizer sees what is read beyond. */
		uint8_t *bytes = malloc(size + !size);

		memcpy(bytes, m.bytes, size);
		look(&m, bytes, size, size, &facts);
		tree_facts_release(&facts);
		free(bytes);
	}
	release(&m);
}
END_TEST

static uint8_t change(uint8_t byte, unsigned how)
{
	switch (how) {
	case 0:
		return byte ^ 0xff;
	case 1:
		return byte ? 0 : 0x80;
	case 2:
		return (uint8_t)(byte + 1);
	default:
		return byte ^ 0x10;
	}
}

START_TEST(changed_bytes)
{
	struct tree_facts facts;
	struct image m;

	load(&m, files[_i]);
	for (size_t at = 0, n = 0; at < m.size; at += stride(&m, TIMES), n++)
		for (unsigned how = 0; how < 4; how++) {
			uint8_t old = m.bytes[at];

			/* One way each, in turn, where not all take part. */
			if (stride(&m, TIMES) > 1 && how != n % 4)
				continue;
			m.bytes[at] = change(old, how);
			look(&m, m.bytes, m.size, at, &facts);
			tree_facts_release(&facts);
			m.bytes[at] = old;
		}
	release(&m);
}
END_TEST

static bool is_raw(const char *list, size_t at)
{
	FILE *f = fopen(list, "r");
	size_t begin, size;
	bool raw = false;

	ck_assert_ptr_nonnull(f);
	while (!raw && fscanf(f, "%zu %zu", &begin, &size) == 2)
		raw = at >= begin && at - begin < size;
	fclose(f);
	return raw;
}

/* A byte of which a checksum knows, or none that matters. */
START_TEST(checksums_watch)
{
	const char *list;
	struct tree_facts facts;
	unsigned noticed = 0, all = 0;
	struct image m;

	load(&m, "malformed_sums");
	list = data_path("malformed_sums", ".raw");
	for (size_t at = (size_t)_i; at < m.size; at += 4 * stride(&m, 2 * TIMES)) {
		const struct tree_fact *wrong;

		if (is_raw(list, at))
			continue;
		m.bytes[at] ^= (uint8_t)(1 << at % 8);
		look(&m, m.bytes, m.size, at, &facts);
		m.bytes[at] ^= (uint8_t)(1 << at % 8);
		wrong = tree_facts_wrong(&facts, &m.truth);
		ck_assert_msg(!wrong, "byte %zu changed: %s is %s", at, wrong ? wrong->key : "",
			      wrong ? wrong->value : "");
		noticed += tree_facts_failed(&facts, EUCLEAN) != NULL;
		all++;
		tree_facts_release(&facts);
	}
	/* The rest is room that structures have left. */
	ck_assert_uint_gt(noticed, all / 3);
	release(&m);
}
END_TEST

/* ---- changes that checksums don't notice ---- */

/* A block that ends in its checksum, or has it inside. */
struct block {
	size_t begin, end; /* of what is summed */
	size_t sum;
};

static uint32_t get32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put32(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

/* Direct blocks of fractal heaps are summed with zeros for the sum. */
static uint32_t sum_of(uint8_t *bytes, const struct block *block)
{
	uint32_t old = get32(bytes + block->sum), sum;
	bool inside = block->sum < block->end;

	if (inside)
		put32(bytes + block->sum, 0);
	sum = h5_lookup3(bytes + block->begin, block->end - block->begin, 0);
	if (inside)
		put32(bytes + block->sum, old);
	return sum;
}

static void sign(uint8_t *bytes, const struct block *block)
{
	put32(bytes + block->sum, sum_of(bytes, block));
}

/* The block that begins here, found by its sum. */
static bool find_block(const struct image *m, size_t begin, struct block *block)
{
	static const char *const signatures[] = {"OHDR", "OCHK", "FRHP", "FHIB", "BTHD",    "BTIN",
						 "BTLF", "FAHD", "FADB", "EAHD", "EAIB",    "EASB",
						 "EADB", "SMTB", "SMLI", "MDCI", "\x89HDF", "FHDB"};
	const size_t n = sizeof signatures / sizeof *signatures;
	size_t i = 0;

	while (i < n && memcmp(m->bytes + begin, signatures[i], 4))
		i++;
	if (i == n)
		return false;
	block->begin = begin;
	for (size_t at = begin + 8; at + 4 <= m->size; at++) {
		*block = (struct block){begin, at, at};
		/* Behind the offset in the heap, of four or five bytes, in a block of a power of two */
		if (i == n - 1) {
			block->end = begin + 512;
			block->sum = at;
			if (at > begin + 24 || block->end > m->size)
				return false;
		}
		if (sum_of(m->bytes, block) == get32(m->bytes + at))
			return true;
	}
	return false;
}

static unsigned find_blocks(const struct image *m, struct block *blocks, unsigned max)
{
	unsigned n = 0;

	for (size_t at = 0; at + 12 < m->size && n < max; at++)
		n += find_block(m, at, &blocks[n]);
	return n;
}

static void look_at_signed(const struct image *m, const struct block *block, size_t at)
{
	struct tree_facts facts;

	sign(m->bytes, block);
	look(m, m->bytes, m->size, at, &facts);
	tree_facts_release(&facts);
}

/* Numbers that a hostile writer would think of, as eight bytes: also of the field before and behind. */
static uint64_t hostile(const struct image *m, const struct block *block, unsigned n)
{
	const uint64_t values[] = {0,	    UINT64_MAX,		(uint64_t)1 << 63, INT64_MAX, block->begin,
				   m->size, 0x0101010101010101, (uint64_t)1 << 32};

	return values[n % 8];
}

static const char *const summed_files[] = {"malformed_sums", "malformed_new_groups", "malformed_new_types",
					   "malformed_new_virtual", "malformed_paged"};
enum { SUMMED = sizeof summed_files / sizeof *summed_files, BLOCKS_MAX = 200, WAYS = 12 };

START_TEST(changes_with_the_right_checksum)
{
	static struct block blocks[BLOCKS_MAX];
	size_t n = 0, step;
	unsigned count;
	struct image m;

	load(&m, summed_files[_i]);
	count = find_blocks(&m, blocks, BLOCKS_MAX);
	ck_assert_uint_ge(count, 5);
	step = stride(&m, TIMES);
	for (unsigned b = 0; b < count; b++)
		for (size_t at = blocks[b].begin + (step > 1 ? b % step : 0); at < blocks[b].end;
		     at += step, n++)
			for (unsigned how = 0; how < WAYS; how++) {
				uint8_t old[8], sum[4];
				size_t width = how < 4 ? 1 : blocks[b].end - at < 8 ? blocks[b].end - at : 8;

				if (step > 1 && how != n % WAYS)
					continue;
				memcpy(sum, m.bytes + blocks[b].sum, 4);
				memcpy(old, m.bytes + at, width);
				m.bytes[at] = change(old[0], how);
				for (unsigned i = 0; i < width && width > 1; i++)
					m.bytes[at + i] = (uint8_t)(hostile(&m, &blocks[b], how) >> 8 * i);
				look_at_signed(&m, &blocks[b], at);
				memcpy(m.bytes + at, old, width);
				memcpy(m.bytes + blocks[b].sum, sum, 4);
			}
	release(&m);
}
END_TEST

UNIT_MAIN_LOOPS("malformed", {truncated_files, FILES}, {changed_bytes, FILES}, {checksums_watch, 4},
		{changes_with_the_right_checksum, SUMMED})
