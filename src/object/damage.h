/* Damage met on a walk that goes on: what can be read is shown, and the first error is told at the end. */
#ifndef H5_OBJECT_DAMAGE_H
#define H5_OBJECT_DAMAGE_H

#include "base/error.h"

#include <stdbool.h>

struct h5_damage {
	struct h5_error first; /* code 0: none */
	/* NULL, or hears of each; borrowed */
	void (*heard)(void *arg, const struct h5_error *error);
	void *arg;
	bool too_large; /* take note of -EFBIG, too: on this walk it is what one thing takes, not all of it */
};

/* Takes note of the error `rc` that h5_fail() has just set, and gives 0, so that the walk goes on - unless it
 * is none of the file's (memory): then rc. */
static inline int h5_damage_note(struct h5_damage *damage, int rc)
{
	struct h5_error error;

	if (rc != -EUCLEAN && rc != -ENOTSUP && rc != -EIO && !(rc == -EFBIG && damage->too_large))
		return rc;
	error = *h5_error_last();
	error.code = rc;
	if (!damage->first.code)
		damage->first = error;
	if (damage->heard)
		damage->heard(damage->arg, &error);
	return 0;
}

/* 0, or the first error with its detail. */
static inline int h5_damage_result(const struct h5_damage *damage)
{
	const struct h5_error *e = &damage->first;

	return e->code ? h5_fail(e->code, e->address, "%s", e->text) : 0;
}

#endif
