#include "offline/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t came;

static void note(int number)
{
	came = number;
}

void h5_stop_hear(void)
{
	static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};
	struct sigaction action = {.sa_handler = note}, before;

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!sigaction(numbers[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
}

int h5_stop_signal(void)
{
	return came;
}

void h5_stop_obey(void)
{
	int number = came;

	if (!number)
		return;
	signal(number, SIG_DFL);
	raise(number);
}
