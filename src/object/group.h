/* The links of a group, one by name or all of them: from a symbol table, or from link messages
 * (object/named_message.h). Specification IV.A.2.g, IV.A.2.r, III.B, III.C, III.D. */
#ifndef H5_OBJECT_GROUP_H
#define H5_OBJECT_GROUP_H

#include "format/named_message.h"
#include "format/symbol_table.h"
#include "object/named_message.h"
#include "object/object.h"

/* The storage of a group's links. There is nothing to release. */
struct h5_group_storage {
	bool is_old; /* in a symbol table, else as messages */
	struct h5_symbol_table table;
	struct h5_named_storage messages;
};

/* -ENOTDIR: the object is no group. */
int h5_group_storage_find(struct h5_file *file, const struct h5_object *group,
			  struct h5_group_storage *storage);

/* On success h5_link_release(). -ENOENT: there is no link of that name. */
int h5_group_lookup(struct h5_file *file, const struct h5_object *group, const char *name, size_t size,
		    struct h5_link *link);

/* All links, no name twice:
 *
 *   rc = h5_link_begin(&walk, file, group, order);
 *   while (!rc && (rc = h5_link_next(&walk, &link)) > 0)
 *           rc = ...;
 *   h5_link_end(&walk);
 *
 * Links that cannot be read are left out; the first such error comes at the end. */
struct h5_link_walk {
	bool is_old;
	struct h5_named_walk messages;
	struct h5_name_list symbols; /* old: of a symbol table */
	size_t next;
	struct h5_damage damage;
	struct h5_link link; /* the current one */
};

int h5_link_begin(struct h5_link_walk *walk, struct h5_file *file, const struct h5_object *group,
		  enum h5_name_order order);
/* 1: *link is the next one, borrowed until the next call; 0: the end; else an error. */
int h5_link_next(struct h5_link_walk *walk, const struct h5_link **link);
void h5_link_end(struct h5_link_walk *walk); /* also after a failure */

/* The number of links, by the header of the index if there is one. */
int h5_group_count(struct h5_file *file, const struct h5_object *group, uint64_t *count);

#endif
