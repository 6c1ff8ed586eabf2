/* The configuration file that libhdf5's subfiling driver puts beside a file: text that says how the bytes of
 * the file are spread over subfiles. Not in the specification: see libhdf5's H5FDsubfiling.
 *
 * FILE, of the inode number N, is a stub: it has only the superblock, and mostly the driver information. Its
 * bytes are in the subfiles FILE.subfile_N_1_of_3, ..., cut into stripes of the same size: the stripe number
 * s is in the subfile s % 3, counted from 0, at s / 3 stripes. FILE.subfile_N.config is the configuration. */
#ifndef H5_FORMAT_SUBFILING_H
#define H5_FORMAT_SUBFILING_H

#include <stddef.h>
#include <stdint.h>

enum {
	H5_SUBFILING_TEXT_MAX = 16 << 10,    /* most bytes that are read of a configuration file */
	H5_SUBFILING_FOLDER_SIZE = 4095 + 1, /* most bytes of the folder's name, NUL included */
};

struct h5_subfiling_config {
	uint64_t stripe_size; /* bytes, at least 1 */
	uint64_t subfiles;    /* at least 1 */
	/* The folder where the subfiles were written: mostly an absolute path. "": not known. */
	char folder[H5_SUBFILING_FOLDER_SIZE];
};

/* Decodes the first n bytes of a configuration file. */
int h5_subfiling_config_decode(const char *text, size_t n, struct h5_subfiling_config *config);

#endif
