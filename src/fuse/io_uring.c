#include "config.h"

#include "fuse/io_uring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_FUSE_IO_URING

#define SWITCH "/sys/module/fuse/parameters/enable_uring"

/* '\0': this kernel has no such switch. */
static char read_switch(void)
{
	int fd = open(SWITCH, O_RDONLY | O_CLOEXEC);
	char value = '\0';

	if (fd < 0)
		return '\0';
	if (read(fd, &value, 1) != 1)
		value = '\0';
	close(fd);
	return value;
}

/* True: neither the kernel's sysctl nor a container forbids this process io_uring. */
static bool may_make_rings(void)
{
	struct io_uring_params params = {0};
	int fd = (int)syscall(SYS_io_uring_setup, 1, &params);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Why the mount that the options ask for cannot use it; NULL: nothing that can be told before the mount. */
static const char *find_obstacle(const struct h5_options *o)
{
	char value;

	/* In libfuse 3.18 two threads that reply at once, such as the one of fuse/invalidate, can mix up a
	 * queue. */
	if (o->set.writable)
		return "only on a mount for reading";
	/* A request cannot be interrupted, and those of one processor are served one after the other: both is
	 * too long for a server that does not answer. */
	if (o->url)
		return "not for a file behind a URL";
	if (o->single_thread)
		return "not with -s";
	value = read_switch();
	if (!value)
		return "this kernel has no FUSE over io_uring, or its module is not loaded (no " SWITCH ")";
	if (value != 'Y')
		return "it is switched off in this kernel (" SWITCH ")";
	return may_make_rings() ? NULL : "this process may not use io_uring";
}

void h5_io_uring_choose(struct h5_mount *m, struct fuse_conn_info *connection)
{
	m->io_uring &= !!(connection->capable & FUSE_CAP_OVER_IO_URING);
	/* An environment variable of libfuse may ask for it, too. */
	if (!m->io_uring)
		connection->want &= ~(unsigned)FUSE_CAP_OVER_IO_URING;
}

static void *wait_for_end(void *arg)
{
	for (;;)
		pause();
	return arg;
}

void h5_io_uring_prepare(const struct h5_mount *m)
{
	pthread_t thread;

	if (!m->io_uring || pthread_create(&thread, NULL, wait_for_end, NULL))
		return;
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

static fuse_log_func_t passed_to; /* NULL: standard error */
static bool failed;

/* libfuse says only in its log that it goes on without. */
static void notice_failure(enum fuse_log_level level, const char *format, va_list args)
{
	failed |= level <= FUSE_LOG_INFO && strstr(format, "io-uring");
	if (passed_to)
		passed_to(level, format, args);
	else
		vfprintf(stderr, format, args);
}

void h5_io_uring_start(struct h5_mount *m, fuse_log_func_t log)
{
	struct fuse_buf request = {0};
	sigset_t all, before;
	int n;

	if (!m->io_uring)
		return;
	do
		n = fuse_session_receive_buf(m->session, &request);
	while (n == -EINTR && !fuse_session_exited(m->session));
	failed = n <= 0;
	passed_to = log;
	fuse_set_log_func(notice_failure);
	/* The new threads take no signals: those are for the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (n > 0)
		fuse_session_process_buf(m->session, &request);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	fuse_set_log_func(log);
	m->io_uring &= !failed;
	free(request.mem);
}

#else

static const char *find_obstacle(const struct h5_options *o)
{
	(void)o;
	return "h5fs was built with a libfuse that has none (libfuse 3.18 with liburing has)";
}

void h5_io_uring_choose(struct h5_mount *m, struct fuse_conn_info *connection)
{
	(void)m;
	(void)connection;
}

void h5_io_uring_prepare(const struct h5_mount *m)
{
	assert(!m->io_uring);
}

void h5_io_uring_start(struct h5_mount *m, fuse_log_func_t log)
{
	(void)m;
	(void)log;
}

#endif

const char *h5_io_uring_settle(struct h5_options *o)
{
	bool asked = o->io_uring != H5_IO_URING_NO && o->command == H5_COMMAND_MOUNT;
	const char *obstacle = asked ? find_obstacle(o) : NULL;

	if (obstacle && o->io_uring == H5_IO_URING_YES)
		return obstacle;
	if (obstacle)
		o->io_uring = H5_IO_URING_NO;
	return NULL;
}
