/* seccomp: which system calls the daemon makes once it has mounted. */
#ifndef H5_FUSE_SECCOMP_H
#define H5_FUSE_SECCOMP_H

#include "fuse/sandbox.h"

/* True: the kernel has seccomp, and we have a list for this processor. */
bool h5_seccomp_available(void);
/* Confines all threads. Needs PR_SET_NO_NEW_PRIVS. 0, or a negative errno. */
int h5_seccomp_enter(const struct h5_sandbox *sandbox);

/* Confines the fetcher (remote/fetcher.h). Which system calls it needs depends on how the machine finds the
 * addresses of hosts, so it may do all but those of a list. */
int h5_seccomp_enter_fetcher(void);

#endif
