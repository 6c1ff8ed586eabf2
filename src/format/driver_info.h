/* Driver information block and driver info message (0x0014): how the address space of one HDF5 file is spread
 * over several files. Specification II.B, IV.A.2.u. */
#ifndef H5_FORMAT_DRIVER_INFO_H
#define H5_FORMAT_DRIVER_INFO_H

#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	H5_DRIVER_MEMBERS_MAX = 6,	  /* most members of the multi driver: one for each kind of data */
	H5_DRIVER_BLOCK_HEAD = 16,	  /* bytes before the information in a block */
	H5_DRIVER_MESSAGE_HEAD = 11,	  /* the same in a message */
	H5_DRIVER_BLOCK_MAX = 5000,	  /* most bytes of a driver information block */
	H5_DRIVER_NAME_SIZE = 255 + 1,	  /* most bytes of a member's name, NUL included */
	H5_DRIVER_FOLDER_SIZE = 4095 + 1, /* most bytes of the folder's name, NUL included */
};

enum h5_driver {
	H5_DRIVER_NONE, /* no driver, or one that does not spread the file */
	H5_DRIVER_FAMILY,
	H5_DRIVER_MULTI,
	H5_DRIVER_SUBFILING,
};

struct h5_driver_member {
	uint64_t start;			/* the member's first address */
	uint64_t end;			/* where what is allocated in it ends: bytes from `start` on */
	char name[H5_DRIVER_NAME_SIZE]; /* %s stands for the name of the whole file */
};

struct h5_driver_info {
	enum h5_driver driver;
	uint64_t member_size; /* family: bytes of each member but the last */
	unsigned members;     /* multi */
	unsigned raw;	      /* multi: which member raw data go to */
	bool spread;	      /* multi: metadata go to several members; a global heap is as raw data */
	struct h5_driver_member member[H5_DRIVER_MEMBERS_MAX]; /* the first holds the superblock */
	uint64_t stripe_size, subfiles;			       /* subfiling (subfiling.h): both at least 1 */
	/* subfiling: the folder that has the configuration file; empty: the folder of the stub has it */
	char folder[H5_DRIVER_FOLDER_SIZE];
};

int h5_driver_info_block_decode(struct h5_reader *r, struct h5_driver_info *info);
/* Bytes of the information that follows the H5_DRIVER_BLOCK_HEAD bytes. */
uint32_t h5_driver_info_block_size(const uint8_t *head);
/* Bytes of the information of a multi file up to the ends of its members. */
size_t h5_driver_info_ends_size(unsigned members);
/* Sets these ends, in the order of struct h5_driver_info, in the n bytes of information. -EUCLEAN: n is too
 * small. */
int h5_driver_info_set_ends(uint8_t *data, size_t n, const uint64_t *ends, unsigned members);
int h5_driver_info_message_decode(struct h5_reader *r, struct h5_driver_info *info);

/* The defaults of the multi driver: six members. */
void h5_driver_info_multi_default(struct h5_driver_info *info);

#endif
