/* Pages of ListObjectsV2, which an object store lists a prefix in (Amazon's API reference of S3, version
 * 2006-03-01). Pure functions over the body of an answer, which may be hostile. */
#ifndef H5_REMOTE_LISTING_H
#define H5_REMOTE_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is directly below the prefix. */
struct h5_listing_item {
	const char *name; /* borrowed until `take` returns: a name that a file can have */
	bool is_folder;	  /* keys go on behind it with a slash; the rest is 0 then */
	uint64_t size;
	int64_t modified; /* seconds since 1970; 0: not known */
	uint64_t version; /* another one for other contents; never 0 */
};

struct h5_listing_page {
	bool (*take)(void *arg, const struct h5_listing_item *item); /* false: no memory */
	void *arg;
	char *next;   /* the token of the next page, for the caller to free; NULL: it was the last one */
	bool is_used; /* there is a key that begins with the prefix, also if its name is left out */
};

enum { H5_LISTING_NAME = 255 }; /* bytes of a name, at most */

/* Reads a page, whose keys all begin with `prefix`; that is empty or ends with a slash. Calls page->take for
 * each item, in any order. Keys whose next part is no name of a file are left out: an empty one, "." and
 * "..", one with a NUL, or a longer one. -EINVAL: it is no such page; -ENOMEM. Then page->next is NULL. */
int h5_listing_read(const char *text, size_t n, const char *prefix, struct h5_listing_page *page);

/* A number for an ETag, with quotes or without. 0: it is empty. */
uint64_t h5_listing_version(const char *tag);

#endif
