#include "change/watch.h"

#include "base/error.h"
#include "change/private.h"

#include <utlist.h>

void h5_tx_watch(struct h5_file *file, struct h5_tx_watch *watch, uint64_t *address)
{
	struct h5_tx *tx = h5_tx_find(file);

	if (watch->address || !tx)
		return;
	watch->address = address;
	DL_APPEND(tx->watches, watch);
}

void h5_tx_unwatch(struct h5_file *file, struct h5_tx_watch *watch)
{
	if (!watch->address)
		return;
	DL_DELETE(h5_tx_find(file)->watches, watch);
	watch->address = NULL;
}

void h5_tx_tell_watches(struct h5_file *file, uint64_t address, uint64_t n)
{
	struct h5_tx_watch *watch;

	DL_FOREACH(h5_tx_find(file)->watches, watch)
	if (*watch->address - address < n)
		*watch->address = H5_UNDEF;
}

void h5_tx_end_watches(struct h5_tx *tx)
{
	struct h5_tx_watch *watch, *next;

	DL_FOREACH_SAFE(tx->watches, watch, next)
	{
		DL_DELETE(tx->watches, watch);
		watch->address = NULL;
	}
}
