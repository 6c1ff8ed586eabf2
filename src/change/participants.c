/* Those who hold changes of the file in memory: change/transaction.h. */
#include "base/interrupt.h"
#include "change/private.h"
#include "change/transaction.h"

#include <assert.h>
#include <utlist.h>

void h5_tx_join(struct h5_file *file, struct h5_tx_participant *participant)
{
	struct h5_tx *tx = h5_tx_find(file);

	assert(tx && !participant->dirty && !participant->uncommitted);
	DL_APPEND(tx->participants, participant);
}

void h5_tx_leave(struct h5_file *file, struct h5_tx_participant *participant)
{
	struct h5_tx *tx = h5_tx_find(file);

	h5_tx_drop(file, participant);
	DL_DELETE(tx->participants, participant);
}

struct h5_tx_participant *h5_tx_participants(const struct h5_file *file)
{
	const struct h5_tx *tx = h5_tx_find(file);

	return tx ? tx->participants : NULL;
}

static void count(struct h5_tx *tx, struct h5_tx_participant *participant, bool dirty, size_t held)
{
	tx->unsettled += (unsigned)dirty - (unsigned)participant->dirty;
	tx->unsettled_bytes += held - participant->held;
	participant->dirty = dirty;
	participant->held = held;
}

void h5_tx_report(struct h5_file *file, struct h5_tx_participant *participant, bool dirty, size_t held)
{
	participant->uncommitted = true;
	count(h5_tx_find(file), participant, dirty, held);
}

void h5_tx_drop(struct h5_file *file, struct h5_tx_participant *participant)
{
	struct h5_tx *tx = h5_tx_find(file);

	if (participant->dirty)
		h5_space_keep_given(&tx->space);
	participant->ops->drop(participant);
	participant->uncommitted = false;
	count(tx, participant, false, 0);
}

bool h5_tx_is_unsettled(const struct h5_file *file)
{
	const struct h5_tx *tx = h5_tx_find(file);

	return tx && tx->unsettled;
}

size_t h5_tx_held(const struct h5_file *file)
{
	const struct h5_tx *tx = h5_tx_find(file);

	return tx ? tx->unsettled_bytes : 0;
}

int h5_tx_settle(struct h5_file *file)
{
	struct h5_tx *tx = h5_tx_find(file);
	struct h5_tx_participant *participant;
	struct h5_interrupt request;
	int rc = 0;

	if (!tx)
		return 0;
	h5_interrupt_pause(&request);
	DL_FOREACH(tx->participants, participant)
	{
		participant->failure = participant->ops->settle(participant);
		rc = rc ? rc : participant->failure;
	}
	h5_interrupt_set(&request);
	return rc;
}
