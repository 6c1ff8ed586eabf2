#include "fuse/unmount.h"

#include "fuse/log.h"
#include "fuse/mountinfo.h"
#include "fuse/status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { PATIENCE = 5000 }; /* milliseconds after which the user is told that it waits */

int h5_unmount(const char *path, bool quiet)
{
	int status;
	pid_t pid;

	if (!geteuid())
		return umount2(path, UMOUNT_NOFOLLOW) ? -errno : 0;
	pid = fork();
	if (!pid) {
		execlp("fusermount3", "fusermount3", "-u", quiet ? "-q" : "--", quiet ? "--" : path,
		       quiet ? path : (char *)NULL, (char *)NULL);
		_exit(EXIT_FAILURE);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EPERM;
}

static int refuse(const char *path, int code)
{
	h5_log("%s: %s", path, strerror(code));
	return EXIT_MOUNT;
}

/* Finds the mount, and refuses what is none of h5fs. The caller frees *path in any case. */
static int find(const struct h5_options *o, char **path, struct h5_mounted *mounted)
{
	char type[H5_MOUNTINFO_TYPE];
	int rc;

	*path = realpath(o->mountpoint, NULL);
	if (!*path)
		return refuse(o->mountpoint, errno);
	rc = h5_mountinfo_top(*path, mounted, type);
	if (rc && rc != -ENOENT)
		return refuse("/proc/self/mountinfo", -rc);
	if (!rc && !strcmp(type, "fuse.h5fs"))
		return 0;
	h5_log("%s: %s", o->mountpoint, rc ? "nothing is mounted there" : "this is no mount of h5fs");
	return EXIT_MOUNT;
}

/* ---- its daemon ---- */

/* The process id that the mount tells; 0: none, with errno. */
static pid_t ask_pid(const char *path)
{
	char text[32];
	ssize_t n = getxattr(path, "h5fs.pid", text, sizeof text - 1);

	if (n < 0)
		return 0;
	text[n] = 0;
	return (pid_t)strtol(text, NULL, 10);
}

/* True: the process is a daemon of ours. The number that a daemon has in another container means another
 * process here, or none. */
static bool is_daemon(pid_t pid)
{
	char path[64], name[32] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(name, sizeof name, f))
		*name = 0;
	fclose(f);
	return !strncmp(name, "h5fs", 4) || !strncmp(name, "mount.", 6);
}

/* A descriptor that tells when the daemon ends; -1: it cannot be waited for. */
static int open_daemon(const char *path)
{
	pid_t pid = ask_pid(path);
	int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	/* The descriptor's process is the daemon if that still answers. */
	if (fd >= 0 && (!is_daemon(pid) || ask_pid(path) != pid)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void await(const struct h5_options *o, int daemon)
{
	struct pollfd fd = {.fd = daemon, .events = POLLIN};
	int n, timeout = PATIENCE;

	while ((n = poll(&fd, 1, timeout)) <= 0) {
		if (n < 0 && errno != EINTR)
			return;
		if (!n)
			h5_log_at(H5_LOG_NORMAL, "%s: unmounted; waiting for its daemon to close the file",
				  o->mountpoint);
		timeout = n ? timeout : -1;
	}
}

/* ---- commands ---- */

/* Has the daemon commit. What fails here would else be lost with a line in its log. */
static int commit(const struct h5_options *o, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code;

	if (fd < 0)
		return refuse(o->mountpoint, errno);
	code = fsync(fd) ? errno : 0;
	close(fd);
	if (!code)
		return 0;
	h5_log("%s: what was changed last cannot be committed: %s; it stays mounted", o->mountpoint,
	       strerror(code));
	return EXIT_COMMIT;
}

static int tell_busy(const struct h5_options *o, int code)
{
	if (code == -EBUSY)
		h5_log("%s: in use: a file of it is open, or a program is in a directory of it",
		       o->mountpoint);
	else if (geteuid() && !o->quiet)
		h5_log("%s: cannot be unmounted, for the reason above", o->mountpoint);
	else
		h5_log("%s: cannot be unmounted: %s", o->mountpoint, strerror(-code));
	return EXIT_MOUNT;
}

/* Unmounts, and waits for the daemon. */
static int end(const struct h5_options *o, const char *path, const struct h5_mounted *mounted, int daemon)
{
	int rc = h5_unmount(path, o->quiet);
	char *place;

	if (rc)
		return tell_busy(o, rc);
	place = h5_mountinfo_place(mounted);
	if (place) {
		h5_log("%s: unmounted; it is still mounted at %s, and the file open", o->mountpoint, place);
		free(place);
		return EXIT_MOUNT;
	}
	if (daemon >= 0) {
		await(o, daemon);
		return EXIT_SUCCESS;
	}
	h5_log("%s: unmounted; its daemon is out of sight, and may not have closed the file yet",
	       o->mountpoint);
	return EXIT_MOUNT;
}

int h5_unmount_command(const struct h5_options *o)
{
	struct h5_mounted mounted;
	int daemon = -1, rc;
	char *path;

	rc = find(o, &path, &mounted);
	if (!rc && !ask_pid(path) && errno == ENOTCONN) {
		/* The daemon has died, so there is nothing to wait for. */
		rc = h5_unmount(path, o->quiet);
		rc = rc ? tell_busy(o, rc) : EXIT_SUCCESS;
	} else if (!rc) {
		daemon = open_daemon(path);
		rc = commit(o, path);
		if (!rc)
			rc = end(o, path, &mounted, daemon);
	}
	if (daemon >= 0)
		close(daemon);
	free(path);
	return rc;
}

/* The kernel does it alone: it refuses all changes from then on, and the daemon hears nothing. Options other
 * than ro and rw are not looked at: mount(8) gives those that the mount has. */
static int remount(const struct h5_options *o, const char *path)
{
	unsigned long flags = MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC;
	struct stat st;

	if (o->set.writable && stat(path, &st))
		return refuse(o->mountpoint, errno);
	if (o->set.writable && !(st.st_mode & 0222)) {
		h5_log("%s: was mounted for reading; unmount it, and mount it anew", o->mountpoint);
		return EXIT_MOUNT;
	}
	if (!mount(NULL, path, NULL, flags | (o->set.writable ? 0 : MS_RDONLY), NULL))
		return 0;
	if (errno != EBUSY)
		return refuse(o->mountpoint, errno);
	h5_log("%s: in use: a file of it is open for writing", o->mountpoint);
	return EXIT_MOUNT;
}

int h5_remount_command(const struct h5_options *o)
{
	struct h5_mounted mounted;
	char *path;
	int rc = find(o, &path, &mounted);

	if (!rc)
		rc = remount(o, path);
	if (!rc && !o->set.writable)
		rc = commit(o, path);
	free(path);
	return rc;
}
