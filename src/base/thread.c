#include "base/thread.h"

#include <signal.h>

int h5_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, int heard)
{
	sigset_t blocked, before;
	int rc;

	sigfillset(&blocked);
	if (heard)
		sigdelset(&blocked, heard);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	rc = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}
