#include "base/buf.h"
#include "base/hash_table.h"
#include "offline/check_private.h"

#include <stdlib.h>
#include <string.h>

enum { PATH_MOST = 1 << 16 }; /* bytes of a path; a longer one is cut */

/* An object that a hard link leads to. */
struct h5_check_found {
	uint64_t address;
	uint64_t uses;	 /* links, and messages that refer to it */
	uint32_t count;	 /* of them, as its header has it */
	bool is_counted; /* its header could be read */
	char *path;	 /* owned; NULL: h5_check_next() has gone on from it, and its count was right then */
	struct h5_check_found *next;
	UT_hash_handle hh;
};

int h5_check_add(struct h5_check_walk *walk, uint64_t address, const char *path)
{
	struct h5_check_found *found;

	HASH_FIND(hh, walk->by_address, &address, sizeof address, found);
	if (found) {
		found->uses++;
		if (!found->path)
			found->path = strdup(path);
		return found->path ? 0 : h5_fail(-ENOMEM, address, "check: out of memory");
	}
	found = calloc(1, sizeof *found);
	if (found)
		found->path = strdup(path);
	if (!found || !found->path) {
		free(found);
		return h5_fail(-ENOMEM, address, "check: out of memory");
	}
	found->address = address;
	found->uses = 1;
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

	/* The path is needed no more, unless it is to be told; the address stays, so that the object is not
	 * added again. */
	if (now && now->is_counted && now->uses == now->count) {
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

void h5_check_set_count(struct h5_check_walk *walk, uint32_t count)
{
	walk->now->count = count;
	walk->now->is_counted = true;
}

/* The root group counts the superblock's use. An object that has no name any more may still be used. */
int h5_check_counts(struct h5_checker *checker)
{
	const struct h5_check *check = checker->check;
	bool all = !check->damaged && !check->unknown && !checker->usage.incomplete;
	int rc = 0;

	for (const struct h5_check_found *found = checker->walk.first; found && !rc; found = found->next) {
		checker->path = found->path ? found->path : "(counts)";
		if (!found->is_counted)
			continue;
		if (found->uses > found->count)
			rc = h5_damage_note(&checker->damage,
					    h5_fail(-EUCLEAN, found->address,
						    "object header: counts %u links to it, but there are %ju",
						    found->count, (uintmax_t)found->uses));
		else if (all && found->uses < found->count)
			h5_check_tell_excess(
				checker,
				h5_fail(-EOVERFLOW, found->address,
					"object header: counts %u links to it, but there are %ju, so "
					"its space will not be given back",
					found->count, (uintmax_t)found->uses));
	}
	return rc;
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
