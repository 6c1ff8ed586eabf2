#include "space_account.h"

#include "change/open.h"
#include "change/private.h"
#include "offline/check.h"
#include "unit.h"

#include <errno.h>
#include <stdint.h>

/* Space that stays in use because a count of links is too high does not matter here. */
static void found(void *arg, const char *path, const struct h5_error *error)
{
	(void)arg;
	if (error->code != -EOVERFLOW)
		ck_abort_msg("%s: %s at %ju", path, error->text, (uintmax_t)error->address);
}

static void find_unused(const char *path, struct h5_extents *unused)
{
	const struct h5_file_set_options options = {
		.block_cache = 1 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_NONE};
	struct h5_check check = {.found = found};
	struct h5_file_set *set;

	ck_assert_int_eq(h5_open_file(path, &options, &set, NULL), 0);
	ck_assert_int_eq(h5_check_file(h5_file_set_root(set), &check), 0);
	ck_assert(check.unused_known);
	h5_file_set_close(set);
	*unused = check.unused;
}

static void take_out(struct h5_extents *from, const struct h5_extents *known)
{
	h5_extents_each(e, known) ck_assert_int_eq(h5_extents_remove(from, e->address, e->size), 0);
}

void space_take_out_free(struct h5_extents *extents, const struct h5_file *file)
{
	const struct h5_space *space = &h5_tx_find(file)->space;

	take_out(extents, &space->free[H5_ALLOCATE_RAW]);
	take_out(extents, &space->free[H5_ALLOCATE_METADATA]);
	take_out(extents, &space->scraps);
	take_out(extents, &space->given);
	take_out(extents, &space->cooling);
}

void space_account_begin(struct space_account *account, const char *copy)
{
	find_unused(copy, &account->lost);
}

void space_account_check(const struct space_account *account, const char *copy, const struct h5_file *file,
			 const char *name)
{
	const struct h5_extent *first;
	struct h5_extents lost;

	find_unused(copy, &lost);
	take_out(&lost, &account->lost);
	space_take_out_free(&lost, file);
	take_out(&lost, &h5_tx_find(file)->space.fresh); /* what refers to it is not committed */
	first = h5_extents_from(&lost, 0);
	ck_assert_msg(!first, "%s: lost: %ju bytes at %ju", name, (uintmax_t)first->size,
		      (uintmax_t)first->address);
	h5_extents_release(&lost);
}

void space_account_release(struct space_account *account)
{
	h5_extents_release(&account->lost);
}
