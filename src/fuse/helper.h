/* What mount(8) calls: /sbin/mount.h5fs, or mount.fuse.h5fs, FILE DIR -o OPTIONS, with more options before or
 * after. It is this program by another name. */
#ifndef H5_FUSE_HELPER_H
#define H5_FUSE_HELPER_H

#include "fuse/settings.h"

/* True: the program was started by that name. */
bool h5_helper_is(const char *program);
/* Takes mount(8)'s own options out of o->args, which it replaces: -f, -n, -s, -v; -N and -t with what
 * follows.
 */
int h5_helper_take_out(struct h5_options *o);

#endif
