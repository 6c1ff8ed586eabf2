#include "fuse/readahead.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* With less, and with more, reading is slower: `make bench`, row contiguous. */
#define KIBIBYTES "2048"

int h5_readahead_open(const char *mountpoint)
{
	struct statx st;
	char path[80];

	/* Not asking for what is new: that would be a request to ourselves. */
	if (statx(AT_FDCWD, mountpoint, AT_STATX_DONT_SYNC, STATX_TYPE, &st))
		return -1;
	snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", st.stx_dev_major, st.stx_dev_minor);
	return open(path, O_RDWR | O_CLOEXEC);
}

void h5_readahead_raise(int fd)
{
	char now[32] = "";

	if (fd < 0)
		return;
	/* What cannot be raised stays as it is. */
	if (read(fd, now, sizeof now - 1) > 0 && atol(now) < atol(KIBIBYTES) &&
	    pwrite(fd, KIBIBYTES, strlen(KIBIBYTES), 0) < 0)
		now[0] = 0;
	close(fd);
}
