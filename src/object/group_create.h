/* Makes groups of the new style: whose links are messages (object/named_message.h). */
#ifndef H5_OBJECT_GROUP_CREATE_H
#define H5_OBJECT_GROUP_CREATE_H

#include "object/group.h"
#include "object/named_message_write.h"

struct h5_new_group {
	bool tracks_order, indexes_order; /* the links' order of creation */
};

/* Makes a group without links. Nothing refers to it yet. */
int h5_group_create(struct h5_file *file, const struct h5_new_group *how, uint64_t *address);
/* Makes a group of the old style one of the new style, at the same address and with the same links, in a
 * unit. libhdf5 does the same to a group that gets a link which a symbol table cannot hold. Links that cannot
 * be read fail it. */
int h5_group_renew(struct h5_file *file, uint64_t address);

/* The message of a link, whose body the caller frees. It has the order of creation if the group tracks it.
 * -ENAMETOOLONG: it would have more than 65,535 bytes. */
int h5_link_message(const struct h5_file *file, const struct h5_link *link, bool tracks_order, int64_t order,
		    struct h5_new_named *message);

#endif
