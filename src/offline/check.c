#include "offline/check.h"

#include "base/interrupt.h"
#include "dataset/removal.h"
#include "object/file_space.h"
#include "object/shared_table.h"
#include "offline/check_private.h"
#include "store/extension.h"

static void heard(void *arg, const struct h5_error *error)
{
	struct h5_checker *checker = arg;

	if (error->code == -ENOTSUP || error->code == -EFBIG)
		checker->check->unknown++;
	else
		checker->check->damaged++;
	checker->check->found(checker->check->arg, checker->path, error);
}

/* -EUCLEAN: the file is shorter than it says. */
static int check_size(struct h5_file *file)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	const char *missing = h5_file_missing(file);
	uint64_t end = sb->base + h5_file_end(file);

	if (missing)
		return h5_fail(-EUCLEAN, H5_UNDEF, "missing: %s", missing);
	if (sb->end != H5_UNDEF && sb->end > end)
		return h5_fail(-EUCLEAN, H5_UNDEF, "truncated: %ju bytes of %ju", (uintmax_t)end,
			       (uintmax_t)sb->end);
	return 0;
}

static bool has_findings(const struct h5_checker *checker)
{
	return checker->check->damaged || checker->check->unknown;
}

/* Checks the structures that belong to no object. */
static int check_own_structures(struct h5_checker *checker)
{
	int rc;

	checker->path = "(superblock)";
	h5_damage_note(&checker->damage, check_size(checker->file));
	checker->path = "(superblock extension)";
	rc = h5_damage_note(&checker->damage, h5_extension_check(checker->file));
	checker->path = "(shared messages)";
	if (!rc)
		rc = h5_shared_table_check(checker->file, &checker->damage);
	checker->path = "(free space)";
	if (!rc)
		rc = h5_file_space_check(checker->file, &checker->damage);
	checker->path = "(space)";
	/* If they are damaged, their space would only tell so again. */
	return rc || has_findings(checker) ? rc : h5_usage_add_own(&checker->usage, &checker->damage);
}

static int add_type(void *arg, uint64_t address)
{
	return h5_check_add(&((struct h5_checker *)arg)->walk, address, "(committed datatype)");
}

static int add_shared(void *arg, const struct h5_shared_use *use)
{
	return h5_check_add_shared(&((struct h5_checker *)arg)->shared, use);
}

/* Adds what an object uses: the committed datatypes need no names. */
static int add_uses(struct h5_checker *checker, uint64_t address)
{
	bool had_findings = has_findings(checker);
	static const struct h5_use_visits visits = {add_type, add_shared};
	int rc = h5_object_uses(checker->file, address, &visits, checker);

	/* If the object is damaged, this would only tell so again. */
	if (had_findings && (rc == -EUCLEAN || rc == -ENOTSUP))
		return 0;
	return h5_damage_note(&checker->damage, rc);
}

/* Adds the space of an object that was checked. */
static int add_usage(struct h5_checker *checker, uint64_t address)
{
	checker->usage.incomplete |= has_findings(checker);
	if (checker->usage.incomplete)
		return 0;
	return h5_usage_add_object(&checker->usage, address, &checker->damage);
}

static int find_unused(struct h5_checker *checker)
{
	struct h5_check *check = checker->check;
	int rc = 0;

	checker->path = "(space)";
	if (h5_check_values_are_known(&checker->values))
		checker->usage.values = &checker->values;
	if (!checker->usage.incomplete)
		rc = h5_usage_find_unused(&checker->usage, &checker->damage, &check->unused);
	check->unused_known = !rc && !checker->usage.incomplete && !has_findings(checker);
	if (!check->unused_known)
		h5_extents_release(&check->unused);
	check->values_known = check->unused_known && checker->usage.values;
	check->lost_values = checker->values.lost;
	check->lost_bytes = checker->values.lost_bytes;
	return rc;
}

static int check_objects(struct h5_checker *checker)
{
	int rc = h5_check_add(&checker->walk, h5_file_superblock(checker->file)->root, "/");
	uint64_t address;

	while (!rc && h5_check_next(&checker->walk, &address, &checker->path)) {
		if (checker->check->progress)
			checker->check->progress(checker->check->arg, checker->path, checker->check->bytes);
		/* The bound of work is for the whole check, so the rest is not checked. */
		rc = h5_interrupt_check();
		if (rc == -EFBIG)
			return h5_damage_note(&checker->damage, rc);
		if (!rc)
			rc = h5_check_object(checker, address);
		if (!rc)
			rc = add_uses(checker, address);
		if (!rc)
			rc = add_usage(checker, address);
		checker->check->objects++;
	}
	return rc;
}

int h5_check_file(struct h5_file *file, struct h5_check *check)
{
	struct h5_checker checker = {.file = file, .check = check, .usage.file = file};
	int rc;

	checker.damage.heard = heard;
	checker.damage.too_large = true;
	checker.damage.arg = &checker;
	check->objects = check->chunks = check->bytes = check->damaged = check->unknown = 0;
	check->excess = 0;
	h5_check_values_init(&checker.values, file);
	rc = check_own_structures(&checker);
	if (!rc)
		rc = check_objects(&checker);
	if (!rc)
		rc = h5_check_counts(&checker);
	if (!rc)
		rc = h5_check_shared_counts(&checker);
	if (!rc)
		rc = h5_check_heap(&checker);
	if (!rc)
		rc = find_unused(&checker);
	h5_usage_release(&checker.usage);
	h5_check_values_release(&checker.values);
	h5_check_shared_release(&checker.shared);
	h5_check_walk_release(&checker.walk);
	return rc;
}
