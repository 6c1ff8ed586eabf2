/* Files of a folder: which are HDF5 files, when they open, close and commit, and the nodes that lead into
 * them. */
#include "base/buf.h"
#include "base/wait.h"
#include "fault_call.h"
#include "scratch.h"
#include "tree/node.h"
#include "tree/object.h"
#include "tree/private.h"
#include "vfs/private.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utlist.h>

enum { FILES = 3 };

/* ---- a folder ---- */

static struct folder {
	char path[160];
	struct h5_tree_options options;
	struct h5_tree *tree;
	int loses; /* what closing a file returns */
	void (*on_closing)(void);
	char closed[64]; /* names of the files, in that order */
} folder;

/* To commit files: what the calls return, for which files they were. */
static struct {
	int codes[FILES];
	struct h5_vfs *asked[FILES];
	unsigned count;
} commits;

static int opened(void *arg, const char *path, const struct h5_file_set *set, const struct h5_opened *what,
		  struct h5_vfs *vfs, void **own)
{
	(void)arg;
	(void)set;
	(void)what;
	(void)vfs;
	*own = (void *)strrchr(path, '/');
	return 0;
}

static int closing(void *arg, const char *path, struct h5_vfs *vfs, void *own)
{
	int rc = h5_vfs_finish(vfs);

	(void)arg;
	ck_assert_ptr_eq(own, strrchr(path, '/'));
	strncat(folder.closed, strrchr(path, '/') + 1, 1);
	if (folder.on_closing)
		folder.on_closing();
	return rc ? rc : folder.loses;
}

static void open_folder(void)
{
	SUCCEEDS(h5_tree_open(folder.path, &folder.options, &folder.tree));
}

static void setup(void)
{
	char from[512], path[200];

	memset(&folder, 0, sizeof folder);
	memset(&commits, 0, sizeof commits);
	snprintf(folder.path, sizeof folder.path, "%s/folder", scratch_folder());
	scratch_run("rm -rf '%s'; mkdir -p '%s/f/g'", folder.path, folder.path);
	scratch_fixture("check_tree.h5", from);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(path, sizeof path, "%s/%c.h5", folder.path, 'a' + i);
		scratch_copy(from, path);
	}
	folder.options = (struct h5_tree_options){
		.match = H5_TREE_MATCH,
		.open_files = 2,
		.set = {.block_cache = 1 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_NONE},
		.vfs = {.url = "file:///folder", .file_fd = -1, .max_work = 7},
		.opened = opened,
		.closing = closing};
	open_folder();
}

static void teardown(void)
{
	h5_tree_close(folder.tree);
	scratch_run("rm -r '%s'", folder.path);
}

static void reopen(void)
{
	h5_tree_close(folder.tree);
	open_folder();
}

static struct h5_tree_node *look_up(struct h5_tree_node *parent, const char *name)
{
	struct h5_tree_entry entry;
	struct h5_tree_inside in;
	struct h5_vfs_entry found;

	if (h5_tree_kind(parent) == H5_TREE_FOLDER) {
		SUCCEEDS(h5_tree_lookup(folder.tree, parent, name, &entry));
		return entry.node;
	}
	SUCCEEDS(h5_tree_enter(folder.tree, parent, &in));
	SUCCEEDS(h5_vfs_lookup(in.vfs, in.node, name, &found));
	SUCCEEDS(h5_tree_entry(folder.tree, parent, name, &found, &entry));
	h5_tree_leave(folder.tree, &in);
	ck_assert_uint_eq(entry.generation, entry.node->generation);
	ck_assert_uint_eq(entry.st.st_ino, h5_tree_ino_inside(parent->file, found.st.st_ino));
	return entry.node;
}

static void forget(struct h5_tree_node *node)
{
	h5_tree_forget(folder.tree, node, 1);
}

static void find_files(struct h5_tree_node *nodes[FILES])
{
	char name[] = "a.h5";

	for (unsigned i = 0; i < FILES; i++) {
		name[0] = (char)('a' + i);
		nodes[i] = look_up(h5_tree_root(folder.tree), name);
		ck_assert_int_eq(h5_tree_kind(nodes[i]), H5_TREE_FILE);
	}
}

static void forget_files(struct h5_tree_node *nodes[FILES])
{
	for (unsigned i = 0; i < FILES; i++)
		forget(nodes[i]);
}

/* A request that looks into the file. */
static int use(struct h5_tree_node *node)
{
	struct h5_tree_inside in;
	int rc = h5_tree_enter(folder.tree, node, &in);

	if (!rc)
		h5_tree_leave(folder.tree, &in);
	return rc;
}

static void check_path(struct h5_tree_node *node, const char *expected)
{
	struct h5_buf path;

	h5_buf_init(&path, 256);
	h5_tree_path(folder.tree, node, &path);
	h5_buf_byte(&path, 0);
	ck_assert_str_eq(path.data, expected);
	h5_buf_release(&path);
}

/* ---- numbers ---- */

/* splitmix64's own first number, for the seed 0. */
START_TEST(numbers_of_files)
{
	const uint64_t gamma = UINT64_C(0x9e3779b97f4a7c15), first = UINT64_C(0xe220a8397b1dcdaf);
	const struct h5_tree_file none = {.device = 0}, within = {.device = first, .inode = gamma};

	ck_assert_uint_eq(h5_tree_ino(0, gamma), first);
	ck_assert_uint_eq(h5_tree_ino(gamma, first ^ gamma), first);
	ck_assert_uint_eq(h5_tree_ino(0, 0), 1);
	ck_assert_uint_eq(h5_tree_ino_inside(&none, 0), 0);
	ck_assert_uint_eq(h5_tree_ino_inside(&within, 0), 0);
	/* mix(first ^ device) is 0, and then gamma is mixed. */
	ck_assert_uint_eq(h5_tree_ino_inside(&within, gamma), first);
}
END_TEST

/* ---- which files are HDF5 files ---- */

static void make_file(const char *name, const char *signature, uint64_t at, size_t size)
{
	char path[200];
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder.path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, signature, strlen(signature), (off_t)at), (ssize_t)strlen(signature));
	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
	close(fd);
}

START_TEST(signatures)
{
	static const char *const hdf5 = "\x89HDF\r\n\x1a\n", *const onion = "ONIONEOF";
	static const struct {
		const char *name, *const *signature;
		uint64_t offset, at; /* of the option, of the signature */
		size_t size;
		bool found;
	} cases[] = {
		{"x.h5", &hdf5, 0, 0, 8, true},
		{"x.h5", &onion, 0, 0, 8, true},
		{"x.h5", &hdf5, 0, 0, 7, false},
		{"x.txt", &hdf5, 0, 0, 8, false},
		{"x.h5", &hdf5, 0, 1, 3000, false},
		{"x.h5", &hdf5, 0, 256, 3000, false},
		{"x.h5", &hdf5, 0, 512, 520, true},
		{"x.h5", &hdf5, 0, 512, 519, false},
		{"x.h5", &hdf5, 0, 1024, 1032, true},
		{"x.h5", &hdf5, 0, 1536, 3000, false},
		{"x.h5", &hdf5, 0, 1 << 21, 3 << 20, true},
		{"x.h5", &hdf5, 3, 3, 11, true},
		{"x.h5", &hdf5, 3, 0, 3000, false},
		{"x.h5", &hdf5, 3, 6, 3000, false},
		{"x.h5", &onion, 512, 512, 520, true},
		{"x.h5", &hdf5, 512, 1024, 3000, false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_tree_node *node;

		make_file(cases[i].name, *cases[i].signature, cases[i].at, cases[i].size);
		folder.options.set.offset = cases[i].offset;
		reopen();
		node = look_up(h5_tree_root(folder.tree), cases[i].name);
		ck_assert_msg(h5_tree_kind(node) == (cases[i].found ? H5_TREE_FILE : H5_TREE_PLAIN), "%zu",
			      i);
		forget(node);
	}
}
END_TEST

/* A file is looked at again only if it has changed. */
START_TEST(a_look_at_the_signature)
{
	struct h5_tree_node *nodes[2];

	make_file("x.h5", "\x89HDF\r\n\x1a\n", 0, 100);
	for (unsigned i = 0; i < 2; i++) {
		nodes[i] = look_up(h5_tree_root(folder.tree), "x.h5");
		ck_assert_int_eq(h5_tree_kind(nodes[i]), H5_TREE_FILE);
		fault_call_arm(CALL_SHORT, 1, false); /* that another look would find */
	}
	ck_assert(!fault_call_disarm());
	ck_assert_ptr_eq(nodes[0], nodes[1]);
	forget(nodes[1]);
	make_file("x.h5", "something", 0, 100);
	nodes[1] = look_up(h5_tree_root(folder.tree), "x.h5");
	ck_assert_int_eq(h5_tree_kind(nodes[1]), H5_TREE_PLAIN);
	ck_assert_ptr_ne(nodes[0], nodes[1]);
	ck_assert_uint_ne(nodes[0]->generation, nodes[1]->generation);
	/* Another file with the name. */
	forget(nodes[0]);
	scratch_run("cp '%s/x.h5' '%s/y'; mv '%s/y' '%s/x.h5'", folder.path, folder.path, folder.path,
		    folder.path);
	nodes[0] = look_up(h5_tree_root(folder.tree), "x.h5");
	ck_assert_ptr_ne(nodes[0], nodes[1]);
	forget(nodes[0]);
	forget(nodes[1]);
}
END_TEST

START_TEST(links_that_lead_out)
{
	static const struct {
		const char *place, *target;
		bool out;
	} cases[] = {
		{".", "x", false},
		{".", "/", true},
		{".", "/x", true},
		{".", "..", true},
		{".", "x/..", false},
		{".", "x/../..", true},
		{".", "./..", true},
		{".", "...", false},
		{".", "..x/../x", false},
		{".", ".x/..", false},
		{".", "x//../..", true},
		{"f", "..", false},
		{"f", "../..", true},
		{"f", "../x", false},
		{"f", "../f/../..", true},
		{"f/g", "../..", false},
		{"f/g", "../../", false},
		{"f/g", "../../..", true},
		{"f/g", "./../.././..", true},
		{"f/g", "a/b/../../../../..", true},
		{"f/g", "a/b/../../../..", false},
		{"f", ".a/..b/../../..", false},
		{"f", "a/./../../..", true},
	};

	for (unsigned external = H5_EXTERNAL_NONE; external <= H5_EXTERNAL_ANY; external++) {
		folder.options.set.external = external;
		reopen();
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			struct h5_tree_node *way[4] = {h5_tree_root(folder.tree)};
			char place[8], *rest = place;
			struct h5_buf target;
			unsigned n = 0;
			int rc;

			scratch_run("ln -snf '%s' '%s/%s/link'", cases[i].target, folder.path,
				    cases[i].place);
			strcpy(place, cases[i].place);
			while (rest && *place != '.') {
				way[n + 1] = look_up(way[n], strsep(&rest, "/"));
				n++;
			}
			way[n + 1] = look_up(way[n], "link");
			n++;
			h5_buf_init(&target, 64);
			rc = h5_tree_readlink(folder.tree, way[n], &target);
			ck_assert_msg(rc == (cases[i].out && external != H5_EXTERNAL_ANY ? -EACCES : 0),
				      "%s: %s: %d", cases[i].place, cases[i].target, rc);
			ck_assert(rc || !strcmp(target.data, cases[i].target));
			h5_buf_release(&target);
			while (n)
				forget(way[n--]);
		}
	}
}
END_TEST

/* ---- open files ---- */

static unsigned shares; /* of the last share of a cache */
void __real_h5_file_set_share(struct h5_file_set *set, unsigned sharers);
void __wrap_h5_file_set_share(struct h5_file_set *set, unsigned sharers);
void __wrap_h5_file_set_share(struct h5_file_set *set, unsigned sharers)
{
	shares = sharers;
	__real_h5_file_set_share(set, sharers);
}

/* The one that was used longest ago makes place for another one, unless it is held open. */
START_TEST(as_many_files_as_may_be_open)
{
	struct h5_tree_node *nodes[FILES];
	struct h5_tree_dir *dirs[FILES];

	find_files(nodes);
	ck_assert_uint_eq(h5_tree_work_limit(folder.tree, nodes[0]), 7000);
	SUCCEEDS(use(nodes[0]));
	ck_assert_uint_eq(shares, 1);
	SUCCEEDS(use(nodes[1]));
	ck_assert_uint_eq(shares, 2);
	SUCCEEDS(use(nodes[0]));
	ck_assert_str_eq(folder.closed, "");
	SUCCEEDS(use(nodes[2]));
	ck_assert_str_eq(folder.closed, "b");
	ck_assert_uint_eq(folder.tree->open_count, 2);
	SUCCEEDS(use(nodes[2]));
	SUCCEEDS(h5_tree_opendir(folder.tree, nodes[0], &dirs[0]));
	ck_assert_str_eq(folder.closed, "b");
	SUCCEEDS(h5_tree_opendir(folder.tree, nodes[1], &dirs[1]));
	ck_assert_str_eq(folder.closed, "bc");
	ck_assert_int_eq(use(nodes[2]), -ENFILE);
	ck_assert_int_eq(h5_tree_opendir(folder.tree, nodes[2], &dirs[2]), -ENFILE);
	SUCCEEDS(use(nodes[1]));
	h5_tree_closedir(dirs[0]);
	SUCCEEDS(use(nodes[2]));
	ck_assert_str_eq(folder.closed, "bca");
	h5_tree_closedir(dirs[1]);
	/* All that are open close in the end. */
	forget_files(nodes);
	ck_assert_int_eq(h5_tree_finish(folder.tree), 0);
	ck_assert_uint_eq(folder.tree->open_count, 0);
	ck_assert_uint_eq(strlen(folder.closed), 5);
}
END_TEST

static sem_t waiting;
static bool waited;

static void post_wait(void)
{
	waited = true;
	sem_post(&waiting);
}

/* A request that must wait for another one says so. */
static void *use_meanwhile(void *node)
{
	int rc;

	h5_wait_set(post_wait);
	rc = use(node);
	h5_wait_set(NULL);
	sem_post(&waiting);
	return (void *)(intptr_t)rc;
}

START_TEST(files_that_requests_use)
{
	struct h5_tree_inside ins[2];
	struct h5_tree_node *nodes[FILES];
	pthread_t thread;
	void *rc;

	sem_init(&waiting, 0, 0);
	find_files(nodes);
	for (unsigned i = 0; i < 2; i++)
		SUCCEEDS(h5_tree_enter(folder.tree, nodes[i], &ins[i]));
	waited = false;
	ck_assert_int_eq(pthread_create(&thread, NULL, use_meanwhile, nodes[2]), 0);
	sem_wait(&waiting);
	ck_assert(waited);
	h5_tree_leave(folder.tree, &ins[1]);
	pthread_join(thread, &rc);
	ck_assert_int_eq((intptr_t)rc, 0);
	ck_assert_str_eq(folder.closed, "b");
	h5_tree_leave(folder.tree, &ins[0]);
	forget_files(nodes);
}
END_TEST

/* The name has led to another file when it was opened. */
static struct {
	bool device, inode; /* that is another one */
	int code;	    /* what the first call returns; 0: it succeeds */
} replaced;

int __real_h5_file_stat(struct h5_file *file, struct h5_io_stat *st);
int __wrap_h5_file_stat(struct h5_file *file, struct h5_io_stat *st);
int __wrap_h5_file_stat(struct h5_file *file, struct h5_io_stat *st)
{
	int rc = __real_h5_file_stat(file, st);

	st->device += replaced.device;
	st->inode += replaced.inode;
	rc = replaced.code ? replaced.code : rc;
	replaced.code = 0;
	return rc;
}

START_TEST(files_that_are_replaced_before_they_open)
{
	struct h5_tree_node *nodes[FILES];

	find_files(nodes);
	for (unsigned i = 1; i < 4; i++) {
		replaced.device = i & 1;
		replaced.inode = i & 2;
		ck_assert_int_eq(use(nodes[0]), -ESTALE);
	}
	memset(&replaced, 0, sizeof replaced);
	replaced.code = -EIO;
	ck_assert_int_eq(use(nodes[0]), -EIO);
	SUCCEEDS(use(nodes[0]));
	forget_files(nodes);
}
END_TEST

/* Some programs take EWOULDBLOCK for the end of a file. */
START_TEST(files_that_are_locked)
{
	struct h5_tree_node *nodes[FILES];
	char path[200];
	int fd;

	folder.options.set.lock = H5_LOCK_ALWAYS;
	reopen();
	find_files(nodes);
	snprintf(path, sizeof path, "%s/a.h5", folder.path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(use(nodes[0]), -EBUSY);
	close(fd);
	SUCCEEDS(use(nodes[0]));
	forget_files(nodes);
}
END_TEST

static unsigned broadcasts;

int __real_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
	broadcasts += folder.tree && condition == &folder.tree->changed;
	return __real_pthread_cond_broadcast(condition);
}

/* So many times waiting threads were woken since the last call. */
static unsigned woken(void)
{
	unsigned n = broadcasts;

	broadcasts = 0;
	return n;
}

/* When a file opens or closes; and when one could make place for another one. */
START_TEST(waiting_threads_are_woken)
{
	struct h5_tree_inside in;
	struct h5_tree_node *nodes[FILES];

	find_files(nodes);
	woken();
	SUCCEEDS(use(nodes[0]));
	ck_assert_uint_eq(woken(), 1);
	SUCCEEDS(use(nodes[0]));
	ck_assert_uint_eq(woken(), 0);
	SUCCEEDS(use(nodes[1]));
	ck_assert_uint_eq(woken(), 2);
	SUCCEEDS(h5_tree_enter(folder.tree, nodes[1], &in));
	ck_assert_uint_eq(woken(), 0);
	SUCCEEDS(use(nodes[1]));
	ck_assert_uint_eq(woken(), 0);
	h5_tree_leave(folder.tree, &in);
	ck_assert_uint_eq(woken(), 1);
	SUCCEEDS(use(nodes[2]));
	ck_assert_uint_eq(woken(), 3);
	h5_tree_await_none(folder.tree);
	ck_assert_uint_eq(woken(), 1);
	forget_files(nodes);
}
END_TEST

static time_t
	frozen; /* what the clock says, which goes on when a thread waits; 0: the clock and waits are real */

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	if (!frozen)
		return __real_clock_gettime(clock, t);
	*t = (struct timespec){.tv_sec = frozen};
	return 0;
}

void __real_h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock);
void __wrap_h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock);
void __wrap_h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	if (frozen)
		frozen++;
	else
		__real_h5_thread_wait_a_second(condition, lock);
}

/* Two seconds after its last use, unless it is used again. Who looks for them waits a second each time, but
 * not when the mount ends. */
START_TEST(idle_files)
{
	struct h5_tree_inside in;
	struct h5_tree_node *nodes[FILES];

	folder.options.open_files = FILES;
	reopen();
	find_files(nodes);
	frozen = 1000;
	for (unsigned i = 0; i < FILES; i++)
		SUCCEEDS(use(nodes[i]));
	SUCCEEDS(h5_tree_enter(folder.tree, nodes[1], &in));
	ck_assert(h5_tree_close_idle(folder.tree));
	ck_assert_str_eq(folder.closed, "");
	SUCCEEDS(use(nodes[2]));
	ck_assert(h5_tree_close_idle(folder.tree));
	ck_assert_str_eq(folder.closed, "a");
	ck_assert(h5_tree_close_idle(folder.tree));
	ck_assert_str_eq(folder.closed, "ac");
	h5_tree_leave(folder.tree, &in);
	ck_assert(h5_tree_close_idle(folder.tree));
	ck_assert_str_eq(folder.closed, "ac");
	ck_assert(h5_tree_close_idle(folder.tree));
	ck_assert_str_eq(folder.closed, "acb");
	ck_assert_int_eq(frozen, 1005);
	h5_tree_await_none(folder.tree);
	ck_assert(!h5_tree_close_idle(folder.tree));
	ck_assert_int_eq(frozen, 1005);
	frozen = 0;
	forget_files(nodes);
}
END_TEST

/* ---- closing and committing ---- */

int __wrap_h5_vfs_fsync_directory(struct h5_vfs *vfs, struct h5_node *node);
int __wrap_h5_vfs_fsync_directory(struct h5_vfs *vfs, struct h5_node *node)
{
	ck_assert_ptr_eq(node, h5_vfs_root(vfs));
	ck_assert_uint_lt(commits.count, FILES);
	commits.asked[commits.count] = vfs;
	return commits.codes[commits.count++];
}

/* Each file once, in the order in which they were opened; the first error is told. */
START_TEST(commits_of_all_files)
{
	struct h5_tree_node *nodes[FILES];

	folder.options.open_files = FILES;
	reopen();
	find_files(nodes);
	ck_assert_int_eq(h5_tree_commit(folder.tree), 0);
	ck_assert_uint_eq(commits.count, 0);
	for (unsigned i = 0; i < FILES; i++)
		SUCCEEDS(use(nodes[i]));
	SUCCEEDS(use(nodes[1]));
	SUCCEEDS(use(nodes[0]));
	commits.codes[1] = -EIO;
	commits.codes[2] = -ENOSPC;
	ck_assert_int_eq(h5_tree_commit(folder.tree), -EIO);
	ck_assert_uint_eq(commits.count, FILES);
	for (unsigned i = 0; i < FILES; i++) {
		ck_assert_ptr_eq(commits.asked[i], nodes[i]->file->vfs);
		ck_assert_uint_eq(nodes[i]->file->uses, 0);
	}
	forget_files(nodes);
}
END_TEST

/* What a file loses when it closes is told once, and in the end. */
START_TEST(changes_that_are_lost)
{
	struct h5_tree_node *nodes[FILES];

	find_files(nodes);
	SUCCEEDS(use(nodes[0]));
	SUCCEEDS(use(nodes[1]));
	folder.loses = -EDQUOT;
	SUCCEEDS(use(nodes[2]));
	folder.loses = 0;
	commits.codes[1] = -EIO;
	ck_assert_int_eq(h5_tree_commit(folder.tree), -EIO);
	memset(&commits, 0, sizeof commits);
	ck_assert_int_eq(h5_tree_commit(folder.tree), -EDQUOT);
	memset(&commits, 0, sizeof commits);
	ck_assert_int_eq(h5_tree_commit(folder.tree), 0);
	forget_files(nodes);
	ck_assert_int_eq(h5_tree_finish(folder.tree), -EDQUOT);
}
END_TEST

static void *commit(void *arg)
{
	int rc;

	(void)arg;
	h5_wait_set(post_wait);
	rc = h5_tree_commit(folder.tree);
	h5_wait_set(NULL);
	sem_post(&waiting);
	return (void *)(intptr_t)rc;
}

static pthread_t committer;

/* A thread commits while the file closes: it has to wait for that. */
static void commit_meanwhile(void)
{
	folder.on_closing = NULL;
	waited = false;
	ck_assert_int_eq(pthread_create(&committer, NULL, commit, NULL), 0);
	sem_wait(&waiting);
	ck_assert(waited);
	folder.loses = -EIO;
}

START_TEST(commits_while_a_file_closes)
{
	struct h5_tree_node *nodes[FILES];
	void *rc;

	sem_init(&waiting, 0, 0);
	find_files(nodes);
	SUCCEEDS(use(nodes[0]));
	SUCCEEDS(use(nodes[1]));
	folder.on_closing = commit_meanwhile;
	SUCCEEDS(use(nodes[2]));
	pthread_join(committer, &rc);
	ck_assert_int_eq((intptr_t)rc, -EIO);
	forget_files(nodes);
}
END_TEST

/* ---- nodes ---- */

/* The file closes; the nodes are found again by the names that were looked up last. */
START_TEST(nodes_outlive_the_opening)
{
	struct h5_tree_node *nodes[FILES], *group, *data, *third, *other;
	struct h5_tree_inside in, second;
	struct h5_node *inside;

	find_files(nodes);
	group = look_up(nodes[0], "group");
	data = look_up(group, "data");
	check_path(data, "a.h5/group/data");
	third = look_up(group, "third");
	ck_assert_ptr_eq(third, data);
	check_path(data, "a.h5/group/third");
	other = look_up(nodes[1], "again");
	/* A name that the mount itself gave. */
	SUCCEEDS(h5_tree_enter(folder.tree, nodes[0], &in));
	h5_tree_note_name(folder.tree, nodes[0], &in, "none");
	check_path(data, "a.h5/group/third");
	h5_tree_note_name(folder.tree, nodes[0], &in, "again");
	check_path(data, "a.h5/again");
	ck_assert_int_eq(h5_tree_enter_too(folder.tree, other, &in, &inside), -EXDEV);
	ck_assert_int_eq(h5_tree_enter_too(folder.tree, data, &in, &inside), 0);
	h5_tree_leave(folder.tree, &in);
	ck_assert_int_eq(h5_tree_enter(folder.tree, h5_tree_root(folder.tree), &in), -EROFS);
	SUCCEEDS(use(nodes[2]));
	ck_assert_str_eq(folder.closed, "b"); /* the request above was a.h5's */
	SUCCEEDS(use(nodes[1]));
	ck_assert_str_eq(folder.closed, "ba");
	SUCCEEDS(h5_tree_enter(folder.tree, data, &in));
	ck_assert_uint_eq(h5_vfs_id(in.node), h5_vfs_id(data->inside));
	SUCCEEDS(h5_tree_enter(folder.tree, group, &second));
	ck_assert_ptr_ne(in.node, second.node);
	h5_tree_leave(folder.tree, &second);
	h5_tree_leave(folder.tree, &in);
	ck_assert_ptr_eq(look_up(group, "data"), data);
	for (unsigned i = 0; i < 3; i++)
		forget(data);
	forget(group);
	forget(other);
	forget_files(nodes);
}
END_TEST

/* The file has changed while it was closed. */
START_TEST(nodes_of_what_is_gone)
{
	static const char *const names[] = {"group", "again", "soft"};
	struct h5_tree_node *nodes[FILES], *inside[3], *below, *unused;
	char from[512], path[200];

	find_files(nodes);
	for (unsigned i = 0; i < 3; i++)
		inside[i] = look_up(nodes[0], names[i]);
	below = look_up(inside[0], "inner");
	unused = look_up(nodes[0], "empty");
	SUCCEEDS(use(nodes[1]));
	SUCCEEDS(use(nodes[2]));
	ck_assert_str_eq(folder.closed, "a");
	forget(unused);
	scratch_fixture("check_links.h5", from);
	snprintf(path, sizeof path, "%s/a.h5", folder.path);
	scratch_copy(from, path);
	SUCCEEDS(use(nodes[0]));
	ck_assert_int_eq(use(inside[1]), -ESTALE); /* there is no such name */
	ck_assert_int_eq(use(inside[2]), -ESTALE);
	ck_assert_int_eq(use(below), -ESTALE);
	ck_assert_uint_eq(nodes[0]->file->uses, 0);
	forget(below);
	for (unsigned i = 0; i < 3; i++)
		forget(inside[i]);
	forget_files(nodes);
}
END_TEST

/* Nobody knows the file any more while it is open; the name leads to another node then. */
START_TEST(files_that_are_forgotten)
{
	struct h5_tree_node *nodes[FILES];
	struct h5_tree_file *file;

	find_files(nodes);
	SUCCEEDS(use(nodes[0]));
	file = nodes[0]->file;
	forget(nodes[0]);
	ck_assert(file->is_orphan);
	nodes[0] = look_up(h5_tree_root(folder.tree), "a.h5");
	ck_assert_ptr_ne(nodes[0]->file, file);
	SUCCEEDS(use(nodes[0]));
	ck_assert_uint_eq(folder.tree->open_count, 2);
	SUCCEEDS(use(nodes[1]));
	ck_assert_str_eq(folder.closed, "a");
	ck_assert_int_eq(nodes[0]->file->state, H5_TREE_OPEN);
	forget_files(nodes);
}
END_TEST

/* ---- other entries ---- */

static void check_open(struct h5_tree_node *node, int flags, int code)
{
	struct h5_tree_handle *handle;

	ck_assert_int_eq(h5_tree_open_file(folder.tree, node, flags, &handle), code);
	if (!code)
		h5_tree_close_file(handle);
}

/* A file that is open lives on when another one takes its place. */
START_TEST(plain_files)
{
	static const char text[] = "a text of some bytes";
	struct h5_tree_node *root = h5_tree_root(folder.tree), *node, *f, *a;
	struct h5_tree_handle *handle;
	struct h5_tree_entry entry;
	struct h5_tree_dir *dir;
	struct h5_buf out;
	uint64_t found;
	struct stat st;
	char bytes[64];
	size_t got;

	make_file("x", text, 0, strlen(text));
	node = look_up(root, "x");
	f = look_up(root, "f");
	a = look_up(root, "a.h5");
	check_open(node, O_WRONLY, -EROFS);
	check_open(node, O_RDWR, -EROFS);
	check_open(node, O_RDONLY | O_TRUNC, -EROFS);
	check_open(f, O_RDONLY, -EISDIR);
	check_open(a, O_RDONLY, -EISDIR);
	ck_assert_int_eq(h5_tree_opendir(folder.tree, node, &dir), -ENOTDIR);
	ck_assert_int_eq(h5_tree_lookup(folder.tree, node, "y", &entry), -ENOTDIR);
	h5_buf_init(&out, 64);
	ck_assert_int_eq(h5_tree_readlink(folder.tree, node, &out), -EINVAL);
	ck_assert_int_eq(h5_tree_readlink(folder.tree, f, &out), -EINVAL);
	ck_assert_int_eq(h5_tree_readlink(folder.tree, a, &out), -EINVAL);
	h5_buf_release(&out);
	SUCCEEDS(h5_tree_open_file(folder.tree, node, O_RDONLY, &handle));
	fault_call_arm(CALL_SHORT, 1, true);
	SUCCEEDS(h5_tree_read(handle, 2, bytes, sizeof bytes, &got));
	fault_call_disarm();
	ck_assert_uint_eq(got, strlen(text) - 2);
	ck_assert_mem_eq(bytes, text + 2, got);
	fault_call_arm(CALL_FAILS, 1, false);
	ck_assert_int_eq(h5_tree_read(handle, 0, bytes, sizeof bytes, &got), -EIO);
	fault_call_disarm();
	SUCCEEDS(h5_tree_seek(handle, 3, false, &found));
	ck_assert_uint_eq(found, 3);
	SUCCEEDS(h5_tree_seek(handle, 3, true, &found));
	ck_assert_uint_eq(found, strlen(text));
	ck_assert_int_eq(h5_tree_seek(handle, strlen(text), false, &found), -ENXIO);
	scratch_run("echo >'%s/y'; mv '%s/y' '%s/x'", folder.path, folder.path, folder.path);
	SUCCEEDS(h5_tree_getattr(folder.tree, node, &st));
	ck_assert_int_eq(st.st_size, (off_t)strlen(text));
	h5_tree_close_file(handle);
	ck_assert_int_eq(h5_tree_getattr(folder.tree, node, &st), -ESTALE);
	check_open(node, O_RDONLY, -ESTALE);
	forget(node);
	forget(f);
	forget(a);
}
END_TEST

/* What the entry's attributes are, of a file with that mode. */
static void check_attributes(const char *name, mode_t mode, mode_t expected, bool keeps)
{
	struct h5_tree_entry entry;
	struct stat st, again;
	char path[200];

	snprintf(path, sizeof path, "%s/%s", folder.path, name);
	ck_assert_int_eq(chmod(path, mode), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	SUCCEEDS(h5_tree_lookup(folder.tree, h5_tree_root(folder.tree), name, &entry));
	SUCCEEDS(h5_tree_getattr(folder.tree, entry.node, &again));
	ck_assert_msg(entry.st.st_mode == expected, "%s %o: %o", name, mode, entry.st.st_mode);
	ck_assert_uint_eq(again.st_mode, expected);
	ck_assert_uint_eq(again.st_ino, h5_tree_ino(st.st_dev, st.st_ino));
	ck_assert_uint_eq(again.st_uid, keeps ? st.st_uid : 12);
	ck_assert_uint_eq(again.st_gid, keeps ? st.st_gid : 34);
	if (h5_tree_kind(entry.node) == H5_TREE_FILE)
		ck_assert(again.st_nlink == 1 && !again.st_size && !again.st_blocks);
	else
		ck_assert_int_eq(again.st_size, st.st_size);
	ck_assert_int_eq(again.st_mtim.tv_nsec, st.st_mtim.tv_nsec);
	forget(entry.node);
}

/* A directory of an HDF5 file can be entered by those who may read the file. */
START_TEST(attributes_of_entries)
{
	folder.options.vfs.uid = 12;
	folder.options.vfs.gid = 34;
	make_file("x", "x", 0, 1);
	for (unsigned keeps = 0; keeps < 2; keeps++) {
		folder.options.keeps_uid = folder.options.keeps_gid = keeps;
		folder.options.vfs.writable = false;
		folder.options.vfs.dmask = folder.options.vfs.fmask = 0;
		reopen();
		check_attributes("x", 0666, S_IFREG | 0444, keeps);
		check_attributes("x", 07755, S_IFREG | 0555, keeps);
		check_attributes("f", 0777, S_IFDIR | 0555, keeps);
		check_attributes("a.h5", 0640, S_IFDIR | 0550, keeps);
		check_attributes("a.h5", 0607, S_IFDIR | 0505, keeps);
		folder.options.vfs.dmask = 011;
		folder.options.vfs.fmask = 044;
		reopen();
		check_attributes("x", 0666, S_IFREG | 0400, keeps);
		check_attributes("f", 0777, S_IFDIR | 0544, keeps);
		check_attributes("a.h5", 0644, S_IFDIR | 0544, keeps);
		folder.options.vfs.writable = true;
		folder.options.vfs.dmask = folder.options.vfs.fmask = 0;
		reopen();
		check_attributes("x", 0666, S_IFREG | 0444, keeps);
		check_attributes("f", 0777, S_IFDIR | 0777, keeps);
		check_attributes("a.h5", 0664, S_IFDIR | 0775, keeps);
	}
}
END_TEST

START_TEST(attributes_of_objects)
{
	static const struct {
		uint64_t size, blocks;
	} cases[] = {{0, 0},
		     {1, 1},
		     {511, 1},
		     {512, 1},
		     {513, 2},
		     {1024, 2},
		     {UINT64_C(1) << 40, UINT64_C(1) << 31}};

	for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
		const struct h5_tree_found found = {.kind = i % 2 ? H5_TREE_FOLDER : H5_TREE_PLAIN,
						    .device = 3,
						    .inode = 4,
						    .changed = {.tv_sec = 5},
						    .size = cases[i / 2].size};
		struct stat st;

		h5_tree_object_say(&found, &st);
		ck_assert_uint_eq(st.st_dev, 3);
		ck_assert_uint_eq(st.st_ino, 4);
		ck_assert_uint_eq(st.st_mode, i % 2 ? S_IFDIR | 0555 : S_IFREG | 0444);
		ck_assert_uint_eq(st.st_nlink, i % 2 ? 2 : 1);
		ck_assert_uint_eq((uint64_t)st.st_size, cases[i / 2].size);
		ck_assert_uint_eq((uint64_t)st.st_blocks, cases[i / 2].blocks);
		ck_assert(st.st_atim.tv_sec == 5 && st.st_mtim.tv_sec == 5 && st.st_ctim.tv_sec == 5);
	}
}
END_TEST

/* Names come in parts; the first part is read anew. */
START_TEST(long_folders)
{
	enum { MORE = 2 * H5_TREE_NAMES };
	struct h5_tree_node *f = look_up(h5_tree_root(folder.tree), "f");
	struct h5_tree_name names[H5_TREE_NAMES];
	struct h5_tree_dir *dir;
	bool seen[MORE] = {false};
	size_t all = 0;
	uint64_t at = 0;
	char name[16];
	size_t got;

	SUCCEEDS(h5_tree_opendir(folder.tree, f, &dir));
	SUCCEEDS(h5_tree_readdir(dir, 0, names, &got));
	ck_assert_uint_eq(got, 1);
	ck_assert_str_eq(names->name, "g");
	ck_assert_uint_eq(names->type, S_IFDIR);
	ck_assert_uint_eq(names->next, 1);
	for (unsigned i = 0; i < MORE; i++) {
		snprintf(name, sizeof name, "f/%u", i);
		make_file(name, "x", 0, 1);
	}
	SUCCEEDS(h5_tree_readdir(dir, 1, names, &got));
	ck_assert_uint_eq(got, 0);
	do {
		SUCCEEDS(h5_tree_readdir(dir, at, names, &got));
		ck_assert_uint_le(got, MORE + 1 - all);
		for (size_t i = 0; i < got; i++) {
			ck_assert_uint_eq(names[i].next, at + i + 1);
			if (!strcmp(names[i].name, "g"))
				continue;
			ck_assert_uint_eq(names[i].type, S_IFREG);
			ck_assert(!seen[atoi(names[i].name)]);
			seen[atoi(names[i].name)] = true;
		}
		all += got;
		at += got;
	} while (got);
	ck_assert_uint_eq(all, MORE + 1);
	SUCCEEDS(h5_tree_readdir(dir, at + 1, names, &got));
	ck_assert_uint_eq(got, 0);
	h5_tree_closedir(dir);
	forget(f);
}
END_TEST

/* Only the root tells of the mount. */
START_TEST(what_the_root_tells)
{
	struct h5_tree_node *root = h5_tree_root(folder.tree), *f = look_up(root, "f"), *files[FILES];
	struct h5_buf out;
	char pid[16];

	h5_buf_init(&out, 1 << 16);
	ck_assert_int_eq(h5_tree_getxattr(folder.tree, f, "h5fs.pid", &out), -ENODATA);
	ck_assert_int_eq(h5_tree_getxattr(folder.tree, f, "h5fs.stats", &out), -ENODATA);
	ck_assert_int_eq(h5_tree_getxattr(folder.tree, root, "h5fs.none", &out), -ENODATA);
	ck_assert_uint_eq(out.size, 0);
	SUCCEEDS(h5_tree_getxattr(folder.tree, root, "h5fs.pid", &out));
	h5_buf_byte(&out, 0);
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	ck_assert_str_eq(out.data, pid);
	find_files(files);
	SUCCEEDS(use(files[0]));
	SUCCEEDS(use(files[1]));
	SUCCEEDS(use(files[2]));
	out.size = 0;
	SUCCEEDS(h5_tree_getxattr(folder.tree, root, "h5fs.stats", &out));
	h5_buf_byte(&out, 0);
	ck_assert_ptr_nonnull(strstr(out.data, "\"open_files\":2,"));
	ck_assert_ptr_nonnull(strstr(out.data, "\"opened\":3,"));
	ck_assert_ptr_nonnull(strstr(out.data, "\"nodes\":5"));
	h5_buf_release(&out);
	forget_files(files);
	forget(f);
}
END_TEST

int main(void)
{
	const struct unit_test tests[] = {{numbers_of_files, 1},
					  {signatures, 1},
					  {a_look_at_the_signature, 1},
					  {links_that_lead_out, 1},
					  {as_many_files_as_may_be_open, 1},
					  {files_that_requests_use, 1},
					  {files_that_are_replaced_before_they_open, 1},
					  {files_that_are_locked, 1},
					  {waiting_threads_are_woken, 1},
					  {idle_files, 1},
					  {commits_of_all_files, 1},
					  {changes_that_are_lost, 1},
					  {commits_while_a_file_closes, 1},
					  {nodes_outlive_the_opening, 1},
					  {nodes_of_what_is_gone, 1},
					  {files_that_are_forgotten, 1},
					  {plain_files, 1},
					  {attributes_of_entries, 1},
					  {attributes_of_objects, 1},
					  {long_folders, 1},
					  {what_the_root_tells, 1}};

	return unit_run("tree_files", setup, teardown, tests, sizeof tests / sizeof *tests);
}
