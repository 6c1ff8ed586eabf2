/* What libfuse is told about a mount. */
#ifndef H5_FUSE_LIBFUSE_ARGUMENTS_H
#define H5_FUSE_LIBFUSE_ARGUMENTS_H

#include "fuse/settings.h"

/* Appends the arguments that follow from the other options to o->args, which the caller owns. -ENOMEM. */
int h5_libfuse_arguments(struct h5_options *o);

#endif
