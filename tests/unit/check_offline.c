/* The commands that copy, print and list a tree, while calls fail: what is missing is told, and what is there
 * is whole. */
#include "base/buf.h"
#include "base/interrupt.h"
#include "fault_kinds.h"
#include "offline/offline.h"
#include "offline/progress.h"
#include "offline/target.h"
#include "offline/walk.h"
#include "said.h"
#include "scratch.h"
#include "vfs_scene.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MOST = 1 << 20, PATH_MOST = 1 << 20 };

static struct vfs_scene scene;

/* ---- calls of the target, and of standard output ---- */

#define CALLS(X)                                                                                             \
	X(fchmod, (int fd, mode_t mode), (fd, mode))                                                         \
	X(fchown, (int fd, uid_t user, gid_t group), (fd, user, group))                                      \
	X(fchownat, (int at, const char *name, uid_t user, gid_t group, int flags),                          \
	  (at, name, user, group, flags))                                                                    \
	X(ftruncate64, (int fd, off_t size), (fd, size))                                                     \
	X(futimens, (int fd, const struct timespec times[2]), (fd, times))                                   \
	X(linkat, (int from, const char *name, int to, const char *other, int flags),                        \
	  (from, name, to, other, flags))                                                                    \
	X(mkdirat, (int at, const char *name, mode_t mode), (at, name, mode))                                \
	X(renameat2, (int from, const char *name, int to, const char *other, unsigned flags),                \
	  (from, name, to, other, flags))                                                                    \
	X(symlinkat, (const char *text, int at, const char *name), (text, at, name))                         \
	X(utimensat, (int at, const char *name, const struct timespec times[2], int flags),                  \
	  (at, name, times, flags))

#define NAME(call, parameters, arguments) CALL_##call,
enum call { CALLS(NAME) CALL_fsetxattr, CALL_pwrite64, CALL_write };
#undef NAME

static const char *const call_names[] = {
#define NAME(call, parameters, arguments) #call,
	CALLS(NAME)
#undef NAME
		"fsetxattr",
	"pwrite64", "write"};
enum { TARGET_CALLS = CALL_write };

/* Results of write() and pwrite() in place of an error. */
enum { SHORT = -1, NOTHING = -2 };

static struct {
	enum call call;
	int error;
	unsigned long left; /* the last of so many fails; 0: none does */
	bool lasting;	    /* and all behind it */
	bool fired;
	unsigned failed;     /* calls */
	unsigned attributes; /* that were set */
} target_calls;

static int fault_of(enum call call)
{
	if (call != target_calls.call)
		return 0;
	if (!(target_calls.lasting && target_calls.fired) && (!target_calls.left || --target_calls.left))
		return 0;
	target_calls.fired = true;
	target_calls.failed++;
	errno = target_calls.error;
	return target_calls.error;
}

#define WRAP(call, parameters, arguments)                                                                    \
	int __real_##call parameters;                                                                        \
	int __wrap_##call parameters;                                                                        \
	int __wrap_##call parameters                                                                         \
	{                                                                                                    \
		return fault_of(CALL_##call) ? -1 : __real_##call arguments;                                 \
	}
CALLS(WRAP)

/* Not all file systems have attributes. */
int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags);
int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
	(void)fd;
	ck_assert(!strcmp(name, "user.unit") || !strcmp(name, "user.other"));
	ck_assert(size == 1 && !memcmp(value, "m", 1) && !flags);
	if (fault_of(CALL_fsetxattr))
		return -1;
	target_calls.attributes++;
	return 0;
}

ssize_t __real_pwrite64(int fd, const void *data, size_t n, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t offset)
{
	int fault = fault_of(CALL_pwrite64);

	if (fault > 0)
		return -1;
	return fault == NOTHING ? 0 : __real_pwrite64(fd, data, fault ? (n + 1) / 2 : n, offset);
}

ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n)
{
	int fault = fault_of(CALL_write);

	if (fault > 0)
		return -1;
	return fault == NOTHING ? 0 : __real_write(fd, data, fault ? (n + 1) / 2 : n);
}

/* ---- requests ---- */

/* Each call of vfs/ is a request of its own, but for what a request asks in one go. */
static bool begun, requests_count;
static unsigned depth; /* calls within calls */

void __real_h5_interrupt_begin(h5_interrupt_ask *ask, void *arg);
void __wrap_h5_interrupt_begin(h5_interrupt_ask *ask, void *arg);
void __wrap_h5_interrupt_begin(h5_interrupt_ask *ask, void *arg)
{
	begun = true;
	__real_h5_interrupt_begin(ask, arg);
}

static void enter(const char *what)
{
	ck_assert_msg(!requests_count || depth || begun, "%s", what);
	begun = begun && depth;
	depth++;
}

#define REQUESTS(X)                                                                                          \
	X(opendir, (struct h5_vfs * vfs, struct h5_node * node, struct h5_dir * *dir), (vfs, node, dir))     \
	X(open_file, (struct h5_vfs * vfs, struct h5_node * node, int flags, struct h5_handle **handle),     \
	  (vfs, node, flags, handle))                                                                        \
	X(seek, (struct h5_handle * handle, uint64_t offset, bool hole, uint64_t *found),                    \
	  (handle, offset, hole, found))                                                                     \
	X(getxattr, (struct h5_vfs * vfs, struct h5_node * node, const char *name, struct h5_buf *out),      \
	  (vfs, node, name, out))                                                                            \
	X(listxattr, (struct h5_vfs * vfs, struct h5_node * node, struct h5_buf * out), (vfs, node, out))

#define REQUEST(call, parameters, arguments)                                                                 \
	int __real_h5_vfs_##call parameters;                                                                 \
	int __wrap_h5_vfs_##call parameters;                                                                 \
	int __wrap_h5_vfs_##call parameters                                                                  \
	{                                                                                                    \
		int rc;                                                                                      \
                                                                                                             \
		enter(#call);                                                                                \
		rc = __real_h5_vfs_##call arguments;                                                         \
		depth--;                                                                                     \
		return rc;                                                                                   \
	}
REQUESTS(REQUEST)

static int64_t nodes; /* references to nodes that were given and not taken back */

int __real_h5_vfs_lookup(struct h5_vfs *vfs, struct h5_node *parent, const char *name,
			 struct h5_vfs_entry *entry);
int __wrap_h5_vfs_lookup(struct h5_vfs *vfs, struct h5_node *parent, const char *name,
			 struct h5_vfs_entry *entry);
int __wrap_h5_vfs_lookup(struct h5_vfs *vfs, struct h5_node *parent, const char *name,
			 struct h5_vfs_entry *entry)
{
	int rc;

	enter("lookup");
	rc = __real_h5_vfs_lookup(vfs, parent, name, entry);
	depth--;
	nodes += !rc && !depth;
	return rc;
}

int __real_h5_vfs_dir_read(struct h5_dir *dir, size_t first, size_t count, bool plus,
			   struct h5_vfs_entry *entries, size_t *got);
int __wrap_h5_vfs_dir_read(struct h5_dir *dir, size_t first, size_t count, bool plus,
			   struct h5_vfs_entry *entries, size_t *got);
int __wrap_h5_vfs_dir_read(struct h5_dir *dir, size_t first, size_t count, bool plus,
			   struct h5_vfs_entry *entries, size_t *got)
{
	int rc;

	enter("dir_read");
	rc = __real_h5_vfs_dir_read(dir, first, count, plus, entries, got);
	depth--;
	for (size_t i = 0; !rc && !depth && plus && i < *got; i++)
		nodes += entries[i].node != NULL;
	return rc;
}

/* These may give back references of their own. */
#define ENDS(X)                                                                                              \
	X(close_file, struct h5_handle *)                                                                    \
	X(closedir, struct h5_dir *)

#define END(call, type)                                                                                      \
	void __real_h5_vfs_##call(type it);                                                                  \
	void __wrap_h5_vfs_##call(type it);                                                                  \
	void __wrap_h5_vfs_##call(type it)                                                                   \
	{                                                                                                    \
		depth++;                                                                                     \
		__real_h5_vfs_##call(it);                                                                    \
		depth--;                                                                                     \
	}
ENDS(END)

void __real_h5_vfs_forget(struct h5_vfs *vfs, struct h5_node *node, uint64_t count);
void __wrap_h5_vfs_forget(struct h5_vfs *vfs, struct h5_node *node, uint64_t count);
void __wrap_h5_vfs_forget(struct h5_vfs *vfs, struct h5_node *node, uint64_t count)
{
	nodes -= depth ? 0 : (int64_t)count;
	__real_h5_vfs_forget(vfs, node, count);
}

static unsigned long reads_left; /* the last of so many finds the end of the file; 0: none does */
static bool reads_less;		 /* each read gives a few bytes */

int __real_h5_vfs_read(struct h5_handle *handle, uint64_t offset, void *buf, size_t n, size_t *got);
int __wrap_h5_vfs_read(struct h5_handle *handle, uint64_t offset, void *buf, size_t n, size_t *got);
int __wrap_h5_vfs_read(struct h5_handle *handle, uint64_t offset, void *buf, size_t n, size_t *got)
{
	int rc;

	enter("read");
	rc = __real_h5_vfs_read(handle, offset, buf, reads_less && n > 7 ? 7 : n, got);
	depth--;
	if (reads_left && !--reads_left)
		*got = 0;
	return rc;
}

static unsigned long
	stops_left; /* the last question of so many hears that a signal came, and all behind it */
static bool stopped;

int __wrap_h5_stop_signal(void);
int __wrap_h5_stop_signal(void)
{
	stopped = stopped || (stops_left && !--stops_left);
	return stopped;
}

/* ---- progress ---- */

static struct {
	uint64_t done;	/* that was shown last */
	unsigned steps; /* how often it grew */
} shown;

void __real_h5_progress_show(struct h5_progress *progress, uint64_t done, const char *what, size_t size);
void __wrap_h5_progress_show(struct h5_progress *progress, uint64_t done, const char *what, size_t size);
void __wrap_h5_progress_show(struct h5_progress *progress, uint64_t done, const char *what, size_t size)
{
	ck_assert_ptr_nonnull(progress);
	ck_assert_uint_ge(done, shown.done);
	ck_assert(!progress->total || done <= progress->total);
	shown.steps += done > shown.done;
	shown.done = done;
	__real_h5_progress_show(progress, done, what, size);
}

/* ---- copies ---- */

struct copy {
	char path[160];
	enum h5_offline_result result;
	int rc;
	char *said; /* owned */
};

static void extract(struct copy *copy, const char *from)
{
	struct h5_progress progress = {.wanted = false};
	struct h5_target target;
	struct said said;

	*copy = (struct copy){.rc = 0};
	snprintf(copy->path, sizeof copy->path, "%s/copy", scratch_folder());
	SUCCEEDS(h5_target_open(copy->path, &target));
	target_calls.fired = false;
	target_calls.attributes = target_calls.failed = 0;
	shown.done = shown.steps = 0;
	begin_catch(&said, STDERR_FILENO);
	begun = false;
	requests_count = true;
	fault_alloc_count(true);
	copy->rc = h5_offline_extract(scene.vfs, from, &target, &progress, &copy->result);
	fault_alloc_count(false);
	requests_count = false;
	end_catch(&said);
	copy->said = said.text;
	h5_target_close(&target);
}

/* What the tree has, and its bytes. */
static const struct {
	const char *path;
	mode_t type;
	int64_t size; /* -1: any */
} entries[] = {
	{"again", S_IFREG, 800},
	{"empty", S_IFDIR, -1},
	{"folder", S_IFLNK, 5},
	{"group", S_IFDIR, -1},
	{"group/data", S_IFREG, 800},
	{"group/inner", S_IFDIR, -1},
	{"group/inner/words", S_IFREG, 11},
	{"group/third", S_IFREG, 800},
	{"soft", S_IFLNK, 10},
	{"sparse", S_IFREG, 160},
};
enum { ENTRIES = sizeof entries / sizeof *entries, ATTRIBUTES = 3 };

static uint32_t number_at(const char *data, size_t at)
{
	uint32_t number;

	memcpy(&number, data + at, sizeof number);
	return number;
}

static bool is_right(const char *path, const char *data)
{
	if (strstr(path, "words"))
		return !memcmp(data, "some\nwords\n", 11);
	for (uint32_t i = 0; i < 40 && !strcmp(path, "sparse"); i++)
		if (number_at(data, 4 * i) != (i / 5 == 2 ? 1u : i / 5 == 6 ? 2u : 0u))
			return false;
	for (uint32_t i = 0; i < 100 && strcmp(path, "sparse") != 0; i++)
		if (number_at(data, 8 * i) != i || number_at(data, 8 * i + 4))
			return false;
	return true;
}

/* Tells if the entry is there; what is there must be whole. `status`: it has its mode and its time, too. */
static bool is_there(const struct copy *copy, unsigned i, bool *status)
{
	char path[256], data[1024];
	struct stat st, original;
	int fd;

	snprintf(path, sizeof path, "%s/%s", copy->path, entries[i].path);
	ck_assert_int_eq(stat(scene.path, &original), 0);
	if (lstat(path, &st))
		return false;
	ck_assert_int_eq(st.st_mode & S_IFMT, entries[i].type);
	ck_assert_msg(entries[i].size < 0 || st.st_size == entries[i].size, "%s", path);
	*status = st.st_mtim.tv_sec == original.st_mtim.tv_sec &&
		  st.st_mtim.tv_nsec == original.st_mtim.tv_nsec &&
		  (S_ISLNK(st.st_mode) || !(st.st_mode & 0222));
	if (!S_ISREG(st.st_mode))
		return true;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(read(fd, data, sizeof data), st.st_size);
	close(fd);
	ck_assert_msg(is_right(entries[i].path, data), "%s", path);
	return true;
}

/* Something was said of the entry, or of a directory that it is in. */
static bool is_told(const struct copy *copy, const char *path)
{
	char line[256];

	for (size_t n = strlen(path) + 1; n--;) {
		if (n && path[n] && path[n] != '/')
			continue;
		snprintf(line, sizeof line, "/%.*s: ", (int)n, path);
		if (strstr(copy->said, line))
			return true;
	}
	return false;
}

/* How many entries are missing, or lack something. `told`: each of them must be told. */
static unsigned lacking(const struct copy *copy, bool told, const char *about)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ENTRIES; i++) {
		bool status = true;

		if (is_there(copy, i, &status) && status)
			continue;
		n++;
		ck_assert_msg(!told || is_told(copy, entries[i].path), "%s: %s: %s", about, entries[i].path,
			      copy->said);
	}
	return n;
}

/* No file is left that has not got its name. */
static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	ck_assert_msg(path[where->base] != '.', "%s", path);
	return remove(path);
}

static void release(struct copy *copy)
{
	ck_assert_int_eq(nftw(copy->path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	free(copy->said);
}

static void setup(void)
{
	vfs_scene_open_in_place(&scene, "check_tree.h5");
}

static void teardown(void)
{
	ck_assert_int_eq(nodes, 0);
	vfs_scene_close(&scene);
}

START_TEST(all_is_copied)
{
	struct copy copy;

	extract(&copy, "/");
	ck_assert_int_eq(copy.rc, 0);
	ck_assert_int_eq(copy.result, H5_OFFLINE_SOUND);
	ck_assert_str_eq(copy.said, "");
	ck_assert_uint_eq(lacking(&copy, true, "all"), 0);
	ck_assert_uint_eq(target_calls.attributes, ATTRIBUTES);
	release(&copy);
}
END_TEST

/* Names of the same file are linked wherever the directory is that is copied. */
START_TEST(links_below_a_directory)
{
	struct stat a, b;
	struct copy copy;
	char path[200];

	extract(&copy, "/group");
	ck_assert_int_eq(copy.rc, 0);
	ck_assert_str_eq(copy.said, "");
	snprintf(path, sizeof path, "%s/data", copy.path);
	ck_assert_int_eq(lstat(path, &a), 0);
	snprintf(path, sizeof path, "%s/third", copy.path);
	ck_assert_int_eq(lstat(path, &b), 0);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	ck_assert_int_eq(a.st_size, 800);
	release(&copy);
}
END_TEST

/* What becomes of the copy if calls fail with the error. */
enum outcome {
	LOSES, /* something is missing, which is told */
	ENDS,  /* the same, and nothing is copied any more */
	KEEPS, /* nothing is missing */
	LACKS, /* but modes or owners, which nobody but root may give */
};

static enum outcome outcome_of(enum call call, int error)
{
	if (call == CALL_fsetxattr || call == CALL_linkat || error == SHORT || error == EINTR)
		return KEEPS;
	if (call == CALL_renameat2 && error == EINVAL)
		return KEEPS;
	if ((call == CALL_fchmod || call == CALL_fchown || call == CALL_fchownat) &&
	    (error == EPERM || error == EINVAL))
		return LACKS;
	return error == ENOSPC || error == EDQUOT || error == EROFS ? ENDS : LOSES;
}

/* Lines that are said of it. */
static unsigned lines_of(enum call call, int error)
{
	if (call == CALL_fsetxattr)
		return 2;
	return call == CALL_linkat ? error != EMLINK : outcome_of(call, error) <= ENDS;
}

static bool can_be(enum call call, int error)
{
	return call == CALL_pwrite64 || (error > 0 && error != EINTR);
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

/* The n-th call fails. False: there is no n-th. */
static bool fail_call(enum call call, int error, unsigned long n)
{
	const enum outcome outcome = outcome_of(call, error);
	unsigned lost;
	struct copy copy;
	char about[64];

	snprintf(about, sizeof about, "%s %lu: error %d", call_names[call], n, error);
	target_calls.call = call;
	target_calls.error = error;
	target_calls.left = n;
	extract(&copy, "/");
	target_calls.left = 0;
	lost = lacking(&copy, outcome == LOSES, about);
	ck_assert_msg(!lost || (target_calls.fired && outcome != KEEPS), "%s", about);
	if (target_calls.fired) {
		ck_assert_msg(copy.rc == (outcome == ENDS ? -error : 0), "%s: %d", about, copy.rc);
		ck_assert_msg(copy.result == (outcome >= KEEPS ? H5_OFFLINE_SOUND : H5_OFFLINE_FAILED), "%s",
			      about);
		ck_assert_msg(count_lines(copy.said) == lines_of(call, error), "%s: %s", about, copy.said);
		if (call == CALL_fsetxattr)
			ck_assert_uint_eq(target_calls.attributes,
					  error == EOPNOTSUPP ? n - 1 : ATTRIBUTES - 1);
		else
			ck_assert(outcome < KEEPS || call == CALL_linkat ||
				  target_calls.attributes == ATTRIBUTES);
	}
	release(&copy);
	return target_calls.fired;
}

START_TEST(calls_of_the_target_fail)
{
	static const int errors[] = {EPERM,  EINVAL, EMLINK, EIO,     ENOSPC,
				     EDQUOT, EROFS,  SHORT,  NOTHING, EINTR};
	const enum call call = (enum call)_i;

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		unsigned long n = 1;

		if (!can_be(call, errors[i]))
			continue;
		while (fail_call(call, errors[i], n))
			n++;
		ck_assert_uint_gt(n, 1);
	}
}
END_TEST

/* A target without hard links is told of once, and not asked again; one that has no room for another link is.
 */
START_TEST(no_hard_links)
{
	static const int errors[] = {EPERM, EOPNOTSUPP, EMLINK};

	target_calls.call = CALL_linkat;
	target_calls.lasting = true;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		const bool is_full = errors[i] == EMLINK;
		struct copy copy;

		target_calls.error = errors[i];
		target_calls.left = 1;
		extract(&copy, "/");
		ck_assert_int_eq(copy.rc, 0);
		ck_assert_int_eq(copy.result, H5_OFFLINE_SOUND);
		ck_assert_uint_eq(lacking(&copy, true, "links"), 0);
		ck_assert_uint_eq(count_lines(copy.said), !is_full);
		ck_assert_uint_eq(target_calls.failed, is_full ? 2 : 1);
		release(&copy);
	}
	target_calls.lasting = target_calls.fired = false;
}
END_TEST

/* Whatever is missing, the result says so. */
START_TEST(allocations_and_reads_of_a_copy_fail)
{
	const struct fault *fault = &faults[_i];
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct copy copy;
		unsigned lost;

		vfs_scene_empty_caches(&scene);
		fault->arm(n);
		extract(&copy, "/");
		fired = fault->disarm();
		lost = lacking(&copy, false, "fault");
		if (fired)
			ck_assert_msg(copy.result == H5_OFFLINE_FAILED ||
					      (!lost && target_calls.attributes >= ATTRIBUTES),
				      "%lu: %u are missing", n, lost);
		else
			ck_assert_uint_eq(lost, 0);
		ck_assert_msg(!copy.rc || (fired && copy.rc == -ENOMEM && fault->error == -ENOMEM), "%lu: %d",
			      n, copy.rc);
		ck_assert(copy.result == H5_OFFLINE_FAILED || !*copy.said ||
			  strstr(copy.said, "; it is a copy"));
		release(&copy);
	}
}
END_TEST

START_TEST(reads_that_give_less)
{
	struct copy copy;

	reads_less = true;
	extract(&copy, "/");
	reads_less = false;
	ck_assert_int_eq(copy.result, H5_OFFLINE_SOUND);
	ck_assert_uint_eq(lacking(&copy, true, "less"), 0);
	/* The progress of each file is in proportion to what was read of it. */
	ck_assert_uint_gt(shown.steps, 100);
	release(&copy);
}
END_TEST

/* A file that has become shorter is not copied. */
START_TEST(files_that_end_early)
{
	unsigned lost = 1;

	for (unsigned long n = 1; lost; n++) {
		struct copy copy;

		reads_left = n;
		extract(&copy, "/");
		lost = lacking(&copy, true, "end");
		ck_assert_int_eq(!reads_left, lost);
		ck_assert_int_eq(copy.rc, 0);
		ck_assert_int_eq(copy.result, lost ? H5_OFFLINE_FAILED : H5_OFFLINE_SOUND);
		ck_assert_int_eq(!!strstr(copy.said, ": it has become shorter\n"), lost);
		reads_left = 0;
		release(&copy);
	}
}
END_TEST

/* It ends without a word, and what is there is whole. */
START_TEST(copies_that_a_signal_ends)
{
	bool ended = true;

	for (unsigned long n = 1; ended; n++) {
		struct copy copy;
		unsigned lost;

		stopped = false;
		stops_left = n;
		extract(&copy, "/");
		stops_left = 0;
		ended = stopped;
		stopped = false;
		lost = lacking(&copy, false, "signal");
		ck_assert_int_eq(copy.rc, ended ? -EINTR : 0);
		ck_assert_int_eq(copy.result, ended ? H5_OFFLINE_FAILED : H5_OFFLINE_SOUND);
		ck_assert_str_eq(copy.said, "");
		ck_assert(lost == ENTRIES || n > 1);
		ck_assert(!lost || ended);
		release(&copy);
	}
}
END_TEST

/* ---- printing ---- */

static char *cat(const char *path, enum h5_offline_result *result, int *rc)
{
	struct h5_progress progress = {.wanted = false};
	struct said said;

	shown.done = 0;
	begin_catch(&said, STDOUT_FILENO);
	begun = false;
	requests_count = true;
	fault_alloc_count(true);
	*rc = h5_offline_cat(scene.vfs, path, path, &progress, result);
	fault_alloc_count(false);
	requests_count = false;
	end_catch(&said);
	ck_assert(*rc || shown.done == said.size);
	return said.text;
}

START_TEST(all_is_printed)
{
	enum h5_offline_result result;
	char *text;
	int rc;

	for (unsigned less = 0; less < 2; less++) {
		reads_less = less;
		text = cat("group/data", &result, &rc);
		reads_less = false;
		ck_assert_int_eq(rc, 0);
		ck_assert_int_eq(result, H5_OFFLINE_SOUND);
		ck_assert_uint_eq(shown.done, 800);
		ck_assert(is_right("group/data", text));
		free(text);
	}
}
END_TEST

START_TEST(what_prevents_printing)
{
	static const int errors[] = {EINTR, SHORT, NOTHING, EIO, ENOSPC, EPIPE};
	enum h5_offline_result result;
	char *text;
	int rc;

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		const int error = errors[i];
		const bool goes_on = error == EINTR || error == SHORT;

		target_calls.call = CALL_write;
		target_calls.error = error;
		target_calls.left = 1;
		target_calls.fired = false;
		text = cat("group/inner/words", &result, &rc);
		ck_assert(target_calls.fired);
		ck_assert_str_eq(text, goes_on ? "some\nwords\n" : "");
		ck_assert_int_eq(rc, goes_on ? 0 : error == NOTHING ? -EIO : -error);
		ck_assert_int_eq(result, goes_on ? H5_OFFLINE_SOUND : H5_OFFLINE_NO_OUTPUT);
		free(text);
	}
}
END_TEST

START_TEST(allocations_and_reads_of_printing_fail)
{
	const struct fault *fault = &faults[_i];
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		enum h5_offline_result result;
		char *text;
		int rc;

		vfs_scene_empty_caches(&scene);
		fault->arm(n);
		text = cat("folder/inner/words", &result, &rc);
		fired = fault->disarm();
		ck_assert(!rc || (fired && rc == fault->error));
		ck_assert_int_eq(result, rc ? H5_OFFLINE_FAILED : H5_OFFLINE_SOUND);
		ck_assert(!strncmp(text, "some\nwords\n", strlen(text)) && (rc || strlen(text) == 11));
		free(text);
	}
}
END_TEST

/* ---- lists ---- */

static char *list(bool json, enum h5_offline_result *result, int *rc, char **errors)
{
	struct said said, told;

	begin_catch(&told, STDERR_FILENO);
	begin_catch(&said, STDOUT_FILENO);
	fault_alloc_count(true);
	*rc = h5_offline_list(scene.vfs, "/", json, result);
	fault_alloc_count(false);
	end_catch(&said);
	end_catch(&told);
	*errors = told.text;
	return said.text;
}

/* What a line does not have is told, or there is no such line. */
START_TEST(allocations_and_reads_of_a_list_fail)
{
	const struct fault *fault = &faults[_i / 2];
	const bool json = _i % 2;
	enum h5_offline_result result;
	bool fired = true;
	char *all, *text, *errors;
	int rc;

	all = list(json, &result, &rc, &errors);
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(result, H5_OFFLINE_SOUND);
	ck_assert_str_eq(errors, "");
	ck_assert_uint_eq(count_lines(all), ENTRIES + 1);
	free(errors);
	for (unsigned long n = 1; fired; n++) {
		vfs_scene_empty_caches(&scene);
		fault->arm(n);
		text = list(json, &result, &rc, &errors);
		fired = fault->disarm();
		ck_assert_msg(!rc || (fired && rc == fault->error && rc == -ENOMEM), "%lu: %d", n, rc);
		ck_assert_int_eq(!*errors, result == H5_OFFLINE_SOUND);
		if (!rc && result == H5_OFFLINE_SOUND)
			ck_assert_msg(!strcmp(text, all), "%lu: %s", n, text);
		else
			ck_assert(fired);
		free(text);
		free(errors);
	}
	free(all);
}
END_TEST

/* ---- paths ---- */

static int find(const char *path, char way[64])
{
	struct h5_vfs_entry entry;
	struct h5_buf text;
	int rc;

	h5_buf_init(&text, 64);
	rc = h5_walk_find(scene.vfs, path, &entry, &text);
	if (!rc) {
		snprintf(way, 64, "%s", text.data);
		h5_walk_forget(scene.vfs, entry.node);
	}
	h5_buf_release(&text);
	return rc;
}

START_TEST(links_on_the_way)
{
	char way[64];

	vfs_scene_close(&scene);
	vfs_scene_open_in_place(&scene, "check_links.h5");
	ck_assert_int_eq(find("chain/1", way), 0);
	ck_assert_str_eq(way, "/group");
	ck_assert_int_eq(find("chain/1/data", way), 0);
	ck_assert_str_eq(way, "/group/data");
	ck_assert_int_eq(find("chain/0", way), -ELOOP);
	ck_assert_int_eq(find("chain/40/../chain/2", way), 0);
	ck_assert_int_eq(find("chain/40/../chain/1", way), -ELOOP);
}
END_TEST

/* The text of a link, and what is behind it in the path. */
START_TEST(paths_that_become_too_long)
{
	const char *const begin = "folder/", *const target = "group/";
	char *path = malloc(2 * PATH_MOST), way[64];

	for (size_t n = PATH_MOST - 2; n < PATH_MOST; n++) {
		const size_t slashes = n - strlen(target);

		strcpy(path, begin);
		memset(path + strlen(begin), '/', slashes);
		path[strlen(begin) + slashes] = 0;
		ck_assert_int_eq(find(path, way), n < PATH_MOST - 1 ? 0 : -ENAMETOOLONG);
	}
	free(path);
}
END_TEST

int main(void)
{
	const struct unit_test tests[] = {{all_is_copied, 1},
					  {links_below_a_directory, 1},
					  {calls_of_the_target_fail, TARGET_CALLS},
					  {no_hard_links, 1},
					  {allocations_and_reads_of_a_copy_fail, FAULTS},
					  {reads_that_give_less, 1},
					  {files_that_end_early, 1},
					  {copies_that_a_signal_ends, 1},
					  {all_is_printed, 1},
					  {what_prevents_printing, 1},
					  {allocations_and_reads_of_printing_fail, FAULTS},
					  {allocations_and_reads_of_a_list_fail, 2 * FAULTS},
					  {links_on_the_way, 1},
					  {paths_that_become_too_long, 1}};

	return unit_run("offline", setup, teardown, tests, sizeof tests / sizeof *tests);
}
