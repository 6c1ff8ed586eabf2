/* Changes of the file's shared message table, in the transaction (change/transaction.h). Specification III.I.
 *
 * Its indexes count who uses a message in one of its heaps. They also have messages that only one object
 * header holds: whoever makes an equal message reads that header, so the record must go with it. */
#ifndef H5_OBJECT_SHARED_TABLE_WRITE_H
#define H5_OBJECT_SHARED_TABLE_WRITE_H

#include "format/shared_message.h"
#include "store/file.h"

#include <stddef.h>

/* The object header goes, and with it these uses of messages in the heaps; header H5_UNDEF: only the uses go.
 * A message that nobody uses any more is removed with its record, and so are the uses that an attribute in
 * the heap makes of others. A file without a table is fine. -ENOTSUP, -EUCLEAN: an index cannot be changed. A
 * unit of change. */
int h5_shared_table_drop(struct h5_file *file, uint64_t header, const struct h5_shared_use *uses,
			 size_t count);

#endif
