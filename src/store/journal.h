/* The journal FILE.h5fs-journal: what heals a commit that a power cut tore. doc/writing.md has the rules.
 *
 * A record is written and synced before the first cell of a commit, and overwritten by the next one, which
 * begins by syncing the file. Offsets are absolute: user block included. */
#ifndef H5_STORE_JOURNAL_H
#define H5_STORE_JOURNAL_H

#include "format/journal.h"
#include "io/io.h"

struct h5_journal; /* open for writing */

/* Where journals live: the directory of the file, or the one of -o journal=DIR. */
struct h5_journal_place {
	int dirfd;	  /* borrowed; O_PATH is enough */
	const char *name; /* FILE.h5fs-journal; borrowed */
	uint64_t owner;	  /* uid of the HDF5 file's owner: who may own a journal beside ourselves */
	unsigned mode;	  /* of the HDF5 file: who may read it may read the journal too */
	/* Puts an h5_io around the one of the journal, for tests that record and fail its calls; NULL: none.
	 */
	struct h5_io *(*wrap)(void *arg, struct h5_io *io);
	void *wrap_arg;
};

/* Creates and locks the journal; it must not exist. Its directory entry is durable afterwards. `swmr`: the
 * marks that the superblock gets after this are this mount's own. -EROFS, -EACCES, ...: no place for it. */
int h5_journal_create(const struct h5_journal_place *place, bool swmr, struct h5_journal **journal);
/* Writes the record over the one before, and syncs it. Sets its id and sequence. -EFBIG: too large. */
int h5_journal_write(struct h5_journal *journal, struct h5_journal_record *record);
/* The last record is needed no more: its header is zeroed, and synced. What it guards may change then other
 * than by a commit, as marks in the superblock do. */
int h5_journal_clear(struct h5_journal *journal);
/* Zeroes, syncs, unlinks, syncs the directory where `done`; else leaves the record for the next mount. NULL
 * is fine. */
void h5_journal_close(struct h5_journal *journal, bool done);

enum h5_recovery {
	H5_RECOVERY_NONE,     /* there is no journal, or an incomplete or an applied one */
	H5_RECOVERY_REPLAYED, /* written to the file, or to the overlay */
	H5_RECOVERY_STALE,    /* another program has written since: nothing was done. The caller checks the
				 objects it names */
	H5_RECOVERY_BUSY,     /* somebody alive holds it: nothing was done */
};

struct h5_recovered {
	enum h5_recovery what;
	bool swmr; /* marks in the superblock are those of the journal's mount, which is no more; not where
		      stale or busy */
	uint8_t id[16];
	uint64_t *objects; /* owned; where stale */
	unsigned object_count;
};

/* Deals with a journal that is found beside the file, by the rules of doc/writing.md. `io`: the HDF5 file,
 * locked. With `write` it is replayed into the file and removed; but where `swmr` comes out true, the caller
 * clears the marks and then removes it. Without, *overlay becomes an io that reads as if it had been (it
 * takes `io` over and holds the journal's lock; NULL where nothing was replayed). A journal is hostile input
 * like any other. -EPERM, -ELOOP, -EUCLEAN: not one that may be trusted, or none at all. */
int h5_journal_recover(const struct h5_journal_place *place, struct h5_io *io, bool write,
		       struct h5_io **overlay, struct h5_recovered *recovered);
void h5_recovered_release(struct h5_recovered *recovered); /* may run twice */
/* Removes a journal whose marks were cleared, durably. */
int h5_journal_remove(const struct h5_journal_place *place);
/* Renames a stale journal to NAME.stale-ID. */
int h5_journal_set_aside(const struct h5_journal_place *place, const struct h5_recovered *recovered);

#endif
