/* Files that programs write into views, while each call that allocates, reads or writes fails once: the
 * dataset is as the file says if its fsync has succeeded, and else as before. */
#include "change/open.h"
#include "change/transaction.h"
#include "dataset/writer.h"
#include "fault_kinds.h"
#include "scratch.h"
#include "vfs_scene.h"
#include "view/csv_read.h"
#include "view/npy_header.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1 << 12 };

struct contents {
	const char *file;  /* what the program writes */
	size_t size;	   /* of that */
	const char *bytes; /* what the dataset then has */
	size_t bytes_size;
};

#define TEXT(text) (text), sizeof(text) - 1
/* The length is the number of bytes of the dictionary. */
#define NPY(length, dictionary, data) TEXT("\x93NUMPY\1\0" length "\0" dictionary data)

static const struct contents nothing = {0};
static const struct contents rows = {NPY("\x3e",
					 "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 2), }  \n",
					 "\1\0\2\0\3\0\4\0\5\0\6\0"),
				     TEXT("\1\0\2\0\3\0\4\0\5\0\6\0")};
static const struct contents other_rows = {
	NPY("\x3e", "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 2), }  \n",
	    "\6\0\5\0\4\0\3\0\2\0\1\0"),
	TEXT("\6\0\5\0\4\0\3\0\2\0\1\0")};
static const struct contents columns = {NPY("\x3e",
					    "{'descr': '<i2', 'fortran_order': True, 'shape': (3, 2), }   \n",
					    "\1\0\2\0\3\0\4\0\5\0\6\0"),
					TEXT("\1\0\4\0\2\0\5\0\3\0\6\0")};
static const struct contents floats = {
	NPY("\x3e", "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }    \n", "abcdefgh"),
	TEXT("abcdefgh")};
static const struct contents table = {TEXT("a,b\n1,1.5\n-1,2\n"),
				      TEXT("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\xf8\x3f"
					   "\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\x40")};
static const struct contents grid = {TEXT("0,1\n1,2\n3,4\n"), TEXT("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
								   "\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0")};
/* Each half alone would be a table, too. */
static const struct contents halves = {TEXT("a,b\n1,2\nc,d\n3,4\n"), TEXT("12cd34")};
static const struct contents short_text = {TEXT("few\n"), TEXT("few")};
static const struct contents long_text = {TEXT("some more text\n"), TEXT("some more text")};

static const struct {
	const char *folder, *name, *shown; /* the file, and where its contents show */
	const struct contents *before, *after;
} changes[] = {
	{".h5fs/npy", "made.npy", "made", &nothing, &rows},
	{".h5fs/npy", "made.npy", "made", &nothing, &columns},
	{".h5fs/npy", "made.npy", "made", &rows, &other_rows},
	{".h5fs/npy", "made.npy", "made", &rows, &floats},
	{".h5fs/csv", "made.csv", "made", &nothing, &table},
	{".h5fs/csv", "made.csv", "made", &nothing, &grid},
	{".h5fs/csv", "made.csv", "made", &nothing, &halves},
	{".h5fs/attrs/few", "made", ".h5fs/attrs/few/made", &short_text, &long_text},
};
enum { CHANGES = sizeof changes / sizeof *changes };

/* ---- what a program does ---- */

static int write_part(struct h5_handle *handle, uint64_t offset, const char *data, size_t n)
{
	uint64_t stale;
	size_t written;
	int rc = h5_vfs_write(handle, offset, data, n, H5_WRITE_AT, &written, &stale);

	ck_assert_uint_eq(written, rc ? 0 : n);
	return rc;
}

/* The program takes no notice of errors until fsync. Meanwhile something else commits. *first: the first
 * error. */
static int put(struct h5_vfs *vfs, struct h5_handle *handle, const struct contents *c, int *first)
{
	const size_t half = c->size / 2;
	int rc = write_part(handle, 0, c->file, half);

	*first = rc;
	rc = h5_vfs_commit(vfs);
	*first = *first ? *first : rc;
	rc = write_part(handle, half, c->file + half, c->size - half);
	*first = *first ? *first : rc;
	rc = h5_vfs_fsync(handle);
	*first = *first ? *first : rc;
	return rc;
}

/* 0: the file is in the dataset. */
static int write_file(struct vfs_scene *scene, struct h5_node *folder, const char *name,
		      const struct contents *c, int *first)
{
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	int rc = h5_vfs_lookup(scene->vfs, folder, name, &entry);

	if (!rc) {
		rc = h5_vfs_open_file(scene->vfs, entry.node, O_WRONLY | O_TRUNC, &handle);
		if (rc)
			h5_vfs_forget(scene->vfs, entry.node, 1);
	} else if (rc == -ENOENT) {
		rc = h5_vfs_create(scene->vfs, folder, name, O_WRONLY, &entry, &handle);
	}
	*first = rc;
	if (rc)
		return rc;
	rc = put(scene->vfs, handle, c, first);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene->vfs, entry.node, 1);
	return rc;
}

/* NULL: no such file. Else the number of its bytes is *got. */
static const char *read_contents(struct vfs_scene *scene, const char *path, size_t *got)
{
	static char bytes[MOST];
	struct h5_handle *handle;
	struct h5_node *node;
	int rc = vfs_scene_find(scene, path, &node);

	*got = 0;
	ck_assert_msg(!rc || rc == -ENOENT, "%s: %d %s", path, rc, h5_error_last()->text);
	if (rc)
		return NULL;
	SUCCEEDS(h5_vfs_open_file(scene->vfs, node, O_RDONLY, &handle));
	SUCCEEDS(h5_vfs_read(handle, 0, bytes, sizeof bytes, got));
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene->vfs, node, 1);
	return bytes;
}

static bool has_contents(struct vfs_scene *scene, const char *path, const struct contents *c)
{
	size_t got;
	const char *bytes = read_contents(scene, path, &got);

	return !bytes == !c->bytes && got == c->bytes_size && (!got || !memcmp(bytes, c->bytes, got));
}

static void check_contents(struct vfs_scene *scene, const char *path, const struct contents *c,
			   const char *where)
{
	ck_assert_msg(has_contents(scene, path, c), "%s: other contents", where);
}

/* ---- calls that fail ---- */

/* The state from which each attempt begins. */
static void make_before(struct vfs_scene *scene, struct h5_node *folder, unsigned change)
{
	const struct contents *c = changes[change].before;
	int first;

	if (c->bytes) {
		SUCCEEDS(write_file(scene, folder, changes[change].name, c, &first));
		ck_assert_int_eq(first, 0);
	} else {
		int rc = h5_vfs_unlink(scene->vfs, h5_vfs_root(scene->vfs), changes[change].shown);

		ck_assert(!rc || rc == -ENOENT);
	}
	SUCCEEDS(h5_vfs_commit(scene->vfs));
	check_contents(scene, changes[change].shown, c, "before");
}

static void fail_each(struct vfs_scene *scene, struct h5_node *folder, unsigned change,
		      const struct fault *fault)
{
	bool fired = true;
	int rc, first;

	/* What the first attempt alone allocates is there from now on, so each has the same calls. */
	make_before(scene, folder, change);
	SUCCEEDS(write_file(scene, folder, changes[change].name, changes[change].after, &first));
	make_before(scene, folder, change);
	for (unsigned long n = 1; fired; n++) {
		char where[80];

		vfs_scene_empty_caches(scene);
		h5_error_clear();
		fault_alloc_count(true);
		fault->arm(n);
		rc = write_file(scene, folder, changes[change].name, changes[change].after, &first);
		fault_alloc_count(false);
		fired = fault->disarm();
		snprintf(where, sizeof where, "change %u, call %lu: %d, %d", change, n, first, rc);
		ck_assert_msg(first ? fired && first == fault->error : !fired || fault->error != -EBUSY,
			      "%s: %s", where, h5_error_last()->text);
		check_contents(scene, changes[change].shown,
			       rc ? changes[change].before : changes[change].after, where);
		if (!rc)
			make_before(scene, folder, change);
	}
	/* Attempts that failed have left nothing. */
	check_contents(scene, changes[change].shown, changes[change].before, "at the end");
}

/* A dataset cannot be opened again to be written; that alone must be told. */
static unsigned long readies_left; /* the last of so many fails, and that one alone; 0: none does */
static bool ready_failed;

int __real_h5_dataset_writer_ready(struct h5_dataset_writer *writer);
int __wrap_h5_dataset_writer_ready(struct h5_dataset_writer *writer);
int __wrap_h5_dataset_writer_ready(struct h5_dataset_writer *writer)
{
	if (!readies_left || --readies_left)
		return __real_h5_dataset_writer_ready(writer);
	ready_failed = true;
	return -EBUSY;
}

static void arm_ready(unsigned long n)
{
	readies_left = n;
	ready_failed = false;
}

static bool disarm_ready(void)
{
	readies_left = 0;
	return ready_failed;
}

START_TEST(memory_or_reading_fails)
{
	static const struct fault ready = {arm_ready, disarm_ready, -EBUSY};
	const unsigned number = (unsigned)_i / CHANGES;
	const struct fault *fault = number < FAULTS ? &faults[number] : &ready;
	struct h5_node *folder;
	struct vfs_scene scene;

	vfs_scene_open(&scene, "read_faults/new.h5");
	SUCCEEDS(vfs_scene_find(&scene, changes[(unsigned)_i % CHANGES].folder, &folder));
	fail_each(&scene, folder, (unsigned)_i % CHANGES, fault);
	h5_vfs_forget(scene.vfs, folder, 1);
	vfs_scene_close(&scene);
}
END_TEST

/* Another mount of the file, which may have a journal: a commit that failed half way may have been made. */
static void check_again(const char *path, unsigned change, bool either, const char *where)
{
	const struct h5_file_set_options options = {
		.block_cache = 8 << 20, .chunk_cache = 8 << 20, .lock = H5_LOCK_ALWAYS, .writable = true};
	const struct h5_vfs_options vfs = {.writable = true, .gather = 1 << 20, .file_fd = -1};
	const struct contents *expected = changes[change].after;
	struct vfs_scene scene = {0};

	snprintf(scene.path, sizeof scene.path, "%s", path);
	SUCCEEDS(h5_open_file(path, &options, &scene.set, NULL));
	SUCCEEDS(h5_vfs_open(scene.set, &vfs, &scene.vfs));
	if (either && !has_contents(&scene, changes[change].shown, expected))
		expected = changes[change].before;
	check_contents(&scene, changes[change].shown, expected, where);
	vfs_scene_close(&scene);
}

/* A call to write fails while something else commits or the file itself does. What the file
 * has to say after that is there when the HDF5 file is opened again, and can be said again. */
static bool fail_write(unsigned change, unsigned long n, int error)
{
	struct fault_io fault = {.error = error};
	const struct h5_file_set_options options = {.block_cache = 8 << 20,
						    .chunk_cache = 8 << 20,
						    .lock = H5_LOCK_ALWAYS,
						    .writable = true,
						    .wrap = fault_io_wrap,
						    .wrap_arg = &fault};
	const struct contents *after = changes[change].after;
	struct vfs_scene scene;
	struct h5_node *folder;
	char where[80];
	bool fired, given_up;
	int rc, first;

	vfs_scene_open_as(&scene, "read_faults/new.h5", &options);
	SUCCEEDS(vfs_scene_find(&scene, changes[change].folder, &folder));
	make_before(&scene, folder, change);
	fault_io_arm(&fault, n);
	rc = write_file(&scene, folder, changes[change].name, after, &first);
	fired = fault_io_disarm(&fault);
	given_up = !h5_tx_is_writable(h5_file_set_root(scene.set));
	snprintf(where, sizeof where, "change %u, write %lu: %d, %d", change, n, first, rc);
	ck_assert_msg(!first || (fired && (first == error || (given_up && first == -EROFS))), "%s: %s", where,
		      h5_error_last()->text);
	if (!given_up) {
		check_contents(&scene, changes[change].shown, rc ? changes[change].before : after, where);
		SUCCEEDS(write_file(&scene, folder, changes[change].name, after, &first));
		check_contents(&scene, changes[change].shown, after, where);
	}
	h5_vfs_forget(scene.vfs, folder, 1);
	h5_vfs_finish(scene.vfs);
	h5_vfs_close(scene.vfs);
	h5_file_set_close(scene.set);
	fault_io_release(&fault);
	check_again(scene.path, change, given_up, where);
	return fired;
}

START_TEST(writing_fails)
{
	const unsigned change = (unsigned)_i % CHANGES;

	for (unsigned long n = 1; fail_write(change, n, (unsigned)_i < CHANGES ? -EIO : -ENOSPC); n++)
		;
}
END_TEST

/* ---- what files say ---- */

/* 0: the file has become the dataset of that name. */
static int offer(struct vfs_scene *scene, const char *folder_path, const char *name, const char *file,
		 size_t n)
{
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	struct h5_node *folder;
	int rc;

	SUCCEEDS(vfs_scene_find(scene, folder_path, &folder));
	SUCCEEDS(h5_vfs_create(scene->vfs, folder, name, O_WRONLY, &entry, &handle));
	rc = write_part(handle, 0, file, n);
	if (!rc)
		rc = h5_vfs_fsync(handle);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene->vfs, entry.node, 1);
	h5_vfs_forget(scene->vfs, folder, 1);
	return rc;
}

static int offer_npy(struct vfs_scene *scene, const char *name, const char *dictionary, const char *data,
		     size_t n)
{
	const size_t head = strlen(dictionary);
	char *file = malloc(10 + head + n);
	int rc;

	memcpy(file, "\x93NUMPY\1\0", 8);
	file[8] = (char)head;
	file[9] = (char)(head >> 8);
	memcpy(file + 10, dictionary, head);
	memcpy(file + 10 + head, data, n);
	rc = offer(scene, ".h5fs/npy", name, file, 10 + head + n);
	free(file);
	return rc;
}

/* Names of members as Python writes them, in version 1 in Latin-1. */
static const struct {
	const char *name, *member; /* NULL: the file is refused */
} names[] = {
	{"'caf\xe9 \xff'", "caf\u00e9 \u00ff"},
	{"'it\\'s'", "it's"},
	{"\"it's\"", "it's"},
	{"'say \"so\"'", "say \"so\""},
	{"'say \\\"so\\\"'", "say \"so\""},
	{"'a\\\\b'", "a\\b"},
	{"'\\u4e2d'", "\u4e2d"},
	{"'\\x41'", "A"},
	{"'\\q'", NULL},
	{"'\\", NULL},
};

START_TEST(names_have_escapes)
{
	struct vfs_scene scene;
	char dictionary[200], expected[100];
	struct h5_node *node;
	struct h5_buf type;

	h5_buf_init(&type, MOST);
	vfs_scene_open(&scene, "read_faults/new.h5");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(dictionary, sizeof dictionary,
			 "{'descr': [(%s, '|u1')], 'fortran_order': False, 'shape': (2,), }\n",
			 names[i].name);
		if (!names[i].member) {
			ck_assert_int_eq(offer_npy(&scene, "made.npy", dictionary, "ab", 2), -EINVAL);
			ck_assert_int_eq(vfs_scene_find(&scene, "made", &node), -ENOENT);
			continue;
		}
		SUCCEEDS(offer_npy(&scene, "made.npy", dictionary, "ab", 2));
		check_contents(&scene, "made", &(struct contents){.bytes = "ab", .bytes_size = 2}, "made");
		SUCCEEDS(vfs_scene_find(&scene, "made", &node));
		type.size = 0;
		SUCCEEDS(h5_vfs_getxattr(scene.vfs, node, "h5fs.type", &type));
		h5_buf_byte(&type, 0);
		snprintf(expected, sizeof expected, "\"%s\"", names[i].member);
		ck_assert_msg(strstr(type.data, expected), "%s: %s", names[i].name, type.data);
		h5_vfs_forget(scene.vfs, node, 1);
		SUCCEEDS(h5_vfs_unlink(scene.vfs, h5_vfs_root(scene.vfs), "made"));
	}
	h5_buf_release(&type);
	vfs_scene_close(&scene);
}
END_TEST

/* Of Fortran's order: rows that are larger than what is put into order at once, and more rows than that. */
START_TEST(long_rows_are_reordered)
{
	enum { SIZE = 1 << 20, ALL = 20 * SIZE };
	const unsigned height = _i ? 20 : 4, width = 20 / height;
	char dictionary[100], *data = malloc(ALL);
	struct h5_handle *handle;
	struct vfs_scene scene;
	struct h5_node *node;
	size_t got;

	snprintf(dictionary, sizeof dictionary,
		 "{'descr': '|V1048576', 'fortran_order': True, 'shape': (%u, %u), }\n", height, width);
	for (unsigned i = 0; i < height; i++)
		for (unsigned j = 0; j < width; j++)
			memset(data + (j * height + i) * SIZE, (int)('a' + i * width + j), SIZE);
	vfs_scene_open(&scene, "read_faults/new.h5");
	SUCCEEDS(offer_npy(&scene, "made.npy", dictionary, data, ALL));
	memset(data, 0, ALL);
	SUCCEEDS(vfs_scene_find(&scene, "made", &node));
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle));
	SUCCEEDS(h5_vfs_read(handle, 0, data, ALL, &got));
	ck_assert_uint_eq(got, ALL);
	for (unsigned k = 0; k < ALL; k++)
		if (data[k] != 'a' + (int)(k / SIZE))
			ck_abort_msg("byte %u is %d", k, data[k]);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, node, 1);
	vfs_scene_close(&scene);
	free(data);
}
END_TEST

/* ---- headers of NPY ---- */

#define DICTIONARY(shape) "{'descr': '|u1', 'fortran_order': False, 'shape': " shape "}"

/* A file with a dictionary, and so many bytes of elements. */
static const struct {
	const char *dictionary;
	unsigned char version[2];
	size_t n;
	int rc;
} headers[] = {
	{DICTIONARY("(2,)"), {1, 0}, 2, 0},
	{DICTIONARY("(2,)"), {2, 0}, 2, 0},
	{DICTIONARY("(2,)"), {3, 0}, 2, 0},
	{DICTIONARY("(2,)"), {0, 0}, 2, -EINVAL},
	{DICTIONARY("(2,)"), {4, 0}, 2, -EINVAL},
	{DICTIONARY("(2,)"), {1, 1}, 2, -EINVAL},
	{DICTIONARY("(2,)"), {1, 0}, 1, -EINVAL},
	{DICTIONARY("(2,)"), {1, 0}, 3, -EINVAL},
	{DICTIONARY("(2,)"), {1, 0}, 0, -EINVAL},
	{DICTIONARY("()"), {1, 0}, 1, 0},
	{DICTIONARY("(0,)"), {1, 0}, 0, 0},
	{DICTIONARY("(2, 1)"), {1, 0}, 2, 0},
	{DICTIONARY("(2 , 1 , \t)"), {1, 0}, 2, 0},
	{DICTIONARY("[2]"), {1, 0}, 2, 0},
	{DICTIONARY("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2)"), {1, 0}, 2, 0},
	{DICTIONARY("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2)"),
	 {1, 0},
	 2,
	 -EINVAL},
	{DICTIONARY("2"), {1, 0}, 2, -EINVAL},
	{DICTIONARY("'2'"), {1, 0}, 2, -EINVAL},
	{DICTIONARY("(2.0,)"), {1, 0}, 2, -EINVAL},
	{DICTIONARY("(None,)"), {1, 0}, 2, -EINVAL},
	{DICTIONARY("(True,)"), {1, 0}, 1, -EINVAL},
	{DICTIONARY("(-1,)"), {1, 0}, 2, -EINVAL},
	{DICTIONARY("(0, 9223372036854775807)"), {1, 0}, 0, -EINVAL},
	{DICTIONARY("(9223372036854775808,)"), {1, 0}, 2, -EINVAL},
	{DICTIONARY("(4294967296, 4294967296)"), {1, 0}, 2, -EINVAL},
	{"{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", {1, 0}, 2, 0},
	{"{'descr': '|u1', 'fortran_order': True, 'shape': (2,)}", {1, 0}, 2, 0},
	{"{'shape': (2,), \"descr\": \"|u1\", 'fortran_order': False}", {1, 0}, 2, 0},
	{"{'descr': '|u1', 'fortran_order': False, 'shape': (2,), 'more': 1}", {1, 0}, 2, -EINVAL},
	{"{'descr': '|u1', 'fortran_order': False}", {1, 0}, 2, -EINVAL},
	{"{'other': '|u1', 'fortran_order': False, 'shape': (2,)}", {1, 0}, 2, -EINVAL},
	{"{'descr': '|u1', 'other': False, 'shape': (2,)}", {1, 0}, 2, -EINVAL},
	{"{'descr': '|u1', 'fortran_order': False, 'other': (2,)}", {1, 0}, 2, -EINVAL},
	{"{'descr': '|u1', 'fortran_order': 0, 'shape': (2,)}", {1, 0}, 2, -EINVAL},
	{"{'descr': '|u1', 'fortran_order': None, 'shape': (2,)}", {1, 0}, 2, -EINVAL},
	{"{'descr': 'none', 'fortran_order': False, 'shape': (2,)}", {1, 0}, 2, -EINVAL},
	{"{'descr': 1, 'fortran_order': False, 'shape': (2,)}", {1, 0}, 2, -EINVAL},
	{"['descr', 'fortran_order', 'shape']", {1, 0}, 2, -EINVAL},
	{"{'descr': '|u1', 'fortran_order': False, 'shape': (2,)", {1, 0}, 2, -EINVAL},
	{"{'descr': '|u1, 'fortran_order': False, 'shape': (2,)}", {1, 0}, 2, -EINVAL},
	{"{'descr': '|u1', 'fortran_order': Falsy, 'shape': (2,)}", {1, 0}, 2, -EINVAL},
	{"{'descr': '|u1', 'fortran_order': Fals", {1, 0}, 2, -EINVAL},
	{",", {1, 0}, 2, -EINVAL},
	{")", {1, 0}, 2, -EINVAL},
	{"'", {1, 0}, 2, -EINVAL},
	{"", {1, 0}, 2, -EINVAL},
};

START_TEST(headers_of_arrays)
{
	struct vfs_scene scene;

	vfs_scene_open(&scene, "read_faults/new.h5");
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		const size_t length = strlen(headers[i].dictionary),
			     before = headers[i].version[0] == 1 ? 10 : 12;
		struct h5_node *node;
		char file[300] = "\x93NUMPY";
		int rc;

		file[6] = (char)headers[i].version[0];
		file[7] = (char)headers[i].version[1];
		file[8] = (char)length;
		memcpy(file + before, headers[i].dictionary, length);
		memset(file + before + length, 'x', headers[i].n);
		rc = offer(&scene, ".h5fs/npy", "made.npy", file, before + length + headers[i].n);
		ck_assert_msg(rc == headers[i].rc, "%zu: %d %s", i, rc, h5_error_last()->text);
		rc = vfs_scene_find(&scene, "made", &node);
		ck_assert_int_eq(rc, headers[i].rc ? -ENOENT : 0);
		if (rc)
			continue;
		h5_vfs_forget(scene.vfs, node, 1);
		check_contents(&scene, "made", &(struct contents){.bytes = "xx", .bytes_size = headers[i].n},
			       "made");
		SUCCEEDS(h5_vfs_unlink(scene.vfs, h5_vfs_root(scene.vfs), "made"));
	}
	vfs_scene_close(&scene);
}
END_TEST

/* The beginning, and a header that is longer than any. */
START_TEST(headers_are_known_by_their_first_bytes)
{
	static const uint8_t first[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 10, 0, 0, 0};
	uint8_t data[12];
	size_t size;

	for (size_t n = 0; n < 12; n++) {
		ck_assert_int_eq(h5_npy_header_size(first, n, &size), 0);
		ck_assert_uint_eq(size, 0);
		for (size_t i = 0; i < 6 && i < n; i++) {
			memcpy(data, first, sizeof data);
			data[i] ^= 1;
			ck_assert_int_eq(h5_npy_header_size(data, n, &size), -EINVAL);
		}
	}
	ck_assert_int_eq(h5_npy_header_size(first, 12, &size), 0);
	ck_assert_uint_eq(size, 22);
	memcpy(data, first, sizeof data);
	for (unsigned more = 0; more < 2; more++) {
		const uint32_t length = H5_NPY_DICTIONARY_MAX + more;

		for (unsigned i = 0; i < 4; i++)
			data[8 + i] = (uint8_t)(length >> 8 * i);
		ck_assert_int_eq(h5_npy_header_size(data, 12, &size), more ? -EINVAL : 0);
		ck_assert_uint_eq(size, more ? 0 : 12 + (size_t)H5_NPY_DICTIONARY_MAX);
	}
	data[6] = 1;
	data[8] = 0x34;
	data[9] = 0x12;
	ck_assert_int_eq(h5_npy_header_size(data, 9, &size), 0);
	ck_assert_uint_eq(size, 0);
	ck_assert_int_eq(h5_npy_header_size(data, 10, &size), 0);
	ck_assert_uint_eq(size, 10 + 0x1234);
}
END_TEST

/* ---- CSV ---- */

/* Appends the rows that a reader tells, a line each: the fields with bars between them. */
static int add_row(void *arg, const struct h5_csv_row *row)
{
	struct h5_buf *out = arg;

	for (size_t i = 0; i < row->count; i++) {
		const size_t begin = i ? row->end[i - 1] : 0;

		if (i)
			h5_buf_byte(out, '|');
		h5_buf_add(out, row->text + begin, row->end[i] - begin);
	}
	h5_buf_byte(out, ';');
	return 0;
}

/* Reads a text in two pieces. */
static int read_csv(const char *text, size_t n, size_t half, struct h5_buf *out)
{
	struct h5_csv_reader reader = {.row = add_row, .arg = out};
	int rc = h5_csv_read(&reader, text, half);

	if (!rc)
		rc = h5_csv_read(&reader, text + half, n - half);
	if (!rc)
		rc = h5_csv_end(&reader);
	h5_csv_release(&reader);
	h5_csv_release(&reader);
	return rc;
}

START_TEST(rows_of_fields)
{
	static const struct {
		const char *text, *rows; /* NULL: the text is refused */
	} cases[] = {{"a,b\nc,d\n", "a|b;c|d;"},
		     {"a,b\r\nc,d\r\n", "a|b;c|d;"},
		     {"a,b\rc,d\r", "a|b;c|d;"},
		     {"a,b\nc,d", "a|b;c|d;"},
		     {"a\n\n\r\n\r\rb\n\n", "a;b;"},
		     {",\n", "|;"},
		     {",", "|;"},
		     {"a,\n,b\n", "a|;|b;"},
		     {"\"a,b\"\n", "a,b;"},
		     {"\"a\nb\r\",c\n", "a\nb\r|c;"},
		     {"\"a\"\"b\"\n", "a\"b;"},
		     {"\"\"\n", ";"},
		     {"\"\"", ";"},
		     {"\"\"\"\"\n", "\";"},
		     {"a\"b,c\"\"\n", "a\"b|c\"\";"},
		     {"\"a\",\"b\"", "a|b;"},
		     {"", ""},
		     {"\n", ""},
		     {"\"a\"b\n", NULL},
		     {"\"a\" \n", NULL},
		     {"\"a", NULL},
		     {"a,\"", NULL},
		     {"\"a\"\"", NULL}};
	struct h5_buf out;

	h5_buf_init(&out, MOST);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (size_t half = 0; half <= strlen(cases[i].text); half++) {
			int rc;

			out.size = 0;
			rc = read_csv(cases[i].text, strlen(cases[i].text), half, &out);
			ck_assert_msg(rc == (cases[i].rows ? 0 : -EINVAL), "%s: %d", cases[i].text, rc);
			if (!cases[i].rows)
				continue;
			h5_buf_byte(&out, 0);
			ck_assert_str_eq(out.data, cases[i].rows);
		}
	h5_buf_release(&out);
}
END_TEST

static int take_row(void *arg, const struct h5_csv_row *row)
{
	*(size_t *)arg += row->end[row->count - 1];
	return 0;
}

START_TEST(rows_have_their_limit)
{
	const size_t most = H5_CSV_ROW_MAX;
	char *text = malloc(most + 2);

	for (size_t more = 0; more < 2; more++) {
		size_t got = 0;
		struct h5_csv_reader reader = {.row = take_row, .arg = &got};

		memset(text, 'x', most + 1);
		text[most + more] = '\n';
		text[most / 2] = ',';
		/* A comma is no byte of a field. */
		ck_assert_int_eq(h5_csv_read(&reader, text, most + more + 1), 0);
		ck_assert_uint_eq(got, most + more - 1);
		ck_assert_int_eq(h5_csv_read(&reader, "x", 1), 0);
		text[most / 2] = 'x';
		ck_assert_int_eq(h5_csv_read(&reader, text, most + more), 0);
		ck_assert_int_eq(h5_csv_end(&reader), -EFBIG);
		h5_csv_release(&reader);
	}
	free(text);
}
END_TEST

/* What becomes of a table, if a dataset with other values is there or none is. */
static const struct {
	const char *descr, *shape; /* of what is there, as NPY has it; NULL: nothing is */
	const char *text;
	size_t n;
	int rc; /* -EINVAL: it is refused */
	const char *dtype;
	size_t size; /* bytes of the dataset */
} tables[] = {
	/* Refused. */
	{NULL, NULL, TEXT("\n\n\r"), -EINVAL, NULL, 0},
	{NULL, NULL, TEXT("a,b,a\n1,2,3\n"), -EINVAL, NULL, 0},
	{NULL, NULL, TEXT("a\0b,c\n1,2\n"), -EINVAL, NULL, 0},
	{NULL, NULL, TEXT("a\xff,c\n1,2\n"), -EINVAL, NULL, 0},
	{NULL, NULL, TEXT("a,c\n1,2\0\n"), -EINVAL, NULL, 0},
	{NULL, NULL, TEXT("a,c\n1,\xc3\n"), -EINVAL, NULL, 0},
	{NULL, NULL, TEXT("a,c\n1\n"), -EINVAL, NULL, 0},
	{NULL, NULL, TEXT("a,c\n1,2,3\n"), -EINVAL, NULL, 0},
	{NULL, NULL, TEXT("\xef\xbb"), -EINVAL, NULL, 0},
	/* Numbers. */
	{NULL, NULL, TEXT("value\n1\n"), 0, "<i8", 8},
	{NULL, NULL, TEXT("\xef\xbb\xbfvalue\n1\n"), 0, "<i8", 8},
	{NULL, NULL, TEXT("value\n 1\t\n\t\t-2  \n"), 0, "<i8", 16},
	{NULL, NULL, TEXT("value\n9223372036854775807\n-9223372036854775808\n"), 0, "<i8", 16},
	{NULL, NULL, TEXT("value\n9223372036854775808\n"), 0, "<f8", 8},
	{NULL, NULL, TEXT("value\n1e5\n nan\ninf \n"), 0, "<f8", 24},
	{NULL, NULL, TEXT("value\n1.5\n2\n"), 0, "<f8", 16},
	{NULL, NULL, TEXT("a,b\n1,1\n1,\n"), 0, "[[\"a\",\"<i8\"],[\"b\",\"<f8\"]]", 32},
	/* Text. */
	{NULL, NULL, TEXT("value\n0x10\n"), 0, "S4", 4},
	{NULL, NULL, TEXT("value\n0X1P3\n"), 0, "S5", 5},
	{NULL, NULL, TEXT("value\nnan(1)\n"), 0, "S6", 6},
	{NULL, NULL, TEXT("value\n1 2\n"), 0, "S3", 3},
	{NULL, NULL, TEXT("value\n1\n \n"), 0, "S1", 2},
	{NULL, NULL, TEXT("value\n\"\"\n"), 0, "S1", 1},
	{NULL, NULL, TEXT("value\n1\nlong\n"), 0, "S4", 8},
	{NULL, NULL, TEXT("0,1\n1,\n,x\n"), 0, "S1", 4},
	/* Forms: names that are no numbers of columns make members. */
	{NULL, NULL, TEXT("0,1\n1,2\n"), 0, "<i8", 16},
	{NULL, NULL, TEXT(",\n1,2\n"), 0, "<i8", 16},
	{NULL, NULL, TEXT("1,2\n1,2\n"), 0, "[[\"1\",\"<i8\"],[\"2\",\"<i8\"]]", 16},
	{NULL, NULL, TEXT("value,x\n1,2\n"), 0, "[[\"value\",\"<i8\"],[\"x\",\"<i8\"]]", 16},
	{NULL, NULL, TEXT("values\n1\n"), 0, "[[\"values\",\"<i8\"]]", 8},
	/* The type that is there stays if the table has its columns, and values of it. */
	{"'<i2'", "(1, 3)", TEXT("0,1,2\n1,2,3\n4,5,6\n"), 0, "<i2", 12},
	{"'<i2'", "(1, 3)", TEXT("0,1\n1,2\n"), 0, "<i8", 16},
	{"'<i2'", "(1, 3)", TEXT("0,1,2,3\n1,2,3,4\n"), 0, "<i8", 32},
	{"'<i2'", "(3,)", TEXT("0,1,2\n1,2,3\n"), 0, "<i8", 24},
	{"'<i2'", "(1, 1, 3)", TEXT("0,1,2\n1,2,3\n"), 0, "<i8", 24},
	{"'<i2'", "(3,)", TEXT("value\n5\n6\n"), 0, "<i2", 4},
	{"'<i2'", "(3,)", TEXT("value\n70000\n"), 0, "<i8", 8},
	{"'<i2'", "(3, 1)", TEXT("value\n5\n"), 0, "<i8", 8},
	{"'<i2'", "()", TEXT("value\n5\n"), 0, "<i2", 2},
	{"'<i2'", "()", TEXT("value\n5\n6\n"), 0, "<i8", 16},
	{"[('a', '<i2'), ('b', '<f4')]", "(2,)", TEXT("a,b\n1,2\n"), 0, "[[\"a\",\"<i2\"],[\"b\",\"<f4\"]]",
	 6},
	{"[('a', '<i2'), ('b', '<f4')]", "()", TEXT("a,b\n1,2\n"), 0, "[[\"a\",\"<i2\"],[\"b\",\"<f4\"]]", 6},
	{"[('a', '<i2'), ('b', '<f4')]", "(2,)", TEXT("b,a\n1,2\n"), 0, "[[\"b\",\"<i8\"],[\"a\",\"<i8\"]]",
	 16},
	{"[('a', '<i2'), ('b', '<f4')]", "(2,)", TEXT("a,bb\n1,2\n"), 0, "[[\"a\",\"<i8\"],[\"bb\",\"<i8\"]]",
	 16},
	{"[('a', '<i2'), ('bb', '<f4')]", "(2,)", TEXT("a,b\n1,2\n"), 0, "[[\"a\",\"<i8\"],[\"b\",\"<i8\"]]",
	 16},
	{"[('a', '<i2'), ('b', '<f4')]", "(2,)", TEXT("a,c\n1,2\n"), 0, "[[\"a\",\"<i8\"],[\"c\",\"<i8\"]]",
	 16},
	{"[('a', '<i2'), ('b', '<f4')]", "(2,)", TEXT("a\n1\n"), 0, "[[\"a\",\"<i8\"]]", 8},
	{"[('a', '<i2'), ('b', '<f4')]", "(1, 2)", TEXT("a,b\n1,2\n"), 0, "[[\"a\",\"<i8\"],[\"b\",\"<i8\"]]",
	 16},
	{"[('a', '<i2'), ('b', '<f4')]", "(2,)", TEXT("a,b\n1,x\n"), 0, "[[\"a\",\"<i8\"],[\"b\",\"S1\"]]",
	 9},
	{"[('a', '<i2', (2,))]", "(1,)", TEXT("a[0],a[1]\n1,2\n"), 0, "[[\"a\",\"<i2\",[2]]]", 4},
	{"[('a', '<i2', (2,))]", "(1,)", TEXT("a[0],a[2]\n1,2\n"), 0,
	 "[[\"a[0]\",\"<i8\"],[\"a[2]\",\"<i8\"]]", 16},
	{"[('a', '<i2', (2,))]", "(1,)", TEXT("a[0]\n1\n"), 0, "[[\"a[0]\",\"<i8\"]]", 8},
	{"'<i2'", "(2,)", TEXT("a\n1\n"), 0, "[[\"a\",\"<i8\"]]", 8},
};

/* The dataset that is there before. */
static void make_target(struct vfs_scene *scene, const char *descr, const char *shape)
{
	static const char zeros[64];
	char dictionary[200];
	size_t n = 0;
	int rc = -EINVAL;

	snprintf(dictionary, sizeof dictionary, "{'descr': %s, 'fortran_order': False, 'shape': %s, }\n",
		 descr, shape);
	for (; rc && n < sizeof zeros; n++)
		rc = offer_npy(scene, "made.npy", dictionary, zeros, n);
	SUCCEEDS(rc);
}

START_TEST(tables_become_datasets)
{
	struct vfs_scene scene;
	struct h5_node *node;
	struct h5_buf dtype;

	h5_buf_init(&dtype, MOST);
	vfs_scene_open(&scene, "read_faults/new.h5");
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		size_t got;
		int rc;

		if (tables[i].descr)
			make_target(&scene, tables[i].descr, tables[i].shape);
		rc = offer(&scene, ".h5fs/csv", "made.csv", tables[i].text, tables[i].n);
		ck_assert_msg(rc == tables[i].rc, "%zu: %d %s", i, rc, h5_error_last()->text);
		if (rc) {
			ck_assert_int_eq(vfs_scene_find(&scene, "made", &node), -ENOENT);
			continue;
		}
		SUCCEEDS(vfs_scene_find(&scene, "made", &node));
		dtype.size = 0;
		SUCCEEDS(h5_vfs_getxattr(scene.vfs, node, "h5fs.dtype", &dtype));
		h5_buf_byte(&dtype, 0);
		ck_assert_msg(!strcmp(dtype.data, tables[i].dtype), "%zu: %s", i, dtype.data);
		h5_vfs_forget(scene.vfs, node, 1);
		ck_assert_ptr_nonnull(read_contents(&scene, "made", &got));
		ck_assert_msg(got == tables[i].size, "%zu: %zu bytes", i, got);
		SUCCEEDS(h5_vfs_unlink(scene.vfs, h5_vfs_root(scene.vfs), "made"));
	}
	h5_buf_release(&dtype);
	vfs_scene_close(&scene);
}
END_TEST

/* The head of what the view shows: each element of an array is a column, unless it has too many. */
START_TEST(columns_of_arrays)
{
	static const struct {
		const char *shape, *head;
		size_t n;
	} arrays[] = {
		{"(2,)", "a[0],a[1],b\n0,0,0\n", 2},
		{"(2, 3)", "a[0][0],a[0][1],a[0][2],a[1][0],a[1][1],a[1][2],b\n", 6},
		{"(3, 1, 2)", "a[0][0][0],a[0][0][1],a[1][0][0],a[1][0][1],a[2][0][0],a[2][0][1],b\n", 6},
		{"(16384,)", "a[0],a[1],a[2],", 16384},
		{"(16385,)", "a,b\n", 16385}};
	char dictionary[200], *zeros = calloc(1, 16386);
	struct vfs_scene scene;

	vfs_scene_open(&scene, "read_faults/new.h5");
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		const char *bytes;
		size_t got;

		snprintf(dictionary, sizeof dictionary,
			 "{'descr': [('a', '|u1', %s), ('b', '|u1')], 'fortran_order': False, 'shape': (1,), "
			 "}\n",
			 arrays[i].shape);
		SUCCEEDS(offer_npy(&scene, "made.npy", dictionary, zeros, arrays[i].n + 1));
		bytes = read_contents(&scene, ".h5fs/csv/made.csv", &got);
		ck_assert_ptr_nonnull(bytes);
		ck_assert_msg(got >= strlen(arrays[i].head) &&
				      !memcmp(bytes, arrays[i].head, strlen(arrays[i].head)),
			      "%s: %.40s", arrays[i].shape, bytes);
		SUCCEEDS(h5_vfs_unlink(scene.vfs, h5_vfs_root(scene.vfs), "made"));
	}
	vfs_scene_close(&scene);
	free(zeros);
}
END_TEST

/* A head of so many columns. */
static char *head_of(size_t count, bool named)
{
	char *text = malloc(count * 8 + 2), *p = text;

	for (size_t i = 0; i < count; i++)
		p += named ? sprintf(p, "c%zu,", i) : (*p = ',', 1);
	strcpy(p - 1, "\n");
	return text;
}

START_TEST(tables_have_their_limits)
{
	enum { ELEMENT = 16 << 20, COLUMNS = 1 << 20, MEMBERS = 8192 };
	static const char *const heads[] = {"value\n", "0\n", "a\n"};
	struct vfs_scene scene;
	char *text;

	vfs_scene_open(&scene, "read_faults/new.h5");
	for (size_t i = 0; i < 3; i++)
		for (size_t more = 0; more < 2; more++) {
			const size_t n = strlen(heads[i]);

			text = malloc(n + ELEMENT + 1);
			memcpy(text, heads[i], n);
			memset(text + n, 'x', ELEMENT + 1);
			ck_assert_int_eq(offer(&scene, ".h5fs/csv", "made.csv", text, n + ELEMENT + more),
					 more ? -EFBIG : 0);
			free(text);
			if (!more)
				SUCCEEDS(h5_vfs_unlink(scene.vfs, h5_vfs_root(scene.vfs), "made"));
		}
	for (size_t more = 0; more < 2; more++) {
		text = head_of(COLUMNS + more, false);
		ck_assert_int_eq(offer(&scene, ".h5fs/csv", "made.csv", text, strlen(text)),
				 more ? -EINVAL : 0);
		free(text);
		if (!more)
			SUCCEEDS(h5_vfs_unlink(scene.vfs, h5_vfs_root(scene.vfs), "made"));
	}
	text = head_of(MEMBERS + 1, true);
	ck_assert_int_eq(offer(&scene, ".h5fs/csv", "made.csv", text, strlen(text)), -E2BIG);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "8193 members"));
	free(text);
	ck_assert_int_eq(offer(&scene, ".h5fs/csv", "made.csv", TEXT("a,c\n1,2\n3\n")), -EINVAL);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "row 2 has 1 fields, the head 2"));
	/* 400 digits are a number, one more are text. */
	text = malloc(6 + 402);
	strcpy(text, "value\n");
	memset(text + 6, '1', 401);
	for (size_t more = 0; more < 2; more++) {
		size_t got;

		SUCCEEDS(offer(&scene, ".h5fs/csv", "made.csv", text, 6 + 400 + more));
		read_contents(&scene, "made", &got);
		ck_assert_uint_eq(got, more ? 401 : 8);
		SUCCEEDS(h5_vfs_unlink(scene.vfs, h5_vfs_root(scene.vfs), "made"));
	}
	free(text);
	vfs_scene_close(&scene);
}
END_TEST

UNIT_MAIN_LOOPS("intake", {memory_or_reading_fails, CHANGES *(FAULTS + 1)}, {writing_fails, 2 * CHANGES},
		{names_have_escapes, 1}, {long_rows_are_reordered, 2}, {headers_of_arrays, 1},
		{headers_are_known_by_their_first_bytes, 1}, {rows_of_fields, 1}, {rows_have_their_limit, 1},
		{tables_become_datasets, 1}, {columns_of_arrays, 1}, {tables_have_their_limits, 1})
