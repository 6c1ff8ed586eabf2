/* Space of a file that is open for writing: each byte is in use, or free. */
#ifndef H5_TESTS_SPACE_ACCOUNT_H
#define H5_TESTS_SPACE_ACCOUNT_H

#include "base/extents.h"
#include "store/file.h"

struct space_account {
	struct h5_extents lost; /* in the beginning, when nothing is known to be free */
};

/* Before the first change. */
void space_account_begin(struct space_account *account, const char *path);
/* After a commit. No more bytes are lost than in the beginning: those that nothing refers to are free, or
 * will be once no recovery needs them. `file` is the open file; `name` is for the message. */
void space_account_check(const struct space_account *account, const char *path, const struct h5_file *file,
			 const char *name);
void space_account_release(struct space_account *account);

#endif
