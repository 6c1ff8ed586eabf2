/* The command line. */
#ifndef H5_FUSE_OPTIONS_H
#define H5_FUSE_OPTIONS_H

#include "fuse/settings.h"

/* 0, or -EINVAL after a message on standard error. */
int h5_options_parse(int argc, char **argv, struct h5_options *options);
void h5_options_release(struct h5_options *options); /* may run twice */

void h5_options_usage(const char *program);

#endif
