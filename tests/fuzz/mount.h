/* A file on disk (in memory, if there is a file system of that kind), mounted without FUSE. */
#ifndef H5_TESTS_FUZZ_MOUNT_H
#define H5_TESTS_FUZZ_MOUNT_H

#include "walk.h"

struct fuzz_mount {
	char path[80], journal[100];
	struct h5_file_set *set; /* NULL: it is not open */
	struct h5_vfs *vfs;
	struct fuzz_budget budget;
};

/* Makes the file, with a whole budget. */
void fuzz_mount_begin(struct fuzz_mount *mount, const uint8_t *data, size_t size);
/* Removes the file and all that lies beside it. */
void fuzz_mount_end(void);
void fuzz_put_file(const char *path, const uint8_t *data, size_t size);

/* False: the file cannot be opened like that. */
bool fuzz_mount_open(struct fuzz_mount *mount, bool writable);
/* Ends the mount as it stands, without a commit. */
void fuzz_mount_close(struct fuzz_mount *mount);

/* How much is damaged, as h5fs --check has it. *finished: the budget was enough, and everything in the file
 * is known. */
uint64_t fuzz_mount_damage(struct fuzz_mount *mount, bool *finished);

#endif
