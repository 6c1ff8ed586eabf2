/* The files of a set: by which names they are found, and how many there may be. */
#include "base/error.h"
#include "change/open.h"
#include "fault_alloc.h"
#include "fault_call.h"
#include "io/remote.h"
#include "onion_builder.h"
#include "scratch.h"
#include "store/file_private.h"
#include "store/file_set.h"
#include "store/folder.h"
#include "store/onion.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 512, SIZE = 80 << 10 };

static char folder[128];

/* An HDF5 file of nothing but a superblock, in the folder. */
static void make_file(const char *name)
{
	const struct h5_superblock sb = {.version = 2,
					 .size_of_offsets = 8,
					 .size_of_lengths = 8,
					 .extension = H5_UNDEF,
					 .end = 48,
					 .driver_info = H5_UNDEF,
					 .root = 48};
	uint8_t superblock[H5_SUPERBLOCK_NEW];
	struct h5_writer w = h5_writer_init(superblock, sizeof superblock, 8, 8);
	char path[300];
	FILE *file;

	h5_superblock_encode(&w, &sb);
	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(superblock, 1, sizeof superblock, file), sizeof superblock);
	fclose(file);
}

static const struct h5_file_set_options usual = {.block_cache = 1 << 20,
						 .chunk_cache = 1 << 20,
						 .external = H5_EXTERNAL_BENEATH,
						 .lock = H5_LOCK_ALWAYS};

/* A set around the file "root". */
static struct h5_file_set *open_set(bool writable)
{
	static unsigned number;
	struct h5_file_set_options options = usual;
	struct h5_file_set *set;
	char path[200];

	snprintf(folder, sizeof folder, "%s/%u", scratch_folder(), number++);
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	make_file("root");
	snprintf(path, sizeof path, "%s/root", folder);
	options.writable = writable;
	SUCCEEDS(h5_open_file(path, &options, &set, NULL));
	ck_assert_str_eq(h5_file_set_path(set), path);
	return set;
}

static void make_folder(const char *name)
{
	char path[300];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void make_link(const char *from, const char *to)
{
	char a[300], b[300];

	snprintf(a, sizeof a, "%s/%s", folder, from);
	snprintf(b, sizeof b, "%s/%s", folder, to);
	ck_assert_int_eq(link(a, b), 0);
}

/* Names are relative to the folder of the file that has them. A file is open once, whatever it is called. */
START_TEST(names_of_files)
{
	struct h5_file_set *set = open_set(false);
	struct h5_file *root = h5_file_set_root(set), *a, *b, *c;

	make_folder("sub");
	make_folder("sub/below");
	make_file("sub/a");
	make_file("sub/below/b");
	make_file("b");
	make_link("sub/a", "again");
	make_link("root", "self");
	SUCCEEDS(h5_file_set_find(set, root, "sub/a", &a));
	ck_assert_ptr_ne(a, root);
	SUCCEEDS(h5_file_set_find(set, a, "below/b", &b));
	SUCCEEDS(h5_file_set_find(set, root, "sub/below/b", &c));
	ck_assert_ptr_eq(c, b);
	SUCCEEDS(h5_file_set_find(set, b, "b", &c));
	ck_assert_ptr_eq(c, b);
	SUCCEEDS(h5_file_set_find(set, root, "b", &c));
	ck_assert_ptr_ne(c, b);
	SUCCEEDS(h5_file_set_find(set, root, "again", &c));
	ck_assert_ptr_eq(c, a);
	SUCCEEDS(h5_file_set_find(set, root, "self", &c));
	ck_assert_ptr_eq(c, root);
	SUCCEEDS(h5_file_set_find(set, root, "root", &c));
	ck_assert_ptr_eq(c, root);
	ck_assert_int_eq(h5_file_set_find(set, a, "b", &c), -ENOENT);
	ck_assert_int_eq(h5_file_set_find(set, root, "a", &c), -ENOENT);
	ck_assert_ptr_null(c);
	h5_file_set_close(set);
}
END_TEST

static uint64_t stored; /* bytes that files store which are opened from now on; 0: as many as they do */

struct counted_io {
	struct h5_io io, *beneath;
	uint64_t stored;
};

static int read_counted(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	return h5_io_read_some(((struct counted_io *)io)->beneath, offset, buf, n, got);
}

static int stat_counted(struct h5_io *io, struct h5_io_stat *st)
{
	int rc = h5_io_stat(((struct counted_io *)io)->beneath, st);

	st->stored = ((struct counted_io *)io)->stored;
	return rc;
}

static void close_counted(struct h5_io *io)
{
	h5_io_close(((struct counted_io *)io)->beneath);
	free(io);
}

static const struct h5_io_ops counted_ops = {
	.read = read_counted, .stat = stat_counted, .close = close_counted};

static struct h5_file_set *opens_again; /* meanwhile another thread finds the file by its other name there */

int __real_h5_io_open_fd(int fd, enum h5_lock_mode lock, bool writable, struct h5_io **io);
int __wrap_h5_io_open_fd(int fd, enum h5_lock_mode lock, bool writable, struct h5_io **io);
int __wrap_h5_io_open_fd(int fd, enum h5_lock_mode lock, bool writable, struct h5_io **io)
{
	struct h5_file_set *set = opens_again;
	struct h5_file *file;

	/* Only what is to be written needs the right to. */
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, writable ? O_RDWR : O_RDONLY);
	opens_again = NULL;
	if (set)
		SUCCEEDS(h5_file_set_find(set, h5_file_set_root(set), "again", &file));
	if (stored) {
		struct counted_io *counted = malloc(sizeof *counted);

		*counted = (struct counted_io){.io = {.ops = &counted_ops}, .stored = stored};
		SUCCEEDS(__real_h5_io_open_fd(fd, lock, writable, &counted->beneath));
		*io = &counted->io;
		return 0;
	}
	return __real_h5_io_open_fd(fd, lock, writable, io);
}

START_TEST(a_file_that_two_open_at_once)
{
	struct h5_file_set *set = open_set(false);
	struct h5_file *root = h5_file_set_root(set), *a, *b;
	unsigned descriptors = unit_descriptors();

	make_file("a");
	make_link("a", "again");
	opens_again = set;
	SUCCEEDS(h5_file_set_find(set, root, "a", &a));
	ck_assert_ptr_null(opens_again);
	SUCCEEDS(h5_file_set_find(set, root, "again", &b));
	ck_assert_ptr_eq(a, b);
	ck_assert_uint_eq(unit_descriptors(), descriptors + 1);
	h5_file_set_close(set);
}
END_TEST

START_TEST(names_of_no_file)
{
	struct h5_file_set *set = open_set(false);
	unsigned descriptors = unit_descriptors();
	struct h5_file *file;
	char path[200];
	FILE *text;
	int fd;

	snprintf(path, sizeof path, "%s/text", folder);
	text = fopen(path, "w");
	fputs("text", text);
	fclose(text);
	ck_assert_int_eq(h5_file_set_find(set, h5_file_set_root(set), "text", &file), -EINVAL);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "text: not an HDF5 file"));
	ck_assert_int_eq(h5_file_set_find(set, h5_file_set_root(set), "../text", &file), -EACCES);
	/* Readers of another file are told that it is busy, not to try again. */
	make_file("a");
	snprintf(path, sizeof path, "%s/a", folder);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(h5_file_set_find(set, h5_file_set_root(set), "a", &file), -EBUSY);
	ck_assert_str_eq(h5_error_last()->text, "a: locked by a program that writes it");
	close(fd);
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	SUCCEEDS(h5_file_set_find(set, h5_file_set_root(set), "a", &file));
	h5_file_set_close(set);
}
END_TEST

/* It may be closed then, as any other. */
START_TEST(a_folder_that_is_none)
{
	struct h5_folder none = {.fd = -1};

	ck_assert_int_eq(h5_folder_open(&none, "/no/folder"), -ENOENT);
	ck_assert_str_eq(h5_error_last()->text, "/no/folder: No such file or directory");
	h5_folder_close(&none);
	h5_folder_close(&none);
	ck_assert(none.fd == -1 && !none.path);
}
END_TEST

/* Each takes a descriptor, so they have a bound. */
START_TEST(many_files)
{
	struct h5_file_set *set = open_set(false);
	struct h5_file *root = h5_file_set_root(set), *file;
	unsigned descriptors;
	char name[16];

	for (unsigned i = 1; i < FILES_MAX; i++) {
		snprintf(name, sizeof name, "f%u", i);
		make_file(name);
		SUCCEEDS(h5_file_set_find(set, root, name, &file));
	}
	descriptors = unit_descriptors();
	make_file("more");
	ck_assert_int_eq(h5_file_set_find(set, root, "more", &file), -ENFILE);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "more: more than 512 other files"));
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	/* Those that are open are found all the same. */
	SUCCEEDS(h5_file_set_find(set, root, "f1", &file));
	h5_file_set_close(set);
}
END_TEST

/* A file that is open as an HDF5 file is not written as a raw one. */
START_TEST(raw_files)
{
	struct h5_file_set *set = open_set(true);
	struct h5_file *root = h5_file_set_root(set), *file;
	unsigned descriptors;
	struct h5_io *io;
	char byte;

	make_file("a");
	make_file("raw");
	SUCCEEDS(h5_file_set_find(set, root, "a", &file));
	descriptors = unit_descriptors();
	for (int writable = 0; writable < 2; writable++) {
		static const char *const names[] = {"raw", "a", "root"};

		for (size_t i = 0; i < 3; i++) {
			int rc = h5_file_set_open_raw(set, root, names[i], writable, &io);

			ck_assert_int_eq(rc, writable && i ? -EPERM : 0);
			if (rc)
				continue;
			ck_assert_int_eq(h5_io_read(io, 1, &byte, 1), 0);
			ck_assert_int_eq(byte, 'H');
			h5_io_close(io);
		}
	}
	ck_assert_int_eq(h5_file_set_open_raw(set, root, "none", true, &io), -ENOENT);
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	h5_file_set_close(set);
}
END_TEST

/* Nor is a piece of one, whichever it is. */
START_TEST(raw_pieces)
{
	static const char *const pieces[] = {"split_latest-m.h5", "split_latest-r.h5"};
	struct h5_file_set_options options = usual;
	char from[512], name[64], path[300];
	struct h5_file_set *set;
	struct h5_io *io;

	h5_file_set_close(open_set(false)); /* for a folder */
	for (unsigned i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "members/%s", pieces[i]);
		scratch_fixture(name, from);
		snprintf(path, sizeof path, "%s/%s", folder, pieces[i]);
		scratch_copy(from, path);
	}
	options.writable = true;
	snprintf(path, sizeof path, "%s/%s", folder, pieces[0]);
	SUCCEEDS(h5_open_file(path, &options, &set, NULL));
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(h5_file_set_open_raw(set, h5_file_set_root(set), pieces[i], true, &io),
				 -EPERM);
		SUCCEEDS(h5_file_set_open_raw(set, h5_file_set_root(set), pieces[i], false, &io));
		h5_io_close(io);
	}
	SUCCEEDS(h5_file_set_open_raw(set, h5_file_set_root(set), "root", true, &io));
	h5_io_close(io);
	h5_file_set_close(set);
}
END_TEST

/* ---- revisions ---- */

/* The file "root" gets so many revisions. Each has another address of its root group: 100 and its number. */
static void make_revisions(unsigned n)
{
	char path[200];
	FILE *file;

	onion_begin();
	for (uint64_t i = 1; i <= n; i++) {
		struct h5_superblock sb = {.version = 2,
					   .size_of_offsets = 8,
					   .size_of_lengths = 8,
					   .extension = H5_UNDEF,
					   .end = 48,
					   .driver_info = H5_UNDEF,
					   .root = 100 + i};
		uint8_t page[64] = {0};
		struct h5_writer w = h5_writer_init(page, sizeof page, 8, 8);
		struct page there = {.offset = onion_size};

		h5_superblock_encode(&w, &sb);
		put(page, sizeof page);
		put_record(48, 64, &there, 1, 0);
	}
	finish(48);
	snprintf(path, sizeof path, "%s/root.onion", folder);
	file = fopen(path, "w");
	ck_assert_uint_eq(fwrite(onion_bytes, 1, onion_size, file), onion_size);
	fclose(file);
}

static uint64_t root_of(const struct h5_file *file)
{
	return h5_file_superblock(file)->root;
}

static int open_revision(uint64_t revision, struct h5_file_set **set)
{
	struct h5_file_set_options options = usual;
	char path[200];

	snprintf(path, sizeof path, "%s/root", folder);
	options.has_revision = true;
	options.revision = revision;
	return h5_open_file(path, &options, set, NULL);
}

START_TEST(revisions_of_a_file)
{
	struct h5_file_set *set = open_set(false);
	struct h5_file *file, *again, *root;
	char path[200];
	unsigned before;

	h5_file_set_close(set);
	before = unit_descriptors();
	ck_assert_int_eq(open_revision(1, &set), -ENOENT);
	ck_assert_ptr_nonnull(
		strstr(h5_error_last()->text, "the file has no revisions (there is no root.onion)"));
	make_revisions(3);
	snprintf(path, sizeof path, "%s/root", folder);
	SUCCEEDS(h5_open_file(path, &usual, &set, NULL));
	root = h5_file_set_root(set);
	ck_assert_uint_eq(root_of(root), 103);
	ck_assert_uint_eq(h5_file_set_shown_revision(set), 3);
	ck_assert_ptr_nonnull(h5_file_set_revisions(set));
	ck_assert_int_eq(h5_file_can_change(root), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "a file that has revisions"));
	for (uint64_t i = 0; i <= 3; i++) {
		SUCCEEDS(h5_file_set_find_revision(set, i, &file));
		ck_assert_uint_eq(root_of(file), i ? 100 + i : 48);
		ck_assert_ptr_ne(file, root);
		SUCCEEDS(h5_file_set_find_revision(set, i, &again));
		ck_assert_ptr_eq(file, again);
		SUCCEEDS(h5_file_set_check_revision(set, i));
		/* By its own name a file means itself. */
		SUCCEEDS(h5_file_set_find(set, file, "root", &again));
		ck_assert_ptr_eq(again, file);
	}
	SUCCEEDS(h5_file_set_find(set, root, "root", &again));
	ck_assert_ptr_eq(again, root);
	/* Another file means the one that is mounted. */
	make_file("other");
	SUCCEEDS(h5_file_set_find(set, root, "other", &file));
	SUCCEEDS(h5_file_set_find(set, file, "root", &again));
	ck_assert_ptr_eq(again, root);
	ck_assert_int_eq(h5_file_set_find_revision(set, 4, &file), -ENOENT);
	ck_assert_int_eq(h5_file_set_check_revision(set, 4), -ENOENT);
	h5_file_set_close(set);
	for (uint64_t i = 0; i <= 3; i++) {
		SUCCEEDS(open_revision(i, &set));
		ck_assert_uint_eq(root_of(h5_file_set_root(set)), i ? 100 + i : 48);
		ck_assert_uint_eq(h5_file_set_shown_revision(set), i);
		h5_file_set_close(set);
	}
	ck_assert_int_eq(open_revision(4, &set), -ENOENT);
	ck_assert_uint_eq(unit_descriptors(), before);
}
END_TEST

/* They count as other files. */
START_TEST(many_revisions)
{
	struct h5_file_set *set = open_set(false);
	struct h5_file *file;
	char path[200];

	h5_file_set_close(set);
	make_revisions(FILES_MAX);
	snprintf(path, sizeof path, "%s/root", folder);
	SUCCEEDS(h5_open_file(path, &usual, &set, NULL));
	for (uint64_t i = 1; i < FILES_MAX; i++)
		SUCCEEDS(h5_file_set_find_revision(set, i, &file));
	ck_assert_int_eq(h5_file_set_find_revision(set, FILES_MAX, &file), -ENFILE);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "revision 512: more than 512 other files"));
	ck_assert_ptr_null(file);
	SUCCEEDS(h5_file_set_find_revision(set, 1, &file));
	h5_file_set_close(set);
}
END_TEST

/* ---- pieces ---- */

enum { WHOLE = 400, STRIPE = 160 };

static void write_bytes(const char *name, const void *data, size_t n)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(data, 1, n, file), n);
	fclose(file);
}

/* The whole file, which ends at `end` by its superblock. */
static void make_whole(uint8_t whole[WHOLE], uint64_t end)
{
	const struct h5_superblock sb = {.version = 2,
					 .size_of_offsets = 8,
					 .size_of_lengths = 8,
					 .extension = H5_UNDEF,
					 .end = end,
					 .driver_info = H5_UNDEF,
					 .root = 77};
	struct h5_writer w = h5_writer_init(whole, H5_SUPERBLOCK_NEW, 8, 8);

	for (size_t i = 0; i < WHOLE; i++)
		whole[i] = (uint8_t)(i + 1);
	h5_superblock_encode(&w, &sb);
}

static int open_root(struct h5_file_set **set)
{
	char path[200];

	snprintf(path, sizeof path, "%s/root", folder);
	return h5_open_file(path, &usual, set, NULL);
}

/* The file with that name is a stub, whose bytes are in subfiles. */
START_TEST(a_file_in_subfiles)
{
	uint8_t whole[WHOLE], pieces[2][WHOLE], got[WHOLE];
	struct h5_file_set *set = open_set(false);
	size_t n[2] = {0};
	char name[64], path[200];
	struct h5_file *file;
	struct stat st;

	h5_file_set_close(set);
	make_whole(whole, WHOLE);
	for (size_t i = 0; i < WHOLE; i++)
		pieces[i / STRIPE % 2][n[i / STRIPE % 2]++] = whole[i];
	write_bytes("root", whole, H5_SUPERBLOCK_NEW);
	snprintf(path, sizeof path, "%s/root", folder);
	ck_assert_int_eq(stat(path, &st), 0);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "root.subfile_%ju_%u_of_2", (uintmax_t)st.st_ino, i + 1);
		write_bytes(name, pieces[i], n[i]);
	}
	snprintf(name, sizeof name, "root.subfile_%ju.config", (uintmax_t)st.st_ino);
	write_bytes(name, "stripe_size=160\nsubfile_count=2\n", 33);
	SUCCEEDS(open_root(&set));
	file = h5_file_set_root(set);
	ck_assert_uint_eq(root_of(file), 77);
	ck_assert(h5_file_size(file) == WHOLE && h5_file_end(file) == WHOLE);
	SUCCEEDS(h5_file_read(file, 0, got, WHOLE));
	ck_assert_mem_eq(got, whole, WHOLE);
	ck_assert_ptr_null(h5_file_missing(file));
	ck_assert_int_eq(h5_file_can_change(file), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "a file of the subfiling driver"));
	h5_file_set_close(set);
	/* As another file of a set. */
	snprintf(name, sizeof name, "root.subfile_%ju_2_of_2", (uintmax_t)st.st_ino);
	snprintf(path, sizeof path, "%s/%s", folder, name);
	ck_assert_int_eq(remove(path), 0);
	make_file("main");
	snprintf(path, sizeof path, "%s/main", folder);
	SUCCEEDS(h5_open_file(path, &usual, &set, NULL));
	SUCCEEDS(h5_file_set_find(set, h5_file_set_root(set), "root", &file));
	ck_assert_str_eq(h5_file_missing(file), name);
	SUCCEEDS(h5_file_read(file, 0, got, STRIPE));
	ck_assert_mem_eq(got, whole, STRIPE);
	ck_assert_int_eq(h5_file_read(file, STRIPE, got, 1), -EIO);
	h5_file_set_close(set);
	/* A file that has all of its addresses needs none. */
	make_whole(whole, H5_SUPERBLOCK_NEW);
	write_bytes("root", whole, H5_SUPERBLOCK_NEW);
	SUCCEEDS(open_root(&set));
	ck_assert_uint_eq(h5_file_size(h5_file_set_root(set)), H5_SUPERBLOCK_NEW);
	ck_assert(h5_file_is_plain(h5_file_set_root(set)));
	h5_file_set_close(set);
}
END_TEST

/* Old families do not say that they are: their sizes do, and their superblock. */
START_TEST(an_old_family)
{
	uint8_t whole[WHOLE], got[WHOLE];
	struct h5_file_set *set = open_set(false);
	struct h5_file *file;
	char path[200];

	h5_file_set_close(set);
	make_whole(whole, WHOLE);
	write_bytes("p0", whole, 160);
	write_bytes("p1", whole + 160, 160);
	write_bytes("p2", whole + 320, 80);
	snprintf(path, sizeof path, "%s/p0", folder);
	SUCCEEDS(h5_open_file(path, &usual, &set, NULL));
	file = h5_file_set_root(set);
	SUCCEEDS(h5_file_read(file, 0, got, WHOLE));
	ck_assert_mem_eq(got, whole, WHOLE);
	ck_assert_int_eq(h5_file_can_change(file), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "a family whose files do not say so"));
	ck_assert(!h5_file_is_plain(file));
	h5_file_set_close(set);
	/* Of other sizes it is one file, which was cut off. */
	write_bytes("p1", whole + 160, 159);
	SUCCEEDS(h5_open_file(path, &usual, &set, NULL));
	ck_assert_uint_eq(h5_file_size(h5_file_set_root(set)), 160);
	h5_file_set_close(set);
	/* Unless the user says so. */
	write_bytes("p1", whole + 160, 160);
	snprintf(path, sizeof path, "%s/p%%d", folder);
	SUCCEEDS(h5_open_file(path, &usual, &set, NULL));
	SUCCEEDS(h5_file_read(h5_file_set_root(set), 0, got, WHOLE));
	ck_assert_mem_eq(got, whole, WHOLE);
	h5_file_set_close(set);
}
END_TEST

/* A request may work longer if there is more to read. */
START_TEST(work)
{
	static uint8_t memory[SIZE];
	const struct h5_superblock sb = {.version = 2,
					 .size_of_offsets = 8,
					 .size_of_lengths = 8,
					 .extension = H5_UNDEF,
					 .end = SIZE,
					 .driver_info = H5_UNDEF,
					 .root = 48};
	struct h5_writer w = h5_writer_init(memory, H5_SUPERBLOCK_NEW, 8, 8);
	struct h5_file_set *set;

	h5_superblock_encode(&w, &sb);
	ck_assert_int_eq(h5_file_set_open_memory(memory, SIZE, &usual, &set), 0);
	ck_assert_uint_eq(h5_file_set_work(set, 0), 0);
	ck_assert_uint_eq(h5_file_set_work(set, 1), 1000 + 10);
	ck_assert_uint_eq(h5_file_set_work(set, 7), 7000 + 10);
	ck_assert_int_eq(h5_file_set_directory(set), -1);
	ck_assert_ptr_null(h5_file_set_path(set));
	ck_assert_uint_eq(h5_file_set_chunk_budget(set), 1 << 20);
	ck_assert_ptr_null(h5_file_set_revisions(set));
	ck_assert_int_eq(h5_file_set_find_revision(set, 0, &(struct h5_file *){NULL}), -ENOENT);
	h5_file_set_close(set);
	h5_file_set_close(NULL);
}
END_TEST

/* More than a number can hold is as much as it can hold. */
START_TEST(work_of_large_files)
{
	struct h5_file_set *set = open_set(false);
	struct h5_file *root = h5_file_set_root(set), *file;
	uint64_t before = h5_file_set_work(set, 1);

	make_file("a");
	make_file("b");
	stored = 8192000;
	SUCCEEDS(h5_file_set_find(set, root, "a", &file));
	ck_assert_uint_eq(h5_file_set_work(set, 1), before + 1000);
	stored = UINT64_MAX - 8192000;
	SUCCEEDS(h5_file_set_find(set, root, "b", &file));
	stored = 0;
	ck_assert_uint_ge(h5_file_set_work(set, 1), UINT64_MAX / 8192 - 1000);
	h5_file_set_close(set);
}
END_TEST

/* ---- faults ---- */

/* Opens the path, and closes it again. *found: the size of the file, and whether something is missing. */
static int open_once(const char *path, bool writable, uint64_t *found)
{
	struct h5_file *file;
	struct h5_file_set_options options = usual;
	struct h5_file_set *set;
	int rc;

	options.writable = writable;
	fault_alloc_count(true);
	rc = h5_open_file(path, &options, &set, NULL);
	fault_alloc_count(false);
	if (rc)
		return rc;
	file = h5_file_set_root(set);
	*found = 2 * h5_file_size(file) + !!h5_file_missing(file);
	if (h5_file_set_revisions(set))
		rc = h5_file_set_find_revision(set, 1, &file);
	h5_file_set_close(set);
	return rc;
}

/* Opens it again and again, and another call or allocation fails each time. */
static void fail_each(const char *name, bool writable, uint64_t size, bool missing)
{
	char path[200];
	unsigned before = unit_descriptors();
	uint64_t found, got = 0;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	SUCCEEDS(open_once(path, writable, &found));
	ck_assert_msg(found == 2 * size + missing, "%s: %ju", name, (uintmax_t)found);
	for (int i = 0; i < 2; i++) {
		unsigned refused = 0;
		bool fired = true;

		for (unsigned long n = 1; fired; n++) {
			int rc;

			if (i)
				fault_call_arm(CALL_FAILS, n, false);
			else
				fault_alloc_arm(n);
			rc = open_once(path, writable, &got);
			fired = i ? fault_call_disarm() : fault_alloc_disarm();
			ck_assert_msg(!rc || (fired && rc == (i ? -EIO : -ENOMEM)), "%s, %d, %lu: %d", name,
				      i, n, rc);
			/* A member that the device does not give is told to be missing. */
			ck_assert_msg(rc || got == found || (i && got & 1), "%s, %d, %lu: %ju", name, i, n,
				      (uintmax_t)got);
			refused += rc != 0;
			ck_assert_uint_eq(unit_descriptors(), before);
		}
		ck_assert_uint_gt(refused, 2);
	}
}

/* A file that is opened is whole, or there is an error. */
START_TEST(files_that_fail)
{
	struct h5_file_set *set = open_set(false);
	uint8_t whole[WHOLE];
	char name[64], path[200];
	struct stat st;

	h5_file_set_close(set);
	for (int writable = 0; writable < 2; writable++)
		fail_each("root", writable, 48, false);
	make_revisions(3);
	fail_each("root", false, 48, false);
	/* A family by a pattern, and files in subfiles of which one is missing. */
	make_whole(whole, WHOLE);
	write_bytes("p0", whole, 160);
	write_bytes("p1", whole + 160, 160);
	write_bytes("p2", whole + 320, 80);
	fail_each("p%d", false, WHOLE, false);
	write_bytes("q0", whole, 160);
	write_bytes("q1", whole + 160, 159);
	write_bytes("q2", whole + 320, 80);
	fail_each("q%d", false, WHOLE - 1, false);
	write_bytes("stub", whole, H5_SUPERBLOCK_NEW);
	snprintf(path, sizeof path, "%s/stub", folder);
	ck_assert_int_eq(stat(path, &st), 0);
	snprintf(name, sizeof name, "stub.subfile_%ju_1_of_2", (uintmax_t)st.st_ino);
	write_bytes(name, whole, 160);
	snprintf(name, sizeof name, "stub.subfile_%ju.config", (uintmax_t)st.st_ino);
	write_bytes(name, "stripe_size=160\nsubfile_count=2\n", 33);
	fail_each("stub", false, 160, true);
}
END_TEST

/* Other files: they are open, or there is an error, and nothing else is. */
START_TEST(other_files_that_fail)
{
	for (int i = 0; i < 6; i++) {
		bool fired = true;

		for (unsigned long n = 1; fired; n++) {
			struct h5_file_set *set = open_set(true);
			struct h5_file *root = h5_file_set_root(set), *file;
			unsigned before = unit_descriptors();
			struct h5_io *io;
			int rc;

			make_file("a");
			if (i % 2)
				fault_call_arm(CALL_FAILS, n, false);
			else
				fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = i < 2 ? h5_file_set_find(set, root, "a", &file)
				   : h5_file_set_open_raw(set, root, "a", i < 4, &io);
			fault_alloc_count(false);
			fired = i % 2 ? fault_call_disarm() : fault_alloc_disarm();
			ck_assert_msg(!rc || (fired && rc == (i % 2 ? -EIO : -ENOMEM)), "%d, %lu: %d", i, n,
				      rc);
			/* Not only the daemon's own look at the file fails. */
			ck_assert(i % 2 == 0 || i < 2 || rc || !fired);
			ck_assert_uint_eq(unit_descriptors(), before + !rc);
			if (!rc && i >= 2)
				h5_io_close(io);
			h5_file_set_close(set);
		}
	}
}
END_TEST

/* ---- behind a URL ---- */

static char asked[64]; /* the name of the last file that was asked for */

int __wrap_h5_io_open_remote(struct h5_remote *remote, const char *name, struct h5_io **io);
int __wrap_h5_io_open_remote(struct h5_remote *remote, const char *name, struct h5_io **io)
{
	(void)remote;
	(void)io;
	snprintf(asked, sizeof asked, "%s", name);
	return h5_fail(-ENOENT, H5_UNDEF, "not there");
}

const char *__wrap_h5_remote_url(const struct h5_remote *remote);
const char *__wrap_h5_remote_url(const struct h5_remote *remote)
{
	(void)remote;
	return "http://h/";
}

/* Names of members are relative to the folder that the file is in. */
START_TEST(members_behind_a_url)
{
	static const char *const cases[][3] = {{NULL, "sub/y", "sub/y"},
					       {"x.h5", "y", "y"},
					       {"dir/x.h5", "sub/y", "dir/sub/y"},
					       {"a/b/x.h5", "y", "a/b/y"}};
	struct h5_io *io;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct h5_folder there = {
			.fd = -1, .remote = (struct h5_remote *)&io, .beside = cases[i][0]};
		int rc = -ENOMEM;

		for (unsigned long n = 1; rc == -ENOMEM; n++) {
			*asked = 0;
			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_folder_open_member(&there, cases[i][1], false, &io);
			fault_alloc_count(false);
			fault_alloc_disarm();
			ck_assert_str_eq(asked, rc == -ENOMEM ? "" : cases[i][2]);
		}
		ck_assert_int_eq(rc, -ENOENT);
	}
}
END_TEST

START_TEST(paths_behind_a_url)
{
	static const char *const cases[][2] = {{NULL, "http://h/"}, {"a/b", "http://h/a/b"}};
	struct h5_file_set_options options = usual;
	struct h5_file_set *set;

	for (size_t i = 0; i < 2; i++) {
		int rc = -ENOMEM;

		options.remote = (struct h5_remote *)&set;
		options.remote_name = cases[i][0];
		for (unsigned long n = 1; rc; n++) {
			bool fired;

			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_file_set_new(NULL, &options, &set);
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			ck_assert(!rc || (fired && rc == -ENOMEM));
		}
		ck_assert_str_eq(h5_file_set_path(set), cases[i][1]);
		h5_file_set_close(set);
	}
}
END_TEST

/* One of the files is enough. */
START_TEST(changes_of_others)
{
	struct h5_file_set *set = open_set(false);
	struct h5_file *root = h5_file_set_root(set), *file;
	const struct timespec old[] = {{.tv_sec = 1000}, {.tv_sec = 1000}},
			      newer[] = {{.tv_sec = 2000}, {.tv_sec = 2000}};
	const char *const names[] = {"root", "a"};
	char path[200];

	make_file("a");
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	}
	SUCCEEDS(h5_file_set_find(set, root, "a", &file));
	(void)h5_file_set_refresh(set);
	ck_assert(!h5_file_set_refresh(set));
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		ck_assert_int_eq(utimensat(AT_FDCWD, path, newer, 0), 0);
		ck_assert(h5_file_set_refresh(set));
		ck_assert(!h5_file_set_refresh(set));
	}
	h5_file_set_close(set);
}
END_TEST

UNIT_MAIN("file_set", names_of_files, a_file_that_two_open_at_once, names_of_no_file, a_folder_that_is_none,
	  many_files, raw_files, raw_pieces, revisions_of_a_file, many_revisions, a_file_in_subfiles,
	  an_old_family, work, work_of_large_files, files_that_fail, other_files_that_fail,
	  members_behind_a_url, paths_behind_a_url, changes_of_others)
