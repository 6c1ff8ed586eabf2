/* The limit of what a FUSE daemon can do: one file, whose requests become pread(2) and pwrite(2) on a plain
 * one.
 *
 *     bare FILE MOUNTPOINT      in the foreground if the first argument is -f
 *
 * Its only name is `data`. What the kernel is told (sizes of requests, time-outs, what it may keep) is as in
 * h5fs. */
#define FUSE_USE_VERSION 35
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DATA = FUSE_ROOT_ID + 1 };
static const double LONG = 365 * 24 * 3600;

static int data_fd;

static void attributes(fuse_ino_t ino, struct stat *st)
{
	if (ino == DATA && fstat(data_fd, st))
		die("fstat");
	else if (ino != DATA)
		*st = (struct stat){.st_mode = S_IFDIR | 0555, .st_nlink = 2};
	st->st_ino = ino;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = {.ino = DATA, .attr_timeout = LONG, .entry_timeout = LONG};

	if (parent != FUSE_ROOT_ID || strcmp(name, "data")) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	attributes(DATA, &e.attr);
	fuse_reply_entry(req, &e);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	(void)fi;
	attributes(ino, &st);
	fuse_reply_attr(req, &st, LONG);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fi->keep_cache = 1;
	fi->direct_io = (fi->flags & O_ACCMODE) == O_WRONLY;
	fi->noflush = 1;
	fuse_reply_open(req, fi);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	static _Thread_local char *buffer;
	static _Thread_local size_t room;
	ssize_t got;

	(void)ino;
	(void)fi;
	if (size > room) {
		free(buffer);
		buffer = allocate(size);
		room = size;
	}
	got = pread(data_fd, buffer, size, offset);
	if (got < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_buf(req, buffer, (size_t)got);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	ssize_t put = pwrite(data_fd, data, size, offset);

	(void)ino;
	(void)fi;
	if (put < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_write(req, (size_t)put);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	(void)fi;
	fuse_reply_err(req, fdatasync(data_fd) ? errno : 0);
}

static const struct fuse_lowlevel_ops operations = {
	.lookup = op_lookup,
	.getattr = op_getattr,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.fsync = op_fsync,
};

int main(int argc, char **argv)
{
	int foreground = argc > 1 && !strcmp(argv[1], "-f");
	char *name[] = {argv[0], NULL};
	struct fuse_args args = FUSE_ARGS_INIT(1, name);
	struct fuse_loop_config config = {.clone_fd = 0, .max_idle_threads = 10};
	struct fuse_session *session;
	int rc;

	if (argc != 3 + foreground)
		die("usage: see the source");
	data_fd = open(argv[1 + foreground], O_RDWR);
	if (data_fd < 0)
		die("%s", argv[1 + foreground]);
	session = fuse_session_new(&args, &operations, sizeof operations, NULL);
	if (!session || fuse_set_signal_handlers(session) ||
	    fuse_session_mount(session, argv[2 + foreground]))
		die("%s", argv[2 + foreground]);
	fuse_daemonize(foreground);
	rc = fuse_session_loop_mt(session, &config);
	fuse_session_unmount(session);
	fuse_remove_signal_handlers(session);
	fuse_session_destroy(session);
	return rc != 0;
}
