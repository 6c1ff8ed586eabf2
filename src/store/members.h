/* The other members of a file in several pieces (family and multi drivers): found by their names, beside the
 * first one. */
#ifndef H5_STORE_MEMBERS_H
#define H5_STORE_MEMBERS_H

#include "format/driver_info.h"
#include "io/io.h"
#include "store/folder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { H5_MEMBERS_MAX = 4096 }; /* each takes a descriptor */

/* What is known of the first member, and becomes known of the others. */
struct h5_members {
	const struct h5_folder *folder; /* borrowed */
	const char *path;		/* relative to the folder, or absolute; borrowed */
	/* Name of a family's members, with %d for their number; NULL: guessed from `path`. */
	const char *pattern;
	uint64_t end;  /* where the addresses of the whole file end, by its superblock */
	bool writable; /* the first member is open for writing */
	char *missing; /* result: which members are not there, in words; NULL: none. free() */
	/* Private: */
	bool guarded;	     /* no external files are opened: the file must not choose its pieces */
	struct h5_io *first; /* the first member, borrowed */
};

/* Opens the members of a family or multi file. *io is the first member and becomes the whole file; on failure
 * it stays what it is. A member that cannot be opened is missing; -EWOULDBLOCK if one is locked by a
 * writer.
 *
 * With H5_EXTERNAL_NONE, whoever made the file must not choose what the mount shows. So a member counts as
 * missing unless the user has named the members by a pattern, or it has the owner and permissions of the
 * first one, and a name that follows from the first one's by the rules of the driver.
 *
 * With `writable`, all members must be there, and be open for writing, so that *io can be written. That of a
 * family makes more members, and those behind `end` belong to it, too.
 *
 * `sure` false: only the file's size suggests a family. It is one if all members are there with just the
 * sizes of a family; otherwise *io stays what it is. */
int h5_members_open(struct h5_members *members, const struct h5_driver_info *info, bool sure,
		    struct h5_io **io);

/* Tells in words which members are not there: those without an io. */
int h5_members_note_missing(struct h5_members *members, const struct h5_io_member *list, unsigned count);

/* If the last component of `path` is a pattern, *first is the path of the family's first member, free(); else
 * NULL. */
int h5_members_first_path(const char *path, char **first);

#endif
