/* The journal FILE.h5fs-journal, which heals a commit that a power cut has torn. doc/writing.md has the
 * rules.
 *
 * A record is written and synced before the first cell of a commit, and overwritten by the next one, which
 * begins by syncing the file. Offsets are absolute: user block included. */
#ifndef H5_CHANGE_JOURNAL_H
#define H5_CHANGE_JOURNAL_H

#include "format/journal.h"
#include "io/io.h"

#include <limits.h>

struct h5_journal; /* open for writing */

/* Where journals live: the directory of the file, or the one of -o journal=DIR. */
struct h5_journal_place {
	int dirfd;	  /* borrowed; O_PATH is enough */
	const char *name; /* FILE.h5fs-journal; borrowed */
	uint64_t owner; /* uid of the HDF5 file's owner: beside ourselves, only that user may own a journal */
	unsigned mode;	/* permissions of the HDF5 file, and so of the journal */
	struct h5_journal_file file; /* identifies the HDF5 file, also under another name */
	/* If the journal does not lie beside the HDF5 file, a symbolic link there leads to it, so that a
	 * mount without -o journal is warned. */
	int beside;	     /* folder of the HDF5 file: O_PATH, borrowed */
	const char *pointer; /* name of the link; NULL: there is none. Borrowed */
	const char *path;    /* what the link says: the absolute path of the journal. Borrowed */
	/* Puts an h5_io around the one of the journal, for tests that record and fail its calls; NULL: none.
	 */
	struct h5_io *(*wrap)(void *arg, struct h5_io *io);
	void *wrap_arg;
	/* Called now and then while h5_journal_recover() reads what the record says of the file: how many
	 * bytes of how many; at first with 0. NULL: it is not called. */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
};

/* A place, and what it borrows. */
struct h5_journal_home {
	struct h5_journal_place place;
	char name[NAME_MAX + 1];
	char *pointer, *path; /* NULL: it lies beside the file */
};

void h5_journal_home_init(struct h5_journal_home *home);
/* Finds the place for the HDF5 file in `io`, at the absolute path. `beside`: its folder, borrowed; `folder`:
 * the one for journals, NULL: the same. -ENAMETOOLONG: the name is too long to add the suffix. */
int h5_journal_home_open(struct h5_journal_home *home, struct h5_io *io, const char *path, int beside,
			 const char *folder);
void h5_journal_home_release(struct h5_journal_home *home); /* may run twice */

/* Creates and locks the journal; it must not exist. Its directory entry is durable afterwards. `swmr`: the
 * marks that the superblock gets after this are this mount's own. -EROFS, -EACCES, ...: no place for it. */
int h5_journal_create(const struct h5_journal_place *place, bool swmr, struct h5_journal **journal);
/* Writes the record over the one before, and syncs it. Sets its id and sequence. -EFBIG: too large. */
int h5_journal_write(struct h5_journal *journal, struct h5_journal_record *record);
/* Zeroes the header of the last record, and syncs that. Then what the record guards may change outside of a
 * commit, as marks in the superblock do. */
int h5_journal_clear(struct h5_journal *journal);
/* `done`: zeroes and removes the journal, durably; else leaves the record for the next mount. NULL is fine.
 */
void h5_journal_close(struct h5_journal *journal, bool done);

enum h5_recovery {
	H5_RECOVERY_NONE,     /* there is no journal, or an incomplete or an applied one */
	H5_RECOVERY_REPLAYED, /* the journal was replayed, to the file or to the overlay */
	H5_RECOVERY_STALE,    /* another program has written the HDF5 file since: nothing was done. The caller
				 checks the objects that the journal names */
	H5_RECOVERY_BUSY,     /* another process has locked the journal: nothing was done */
	H5_RECOVERY_UNFIT, /* the file in the journal's place is no journal that could be heeded, and the HDF5
			      file was opened for reading; h5_journal_recover() itself fails then */
};

struct h5_recovered {
	enum h5_recovery what;
	bool swmr; /* marks in the superblock are those of the journal's mount, which is no more; false if the
		      journal is stale or busy */
	uint8_t id[16];
	uint64_t *objects; /* owned; if the journal is stale */
	unsigned object_count;
};

/* Deals with a journal that is found beside the file, by the rules of doc/writing.md. `io`: the HDF5 file,
 * locked. With `write` the journal is replayed into the file and removed; but if `swmr` comes out true, the
 * caller clears the marks first and then removes it. Without `write`, *overlay becomes an io that reads as if
 * it had been replayed, takes `io` over and holds the journal's lock; NULL: nothing was to be replayed. A
 * journal is hostile input like any other. -EPERM, -ELOOP, -EUCLEAN: it cannot be trusted, or is no journal.
 */
int h5_journal_recover(const struct h5_journal_place *place, struct h5_io *io, bool write,
		       struct h5_io **overlay, struct h5_recovered *recovered);
/* Looks for the journal under another name in its folder, since the file may have been renamed while it was
 * mounted, or have been mounted by another of its names. 0: `name` is its name; -ENOENT: none was found;
 * -ENOMEM, -EMFILE, ...: one may be there. */
int h5_journal_find(const struct h5_journal_place *place, char *name, size_t size);
/* Of a file that has so many names: true if h5_journal_find() finds the journal by each of them, as they all
 * lie in its folder. */
bool h5_journal_is_found_by_all(const struct h5_journal_place *place, uint64_t names);
/* Gives a journal that was found like that its right name. -EWOULDBLOCK: another process has it locked. */
int h5_journal_adopt(const struct h5_journal_place *place, const char *name);
/* If the journal lies elsewhere, looks for another one beside the file. -EPERM: there is one, and
 * h5_error_last() tells what to do. */
int h5_journal_check_beside(const struct h5_journal_place *place);
void h5_recovered_release(struct h5_recovered *recovered); /* may run twice */
/* Removes a journal whose marks were cleared, durably. */
int h5_journal_remove(const struct h5_journal_place *place);
/* Renames a stale journal to NAME.stale-ID. */
int h5_journal_set_aside(const struct h5_journal_place *place, const struct h5_recovered *recovered);

#endif
