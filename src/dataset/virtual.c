/* Virtual datasets: their shape and type can be seen, their mappings are not followed. */
#include "base/error.h"
#include "dataset/layouts.h"

static int virtual_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	(void)offset;
	(void)buf;
	(void)n;
	return h5_fail(-ENOTSUP, dataset->address, "dataset: virtual datasets are not supported");
}

static int virtual_storage(const struct h5_dataset *dataset, uint64_t *bytes)
{
	(void)dataset;
	*bytes = 0;
	return 0;
}

const struct h5_layout_ops h5_layout_virtual = {NULL, virtual_read, virtual_storage};
