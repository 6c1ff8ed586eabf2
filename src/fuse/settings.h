/* What the command line asks for. */
#ifndef H5_FUSE_SETTINGS_H
#define H5_FUSE_SETTINGS_H

#define FUSE_USE_VERSION 312

#include "fuse/log.h"
#include "remote/fetcher.h"
#include "store/file_set.h"
#include "vfs/vfs.h"

#include <fuse_lowlevel.h>

/* What h5fs shall do. */
enum h5_command {
	H5_COMMAND_MOUNT,
	H5_COMMAND_CAT, /* writes a file of the tree to standard output */
	H5_COMMAND_CHECK,
	H5_COMMAND_EXTRACT,  /* copies the tree, or a part of it, into a directory */
	H5_COMMAND_KERCHUNK, /* prints where chunks lie */
	H5_COMMAND_LIST,
	H5_COMMAND_RECLAIM, /* gives unused space of the file back */
	H5_COMMAND_RECOVER, /* deals with the journal of the file */
	H5_COMMAND_REMOUNT, /* makes a mount read-only, or writable again */
	H5_COMMAND_UNMOUNT,
};

/* Whether requests come through io_uring (fuse/io_uring.h); AUTO: if that is possible. */
enum h5_io_uring { H5_IO_URING_NO, H5_IO_URING_AUTO, H5_IO_URING_YES };

/* Versions of the superblock of new files. */
enum { H5_CREATE_V18 = 2, H5_CREATE_V110 = 3 };

struct h5_options {
	char *file;	     /* owned; of a URL without its query */
	char *url;	     /* owned: the URL with its query, which may be secret; NULL: a local file */
	char *mountpoint;    /* owned; NULL: none was given */
	char *path;	     /* owned: in the tree; NULL: none was given */
	char *target;	     /* owned: where --extract copies to */
	char *match;	     /* owned; NULL: not given */
	unsigned open_files; /* 0: not given */
	bool is_folder;	     /* `file` is a folder, which is to be mounted */
	bool json;	     /* --list prints JSON */
	bool mountpoint_made;
	bool foreground, debug, single_thread;
	bool sandbox, nonempty;
	enum h5_io_uring io_uring;
	bool is_helper;	     /* mount(8) has called it; then also: */
	bool fake, sloppy;   /* mounts nothing; unknown options are no error */
	unsigned timeout;    /* seconds without use after which the daemon unmounts; 0: never */
	char *log;	     /* owned: a file; NULL: none was named */
	bool to_syslog;	     /* log to syslog, also in the foreground */
	bool quiet, verbose; /* of the log; quiet counts if both are set */
	uint64_t revision;   /* set.revision; UINT64_MAX: not given */
	char *subdir;	     /* owned; vfs.subdir borrows it */
	char *filters;	     /* owned; vfs.filters has what it says */
	char *journal;	     /* owned; set.journal borrows it */
	char *kerchunk_url;  /* owned; vfs.url borrows it */
	enum h5_command command;
	unsigned create; /* a file that is not there is made with a superblock of this version; 0: none is */
	bool help, version;
	bool allow_other;
	char *http_header;     /* owned: @FILE; fetcher.headers borrows it */
	char *s3_endpoint;     /* owned; fetcher.s3_endpoint borrows it */
	char *disk_cache;      /* owned: a folder; NULL: none was named */
	bool disk_cache_fails; /* it cannot be used */
	struct h5_fetcher_options fetcher;
	struct h5_file_set_options set;
	struct h5_vfs_options vfs;
	struct fuse_args args; /* for libfuse */
};

#endif
