#include "vfs/replacing.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "vfs/paths.h"

int h5_replacing_begin(struct h5_handle *h, const struct h5_view_input *input)
{
	return h5_replacement_begin(input->file, input->address, &h->replacement);
}

int h5_replacing_write(struct h5_handle *h, uint64_t offset, const void *data, size_t n,
		       enum h5_write_where where, size_t *written)
{
	const uint64_t size = h5_replacement_size(h->replacement);
	size_t part = n;
	int rc;

	if (where == H5_WRITE_APPEND)
		offset = size;
	else if (where == H5_WRITE_INSIDE)
		part = offset < size ? (size_t)h5_min(n, size - offset) : 0;
	rc = h5_replacement_write(h->replacement, offset, data, part);
	*written = rc ? 0 : n;
	return rc;
}

/* A dataset whose size can change is truncated itself. */
bool h5_replacing_truncates(const struct h5_handle *h, uint64_t size)
{
	if (h->replacement || !h->input.ops)
		return h->replacement;
	return !size && !h5_dataset_writer_ready(h->input.writer) && h5_dataset_keeps_size(h->input.writer) &&
	       !h5_dataset_writer_can_resize(h->input.writer) && !h5_tx_is_swmr(h->vfs->file);
}

int h5_replacing_resize(struct h5_handle *h, uint64_t size)
{
	h->unsaved = true;
	return h->replacement ? h5_replacement_resize(h->replacement, size)
			      : h5_replacing_begin(h, &h->input);
}

int h5_replacing_finish(struct h5_handle *h)
{
	int rc = h5_replacement_finish(h->replacement);

	if (rc)
		return rc;
	h5_replacement_end(h->replacement);
	h->replacement = NULL;
	h->unsaved = true;
	return 0;
}

void h5_replacing_end(struct h5_handle *h)
{
	int rc = h5_tx_is_writable(h->vfs->file) ? h5_replacing_finish(h) : -EROFS;

	if (!rc)
		return;
	h5_log_about(h->vfs, h->node->entity.address, "new contents were dropped, the old ones stay: %s",
		     rc == -EROFS ? "writing was given up" : h5_error_last()->text);
	h5_replacement_end(h->replacement);
	h->replacement = NULL;
}
