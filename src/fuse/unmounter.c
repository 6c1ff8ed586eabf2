#include "fuse/unmounter.h"

#include "base/error.h"
#include "fuse/log.h"
#include "fuse/mountinfo.h"
#include "fuse/mountpoint.h"
#include "fuse/unmount.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct h5_unmounter {
	pid_t pid;
	int fd;
};

/* Messages of the daemon. There is also H5_LOG_LINE: the text after it goes to the system log. */
enum {
	UNMOUNT = 'u',
	ABORT = 'a',
	LEAVE = 'l',  /* another process has unmounted */
	TRY = 't',    /* unmount unless the mount is in use */
	DETACH = 'd', /* leave the process group; the unmounter answers */
};

enum { MESSAGE_MAX = 2048 };

/* ---- the process ---- */

struct keeper {
	int fd; /* socket to the daemon; if it ends, the daemon has died */
	pid_t daemon;
	struct fuse_session *session;
	const struct h5_options *options;
	const char *mountpoint;
	const struct h5_mounted *mounted;
};

static pid_t daemon_of_this;

/* A signal to all processes of h5fs, or to this one, shall end the mount. It is passed on to the daemon,
 * which may have something to commit. */
static void pass_on(int number)
{
	int saved = errno;

	(void)number;
	if (getppid() == daemon_of_this)
		kill(daemon_of_this, SIGTERM);
	errno = saved;
}

static void hear_signals(void)
{
	static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};
	struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
	sigset_t none;

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		sigaction(numbers[i], &action, NULL);
	signal(SIGUSR1, SIG_IGN); /* the daemon handles it */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool is_same(const struct h5_mounted *a, const struct h5_mounted *b)
{
	return a->major == b->major && a->minor == b->minor && (!a->id || a->id == b->id);
}

/* True: the top mount at the mount point is still ours. */
static bool is_ours(const struct keeper *k)
{
	char type[H5_MOUNTINFO_TYPE];
	struct h5_mounted top;
	int rc;

	if (!k->mounted->major && !k->mounted->minor)
		return true;
	rc = h5_mountinfo_top(k->mountpoint, &top, type);
	return rc ? rc != -ENOENT : is_same(k->mounted, &top);
}

static void unmount(const struct keeper *k)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	/* libfuse polls and closes the device. We have closed it, and its number may belong to another file
	 * by now, so the number gets /dev/null first.
	 */
	if (null >= 0 && dup2(null, fuse_session_fd(k->session)) >= 0)
		fuse_session_unmount(k->session);
}

static void answer(const struct keeper *k)
{
	send(k->fd, "", 1, MSG_NOSIGNAL);
}

/* Serves one message. False: it was the last one. */
static bool serve(const struct keeper *k, const char *message)
{
	switch (message[0]) {
	case H5_LOG_LINE:
		h5_log("%s", message + 1);
		return true;
	case ABORT:
		umount2(k->mountpoint, MNT_FORCE);
		return true;
	case DETACH:
		/* From now on Ctrl-C reaches only the daemon. */
		setsid();
		answer(k);
		return true;
	case TRY:
		if (is_ours(k))
			h5_unmount(k->mountpoint, true); /* the daemon learns the result from the device */
		return true;
	case UNMOUNT:
		if (is_ours(k))
			unmount(k);
		return false;
	default:
		return false;
	}
}

static _Noreturn void keep(struct keeper *k)
{
	char message[MESSAGE_MAX + 1] = "";
	ssize_t n;

	h5_log_reopen(k->daemon);
	/* Closes all descriptors of the daemon, or its lock and the session would outlive it. */
	k->fd = dup2(k->fd, STDERR_FILENO + 1);
	closefrom(STDERR_FILENO + 2);
	daemon_of_this = k->daemon;
	prctl(PR_SET_NAME, "h5fs-unmounter");
	hear_signals();
	answer(k);
	do {
		n = recv(k->fd, message, MESSAGE_MAX, 0);
		message[n > 0 ? n : 0] = 0;
	} while ((n < 0 && errno == EINTR) || (n > 0 && serve(k, message)));
	if (n <= 0 && is_ours(k)) {
		unmount(k);
		h5_log("%s: the daemon has died: unmounted", k->mountpoint);
	}
	h5_mountpoint_remove(k->options);
	_exit(EXIT_SUCCESS);
}

/* ---- in the daemon ---- */

static int wait_for_answer(const struct h5_unmounter *u)
{
	char ready;
	ssize_t n;

	do
		n = read(u->fd, &ready, 1); /* recv() is not allowed in the sandbox */
	while (n < 0 && errno == EINTR);
	return n == 1 ? 0 : -ECHILD;
}

int h5_unmounter_start(struct fuse_session *session, const struct h5_options *options,
		       const struct h5_mounted *mounted, struct h5_unmounter **out)
{
	struct keeper k = {.daemon = getpid(),
			   .session = session,
			   .options = options,
			   .mountpoint = options->mountpoint,
			   .mounted = mounted};
	struct h5_unmounter *u = calloc(1, sizeof *u);
	int ends[2], rc;

	if (!u)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		rc = -errno;
		free(u);
		return rc;
	}
	k.fd = ends[1];
	u->fd = ends[0];
	u->pid = fork();
	if (!u->pid)
		keep(&k);
	rc = u->pid < 0 ? -errno : 0;
	close(ends[1]);
	if (!rc)
		rc = wait_for_answer(u); /* it has closed our descriptors */
	if (rc) {
		close(u->fd);
		free(u);
		return rc;
	}
	h5_log_through(u->fd);
	*out = u;
	return 0;
}

static bool ask(struct h5_unmounter *u, char what)
{
	return send(u->fd, &what, 1, MSG_NOSIGNAL) == 1;
}

void h5_unmounter_detach(struct h5_unmounter *u)
{
	if (u && ask(u, DETACH))
		(void)wait_for_answer(u);
}

void h5_unmounter_try(struct h5_unmounter *u)
{
	if (u)
		(void)ask(u, TRY);
}

void h5_unmounter_abort(struct h5_unmounter *u)
{
	if (u)
		(void)ask(u, ABORT);
}

/* The device tells. */
static bool is_unmounted(struct fuse_session *session)
{
	struct pollfd fd = {.fd = fuse_session_fd(session)};

	return poll(&fd, 1, 0) == 1 && fd.revents & POLLERR;
}

/* Closes the device, and lets libfuse free its data about the mount. It must not unmount, since another mount
 * may be there by now. A pipe without a reader looks to libfuse like the device of a file system that is not
 * mounted any more. */
static void forget(struct fuse_session *session)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return;
	close(ends[0]);
	if (dup3(ends[1], fuse_session_fd(session), O_CLOEXEC) >= 0)
		fuse_session_unmount(session);
	close(ends[1]);
}

void h5_unmounter_stop(struct h5_unmounter *u, struct fuse_session *session)
{
	bool done = u && ask(u, is_unmounted(session) ? LEAVE : UNMOUNT);

	if (u) {
		while (waitpid(u->pid, NULL, 0) < 0 && errno == EINTR)
			;
		h5_log_through(-1);
		close(u->fd);
		free(u);
	}
	if (done)
		forget(session);
	else
		fuse_session_unmount(session);
}
