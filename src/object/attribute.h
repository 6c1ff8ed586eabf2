/* The attributes of an object, one by name or all of them (object/named_message.h). Specification IV.A.2.m.
 */
#ifndef H5_OBJECT_ATTRIBUTE_H
#define H5_OBJECT_ATTRIBUTE_H

#include "format/dataspace.h"
#include "format/datatype.h"
#include "format/shared_message.h"
#include "object/named_message.h"

struct h5_attribute {
	char *name;		  /* owned, NUL-terminated */
	struct h5_datatype *type; /* owned */
	struct h5_dataspace space;
	const uint8_t *data; /* elements x element size bytes */
	size_t size;
	struct h5_heap_object memory; /* where the data are; {0}: they are borrowed */
};

/* On success h5_attribute_release(). -ENODATA: there is no attribute of that name. */
int h5_attribute_lookup(struct h5_file *file, const struct h5_object *object, const char *name,
			struct h5_attribute *attribute);
/* The same through the cache of chunks, so that many readers of one attribute have it in memory once.
 * h5_lru_put() of that cache gives the reference back. `state` is a number for the present contents of the
 * file; it differs after each change. */
int h5_attribute_get(struct h5_file *file, uint64_t object, const char *name, uint64_t state,
		     struct h5_lru_entry **ref, const struct h5_attribute **attribute);
void h5_attribute_release(struct h5_attribute *attribute); /* may run twice */

/* The attribute in a message, without its name; its data are borrowed from the message. On success
 * h5_attribute_release(). */
int h5_attribute_read(struct h5_file *file, struct h5_reader message, struct h5_attribute *attribute);

/* All attributes by name (increasing by bytes), no name twice:
 *
 *   rc = h5_attribute_begin(&walk, file, object);
 *   while (!rc && (rc = h5_attribute_next(&walk, &attribute)) > 0)
 *           rc = ...;
 *   h5_attribute_end(&walk);
 *
 * One whose value is damaged has a NULL type, and h5_error_last() tells why. One whose name cannot be read is
 * left out; the first such error comes at the end. */
struct h5_attribute_walk {
	struct h5_named_walk messages;
	struct h5_attribute attribute; /* the current one; its data are the message's */
};

int h5_attribute_begin(struct h5_attribute_walk *walk, struct h5_file *file, const struct h5_object *object);
/* 1: *attribute is the next one, borrowed until the next call; 0: the end; else an error. */
int h5_attribute_next(struct h5_attribute_walk *walk, const struct h5_attribute **attribute);
void h5_attribute_end(struct h5_attribute_walk *walk); /* also after a failure */

/* The address of the committed datatype that the attribute refers to, by its message; H5_UNDEF: the message
 * has a type of its own, or one in the file's heap of shared messages. The count of a committed datatype
 * counts such messages besides links. */
int h5_attribute_committed(struct h5_reader message, uint64_t *address);
/* What the message uses in the file's heaps of shared messages: its datatype, its dataspace. Returns how many
 * there are; none if the message is damaged. */
unsigned h5_attribute_shared(struct h5_reader message, struct h5_shared_use uses[2]);

#endif
