/* The objects of the global heap that attributes own. */
#ifndef H5_OBJECT_ATTRIBUTE_VALUES_H
#define H5_OBJECT_ATTRIBUTE_VALUES_H

#include "object/object.h"
#include "object/value_heap.h"

/* Visits all objects that n elements at `data` own. -EUCLEAN: one of them cannot be read. */
int h5_values_own(struct h5_file *file, const struct h5_datatype *type, const uint8_t *data, uint64_t n,
		  h5_value_heap_visit *visit, void *arg);
/* The same with the elements of the attribute in a message. */
int h5_attribute_own(struct h5_file *file, struct h5_reader message, h5_value_heap_visit *visit, void *arg);
/* The same with all attributes of an object, except for those in the file's heap of shared messages: other
 * objects may have these, too. */
int h5_attributes_own(struct h5_file *file, const struct h5_object *object, h5_value_heap_visit *visit,
		      void *arg);

#endif
