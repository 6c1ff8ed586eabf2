#include "vfs/replacing.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "vfs/input.h"
#include "vfs/paths.h"

#include <string.h>

int h5_replacing_begin(struct h5_handle *h, const struct h5_view_input *input)
{
	if (!input->ops->is_text)
		return h5_replacement_begin(input->file, input->address, &h->replacement);
	return h5_replacement_begin_rows(input->file, input->address, &h->replacement);
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
	if (h->input.ops->is_text)
		return !size;
	return !size && !h5_dataset_writer_ready(h->input.writer) && h5_dataset_keeps_size(h->input.writer) &&
	       !h5_dataset_writer_can_resize(h->input.writer);
}

int h5_replacing_resize(struct h5_handle *h, uint64_t size)
{
	return h->replacement ? h5_replacement_resize(h->replacement, size)
			      : h5_replacing_begin(h, &h->input);
}

/* ---- text ---- */

int h5_replacing_resize_text(struct h5_handle *h, uint64_t size)
{
	int rc;

	if (h->replacement && size == h->input.next)
		return 0;
	if (size)
		return h5_fail(-EOPNOTSUPP, h->node->entity.address, "text is written only at its end");
	h5_replacement_end(h->replacement);
	h->replacement = NULL;
	h5_view_input_release(&h->input);
	h->input.next = 0;
	rc = h5_replacing_begin(h, &h->input);
	h->input.replacement = h->replacement;
	h->unsaved |= !rc;
	return rc;
}

int h5_replacing_set_text_size(struct h5_vfs *vfs, const struct h5_node *node,
			       const struct h5_view_input *input, uint64_t size)
{
	struct h5_replacement *replacement = NULL;
	uint64_t now;
	int rc = h5_input_text_size(vfs, node, &now);

	if (rc || now == size)
		return rc;
	if (size)
		return h5_fail(-EOPNOTSUPP, node->entity.address, "text is written only at its end");
	rc = h5_replacement_begin_rows(input->file, input->address, &replacement);
	if (!rc)
		rc = h5_replacement_finish(replacement);
	h5_replacement_end(replacement);
	return rc;
}

bool h5_replacing_waits(const struct h5_handle *h)
{
	if (!h->input.ops->is_text)
		return false;
	return h->input.filled || (!h->input.next && h5_replacement_grows(h->replacement) &&
				   !h5_replacement_check(h->replacement));
}

/* ---- the end ---- */

int h5_replacing_finish(struct h5_handle *h)
{
	int rc = h5_replacement_finish(h->replacement);

	if (rc)
		return rc;
	h5_replacement_end(h->replacement);
	h->replacement = h->input.replacement = NULL;
	h->unsaved = true;
	return 0;
}

void h5_replacing_end(struct h5_handle *h)
{
	int rc = !h5_tx_is_writable(h->vfs->file) ? h5_input_give_up()
		 : h->unfinished		  ? h5_replacement_check(h->replacement)
						  : h5_replacing_finish(h);

	if (!rc && !h->unfinished)
		return;
	h5_log_about(h->vfs, h->node->entity.address, "new contents were dropped, the old ones stay: %s",
		     rc ? h5_error_last()->text : strerror(-h->unfinished));
	h5_replacement_end(h->replacement);
}
