/* Stands in for the system calls of the code that unmounts: each call is noted and does nothing. */
#ifndef H5_TESTS_UNMOUNT_SCENE_H
#define H5_TESTS_UNMOUNT_SCENE_H

#include "fuse/log.h"
#include "fuse/mountinfo.h"
#include "fuse/mountpoint.h"
#include "fuse/status.h"
#include "fuse/unmount.h"
#include "fuse/unmounter.h"
#include "trace.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Descriptors that there are. */
enum { DAEMON_END = 900, KEEPER_END, NULL_FD, PIPE_READ, PIPE_WRITE, DEVICE, ROOT, PIDFD };
/* The place that is unmounted: realpath() shall find it. */
#define PLACE "/"

static struct {
	bool there;	   /* else the calls are libcheck's */
	const char *fails; /* the call that fails; NULL: none */
	unsigned after;	   /* so many of its calls before */
	int error;
	unsigned times; /* 0: each of them */
	pid_t forked;	/* what fork() gives */
	int status;	/* what waitpid() finds */
	bool execs;	/* execlp() finds the program */
	uid_t user;
	const char *comm;   /* of the process; NULL: there is none */
	const char *pid[3]; /* what the mount tells, one after the other; NULL: there is no such attribute */
	unsigned asked;
	const char *type; /* of the mount; NULL: there is none */
	struct h5_mounted top;
	const char *elsewhere; /* where it is mounted, too */
	short revents;	       /* of the device */
	int polls[3];	       /* what poll() gives, one after the other; 0: it took too long */
	unsigned polled;
	mode_t mode;
	ssize_t answered; /* what read() gives of an answer */
	jmp_buf exit;	  /* where a process exits to, with its status + 1 */
} scene;

/* Messages to the process, and a signal that comes before each. */
static const struct message {
	const char *text; /* NULL: recv() fails with this error; 0: the daemon has died */
	int error, signal;
} * messages;

static char said[512];
static struct h5_mounted ours;

/* True: the call fails, with errno. */
static bool fails(const char *call)
{
	if (!scene.fails || strcmp(scene.fails, call) != 0)
		return false;
	if (scene.after) {
		scene.after--;
		return false;
	}
	if (scene.times && !--scene.times)
		scene.fails = NULL;
	errno = scene.error;
	return true;
}

/* ---- processes ---- */

pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);
int __wrap_execlp(const char *file, const char *arg, ...);
uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);
pid_t __real_getppid(void);
pid_t __wrap_getppid(void);
int __real_kill(pid_t pid, int number);
int __wrap_kill(pid_t pid, int number);
pid_t __real_setsid(void);
pid_t __wrap_setsid(void);
int __real_prctl(int what, ...);
int __wrap_prctl(int what, ...);

pid_t __wrap_fork(void)
{
	if (!scene.there)
		return __real_fork();
	note("fork");
	return fails("fork") ? -1 : scene.forked;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	if (!scene.there)
		return __real_waitpid(pid, status, options);
	ck_assert(pid == scene.forked && !options);
	note("waitpid");
	if (fails("waitpid"))
		return -1;
	if (status)
		*status = scene.status;
	return pid;
}

_Noreturn void __wrap__exit(int status)
{
	if (!scene.there)
		__real__exit(status);
	longjmp(scene.exit, status + 1);
}

int __wrap_execlp(const char *file, const char *arg, ...)
{
	va_list args;
	const char *one;

	ck_assert(!strcmp(file, "fusermount3") && !strcmp(arg, file));
	note("exec");
	va_start(args, arg);
	while ((one = va_arg(args, const char *)))
		note("%s", one);
	va_end(args);
	if (scene.execs)
		longjmp(scene.exit, 1000);
	return -1;
}

uid_t __wrap_geteuid(void)
{
	return scene.there ? scene.user : __real_geteuid();
}

pid_t __wrap_getppid(void)
{
	return scene.there ? getpid() : __real_getppid();
}

int __wrap_kill(pid_t pid, int number)
{
	if (!scene.there)
		return __real_kill(pid, number);
	ck_assert_int_eq(pid, getpid());
	note(number == SIGTERM ? "kill" : "another-signal");
	errno = EPERM;
	return -1;
}

pid_t __wrap_setsid(void)
{
	if (!scene.there)
		return __real_setsid();
	note("setsid");
	return 1;
}

int __wrap_prctl(int what, ...)
{
	va_list args;
	const char *name;

	if (what != PR_SET_NAME)
		return 0;
	va_start(args, what);
	name = va_arg(args, const char *);
	va_end(args);
	note("%s", name);
	return 0;
}

/* ---- descriptors ---- */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_dup2(int fd, int to);
int __wrap_dup2(int fd, int to);
int __wrap_dup3(int fd, int to, int flags);
void __wrap_closefrom(int fd);
int __real_pipe2(int ends[2], int flags);
int __wrap_pipe2(int ends[2], int flags);
int __wrap_socketpair(int domain, int type, int protocol, int ends[2]);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags);
ssize_t __real_read(int fd, void *bytes, size_t n);
ssize_t __wrap_read(int fd, void *bytes, size_t n);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_fsync(int fd);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static const char *name_of(int fd)
{
	static const char *const names[] = {"daemon-end", "keeper-end", "null", "pipe-read",
					    "pipe-write", "device",	"root", "pidfd"};

	ck_assert(fd >= DAEMON_END && fd <= PIDFD);
	return names[fd - DAEMON_END];
}

/* No file is made through this. */
int __wrap_open64(const char *path, int flags, ...)
{
	if (!scene.there)
		return __real_open64(path, flags, 0600);
	if (!strcmp(path, PLACE)) {
		ck_assert_int_eq(flags, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		note("open");
		return fails("open") ? -1 : ROOT;
	}
	ck_assert_str_eq(path, "/dev/null");
	note("open-null");
	return fails("open-null") ? -1 : NULL_FD;
}

int __wrap_close(int fd)
{
	if (fd < DAEMON_END)
		return __real_close(fd);
	note("close-%s", name_of(fd));
	return 0;
}

int __wrap_dup2(int fd, int to)
{
	if (!scene.there)
		return __real_dup2(fd, to);
	note("%s-as-%d", name_of(fd), to == DEVICE ? 0 : to);
	return fails("dup2") ? -1 : to;
}

int __wrap_dup3(int fd, int to, int flags)
{
	ck_assert(to == DEVICE && flags == O_CLOEXEC);
	note("%s-as-device", name_of(fd));
	return fails("dup3") ? -1 : to;
}

void __wrap_closefrom(int fd)
{
	note("closefrom-%d", fd);
}

int __wrap_pipe2(int ends[2], int flags)
{
	if (!scene.there)
		return __real_pipe2(ends, flags);
	ck_assert_int_eq(flags, O_CLOEXEC);
	note("pipe");
	ends[0] = PIPE_READ;
	ends[1] = PIPE_WRITE;
	return fails("pipe2") ? -1 : 0;
}

int __wrap_socketpair(int domain, int type, int protocol, int ends[2])
{
	ck_assert(domain == AF_UNIX && type == (SOCK_SEQPACKET | SOCK_CLOEXEC) && !protocol);
	note("socketpair");
	ends[0] = DAEMON_END;
	ends[1] = KEEPER_END;
	return fails("socketpair") ? -1 : 0;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
	const char *c = bytes;

	ck_assert(n == 1 && flags == MSG_NOSIGNAL);
	if (fd == STDERR_FILENO + 1)
		note("answer");
	else
		note("send-%c", *c);
	ck_assert(fd == STDERR_FILENO + 1 || fd == DAEMON_END);
	return fails("send") ? -1 : 1;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags)
{
	const struct message *m = messages++;

	ck_assert(fd == STDERR_FILENO + 1 && n >= 1025 && !flags);
	errno = m->error;
	if (m->signal) {
		raise(m->signal);
		ck_assert_int_eq(errno, m->error);
	}
	if (!m->text)
		return m->error ? -1 : 0;
	memcpy(bytes, m->text, strlen(m->text));
	return (ssize_t)strlen(m->text);
}

ssize_t __wrap_read(int fd, void *bytes, size_t n)
{
	if (fd != DAEMON_END)
		return __real_read(fd, bytes, n);
	ck_assert_uint_eq(n, 1);
	note("read");
	return fails("read") ? -1 : scene.answered;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	if (!scene.there)
		return __real_poll(fds, n, timeout);
	ck_assert_uint_eq(n, 1);
	if (fds->fd == DEVICE) {
		ck_assert(!timeout && !fds->events);
		fds->revents = scene.revents;
		return scene.revents != 0;
	}
	ck_assert(fds->fd == PIDFD && fds->events == POLLIN);
	note("poll-%d", timeout);
	errno = -scene.polls[scene.polled];
	return scene.polls[scene.polled++] < 0 ? -1 : scene.polls[scene.polled - 1];
}

int __wrap_fsync(int fd)
{
	ck_assert_int_eq(fd, ROOT);
	note("fsync");
	return fails("fsync") ? -1 : 0;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return scene.there && fails("calloc") ? NULL : __real_calloc(n, size);
}

/* ---- mounts ---- */

int __wrap_umount2(const char *path, int flags);
int __wrap_mount(const char *source, const char *path, const char *type, unsigned long flags,
		 const void *data);
int __wrap_stat64(const char *path, struct stat *st);
int __real_stat64(const char *path, struct stat *st);
ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t n);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
int __wrap_fuse_session_fd(const struct fuse_session *session);
void __wrap_fuse_session_unmount(struct fuse_session *session);

int __wrap_umount2(const char *path, int flags)
{
	ck_assert_str_eq(path, PLACE);
	note(flags == UMOUNT_NOFOLLOW ? "umount" : flags == MNT_FORCE ? "force" : "another-umount");
	return fails("umount2") ? -1 : 0;
}

int __wrap_mount(const char *source, const char *path, const char *type, unsigned long flags,
		 const void *data)
{
	ck_assert(!source && !type && !data && !strcmp(path, PLACE));
	ck_assert_uint_eq(flags & ~(unsigned long)MS_RDONLY, MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC);
	note(flags & MS_RDONLY ? "mount-ro" : "mount-rw");
	return fails("mount") ? -1 : 0;
}

int __wrap_stat64(const char *path, struct stat *st)
{
	if (!scene.there)
		return __real_stat64(path, st);
	ck_assert_str_eq(path, PLACE);
	note("stat");
	*st = (struct stat){.st_mode = scene.mode};
	return fails("stat") ? -1 : 0;
}

ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t n)
{
	const char *text = scene.pid[scene.asked];

	ck_assert(!strcmp(path, PLACE) && !strcmp(name, "h5fs.pid"));
	scene.asked += scene.asked < 2;
	note("pid");
	if (fails("getxattr"))
		return -1;
	if (!text) {
		errno = ENODATA;
		return -1;
	}
	if (strlen(text) > n) {
		errno = ERANGE;
		return -1;
	}
	memcpy(value, text, strlen(text));
	return (ssize_t)strlen(text);
}

long __wrap_syscall(long number, ...)
{
	va_list args;
	pid_t pid;

	va_start(args, number);
	pid = va_arg(args, pid_t);
	va_end(args);
	if (!scene.there)
		return __real_syscall(number, pid);
	ck_assert_int_eq(number, SYS_pidfd_open);
	note("pidfd-%d", (int)pid);
	return fails("pidfd_open") ? -1 : PIDFD;
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	FILE *f;

	if (!scene.there)
		return __real_fopen64(path, mode);
	note("%s", path);
	if (!scene.comm)
		return NULL;
	scene.there = false;
	f = tmpfile();
	fputs(scene.comm, f);
	rewind(f);
	scene.there = true;
	return f;
}

static struct fuse_session *const session = (struct fuse_session *)&scene;

int __wrap_fuse_session_fd(const struct fuse_session *s)
{
	ck_assert_ptr_eq(s, session);
	return DEVICE;
}

void __wrap_fuse_session_unmount(struct fuse_session *s)
{
	ck_assert_ptr_eq(s, session);
	note("session-unmount");
}

int h5_mountinfo_top(const char *path, struct h5_mounted *top, char type[H5_MOUNTINFO_TYPE])
{
	ck_assert_str_eq(path, PLACE);
	note("top");
	*top = scene.top;
	if (fails("top"))
		return -scene.error;
	snprintf(type, H5_MOUNTINFO_TYPE, "%s", scene.type ? scene.type : "");
	return scene.type ? 0 : -ENOENT;
}

char *h5_mountinfo_place(const struct h5_mounted *mounted)
{
	ck_assert_uint_eq(mounted->minor, scene.top.minor);
	note("place");
	return scene.elsewhere ? strdup(scene.elsewhere) : NULL;
}

/* ---- the rest of src/fuse ---- */

static struct h5_options options;

void h5_log(const char *format, ...)
{
	va_list args;
	size_t n = strlen(said);

	va_start(args, format);
	vsnprintf(said + n, sizeof said - n, format, args);
	va_end(args);
}

void h5_log_at(enum h5_log_level level, const char *format, ...)
{
	va_list args;
	size_t n = strlen(said);

	ck_assert_int_eq(level, H5_LOG_NORMAL);
	va_start(args, format);
	vsnprintf(said + n, sizeof said - n, format, args);
	va_end(args);
}

void h5_log_through(int socket)
{
	note(socket < 0 ? "log-itself" : socket == DAEMON_END ? "log-through" : "log-elsewhere");
}

void h5_log_reopen(pid_t daemon)
{
	ck_assert_int_eq(daemon, getpid());
	note("reopen-log");
}

void h5_mountpoint_remove(const struct h5_options *o)
{
	ck_assert_ptr_eq(o, &options);
	note("remove");
}

static void begin(void)
{
	memset(&scene, 0, sizeof scene);
	memset(trace, 0, sizeof trace);
	memset(said, 0, sizeof said);
	scene.answered = 1;
	scene.forked = 4321;
	scene.type = "fuse.h5fs";
	scene.top = ours = (struct h5_mounted){.major = 0, .minor = 40, .id = 7};
	scene.pid[0] = scene.pid[1] = scene.pid[2] = "77";
	scene.comm = "h5fs\n";
	scene.mode = S_IFDIR | 0755;
	scene.polls[0] = 1;
	options = (struct h5_options){.mountpoint = (char *)PLACE};
}

#define CHECK(expected, text)                                                                                \
	do {                                                                                                 \
		scene.there = false;                                                                         \
		ck_assert_str_eq(trace, expected);                                                           \
		ck_assert_str_eq(said, text);                                                                \
	} while (0)

#endif
