/* The head of an HTTP response: what h5fs needs of it. Pure: it is fed line by line. */
#ifndef H5_REMOTE_RESPONSE_H
#define H5_REMOTE_RESPONSE_H

#include "remote/grant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	H5_RESPONSE_HEAD = 64 << 10, /* bytes of a head, at most */
	H5_RESPONSE_TAG = 256,	     /* bytes of an entity tag, its NUL included */
	H5_RESPONSE_VERSION = 1025,  /* of an object's version */
};

/* All zero: nothing has been read. */
struct h5_response {
	unsigned status; /* 0: none yet */
	bool ended;	 /* the head has ended: what follows, but for another head, are trailers */
	bool malformed;	 /* a field that matters makes no sense, or stands there twice with two values */
	bool encoded;	 /* Content-Encoding: the body is not made of the file's bytes */
	bool ranged;	 /* Content-Range gives bytes: first to last of size */
	bool whole;	 /* Content-Range gives only the size (of a 416) */
	uint64_t first, last, size;
	bool measured; /* Content-Length is there */
	uint64_t length;
	bool private; /* Cache-Control says that nothing of it may be stored (RFC 9111, 5.2.2.5) */
	char tag[H5_RESPONSE_TAG]; /* ETag with its quotes; "": none */
	char modified[64];	   /* Last-Modified; "": none */
	/* What object stores add: x-amz-version-id, x-amz-bucket-region; "": none. */
	char version[H5_RESPONSE_VERSION], region[H5_REGION];
	size_t seen; /* bytes of heads */
};

/* Takes a line of a head. A status line begins a new head: that of the response after an interim one.
 * Trailers (RFC 9112, 7.1.2) change nothing. False: all of these are longer than H5_RESPONSE_HEAD, or have a
 * NUL. */
bool h5_response_line(struct h5_response *response, const char *line, size_t n);
/* True: the tag may be compared byte by byte by the server (If-Match). */
bool h5_response_is_strong(const char *tag);

#endif
