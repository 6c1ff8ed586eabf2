/* What the requests of vfs_shell (tests/lib/vfs_shell.c) share. */
#ifndef H5_TESTS_VFS_SHELL_H
#define H5_TESTS_VFS_SHELL_H

#include "fault_io.h"
#include "store/file_set.h"
#include "vfs/vfs.h"

#include <stdbool.h>
#include <stdint.h>

enum { WORDS = 5, HELD = 64, FILES = 64 };

struct shell {
	struct fault_io fault;
	struct h5_file_set *set;
	struct h5_vfs *vfs;
	struct h5_node *held[HELD];
	unsigned count;
	struct h5_handle *files[FILES];
	struct h5_node *nodes[FILES]; /* of the files */
	unsigned long fail_memory, fail_read;
	bool fired;
	uint64_t digest;
};

struct request {
	const char *name;
	int (*run)(struct shell *s, char *words[WORDS]);
};

/* Of names, and of open files; each ends with one without a name. */
extern const struct request shell_names[], shell_files[];

unsigned long shell_number(const char *word);
void shell_forget(struct shell *s, struct h5_node *node);
/* The node of a path; the caller forgets it. Changes the path. */
int shell_find(struct shell *s, char *path, struct h5_node **node);
/* The directory above a path, which the caller forgets, and the last name of the path. */
int shell_find_parent(struct shell *s, char *path, struct h5_node **parent, const char **name);
/* Of the file of that number, if it is open. */
void shell_close(struct shell *s, unsigned i);

#endif
