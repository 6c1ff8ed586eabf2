#include "dataset/take_over.h"

#include "base/buf.h"
#include "base/error.h"
#include "change/transaction.h"
#include "dataset/create.h"
#include "dataset/rechunk.h"
#include "dataset/removal.h"
#include "dataset/values.h"
#include "dataset/writer.h"

#include <string.h>

/* A type that cannot be encoded is like no other. */
static int has_same_type(const struct h5_datatype *a, const struct h5_datatype *b, bool *same)
{
	struct h5_buf first, second;
	int rc;

	h5_buf_init(&first, SIZE_MAX);
	h5_buf_init(&second, SIZE_MAX);
	rc = h5_datatype_encode(a, true, &first);
	if (!rc)
		rc = h5_datatype_encode(b, true, &second);
	*same = !rc && first.size == second.size && !memcmp(first.data, second.data, first.size);
	h5_buf_release(&first);
	h5_buf_release(&second);
	return rc == -ENOMEM ? rc : 0;
}

int h5_dataset_is_alike(const struct h5_dataset *a, const struct h5_dataset *b, bool *alike)
{
	const unsigned rank = a->space.rank;

	*alike = a->space.kind == b->space.kind && rank == b->space.rank &&
		 (!rank || !memcmp(a->space.dims + 1, b->space.dims + 1, (rank - 1) * sizeof *a->space.dims));
	return *alike ? has_same_type(a->type, b->type, alike) : 0;
}

/* In a unit. */
static int move(const struct h5_dataset *to, const struct h5_dataset *from)
{
	struct h5_new_dataset how;
	int rc = h5_dataset_give_up_values(to);

	if (!rc)
		rc = h5_dataset_give_up(to);
	h5_dataset_describe(from, &how);
	how.stored = &from->layout;
	if (!rc)
		rc = h5_dataset_define(to->file, to->address, &how);
	how.stored = NULL;
	return rc ? rc : h5_dataset_define(to->file, from->address, &how);
}

static int take_over(const struct h5_dataset *to, const struct h5_dataset *from)
{
	if (h5_dataset_is_elsewhere(to))
		return h5_fail(-EPERM, to->address, "its data are elsewhere");
	h5_dataset_writer_drop(to->file, to->address);
	h5_dataset_writer_drop(to->file, from->address);
	h5_unit_begin(to->file);
	return h5_unit_end(to->file, move(to, from));
}

int h5_dataset_take_over(struct h5_file *file, uint64_t to, uint64_t from)
{
	const struct h5_dataset *old, *new;
	struct h5_lru_entry *old_ref, *new_ref;
	int rc = h5_tx_settle(file);

	if (!rc)
		rc = h5_dataset_get(file, to, &old_ref, &old);
	if (rc)
		return rc;
	rc = h5_dataset_get(file, from, &new_ref, &new);
	if (!rc) {
		rc = take_over(old, new);
		h5_file_put(file, new_ref);
	}
	h5_file_put(file, old_ref);
	return rc;
}
