/* A directory that becomes a copy of a tree. All names are made in the directory that is open, through no
 * symbolic link, so nothing is ever made outside. */
#ifndef H5_OFFLINE_TARGET_H
#define H5_OFFLINE_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { H5_TARGET_NAME_MAX = 32 };

struct h5_target_place;

struct h5_target {
	int top;  /* descriptor of the directory; -1: it is not open */
	int here; /* of the one beneath it where names are made now; the same as `top`, or owned */
	struct h5_target_place *above; /* owned: the directories above this one */
	size_t depth, capacity;
};

/* A file that is being written. It gets its name when it is whole. */
struct h5_target_file {
	int fd;
	char name[H5_TARGET_NAME_MAX]; /* until then */
};

/* Opens the directory, or makes it if it is not there. -ENOTEMPTY: it has entries. */
int h5_target_open(const char *path, struct h5_target *target);
void h5_target_close(struct h5_target *target); /* may run twice */

/* All that follow return a negative errno with h5_error_last(). `st`: mode, times and owner that are set; an
 * owner only if we may. */

/* Makes a directory and goes into it. */
int h5_target_enter(struct h5_target *target, const char *name);
/* Ends the directory. */
int h5_target_end_directory(const struct h5_target *target, const struct stat *st);
/* Goes out of it. -ESTALE: it was moved meanwhile. */
int h5_target_leave(struct h5_target *target);
int h5_target_symlink(const struct h5_target *target, const char *text, const char *name,
		      const struct stat *st);
/* Makes another name for the file at `first`, a path from the top. */
int h5_target_link(const struct h5_target *target, const char *first, const char *name);

/* `name`: that it will get. */
int h5_target_begin(const struct h5_target *target, const char *name, struct h5_target_file *file);
int h5_target_write(const struct h5_target_file *file, uint64_t offset, const char *data, size_t n);
/* The file is whole: it gets its size and its name. On failure, too, it is closed, and then it is removed. */
int h5_target_end(const struct h5_target *target, struct h5_target_file *file, const char *name,
		  uint64_t size, const struct stat *st);
void h5_target_cancel(const struct h5_target *target, struct h5_target_file *file);

/* Sets an extended attribute. */
int h5_target_attribute(int fd, const char *name, const char *value, size_t size);

#endif
