/* Gathers changes of the open file and commits them together, so that libhdf5 can open the file at every
 * instant. doc/writing.md has the rules; the code names them by their numbers.
 *
 * Space that was allocated since the last commit is *new*: nothing committed refers to it, so it may be
 * written at any time: raw data at once, metadata when the commit begins. Committed bytes change in place
 * only by *cells*: writes inside one 4 KiB page of the file, which are held back until the commit and then
 * made in the order of their stages. Any other block is copied to new space, and its parent changes to point
 * to the copy.
 *
 * Reads of the file (h5_file_read() and all above it) see every change at once.
 *
 * Nothing here is thread-safe: a request that changes the file runs alone. Addresses are those of the format,
 * relative to the base address. All functions but h5_tx_is_writable() need a file that is open for writing.
 */
#ifndef H5_CHANGE_TRANSACTION_H
#define H5_CHANGE_TRANSACTION_H

#include "base/extents.h"
#include "store/file.h"

#include <stdbool.h>

enum { H5_CELL = 4096 }; /* bytes of a page of the file; a write inside one is made whole or not at all */

/* Order of the cells of a commit: children before parents. Numbers between these are used too. */
enum h5_stage {
	H5_STAGE_SUPERBLOCK = 0,
	H5_STAGE_EXTENSION = 1, /* the superblock extension, before it becomes wrong: extension_write.h */
	H5_STAGE_HEAP = 8,	/* a fractal heap, before the indexes whose records lead to its objects */
	/* Blocks of an index, and of the global heap. If a block changes because one below it has come or
	 * moved, that one is in new space, so they have no order. But a page comes before its bit, objects of
	 * a collection come before its first one, and a version 1 B-tree goes from the root down:
	 * change/btree1_change.h. */
	H5_STAGE_BLOCK = 16,
	H5_STAGE_INDEX = 512,	 /* header of an index */
	H5_STAGE_MESSAGES = 513, /* how many messages a version 1 object header has, before they are there */
	H5_STAGE_OBJECT = 514,	 /* object headers: layout */
	H5_STAGE_DATASPACE = 515,
	/* Names follow what they name; an old name goes after the new one is there; then the counts of names
	 * fall. */
	H5_STAGE_NAME = 516,
	H5_STAGE_UNNAME = 517,
	H5_STAGE_UNCOUNT = 518,
	/* Objects of the global heap go after all that has led to them. */
	H5_STAGE_DEAD = 519,
};

enum h5_allocation {
	H5_ALLOCATE_RAW,
	H5_ALLOCATE_METADATA, /* an allocation up to a cell lies inside one page */
	H5_ALLOCATE_ONCE,     /* metadata that may never change, so that they need not be a cell */
};

/* True: the file was opened for writing, and writing has not been given up after a failure. */
bool h5_tx_is_writable(const struct h5_file *file);

/* True: other programs read the file meanwhile, as SWMR readers. */
bool h5_tx_is_swmr(const struct h5_file *file);

/* Allocates n > 0 bytes of new space. -ENOSPC: the file has no more addresses. */
int h5_tx_allocate(struct h5_file *file, enum h5_allocation kind, uint64_t n, uint64_t *address);
/* Gives up space that nothing refers to any more; `n` is the size that was allocated. New space is used again
 * at once. Committed space keeps its bytes until no recovery can need them; then it is used again. Pending
 * cells in it are forgotten. */
void h5_tx_free(struct h5_file *file, uint64_t address, uint64_t n);
/* The same as an h5_extent_visit; `file` is the struct h5_file. */
static inline int h5_tx_free_extent(void *file, uint64_t address, uint64_t n)
{
	h5_tx_free(file, address, n);
	return 0;
}
/* As h5_tx_free(), for raw data that may be most of the file, so that the journal has no hash of them: rows
 * beyond the dataspace, elements of datasets that are removed. What another program writes there between a
 * crash and the replay is lost. */
void h5_tx_discard(struct h5_file *file, uint64_t address, uint64_t n);
/* True: the byte at the address is in new space. */
bool h5_tx_is_new(const struct h5_file *file, uint64_t address);

/* Writes raw data at once: into new space, or over committed elements. Forgets what is cached under the
 * address. After a part of a chunk was written, the caller calls h5_tx_forget() for the address of the chunk.
 */
int h5_tx_write(struct h5_file *file, uint64_t address, const void *data, size_t n);
/* The same with zeros, over committed elements, which take no room on the medium then. False: the file system
 * cannot do that, or it has failed, perhaps with a part done: the caller writes the zeros. */
bool h5_tx_punch(struct h5_file *file, uint64_t address, uint64_t n);
/* The journal hashes raw data in new space, and these n bytes too: raw data in committed space that nothing
 * referred to before, like rows beyond the dataspace. So it is never replayed into a file that lacks them. */
void h5_tx_cover(struct h5_file *file, uint64_t address, uint64_t n);
/* These bytes of raw data in new space mean nothing yet: the journal does not hash them, so writing them
 * later costs no sync. */
void h5_tx_uncover(struct h5_file *file, uint64_t address, uint64_t n);
/* Puts a metadata block into new space, or a part of one that is cached under an address of its own (a page).
 * It is written when the commit begins, or earlier. */
int h5_tx_put(struct h5_file *file, uint64_t address, const void *data, size_t n);
/* Changes the n bytes at the address: in the commit, at the stage. Pending patches that it overlaps become a
 * part of it; the latest of their stages counts. In new space it is h5_tx_put().
 *
 * If it is no cell, only the journal heals it after a kill in the middle of the write; so it is for the few
 * places where a copy is impossible. */
int h5_tx_patch(struct h5_file *file, uint64_t address, const void *data, size_t n, unsigned stage);
/* The n bytes have no meaning any more: patches inside of them are not written. */
void h5_tx_ignore(struct h5_file *file, uint64_t address, uint64_t n);
/* True: the bytes are in new space, or some of them change with the next commit. */
bool h5_tx_is_changed(const struct h5_file *file, uint64_t address, size_t n);
/* True: some of the bytes, which are not in new space, change with the next commit before this stage. */
bool h5_tx_changes_before(const struct h5_file *file, uint64_t address, uint64_t n, unsigned stage);
/* Changes of the n bytes, which are not in new space, are written at that stage at the earliest: for cells
 * that lead to new space in which something has changed. -ENOMEM. */
int h5_tx_delay(struct h5_file *file, uint64_t address, uint64_t n, unsigned stage);
/* The latest stage at which some of the bytes change; 0: none do, or they are in new space. */
unsigned h5_tx_latest_stage(const struct h5_file *file, uint64_t address, uint64_t n);
/* Reads n bytes as the last commit has left them: for those who must keep what the committed state refers to
 * until the next commit is certain. -EUCLEAN: the file ended before. */
int h5_tx_read_committed(struct h5_file *file, uint64_t address, void *data, size_t n);
/* Bytes from the address on that one cell can change. */
size_t h5_tx_left_in_cell(const struct h5_file *file, uint64_t address);
/* True: a patch of these n bytes would be in new space, or a cell. */
bool h5_tx_is_safe(const struct h5_file *file, uint64_t address, size_t n);

/* What most blocks need. Replaces the n bytes of the block at *address: in place, if h5_tx_is_safe(); else in
 * new space. Then *address changes, the old block is freed, and the caller makes the parent point to the new
 * one. *address H5_UNDEF: a new block. */
int h5_tx_store(struct h5_file *file, uint64_t *address, const void *data, size_t n, unsigned stage);
/* The same, but never in place in committed space: for blocks that must change together with their parent. */
int h5_tx_shadow(struct h5_file *file, uint64_t *address, const void *data, size_t n);

/* ---- units of change ----
 *
 * An index or an object header is changed in a unit. If the unit succeeds, all of it is in the transaction.
 * If it fails, the transaction is as it was: space that the unit has allocated is free again, and nothing
 * that was decoded meanwhile is cached. So code inside a unit undoes nothing: it returns the error.
 *
 * Reads inside a unit see its changes at once. Space that it gives up keeps its bytes, and is not used again,
 * until it ends. A unit inside a unit is a part of the outer one: it takes effect with that one, and the
 * caller must pass its failure on. There is no commit inside a unit. Raw data are written at once, so a
 * failing unit does not undo what h5_tx_write(), h5_tx_cover() and h5_tx_uncover() did to space that was
 * there before. */

/* Begins a unit, which must be ended. */
void h5_unit_begin(struct h5_file *file);
/* If the unit fails, the n bytes of memory at `data` become again what they are now: for the decoded header
 * of an index. They outlive the outermost unit, or else h5_unit_unsave() is called before they go. */
int h5_unit_save(struct h5_file *file, void *data, size_t n);
/* The n bytes of memory at `data` go away: none of them becomes what it was. May be called after the
 * outermost unit, too. */
void h5_unit_unsave(struct h5_file *file, const void *data, size_t n);
/* Until the outermost unit ends, no change comes later in the commit than that stage: for what removes only
 * what no commit has. */
void h5_unit_hasten(struct h5_file *file, unsigned stage);
/* To be called before an object that the last commit knows loses its name in the group, if it has got one in
 * another. A change in new space shows as soon as the cell that leads there, which may be written before that
 * other name. So until the next commit all that changes in the group shows at H5_STAGE_UNNAME, or later; also
 * what has changed already. -ENOMEM. */
int h5_unit_leave(struct h5_file *file, uint64_t group);
/* Ends the unit with a result: 0, or an error. Returns that, or an error of the unit itself. -EROFS: the file
 * takes no changes. */
int h5_unit_end(struct h5_file *file, int rc);

/* Forgets what is cached under the address: for those whose change makes something decoded stale (a dataset,
 * which is cached under the address of its object header). */
void h5_tx_forget(struct h5_file *file, uint64_t address);
/* The same, but for blocks of that type, which have not changed. */
void h5_tx_forget_but(struct h5_file *file, uint64_t address, const struct h5_block_type *type);
/* To be called before an object is changed: -ENOTSUP, ...: as h5_header_may_change(). Tells the journal,
 * and the open unit, which object a change belongs to. If the journal is found stale later, the object is
 * checked, unless it was new or its header was freed. */
int h5_tx_touch(struct h5_file *file, uint64_t object_header);

/* ---- participants ----
 *
 * A participant holds changes of one object in memory, such as the writer of a dataset. To settle it is to
 * bring what it holds into the transaction. A commit settles all participants first: space that one of them
 * has given up is referred to by the committed state until its last change is in. */

struct h5_tx_participant;

struct h5_tx_participant_ops {
	/* Brings what is held into the transaction; cheap if nothing is. It must not commit. */
	int (*settle)(struct h5_tx_participant *participant);
	/* Forgets what is held: the object is to be read anew. */
	void (*drop)(struct h5_tx_participant *participant);
};

struct h5_tx_participant {
	const struct h5_tx_participant_ops *ops;
	uint64_t address; /* of the object header */
	/* The rest is the transaction's; others read it. */
	bool dirty;	  /* the participant is to be settled */
	size_t held;	  /* bytes in memory that settling lets go of */
	bool uncommitted; /* the participant has changed something since the last commit */
	int failure;	  /* of the last attempt to settle the participant; 0: none */
	struct h5_tx_participant *prev, *next;
};

void h5_tx_join(struct h5_file *file, struct h5_tx_participant *participant);
/* Takes the participant off the list. Changes that it has not settled are lost. */
void h5_tx_leave(struct h5_file *file, struct h5_tx_participant *participant);
/* The first of the list that goes on with `next`; NULL: there is none. */
struct h5_tx_participant *h5_tx_participants(const struct h5_file *file);
/* A participant calls it after it has changed something, or tried to, and after it was settled. */
void h5_tx_report(struct h5_file *file, struct h5_tx_participant *participant, bool dirty, size_t held);
/* Forgets what the participant holds. If that was to be settled, nothing that was given up since the last
 * commit is used again, as this object may still refer to it. */
void h5_tx_drop(struct h5_file *file, struct h5_tx_participant *participant);

/* True: a participant is to be settled. */
bool h5_tx_is_unsettled(const struct h5_file *file);
/* Bytes in memory that settling lets go of. */
size_t h5_tx_held(const struct h5_file *file);
/* Settles all participants, and sets `failure` of each. One that fails does not keep the others from it.
 * The request that asks for it cannot interrupt it, since it is done for all. Returns the first
 * failure. */
int h5_tx_settle(struct h5_file *file);

/* Another number after each commit, and after pending changes were dropped. It tells if an address of new
 * space that was kept is still that. */
uint64_t h5_tx_number(const struct h5_file *file);
/* True: something is to be committed. */
bool h5_tx_is_pending(const struct h5_file *file);
/* Settles all participants, then makes all pending changes durable: invariant 2. Without any it does no I/O.
 * A participant that cannot be settled (`failure`) does not keep the others from their commit. On failure
 * before the first cell the file is as at the last commit, and the changes stay pending. If the first sync or
 * a cell fails, the file takes no more changes (h5_tx_is_writable()). */
int h5_tx_commit(struct h5_file *file);
/* Somebody who changes the file right before and after each commit. */
struct h5_tx_around {
	void (*before)(void *arg);
	/* `made`: the commit was made; else the changes are still pending, or the file takes no more changes
	 * (h5_tx_is_writable()). */
	void (*after)(void *arg, bool made);
	void *arg;
};

/* NULL: nobody. *around outlives the commits. */
void h5_tx_set_around(struct h5_file *file, const struct h5_tx_around *around);
/* After a commit that has failed and left the file as it was, so that it takes changes: drops all pending
 * changes, so that everything reads as the last commit has left it, except for elements that were overwritten
 * in place. Participants with uncommitted changes must have been dropped. */
void h5_tx_abandon(struct h5_file *file);
/* While nothing is pending: gives space that nothing refers to back to the file system, if there may be so
 * many bytes of it: that costs some syncs. Free space at the end is cut off, holes are punched into the rest.
 * The end of a mount does the same. If it cannot sync, or write the superblock, the file takes no more
 * changes. */
int h5_tx_give_back(struct h5_file *file, uint64_t least);
/* The same with all of this space, which nothing refers to, and with what lies behind the end that the
 * superblock states. For a file that has not changed since it was opened. */
int h5_tx_reclaim(struct h5_file *file, const struct h5_extents *unused);

#endif
