/* Space of a file that is open for writing: each byte is in use, or free. */
#ifndef H5_TESTS_SPACE_ACCOUNT_H
#define H5_TESTS_SPACE_ACCOUNT_H

#include "base/extents.h"
#include "store/file.h"

struct space_account {
	struct h5_extents lost; /* in the beginning, when nothing is known to be free */
};

/* `copy`, a path, is a copy of the file before the first change. */
void space_account_begin(struct space_account *account, const char *copy);
/* Fails unless each byte that nothing refers to is free, was lost in the beginning, or becomes free when no
 * recovery needs it any more. `file` is the open file; `copy` is a copy of it, made after the last commit;
 * `name` is for the message. */
void space_account_check(const struct space_account *account, const char *copy, const struct h5_file *file,
			 const char *name);
/* Takes out the bytes that the open file has as free ones. */
void space_take_out_free(struct h5_extents *extents, const struct h5_file *file);
void space_account_release(struct space_account *account);

#endif
