#include "offline/check.h"

#include "base/interrupt.h"
#include "object/file_space.h"
#include "object/shared_table.h"
#include "offline/check_private.h"
#include "store/extension.h"

static void heard(void *arg, const struct h5_error *error)
{
	struct h5_checker *c = arg;

	if (error->code == -ENOTSUP || error->code == -EFBIG)
		c->check->unknown++;
	else
		c->check->damaged++;
	c->check->found(c->check->arg, c->path, error);
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

/* Checks the structures that belong to no object. */
static int check_own_structures(struct h5_checker *c)
{
	int rc;

	c->path = "(superblock)";
	rc = h5_damage_note(&c->damage, check_size(c->file));
	if (rc)
		return rc;
	c->path = "(superblock extension)";
	rc = h5_damage_note(&c->damage, h5_extension_check(c->file));
	c->path = "(shared messages)";
	if (!rc)
		rc = h5_shared_table_check(c->file, &c->damage);
	c->path = "(free space)";
	if (!rc)
		rc = h5_file_space_check(c->file, &c->damage);
	return rc;
}

static int check_objects(struct h5_checker *c)
{
	int rc = h5_check_add(&c->walk, h5_file_superblock(c->file)->root, "/");
	uint64_t address;

	while (!rc && h5_check_next(&c->walk, &address, &c->path)) {
		if (c->check->progress)
			c->check->progress(c->check->arg, c->path, c->check->bytes);
		/* The bound of work is for the whole check, so the rest is not checked. */
		rc = h5_interrupt_check();
		if (rc == -EFBIG)
			return h5_damage_note(&c->damage, rc);
		if (!rc)
			rc = h5_check_object(c, address);
		c->check->objects++;
	}
	return rc;
}

int h5_check_file(struct h5_file *file, struct h5_check *check)
{
	struct h5_checker c = {.file = file, .check = check};
	int rc;

	c.damage.heard = heard;
	c.damage.too_large = true;
	c.damage.arg = &c;
	check->objects = check->chunks = check->bytes = check->damaged = check->unknown = 0;
	rc = check_own_structures(&c);
	if (!rc)
		rc = check_objects(&c);
	h5_seen_release(&c.heaps);
	h5_check_walk_release(&c.walk);
	return rc;
}
