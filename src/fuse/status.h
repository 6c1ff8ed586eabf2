/* Exit statuses; doc/h5fs.1 has them too. */
#ifndef H5_FUSE_STATUS_H
#define H5_FUSE_STATUS_H

enum {
	EXIT_USAGE = 2,	  /* the command line */
	EXIT_FILE = 3,	  /* the file cannot be opened or is no HDF5 file */
	EXIT_DAMAGED = 4, /* the file's superblock or root group is damaged; --check: any part of the file */
	EXIT_LOCKED = 5,  /* another program writes the file */
	EXIT_UNSUPPORTED = 6, /* valid HDF5 that this version cannot do */
	EXIT_MOUNT = 7,	      /* the mount point, or FUSE */
	EXIT_READ_ONLY = 8,   /* rw: no right to write the file, or no place for its journal */
	EXIT_FORCE = 9,	      /* rw: only with -o force */
	EXIT_COMMIT = 10,     /* the last changes could not be committed */
	EXIT_STALE = 11,      /* the mount point belongs to a daemon that has died */
	EXIT_OUTPUT = 12,     /* standard output could not be written */
	/* A file behind a URL: */
	EXIT_NOT_FOUND = 13,   /* the server has no such file */
	EXIT_FORBIDDEN = 14,   /* the server does not permit it */
	EXIT_NO_RANGES = 15,   /* the server gives only whole files */
	EXIT_NETWORK = 16,     /* no server, or no good answer */
	EXIT_CERTIFICATE = 17, /* the server cannot show who it is */
	EXIT_DISK_CACHE = 18,  /* the folder of the disk cache cannot be used */
};

#endif
