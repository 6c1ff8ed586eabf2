/* The limit of how fast many small things are read through FUSE: a tree without a file behind it.
 *
 *     bare_tree DIRECTORIES ATTRIBUTES FILES BYTES MOUNTPOINT      in the foreground
 *
 * The root has DIRECTORIES directories. Each has ATTRIBUTES attributes, all with the same value, and FILES
 * files of BYTES zeros. As on a mount of h5fs for reading, the kernel sends no requests to open. */
#define FUSE_USE_VERSION 35
#include "bench.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FIRST = FUSE_ROOT_ID + 1, NAME = 32, PAGE = 1 << 16 };
static const double LONG = 365 * 24 * 3600;
static const char value[] = "some text";

static uint64_t directories, attributes, files, bytes;

/* Behind each directory come its files. */
static fuse_ino_t ino_of(uint64_t directory, uint64_t file)
{
	return FIRST + directory * (1 + files) + file;
}

static bool is_directory(fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID || (ino - FIRST) % (1 + files) == 0;
}

static struct fuse_entry_param entry_of(fuse_ino_t ino)
{
	struct fuse_entry_param e = {
		.ino = ino,
		.attr = {.st_ino = ino, .st_mode = S_IFDIR | 0555, .st_nlink = 2},
		.attr_timeout = LONG,
		.entry_timeout = LONG,
	};

	if (!is_directory(ino)) {
		e.attr.st_mode = S_IFREG | 0444;
		e.attr.st_nlink = 1;
		e.attr.st_size = (off_t)bytes;
	}
	return e;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	bool in_root = parent == FUSE_ROOT_ID;
	struct fuse_entry_param e;
	unsigned long i;

	if (sscanf(name, in_root ? "group%lu" : "dataset%lu", &i) != 1 ||
	    i >= (in_root ? directories : files)) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	e = entry_of(in_root ? ino_of(i, 0) : parent + 1 + i);
	fuse_reply_entry(req, &e);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const struct fuse_entry_param e = entry_of(ino);

	(void)fi;
	fuse_reply_attr(req, &e.attr, LONG);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	fuse_reply_err(req, ENOSYS); /* the kernel asks no more, nor for flush and release */
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	static const char zeros[PAGE];
	uint64_t left = (uint64_t)offset < bytes ? bytes - (uint64_t)offset : 0;

	(void)ino;
	(void)fi;
	fuse_reply_buf(req, zeros, left < size ? left : size);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
			   struct fuse_file_info *fi)
{
	bool is_root = ino == FUSE_ROOT_ID;
	char page[PAGE], name[NAME];
	size_t used = 0, count = is_root ? directories : files;

	(void)fi;
	size = size < sizeof page ? size : sizeof page;
	for (size_t i = (size_t)offset; i < count; i++) {
		const struct fuse_entry_param e = entry_of(is_root ? ino_of(i, 0) : ino + 1 + i);
		size_t n;

		snprintf(name, sizeof name, is_root ? "group%zu" : "dataset%zu", i);
		n = fuse_add_direntry_plus(req, page + used, size - used, name, &e, (off_t)i + 1);
		if (n > size - used)
			break;
		used += n;
	}
	fuse_reply_buf(req, page, used);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	bool has_some = is_directory(ino) && ino != FUSE_ROOT_ID;
	char list[PAGE];
	size_t n = 0;

	for (uint64_t i = 0; has_some && i < attributes; i++)
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
	if (ino == FUSE_ROOT_ID || !is_directory(ino) || strncmp(name, "user.attribute", 14))
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
	.open = op_open,
	.read = op_read,
	.opendir = op_open,
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

	if (argc != 6)
		die("usage: see the source");
	directories = number(argv[1]);
	attributes = number(argv[2]);
	files = number(argv[3]);
	bytes = number(argv[4]);
	if (attributes * NAME > PAGE || bytes > PAGE)
		die("too many attributes, or files too large");
	session = fuse_session_new(&args, &operations, sizeof operations, NULL);
	if (!session || fuse_set_signal_handlers(session) || fuse_session_mount(session, argv[5]))
		die("%s", argv[5]);
	rc = fuse_session_loop_mt(session, &config);
	fuse_session_unmount(session);
	fuse_remove_signal_handlers(session);
	fuse_session_destroy(session);
	return rc != 0;
}
