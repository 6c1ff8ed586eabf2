/* Messages in the file's shared message heaps. Specification III.I. */
#ifndef H5_OBJECT_SHARED_TABLE_H
#define H5_OBJECT_SHARED_TABLE_H

#include "format/object_header.h"
#include "format/shared_message.h"
#include "object/damage.h"
#include "object/fractal_heap.h"

/* Copies the shared message of that type and heap ID (H5_SHARED_ID_SIZE bytes). After a failure *message is
 * {0}. */
int h5_shared_table_get(struct h5_file *file, enum h5_message_type type, const uint8_t *id,
			struct h5_heap_object *message);

/* Verifies the table, its indexes and their heaps; notes what is damaged. A file without a table is fine. */
int h5_shared_table_check(struct h5_file *file, struct h5_damage *damage);

/* Visits the records of all messages in the heaps, with the types of messages that the index of each has
 * (h5_shared_type_flag()). A result other than 0 ends it. */
typedef int h5_shared_count_visit(void *arg, unsigned types, const struct h5_shared_record *record);
int h5_shared_table_counts(struct h5_file *file, h5_shared_count_visit *visit, void *arg);

/* Visits all space of the table, its indexes and their heaps. -ENOTSUP: attributes are shared, too, so that
 * not every use of a committed datatype is known. */
int h5_shared_table_extents(struct h5_file *file, h5_extent_visit *visit, void *arg);

#endif
