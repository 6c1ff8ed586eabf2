/* Damage that a walk comes across. The walk goes on, so that everything else is shown, and returns the first
 * error at its end. */
#ifndef H5_OBJECT_DAMAGE_H
#define H5_OBJECT_DAMAGE_H

#include "base/error.h"

#include <stdbool.h>

struct h5_damage {
	struct h5_error first; /* code 0: none */
	/* called for each error; NULL: nobody is told */
	void (*heard)(void *arg, const struct h5_error *error);
	void *arg;
	bool too_large; /* note -EFBIG, too: on this walk it means that one item is too large */
};

/* Notes the error `rc`, which h5_fail() has just set, and returns 0, so that the walk goes on. An error that
 * is not the file's, such as -ENOMEM, is not noted but returned. */
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

/* The first error, with its detail set again; 0: there was none. */
static inline int h5_damage_result(const struct h5_damage *damage)
{
	const struct h5_error *e = &damage->first;

	return e->code ? h5_fail(e->code, e->address, "%s", e->text) : 0;
}

#endif
