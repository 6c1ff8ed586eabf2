/* What views that are written share. */
#include "base/error.h"
#include "view/view.h"

int h5_view_input_refuse(const struct h5_view_input *in)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc = h5_dataset_get(in->file, in->address, &ref, &dataset);
	unsigned other = 0;

	if (rc)
		return rc;
	for (unsigned i = 1; i < dataset->space.rank; i++)
		if (dataset->space.has_max && dataset->space.max[i] > dataset->space.dims[i])
			other = i;
	if (other)
		rc = h5_fail(-EFBIG, in->address,
			     "only dimension 0 grows by writing, and it is at its maximum; dimension %u "
			     "grows if h5fs.shape is set",
			     other);
	else
		rc = h5_fail(-EFBIG, in->address, "the dataset has all the rows that it may have");
	h5_file_put(in->file, ref);
	return rc;
}
