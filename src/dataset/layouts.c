/* The layouts that there are. */
#include "dataset/private.h"

static const struct h5_layouts layouts = {
	.by_class =
		{
			[H5_LAYOUT_COMPACT] = &h5_layout_compact,
			[H5_LAYOUT_CONTIGUOUS] = &h5_layout_contiguous,
			[H5_LAYOUT_CHUNKED] = &h5_layout_chunked,
			[H5_LAYOUT_VIRTUAL] = &h5_layout_virtual,
			[H5_LAYOUT_STRUCTURED] = &h5_layout_structured,
		},
	.external = &h5_layout_external,
};

int h5_dataset_get(struct h5_file *file, uint64_t address, struct h5_lru_entry **ref,
		   const struct h5_dataset **dataset)
{
	return h5_dataset_get_by(&layouts, file, address, ref, dataset);
}

int h5_dataset_decode(struct h5_file *file, const struct h5_object *object, struct h5_dataset **dataset)
{
	return h5_dataset_decode_by(&layouts, file, object, dataset);
}
