/* Changes of dense storage, in the transaction (change/transaction.h): links or attributes as objects of a
 * fractal heap, with indexes by name and perhaps by creation order.
 *
 * Each function is a unit of change. If it fails, all is as it was, *info too. If *info differs afterwards
 * (h5_dense_has_moved()), the caller changes the info message in the object header, in the same transaction:
 * the commit writes it after all that it leads to. With an index by creation order the indexes always move,
 * so that the message switches to both of them, and to the next creation order, at once.
 *
 * The messages are the caller's: they hold the name that is given beside them, and links that track their
 * order hold that too. The caller counts references to what they lead to, and the creation order. */
#ifndef H5_OBJECT_DENSE_WRITE_H
#define H5_OBJECT_DENSE_WRITE_H

#include "object/named_message.h"

/* The order of creation of attributes of an object that does not track it. */
enum { H5_NO_ATTRIBUTE_ORDER = 65535 };

/* True: the info message has to change. */
static inline bool h5_dense_has_moved(const struct h5_named_info *before, const struct h5_named_info *after)
{
	return before->heap != after->heap || before->name_index != after->name_index ||
	       before->order_index != after->order_index;
}

/* New storage without messages. */
int h5_dense_create(struct h5_file *file, enum h5_named_kind kind, bool tracks_order, bool indexes_order,
		    struct h5_named_info *info);
/* Adds a message. `order`: of its creation, if the object tracks it; no other message may have it. -EEXIST:
 * there is a message of that name. */
int h5_dense_insert(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind,
		    const char *name, size_t name_size, const void *message, size_t message_size,
		    int64_t order);
/* Gives the message of that name another value; its order of creation stays. -ENOENT: there is none.
 * -ENOTSUP: it is a shared one. */
int h5_dense_replace(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind,
		     const char *name, size_t name_size, const void *message, size_t message_size);
/* The same for a message of another name, or of the same one. No other message may have the new name. */
int h5_dense_rename(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind,
		    const char *name, size_t name_size, const char *new_name, size_t new_size,
		    const void *message, size_t message_size);
/* Removes the message of that name. -ENOENT, -ENOTSUP: as above. */
int h5_dense_remove(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind,
		    const char *name, size_t name_size);
/* Visits the space of all of the storage: heap and indexes. */
int h5_dense_extents(struct h5_file *file, enum h5_named_kind kind, const struct h5_named_info *info,
		     h5_extent_visit *visit, void *arg);
/* Gives up all of the storage, with all messages. Then there is none: info->heap is H5_UNDEF. -ENOTSUP: some
 * messages are shared. */
int h5_dense_free(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind);

#endif
