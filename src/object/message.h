/* The body of a header message. It may be shared: then it lies in another object's header, or in the file's
 * heap of shared messages. Specification IV.A.2, "Shared message". */
#ifndef H5_OBJECT_MESSAGE_H
#define H5_OBJECT_MESSAGE_H

#include "object/fractal_heap.h"
#include "object/object.h"

struct h5_message_body {
	struct h5_reader reader;    /* over the body; borrowed until release */
	struct h5_lru_entry *ref;   /* the other header, NULL: none */
	struct h5_heap_object copy; /* from a heap; {0}: none */
};

int h5_message_open(struct h5_file *file, const struct h5_message *message, struct h5_message_body *body);
/* Opens a shared message inside another one, such as the datatype of an attribute; `r` is over its shared
 * form. */
int h5_message_open_shared(struct h5_file *file, enum h5_message_type type, struct h5_reader *r,
			   struct h5_message_body *body);
void h5_message_release(struct h5_file *file, struct h5_message_body *body); /* may run twice */

/* The type of a committed datatype or of a dataset; h5_datatype_free(). -ENODATA: it has none. */
struct h5_datatype;
int h5_object_datatype(struct h5_file *file, const struct h5_object *object, struct h5_datatype **type);

#endif
