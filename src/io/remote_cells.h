/* The table of cells: which bytes of which remote file each cell of the shared memory holds. The caller has
 * the lock (io/remote_link.h). */
#ifndef H5_IO_REMOTE_CELLS_H
#define H5_IO_REMOTE_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#define H5_NO_CELL UINT32_MAX

enum h5_cell_state {
	H5_CELL_EMPTY,
	H5_CELL_LOADING,
	H5_CELL_READY,
	H5_CELL_FAILED, /* kept until those who wait for it have seen it */
};

struct h5_cell {
	uint64_t number;       /* of the cell within its file */
	uint32_t file, chain;  /* the next one with the same hash */
	uint32_t older, newer; /* in its list of idle ones: ready, and held by nobody */
	uint32_t holders;
	int code; /* of the failure */
	enum h5_cell_state state;
	bool announced; /* it was asked for before anybody read of it */
	bool used;	/* somebody has read of it */
};

struct h5_cell_list {
	uint32_t oldest, newest, count;
};

struct h5_cells {
	struct h5_cell *list; /* owned */
	uint32_t *heads;      /* owned; of the chains */
	uint32_t count, mask;
	/* Idle ones. Who reads a file in order does not come back: what was announced and has been read makes
	 * room before what will be read. */
	struct h5_cell_list spent, kept;
	uint32_t empty;	  /* the first cell that holds nothing; `chain` leads to the next */
	uint32_t waiting; /* cells that were announced and not used yet */
	uint64_t wasted;  /* cells that went without having been used */
};

int h5_cells_open(struct h5_cells *cells, uint32_t count);
void h5_cells_release(struct h5_cells *cells); /* may run twice */

/* The cell of these bytes; H5_NO_CELL: there is none. */
uint32_t h5_cells_find(const struct h5_cells *cells, uint32_t file, uint64_t number);
/* A cell for these bytes, which are not there; it is loading. If there are more than some spent ones, the
 * oldest of these makes room; else one that is empty, or the one that nobody has used for longest.
 * H5_NO_CELL: all are in use. */
uint32_t h5_cells_take(struct h5_cells *cells, uint32_t file, uint64_t number, bool announced);
/* A cell that was loading is ready, or has failed with that code. */
void h5_cells_end(struct h5_cells *cells, uint32_t i, int code);

/* Empties all cells of the file. None of them may be loading or held. */
void h5_cells_forget(struct h5_cells *cells, uint32_t file);

/* Somebody reads of a cell. */
void h5_cells_use(struct h5_cells *cells, uint32_t i);

/* Who holds a cell finds it as it is until he puts it back. */
void h5_cells_hold(struct h5_cells *cells, uint32_t i);
void h5_cells_put(struct h5_cells *cells, uint32_t i);

#endif
