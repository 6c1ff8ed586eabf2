/* What the daemon and the fetcher say to each other (doc/architecture.md, "Files that are far away").
 *
 * They share memory, an array of cells of H5_REMOTE_CELL bytes, and a socket that keeps messages apart. A
 * request names the cells that its bytes shall go to; the reply says that they are there. Neither side trusts
 * the other: the fetcher checks each number of a request before it writes, and the daemon copies bytes out of
 * the shared memory before anything looks at them. */
#ifndef H5_IO_REMOTE_PROTOCOL_H
#define H5_IO_REMOTE_PROTOCOL_H

#include <stdint.h>

enum {
	H5_REMOTE_CELL = 16 << 10, /* bytes of a cell */
	H5_REMOTE_PART = 8 << 20,  /* bytes of a request, at most */
	H5_REMOTE_PART_CELLS = H5_REMOTE_PART / H5_REMOTE_CELL,
	H5_REMOTE_FIRST = 1 << 20,   /* bytes that opening a file asks for */
	H5_REMOTE_LISTING = 8 << 20, /* bytes of a page of a listing, at most */
	H5_REMOTE_UNDER_WAY = 128,   /* requests that may wait for their reply */
	H5_REMOTE_CONNECTIONS = 64,  /* HTTP requests at once, at most */
	H5_REMOTE_FILES = 16384,     /* files that may be open at once */
	H5_REMOTE_NAME = 4096,	     /* bytes of a name, its NUL included */
	H5_REMOTE_TEXT = 200,	     /* bytes of an error's text, its NUL included */
};

enum h5_remote_what {
	H5_REMOTE_OPEN = 1, /* the first bytes of a file, and what is known of it */
	H5_REMOTE_READ,	    /* bytes of an open file */
	H5_REMOTE_LIST,	    /* opens a page of a listing of an object store, as H5_REMOTE_OPEN opens a file */
	H5_REMOTE_CLOSE,    /* closes an open file that has no request under way; there is no reply */
};

/* After it stand the numbers of `cells` cells (uint32_t), then `name` bytes of a name without a NUL at its
 * end. Offsets begin cells; the bytes end at the end of a cell, or of the file. */
struct h5_remote_request {
	uint32_t what;
	uint32_t id;
	uint32_t file;	 /* the daemon numbers its files: 0, 1, ... */
	uint32_t urgent; /* 1: a reader waits for it */
	uint32_t cells;
	/* H5_REMOTE_OPEN: relative to the mounted file's folder; 0: that file itself. H5_REMOTE_LIST: what
	 * keys have behind the mounted prefix, a NUL, and the token of the page; the first page has none. */
	uint32_t name;
	uint64_t offset, n;
};

/* Why a request failed; the exit status of a mount depends on it. */
enum h5_remote_reason {
	H5_REMOTE_FINE,
	H5_REMOTE_NOT_FOUND,
	H5_REMOTE_FORBIDDEN,
	H5_REMOTE_NO_RANGES,
	H5_REMOTE_NETWORK, /* no answer, or none that is good */
	H5_REMOTE_CERTIFICATE,
	H5_REMOTE_CHANGED, /* the file is not the one that was opened */
	H5_REMOTE_OTHER,
};

struct h5_remote_reply {
	uint32_t id;
	int32_t code; /* 0 or a negative errno */
	uint32_t reason;
	uint32_t requests;	   /* HTTP requests that were made */
	uint32_t repeated;	   /* of these, since the one before had failed */
	uint64_t received;	   /* bytes of bodies */
	uint64_t from_disk;	   /* bytes in the cells that were in the disk cache */
	uint64_t got;		   /* bytes in the cells; H5_REMOTE_READ: n, unless it failed */
	uint64_t size;		   /* of the file; H5_REMOTE_OPEN */
	int64_t mtime;		   /* seconds since 1970; 0: not known */
	uint64_t version;	   /* h5_listing_version() of its ETag; 0: it has none; H5_REMOTE_OPEN */
	char text[H5_REMOTE_TEXT]; /* of an error; if there is none, of what the log shall say. "": nothing */
};

/* A request with all that may follow it. */
struct h5_remote_message {
	struct h5_remote_request request;
	uint32_t cells[H5_REMOTE_PART_CELLS];
	char name[H5_REMOTE_NAME]; /* where it stands if there are as many cells */
};

#endif
