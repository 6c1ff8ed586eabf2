/* A folder of three HDF5 files, a.h5 to c.h5, and two folders, f and f/g; and its tree, which opens two of
 * the files at once. */
#ifndef H5_TESTS_TREE_SCENE_H
#define H5_TESTS_TREE_SCENE_H

#include "tree/node.h"
#include "unit.h"
#include "vfs/private.h"

#include <errno.h>

enum { FILES = 3 };

struct folder {
	char path[160];
	struct h5_tree_options options;
	struct h5_tree *tree;
	int loses;   /* what closing a file returns */
	int refuses; /* what opening one comes to when all but this is done */
	void (*on_closing)(void);
	char closed[64]; /* names of the files, in that order */
};

extern struct folder folder;

void folder_begin(void);
void folder_end(void);
/* With the options as they are now. */
void folder_reopen(void);

/* A file of the folder, or of one beneath it, with the signature there. */
void folder_make_file(const char *name, const char *signature, uint64_t at, size_t size);

/* A node is known until it is forgotten as often as it was found. */
struct h5_tree_node *folder_find(struct h5_tree_node *parent, const char *name);
void folder_forget(struct h5_tree_node *node);
void folder_find_files(struct h5_tree_node *nodes[FILES]);
void folder_forget_files(struct h5_tree_node *nodes[FILES]);

/* A request that looks into the file. Returns its code. */
int folder_use(struct h5_tree_node *node);

void folder_check_path(struct h5_tree_node *node, const char *expected);

#endif
