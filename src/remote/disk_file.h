/* An open file of the disk cache (remote/disk_format.h). Several processes may read and write it at the same
 * time: all write the same bytes. */
#ifndef H5_REMOTE_DISK_FILE_H
#define H5_REMOTE_DISK_FILE_H

#include "io/io.h"
#include "remote/disk_format.h"

struct h5_disk_file {
	struct h5_io *io; /* owned */
	int fd;		  /* of the io, which closes it */
	struct h5_disk_header header;
	uint64_t seed;
	bool used; /* the budget may know */
	char name[H5_DISK_NAME];
};

/* Reads the header of file->io. -EUCLEAN: it is none, or the file does not have the size that it calls for.
 */
int h5_disk_file_start(struct h5_disk_file *file);
/* Makes an empty file one that has file->header and no block. */
int h5_disk_file_make(struct h5_disk_file *file);

/* Reads the sums of blocks; 0: the block is not here. */
int h5_disk_file_look(const struct h5_disk_file *file, uint64_t first, uint32_t count, uint64_t *sums);
/* Reads blocks that are here, and verifies them. -EUCLEAN: they are not what was written. */
int h5_disk_file_read(const struct h5_disk_file *file, uint64_t first, uint32_t count, const uint64_t *sums,
		      uint8_t *data);
/* Writes blocks, at most H5_DISK_WRITE. A negative errno: -ENOSPC, ... */
enum { H5_DISK_WRITE = 64 };
int h5_disk_file_write(const struct h5_disk_file *file, uint64_t first, uint32_t count, const uint8_t *data);

#endif
