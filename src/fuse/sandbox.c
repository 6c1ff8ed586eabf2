#include "config.h"

#include "fuse/sandbox.h"

#include "fuse/landlock.h"
#include "fuse/log.h"
#include "fuse/seccomp.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#ifdef NO_SANDBOX
static const char none[] = NO_SANDBOX;
#else
static const char none[] = "";
#endif

/* Logs a part of the sandbox that the kernel has, but does not grant. */
static void report(const char *what, int rc)
{
	if (rc)
		h5_log("sandbox: %s: %s", what, strerror(-rc));
}

void h5_sandbox_enter_files(const struct h5_sandbox *sandbox)
{
	/* The first version forbids hard links from one directory to another. */
	const int least = sandbox->made >= 0 ? 2 : 1;

	if (*none)
		return;
	report("no new privileges", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0);
	if (h5_landlock_version() >= least)
		report("Landlock", h5_landlock_enter(sandbox));
}

void h5_sandbox_enter_calls(const struct h5_sandbox *sandbox)
{
	if (!*none && h5_seccomp_available())
		report("seccomp", h5_seccomp_enter(sandbox));
}

/* How names are found, who certifies servers by default, and passwords for them. */
void h5_sandbox_enter_fetcher(const char *const *more, int folder)
{
	const char *home = getenv("HOME");
	char netrc[PATH_MAX] = "";
	const char *readable[16] = {"/etc", "/usr", "/lib", "/lib64", "/run", "/dev/null", "/dev/urandom"};
	size_t n = 7;

	if (*none)
		return;
	if (home && snprintf(netrc, sizeof netrc, "%s/.netrc", home) >= (int)sizeof netrc)
		*netrc = 0;
	if (*netrc)
		readable[n++] = netrc;
	while (*more && n + 1 < sizeof readable / sizeof *readable)
		readable[n++] = *more++;
	/* Nobody would see what is reported here: the process has no log. */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (h5_landlock_version())
		h5_landlock_enter_fetcher(readable, folder);
	if (h5_seccomp_available())
		h5_seccomp_enter_fetcher();
}

void h5_sandbox_describe(FILE *out)
{
	int version = h5_landlock_version();

	if (*none) {
		fprintf(out, "sandbox: none, since %s\n", none);
		return;
	}
	if (version)
		fprintf(out, "sandbox: no new privileges, Landlock (version %d), ", version);
	else
		fprintf(out, "sandbox: no new privileges, no Landlock in this kernel, ");
	fprintf(out, "%s\n", h5_seccomp_available() ? "seccomp" : "no seccomp here");
}
