/* Space that files of the mount take and give back. */
#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "vfs/changes.h"
#include "vfs/open_file.h"
#include "vfs/private.h"

#include <fcntl.h>

int h5_vfs_give_back(struct h5_vfs *vfs)
{
	int rc;

	if (!vfs->options.writable)
		return 0;
	h5_lock_to_write(vfs);
	rc = h5_tx_give_back(vfs->file, H5_WASTE_LEAST);
	h5_unlock(vfs);
	return rc;
}

/* The bytes of the range that the file has. */
static int punch(struct h5_handle *h, uint64_t offset, uint64_t n)
{
	struct h5_dataset_writer *writer = h->input.writer;
	int rc = h5_dataset_writer_ready(writer);
	uint64_t size = rc ? 0 : h5_dataset_writer_size(writer);

	if (rc || offset >= size)
		return rc;
	h->unsaved = true;
	return h5_dataset_writer_punch(writer, offset, h5_min(n, size - offset));
}

int h5_vfs_fallocate(struct h5_handle *h, int mode, uint64_t offset, uint64_t n)
{
	int rc;

	if (mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
		return -EOPNOTSUPP;
	if (!h->input.ops)
		return -EBADF;
	if (h->replacement || h->input.ops->is_text)
		return -EOPNOTSUPP;
	rc = h5_change_begin(h->vfs, h->node);
	if (rc)
		return rc;
	rc = punch(h, offset, n);
	h5_change_note(h->vfs, h->node);
	h5_change_end(h->vfs);
	return rc;
}
