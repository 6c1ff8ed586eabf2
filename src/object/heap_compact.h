/* Takes objects out of a collection of the global heap that is in use. The objects behind them move up, and
 * the free space at the end becomes larger: as libhdf5 does it. */
#ifndef H5_OBJECT_HEAP_COMPACT_H
#define H5_OBJECT_HEAP_COMPACT_H

#include "store/file.h"

struct h5_heap_part {
	uint64_t begin, size; /* of an object with its header, in the collection */
	bool goes;
};

/* In a unit of change. `parts` are all objects of the collection, of `size` bytes, in the order in which they
 * lie there. Of those that are to go, as many go as one cell can take out: those from one of them on up to
 * the end; the others stay as they are. None goes if the commit is to add objects to the collection: their
 * cells would come too late. */
int h5_heap_compact(struct h5_file *file, uint64_t address, uint64_t size, const struct h5_heap_part *parts,
		    size_t count);

#endif
