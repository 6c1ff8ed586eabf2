/* The threads that serve requests (fuse/loop), with a socket in place of the kernel: which of them waits for
 * the next request, how many work, how long they look out, and how they end. */
#include "base/thread.h"
#include "base/wait.h"
#include "fuse/loop.h"
#include "fuse/operations.h"
#include "unit.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { REQUESTS = 32, BRIEF = 1 << 14, MESSAGE = BRIEF + 1, STEP = 10000, SECOND = 1000000000 };

/* What the thread that gets a request does, step by step: 'b' tells that it has begun, and blocks until it
 * may go on; 'w' is about to wait; 'u' asks if the request is unwanted. */
struct request {
	const char *script;
	sem_t begun, go, ended;
	pthread_t thread;
	bool unwanted;
};

static struct {
	int ours, theirs; /* ends of the socket */
	unsigned processors;
	atomic_int result; /* of the next receive, if it is not 0 */
	atomic_bool exited, interrupted, no_threads, no_memory;
	sem_t waiting; /* posted before each receive */
	struct request requests[REQUESTS];
	pthread_t serving;
	int rc; /* of h5_serve() */
	atomic_bool served;
	bool fake_clock, fake_join;
	atomic_uint ticks, polls, joined, joins;
} kernel;

static struct fuse_session *const session = (struct fuse_session *)&kernel;
static struct h5_mount mount = {.session = (struct fuse_session *)&kernel};

/* ---- what the loop calls ---- */

int __wrap_fuse_session_receive_buf(struct fuse_session *se, struct fuse_buf *buf);
void __wrap_fuse_session_process_buf(struct fuse_session *se, const struct fuse_buf *buf);
int __wrap_fuse_session_fd(struct fuse_session *se);
int __wrap_fuse_session_exited(struct fuse_session *se);
void __wrap_fuse_session_exit(struct fuse_session *se);
void *__wrap_fuse_req_userdata(fuse_req_t req);
int __wrap_fuse_req_interrupted(fuse_req_t req);
unsigned __wrap_h5_processors(void);
int __wrap_h5_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, int heard);
int __real_h5_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, int heard);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_pthread_join(pthread_t thread, void **result);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until);
int __real_pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until);

int __wrap_fuse_session_receive_buf(struct fuse_session *se, struct fuse_buf *buf)
{
	const int result = atomic_exchange(&kernel.result, 0);
	ssize_t n;

	ck_assert(se == session);
	sem_post(&kernel.waiting);
	if (result)
		return result;
	if (!buf->mem)
		buf->mem = malloc(MESSAGE);
	n = read(kernel.theirs, buf->mem, MESSAGE);
	if (n < 0)
		return -errno;
	/* So that what is behind the request is not read. */
	buf->mem = realloc(buf->mem, n ? (size_t)n : 1);
	buf->size = (size_t)n;
	buf->mem = realloc(buf->mem, MESSAGE);
	return (int)n;
}

static void do_step(struct request *r, char step)
{
	switch (step) {
	case 'b':
		sem_post(&r->begun);
		while (sem_wait(&r->go))
			;
		break;
	case 'w':
		h5_wait_begins();
		break;
	default:
		r->unwanted = h5_is_unwanted(r);
	}
}

void __wrap_fuse_session_process_buf(struct fuse_session *se, const struct fuse_buf *buf)
{
	struct fuse_in_header header;
	struct request *r;

	ck_assert(se == session);
	memcpy(&header, buf->mem, sizeof header);
	r = &kernel.requests[header.unique];
	r->thread = pthread_self();
	for (const char *step = r->script; *step; step++)
		do_step(r, *step);
	sem_post(&r->ended);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return atomic_load(&kernel.no_memory) ? NULL : __real_calloc(n, size);
}

int __wrap_fuse_session_fd(struct fuse_session *se)
{
	ck_assert(se == session);
	return kernel.theirs;
}

int __wrap_fuse_session_exited(struct fuse_session *se)
{
	ck_assert(se == session);
	return atomic_load(&kernel.exited);
}

void __wrap_fuse_session_exit(struct fuse_session *se)
{
	ck_assert(se == session);
	atomic_store(&kernel.exited, true);
}

void *__wrap_fuse_req_userdata(fuse_req_t req)
{
	(void)req;
	return &mount;
}

int __wrap_fuse_req_interrupted(fuse_req_t req)
{
	(void)req;
	return atomic_load(&kernel.interrupted);
}

unsigned __wrap_h5_processors(void)
{
	return kernel.processors;
}

int __wrap_h5_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, int heard)
{
	ck_assert_int_eq(heard, SIGRTMIN);
	return atomic_load(&kernel.no_threads) ? -EAGAIN : __real_h5_thread_start(thread, run, arg, heard);
}

/* Each look at it takes a step, and goes through the end of a second. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (!kernel.fake_clock)
		return __real_clock_gettime(clock, now);
	if (clock == CLOCK_REALTIME)
		*now = (struct timespec){7, SECOND - 5000000};
	else {
		const int64_t at = SECOND - 2 * STEP + (int64_t)STEP * atomic_fetch_add(&kernel.ticks, 1);

		*now = (struct timespec){5 + at / SECOND, at % SECOND};
	}
	return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	ck_assert(n == 1 && fds->fd == kernel.theirs && fds->events == POLLIN && !timeout);
	atomic_fetch_add(&kernel.polls, 1);
	return __real_poll(fds, n, timeout);
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
	atomic_fetch_add(&kernel.joined, 1);
	return __real_pthread_join(thread, result);
}

/* The first time it is too early. */
int __wrap_pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until)
{
	if (!kernel.fake_join)
		return __real_pthread_timedjoin_np(thread, result, until);
	ck_assert(until->tv_sec == 8 && until->tv_nsec == 5000000);
	return atomic_fetch_add(&kernel.joins, 1) ? __real_pthread_join(thread, result) : ETIMEDOUT;
}

/* ---- a session ---- */

static void *serve(void *arg)
{
	kernel.rc = h5_serve(session);
	atomic_store(&kernel.served, true);
	return arg;
}

static void await(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

static void begin(unsigned processors)
{
	int ends[2];

	memset(&kernel, 0, sizeof kernel);
	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	kernel.ours = ends[0];
	kernel.theirs = ends[1];
	kernel.processors = processors;
	sem_init(&kernel.waiting, 0, 0);
	for (unsigned i = 0; i < REQUESTS; i++) {
		sem_init(&kernel.requests[i].begun, 0, 0);
		sem_init(&kernel.requests[i].go, 0, 0);
		sem_init(&kernel.requests[i].ended, 0, 0);
	}
}

static void start(void)
{
	ck_assert(!pthread_create(&kernel.serving, NULL, serve, NULL));
}

/* The file system is unmounted. */
static void end(void)
{
	shutdown(kernel.ours, SHUT_RDWR);
	__real_pthread_join(kernel.serving, NULL);
	ck_assert_int_eq(kernel.rc, 0);
	close(kernel.ours);
	close(kernel.theirs);
}

/* `count`: of the bytes that are read; `size`: of the message. */
static void send_message(unsigned number, uint32_t opcode, uint32_t count, size_t size, const char *script)
{
	static uint8_t message[MESSAGE];
	struct fuse_in_header header = {.len = (uint32_t)size, .opcode = opcode, .unique = number};
	struct fuse_read_in in = {.size = count};

	kernel.requests[number].script = script;
	memcpy(message, &header, sizeof header);
	memcpy(message + sizeof header, &in, sizeof in);
	ck_assert_int_eq(send(kernel.ours, message, size, 0), (ssize_t)size);
}

static void send_request(unsigned number, uint32_t opcode, const char *script)
{
	send_message(number, opcode, BRIEF + 1, sizeof(struct fuse_in_header) + sizeof(struct fuse_read_in),
		     script);
}

/* The request is begun. */
static void await_begin(unsigned number)
{
	await(&kernel.requests[number].begun);
}

static void go_on(unsigned number)
{
	sem_post(&kernel.requests[number].go);
}

/* True: the same thread has served both. */
static bool is_same(unsigned a, unsigned b)
{
	return pthread_equal(kernel.requests[a].thread, kernel.requests[b].thread);
}

/* ---- who leads ---- */

enum { HEADER = sizeof(struct fuse_in_header), READ = HEADER + sizeof(struct fuse_read_in) };

static void check_brief(uint32_t opcode, uint32_t count, size_t size, bool brief)
{
	send_message(0, opcode, count, size, "b");
	await_begin(0);
	send_request(1, FUSE_LOOKUP, "b");
	if (brief)
		go_on(0);
	await_begin(1);
	ck_assert_msg(is_same(0, 1) == brief, "%u", opcode);
	go_on(1);
	if (!brief)
		go_on(0);
	await(&kernel.requests[0].ended);
	await(&kernel.requests[1].ended);
}

/* The thread that leads answers brief requests itself. */
START_TEST(brief_requests)
{
	static const uint32_t brief[] = {
		FUSE_LOOKUP, FUSE_FORGET,     FUSE_BATCH_FORGET, FUSE_GETATTR, FUSE_ACCESS,  FUSE_READLINK,
		FUSE_STATFS, FUSE_GETXATTR,   FUSE_LISTXATTR,	 FUSE_OPENDIR, FUSE_READDIR, FUSE_READDIRPLUS,
		FUSE_OPEN,   FUSE_RELEASEDIR, FUSE_FLUSH,	 FUSE_RELEASE, FUSE_IOCTL,   FUSE_INTERRUPT,
		FUSE_CREATE, FUSE_MKDIR,      FUSE_UNLINK,	 FUSE_RMDIR,
	};
	static const uint32_t others[] = {FUSE_SETATTR,	 FUSE_SYMLINK,	 FUSE_MKNOD,	FUSE_RENAME,
					  FUSE_LINK,	 FUSE_FSYNC,	 FUSE_SETXATTR, FUSE_REMOVEXATTR,
					  FUSE_FSYNCDIR, FUSE_FALLOCATE, FUSE_RENAME2,	FUSE_LSEEK};

	begin(4);
	start();
	for (size_t i = 0; i < sizeof brief / sizeof *brief; i++)
		check_brief(brief[i], 0, READ, true);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		check_brief(others[i], 0, READ, false);
	check_brief(FUSE_READ, BRIEF, READ, true);
	check_brief(FUSE_READ, BRIEF + 1, READ, false);
	/* The loop does not look at a read that is shorter than its header says. */
	check_brief(FUSE_READ, 0, READ - 1, false);
	/* Nor at a message that is no request. */
	check_brief(FUSE_LOOKUP, 0, HEADER, true);
	check_brief(FUSE_LOOKUP, 0, HEADER - 1, false);
	check_brief(FUSE_WRITE, 0, BRIEF, true);
	check_brief(FUSE_WRITE, 0, BRIEF + 1, false);
	end();
}
END_TEST

/* One that takes longer than it seemed to has another thread lead. */
START_TEST(requests_that_wait)
{
	begin(1);
	start();
	send_request(0, FUSE_LOOKUP, "bwb");
	await_begin(0);
	send_request(1, FUSE_LOOKUP, "b");
	go_on(0);
	await_begin(0);
	await_begin(1);
	ck_assert(!is_same(0, 1));
	go_on(1);
	go_on(0);
	/* One that does not lead has nothing to pass on. */
	send_request(2, FUSE_FSYNC, "bwwub");
	await_begin(2);
	send_request(3, FUSE_GETATTR, "b");
	go_on(2);
	await_begin(2);
	await_begin(3);
	go_on(2);
	go_on(3);
	end();
	/* Threads of others have nobody to lead. */
	h5_serve_others();
}
END_TEST

START_TEST(unwanted_requests)
{
	begin(1);
	start();
	for (unsigned i = 0; i < 2; i++) {
		const unsigned asking = 2 * i, next = 2 * i + 1;

		atomic_store(&kernel.interrupted, i);
		send_request(asking, FUSE_LOOKUP, "bub");
		await_begin(asking);
		go_on(asking);
		await_begin(asking);
		ck_assert(kernel.requests[asking].unwanted == i);
		/* Somebody must read what interrupts. */
		send_request(next, FUSE_INTERRUPT, "b");
		await_begin(next);
		ck_assert(!is_same(asking, next));
		go_on(asking);
		go_on(next);
	}
	end();
	atomic_store(&kernel.interrupted, false);
	ck_assert(h5_is_unwanted(NULL));
	atomic_store(&kernel.exited, false);
	ck_assert(!h5_is_unwanted(NULL));
}
END_TEST

/* No more threads read at once than the machine has processors. Threads that wait do not count. */
START_TEST(large_reads)
{
	begin(3);
	start();
	for (unsigned round = 0; round < 3; round++) {
		const unsigned n = 8 * round;

		for (unsigned i = n; i < n + 2; i++) {
			send_request(i, FUSE_READ, "bwb");
			await_begin(i);
		}
		ck_assert(!is_same(n, n + 1));
		send_request(n + 2, FUSE_READ, "b");
		await_begin(n + 2);
		ck_assert(!is_same(n, n + 2) && !is_same(n + 1, n + 2));
		/* The last one goes on leading. */
		send_request(n + 3, FUSE_READ, "bwb");
		go_on(n + 2);
		await_begin(n + 3);
		ck_assert(is_same(n + 2, n + 3));
		/* Until it has to wait. */
		go_on(n + 3);
		await_begin(n + 3);
		send_request(n + 4, FUSE_READ, "bwb");
		await_begin(n + 4);
		send_request(n + 5, FUSE_LOOKUP, "b");
		ck_assert(!is_same(n + 3, n + 4));
		go_on(n + 4);
		await_begin(n + 4);
		await_begin(n + 5);
		ck_assert(!is_same(n + 4, n + 5));
		go_on(n + 5);
		/* These wait, so others may read. */
		for (unsigned i = n; i < n + 2; i++) {
			go_on(i);
			await_begin(i);
		}
		for (unsigned i = n; i < n + 5; i++)
			if (i != n + 2)
				go_on(i);
	}
	end();
	begin(1);
	start();
	send_request(0, FUSE_READ, "b");
	await_begin(0);
	send_request(1, FUSE_READ, "b");
	go_on(0);
	await_begin(1);
	ck_assert(is_same(0, 1));
	go_on(1);
	end();
}
END_TEST

/* ---- looking out ---- */

/* How often it polls after a request, until it waits again. */
static unsigned polls_after(unsigned number)
{
	atomic_store(&kernel.polls, 0);
	atomic_store(&kernel.ticks, 0);
	send_request(number, FUSE_LOOKUP, "");
	await(&kernel.waiting);
	return atomic_load(&kernel.polls);
}

START_TEST(looking_out)
{
	enum { POLLS = 5, IN_VAIN = 4, RARELY = 64 }; /* a poll takes 10 of 50 microseconds */

	begin(1);
	kernel.fake_clock = true;
	start();
	await(&kernel.waiting);
	for (unsigned i = 0; i < IN_VAIN; i++)
		ck_assert_uint_eq(polls_after(0), POLLS);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 1; i < RARELY; i++)
			ck_assert_uint_eq(polls_after(0), 0);
		ck_assert_uint_eq(polls_after(0), POLLS);
	}
	for (unsigned i = 1; i < RARELY; i++)
		ck_assert_uint_eq(polls_after(0), 0);
	/* The next request is there already. */
	atomic_store(&kernel.polls, 0);
	atomic_store(&kernel.ticks, 0);
	send_request(1, FUSE_LOOKUP, "b");
	await_begin(1);
	send_request(2, FUSE_LOOKUP, "b");
	go_on(1);
	await_begin(2);
	ck_assert_uint_eq(atomic_load(&kernel.polls), 1);
	atomic_store(&kernel.ticks, 0);
	go_on(2);
	await(&kernel.waiting);
	await(&kernel.waiting);
	ck_assert_uint_eq(atomic_load(&kernel.polls), 1 + POLLS);
	for (unsigned i = 1; i < IN_VAIN; i++)
		ck_assert_uint_eq(polls_after(0), POLLS);
	ck_assert_uint_eq(polls_after(0), 0);
	/* One that does not lead any more does not look. */
	atomic_store(&kernel.polls, 0);
	send_request(0, FUSE_FSYNC, "");
	await(&kernel.waiting);
	kernel.fake_clock = false;
	end();
	ck_assert_uint_eq(atomic_load(&kernel.polls), 0);
}
END_TEST

/* ---- threads that end ---- */

static unsigned threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	unsigned n = 0;

	while ((entry = readdir(dir)))
		n += *entry->d_name != '.';
	closedir(dir);
	return n;
}

/* Requests that take long, and one more thread that waits for the next. */
static void keep_busy(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		await(&kernel.waiting);
		send_request(i, FUSE_FSYNC, "b");
		await_begin(i);
	}
	await(&kernel.waiting);
	sem_post(&kernel.waiting);
}

/* Ten idle ones are kept. Those that have ended are joined when others start. */
START_TEST(idle_threads)
{
	enum { IDLE = 10, MORE = 3 };
	const unsigned before = threads();

	begin(2);
	start();
	keep_busy(IDLE + MORE);
	ck_assert_uint_ge(threads(), before + 1 + IDLE + MORE);
	for (unsigned i = 0; i < IDLE + MORE; i++)
		go_on(i);
	while (threads() > before + 2 + IDLE)
		sched_yield();
	ck_assert_uint_eq(atomic_load(&kernel.joined), 0);
	keep_busy(IDLE + MORE);
	ck_assert_uint_eq(atomic_load(&kernel.joined), MORE);
	for (unsigned i = 0; i < IDLE + MORE; i++)
		go_on(i);
	end();
}
END_TEST

/* A thread is woken up until it ends. */
START_TEST(threads_are_woken_up)
{
	begin(2);
	kernel.fake_clock = kernel.fake_join = true;
	start();
	keep_busy(3);
	for (unsigned i = 0; i < 3; i++)
		go_on(i);
	end();
	ck_assert_uint_eq(atomic_load(&kernel.joins), 5);
	/* In the end a signal comes, and nothing from the kernel. */
	begin(2);
	start();
	keep_busy(2);
	go_on(0);
	go_on(1);
	atomic_store(&kernel.exited, true);
	while (!atomic_load(&kernel.served)) {
		/* A signal that comes right before sem_wait() does not end it, so another one is sent. The
		 * pause lets the thread run on. */
		pthread_kill(kernel.serving, SIGRTMIN);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	end();
}
END_TEST

START_TEST(errors)
{
	begin(1);
	atomic_store(&kernel.no_threads, true);
	ck_assert_int_eq(h5_serve(session), -EAGAIN);
	ck_assert(!atomic_load(&kernel.exited));
	atomic_store(&kernel.no_threads, false);
	atomic_store(&kernel.no_memory, true);
	ck_assert_int_eq(h5_serve(session), -ENOMEM);
	atomic_store(&kernel.no_memory, false);
	/* Without more threads the first one serves all. */
	start();
	await(&kernel.waiting);
	atomic_store(&kernel.no_threads, true);
	for (unsigned i = 0; i < 4; i++) {
		send_request(i, FUSE_FSYNC, "b");
		await_begin(i);
		go_on(i);
		ck_assert(is_same(0, i));
	}
	end();
	begin(1);
	atomic_store(&kernel.result, -EINTR);
	start();
	send_request(0, FUSE_LOOKUP, "b");
	await_begin(0);
	atomic_store(&kernel.result, -EIO);
	go_on(0);
	__real_pthread_join(kernel.serving, NULL);
	ck_assert_int_eq(kernel.rc, -EIO);
	close(kernel.ours);
	close(kernel.theirs);
}
END_TEST

UNIT_MAIN("loop", brief_requests, requests_that_wait, unwanted_requests, large_reads, looking_out,
	  idle_threads, threads_are_woken_up, errors)
