/* Messages of object headers that become the object's own, so that they can change.
 *
 * A header may refer to a message in the file's heap of shared messages, or have a message of which an index
 * of shared messages knows (object/shared_table.h). Others may use the same message, so it never changes: the
 * header gets one of its own in its place, of which no index knows, and the index counts one use less. */
#ifndef H5_OBJECT_OWN_MESSAGE_H
#define H5_OBJECT_OWN_MESSAGE_H

#include "change/object_header_edit.h"

/* False: the message is in another object's header, or is shared in a file that SWMR readers have open. */
bool h5_own_message_is_possible(const struct h5_file *file, const struct h5_message *message);
/* -ENOTSUP: there is no message of the type, or none that h5_own_message_update() could change. */
int h5_own_message_check(struct h5_file *file, uint64_t address, enum h5_message_type type);

/* Makes the header's first message of the type its own, with the same body. Nothing is done if it is so
 * already, or if there is none. A unit of change. -ENOTSUP: the message is in another object's header, or the
 * header or the index has a form in which the change is not possible. */
int h5_own_message(struct h5_file *file, uint64_t address, enum h5_message_type type);
/* The same; then h5_header_update(), all in one unit. */
int h5_own_message_update(struct h5_file *file, uint64_t address, enum h5_message_type type,
			  h5_message_update *update, const void *arg);

#endif
