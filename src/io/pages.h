/* An io over two others: some runs of its bytes lie in `pages`, the rest in `origin`. */
#ifndef H5_IO_PAGES_H
#define H5_IO_PAGES_H

#include "io/io.h"

/* Bytes that lie side by side in both. */
struct h5_io_run {
	uint64_t start, n; /* of the io; start + n does not overflow */
	uint64_t offset;   /* in `pages`; offset + n does not overflow */
};

struct h5_io_paged {
	struct h5_io *origin, *pages; /* borrowed */
	uint64_t origin_end;	      /* what lies behind it in `origin` is no part of it: zeros */
	uint64_t end;		      /* where the bytes of the io end */
	struct h5_io_run *runs;	      /* by ascending start; none reaches into the next. free() */
	size_t count;
	size_t *open_runs;	/* `count` is taken off this when the io closes; borrowed */
	uint64_t device, inode; /* its identity */
	struct timespec time;	/* of the last change; 0: the later one of both */
};

/* Takes the runs over. */
int h5_io_open_paged(const struct h5_io_paged *paged, struct h5_io **io);

#endif
