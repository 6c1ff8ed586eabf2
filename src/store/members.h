/* The other members of a file in several pieces (family and multi drivers): found by their names, beside the
 * first one. */
#ifndef H5_STORE_MEMBERS_H
#define H5_STORE_MEMBERS_H

#include "format/driver_info.h"
#include "store/folder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of the first member. */
struct h5_members {
	const struct h5_folder *folder; /* borrowed */
	const char *path;		/* relative to the folder, or absolute; borrowed */
	const char *
		pattern; /* name of a family's members, with %d for their number; NULL: guessed from `path` */
	uint64_t end;	 /* where the addresses of the whole file end, by its superblock */
	char *missing;	 /* set to what is not there, in words; NULL: nothing. The caller's, free() */
	/* Private: */
	bool guarded;		  /* no other files are opened: the file alone must not choose its pieces */
	struct h5_io_stat begins; /* what the system says of the first member */
};

/* Opens the members of a family or multi file. *io is the first member and becomes the whole file; on failure
 * it stays what it is. A member that cannot be opened is missing; -EWOULDBLOCK where one is locked by a
 * writer.
 *
 * With H5_EXTERNAL_NONE, and if the user has not named the members by a pattern, a member must have a name
 * that follows from the first one's by the rules of the driver, the same owner and the same permissions, or
 * it is missing: whoever made the file must not choose what the mount shows.
 *
 * `sure` false: nothing but the file's size hints at a family, so that its members must all be there with
 * just the sizes of a family; else it isn't one, and *io stays what it is, too. */
int h5_members_open(struct h5_members *members, const struct h5_driver_info *info, bool sure,
		    struct h5_io **io);

/* *first: the name of a family's first member, in place of the pattern that the last component of `path` is;
 * to be freed. NULL: it is none. */
int h5_members_first_path(const char *path, char **first);

#endif
