/* The limit of how fast attributes are read through FUSE: a tree without a file behind it.
 *
 *     bare_tree DIRECTORIES ATTRIBUTES MOUNTPOINT      in the foreground
 *
 * The root has so many directories, each of them so many attributes, all with the same value. */
#define FUSE_USE_VERSION 35
#include "bench.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FIRST = FUSE_ROOT_ID + 1, NAME = 32, PAGE = 1 << 16 };
static const double LONG = 365 * 24 * 3600;
static const char value[] = "some text";

static uint64_t directories, attributes;

static struct fuse_entry_param entry_of(fuse_ino_t ino)
{
	return (struct fuse_entry_param){
		.ino = ino,
		.attr = {.st_ino = ino, .st_mode = S_IFDIR | 0555, .st_nlink = 2},
		.attr_timeout = LONG,
		.entry_timeout = LONG,
	};
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e;
	unsigned long i;

	if (parent != FUSE_ROOT_ID || sscanf(name, "group%lu", &i) != 1 || i >= directories) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	e = entry_of(FIRST + i);
	fuse_reply_entry(req, &e);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const struct fuse_entry_param e = entry_of(ino);

	(void)fi;
	fuse_reply_attr(req, &e.attr, LONG);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
			   struct fuse_file_info *fi)
{
	char page[PAGE], name[NAME];
	size_t used = 0, count = ino == FUSE_ROOT_ID ? directories : 0;

	(void)fi;
	size = size < sizeof page ? size : sizeof page;
	for (size_t i = (size_t)offset; i < count; i++) {
		const struct fuse_entry_param e = entry_of(FIRST + i);
		size_t n;

		snprintf(name, sizeof name, "group%zu", i);
		n = fuse_add_direntry_plus(req, page + used, size - used, name, &e, (off_t)i + 1);
		if (n > size - used)
			break;
		used += n;
	}
	fuse_reply_buf(req, page, used);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	char list[PAGE];
	size_t n = 0;

	for (uint64_t i = 0; ino != FUSE_ROOT_ID && i < attributes; i++)
		n += (size_t)snprintf(list + n, sizeof list - n, "user.attribute%lu", (unsigned long)i) + 1;
	if (!size)
		fuse_reply_xattr(req, n);
	else if (size < n)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, list, n);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	if (ino == FUSE_ROOT_ID || strncmp(name, "user.attribute", 14))
		fuse_reply_err(req, ENODATA);
	else if (!size)
		fuse_reply_xattr(req, sizeof value - 1);
	else if (size < sizeof value - 1)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, value, sizeof value - 1);
}

static const struct fuse_lowlevel_ops operations = {
	.lookup = op_lookup,
	.getattr = op_getattr,
	.readdirplus = op_readdirplus,
	.listxattr = op_listxattr,
	.getxattr = op_getxattr,
};

int main(int argc, char **argv)
{
	char *name[] = {argv[0], NULL};
	struct fuse_args args = FUSE_ARGS_INIT(1, name);
	struct fuse_loop_config config = {.clone_fd = 0, .max_idle_threads = 10};
	struct fuse_session *session;
	int rc;

	if (argc != 4)
		die("usage: see the source");
	directories = number(argv[1]);
	attributes = number(argv[2]);
	if (attributes * NAME > PAGE)
		die("so many attributes");
	session = fuse_session_new(&args, &operations, sizeof operations, NULL);
	if (!session || fuse_set_signal_handlers(session) || fuse_session_mount(session, argv[3]))
		die("%s", argv[3]);
	rc = fuse_session_loop_mt(session, &config);
	fuse_session_unmount(session);
	fuse_remove_signal_handlers(session);
	fuse_session_destroy(session);
	return rc != 0;
}
