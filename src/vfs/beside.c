#include "vfs/beside.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_backup(const char *text)
{
	return *text && text[strlen(text) - 1] == '~';
}

/* True: programs give such names to files that they will rename or remove: `sedXXXXXX`, `.t.csv.swp`,
 * `t.csv~`, `t.csv.bak`. A file of another kind, `t.txt`, is refused rather than taken for one of these. */
static bool is_passing_name(const char *text, const char *suffix)
{
	const char *dot = strchr(text, '.'), *within = strstr(text, suffix);
	const size_t n = strlen(text), last = strlen(suffix);

	if (n >= last && !strcmp(text + n - last, suffix))
		return false;
	return !dot || dot == text || is_backup(text) || within;
}

bool h5_beside_is_name(const struct h5_node *directory, const char *text, int flags)
{
	const struct h5_view_ops *view = directory->entity.view;

	if (!view || directory->entity.kind != H5_NODE_DIRECTORY || !(view->intake || view->write) ||
	    h5_node_is_part(directory))
		return false;
	if (view->of_attributes)
		return (flags & O_ACCMODE) == O_RDWR || is_backup(text);
	return !*view->suffix || is_passing_name(text, view->suffix);
}

int h5_beside_name(const struct h5_node *directory, const char *text, char name[H5_NAME_MAX + 1])
{
	int n = snprintf(name, H5_NAME_MAX + 1, ".h5fs-%s-%" PRIx64 "-%s", directory->entity.view->name,
			 directory->entity.address, text);

	return n <= H5_NAME_MAX ? 0 : -ENAMETOOLONG;
}
