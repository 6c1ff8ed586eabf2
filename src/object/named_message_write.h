/* Inserts, replaces and removes named messages of an object: its links, or its attributes, in the storage
 * that the object has, compact or dense (object/named_message.h).
 *
 * Compact messages become dense where libhdf5's would: if there would be more than the object's limit, by
 * default 8, or if one is larger than a message of a header can be. Dense ones stay dense until the last one
 * goes. A version 1 header has no dense attributes. While the header has a message that is shared, or of
 * which an index of shared messages knows, its messages stay compact. A message that takes the place of such
 * a one is not shared; the use of the old one is the caller's.
 *
 * Each change is a unit (change/transaction.h), so any failure, -ENOENT too, fails the units around it. What
 * was decoded from the header of the object is no longer valid. Names are any bytes. -ENOTSUP: the header has
 * a form in which the change is not possible. -EUCLEAN: the info message cannot be read. */
#ifndef H5_OBJECT_NAMED_MESSAGE_WRITE_H
#define H5_OBJECT_NAMED_MESSAGE_WRITE_H

#include "object/named_message.h"

struct h5_new_named {
	enum h5_named_kind kind;
	const char *name;
	size_t name_size;
	const void *body; /* the message, which holds the name, too */
	size_t size;
};

/* -EEXIST: there is a message of that name. -E2BIG: it is larger than the storage can have. -ENOSPC: the
 * object has had as many attributes as can be counted. */
int h5_named_insert(struct h5_file *file, uint64_t object, const struct h5_new_named *message);
/* The message keeps its order of creation. -ENOENT: there is none of that name. -E2BIG: as above. */
int h5_named_replace(struct h5_file *file, uint64_t object, const struct h5_new_named *message);
/* Puts a message of another name in the place of the one of that name, in one step. -ENOENT: as above. No
 * other message may have the new name. */
int h5_named_rename(struct h5_file *file, uint64_t object, const char *name, size_t name_size,
		    const struct h5_new_named *message);
/* -ENOENT: there is none of that name. */
int h5_named_remove(struct h5_file *file, uint64_t object, enum h5_named_kind kind, const char *name,
		    size_t name_size);

#endif
