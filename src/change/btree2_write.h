/* Changes of version 2 B-trees, in the transaction (change/transaction.h).
 *
 * Each is a unit of change: one that fails leaves the tree, and the struct, as it was. The header may move:
 * tree->address then differs, and the caller changes what points at it. */
#ifndef H5_CHANGE_BTREE2_WRITE_H
#define H5_CHANGE_BTREE2_WRITE_H

#include "store/btree2.h"

struct h5_btree2_parameters {
	enum h5_btree2_type type;
	uint16_t record_size;		      /* bytes */
	uint32_t node_size;		      /* bytes */
	uint8_t split_percent, merge_percent; /* of the most records of a node */
};

/* A new tree without records. */
int h5_btree2_create(struct h5_file *file, const struct h5_btree2_parameters *parameters,
		     struct h5_btree2 *tree);
/* Gives up all space of the tree. Then tree->address is H5_UNDEF. */
int h5_btree2_free(struct h5_btree2 *tree);
/* Moves the header to new space, unless it is there already. Then a commit switches to the changed tree as it
 * switches the pointer to the header. */
int h5_btree2_move(struct h5_btree2 *tree);
/* Puts the record (record_size bytes) in the place of the one for which compare gives 0, or inserts it. */
int h5_btree2_set(struct h5_btree2 *tree, h5_btree2_compare *compare, void *arg, const uint8_t *record);
/* Removes the record for which compare gives 0. -ENOENT: there is none; like any failure, this fails the
 * units around it. */
int h5_btree2_remove(struct h5_btree2 *tree, h5_btree2_compare *compare, void *arg);
/* Removes the sought record and all after it, then visits them, the last one first. A result other than 0 of
 * `visit` ends the visits and is returned. */
int h5_btree2_trim(struct h5_btree2 *tree, h5_btree2_compare *compare, void *arg, h5_btree2_visit *visit,
		   void *visit_arg);

#endif
