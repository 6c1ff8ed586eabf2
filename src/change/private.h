/* What the files of the transaction share. From the ground up: watch.c tells watchers that others give up the
 * space they watch, journal.c writes the record of a commit, patches.c holds pending changes, unit.c takes
 * them back if a step fails, commit.c commits them, transaction.c accepts them, give_back.c gives unused
 * space back, open.c opens a file for changes. */
#ifndef H5_CHANGE_PRIVATE_H
#define H5_CHANGE_PRIVATE_H

#include "change/journal.h"
#include "change/space.h"
#include "format/superblock.h"
#include "io/overlay.h"
#include "store/file_private.h"

/* A pending change: a new block, or a cell of committed space. */
struct h5_tx_patch {
	struct h5_patch over; /* of the file: offset is absolute, bytes are `after` */
	unsigned stage;
	uint64_t order;	 /* patches of a stage are written in the order in which they were made */
	uint64_t unit;	 /* number of the unit of change that made it; 0: none */
	uint64_t object; /* header of the committed object that it changes; 0: none */
	uint8_t *after;	 /* over.n bytes; owned */
	/* What the same bytes are in the file, in one allocation with `after`; NULL: new space. */
	uint8_t *before;
	struct h5_tx_patch *next; /* in the list of patches that the open unit has put aside */
};

struct h5_tx_note;
struct h5_tx_saved;

/* The open unit of change, and what is needed to go back to its begin. */
struct h5_tx_unit {
	unsigned depth;		     /* units that are open, one inside the other */
	uint64_t number;	     /* of this unit, or else of the last one: 1, 2, ... */
	bool failed;		     /* a unit inside of it has failed, so it must fail too */
	int error;		     /* of a note that found no memory; 0: none */
	unsigned latest;	     /* stage of what it changes, at most; 0: any */
	uint64_t object;	     /* the committed one that changes now: h5_tx_touch(); 0: none */
	struct h5_tx_patch *aside;   /* patches from before the unit that it has replaced */
	struct h5_extents allocated; /* by the unit */
	struct h5_tx_note *notes;    /* owned, kept for the next unit; space given up, addresses forgotten */
	size_t note_count, note_capacity;
	struct h5_tx_saved *saved; /* owned; of h5_unit_save(), the last one first */
};

/* Raw data that was hashed when it was written, while the processor had it in its cache. */
struct h5_hashed {
	uint64_t address, n, hash;
};

/* A transaction is the io that its file is read through: pending patches, laid over the io that the file was
 * opened with. */
struct h5_tx {
	struct h5_overlay overlay;	   /* its patches are each a struct h5_tx_patch */
	struct h5_file *file;		   /* borrowed */
	const struct h5_tx_around *around; /* borrowed; NULL: none */
	struct h5_journal *journal;
	struct h5_superblock superblock; /* as it is in the file */
	uint64_t number;		 /* see h5_tx_number() */
	struct h5_space space;
	size_t held; /* bytes of new blocks among the patches */
	uint64_t next_order;
	struct h5_tx_unit unit;
	struct h5_extents blocks; /* new metadata */
	struct h5_extents raw;	  /* new raw data */
	struct h5_hashed *hashed; /* parts of `raw` whose hash is known; owned */
	size_t hashed_count, hashed_capacity;
	struct h5_extents hashed_space; /* the space of all parts in `hashed` */
	/* Raw data of earlier commits that the next record hashes too; none of it is in `raw`. While
	   `unsynced`, the last record has hashed all of it. */
	struct h5_extents covered;
	struct h5_extents cells; /* cells that the last commit has changed: the next commit guards them */
	/* Committed blocks and chunks that were given up; and the blocks of a cache image, without the cells
	 * in them. The journal hashes these. */
	struct h5_extents superseded;
	struct h5_extents objects; /* addresses of the headers of objects that change */
	struct h5_extents left;	   /* addresses of groups, by h5_unit_leave() since the last commit */
	/* Each commit calls it, to change the superblock extension: extension_write.h. NULL: it need not
	 * change.
	 */
	int (*extension_change)(struct h5_tx *tx);
	uint64_t member_ends; /* address of the driver information: member_ends.h */
	struct h5_tx_participant *participants;
	struct h5_tx_watch *watches;
	unsigned unsettled;	/* number of participants that are to be settled */
	size_t unsettled_bytes; /* of memory that these participants hold */
	bool written;		/* something was written or put since the last commit */
	bool unsynced;	/* the cells of the last commit may not be on the medium, so its record is needed */
	bool applying;	/* a commit is writing its cells, or has failed there: invariant 5 */
	bool marked;	/* the marks in the superblock are ours */
	bool failed;	/* no more changes */
	bool solid;	/* the file system cannot punch holes */
	bool persists;	/* the file keeps track of its free space: free_managers.h */
	bool unmanaged; /* a commit has taken its managers away */
};

/* NULL: the file is open for reading only. */
static inline struct h5_tx *h5_tx_find(const struct h5_file *file)
{
	return (struct h5_tx *)h5_file_changes(file);
}

/* The bytes of the file itself, by absolute offsets. */
static inline struct h5_io *h5_tx_medium(const struct h5_tx *tx)
{
	return tx->overlay.beneath;
}

static inline size_t h5_tx_patch_count(const struct h5_tx *tx)
{
	return tx->overlay.patches.count;
}

/* The i-th patch, by offset. Borrowed. */
static inline struct h5_tx_patch *h5_tx_patch_at(const struct h5_tx *tx, size_t i)
{
	return (struct h5_tx_patch *)tx->overlay.patches.list[i];
}

/* ---- watch.c ---- */

/* The transaction ends. */
void h5_tx_end_watches(struct h5_tx *tx);

/* ---- journal.c ---- */

/* Hashes raw data that was just written to new space, if they are many bytes; the commit hashes the rest. */
void h5_tx_hash(struct h5_tx *tx, uint64_t address, const uint8_t *data, size_t n);
/* Forgets hashes of these bytes, which change or mean nothing any more. */
void h5_tx_unhash(struct h5_tx *tx, uint64_t address, uint64_t n);

void h5_tx_forget_hashes(struct h5_tx *tx);

/* Writes the record of a commit with these patches, and syncs it. */
int h5_tx_journal(struct h5_tx *tx, struct h5_tx_patch *const *order);

/* ---- unit.c ---- */

/* -EROFS: the file takes no changes. */
int h5_tx_of(struct h5_file *file, struct h5_tx **tx);

/* After the pending patches were dropped: the open unit, if any, has nothing to restore but memory. */
void h5_tx_empty_unit(struct h5_tx *tx);

/* ---- patches.c ---- */

/* Adds a pending patch, or (`fresh`) a new block. Patches that it overlaps become a part of it. */
int h5_tx_add_patch(struct h5_tx *tx, uint64_t address, const void *data, size_t n, unsigned stage,
		    bool fresh);
/* Writes new blocks that are held in memory. Inside a unit, blocks that it has changed, but not
 * allocated, wait for its end. */
int h5_tx_flush(struct h5_tx *tx);
void h5_tx_drop_all(struct h5_tx *tx);
/* Forgets patches inside the range. */
void h5_tx_drop_patches(struct h5_tx *tx, uint64_t address, uint64_t n);
/* What the patches of an object show waits for the names in other groups: h5_unit_leave(). -ENOMEM. */
int h5_tx_delay_patches(struct h5_tx *tx, uint64_t object);
/* The open unit ends well: its patches stay. */
void h5_tx_keep_patches(struct h5_tx *tx);
/* The open unit fails: the patches become what they were before it. Takes no memory. */
void h5_tx_restore_patches(struct h5_tx *tx);

/* ---- commit.c ---- */

/* Writes the superblock, at once, and syncs it. It lies in one sector, so not even a power cut leaves a part.
 */
int h5_tx_write_superblock(struct h5_tx *tx, const struct h5_superblock *sb);
/* The file, or each of its members, gets the size of what is allocated in it. */
int h5_tx_set_sizes(struct h5_tx *tx);
/* The area ends there from now on, and the file is cut: nothing states a later end. */
void h5_tx_cut(struct h5_tx *tx, struct h5_area *area, uint64_t end);
/* Commits these ends of all areas, and nothing else: nothing is pending, and all behind them is free. The
 * file is not cut. `extension_change` is there. If it fails before the first cell, all is as it was. */
int h5_tx_commit_ends(struct h5_tx *tx, const uint64_t *ends);
/* Makes sure that the last commit is in the file, so that it no longer needs its journal, which is cleared.
 * If that fails, the caller sees to it that the file takes no more changes. */
int h5_tx_make_certain(struct h5_tx *tx);
/* The file takes no more changes. Pending ones are lost. */
void h5_tx_fail(struct h5_tx *tx);

/* ---- give_back.c ---- */

/* Sets the consistency flags in the superblock, at once. Does nothing if they mean nothing in its version. */
int h5_tx_mark(struct h5_tx *tx, uint32_t marks);
/* At the end of the mount: makes sure that the last commit is in the file, so that it no longer needs its
 * journal, gives unused space back, and clears marks of ours. The members of a multi file are cut before, by
 * h5_tx_give_back(). */
int h5_tx_finish(struct h5_tx *tx);

#endif
