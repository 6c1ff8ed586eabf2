/* What the text of an option means. */
#ifndef H5_FUSE_OPTION_VALUES_H
#define H5_FUSE_OPTION_VALUES_H

#include "fuse/option_table.h"
#include "fuse/settings.h"

/* Sets the member of a H5_OPTION_FLAG. */
void h5_option_set_flag(struct h5_options *options, const struct h5_option *option);
/* Sets the member of another option to the value. The text of a H5_OPTION_TEXT becomes the member's, which
 * leaves *text NULL. 0, or -EINVAL after a message on standard error. */
int h5_option_set(struct h5_options *options, const struct h5_option *option, char **text);

#endif
