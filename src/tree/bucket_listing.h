/* What an object store lists below the mounted prefix, folder by folder. Listings are kept for some seconds,
 * so that whoever lists a folder and then looks at each of its names makes a request for each page, not for
 * each name. A folder is named by what its keys have behind the mounted prefix: "" or "a/b/". */
#ifndef H5_TREE_BUCKET_LISTING_H
#define H5_TREE_BUCKET_LISTING_H

#include "io/remote.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { H5_BUCKET_KEEP = 2 }; /* seconds that a listing is believed; as long as it took, if that is more */

struct h5_bucket;
struct h5_bucket_folder;

struct h5_bucket_entry {
	char *name;	  /* owned */
	bool is_folder;	  /* the rest is 0 then */
	uint64_t size;	  /* bytes */
	int64_t modified; /* seconds since 1970; 0: not known */
	uint64_t version; /* never 0 */
};

/* Lists the mounted prefix for the first time: errors as of h5_remote_list(), and -ENOENT: there is no key
 * with that prefix. `remote`: borrowed. */
int h5_bucket_open(struct h5_remote *remote, struct h5_bucket **bucket);
void h5_bucket_close(struct h5_bucket *bucket); /* NULL is fine */
struct h5_remote *h5_bucket_remote(const struct h5_bucket *bucket);

/* All of a folder, sorted by name; the caller owes an h5_bucket_put(). -ENOENT: there is no such folder; -EIO
 * with detail: the answer is no listing. */
int h5_bucket_list(struct h5_bucket *bucket, const char *below, struct h5_bucket_folder **folder);
const struct h5_bucket_entry *h5_bucket_entries(const struct h5_bucket_folder *folder, size_t *count);
void h5_bucket_put(struct h5_bucket *bucket, struct h5_bucket_folder *folder);

/* One entry of a folder. `anew`: as it is now, not as it was listed before. entry->name is NULL. -ENOENT: it
 * is not there; else as above. */
int h5_bucket_find(struct h5_bucket *bucket, const char *below, const char *name, bool anew,
		   struct h5_bucket_entry *entry);

#endif
