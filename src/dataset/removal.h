/* Names of objects, and the end of objects, in the transaction (change/transaction.h).
 *
 * An object's header counts the hard links to it. A name that comes is counted before its link is there, and
 * one that goes after its link has gone (enum h5_stage): a count that is too high costs space, but with one
 * that is too low the object is removed while a name still leads to it. */
#ifndef H5_DATASET_REMOVAL_H
#define H5_DATASET_REMOVAL_H

#include "base/extents.h"
#include "dataset/dataset.h"
#include "format/shared_message.h"
#include "object/damage.h"
#include "store/file.h"

/* The object gets one more name than it has. A new object has none, but its count is 1: its first name is not
 * to be counted. -EMLINK: it has as many names as can be counted. */
int h5_object_add_name(struct h5_file *file, uint64_t address);

/* The object loses a name, whose link the caller removes. *last: it was the last one. Then nothing changes,
 * and the caller owes h5_object_remove() once nobody has the object open. If the header is damaged, nothing
 * changes, and its space is lost to the file. -ENOTSUP: this version does not know all of
 * it, or must not change it (h5_header_may_change()). */
int h5_object_drop_name(struct h5_file *file, uint64_t address, bool *last);

/* Gives up all space that only this object uses, in a unit of change. Nothing leads to the object any more,
 * and nobody has it open. If there is a unit around this one, the caller has settled all writers before it
 * (h5_tx_settle()).
 *
 * Committed datatypes that the object and its attributes refer to are counted less; one that nothing uses any
 * more goes with the object. What its values own in the global heap goes, too: dataset/values.h. External
 * files stay. Shared messages: object/shared_table_write.h.
 *
 * A damaged part stays, too, and its space is lost to the file: links, attributes or data of the object as a
 * whole; all of it if its header cannot be read, or if blocks of it overlap.
 *
 * -ENOTEMPTY: a group with links; -EUCLEAN, -ENOTSUP: a group whose links cannot be read. -EBUSY: the root
 * group, or an object with several names. */
int h5_object_remove(struct h5_file *file, uint64_t address);

/* Gives up the space of the dataset's elements and of what leads to them, in a unit of change; the header
 * stays as it is. If a part of it is damaged, or if blocks overlap, all of that space is lost to the file. */
int h5_dataset_give_up(const struct h5_dataset *dataset);

/* Visits the space that h5_object_remove() gives up, but not the space of committed datatypes. The extents
 * are in ascending order, and no two overlap. Groups may have links. -EUCLEAN, -ENOTSUP: not all of it can be
 * found; then nothing is visited. The file may be open for reading only. A result other than 0 of `visit`
 * ends the visits and is returned. */
int h5_object_extents(struct h5_file *file, uint64_t address, h5_extent_visit *visit, void *arg);

/* Visits what the object and its attributes use: the object headers of committed datatypes, and messages in
 * the file's heaps of shared messages. What attributes use that are in such a heap themselves is left out. */
struct h5_use_visits {
	int (*type)(void *arg, uint64_t address);
	int (*shared)(void *arg, const struct h5_shared_use *use); /* NULL: these are not visited */
};
int h5_object_uses(struct h5_file *file, uint64_t address, const struct h5_use_visits *visits, void *arg);

#endif
