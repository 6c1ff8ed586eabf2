/* Names of objects, and the end of objects, in the transaction (change/transaction.h).
 *
 * An object's header counts the hard links to it. A name that comes is counted before its link is there, and
 * one that goes after its link has gone (enum h5_stage): a count that is too high costs space, but with one
 * that is too low the object is removed while a name still leads to it. */
#ifndef H5_DATASET_REMOVAL_H
#define H5_DATASET_REMOVAL_H

#include "base/extents.h"
#include "object/damage.h"
#include "store/file.h"

/* The object gets one more name than it has. A new object has none, but its count is 1: its first name is not
 * to be counted. -EMLINK: it has as many names as can be counted. */
int h5_object_add_name(struct h5_file *file, uint64_t address);

/* The object loses a name, whose link the caller removes. *last: it was the last one. Then nothing changes,
 * and the caller owes h5_object_remove() once nobody has the object open. If the header is damaged, nothing
 * changes, and its space is lost to the file. */
int h5_object_drop_name(struct h5_file *file, uint64_t address, bool *last);

/* Gives up all space that only this object uses, in a unit of change. Nothing leads to the object any more,
 * and nobody has it open. All writers are settled (h5_tx_settle()) if there is a unit around this one.
 *
 * What cannot be read as a whole, since it is damaged, stays as it is and is lost to the file; if only the
 * header cannot, all of it is.
 *
 * -ENOTEMPTY: a group with links. -EBUSY: the root group, or an object with several names. */
int h5_object_remove(struct h5_file *file, uint64_t address);

/* Visits the space that h5_object_remove() gives up, in ascending order; no two extents overlap. -EUCLEAN,
 * -ENOTSUP: not all of it can be found; then nothing is visited. The file may be open for reading only. A
 * result other than 0 of `visit` ends the visits and is returned. */
int h5_object_extents(struct h5_file *file, uint64_t address, h5_extent_visit *visit, void *arg);

#endif
