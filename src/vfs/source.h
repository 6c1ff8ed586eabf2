/* Files below `.h5fs` that are written: what a program writes, from the first byte to the last, becomes a
 * dataset or an attribute when it is whole, at a sync or when a descriptor is closed. Until then nothing
 * leads to it. */
#ifndef H5_VFS_SOURCE_H
#define H5_VFS_SOURCE_H

#include "vfs/private.h"
#include "view/intake.h"

struct h5_handle;

/* Guarded by vfs->write_lock. */
struct h5_source {
	struct h5_vfs *vfs;
	struct h5_intake intake;
	const struct h5_node *made; /* by h5_source_make(), and not open yet; NULL: none */
	char *attribute;	    /* owned: its name; NULL: a dataset is made */
	/* Where the dataset gets its name; NULL: there is one whose contents these become. */
	struct h5_node *directory; /* referenced */
	char *name;		   /* owned: the link's */
	size_t name_size;
	uint64_t shown;		       /* the dataset that a name leads to; H5_UNDEF: there is none yet */
	bool is_cut;		       /* a file without bytes is whole, if it is a text */
	bool is_done;		       /* all that was written is in the file */
	int failure;		       /* of the last write, unless that was misplaced; 0: none */
	struct h5_source *prev, *next; /* in vfs->sources */
};

/* Makes the file of a view, of a name that no link has: *entry as by h5_vfs_lookup(). The caller opens its
 * node then, or calls h5_sources_drop(). -EPERM: the view takes no files; -EEXIST. */
int h5_source_make(struct h5_vfs *vfs, struct h5_node *directory, const char *text,
		   struct h5_vfs_entry *entry);
void h5_sources_drop(struct h5_vfs *vfs, const struct h5_node *node);

/* Opens the file of the view to be written, by this handle. `cut`: it is empty even if nothing is written. */
int h5_source_open(struct h5_handle *handle, const struct h5_node *node, bool cut);
/* Takes the next bytes. -EOPNOTSUPP: the offset is not where the last ones ended. */
int h5_source_write(struct h5_handle *handle, uint64_t offset, const void *buf, size_t n, bool append,
		    size_t *written);
/* -EOPNOTSUPP: the size is not that of what was written. */
int h5_source_truncate(struct h5_handle *handle, uint64_t size);
/* If the file is whole, all that it says is done. -EINVAL: it cannot be done, or the file is not whole. */
int h5_source_flush(struct h5_handle *handle);
/* What was not whole is dropped, with a line in the log. */
void h5_source_close(struct h5_handle *handle);

#endif
