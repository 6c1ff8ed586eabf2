#include "fuse/helper.h"

#include <errno.h>
#include <string.h>

bool h5_helper_is(const char *program)
{
	const char *slash = strrchr(program, '/');

	return !strncmp(slash ? slash + 1 : program, "mount.", 6);
}

int h5_helper_take_out(struct h5_options *o)
{
	struct fuse_args *args = &o->args;
	struct fuse_args left = FUSE_ARGS_INIT(0, NULL);
	int rc = 0;

	for (int i = 0; i < args->argc && !rc; i++) {
		const char *arg = args->argv[i];

		if (!strcmp(arg, "-t") || !strcmp(arg, "-N"))
			i++;
		else if (!strcmp(arg, "-f"))
			o->fake = true;
		else if (!strcmp(arg, "-s"))
			o->sloppy = true;
		else if (strcmp(arg, "-n") && strcmp(arg, "-v"))
			rc = fuse_opt_add_arg(&left, arg) ? -ENOMEM : 0;
	}
	if (rc) {
		fuse_opt_free_args(&left);
		return rc;
	}
	*args = left;
	return 0;
}
