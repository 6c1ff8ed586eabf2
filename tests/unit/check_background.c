/* How the daemon begins: its signals, and the way to the background. */
#include "base/error.h"
#include "fuse/background.h"
#include "fuse/log.h"
#include "fuse/signals.h"
#include "unit.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char logged[256];

void __wrap_h5_log(const char *format, ...);

void __wrap_h5_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(logged, sizeof logged, format, args);
	va_end(args);
}

static long refuse(int code)
{
	errno = code;
	return -1;
}

/* ---- signals ---- */

static void hear(int number)
{
	(void)number;
}

static void check_action(int number, void (*handler)(int))
{
	struct sigaction action;

	ck_assert(!sigaction(number, NULL, &action));
	ck_assert_msg(action.sa_handler == handler, "signal %d", number);
}

START_TEST(signals_of_a_daemon)
{
	static const int numbers[] = {SIGTERM, SIGCHLD, SIGUSR1, SIGHUP, SIGINT, SIGPIPE, SIGXFSZ};
	enum { N = sizeof numbers / sizeof *numbers };
	struct sigaction before[N];
	sigset_t mask, now;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (unsigned i = 0; i < N; i++)
		sigaction(numbers[i], NULL, &before[i]);
	for (unsigned foreground = 0; foreground < 2; foreground++)
		for (unsigned ignored = 0; ignored < 2; ignored++) {
			sigfillset(&now);
			sigprocmask(SIG_SETMASK, &now, NULL);
			for (unsigned i = 0; i < N; i++)
				signal(numbers[i], ignored ? SIG_IGN : hear);
			h5_signals_begin(foreground);
			for (unsigned i = 0; i < 3; i++)
				check_action(numbers[i], SIG_DFL);
			/* nohup protects from the signals of a terminal. */
			for (unsigned i = 3; i < 5; i++)
				check_action(numbers[i], foreground && ignored ? SIG_IGN : SIG_DFL);
			for (unsigned i = 5; i < 7; i++)
				check_action(numbers[i], SIG_IGN);
			sigprocmask(SIG_BLOCK, NULL, &now);
			for (int number = 1; number < SIGRTMIN; number++)
				ck_assert_int_eq(sigismember(&now, number), number == SIGUSR1);
		}
	for (unsigned i = 0; i < N; i++)
		sigaction(numbers[i], &before[i], NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}
END_TEST

/* ---- the background ---- */

/* The daemon as the command sees it. Calls are interrupted once. */
static struct {
	bool there; /* else the calls are libcheck's */
	pid_t pid;  /* what fork() gives, or a negative errno */
	int told;   /* what read() gives */
	int status; /* what waitpid() finds, or a negative errno */
	int ready;  /* the descriptor that was read */
	bool interrupted;
	jmp_buf exit; /* where the command exits to, with the status */
	int exit_status;
} daemon_process;

pid_t __wrap_fork(void);
pid_t __real_fork(void);
ssize_t __wrap_read(int fd, void *buf, size_t n);
ssize_t __real_read(int fd, void *buf, size_t n);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
pid_t __real_waitpid(pid_t pid, int *status, int options);
_Noreturn void __wrap__exit(int status);
_Noreturn void __real__exit(int status);

pid_t __wrap_fork(void)
{
	if (!daemon_process.there)
		return __real_fork();
	return daemon_process.pid < 0 ? (pid_t)refuse(-daemon_process.pid) : daemon_process.pid;
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	if (!daemon_process.there)
		return __real_read(fd, buf, n);
	ck_assert_uint_eq(n, 1);
	daemon_process.ready = fd;
	daemon_process.interrupted = !daemon_process.interrupted;
	return daemon_process.interrupted ? refuse(EINTR) : daemon_process.told;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	if (!daemon_process.there)
		return __real_waitpid(pid, status, options);
	ck_assert(pid == daemon_process.pid && !options);
	daemon_process.interrupted = !daemon_process.interrupted;
	if (daemon_process.interrupted)
		return (pid_t)refuse(EINTR);
	if (daemon_process.status < 0)
		return (pid_t)refuse(-daemon_process.status);
	*status = daemon_process.status;
	return pid;
}

_Noreturn void __wrap__exit(int status)
{
	if (!daemon_process.there)
		__real__exit(status);
	daemon_process.exit_status = status;
	longjmp(daemon_process.exit, 1);
}

static void begin_and_exit(struct h5_background *b)
{
	if (!setjmp(daemon_process.exit)) {
		daemon_process.there = true;
		h5_background_begin(b);
		daemon_process.there = false;
		ck_abort_msg("the command goes on");
	}
	daemon_process.there = false;
}

START_TEST(the_command_waits_for_its_daemon)
{
	static const struct {
		int told, status, exit_status;
		const char *message;
	} cases[] = {{1, 0, 0, ""},
		     {0, 0, 0, ""},
		     {0, 7 << 8, 7, ""},
		     {0, SIGKILL, 128 + SIGKILL, "ended by signal 9"},
		     {0, -ECHILD, EXIT_FAILURE, ""}};
	const unsigned before = unit_descriptors();

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_background b = {.ready = -1};

		memset(&daemon_process, 0, sizeof daemon_process);
		daemon_process.pid = 4711;
		daemon_process.told = cases[i].told;
		daemon_process.status = cases[i].status;
		daemon_process.exit_status = -1;
		*logged = 0;
		begin_and_exit(&b);
		ck_assert_int_eq(daemon_process.exit_status, cases[i].exit_status);
		ck_assert_str_eq(logged, cases[i].message);
		/* The other end is closed, or it would not learn that the daemon has died. */
		close(daemon_process.ready);
		ck_assert_uint_eq(unit_descriptors(), before + 1);
		close(daemon_process.ready - 1);
		ck_assert_uint_eq(unit_descriptors(), before);
	}
}
END_TEST

START_TEST(no_process)
{
	static const struct {
		int error, rc;
	} cases[] = {{EAGAIN, -ENOMEM}, {ENOMEM, -ENOMEM}, {EPERM, -EPERM}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_background b = {.ready = -1};
		const unsigned before = unit_descriptors();
		int rc;

		daemon_process.pid = -cases[i].error;
		daemon_process.there = true;
		rc = h5_background_begin(&b);
		daemon_process.there = false;
		ck_assert_int_eq(rc, cases[i].rc);
		ck_assert_int_eq(h5_error_last()->code, cases[i].rc);
		/* It ends anyway. */
		for (int fd = b.null; unit_descriptors() > before; fd++)
			close(fd);
	}
}
END_TEST

UNIT_MAIN("background", signals_of_a_daemon, the_command_waits_for_its_daemon, no_process)
