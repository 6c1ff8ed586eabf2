/* Files that are far away: an io over what the fetcher (remote/fetcher.h) brings. */
#ifndef H5_IO_REMOTE_H
#define H5_IO_REMOTE_H

#include "io/io.h"
#include "io/remote_protocol.h"

#include <sys/types.h>

/* The link to a fetcher, and the cache of what it has brought. */
struct h5_remote;

struct h5_remote_statistics {
	uint64_t requests;  /* HTTP requests, repeated ones included */
	uint64_t bytes;	    /* of their bodies */
	uint64_t repeated;  /* requests that were repeated */
	uint64_t from_disk; /* bytes that were in the disk cache */
	uint64_t unused;    /* bytes that nobody has read so far, in whole cells */
};

/* What a fetcher needs of the link; it is for the forked process alone. */
struct h5_remote_end {
	int fd;
	uint8_t *memory;
	uint32_t cells;
};

/* `cache`: bytes of the cache; fewer than H5_REMOTE_CACHE_LEAST become as many. `url`: what the file is
 * called, without a query. `connections`: HTTP requests that the fetcher makes at once, up to
 * H5_REMOTE_CONNECTIONS. *end: the caller closes end->fd once it has forked the fetcher. */
#define H5_REMOTE_CACHE_LEAST ((size_t)16 << 20)
int h5_remote_new(const char *url, size_t cache, unsigned connections, struct h5_remote **remote,
		  struct h5_remote_end *end);
/* The process that serves the link; h5_remote_close() waits for its end. */
void h5_remote_set_fetcher(struct h5_remote *remote, pid_t fetcher);
/* The function gets what the log shall say. It is called by threads that read, without a lock. */
void h5_remote_set_listener(struct h5_remote *remote, void (*say)(const char *note));
/* All waiting for bytes ends with -EIO, also later. NULL is fine. */
void h5_remote_end(struct h5_remote *remote);
/* Ends the fetcher. All files must be closed. NULL is fine. */
void h5_remote_close(struct h5_remote *remote);

/* Opens a file. `name`: relative to the folder of the mounted file's URL; "": the mounted file. -ENOENT,
 * -EACCES, -EOPNOTSUPP (the server gives no ranges), -EIO: no answer in spite of all tries. Later reads are
 * -ESTALE once the file has turned out to be another one. */
int h5_io_open_remote(struct h5_remote *remote, const char *name, struct h5_io **io);
/* The same, for files that are replaced while they are open. Each `version`, a number that the caller
 * chooses, is a file of its own, which is opened anew even if another version of the name is open; 0: any
 * that is open will do. `first`: how many bytes come with the opening, if the file is not open yet. */
int h5_io_open_remote_version(struct h5_remote *remote, const char *name, uint64_t version, uint64_t first,
			      struct h5_io **io);
/* The server's name for the contents of an open file: h5_listing_version() (remote/listing.h) of the ETag
 * that came with the opening. 0: there was none, or that version is not open. */
uint64_t h5_remote_tag(struct h5_remote *remote, const char *name, uint64_t version);
/* Gets a page of a listing (remote/listing.h): of the keys that begin with the mounted prefix and `below`.
 * `token`: the page before has named it; NULL: the first page. The caller frees *page. Errors as of
 * h5_io_open_remote(). */
int h5_remote_list(struct h5_remote *remote, const char *below, const char *token, char **page, size_t *n);

/* What the mounted file is called: its URL without the query. Borrowed. */
const char *h5_remote_url(const struct h5_remote *remote);
/* Why the mounted file could not be opened. */
enum h5_remote_reason h5_remote_reason(const struct h5_remote *remote);
/* True: bytes of a file that was opened could not be had, so far. */
bool h5_remote_is_incomplete(struct h5_remote *remote);
void h5_remote_statistics(struct h5_remote *remote, struct h5_remote_statistics *statistics);

#endif
