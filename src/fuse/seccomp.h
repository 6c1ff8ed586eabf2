/* seccomp: which system calls the daemon makes once it has mounted. */
#ifndef H5_FUSE_SECCOMP_H
#define H5_FUSE_SECCOMP_H

#include "fuse/sandbox.h"

/* True: the kernel has seccomp, and we have a list for this processor. */
bool h5_seccomp_available(void);
/* Confines all threads. Needs PR_SET_NO_NEW_PRIVS. 0, or a negative errno. */
int h5_seccomp_enter(const struct h5_sandbox *sandbox);

/* For the process that fetches what is behind a URL. What it needs depends on how the machine finds names, so
 * calls are forbidden and not allowed one by one. */
int h5_seccomp_enter_fetcher(void);

#endif
