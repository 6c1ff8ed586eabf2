/* Changes of the file's shared message table, in the transaction (change/transaction.h). Specification III.I.
 *
 * Its indexes count who uses a message in one of its heaps. They also have messages that only one object
 * header holds: whoever makes an equal message reads that header, so the record must go with it. */
#ifndef H5_OBJECT_SHARED_TABLE_WRITE_H
#define H5_OBJECT_SHARED_TABLE_WRITE_H

#include "format/object_header.h"
#include "format/shared_message.h"
#include "store/file.h"

#include <stddef.h>
#include <stdint.h>

/* What the message of an object header uses; its body is borrowed from the message. -ENOTSUP: it is a message
 * of another object header; -ENODATA: neither of a heap nor of an index. */
int h5_shared_use_of(const struct h5_file *file, const struct h5_message *message, struct h5_shared_use *use);

/* An attribute that used the committed datatype at the address is gone. */
typedef int h5_type_drop(void *arg, uint64_t type);

/* These uses go, which the object header has made, or something in the object's dense storage. A message that
 * nobody uses any more is removed with its record, and so are the uses that an attribute makes of others. All
 * objects that use one message together use a committed datatype once: `drop_type` is called when the message
 * goes; NULL: there are no attributes among the uses. A file without a table is fine. -ENOTSUP, -EUCLEAN: an
 * index cannot be changed. A unit of change. */
int h5_shared_table_drop(struct h5_file *file, uint64_t header, const struct h5_shared_use *uses,
			 size_t count, h5_type_drop *drop_type, void *arg);
/* The same, and the object header goes: no index knows of any of its messages then. */
int h5_shared_table_drop_header(struct h5_file *file, uint64_t header, const struct h5_shared_use *uses,
				size_t count, h5_type_drop *drop_type, void *arg);

#endif
