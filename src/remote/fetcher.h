/* The fetcher: a process of its own that speaks HTTP, so that the daemon, which parses the file, needs
 * neither a socket to the outside nor a credential. io/remote_protocol.h is what the two say to each other.
 */
#ifndef H5_REMOTE_FETCHER_H
#define H5_REMOTE_FETCHER_H

#include "io/remote.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All texts are borrowed. */
struct h5_fetcher_options {
	const char *url;	  /* of the mounted file, with its query */
	const char *headers;	  /* a file of header lines that the URL's own server gets; NULL: none */
	const char *s3_endpoint;  /* URL of an object store; NULL: Amazon's */
	bool s3_anonymous;	  /* requests to an object store are not signed */
	bool alone;		  /* no files beside the URL are asked for */
	int disk_cache;		  /* the folder of the disk cache (remote/disk_folder.h); -1: none */
	uint64_t disk_cache_size; /* bytes of all that is in it */
	size_t cache;		  /* bytes of the memory that both share */
	uint64_t whole;		  /* bytes of files that may come whole, if the server gives no ranges */
	unsigned connections;	  /* HTTP requests at once, up to H5_REMOTE_CONNECTIONS */
	unsigned tries;		  /* of a request */
	unsigned timeout; /* seconds without an answer, or with less than a cell of it: a try has failed */
	/* Takes rights away from the process once it is set up; NULL: nothing. `readable`: files, and folders
	 * with all beneath them, that it goes on to read; ends with NULL. `folder`: that of the disk cache,
	 * which it goes on to use; -1: there is none. */
	void (*confine)(const char *const *readable, int folder);
};

/* Starts the process; h5_remote_close() ends it. Must run before the first thread starts. It takes variables
 * that may hold credentials out of this process's environment. -ENOTSUP: there is no libcurl. */
int h5_fetcher_start(const struct h5_fetcher_options *options, struct h5_remote **remote);

/* The version of libcurl; NULL: there is none. */
const char *h5_fetcher_version(void);

#endif
