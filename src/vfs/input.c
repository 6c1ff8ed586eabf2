#include "vfs/input.h"

#include "base/error.h"
#include "change/transaction.h"
#include "store/statistics.h"
#include "vfs/content.h"
#include "vfs/objects.h"
#include "vfs/paths.h"

#include <assert.h>

bool h5_is_writable(const struct h5_vfs *vfs, const struct h5_dataset *dataset)
{
	/* SWMR readers cannot follow values in the heap. */
	if (vfs->options.writable && h5_tx_is_swmr(vfs->file) && !h5_datatype_is_fixed(dataset->type))
		return false;
	return vfs->options.writable && dataset->file == vfs->file && dataset->space.kind != H5_SPACE_NULL &&
	       h5_view_of_dataset(dataset)->write &&
	       h5_dataset_has_writer(dataset, vfs->options.external_write);
}

int h5_input_give_up(void)
{
	return h5_fail(-EROFS, H5_UNDEF, "writing was given up after a failure");
}

/* 0: the dataset can be written, through *view. */
static int find_view(const struct h5_vfs *vfs, uint64_t address, const struct h5_view_ops **view)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc;

	if (!h5_tx_is_writable(vfs->file))
		return h5_input_give_up();
	rc = h5_dataset_get(vfs->file, address, &ref, &dataset);
	if (rc)
		return rc;
	rc = h5_is_writable(vfs, dataset) ? 0 : -EPERM;
	*view = h5_view_of_dataset(dataset);
	h5_file_put(vfs->file, ref);
	return rc;
}

int h5_input_open_dataset(struct h5_vfs *vfs, uint64_t address, struct h5_view_input *input)
{
	int rc;

	assert(h5_is_locked_to_write(vfs));
	*input = (struct h5_view_input){.file = vfs->file,
					.address = address,
					.context = h5_paths_context(vfs, vfs->file),
					.object_address = h5_paths_find_object,
					.arg = vfs};
	rc = find_view(vfs, address, &input->ops);
	if (!rc)
		rc = h5_dataset_writer_get(vfs->file, address, vfs->options.external_write, &input->writer);
	return rc;
}

int h5_input_open(struct h5_vfs *vfs, const struct h5_node *node, struct h5_view_input *input)
{
	int rc;

	if (!h5_input_is_possible(node) || node->entity.file != vfs->file)
		return h5_objects_refuse(node);
	rc = h5_input_open_dataset(vfs, node->entity.address, input);
	if (!rc && node->entity.view)
		input->ops = node->entity.view;
	return rc;
}

void h5_input_close(struct h5_view_input *input)
{
	h5_dataset_writer_put(input->writer);
	h5_view_input_release(input);
}

/* ---- text ---- */

int h5_input_text_size(struct h5_vfs *vfs, const struct h5_node *node, uint64_t *size)
{
	struct h5_view view;
	int rc = h5_tx_settle(vfs->file);

	if (rc)
		return rc;
	rc = h5_content_open(vfs, node, &view);
	*size = view.size;
	h5_view_release(&view);
	return rc;
}

int h5_input_check_end(struct h5_handle *h, uint64_t offset)
{
	uint64_t size;
	int rc;

	/* What was written may be shown as a text of another length. */
	if ((h->input.next || h->replacement) && offset == h->input.next)
		return 0;
	rc = h->replacement ? 0 : h5_input_text_size(h->vfs, h->node, &size);
	if (!rc && (h->replacement || offset != size + h->input.filled))
		rc = h5_fail(-EOPNOTSUPP, h->node->entity.address, "text is written only at its end");
	return rc;
}

void h5_input_log(struct h5_handle *h, int rc)
{
	if (rc == -EINVAL && h->input.ops->is_text)
		h5_log_about(h->vfs, h->node->entity.address, "refused: %s", h5_error_last()->text);
}

void h5_input_written(struct h5_handle *h, int rc)
{
	h5_input_log(h, rc);
	if (!h->replacement)
		return;
	if (rc == -EINVAL)
		h5_replacement_spoil(h->replacement);
	h5_replacement_note(h->replacement, rc);
}

void h5_input_drop(struct h5_handle *h)
{
	h5_count(&h->vfs->dropped_rows, 1);
	if (h->replacement)
		h5_replacement_spoil(h->replacement);
	if (h->input.ops->is_text)
		h5_log_about(h->vfs, h->node->entity.address, "incomplete lines were dropped: %zu bytes",
			     h->input.filled);
	else
		h5_log_about(h->vfs, h->node->entity.address,
			     "an incomplete row was dropped: %zu of %ju bytes", h->input.filled,
			     (uintmax_t)h5_dataset_writer_row(h->input.writer));
}
