#include "io/remote_cells.h"

#include "base/checked.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { SPENT_SHARE = 16 }; /* of all cells are spent ones that stay */

int h5_cells_open(struct h5_cells *cells, uint32_t count)
{
	uint32_t heads = UINT32_C(2) << h5_log2(count);

	*cells = (struct h5_cells){.count = count,
				   .mask = heads - 1,
				   .spent = {H5_NO_CELL, H5_NO_CELL, 0},
				   .kept = {H5_NO_CELL, H5_NO_CELL, 0}};
	cells->list = h5_calloc(count, sizeof *cells->list);
	cells->heads = h5_calloc(heads, sizeof *cells->heads);
	if (!cells->list || !cells->heads) {
		h5_cells_release(cells);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < heads; i++)
		cells->heads[i] = H5_NO_CELL;
	for (uint32_t i = 0; i < count; i++)
		cells->list[i].chain = i + 1 < count ? i + 1 : H5_NO_CELL;
	return 0;
}

void h5_cells_release(struct h5_cells *cells)
{
	for (uint32_t i = 0; cells->list && i < cells->count; i++) {
		assert(!cells->list[i].holders);
		cells->waiting -= cells->list[i].announced && !cells->list[i].used;
	}
	assert(!cells->waiting);
	free(cells->list);
	free(cells->heads);
	cells->list = NULL;
	cells->heads = NULL;
}

/* ---- chains ---- */

static uint32_t *head_of(const struct h5_cells *cells, uint32_t file, uint64_t number)
{
	uint64_t hash = (number + ((uint64_t)file << 40)) * UINT64_C(0x9e3779b97f4a7c15);

	return &cells->heads[(uint32_t)(hash >> 32) & cells->mask];
}

uint32_t h5_cells_find(const struct h5_cells *cells, uint32_t file, uint64_t number)
{
	uint32_t i = *head_of(cells, file, number);

	while (i != H5_NO_CELL && (cells->list[i].number != number || cells->list[i].file != file))
		i = cells->list[i].chain;
	return i;
}

static void chain(struct h5_cells *cells, uint32_t i)
{
	struct h5_cell *cell = &cells->list[i];
	uint32_t *head = head_of(cells, cell->file, cell->number);

	cell->chain = *head;
	*head = i;
}

/* The cell holds nothing from now on. */
static void empty(struct h5_cells *cells, uint32_t i)
{
	struct h5_cell *cell = &cells->list[i];
	uint32_t *link = head_of(cells, cell->file, cell->number);

	cells->waiting -= cell->announced && !cell->used;
	while (*link != i)
		link = &cells->list[*link].chain;
	*link = cell->chain;
	*cell = (struct h5_cell){.chain = cells->empty};
	cells->empty = i;
}

/* ---- the idle ones ---- */

static struct h5_cell_list *list_of(struct h5_cells *cells, const struct h5_cell *cell)
{
	return cell->announced && cell->used ? &cells->spent : &cells->kept;
}

static void become_idle(struct h5_cells *cells, uint32_t i)
{
	struct h5_cell *cell = &cells->list[i];
	struct h5_cell_list *list = list_of(cells, cell);

	cell->older = list->newest;
	cell->newer = H5_NO_CELL;
	if (list->newest == H5_NO_CELL)
		list->oldest = i;
	else
		cells->list[list->newest].newer = i;
	list->newest = i;
	list->count++;
}

static void end_idle(struct h5_cells *cells, uint32_t i)
{
	const struct h5_cell *cell = &cells->list[i];
	struct h5_cell_list *list = list_of(cells, cell);

	if (cell->older == H5_NO_CELL)
		list->oldest = cell->newer;
	else
		cells->list[cell->older].newer = cell->newer;
	if (cell->newer == H5_NO_CELL)
		list->newest = cell->older;
	else
		cells->list[cell->newer].older = cell->older;
	list->count--;
}

/* Empties an idle cell. */
static void drop(struct h5_cells *cells, uint32_t i)
{
	cells->wasted += !cells->list[i].used;
	end_idle(cells, i);
	empty(cells, i);
}

static void evict(struct h5_cells *cells)
{
	/* Some of the spent ones stay: their other bytes may be read next. */
	bool spent = cells->spent.count > cells->count / SPENT_SHARE || cells->kept.oldest == H5_NO_CELL;
	uint32_t i = spent ? cells->spent.oldest : cells->kept.oldest;

	drop(cells, i);
}

void h5_cells_forget(struct h5_cells *cells, uint32_t file)
{
	for (uint32_t i = 0; i < cells->count; i++)
		if (cells->list[i].state == H5_CELL_READY && cells->list[i].file == file)
			drop(cells, i);
}

/* ---- */

uint32_t h5_cells_take(struct h5_cells *cells, uint32_t file, uint64_t number, bool announced)
{
	uint32_t i;

	/* Also if there are empty ones: memory that was used before is faster than new memory. */
	if (cells->spent.count > cells->count / SPENT_SHARE ||
	    (cells->empty == H5_NO_CELL && cells->spent.count + cells->kept.count))
		evict(cells);
	i = cells->empty;
	if (i == H5_NO_CELL)
		return i;
	cells->empty = cells->list[i].chain;
	cells->list[i] = (struct h5_cell){
		.number = number, .file = file, .state = H5_CELL_LOADING, .announced = announced};
	chain(cells, i);
	cells->waiting += announced;
	return i;
}

/* Nobody holds the cell any more. */
static void let_go(struct h5_cells *cells, uint32_t i)
{
	if (cells->list[i].state == H5_CELL_READY)
		become_idle(cells, i);
	else if (cells->list[i].state == H5_CELL_FAILED)
		empty(cells, i);
}

void h5_cells_end(struct h5_cells *cells, uint32_t i, int code)
{
	struct h5_cell *cell = &cells->list[i];

	assert(cell->state == H5_CELL_LOADING);
	cell->state = code ? H5_CELL_FAILED : H5_CELL_READY;
	cell->code = code;
	if (!cell->holders)
		let_go(cells, i);
}

void h5_cells_use(struct h5_cells *cells, uint32_t i)
{
	struct h5_cell *cell = &cells->list[i];

	cells->waiting -= cell->announced && !cell->used;
	cell->used = true;
}

void h5_cells_hold(struct h5_cells *cells, uint32_t i)
{
	struct h5_cell *cell = &cells->list[i];

	if (!cell->holders++ && cell->state == H5_CELL_READY)
		end_idle(cells, i);
}

void h5_cells_put(struct h5_cells *cells, uint32_t i)
{
	assert(cells->list[i].holders);
	if (!--cells->list[i].holders)
		let_go(cells, i);
}
