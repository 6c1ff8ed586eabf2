/* Each call that reads, opens or allocates fails once, wherever it stands in what a mount is asked for: the
 * error is the right one, or the result all the same; and what was asked for can be asked for again. */
#include "base/buf.h"
#include "base/error.h"
#include "base/lookup3.h"
#include "change/open.h"
#include "fault_alloc.h"
#include "fault_call.h"
#include "fault_step.h"
#include "format/virtual_mapping.h"
#include "scratch.h"
#include "unit.h"
#include "vfs/vfs.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 3000, OPERATIONS = 256, ENTRIES = 16, MOST = 1 << 16 };

/* ---- a mount without FUSE ---- */

struct mount {
	struct h5_file_set *set;
	struct h5_vfs *vfs;
};

static void find_file(const char *file, char path[512])
{
	char name[64];

	snprintf(name, sizeof name, "read_faults/%s", file);
	scratch_fixture(name, path);
}

static unsigned workers; /* of the mounts that are opened */

static int mount_open(struct mount *m, const char *path)
{
	struct h5_file_set_options options = {.block_cache = 1 << 20,
					      .chunk_cache = 1 << 20,
					      .workers = workers,
					      .external = H5_EXTERNAL_BENEATH,
					      .lock = H5_LOCK_ALWAYS};
	const struct h5_vfs_options vfs = {.file_fd = -1, .url = "file:///whole"};
	int rc;

	*m = (struct mount){0};
	fault_alloc_count(true);
	rc = h5_open_file(path, &options, &m->set, NULL);
	if (!rc)
		rc = h5_vfs_open(m->set, &vfs, &m->vfs);
	if (rc) {
		h5_file_set_close(m->set);
		m->set = NULL;
	}
	fault_alloc_count(false);
	return rc;
}

static void mount_close(struct mount *m)
{
	h5_vfs_close(m->vfs);
	h5_file_set_close(m->set);
	*m = (struct mount){0};
}

/* ---- operations: what becomes of each is a buffer of bytes ---- */

typedef int operation(struct h5_vfs *vfs, struct h5_node *node, const char *argument, struct h5_buf *out);

static int do_read(struct h5_vfs *vfs, struct h5_node *node, const char *argument, struct h5_buf *out)
{
	struct h5_handle *handle;
	char piece[PIECE];
	uint64_t offset = 0;
	size_t got;
	int rc = h5_vfs_open_file(vfs, node, O_RDONLY, &handle);

	(void)argument;
	if (rc)
		return rc;
	do {
		rc = h5_vfs_read(handle, offset, piece, sizeof piece, &got);
		if (!rc)
			h5_buf_add(out, piece, got);
		offset += got;
	} while (!rc && got);
	h5_vfs_close_file(handle);
	return rc;
}

static int do_seek(struct h5_vfs *vfs, struct h5_node *node, const char *argument, struct h5_buf *out)
{
	struct h5_handle *handle;
	uint64_t offset = 0;
	bool hole = true;
	int rc = h5_vfs_open_file(vfs, node, O_RDONLY, &handle);

	(void)argument;
	if (rc)
		return rc;
	while (!(rc = h5_vfs_seek(handle, offset, hole, &offset))) {
		h5_buf_printf(out, "%s%ju", out->size ? " " : "", (uintmax_t)offset);
		hole = !hole;
	}
	h5_vfs_close_file(handle);
	return rc == -ENXIO ? 0 : rc;
}

static int do_get(struct h5_vfs *vfs, struct h5_node *node, const char *argument, struct h5_buf *out)
{
	return h5_vfs_getxattr(vfs, node, argument, out);
}

static int do_list(struct h5_vfs *vfs, struct h5_node *node, const char *argument, struct h5_buf *out)
{
	(void)argument;
	return h5_vfs_listxattr(vfs, node, out);
}

static int do_link(struct h5_vfs *vfs, struct h5_node *node, const char *argument, struct h5_buf *out)
{
	const char *target;
	int rc = h5_vfs_readlink(node, &target);

	(void)vfs;
	(void)argument;
	if (!rc)
		h5_buf_text(out, target);
	return rc;
}

static int do_stat(struct h5_vfs *vfs, struct h5_node *node, const char *argument, struct h5_buf *out)
{
	struct stat st;
	int rc = h5_vfs_getattr(vfs, node, &st);

	(void)argument;
	if (rc)
		return rc;
	h5_buf_printf(out, "%s %ju %ju",
		      S_ISDIR(st.st_mode)   ? "folder"
		      : S_ISLNK(st.st_mode) ? "symlink"
					    : "file",
		      (uintmax_t)st.st_size, (uintmax_t)st.st_nlink);
	if (st.st_mtim.tv_sec <= 0)
		h5_buf_text(out, ", without a time");
	return 0;
}

/* What a plain listing and one with attributes tell of the entries from `first` on. */
static int add_entries(struct h5_vfs *vfs, struct h5_dir *dir, size_t first, bool plus, struct h5_buf *out,
		       size_t *got)
{
	struct h5_vfs_entry entries[ENTRIES];
	size_t left = h5_vfs_dir_count(dir) - first;
	int rc = h5_vfs_dir_read(dir, first, left < ENTRIES ? left : ENTRIES, plus, entries, got);

	for (size_t i = 0; i < *got && !rc; i++) {
		mode_t mode = entries[i].st.st_mode;

		if (plus && !entries[i].node)
			h5_buf_byte(out, '?');
		else
			h5_buf_byte(out, S_ISDIR(mode)	 ? 'd'
					 : S_ISLNK(mode) ? 'l'
					 : S_ISREG(mode) ? 'f'
							 : '?');
		h5_buf_printf(out, "%s\n", h5_vfs_dir_name(dir, first + i));
		if (plus && entries[i].node)
			h5_vfs_forget(vfs, entries[i].node, 1);
	}
	return rc;
}

static int list_names(struct h5_vfs *vfs, struct h5_node *node, bool plus, struct h5_buf *out)
{
	struct h5_dir *dir;
	size_t got;
	int rc = h5_vfs_opendir(vfs, node, &dir);

	if (rc)
		return rc;
	for (size_t i = 0; i < h5_vfs_dir_count(dir) && !rc; i += got)
		rc = add_entries(vfs, dir, i, plus, out, &got);
	if (!rc)
		rc = h5_vfs_dir_error(dir);
	h5_vfs_closedir(dir);
	return rc;
}

static int do_names(struct h5_vfs *vfs, struct h5_node *node, const char *argument, struct h5_buf *out)
{
	(void)argument;
	return list_names(vfs, node, false, out);
}

static int do_names_plus(struct h5_vfs *vfs, struct h5_node *node, const char *argument, struct h5_buf *out)
{
	(void)argument;
	return list_names(vfs, node, true, out);
}

static const struct {
	const char *name;
	operation *run;
} operations[] = {{"read", do_read}, {"ahead", do_read},  {"seek", do_seek},
		  {"get", do_get},   {"list", do_list},	  {"link", do_link},
		  {"stat", do_stat}, {"names", do_names}, {"names", do_names_plus}};
enum { KINDS = sizeof operations / sizeof *operations };

/* A line of the list; one of "names" stands for both listings. */
struct wanted {
	char file[16], name[8], path[32], argument[32];
	operation *run;
	uint8_t *result;
	size_t size;
};

static struct wanted wanted[OPERATIONS];
static size_t wanted_count;

static void add_wanted(const struct wanted *w)
{
	for (int i = 0; i < KINDS; i++) {
		if (strcmp(operations[i].name, w->name))
			continue;
		ck_assert_uint_lt(wanted_count, OPERATIONS);
		wanted[wanted_count] = *w;
		wanted[wanted_count++].run = operations[i].run;
	}
}

static void read_list(void)
{
	static char hex[2 * MOST + 1];
	char path[512];
	struct wanted w = {0};
	FILE *f;

	scratch_fixture("read_faults/list", path);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	while (fscanf(f, "%15s %7s %31s %31s %131071s", w.file, w.name, w.path, w.argument, hex) == 5) {
		w.size = *hex == '-' ? 0 : strlen(hex) / 2;
		w.result = malloc(w.size + 1);
		for (size_t i = 0; i < w.size; i++)
			sscanf(hex + 2 * i, "%2hhx", &w.result[i]);
		add_wanted(&w);
	}
	fclose(f);
}

static void release_list(void)
{
	for (size_t i = 0; i < wanted_count; i++)
		if (!i || wanted[i].result != wanted[i - 1].result)
			free(wanted[i].result);
	wanted_count = 0;
}

static int look_up(struct h5_vfs *vfs, const char *path, struct h5_node **node)
{
	char copy[32], *rest = copy;

	strcpy(copy, path);
	*node = h5_vfs_root(vfs);
	while (rest && strcmp(rest, ".")) {
		const char *name = strsep(&rest, "/");
		struct h5_vfs_entry entry;
		int rc = h5_vfs_lookup(vfs, *node, name, &entry);

		h5_vfs_forget(vfs, *node, 1);
		*node = NULL;
		if (rc)
			return rc;
		*node = entry.node;
	}
	return 0;
}

/* Finds the node, and does what is wanted with it. */
static int perform(struct h5_vfs *vfs, const struct wanted *w, struct h5_buf *out)
{
	struct h5_node *node = NULL;
	int rc;

	h5_error_clear();
	out->size = 0;
	fault_alloc_count(true);
	rc = look_up(vfs, w->path, &node);
	if (!rc)
		rc = w->run(vfs, node, w->argument, out);
	if (node)
		h5_vfs_forget(vfs, node, 1);
	fault_alloc_count(false);
	return rc ? rc : out->err;
}

/* Of an entry that could not be looked at, a listing tells the name alone. */
static bool is_right(const struct wanted *w, const struct h5_buf *out, bool faulty)
{
	if (out->size != w->size)
		return false;
	for (size_t i = 0; i < w->size; i++)
		if ((uint8_t)out->data[i] != w->result[i] &&
		    !(faulty && (w->run == do_names || w->run == do_names_plus) && out->data[i] == '?'))
			return false;
	return true;
}

static void describe(const struct wanted *w, const char *what, unsigned long n, int rc,
		     const struct h5_buf *out)
{
	ck_abort_msg("%s %s %s %s, %s %lu: %d (%s), %zu bytes: %.*s", w->file, w->name, w->path, w->argument,
		     what, n, rc, h5_error_last()->text, out->size, (int)(out->size < 200 ? out->size : 200),
		     out->data ? out->data : "");
}

/* ---- faults ---- */

struct fault {
	const char *name;
	void (*arm)(unsigned long n);
	bool (*disarm)(void);
	int error; /* 0: nothing comes of it */
};

static void arm_read(unsigned long n)
{
	fault_call_arm(CALL_FAILS, n, false);
}

static void arm_all_reads(unsigned long n)
{
	fault_call_arm(CALL_FAILS, n, true);
}

static void arm_short(unsigned long n)
{
	fault_call_arm(CALL_SHORT, n, false);
}

static void arm_interrupted(unsigned long n)
{
	fault_call_arm(CALL_INTERRUPTED, n, false);
}

static void arm_open(unsigned long n)
{
	fault_call_arm(CALL_OPENS_NONE, n, false);
}

static const struct fault failed_read = {"failed read", arm_read, fault_call_disarm, -EIO},
			  failed_reads = {"failed reads from", arm_all_reads, fault_call_disarm, -EIO},
			  short_read = {"short read", arm_short, fault_call_disarm, 0},
			  interrupted_read = {"interrupted read", arm_interrupted, fault_call_disarm, 0},
			  failed_open = {"failed open", arm_open, fault_call_disarm, -EMFILE},
			  failed_allocation = {"failed allocation", fault_alloc_arm, fault_alloc_disarm,
					       -ENOMEM};

/* A mount is opened, with the n-th fault in it for each n that there is. */
static void opening(const char *file, const struct fault *fault)
{
	bool fired = true;
	char path[512];

	find_file(file, path);
	for (unsigned long n = 1; fired; n++) {
		struct mount m;
		int rc;

		fault->arm(n);
		rc = mount_open(&m, path);
		fired = fault->disarm();
		ck_assert_msg(!rc || (fired && rc == fault->error), "%s, %s %lu: %d %s", file, fault->name, n,
			      rc, h5_error_last()->text);
		mount_close(&m);
	}
}

/* The n-th fault; false: there was none. */
static bool meet(const struct wanted *w, const struct fault *fault, unsigned long n)
{
	static const char zeros[MOST];
	struct mount m;
	struct h5_buf out;
	char path[512];
	bool fired;
	int rc;

	h5_buf_init(&out, MOST);
	find_file(w->file, path);
	SUCCEEDS(mount_open(&m, path));
	/* The test's own buffer does not grow in the engine's call. */
	h5_buf_add(&out, zeros, sizeof zeros);
	fault->arm(n);
	rc = perform(m.vfs, w, &out);
	fired = fault->disarm();
	if (rc ? !fired || rc != fault->error : !is_right(w, &out, fired))
		describe(w, fault->name, n, rc, &out);
	rc = perform(m.vfs, w, &out);
	if (rc || !is_right(w, &out, false))
		describe(w, "after this one", n, rc, &out);
	mount_close(&m);
	h5_buf_release(&out);
	return fired;
}

static bool is_ahead(const struct wanted *w)
{
	return !strcmp(w->name, "ahead");
}

static void try_openings(const struct fault *fault)
{
	opening("new.h5", fault);
	opening("old.h5", fault);
	opening("family%05d.h5", fault);
	/* With a cache image */
	opening("../rare_image_library.h5", fault);
}

/* Of the calls of each operation that can fail one in fault_step() does: in each operation others. */
static void try_operations(const struct fault *fault, bool ahead)
{
	const unsigned long step = fault_step();

	ck_assert_uint_gt(wanted_count, 0);
	for (size_t i = 0; i < wanted_count; i++)
		for (unsigned long n = 1 + i % step;
		     is_ahead(&wanted[i]) == ahead && meet(&wanted[i], fault, n); n += step)
			;
}

static void try_all(const struct fault *fault)
{
	try_openings(fault);
	try_operations(fault, false);
}

/* The same with a pool, and reading ahead: which call is the n-th is as the threads have it. */
static void try_with_workers(const struct fault *fault)
{
	workers = 2;
	try_operations(fault, true);
	workers = 0;
}

START_TEST(reads_fail)
{
	try_all(&failed_read);
	try_with_workers(&failed_read);
}
END_TEST

START_TEST(all_reads_fail_from_one_on)
{
	try_all(&failed_reads);
}
END_TEST

START_TEST(reads_are_short)
{
	try_all(&short_read);
	try_all(&interrupted_read);
}
END_TEST

START_TEST(no_file_can_be_opened)
{
	try_all(&failed_open);
}
END_TEST

START_TEST(memory_is_short)
{
	try_all(&failed_allocation);
	try_with_workers(&failed_allocation);
}
END_TEST

/* ---- calls that take their time ---- */

struct reader {
	struct mount *mount;
	size_t first;		    /* operation; each thread begins with another one */
	const struct wanted *wrong; /* NULL: none */
	int rc;
};

static void *read_all(void *arg)
{
	struct reader *r = arg;
	struct h5_buf out;

	h5_buf_init(&out, MOST);
	for (size_t i = 0; i < wanted_count && !r->wrong; i++) {
		const struct wanted *w = &wanted[(r->first + i) % wanted_count];

		if (strcmp(w->file, "new.h5"))
			continue;
		r->rc = perform(r->mount->vfs, w, &out);
		if (r->rc || !is_right(w, &out, false))
			r->wrong = w;
	}
	h5_buf_release(&out);
	return NULL;
}

/* From some call on each is late, while other threads ask for the same. */
START_TEST(reads_are_late)
{
	enum { READERS = 4, ROUNDS = 8 };
	struct reader readers[READERS];
	pthread_t threads[READERS];
	struct mount m;
	char path[512];

	find_file("new.h5", path);
	workers = 2;
	for (unsigned long n = 1; n <= ROUNDS; n++) {
		SUCCEEDS(mount_open(&m, path));
		fault_call_arm(CALL_LATE, n, true);
		for (size_t i = 0; i < READERS; i++) {
			readers[i] = (struct reader){.mount = &m, .first = i * wanted_count / READERS / 2};
			ck_assert_int_eq(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
		}
		for (size_t i = 0; i < READERS; i++) {
			pthread_join(threads[i], NULL);
			if (readers[i].wrong)
				ck_abort_msg("%s %s: %d", readers[i].wrong->name, readers[i].wrong->path,
					     readers[i].rc);
		}
		ck_assert(fault_call_disarm());
		mount_close(&m);
	}
}
END_TEST

/* A block of no mappings, version 1, needs memory all the same. */
START_TEST(mappings_without_memory)
{
	uint8_t bytes[1 + 8 + 4] = {1};
	unsigned failed = 0;
	bool fired = true;

	h5_uint_to(bytes + 9, h5_lookup3(bytes, 9, 0), 4);
	for (unsigned long n = 1; fired; n++) {
		struct h5_reader r = h5_reader_init(bytes, sizeof bytes, H5_UNDEF, 8, 8);
		struct h5_virtual_block block;
		struct h5_virtual_mapping mapping;
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_virtual_block_open(&r, &block);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
		failed += fired;
		if (fired) {
			ck_assert(!block.files && !block.datasets);
			continue;
		}
		ck_assert_int_eq(h5_virtual_block_next(&block, &mapping), 0);
		h5_virtual_block_release(&block);
	}
	ck_assert_uint_eq(failed, 2);
}
END_TEST

UNIT_MAIN_AROUND("read faults", read_list, release_list, reads_fail, all_reads_fail_from_one_on,
		 reads_are_short, no_file_can_be_opened, memory_is_short, reads_are_late,
		 mappings_without_memory)
