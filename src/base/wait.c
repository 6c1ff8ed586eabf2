#include "base/wait.h"

#include <stddef.h>

static _Thread_local h5_wait_notice *notice;

void h5_wait_set(h5_wait_notice *function)
{
	notice = function;
}

bool h5_wait_is_noticed(void)
{
	return notice;
}

void h5_wait_begins(void)
{
	h5_wait_notice *function = notice;

	notice = NULL;
	if (function)
		function();
}
