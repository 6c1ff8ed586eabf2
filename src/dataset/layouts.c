/* The layouts that there are. */
#include "dataset/private.h"

const struct h5_layouts h5_layouts = {
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
