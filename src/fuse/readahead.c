#include "fuse/readahead.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reading is slower with less and with more: `make bench`, row contiguous. */
#define KIBIBYTES "2048"

int h5_readahead_open(const struct h5_mounted *mounted)
{
	char path[80];

	snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", mounted->major, mounted->minor);
	return open(path, O_RDWR | O_CLOEXEC);
}

void h5_readahead_raise(int fd)
{
	char now[32] = "";

	if (fd < 0)
		return;
	if (read(fd, now, sizeof now - 1) > 0 && atol(now) < atol(KIBIBYTES)) {
		ssize_t n = pwrite(fd, KIBIBYTES, strlen(KIBIBYTES), 0);

		(void)n; /* if it cannot be raised, it stays as it is */
	}
	close(fd);
}
