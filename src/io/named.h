/* Opens files whose names are stored in a file, which may name anything, or found in a folder, whose links
 * may lead anywhere. */
#ifndef H5_IO_NAMED_H
#define H5_IO_NAMED_H

/* All return a descriptor or a negative errno. Only regular files are meant to be opened; `flags` are those
 * of open(2) and neither create nor truncate. `path` is relative to the folder `dirfd` (O_PATH is enough). */

/* The file lies beneath the folder and on its mount, and so does every step to it, symbolic links included.
 * -EXDEV: it does not. */
int h5_named_open_beneath(int dirfd, const char *path, int flags);

/* The file lies anywhere, and `path` may be absolute; `directory` is the absolute path of the folder, without
 * symbolic links. No step leads into an h5fs mount: the request might come back to us, and wait for itself.
 * Magic links of /proc lead where their text says. -EXDEV: it leads into an h5fs mount. */
int h5_named_open_anywhere(int dirfd, const char *directory, const char *path, int flags);

/* The same as the first, but the path may lead to a folder, and has no symbolic links. -ELOOP: it has
 * one. -ENOSYS: the kernel is older than Linux 5.6. */
int h5_named_open_without_links(int dirfd, const char *path, int flags);

/* What a failure of these means: -ENOENT, no such file; -EACCES, one that must not or cannot be opened;
 * -EINVAL and -EISDIR, no regular file; -EROFS and -ETXTBSY, one that cannot be written. Every other errno
 * says nothing about the name: it stays what it is if h5_is_passing(), and becomes -EIO else. */
int h5_named_failure(int code);

/* Makes the names in the folder durable: 0 or a negative errno. */
int h5_named_sync_folder(int dirfd);

#endif
