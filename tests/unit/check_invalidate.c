/* The thread that has the kernel drop what is stale before it replies (fuse/invalidate): what the kernel is
 * told, in which order, and what comes in the end. */
#include "fault_alloc.h"
#include "fuse/invalidate.h"
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { INO = 7, DIRECTORY = 5 };

static struct {
	struct h5_invalidator *invalidator;
	char events[2048]; /* what was called, in words */
	off_t size;
	int attr_rc, read_rc;
	size_t unread;	     /* bytes that the file turns out to lack */
	unsigned names;	     /* that are still to be forgotten */
	unsigned late_names; /* that come with the signal that ends the mount */
	char name[NAME_MAX + 1];
	void (*tell_name)(void *arg);
	void *tell_arg;
	atomic_bool exited;
	struct h5_stale *postponed; /* tried while the size is stored */
	sem_t replied;
} world;

static struct fuse_session *const session = (struct fuse_session *)&world;
static struct h5_vfs *const vfs = (struct h5_vfs *)&world.names;
static struct h5_node *const node = (struct h5_node *)&world.size;
static struct h5_handle *const handle = (struct h5_handle *)&world.unread;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
	const size_t at = strlen(world.events);
	va_list args;

	va_start(args, format);
	vsnprintf(world.events + at, sizeof world.events - at, format, args);
	va_end(args);
}

/* ---- what the thread calls ---- */

int __wrap_fuse_lowlevel_notify_inval_inode(struct fuse_session *se, fuse_ino_t ino, off_t from, off_t n);
int __wrap_fuse_lowlevel_notify_inval_entry(struct fuse_session *se, fuse_ino_t parent, const char *name,
					    size_t n);
int __wrap_fuse_lowlevel_notify_store(struct fuse_session *se, fuse_ino_t ino, off_t offset,
				      struct fuse_bufvec *data, enum fuse_buf_copy_flags flags);
void __wrap_fuse_session_exit(struct fuse_session *se);
int __wrap_h5_vfs_getattr(struct h5_vfs *of, struct h5_node *n, struct stat *st);
int __wrap_h5_vfs_read(struct h5_handle *h, uint64_t offset, void *buf, size_t n, size_t *got);
void __wrap_h5_vfs_tell_size(struct h5_vfs *of, struct h5_node *n);
void __wrap_h5_vfs_on_stale_names(struct h5_vfs *of, void (*tell)(void *arg), void *arg);
bool __wrap_h5_vfs_take_stale_name(struct h5_vfs *of, uint64_t *directory, char name[256]);

int __wrap_fuse_lowlevel_notify_inval_inode(struct fuse_session *se, fuse_ino_t ino, off_t from, off_t n)
{
	ck_assert(se == session && !n);
	note("drop %u from %jd; ", (unsigned)ino, (intmax_t)from);
	return -ENOENT;
}

int __wrap_fuse_lowlevel_notify_inval_entry(struct fuse_session *se, fuse_ino_t parent, const char *name,
					    size_t n)
{
	ck_assert(se == session && n == strlen(world.name) && !strcmp(name, world.name));
	note("forget a name in %u; ", (unsigned)parent);
	return -ENOENT;
}

int __wrap_fuse_lowlevel_notify_store(struct fuse_session *se, fuse_ino_t ino, off_t offset,
				      struct fuse_bufvec *data, enum fuse_buf_copy_flags flags)
{
	const uint8_t *bytes = data->buf[0].mem;

	ck_assert(se == session && !flags && data->count == 1 && !data->idx && !data->off);
	for (size_t i = 0; i < data->buf[0].size; i++)
		ck_assert_uint_eq(bytes[i], (uint8_t)(((uint64_t)offset + i) / 3));
	note("store %u at %jd, %zu; ", (unsigned)ino, (intmax_t)offset, data->buf[0].size);
	if (world.postponed && h5_invalidator_postpone(world.invalidator, world.postponed))
		note("postponed; ");
	return -ENOENT;
}

void __wrap_fuse_session_exit(struct fuse_session *se)
{
	ck_assert(se == session);
	atomic_store(&world.exited, true);
}

int __wrap_h5_vfs_getattr(struct h5_vfs *of, struct h5_node *n, struct stat *st)
{
	ck_assert(of == vfs && n == node);
	*st = (struct stat){.st_size = world.size};
	return world.attr_rc;
}

int __wrap_h5_vfs_read(struct h5_handle *h, uint64_t offset, void *buf, size_t n, size_t *got)
{
	ck_assert(h == handle && n == (size_t)sysconf(_SC_PAGESIZE));
	ck_assert_uint_lt(offset, (uint64_t)world.size);
	*got = (size_t)world.size - offset;
	*got = (*got < n ? *got : n) - world.unread;
	for (size_t i = 0; i < *got; i++)
		((uint8_t *)buf)[i] = (uint8_t)((offset + i) / 3);
	return world.read_rc;
}

void __wrap_h5_vfs_tell_size(struct h5_vfs *of, struct h5_node *n)
{
	ck_assert(of == vfs && n == node);
	note("tell the size; ");
}

void __wrap_h5_vfs_on_stale_names(struct h5_vfs *of, void (*tell)(void *arg), void *arg)
{
	ck_assert(of == vfs);
	world.tell_name = tell;
	world.tell_arg = arg;
}

bool __wrap_h5_vfs_take_stale_name(struct h5_vfs *of, uint64_t *directory, char name[256])
{
	ck_assert(of == vfs);
	if (!world.names)
		return false;
	world.names--;
	*directory = DIRECTORY;
	strcpy(name, world.name);
	return true;
}

/* ---- requests ---- */

static void reply(struct h5_request *r, size_t written)
{
	ck_assert(r->in.vfs == vfs && r->in.node == node);
	note("reply %zu", written);
	sem_post(&world.replied);
}

/* Two more come before the signal that ends the mount. */
static void reply_and_end(struct h5_request *r, size_t written)
{
	struct h5_stale next = {.r = *r, .from = 3, .handle = handle, .reply = reply, .written = 2};

	note("reply %zu; ", written);
	h5_invalidator_add(world.invalidator, &next);
	next.from = H5_NOT_STALE;
	h5_invalidator_add(world.invalidator, &next);
	world.names = world.late_names;
	pthread_kill(pthread_self(), SIGTERM);
}

static struct h5_stale stale_from(uint64_t from)
{
	return (struct h5_stale){.r = {.ino = INO, .in = {.vfs = vfs, .node = node}},
				 .from = from,
				 .handle = handle,
				 .reply = reply,
				 .written = 1};
}

static void await_reply(void)
{
	while (sem_wait(&world.replied))
		;
}

static void begin(void)
{
	memset(&world, 0, sizeof world);
	memset(world.name, 'n', NAME_MAX);
	sem_init(&world.replied, 0, 0);
	ck_assert_int_eq(h5_invalidator_start(session, vfs, &world.invalidator), 0);
}

static void end(void)
{
	h5_invalidator_stop(world.invalidator);
	ck_assert(!world.tell_name);
}

static void check(struct h5_stale stale, const char *events)
{
	*world.events = 0;
	h5_invalidator_add(world.invalidator, &stale);
	await_reply();
	ck_assert_str_eq(world.events, events);
}

/* The kernel gets the last page with the size, up to the file's end. */
START_TEST(the_last_page)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const struct {
		size_t size, at, n;
	} cases[] = {{1, 0, 1},		  {page - 1, 0, page - 1}, {page, 0, page},
		     {page + 1, page, 1}, {2 * page, page, page},  {7 * page + 77, 7 * page, 77}};
	char events[200];

	begin();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		world.size = (off_t)cases[i].size;
		snprintf(events, sizeof events,
			 "drop 7 from 100; tell the size; store 7 at %zu, %zu; reply 1", cases[i].at,
			 cases[i].n);
		check(stale_from(100), events);
	}
	world.unread = 7;
	snprintf(events, sizeof events, "drop 7 from 0; tell the size; store 7 at %zu, 70; reply 1",
		 7 * page);
	check(stale_from(0), events);
	end();
}
END_TEST

START_TEST(no_page)
{
	static const char events[] = "drop 7 from 9; tell the size; reply 1";
	struct h5_stale stale = stale_from(9);

	begin();
	check(stale, events);
	world.size = 100;
	world.attr_rc = -EIO;
	check(stale, events);
	world.attr_rc = 0;
	world.read_rc = -EIO;
	check(stale, events);
	world.read_rc = 0;
	world.unread = 100;
	check(stale, events);
	stale.handle = NULL;
	check(stale, events);
	stale.from = H5_NOT_STALE;
	check(stale, "reply 1");
	end();
}
END_TEST

/* A reply with the size of the file waits until the kernel has taken the new one. */
START_TEST(replies_that_wait)
{
	struct h5_stale later = stale_from(H5_NOT_STALE);

	begin();
	later.written = 2;
	world.size = 10;
	world.postponed = &later;
	*world.events = 0;
	h5_invalidator_add(
		world.invalidator,
		&(struct h5_stale){
			.r = stale_from(0).r, .from = 4, .handle = handle, .reply = reply, .written = 1});
	await_reply();
	await_reply();
	ck_assert_str_eq(world.events,
			 "drop 7 from 4; tell the size; store 7 at 0, 10; postponed; reply 1reply 2");
	/* Of another file. */
	later.r.ino = INO + 1;
	check(stale_from(4), "drop 7 from 4; tell the size; store 7 at 0, 10; reply 1");
	ck_assert(!h5_invalidator_postpone(world.invalidator, &later));
	later.r.ino = INO;
	ck_assert(!h5_invalidator_postpone(world.invalidator, &later));
	end();
}
END_TEST

/* All names that are there are forgotten before the next reply. */
START_TEST(names)
{
	begin();
	ck_assert(world.tell_name);
	world.names = 2;
	check(stale_from(H5_NOT_STALE),
	      "forget a name in 5; drop 5 from 0; forget a name in 5; drop 5 from 0; reply 1");
	end();
	/* Those of a mount that keeps no names are not asked for. */
	memset(&world, 0, sizeof world);
	sem_init(&world.replied, 0, 0);
	ck_assert_int_eq(h5_invalidator_start(session, NULL, &world.invalidator), 0);
	ck_assert(!world.tell_name);
	world.names = 1;
	check(stale_from(H5_NOT_STALE), "reply 1");
	end();
}
END_TEST

static bool no_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *arg)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attributes, run, arg);
}

/* Without a thread nothing has begun, and signals come as before. */
START_TEST(no_thread)
{
	sigset_t before, after;

	memset(&world, 0, sizeof world);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	no_threads = true;
	ck_assert_int_eq(h5_invalidator_start(session, vfs, &world.invalidator), -EAGAIN);
	no_threads = false;
	ck_assert(!world.invalidator && !world.tell_name);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int number = 1; number < NSIG; number++)
		ck_assert_int_eq(sigismember(&after, number), sigismember(&before, number));
}
END_TEST

START_TEST(too_little_memory)
{
	struct h5_stale stale = stale_from(5);

	begin();
	fault_alloc_arm(1);
	fault_alloc_count(true);
	h5_invalidator_add(world.invalidator, &stale);
	fault_alloc_count(false);
	ck_assert(fault_alloc_disarm());
	ck_assert_str_eq(world.events, "tell the size; reply 1");
	end();
	/* Without the page the kernel gets no size. */
	memset(&world, 0, sizeof world);
	sem_init(&world.replied, 0, 0);
	fault_alloc_arm(2);
	fault_alloc_count(true);
	ck_assert_int_eq(h5_invalidator_start(session, vfs, &world.invalidator), 0);
	fault_alloc_count(false);
	ck_assert(fault_alloc_disarm());
	world.size = 10;
	check(stale_from(5), "drop 7 from 5; tell the size; reply 1");
	end();
	fault_alloc_arm(1);
	fault_alloc_count(true);
	ck_assert_int_eq(h5_invalidator_start(session, vfs, &world.invalidator), -ENOMEM);
	fault_alloc_count(false);
	ck_assert(fault_alloc_disarm());
	h5_invalidator_stop(NULL);
}
END_TEST

/* ---- signals ---- */

/* The main thread is woken up; what is left is replied to, but no page is dropped, and no name forgotten. */
START_TEST(a_signal_ends_the_session)
{
	struct h5_stale stale = stale_from(H5_NOT_STALE);
	sem_t never;

	begin();
	sem_init(&never, 0, 0);
	world.late_names = (unsigned)_i;
	world.size = 10;
	stale.reply = reply_and_end;
	h5_invalidator_add(world.invalidator, &stale);
	while (!atomic_load(&world.exited))
		ck_assert(sem_wait(&never) && errno == EINTR);
	ck_assert(sem_wait(&never) && errno == EINTR);
	ck_assert_str_eq(world.events, "reply 1; tell the size; reply 2reply 2");
	await_reply();
	await_reply();
	*world.events = 0;
	stale = stale_from(5);
	h5_invalidator_add(world.invalidator, &stale);
	ck_assert_str_eq(world.events, "tell the size; reply 1");
	end();
	ck_assert_uint_eq(world.names, 0);
	sem_destroy(&never);
}
END_TEST

static void ignore(int number)
{
	(void)number;
}

START_TEST(signals_are_given_back)
{
	static const int numbers[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR2};
	struct sigaction action = {.sa_handler = ignore}, now;
	sigset_t before, set;

	sigaction(SIGRTMIN + 1, &action, NULL);
	action.sa_handler = SIG_DFL; /* nohup ignores SIGHUP */
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGINT, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &set, &before);
	begin();
	pthread_sigmask(SIG_BLOCK, NULL, &set);
	/* One that is ignored does not end the mount. */
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		ck_assert_int_eq(sigismember(&set, numbers[i]), numbers[i] != SIGINT);
	ck_assert(!sigismember(&set, SIGRTMIN + 1) && !sigismember(&set, SIGUSR1));
	sigaction(SIGRTMIN + 1, NULL, &now);
	ck_assert(now.sa_handler != ignore);
	end();
	pthread_sigmask(SIG_BLOCK, NULL, &set);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		ck_assert_int_eq(sigismember(&set, numbers[i]), numbers[i] == SIGUSR2);
	sigaction(SIGRTMIN + 1, NULL, &now);
	ck_assert(now.sa_handler == ignore);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	action.sa_handler = SIG_DFL;
	sigaction(SIGRTMIN + 1, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}
END_TEST

UNIT_MAIN_LOOPS("invalidate", {the_last_page, 1}, {no_page, 1}, {replies_that_wait, 1}, {names, 1},
		{no_thread, 1}, {too_little_memory, 1}, {a_signal_ends_the_session, 3},
		{signals_are_given_back, 1})
