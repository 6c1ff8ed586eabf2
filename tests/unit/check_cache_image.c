/* A file with a metadata cache image: its blocks are read as if they were in their places. And what else a
 * file says of itself where it begins. */
#include "base/error.h"
#include "base/lookup3.h"
#include "fault_alloc.h"
#include "format/object_header.h"
#include "store/cache_image.h"
#include "store/extension.h"
#include "store/file_open.h"
#include "store/file_private.h"
#include "store/file_set.h"
#include "store/statistics.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

enum {
	SIZE = 4096,
	EXTENSION = 300,
	EXTENSION_SIZE = 16 + 8 + 24,
	IMAGE = 1000,
	SUPERBLOCK = 48,
	ENTRIES = 4,
	IMAGE_MAX = 1 << 26
};

struct entry {
	uint64_t address, n; /* its bytes are `c`, n of them */
	char c;
};

static uint8_t bytes[SIZE];
static size_t base, at; /* at: where the next byte of an image goes */

static void put(uint64_t number, unsigned n)
{
	for (; n--; number >>= 8)
		bytes[at++] = (uint8_t)number;
}

/* The image has these entries, and says that it has `count` of them. Returns its size. */
static size_t put_image(const struct entry *entries, size_t n, uint32_t count, unsigned parents)
{
	size_t begin = at = base + IMAGE;

	memcpy(bytes + at, "MDCI\0\0", 6);
	at += 6;
	put(0, 8);
	put(count, 4);
	for (size_t i = 0; i < n; i++) {
		put(0, 8);
		put(parents, 2);
		put(0, 4);
		put(entries[i].address, 8);
		put(entries[i].n, 8);
		for (unsigned k = 0; k < parents; k++)
			put(77, 8);
		for (uint64_t k = 0; k < entries[i].n && k < 200; k++)
			put((uint8_t)entries[i].c, 1);
	}
	put(h5_lookup3(bytes + begin, at - begin, 0), 4);
	return at - begin;
}

/* All else: a superblock, and its extension with the one message. */
static void put_file(uint64_t address, uint64_t size)
{
	const struct h5_superblock sb = {.version = 2,
					 .size_of_offsets = 8,
					 .size_of_lengths = 8,
					 .base = base,
					 .extension = EXTENSION,
					 .end = SIZE,
					 .driver_info = H5_UNDEF,
					 .root = 90};
	struct h5_writer w = h5_writer_init(bytes + base, H5_SUPERBLOCK_NEW, 8, 8);

	h5_superblock_encode(&w, &sb);
	at = base + EXTENSION;
	put(1, 1);
	put(0, 1);
	put(1, 2);
	put(1, 4);
	put(32, 4);
	put(0, 4);
	put(H5_MSG_CACHE_IMAGE, 2);
	put(24, 2);
	put(0, 4);
	put(0, 1);
	put(address, 8);
	put(size, 8);
	put(0, 7);
}

static void begin(size_t user_block)
{
	base = user_block;
	memset(bytes, '.', SIZE);
}

static int open_set(struct h5_file_set **set)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};
	int rc;

	fault_alloc_count(true);
	rc = h5_file_set_open_memory(bytes, SIZE, &options, set);
	fault_alloc_count(false);
	return rc;
}

/* `expected`: what is read from the address on. */
static void reads(const struct entry *entries, size_t n, uint64_t address, const char *expected)
{
	size_t size = put_image(entries, n, (uint32_t)n, 0);
	struct h5_file_set *set;
	char got[64];

	put_file(IMAGE, size);
	ck_assert_int_eq(open_set(&set), 0);
	ck_assert(!h5_file_is_plain(h5_file_set_root(set)));
	ck_assert_int_eq(h5_file_read(h5_file_set_root(set), address, got, strlen(expected)), 0);
	ck_assert_msg(!memcmp(got, expected, strlen(expected)), "%.*s", (int)strlen(expected), got);
	h5_file_set_close(set);
}

static void refuses(int code, const char *text)
{
	struct h5_file_set *set;

	ck_assert_int_eq(open_set(&set), code);
	ck_assert_msg(strstr(h5_error_last()->text, text), "%s", h5_error_last()->text);
}

START_TEST(blocks_in_their_places)
{
	for (size_t user_block = 0; user_block <= 512; user_block += 512) {
		const struct entry entries[] = {{2010, 3, 'b'}, {2000, 5, 'a'}, {2013, 2, 'c'},
						{2015, 0, 'x'}, {2015, 0, 'x'}, {2020, 1, 'd'}};

		begin(user_block);
		reads(entries, 6, 1998, "..aaaaa.....bbbcc.....d..");
		begin(user_block);
		reads(NULL, 0, 1998, ".....");
	}
}
END_TEST

/* The superblock and its extension were read already: a block over them is left out as a whole. */
START_TEST(blocks_that_are_left_out)
{
	for (size_t user_block = 0; user_block <= 512; user_block += 512) {
		begin(user_block);
		reads((struct entry[]){{SUPERBLOCK - 1, 4, 'a'}}, 1, SUPERBLOCK, "...");
		begin(user_block);
		reads((struct entry[]){{SUPERBLOCK, 3, 'a'}}, 1, SUPERBLOCK, "aaa.");
		begin(user_block);
		reads((struct entry[]){{EXTENSION - 3, 3, 'a'}}, 1, EXTENSION - 4, ".aaa");
		begin(user_block);
		reads((struct entry[]){{EXTENSION - 3, 4, 'a'}}, 1, EXTENSION - 4, "....");
		begin(user_block);
		reads((struct entry[]){{EXTENSION + EXTENSION_SIZE - 1, 4, 'a'}}, 1,
		      EXTENSION + EXTENSION_SIZE, "...");
		begin(user_block);
		reads((struct entry[]){{EXTENSION + EXTENSION_SIZE, 3, 'a'}}, 1, EXTENSION + EXTENSION_SIZE,
		      "aaa.");
		begin(user_block);
		reads((struct entry[]){{EXTENSION + 10, 3, 'a'}, {2000, 1, 'b'}}, 2, 1999, ".b.");
	}
}
END_TEST

START_TEST(images_that_cannot_be)
{
	const struct entry some[] = {{2000, 5, 'a'}, {2010, 3, 'b'}};
	struct h5_file_set *set;
	size_t size;

	begin(0);
	put_file(IMAGE, put_image((struct entry[]){{2010, 1, 'a'}, {2000, 11, 'b'}}, 2, 2, 0));
	refuses(-EUCLEAN, "entries overlap");
	put_file(IMAGE, put_image((struct entry[]){{2000, 1, 'a'}, {2000, 1, 'b'}}, 2, 2, 0));
	refuses(-EUCLEAN, "entries overlap");
	put_file(IMAGE, put_image((struct entry[]){{UINT64_MAX - 3, 4, 'a'}}, 1, 1, 0));
	refuses(-EUCLEAN, "an entry at");
	/* The image states wrong things of its entries. */
	size = put_image(some, 2, 100, 0);
	put_file(IMAGE, size);
	refuses(-EUCLEAN, "100 entries do not fit");
	put_file(IMAGE, put_image(some, 2, 3, 0));
	refuses(-EUCLEAN, "cache image entry");
	put_file(IMAGE, put_image((struct entry[]){{2000, 300, 'a'}}, 1, 1, 0));
	refuses(-EUCLEAN, "cache image entry");
	put_file(IMAGE, put_image(some, 2, 1, 3));
	ck_assert_int_eq(open_set(&set), 0);
	h5_file_set_close(set);
	/* Its bytes. */
	size = put_image(some, 2, 2, 0);
	put_file(IMAGE, size);
	for (size_t i = 0; i < size; i++) {
		bytes[IMAGE + i] ^= 1;
		ck_assert_int_eq(open_set(&set), i == 4 ? -ENOTSUP : -EUCLEAN);
		bytes[IMAGE + i] ^= 1;
	}
	ck_assert_int_eq(open_set(&set), 0);
	h5_file_set_close(set);
	/* Its place. */
	put_file(H5_UNDEF, size);
	ck_assert_int_eq(open_set(&set), 0);
	ck_assert(h5_file_is_plain(h5_file_set_root(set)));
	h5_file_set_close(set);
	put_file(SIZE - size + 1, size);
	refuses(-EUCLEAN, "cache image");
	put_file(IMAGE, IMAGE_MAX);
	refuses(-EUCLEAN, "reach beyond the end of the file");
	put_file(IMAGE, (uint64_t)IMAGE_MAX + 1);
	refuses(-ENOTSUP, "cache image: 67108865 bytes");
}
END_TEST

/* With parents, which each entry may have. */
START_TEST(parents)
{
	const struct entry some[] = {{2000, 2, 'a'}, {2010, 3, 'b'}};
	struct h5_file_set *set;
	char got[4];

	begin(0);
	put_file(IMAGE, put_image(some, 2, 2, 5));
	ck_assert_int_eq(open_set(&set), 0);
	ck_assert_int_eq(h5_file_read(h5_file_set_root(set), 2010, got, 4), 0);
	ck_assert_mem_eq(got, "bbb.", 4);
	h5_file_set_close(set);
}
END_TEST

START_TEST(memory_is_short)
{
	const struct entry some[] = {{2000, 2, 'a'}, {2010, 3, 'b'}};
	bool fired = true;

	begin(0);
	put_file(IMAGE, put_image(some, 2, 2, 0));
	for (unsigned long n = 1; fired; n++) {
		struct h5_file_set *set;
		int rc;

		fault_alloc_arm(n);
		rc = open_set(&set);
		fired = fault_alloc_disarm();
		ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
		if (!rc)
			h5_file_set_close(set);
	}
}
END_TEST

/* ---- what is beneath the image ---- */

static int io_error;
static unsigned io_calls, io_closed;
static unsigned reads_done, failing_read; /* the read of that number fails; 0: none */

static int read_bytes(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	(void)io;
	if (++reads_done == failing_read) {
		*got = n; /* counts for nothing */
		return h5_fail(-EIO, offset, "it fails");
	}
	*got = offset < SIZE ? n < SIZE - offset ? n : (size_t)(SIZE - offset) : 0;
	memcpy(buf, bytes + offset, *got);
	return 0;
}

static int stat_bytes(struct h5_io *io, struct h5_io_stat *st)
{
	(void)io;
	*st = (struct h5_io_stat){.size = SIZE, .stored = SIZE, .end = SIZE};
	return 0;
}

static int write_bytes(struct h5_io *io, uint64_t offset, const void *buf, size_t n)
{
	(void)io;
	if (!io_error)
		memcpy(bytes + offset, buf, n);
	io_calls++;
	return io_error;
}

static int resize_bytes(struct h5_io *io, uint64_t size)
{
	(void)io;
	ck_assert_uint_eq(size, 5000);
	io_calls++;
	return io_error;
}

static int sync_bytes(struct h5_io *io)
{
	(void)io;
	io_calls++;
	return io_error;
}

static int punch_bytes(struct h5_io *io, uint64_t offset, uint64_t n)
{
	(void)io;
	ck_assert(offset == 3000 && n == 7);
	io_calls++;
	return io_error;
}

static void close_bytes(struct h5_io *io)
{
	(void)io;
	io_closed++;
}

/* Writes go to the file beneath, which tells if they fail. What the image has is still read from there. */
START_TEST(changes_beneath_an_image)
{
	static const struct h5_io_ops ops = {.read = read_bytes,
					     .stat = stat_bytes,
					     .write = write_bytes,
					     .resize = resize_bytes,
					     .sync = sync_bytes,
					     .punch = punch_bytes,
					     .close = close_bytes};
	static const struct entry some[] = {{2000, 2, 'a'}};
	static const int errors[] = {-EIO, 0};
	struct h5_statistics statistics = {0};
	atomic_uint_fast64_t numbers = 0;
	const struct h5_file_shared shared = {.statistics = &statistics, .numbers = &numbers};
	struct h5_io beneath = {.ops = &ops};
	struct h5_header extension;
	struct h5_file *file;
	char got[4];

	begin(0);
	put_file(IMAGE, put_image(some, 1, 1, 0));
	ck_assert_int_eq(h5_file_new(&shared, &beneath, 0, &file), 0);
	ck_assert_int_eq(h5_extension_load(file, &extension), 0);
	ck_assert_int_eq(h5_cache_image_lay_over(file, &extension), 0);
	h5_header_release(&extension);
	io_closed = 0;
	for (unsigned i = 0; i < 2; i++) {
		struct h5_io *io = h5_file_io(file);

		io_error = errors[i];
		io_calls = 0;
		ck_assert_ptr_ne(io, &beneath);
		ck_assert_int_eq(h5_io_write(io, 2001, "xyz", 3), io_error);
		ck_assert_int_eq(h5_io_resize(io, 5000), io_error);
		ck_assert_int_eq(h5_io_sync(io), io_error);
		ck_assert_int_eq(h5_io_punch(io, 3000, 7), io_error);
		ck_assert_uint_eq(io_calls, 4);
		ck_assert_int_eq(h5_file_read(file, 2000, got, 4), 0);
		ck_assert_mem_eq(got, io_error ? "aa.." : "aayz", 4);
	}
	ck_assert_ptr_nonnull(h5_file_image(file));
	h5_file_drop_image(file);
	ck_assert_ptr_null(h5_file_image(file));
	ck_assert_int_eq(h5_file_read(file, 2000, got, 4), 0);
	ck_assert_mem_eq(got, ".xyz", 4);
	h5_file_close(file);
	ck_assert_uint_eq(io_closed, 1);
}
END_TEST

/* ---- other messages of the extension ---- */

/* An extension with one message, the first byte of which is its version. */
static void put_extension(unsigned type, uint8_t version)
{
	put_file(0, 0);
	at = base + EXTENSION + 16;
	put(type, 2);
	put(24, 2);
	put(0, 4);
	put(version, 1);
}

static int ask(struct h5_file *file, unsigned type)
{
	struct h5_shared_table_message table;
	struct h5_file_space_info info;
	struct h5_driver_info driver;
	struct h5_header extension;
	struct h5_btree1_k k;
	uint64_t address;
	int rc;

	switch (type) {
	case H5_MSG_BTREE_K:
		return h5_extension_btree_k(file, &k);
	case H5_MSG_FILE_SPACE_INFO:
		return h5_extension_file_space(file, &info);
	case H5_MSG_SHARED_TABLE:
		return h5_extension_shared_table(file, &table);
	default:
		rc = h5_extension_load(file, &extension);
		if (!rc)
			rc = h5_extension_driver_info(file, &extension, &driver, &address);
		h5_header_release(&extension);
		return rc;
	}
}

struct visited {
	uint64_t address, n;
	unsigned times;
	int rc;
};

static int note_visit(void *arg, uint64_t address, uint64_t n)
{
	struct visited *visited = arg;

	*visited = (struct visited){address, n, visited->times + 1, visited->rc};
	return visited->rc;
}

/* Of what the extension says that is damaged, or not known, the error is told. */
START_TEST(messages_that_cannot_be_read)
{
	static const struct {
		unsigned type;
		int rc;
	} cases[] = {{H5_MSG_BTREE_K, -ENOTSUP},
		     {H5_MSG_FILE_SPACE_INFO, -ENOTSUP},
		     {H5_MSG_SHARED_TABLE, -EUCLEAN},
		     {H5_MSG_DRIVER_INFO, -EUCLEAN}};
	enum { CASES = sizeof cases / sizeof *cases };
	struct h5_statistics statistics = {0};
	atomic_uint_fast64_t numbers = 0;
	struct h5_file_shared shared = {.statistics = &statistics, .numbers = &numbers};

	ck_assert_int_eq(h5_lru_open(1 << 20, &shared.blocks), 0);
	for (unsigned i = 0; i <= CASES + 1; i++) {
		/* The last two: a message that is not allowed there, and no header at all. */
		const int rc = i < CASES ? 0 : -EUCLEAN, load = i <= CASES ? 0 : -EUCLEAN;
		struct visited visited = {0};
		struct h5_file *file;
		struct h5_io *memory;

		begin(0);
		put_extension(i < CASES ? cases[i].type : H5_MSG_REFERENCE_COUNT, 200);
		if (i > CASES)
			memset(bytes + EXTENSION, 'x', 16);
		ck_assert_int_eq(h5_io_open_memory(bytes, SIZE, &memory), 0);
		ck_assert_int_eq(h5_file_new(&shared, memory, 0, &file), 0);
		for (unsigned k = 0; k < CASES; k++)
			ck_assert_int_eq(ask(file, cases[k].type), i > CASES ? -EUCLEAN
								   : k == i  ? cases[k].rc
									     : -ENODATA);
		ck_assert_int_eq(h5_extension_check(file), rc);
		ck_assert_int_eq(h5_extension_extents(file, note_visit, &visited), load);
		ck_assert_uint_eq(visited.times, !load);
		if (!load) {
			ck_assert(visited.address == EXTENSION && visited.n == EXTENSION_SIZE);
			visited.rc = -ECANCELED;
			ck_assert_int_eq(h5_extension_extents(file, note_visit, &visited), -ECANCELED);
		}
		h5_file_close(file);
	}
	h5_lru_close(shared.blocks);
}
END_TEST

/* What a whole file says of its driver is believed, or the file is refused. A file that is as large as one
 * member of its family is that member; a larger one has all of them. */
START_TEST(what_is_said_of_the_driver)
{
	static const struct {
		uint64_t member_size;
		bool is_plain;
	} cases[] = {{SIZE - 1, true}, {SIZE, false}, {SIZE + 1, false}};

	begin(0);
	put_extension(H5_MSG_DRIVER_INFO, 200);
	refuses(-EUCLEAN, "driver info message: version 200");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_file_set *set;

		begin(0);
		put_extension(H5_MSG_DRIVER_INFO, 0);
		memcpy(bytes + at, "NCSAfami", 8);
		at += 8;
		put(8, 2);
		put(cases[i].member_size, 8);
		ck_assert_int_eq(open_set(&set), 0);
		ck_assert_int_eq(h5_file_is_plain(h5_file_set_root(set)), cases[i].is_plain);
		h5_file_set_close(set);
	}
}
END_TEST

/* Each read that fails while a file is opened, or its pieces are joined, is told. */
START_TEST(reads_that_fail)
{
	static const struct h5_io_ops ops = {.read = read_bytes, .stat = stat_bytes, .close = close_bytes};
	struct h5_statistics statistics = {0};
	atomic_uint_fast64_t numbers = 0;
	const struct h5_file_shared shared = {.statistics = &statistics, .numbers = &numbers};
	const struct h5_folder folder = {.fd = -1};
	const struct h5_file_place place = {.folder = &folder, .path = "a"};
	static const struct entry some[] = {{2000, 2, 'a'}};

	for (unsigned joins = 0; joins < 2; joins++) {
		unsigned failed = 0;

		begin(0);
		put_file(IMAGE, put_image(some, 1, 1, 0));
		/* The first read looks for the driver that joins files. If it fails, the file counts as one
		 * without. */
		for (failing_read = joins ? 2 : 1;; failing_read++) {
			struct h5_io beneath = {.ops = &ops}, *io = &beneath;
			struct h5_joined *joined;
			struct h5_file *file;
			int rc;

			reads_done = 0;
			rc = joins ? h5_file_join(&shared, &place, false, &io, &joined)
				   : h5_file_open(&shared, &place, io, NULL, &file);
			if (reads_done < failing_read) {
				ck_assert_int_eq(rc, 0);
				if (!joins)
					h5_file_close(file);
				break;
			}
			ck_assert_int_eq(rc, -EIO);
			failed++;
		}
		ck_assert_uint_gt(failed, 1);
	}
	failing_read = 0;
}
END_TEST

/* A reader of SWMR follows the changes of others; a writer makes them itself. */
START_TEST(who_follows_changes)
{
	begin(0);
	put_file(IMAGE, put_image(NULL, 0, 0, 0));
	for (unsigned i = 0; i < 4; i++) {
		const struct h5_file_set_options options = {
			.block_cache = 1 << 20, .chunk_cache = 1 << 20, .swmr = i & 1, .writable = i & 2};
		struct h5_file_set *set;

		ck_assert_int_eq(h5_file_set_open_memory(bytes, SIZE, &options, &set), 0);
		ck_assert_int_eq(h5_file_shared(h5_file_set_root(set))->follows, i == 1);
		h5_file_set_close(set);
	}
}
END_TEST

/* A window holds nothing of what could not be read. */
START_TEST(a_window_that_cannot_be_read)
{
	static const struct h5_io_ops ops = {.read = read_bytes, .stat = stat_bytes, .close = close_bytes};
	static const uint64_t addresses[] = {2000, 2100}, alone = 2500;
	struct h5_statistics statistics = {0};
	atomic_uint_fast64_t numbers = 0;
	const struct h5_file_shared shared = {.statistics = &statistics, .numbers = &numbers};
	struct h5_io beneath = {.ops = &ops};
	struct h5_window window;
	struct h5_file *file;

	begin(0);
	put_file(IMAGE, put_image(NULL, 0, 0, 0));
	ck_assert_int_eq(h5_file_new(&shared, &beneath, 0, &file), 0);
	h5_window_init(&window, file);
	for (unsigned fails = 2; fails-- > 0;) {
		h5_file_renumber(file); /* what it held counts no more */
		reads_done = 0;
		failing_read = fails;
		h5_window_move(&window, addresses, 2, 50);
		ck_assert_uint_eq(reads_done, 1);
		ck_assert_uint_eq(window.size, fails ? 0 : 150);
	}
	failing_read = 0;
	/* A window is not opened for a single block. */
	h5_window_move(&window, &alone, 1, 50);
	ck_assert_uint_eq(window.size, 0);
	h5_window_release(&window);
	h5_file_close(file);
}
END_TEST

UNIT_MAIN("cache_image", blocks_in_their_places, blocks_that_are_left_out, images_that_cannot_be, parents,
	  memory_is_short, changes_beneath_an_image, messages_that_cannot_be_read, what_is_said_of_the_driver,
	  reads_that_fail, who_follows_changes, a_window_that_cannot_be_read)
