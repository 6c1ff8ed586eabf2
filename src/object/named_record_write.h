/* Changes of the indexes of dense storage, in the transaction (change/transaction.h): records of the version
 * 2 B-trees by name and by creation order. Specification III.A.2, record types 5, 6, 8 and 9.
 *
 * Each is a unit of change. The header of an index may move: then *info changes. The objects of the heap that
 * records lead to are the caller's. */
#ifndef H5_OBJECT_NAMED_RECORD_WRITE_H
#define H5_OBJECT_NAMED_RECORD_WRITE_H

#include "object/fractal_heap_write.h"
#include "object/named_message.h"

/* What an index knows of a message. */
/* Bytes of heap IDs, and log2 of the heap's address space. */
struct h5_fractal_heap_parameters h5_named_heap_parameters(enum h5_named_kind kind);

/* New indexes: info->name_index, and with `by_order` info->order_index, else that is H5_UNDEF. */
int h5_named_index_create(struct h5_file *file, enum h5_named_kind kind, bool by_order,
			  struct h5_named_info *info);
/* -ENOENT: no record has the name. */
int h5_named_index_find(struct h5_file *file, enum h5_named_kind kind, const struct h5_named_info *info,
			const char *name, size_t name_size, struct h5_named_entry *entry);
/* Adds the records of a message, or replaces those that have its name and its order. */
int h5_named_index_set(struct h5_file *file, enum h5_named_kind kind, struct h5_named_info *info,
		       const char *name, size_t name_size, const struct h5_named_entry *entry);
/* Removes the records of a message; *entry: what was there. -ENOENT: there is none of that name. */
int h5_named_index_remove(struct h5_file *file, enum h5_named_kind kind, struct h5_named_info *info,
			  const char *name, size_t name_size, struct h5_named_entry *entry);
/* Visits the space of the indexes. */
int h5_named_index_extents(struct h5_file *file, enum h5_named_kind kind, const struct h5_named_info *info,
			   h5_extent_visit *visit, void *arg);
/* Gives up the space of the indexes. -ENOTSUP: there are shared messages. */
int h5_named_index_free(struct h5_file *file, enum h5_named_kind kind, struct h5_named_info *info);

#endif
