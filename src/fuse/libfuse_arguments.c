#include "fuse/libfuse_arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int add_argument(struct fuse_args *args, const char *arg)
{
	return fuse_opt_add_arg(args, arg) ? -ENOMEM : 0;
}

/* True: the kernel compares owners and modes before it passes a request on. In a mount for writing that costs
 * it a request before each change of a name, since a change makes it forget the modes of the directory. So it
 * does not compare there, if only the user who has mounted may enter and the options say nothing of owners
 * and modes. Then modes say what can be written, which each request finds out by itself. */
static bool kernel_checks(const struct h5_options *o)
{
	return !o->set.writable || o->allow_other || o->vfs.uid != getuid() || o->vfs.gid != getgid() ||
	       o->vfs.fmask || o->vfs.dmask;
}

int h5_libfuse_arguments(struct h5_options *o)
{
	char *name = NULL, *list = NULL;
	int rc = asprintf(&name, "fsname=%s", o->file) < 0 ? -ENOMEM : 0;

	if (rc)
		return rc;
	/* Escaped: a comma in the file's name does not end the option. */
	if (fuse_opt_add_opt_escaped(&list, name) ||
	    fuse_opt_add_opt(&list, "subtype=h5fs,nosuid,nodev,noexec") ||
	    (kernel_checks(o) && fuse_opt_add_opt(&list, "default_permissions")) ||
	    fuse_opt_add_opt(&list, o->set.writable ? "rw" : "ro") ||
	    (o->io_uring && fuse_opt_add_opt(&list, "io_uring")) ||
	    (o->allow_other && fuse_opt_add_opt(&list, "allow_other")))
		rc = -ENOMEM;
	if (!rc)
		rc = add_argument(&o->args, "-o");
	if (!rc)
		rc = add_argument(&o->args, list);
	if (!rc && o->debug)
		rc = add_argument(&o->args, "-d");
	free(list);
	free(name);
	return rc;
}
