#include "fuse/signals.h"

#include <signal.h>
#include <stddef.h>

static bool is_ignored(int number)
{
	struct sigaction action;

	return !sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN;
}

void h5_signals_begin(bool foreground)
{
	/* libfuse takes over only those that have their default action. A process whose SIGCHLD is ignored
	 * does not learn how its children end. */
	static const int needed[] = {SIGTERM, SIGCHLD, SIGUSR1};
	static const int of_terminal[] = {SIGHUP, SIGINT};
	sigset_t blocked;

	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		signal(needed[i], SIG_DFL);
	for (size_t i = 0; i < sizeof of_terminal / sizeof *of_terminal; i++)
		if (!foreground || !is_ignored(of_terminal[i]))
			signal(of_terminal[i], SIG_DFL);
	/* Calls then fail with EPIPE, and those beyond RLIMIT_FSIZE with EFBIG, which their callers handle.
	 */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
}
