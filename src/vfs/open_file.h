/* An open file. */
#ifndef H5_VFS_OPEN_FILE_H
#define H5_VFS_OPEN_FILE_H

#include "dataset/replacement.h"
#include "vfs/node.h"
#include "vfs/sequence.h"

#include <stdatomic.h>

struct h5_handle {
	struct h5_vfs *vfs;
	struct h5_node *node;	       /* referenced */
	int mode;		       /* O_RDONLY, O_WRONLY, O_RDWR */
	bool direct;		       /* the kernel reads and writes the file without its page cache */
	struct h5_view view;	       /* opened with the file; ops NULL: the file was opened for writing */
	struct h5_sequences sequences; /* of raw data */
	/* guarded by vfs->write_lock: */
	struct h5_view_input input; /* ops NULL: the file was opened for reading */
	/* NULL: what is written goes to the dataset itself; see vfs/replacing.h */
	struct h5_replacement *replacement;
	int unfinished; /* why close(2) has not put new contents in their place; 0: it has, or was not asked
			 */
	bool unsaved;	/* something was written through the handle since the last commit */
	int lost; /* why bytes written through the handle were lost, until a reply tells; 0: none were lost */
	struct h5_source
		*source; /* owned by vfs->sources; NULL: no file of a view is written (vfs/source.h) */
	struct h5_handle *prev, *next; /* in vfs->handles or vfs->held; guarded by vfs->lock */
	unsigned users;		       /* in vfs->held: requests that use it now; guarded by vfs->lock */
};

/* What holds the bytes that were written through a handle for writing. */
static inline const struct h5_tx_participant *h5_handle_participant(const struct h5_handle *handle)
{
	return handle->replacement ? h5_replacement_participant(handle->replacement)
				   : h5_dataset_writer_participant(handle->input.writer);
}

#endif
