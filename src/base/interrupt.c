#include "base/interrupt.h"

#include "base/error.h"

#include <stddef.h>

static _Thread_local struct h5_interrupt request;

void h5_interrupt_begin(h5_interrupt_ask *ask, void *arg)
{
	request.ask = ask;
	request.limit = NULL;
	request.arg = arg;
	request.spent = 0;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &request.begin);
}

void h5_interrupt_bound(h5_interrupt_limit *limit)
{
	request.limit = limit;
}

void h5_interrupt_get(struct h5_interrupt *interrupt)
{
	*interrupt = request;
}

void h5_interrupt_set(const struct h5_interrupt *interrupt)
{
	request = *interrupt;
	request.spent = 0; /* what the other thread has used does not count here */
}

void h5_interrupt_pause(struct h5_interrupt *interrupt)
{
	h5_interrupt_get(interrupt);
	h5_interrupt_begin(NULL, NULL);
}

static uint64_t milliseconds(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000 + (uint64_t)t->tv_nsec / 1000000;
}

/* Counts processor time: a request must not fail because others run too, or because a disk is slow. */
static int check_limit(uint64_t passed)
{
	struct timespec worked;

	if (request.spent && (!request.most || passed <= request.most))
		return 0;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &worked);
	if (!request.spent) {
		request.spent = milliseconds(&worked) + 1;
		request.most = request.limit(request.arg);
		return 0;
	}
	if (milliseconds(&worked) <= request.spent + request.most)
		return 0;
	return h5_fail(-EFBIG, H5_UNDEF, "more work than a request may take (max_work)");
}

int h5_interrupt_check(void)
{
	struct timespec now;
	bool unwanted;

	if (!request.ask && !request.limit)
		return 0;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_nsec == request.begin.tv_nsec && now.tv_sec == request.begin.tv_sec)
		return 0;
	unwanted = request.ask && request.ask(request.arg);
	if (!unwanted && !request.limit)
		return 0;
	if (now.tv_sec - request.begin.tv_sec < 1 + (now.tv_nsec < request.begin.tv_nsec))
		return 0;
	if (unwanted)
		return h5_fail(-EINTR, H5_UNDEF, "interrupted");
	return check_limit(milliseconds(&now) - milliseconds(&request.begin));
}
