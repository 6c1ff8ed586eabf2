/* The daemon's end of what it shares with the fetcher: the socket, the memory, the requests under way. There
 * is no thread for the replies: of the threads that wait for bytes, one at a time waits at the socket. */
#ifndef H5_IO_REMOTE_LINK_H
#define H5_IO_REMOTE_LINK_H

#include "io/remote.h"
#include "io/remote_cells.h"
#include "io/remote_protocol.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What a thread that opens a file waits for. */
struct h5_remote_answer {
	bool there;
	struct h5_remote_reply reply;
};

struct h5_remote_pending {
	bool busy, opens;
	uint32_t id, file, count;
	uint64_t n;
	struct h5_remote_answer *answer; /* borrowed; NULL: nobody waits for the reply itself */
	uint32_t cells[H5_REMOTE_PART_CELLS];
};

/* Cells of a file, [first, end), that were announced and not asked for yet, and how many to ask for at once.
 */
struct h5_remote_span {
	uint32_t file;
	uint64_t first, end, part;
};

enum { H5_REMOTE_ANNOUNCED = 1 << 12 }; /* spans */

struct h5_remote {
	int fd;
	pid_t fetcher; /* 0: not started */
	char *url;     /* owned; without its query, which may be a secret */
	uint8_t *memory;
	unsigned connections; /* HTTP requests that the fetcher makes at once */
	struct h5_cells cells;
	pthread_mutex_t lock; /* guards all that follows, and the cells */
	pthread_cond_t arrived;
	bool receiving;			 /* a thread waits at the socket */
	bool ended;			 /* the fetcher is gone, or the daemon wants nothing more */
	bool stale[H5_REMOTE_FILES];	 /* files that are not any more what was opened */
	uint64_t sizes[H5_REMOTE_FILES]; /* bytes */
	/* By number; NULL: it is not given out. A file that is opened again keeps its number and its cells.
	 */
	char *names[H5_REMOTE_FILES]; /* owned; "/": a page of a listing */
	int64_t mtimes[H5_REMOTE_FILES];
	bool known[H5_REMOTE_FILES]; /* it was opened */
	/* How many ios use the file. One that nobody uses stays open for a while, since it may be opened
	 * again. `left` is the number of the last close of an io of it, out of `leavings`. */
	uint32_t users[H5_REMOTE_FILES];
	uint64_t left[H5_REMOTE_FILES], leavings;
	uint64_t versions[H5_REMOTE_FILES]; /* as h5_io_open_remote_version() was given it */
	uint64_t tags[H5_REMOTE_FILES];	    /* h5_listing_version() of its ETag */
	uint32_t next_id, under_way;
	char failure[H5_REMOTE_TEXT];  /* of the last request that failed */
	char note[H5_REMOTE_TEXT];     /* for the log; "": none */
	void (*say)(const char *note); /* NULL: nobody wants to know */
	bool incomplete;	       /* bytes of an open file could not be had */
	enum h5_remote_reason reason;  /* why the first file could not be opened */
	struct h5_remote_statistics statistics;
	uint32_t announced_first, announced_count;	      /* io/remote_plan.h */
	struct h5_remote_span announced[H5_REMOTE_ANNOUNCED]; /* a ring */
	struct h5_remote_pending pending[H5_REMOTE_UNDER_WAY];
};

/* All of these with the lock. */

/* Asks for n bytes at the cell `first` of a file, of which no byte may be in the table. Takes fewer if there
 * is not room for all: *taken cells. -EAGAIN: for none, or too many requests are under way; -ESTALE: the file
 * is another one by now, which is asked for no more; -EIO: there is no fetcher. */
int h5_remote_ask(struct h5_remote *r, uint32_t file, uint64_t first, uint64_t n, bool urgent,
		  uint32_t *taken);
/* What opens a file. */
struct h5_remote_opening {
	enum h5_remote_what what; /* H5_REMOTE_OPEN or H5_REMOTE_LIST */
	uint32_t file;
	const char *name; /* borrowed */
	size_t size;	  /* bytes of it */
	uint64_t first;	  /* bytes that are asked for, at most */
};

/* Asks for the first bytes of a file by its name, and waits for the answer. */
int h5_remote_ask_open(struct h5_remote *r, const struct h5_remote_opening *opening,
		       struct h5_remote_reply *reply);
/* Closes the files that nobody uses, but keeps those that were used last; `all`: closes these, too. It never
 * closes a file that has requests under way. */
void h5_remote_close_unused(struct h5_remote *r, bool all);
/* Waits until a reply may have come, at most for about a second. -EINTR: the request is not wanted any more;
 * -EIO: there is no fetcher. */
int h5_remote_wait(struct h5_remote *r);
/* Takes the replies that are there, without waiting. */
void h5_remote_take(struct h5_remote *r);

#endif
