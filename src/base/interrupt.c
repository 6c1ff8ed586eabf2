#include "base/interrupt.h"

#include "base/error.h"

#include <stddef.h>

static _Thread_local struct h5_interrupt request;

void h5_interrupt_begin(h5_interrupt_ask *ask, void *arg)
{
	request.ask = ask;
	request.arg = arg;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &request.begin);
}

void h5_interrupt_get(struct h5_interrupt *interrupt)
{
	*interrupt = request;
}

void h5_interrupt_set(const struct h5_interrupt *interrupt)
{
	request = *interrupt;
}

int h5_interrupt_check(void)
{
	struct timespec now;

	if (!request.ask || !request.ask(request.arg))
		return 0;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_sec - request.begin.tv_sec < 1 + (now.tv_nsec < request.begin.tv_nsec))
		return 0;
	return h5_fail(-EINTR, H5_UNDEF, "interrupted");
}
