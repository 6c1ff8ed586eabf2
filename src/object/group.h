/* Groups: links by name and all of them, from symbol tables, link messages, and dense storage (fractal heap
 * and version 2 B-tree). Specification IV.A.2.c, IV.A.2.g, IV.A.2.r, III.B, III.C, III.D,
 * III.G. */
#ifndef H5_OBJECT_GROUP_H
#define H5_OBJECT_GROUP_H

#include "format/link.h"
#include "object/object.h"

/* One link. Its pointers are valid during a visit; h5_group_lookup() gives an owned one. Names and targets
 * may hold any byte. */
struct h5_link {
	uint8_t type; /* enum h5_link_type, or a user-defined class */
	const char *name;
	size_t name_size;
	bool has_order;
	int64_t order;	    /* creation order */
	uint64_t address;   /* hard: of the object header */
	const char *target; /* soft: the path; external: the path inside the other file */
	size_t target_size;
	const char *file; /* external */
	size_t file_size;
	/* hard, from a symbol table whose entry caches it: the kind is known without the object header */
	enum h5_object_kind cached_kind;
	void *owned; /* group.c's */
};

enum h5_link_order {
	H5_LINKS_BY_NAME,     /* increasing by bytes */
	H5_LINKS_BY_CREATION, /* where the group tracks it, else by name */
};

/* -ENOENT: no such name. *link is owned: h5_link_release(). */
int h5_group_lookup(struct h5_file *file, const struct h5_object *group, const char *name, size_t size,
		    struct h5_link *link);
void h5_link_release(struct h5_link *link); /* may run twice */

/* Every link; a result other than 0 of `visit` ends the walk and is returned. No name comes twice. Links that
 * cannot be read are left out: after all others have been visited, the first such error is returned. */
typedef int h5_link_visit(void *arg, const struct h5_link *link);
int h5_group_iterate(struct h5_file *file, const struct h5_object *group, enum h5_link_order order,
		     h5_link_visit *visit, void *arg);

/* Number of links, cheaply where the header tells. */
int h5_group_count(struct h5_file *file, const struct h5_object *group, uint64_t *count);

#endif
