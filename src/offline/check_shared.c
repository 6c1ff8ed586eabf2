#include "base/array.h"
#include "base/checked.h"
#include "base/lookup3.h"
#include "base/lower_bound.h"
#include "object/shared_table.h"
#include "offline/check_private.h"

#include <assert.h>
#include <stdlib.h>

/* A use of a message in a heap: by its ID; or the message itself in an object header, which had it before
 * others had an equal one: by its hash. */
struct h5_check_use {
	bool is_hash;
	uint64_t key;  /* the hash, or the ID as a number */
	unsigned type; /* its bit; h5_shared_type_flag() */
};

static struct h5_check_use by_id(const uint8_t *id)
{
	static_assert(H5_SHARED_ID_SIZE == sizeof(uint64_t), "an ID is a number");
	return (struct h5_check_use){.key = h5_uint_from(id, H5_SHARED_ID_SIZE)};
}

int h5_check_add_shared(struct h5_check_shared *shared, const struct h5_shared_use *use)
{
	struct h5_check_use *new;
	int rc = h5_array_reserve(&shared->uses, &shared->capacity, shared->count + 1, NULL);

	if (rc)
		return rc;
	new = &shared->uses[shared->count++];
	*new = use->body ? (struct h5_check_use){.is_hash = true,
						 .key = h5_lookup3(use->body, use->size, use->type)}
			 : by_id(use->id);
	new->type = h5_shared_type_flag(use->type);
	return 0;
}

void h5_check_shared_release(struct h5_check_shared *shared)
{
	free(shared->uses);
	*shared = (struct h5_check_shared){0};
}

static int compare(const struct h5_check_use *a, const struct h5_check_use *b)
{
	if (a->is_hash != b->is_hash)
		return a->is_hash ? 1 : -1;
	return h5_compare(a->key, b->key);
}

static int compare_uses(const void *a, const void *b)
{
	return compare(a, b);
}

/* How often the list has the use, of one of the types: each heap has IDs of its own. */
static uint64_t count_uses(const struct h5_check_shared *shared, unsigned types,
			   const struct h5_check_use *use)
{
	size_t at = h5_lower_bound(i, shared->count, compare(&shared->uses[i], use) < 0);
	uint64_t uses = 0;

	for (; at < shared->count && !compare(&shared->uses[at], use); at++)
		uses += (shared->uses[at].type & types) != 0;
	return uses;
}

static int check_count(void *arg, unsigned types, const struct h5_shared_record *record)
{
	struct h5_checker *checker = arg;
	const struct h5_check_use id = by_id(record->id), hash = {.is_hash = true, .key = record->hash};
	const uint64_t uses =
		count_uses(&checker->shared, types, &id) + count_uses(&checker->shared, types, &hash);

	if (uses > record->count)
		return h5_damage_note(&checker->damage,
				      h5_fail(-EUCLEAN, H5_UNDEF,
					      "shared message: counts %u uses, but there are %ju",
					      record->count, (uintmax_t)uses));
	if (uses < record->count)
		h5_check_tell_excess(checker, h5_fail(-EOVERFLOW, H5_UNDEF,
						      "shared message: counts %u uses, but there are %ju, so "
						      "its space will not be given back",
						      record->count, (uintmax_t)uses));
	return 0;
}

int h5_check_shared_counts(struct h5_checker *checker)
{
	const struct h5_check *check = checker->check;

	if (check->damaged || check->unknown || checker->usage.incomplete)
		return 0;
	checker->path = "(shared messages)";
	if (checker->shared.count)
		qsort(checker->shared.uses, checker->shared.count, sizeof *checker->shared.uses,
		      compare_uses);
	return h5_damage_note(&checker->damage, h5_shared_table_counts(checker->file, check_count, checker));
}
