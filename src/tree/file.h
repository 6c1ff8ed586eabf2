/* HDF5 files of the folder: opens and closes them. */
#ifndef H5_TREE_FILE_H
#define H5_TREE_FILE_H

#include "tree/private.h"

int h5_tree_file_new(uint64_t device, uint64_t inode, struct h5_tree_file **file);
/* Its node goes. With tree->lock; no request uses the file. */
void h5_tree_file_leave_behind(struct h5_tree_file *file);

/* Opens the file of the node if need be, and keeps it open until h5_tree_file_leave(). `hold`: for an open
 * file or directory. -EBUSY: another program has it locked, or one has it open for writing under another
 * name; -ENFILE: as many files as may be are held open; else as h5_open_file(). */
int h5_tree_file_enter(struct h5_tree *tree, struct h5_tree_node *node, bool hold);
/* Of a file that a request has entered: it is held, too, for an open file that the request has made. */
void h5_tree_file_hold(struct h5_tree *tree, struct h5_tree_file *file);
/* As h5_tree_file_enter() if the file is open; false: it is not. */
bool h5_tree_file_stay(struct h5_tree *tree, struct h5_tree_file *file);
void h5_tree_file_leave(struct h5_tree *tree, struct h5_tree_file *file, bool hold);
/* Closes all; no request uses any. */
void h5_tree_files_close(struct h5_tree *tree);

#endif
