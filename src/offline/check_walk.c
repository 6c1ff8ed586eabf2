#include "base/buf.h"
#include "offline/check_private.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum { PATH_MOST = 1 << 16 }; /* bytes of a path; a longer one is cut */

/* An object that a hard link leads to. */
struct h5_check_found {
	uint64_t address;
	char *path; /* owned; NULL: h5_check_next() has gone on from it */
	struct h5_check_found *next;
	UT_hash_handle hh;
};

int h5_check_add(struct h5_check_walk *walk, uint64_t address, const char *path)
{
	struct h5_check_found *found;

	HASH_FIND(hh, walk->by_address, &address, sizeof address, found);
	if (found)
		return 0;
	found = calloc(1, sizeof *found);
	if (found)
		found->path = strdup(path);
	if (!found || !found->path) {
		free(found);
		return h5_fail(-ENOMEM, address, "check: out of memory");
	}
	found->address = address;
	HASH_ADD(hh, walk->by_address, address, sizeof found->address, found);
	if (!found->hh.tbl) {
		free(found->path);
		free(found);
		return h5_fail(-ENOMEM, address, "check: out of memory");
	}
	if (walk->last)
		walk->last->next = found;
	else
		walk->first = found;
	walk->last = found;
	return 0;
}

int h5_check_add_link(struct h5_checker *checker, const char *name, size_t size, uint64_t address)
{
	struct h5_buf path;
	int rc;

	h5_buf_init(&path, PATH_MOST);
	h5_buf_text(&path, strcmp(checker->path, "/") ? checker->path : "");
	h5_buf_byte(&path, '/');
	h5_buf_add(&path, name, size);
	h5_buf_byte(&path, 0);
	rc = path.err == -ENOMEM
		     ? -ENOMEM
		     : h5_check_add(&checker->walk, address, path.err ? checker->path : path.data);
	h5_buf_release(&path);
	return rc;
}

bool h5_check_next(struct h5_check_walk *walk, uint64_t *address, const char **path)
{
	struct h5_check_found *now = walk->now;

	/* The path is needed no more; the address stays, so that the object is not added again. */
	if (now) {
		free(now->path);
		now->path = NULL;
	}
	walk->now = now ? now->next : walk->first;
	if (!walk->now)
		return false;
	*address = walk->now->address;
	*path = walk->now->path;
	return true;
}

void h5_check_walk_release(struct h5_check_walk *walk)
{
	HASH_CLEAR(hh, walk->by_address);
	for (struct h5_check_found *found = walk->first, *next; found; found = next) {
		next = found->next;
		free(found->path);
		free(found);
	}
	*walk = (struct h5_check_walk){0};
}
