#include "view/view.h"

#include <stdlib.h>

void h5_view_input_release(struct h5_view_input *in)
{
	free(in->data);
	in->data = NULL;
	in->capacity = in->filled = 0;
}
