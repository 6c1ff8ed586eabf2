/* The values of options that are not given. */
#ifndef H5_FUSE_OPTION_DEFAULTS_H
#define H5_FUSE_OPTION_DEFAULTS_H

#include "fuse/settings.h"

/* Sets the options that take values. Some depend on the flags, which are set before. */
void h5_option_defaults(struct h5_options *options);

#endif
