/* Files of a folder: which are HDF5 files, when they open, close and commit. */
#include "base/error.h"
#include "base/interrupt.h"
#include "base/wait.h"
#include "fault_call.h"
#include "scratch.h"
#include "tree_scene.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

/* To commit files: what the calls return, for which files they were. */
static struct {
	int codes[FILES];
	struct h5_vfs *asked[FILES];
	unsigned count;
} commits;

static void begin(void)
{
	memset(&commits, 0, sizeof commits);
	folder_begin();
}

/* ---- which files are HDF5 files ---- */

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

		folder_make_file(cases[i].name, *cases[i].signature, cases[i].at, cases[i].size);
		folder.options.set.offset = cases[i].offset;
		folder_reopen();
		node = folder_find(h5_tree_root(folder.tree), cases[i].name);
		ck_assert_msg(h5_tree_kind(node) == (cases[i].found ? H5_TREE_FILE : H5_TREE_PLAIN), "%zu",
			      i);
		folder_forget(node);
	}
}
END_TEST

/* A file is looked at again only if it has changed. */
START_TEST(a_look_at_the_signature)
{
	struct h5_tree_node *nodes[2];

	folder_make_file("x.h5", "\x89HDF\r\n\x1a\n", 0, 100);
	for (unsigned i = 0; i < 2; i++) {
		nodes[i] = folder_find(h5_tree_root(folder.tree), "x.h5");
		ck_assert_int_eq(h5_tree_kind(nodes[i]), H5_TREE_FILE);
		if (!i)
			fault_call_arm(CALL_SHORT, 1, false); /* that another look would find */
	}
	ck_assert(!fault_call_disarm());
	ck_assert_ptr_eq(nodes[0], nodes[1]);
	folder_forget(nodes[1]);
	folder_make_file("x.h5", "something", 0, 100);
	nodes[1] = folder_find(h5_tree_root(folder.tree), "x.h5");
	ck_assert_int_eq(h5_tree_kind(nodes[1]), H5_TREE_PLAIN);
	ck_assert_ptr_ne(nodes[0], nodes[1]);
	ck_assert_uint_ne(nodes[0]->generation, nodes[1]->generation);
	/* Another file with the name. */
	folder_forget(nodes[0]);
	scratch_run("cp '%s/x.h5' '%s/y'; mv '%s/y' '%s/x.h5'", folder.path, folder.path, folder.path,
		    folder.path);
	nodes[0] = folder_find(h5_tree_root(folder.tree), "x.h5");
	ck_assert_ptr_ne(nodes[0], nodes[1]);
	folder_forget(nodes[0]);
	folder_forget(nodes[1]);
}
END_TEST

static void replace_x(void)
{
	scratch_run("cp '%s/x.h5' '%s/y'; mv '%s/y' '%s/x.h5'", folder.path, folder.path, folder.path,
		    folder.path);
}

/* Another file gets the name before it is looked at: its signature tells nothing of the one that was found.
 */
START_TEST(files_that_are_replaced_before_a_look)
{
	struct h5_tree_node *root = h5_tree_root(folder.tree), *node;
	struct h5_tree_entry entry;

	folder_make_file("x.h5", "\x89HDF\r\n\x1a\n", 0, 100);
	h5_wait_set(replace_x);
	ck_assert_int_eq(h5_tree_lookup(folder.tree, root, "x.h5", &entry), -ESTALE);
	ck_assert(!h5_wait_is_noticed());
	node = folder_find(root, "x.h5");
	ck_assert_int_eq(h5_tree_kind(node), H5_TREE_FILE);
	folder_forget(node);
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

	folder_find_files(nodes);
	ck_assert_uint_eq(h5_tree_work_limit(folder.tree, nodes[0]), 7000);
	SUCCEEDS(folder_use(nodes[0]));
	ck_assert_str_eq(nodes[0]->file->vfs->options.url, "file:///folder/a.h5");
	ck_assert_str_eq(nodes[0]->file->vfs->options.file, nodes[0]->file->path);
	nodes[0]->file->vfs->options.max_work = 70;
	ck_assert_uint_ge(h5_tree_work_limit(folder.tree, nodes[0]), 70000);
	ck_assert_uint_eq(nodes[0]->file->uses, 0);
	ck_assert_uint_eq(shares, 1);
	SUCCEEDS(folder_use(nodes[1]));
	ck_assert_uint_eq(shares, 2);
	SUCCEEDS(folder_use(nodes[0]));
	ck_assert_str_eq(folder.closed, "");
	SUCCEEDS(folder_use(nodes[2]));
	ck_assert_str_eq(folder.closed, "b");
	ck_assert_uint_eq(folder.tree->open_count, 2);
	SUCCEEDS(folder_use(nodes[2]));
	SUCCEEDS(h5_tree_opendir(folder.tree, nodes[0], &dirs[0]));
	ck_assert_str_eq(folder.closed, "b");
	SUCCEEDS(h5_tree_opendir(folder.tree, nodes[1], &dirs[1]));
	ck_assert_str_eq(folder.closed, "bc");
	ck_assert_int_eq(folder_use(nodes[2]), -ENFILE);
	ck_assert_int_eq(h5_tree_opendir(folder.tree, nodes[2], &dirs[2]), -ENFILE);
	SUCCEEDS(folder_use(nodes[1]));
	h5_tree_closedir(dirs[0]);
	SUCCEEDS(folder_use(nodes[2]));
	ck_assert_str_eq(folder.closed, "bca");
	h5_tree_closedir(dirs[1]);
	/* All that are open close in the end. */
	folder_forget_files(nodes);
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
	rc = folder_use(node);
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
	folder_find_files(nodes);
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
	folder_forget_files(nodes);
}
END_TEST

static bool is_unwanted(void *arg)
{
	(void)arg;
	return true;
}

/* Nobody waits for the answer any more. */
START_TEST(requests_that_are_given_up)
{
	struct h5_tree_inside ins[2];
	struct h5_tree_node *nodes[FILES];

	folder_find_files(nodes);
	for (unsigned i = 0; i < 2; i++)
		SUCCEEDS(h5_tree_enter(folder.tree, nodes[i], &ins[i]));
	h5_interrupt_begin(is_unwanted, NULL);
	ck_assert_int_eq(folder_use(nodes[2]), -EINTR);
	h5_interrupt_begin(NULL, NULL);
	ck_assert_int_eq(nodes[2]->file->state, H5_TREE_CLOSED);
	for (unsigned i = 0; i < 2; i++)
		h5_tree_leave(folder.tree, &ins[i]);
	SUCCEEDS(folder_use(nodes[2]));
	folder_forget_files(nodes);
}
END_TEST

/* The URL of a file may have as many bytes as a path. */
START_TEST(long_urls)
{
	static char url[PATH_MAX];

	for (size_t n = PATH_MAX - 7; n < PATH_MAX - 2; n++) {
		struct h5_tree_node *nodes[FILES];

		memset(url, 'u', n);
		url[n] = 0;
		folder.options.vfs.url = url;
		folder_reopen();
		folder_find_files(nodes);
		ck_assert_int_eq(folder_use(nodes[0]), n + sizeof "/a.h5" > PATH_MAX ? -ENAMETOOLONG : 0);
		folder_forget_files(nodes);
	}
}
END_TEST

/* It has one slash between the URL of the folder and the name. */
START_TEST(urls_of_files)
{
	static const char *const urls[][2] = {{"http://server/f", "http://server/f/a.h5"},
					      {"http://server/f/", "http://server/f/a.h5"},
					      {"x", "x/a.h5"},
					      {"", "/a.h5"}};

	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		char url[32] = "";
		struct h5_tree_node *file;

		/* What lies behind it does not count. */
		memset(url, '/', sizeof url);
		strcpy(url, urls[i][0]);
		folder.options.vfs.url = url;
		folder_reopen();
		file = folder_find(h5_tree_root(folder.tree), "a.h5");
		SUCCEEDS(folder_use(file));
		ck_assert_str_eq(file->file->url, urls[i][1]);
		folder_forget(file);
	}
}
END_TEST

/* The end of a file is no error, whatever has failed before. */
START_TEST(ends_of_plain_files)
{
	struct h5_tree_node *file;
	struct h5_tree_handle *handle;
	char bytes[8];
	size_t got;

	folder_make_file("x", "abc", 0, 3);
	file = folder_find(h5_tree_root(folder.tree), "x");
	SUCCEEDS(h5_tree_open_file(folder.tree, file, O_RDONLY, &handle));
	for (size_t at = 0; at < 5; at++) {
		errno = EIO;
		SUCCEEDS(h5_tree_read(handle, at, bytes, sizeof bytes, &got));
		ck_assert_uint_eq(got, at < 3 ? 3 - at : 0);
		ck_assert(!memcmp(bytes, &"abc"[at < 3 ? at : 3], got));
	}
	errno = EIO;
	SUCCEEDS(h5_tree_read(handle, 0, bytes, 0, &got));
	ck_assert_uint_eq(got, 0);
	h5_tree_close_file(handle);
	folder_forget(file);
}
END_TEST

static struct h5_tree_inside inside_first;

static void leave_first(void)
{
	ck_assert_str_eq(folder.closed, "");
	h5_tree_leave(folder.tree, &inside_first);
}

/* A file that is written is open under one of its names. Another one waits for the requests that use it, but
 * not for programs that have it open. */
START_TEST(two_names_of_a_file)
{
	struct h5_tree_node *nodes[2], *b;
	struct h5_tree_dir *dir;

	scratch_run("ln '%s/a.h5' '%s/z.h5'", folder.path, folder.path);
	folder.options.set.writable = true;
	folder.options.open_files = 3;
	folder_reopen();
	b = folder_find(h5_tree_root(folder.tree), "b.h5"); /* which is another one */
	SUCCEEDS(folder_use(b));
	nodes[0] = folder_find(h5_tree_root(folder.tree), "a.h5");
	nodes[1] = folder_find(h5_tree_root(folder.tree), "z.h5");
	ck_assert_ptr_ne(nodes[0]->file, nodes[1]->file);
	SUCCEEDS(h5_tree_enter(folder.tree, nodes[0], &inside_first));
	h5_wait_set(leave_first);
	SUCCEEDS(folder_use(nodes[1]));
	ck_assert(!h5_wait_is_noticed());
	ck_assert_str_eq(folder.closed, "a");
	ck_assert_uint_eq(folder.tree->open_count, 2);
	SUCCEEDS(h5_tree_opendir(folder.tree, nodes[1], &dir));
	ck_assert_int_eq(folder_use(nodes[0]), -EBUSY);
	ck_assert_str_eq(h5_error_last()->text, "it is open under another name");
	h5_tree_closedir(dir);
	SUCCEEDS(folder_use(nodes[0]));
	ck_assert_str_eq(folder.closed, "az");
	folder_forget(b);
	folder_forget(nodes[0]);
	folder_forget(nodes[1]);
}
END_TEST

static const struct h5_vfs *refreshed; /* the last one */

void __real_h5_vfs_refresh(struct h5_vfs *vfs);
void __wrap_h5_vfs_refresh(struct h5_vfs *vfs);
void __wrap_h5_vfs_refresh(struct h5_vfs *vfs)
{
	refreshed = vfs;
	__real_h5_vfs_refresh(vfs);
}

/* Each request learns what another program has changed in the file. */
START_TEST(files_that_others_change)
{
	struct h5_tree_node *nodes[FILES];

	folder_find_files(nodes);
	/* To open a file may take long. */
	h5_wait_set(post_wait);
	SUCCEEDS(folder_use(nodes[0]));
	ck_assert(!h5_wait_is_noticed());
	for (unsigned i = 0; i < 4; i++) {
		SUCCEEDS(folder_use(nodes[i % 2]));
		ck_assert_ptr_eq(refreshed, nodes[i % 2]->file->vfs);
	}
	folder_forget_files(nodes);
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

	folder_find_files(nodes);
	for (unsigned i = 1; i < 4; i++) {
		replaced.device = i & 1;
		replaced.inode = i & 2;
		ck_assert_int_eq(folder_use(nodes[0]), -ESTALE);
	}
	memset(&replaced, 0, sizeof replaced);
	replaced.code = -EIO;
	ck_assert_int_eq(folder_use(nodes[0]), -EIO);
	SUCCEEDS(folder_use(nodes[0]));
	folder_forget_files(nodes);
}
END_TEST

/* Nothing is left of an opening that fails, early or late, whether the file was open before or not. */
START_TEST(files_that_do_not_open)
{
	static const char long_url[PATH_MAX] = {[0 ... PATH_MAX - 2] = 'u'};
	struct h5_tree_node *nodes[FILES];

	folder_find_files(nodes);
	for (unsigned again = 0; again < 2; again++) {
		folder.refuses = -EPERM;
		ck_assert_int_eq(folder_use(nodes[0]), -EPERM);
		folder.refuses = 0;
		replaced.code = -EIO;
		ck_assert_int_eq(folder_use(nodes[0]), -EIO);
		folder.tree->options.vfs.url = long_url;
		ck_assert_int_eq(folder_use(nodes[0]), -ENAMETOOLONG);
		folder.tree->options.vfs.url = "file:///folder";
		scratch_run("mv '%s/a.h5' '%s/away'", folder.path, folder.path);
		ck_assert_int_eq(folder_use(nodes[0]), -ESTALE);
		scratch_run("mv '%s/away' '%s/a.h5'", folder.path, folder.path);
		ck_assert_ptr_null(nodes[0]->file->vfs);
		ck_assert_ptr_null(nodes[0]->file->set);
		ck_assert_ptr_null(nodes[0]->file->path);
		ck_assert_ptr_null(nodes[0]->file->url);
		SUCCEEDS(folder_use(nodes[0]));
		SUCCEEDS(folder_use(nodes[1]));
		SUCCEEDS(folder_use(nodes[2]));
		ck_assert_int_eq(nodes[0]->file->state, H5_TREE_CLOSED);
		ck_assert_ptr_null(nodes[0]->file->vfs);
		ck_assert_ptr_null(nodes[0]->file->set);
	}
	folder_forget_files(nodes);
}
END_TEST

/* A link in a file that cannot be opened has no target. */
START_TEST(links_in_files_that_do_not_open)
{
	struct h5_tree_node *nodes[FILES], *link;
	struct h5_buf target;

	folder_find_files(nodes);
	link = folder_find(nodes[0], "soft");
	SUCCEEDS(folder_use(nodes[1]));
	SUCCEEDS(folder_use(nodes[2]));
	ck_assert_int_eq(nodes[0]->file->state, H5_TREE_CLOSED);
	h5_buf_init(&target, 100);
	replaced.code = -EIO;
	ck_assert_int_eq(h5_tree_readlink(folder.tree, link, &target), -EIO);
	ck_assert_uint_eq(target.size, 0);
	SUCCEEDS(h5_tree_readlink(folder.tree, link, &target));
	ck_assert_uint_gt(target.size, 1);
	ck_assert_uint_eq(nodes[0]->file->uses, 0);
	h5_buf_release(&target);
	folder_forget(link);
	folder_forget_files(nodes);
}
END_TEST

/* Some programs take EWOULDBLOCK for the end of a file. */
START_TEST(files_that_are_locked)
{
	struct h5_tree_node *nodes[FILES];
	char path[200];
	int fd;

	folder.options.set.lock = H5_LOCK_ALWAYS;
	folder_reopen();
	folder_find_files(nodes);
	snprintf(path, sizeof path, "%s/a.h5", folder.path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(folder_use(nodes[0]), -EBUSY);
	ck_assert_str_eq(h5_error_last()->text, "locked by a program that writes it");
	close(fd);
	SUCCEEDS(folder_use(nodes[0]));
	folder_forget_files(nodes);
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

	folder_find_files(nodes);
	woken();
	SUCCEEDS(folder_use(nodes[0]));
	ck_assert_uint_eq(woken(), 1);
	SUCCEEDS(folder_use(nodes[0]));
	ck_assert_uint_eq(woken(), 0);
	SUCCEEDS(folder_use(nodes[1]));
	ck_assert_uint_eq(woken(), 2);
	SUCCEEDS(h5_tree_enter(folder.tree, nodes[1], &in));
	ck_assert_uint_eq(woken(), 0);
	SUCCEEDS(folder_use(nodes[1]));
	ck_assert_uint_eq(woken(), 0);
	h5_tree_leave(folder.tree, &in);
	ck_assert_uint_eq(woken(), 1);
	SUCCEEDS(folder_use(nodes[2]));
	ck_assert_uint_eq(woken(), 3);
	h5_tree_await_none(folder.tree);
	ck_assert_uint_eq(woken(), 1);
	folder_forget_files(nodes);
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

/* A file closes two seconds after its last use, unless a request uses it again. h5_tree_close_idle() looks
 * once a second, until the mount ends. */
START_TEST(idle_files)
{
	struct h5_tree_inside in;
	struct h5_tree_node *nodes[FILES];

	folder.options.open_files = FILES;
	folder_reopen();
	folder_find_files(nodes);
	frozen = 1000;
	for (unsigned i = 0; i < FILES; i++)
		SUCCEEDS(folder_use(nodes[i]));
	SUCCEEDS(h5_tree_enter(folder.tree, nodes[1], &in));
	ck_assert(h5_tree_close_idle(folder.tree));
	ck_assert_str_eq(folder.closed, "");
	SUCCEEDS(folder_use(nodes[2]));
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
	folder_forget_files(nodes);
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
	folder_reopen();
	folder_find_files(nodes);
	ck_assert_int_eq(h5_tree_commit(folder.tree), 0);
	ck_assert_uint_eq(commits.count, 0);
	for (unsigned i = 0; i < FILES; i++)
		SUCCEEDS(folder_use(nodes[i]));
	SUCCEEDS(folder_use(nodes[1]));
	SUCCEEDS(folder_use(nodes[0]));
	commits.codes[1] = -EIO;
	commits.codes[2] = -ENOSPC;
	ck_assert_int_eq(h5_tree_commit(folder.tree), -EIO);
	ck_assert_uint_eq(commits.count, FILES);
	for (unsigned i = 0; i < FILES; i++) {
		ck_assert_ptr_eq(commits.asked[i], nodes[i]->file->vfs);
		ck_assert_uint_eq(nodes[i]->file->uses, 0);
	}
	folder_forget_files(nodes);
}
END_TEST

/* What a file loses when it closes is told once, and in the end. */
START_TEST(changes_that_are_lost)
{
	struct h5_tree_node *nodes[FILES];

	folder_find_files(nodes);
	SUCCEEDS(folder_use(nodes[0]));
	SUCCEEDS(folder_use(nodes[1]));
	folder.loses = -EDQUOT;
	SUCCEEDS(folder_use(nodes[2]));
	folder.loses = 0;
	commits.codes[1] = -EIO;
	ck_assert_int_eq(h5_tree_commit(folder.tree), -EIO);
	memset(&commits, 0, sizeof commits);
	ck_assert_int_eq(h5_tree_commit(folder.tree), -EDQUOT);
	memset(&commits, 0, sizeof commits);
	ck_assert_int_eq(h5_tree_commit(folder.tree), 0);
	folder_forget_files(nodes);
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

static struct h5_tree_node *closing;

/* Who uses the file that closes, or commits, waits for it, unless nobody waits for the answer any more. */
static void give_request_up(void)
{
	h5_interrupt_begin(is_unwanted, NULL);
	ck_assert_int_eq(folder_use(closing), -EINTR);
	h5_interrupt_begin(NULL, NULL);
}

static void give_commit_up(void)
{
	h5_interrupt_begin(is_unwanted, NULL);
	ck_assert_int_eq(h5_tree_commit(folder.tree), -EINTR);
	h5_interrupt_begin(NULL, NULL);
}

START_TEST(what_waits_for_a_file_that_closes_can_be_given_up)
{
	struct h5_tree_node *nodes[FILES];

	folder_find_files(nodes);
	frozen = 1000;
	SUCCEEDS(folder_use(nodes[0]));
	SUCCEEDS(folder_use(nodes[1]));
	closing = nodes[1];
	folder.on_closing = give_request_up;
	SUCCEEDS(folder_use(nodes[0]));
	SUCCEEDS(folder_use(nodes[2]));
	ck_assert_int_eq(frozen, 1001);
	ck_assert_int_eq(nodes[1]->file->state, H5_TREE_CLOSED);
	folder.on_closing = give_commit_up;
	SUCCEEDS(folder_use(nodes[1]));
	folder.on_closing = NULL;
	ck_assert_int_eq(frozen, 1002);
	/* The other one was committed all the same. */
	ck_assert_uint_eq(commits.count, 1);
	ck_assert_ptr_eq(commits.asked[0], nodes[2]->file->vfs);
	frozen = 0;
	folder_forget_files(nodes);
}
END_TEST

START_TEST(commits_while_a_file_closes)
{
	struct h5_tree_node *nodes[FILES];
	void *rc;

	sem_init(&waiting, 0, 0);
	folder_find_files(nodes);
	SUCCEEDS(folder_use(nodes[0]));
	SUCCEEDS(folder_use(nodes[1]));
	folder.on_closing = commit_meanwhile;
	SUCCEEDS(folder_use(nodes[2]));
	pthread_join(committer, &rc);
	ck_assert_int_eq((intptr_t)rc, -EIO);
	folder_forget_files(nodes);
}
END_TEST

UNIT_MAIN_AROUND("tree_files", begin, folder_end, signatures, a_look_at_the_signature,
		 as_many_files_as_may_be_open, files_that_requests_use, requests_that_are_given_up, long_urls,
		 urls_of_files, ends_of_plain_files, files_that_are_replaced_before_a_look,
		 two_names_of_a_file, files_that_others_change, files_that_are_replaced_before_they_open,
		 files_that_do_not_open, links_in_files_that_do_not_open, files_that_are_locked,
		 waiting_threads_are_woken, idle_files, commits_of_all_files, changes_that_are_lost,
		 what_waits_for_a_file_that_closes_can_be_given_up, commits_while_a_file_closes)
