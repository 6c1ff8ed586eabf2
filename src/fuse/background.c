#include "fuse/background.h"

#include "base/error.h"
#include "fuse/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BY_SIGNAL = 128 }; /* as shells have it */

/* What the command does while the daemon starts. It runs no exit handlers, since all of these are the
 * daemon's. */
static _Noreturn void wait_for_daemon(pid_t daemon, int ready)
{
	int status;
	ssize_t n;
	char c;

	do
		n = read(ready, &c, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		_exit(EXIT_SUCCESS);
	while (waitpid(daemon, &status, 0) < 0)
		if (errno != EINTR)
			_exit(EXIT_FAILURE);
	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	h5_log("ended by signal %d", WTERMSIG(status));
	_exit(BY_SIGNAL + WTERMSIG(status));
}

int h5_background_begin(struct h5_background *b)
{
	int ends[2];
	pid_t pid;

	b->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (b->null < 0)
		return h5_fail(-errno, H5_UNDEF, "/dev/null: %s", strerror(errno));
	if (pipe2(ends, O_CLOEXEC))
		return h5_fail(-errno, H5_UNDEF, "pipe: %s", strerror(errno));
	pid = fork();
	/* EAGAIN has the number of EWOULDBLOCK, which is the error of a file that is locked. */
	if (pid < 0)
		return h5_fail(errno == EAGAIN ? -ENOMEM : -errno, H5_UNDEF, "fork: %s", strerror(errno));
	if (pid) {
		close(ends[1]);
		wait_for_daemon(pid, ends[0]);
	}
	close(ends[0]);
	b->ready = ends[1];
	return 0;
}

void h5_background_detach(struct h5_background *b)
{
	if (chdir("/"))
		h5_log("/: %s", strerror(errno));
	if (b->ready < 0)
		return;
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		dup2(b->null, fd);
	if (b->null > STDERR_FILENO)
		close(b->null);
}

void h5_background_ready(struct h5_background *b)
{
	if (b->ready < 0)
		return;
	setsid();
	while (write(b->ready, "", 1) < 0 && errno == EINTR)
		;
	close(b->ready);
	b->ready = -1;
}
