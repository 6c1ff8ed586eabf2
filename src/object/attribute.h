/* Attributes of an object, in its header and in dense storage. Specification IV.A.2.m, IV.A.2.v. */
#ifndef H5_OBJECT_ATTRIBUTE_H
#define H5_OBJECT_ATTRIBUTE_H

#include "format/dataspace.h"
#include "format/datatype.h"
#include "object/object.h"

struct h5_attribute {
	char *name;		  /* owned, NUL-terminated */
	struct h5_datatype *type; /* owned */
	struct h5_dataspace space;
	const uint8_t *data; /* elements x element size bytes */
	size_t size;
	uint8_t *block;		 /* owned: where the data are */
	struct h5_charge charge; /* of the block */
};

/* -ENODATA: no attribute of that name. */
int h5_attribute_lookup(struct h5_file *file, const struct h5_object *object, const char *name,
			struct h5_attribute *attribute);
/* The same through the cache of chunks, so that many readers of one attribute have it in memory once: a
 * reference, which h5_lru_put() of that cache gives back. `state` stands for the contents of the file as they
 * are now. */
int h5_attribute_get(struct h5_file *file, uint64_t object, const char *name, uint64_t state,
		     struct h5_lru_entry **ref, const struct h5_attribute **attribute);
void h5_attribute_release(struct h5_attribute *attribute); /* may run twice */

/* Every attribute by name (increasing by bytes); borrowed during the visit. One that cannot be decoded is
 * visited with its name and a NULL type where the name can be told, and left out where not: then, after all
 * others have been visited, the first such error is returned. A result other than 0 of `visit` ends the walk
 * and is returned. */
typedef int h5_attribute_visit(void *arg, const struct h5_attribute *attribute);
int h5_attribute_iterate(struct h5_file *file, const struct h5_object *object, h5_attribute_visit *visit,
			 void *arg);

#endif
