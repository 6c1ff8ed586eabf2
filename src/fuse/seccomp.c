/* The system calls that the daemon may make. All others fail: a call that we have not thought of must not
 * kill the process, which would lose what users have written since the last commit. It fails with ENOSYS, as
 * in a kernel that lacks it, since the C library then falls back to an older call. A call that is on the
 * list, but with forbidden arguments, fails with EPERM.
 *
 * A filter of libseccomp has one answer for all that it does not allow, so there are two. For the one all
 * calls of the list are allowed, and the rest is ENOSYS. For the other the calls are allowed only with good
 * arguments, and the rest is EPERM. If both refuse a call, the kernel gives the answer of the filter that was
 * loaded last, which is ENOSYS.
 *
 * Linux 5.11 and later do not even run the filters for calls that are allowed whatever their arguments. */
#include "fuse/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The processors on which the list was tried. Those of 32 bits have calls of their own for time and files. */
#if defined __x86_64__ || defined __aarch64__ || (defined __riscv && __riscv_xlen == 64)

static const int always[] = {
	SCMP_SYS(read),
	SCMP_SYS(writev),
	SCMP_SYS(pread64),
	SCMP_SYS(preadv),
	SCMP_SYS(preadv2),
	SCMP_SYS(futex),
	SCMP_SYS(write),
	SCMP_SYS(pwrite64),
	SCMP_SYS(pwritev),
	SCMP_SYS(ppoll),
	SCMP_SYS(sched_yield),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(splice),
	SCMP_SYS(vmsplice),
	SCMP_SYS(fdatasync),
	SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(brk),
	SCMP_SYS(close),
	SCMP_SYS(lseek),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),
	SCMP_SYS(getpid),
	SCMP_SYS(getppid),
	SCMP_SYS(gettid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(getcpu),
	SCMP_SYS(getrandom),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(sysinfo),
	SCMP_SYS(fstatfs),
	SCMP_SYS(flock),
	SCMP_SYS(fsync),
	SCMP_SYS(ftruncate),
	SCMP_SYS(dup3),
	SCMP_SYS(pipe2),
	SCMP_SYS(readv),
	SCMP_SYS(wait4), /* for the process that unmounts */
	SCMP_SYS(set_robust_list),
	SCMP_SYS(setsid),
	SCMP_SYS(rseq),
	SCMP_SYS(poll),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* Flags of clone() that make a process instead of a thread, or move it to other namespaces. */
#define NOT_OF_THREADS                                                                                       \
	(CLONE_VFORK | CLONE_PTRACE | CLONE_PARENT | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |          \
	 CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

enum {
	/* For stacks, of C libraries that are newer than these headers. */
	MADVISE_GUARD_INSTALL = 102,
	MADVISE_GUARD_REMOVE = 103,

	API_SECCOMP_CALL = 2, /* seccomp_api_get(): the kernel has seccomp(2), which confines all threads */
	BINARY_TREE = 2,      /* SCMP_FLTATR_CTL_OPTIMIZE */
};

struct filters {
	scmp_filter_ctx listed;	 /* allows all calls of the list; else ENOSYS */
	scmp_filter_ctx checked; /* allows these calls only with good arguments; else EPERM */
	int rc;			 /* the first error; nothing is added after it */
};

static void add(struct filters *f, scmp_filter_ctx filter, int call, const struct scmp_arg_cmp *argument)
{
	if (!f->rc)
		f->rc = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, !!argument, argument);
}

static void allow(struct filters *f, int call)
{
	add(f, f->listed, call, NULL);
	add(f, f->checked, call, NULL);
}

/* (argument & mask) == value */
struct test {
	unsigned argument;
	uint32_t mask, value;
};

/* Allows the call if the test holds. Upper halves of arguments do not matter to these calls. */
static void allow_if(struct filters *f, int call, struct test test)
{
	const struct scmp_arg_cmp argument = {test.argument, SCMP_CMP_MASKED_EQ, test.mask, test.value};

	add(f, f->listed, call, NULL);
	add(f, f->checked, call, &argument);
}

/* Allows the call if the argument is one of the n values. */
static void allow_one_of(struct filters *f, int call, unsigned argument, unsigned n, const uint32_t *values)
{
	for (unsigned i = 0; i < n; i++)
		allow_if(f, call, (struct test){argument, UINT32_MAX, values[i]});
}

/* What makes a tree, which only Landlock keeps beneath its folder. */
static void allow_making(struct filters *f)
{
	static const int calls[] = {
		SCMP_SYS(openat),    SCMP_SYS(mkdirat),	 SCMP_SYS(symlinkat), SCMP_SYS(linkat),
		SCMP_SYS(renameat),  SCMP_SYS(unlinkat), SCMP_SYS(fchmod),    SCMP_SYS(fchown),
		SCMP_SYS(utimensat), SCMP_SYS(fchownat), SCMP_SYS(fsetxattr), SCMP_SYS(renameat2),
	};

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		allow(f, calls[i]);
}

/* What makes a journal, gives it the rights of its file, and another name. */
static void allow_journals(struct filters *f)
{
	static const int calls[] = {SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(fchmod),
				    SCMP_SYS(fchown)};

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		allow(f, calls[i]);
}

/* Only if there are folders whose files may be opened or removed. */
static void allow_files(struct filters *f, const struct h5_sandbox *sandbox)
{
	if (sandbox->readable < 0 && sandbox->writable < 0 && sandbox->journals < 0)
		return;
	/* The flags of openat2 are in memory; Landlock checks them anyway. */
	allow(f, SCMP_SYS(openat2));
	allow(f, SCMP_SYS(readlinkat));
	if (sandbox->writable < 0 && sandbox->changed < 0 && sandbox->made < 0)
		allow_if(f, SCMP_SYS(openat), (struct test){2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY});
	else
		allow(f, SCMP_SYS(openat));
	if (sandbox->listed >= 0) {
		allow(f, SCMP_SYS(getdents64));
		allow(f, SCMP_SYS(fgetxattr));
		allow(f, SCMP_SYS(flistxattr));
	}
	if (sandbox->journals >= 0 || sandbox->changed >= 0)
		allow_if(f, SCMP_SYS(unlinkat), (struct test){2, UINT32_MAX, 0});
}

static void allow_some(struct filters *f, const struct h5_sandbox *sandbox)
{
	static const struct test no_code = {2, PROT_EXEC, 0};
	static const struct test thread = {0, CLONE_THREAD | NOT_OF_THREADS, CLONE_THREAD};
	static const struct test set_name = {0, UINT32_MAX, PR_SET_NAME};
	static const struct test punch = {1, UINT32_MAX, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE};
	/* sendto() without an address: the socket is connected, to the system log or to the unmounter. */
	static const struct test connected = {5, UINT32_MAX, 0};
	/* Not F_SETOWN and F_SETSIG, by which signals could be sent to any process. */
	static const uint32_t commands[] = {F_GETFD,	     F_SETFD,	   F_GETFL,
					    F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_SETPIPE_SZ};
	/* Not MADV_HWPOISON, by which root could take pages away from other processes. */
	static const uint32_t advice[] = {MADV_DONTNEED,       MADV_FREE,     MADV_HUGEPAGE,
					  MADV_NOHUGEPAGE,     MADV_WILLNEED, MADVISE_GUARD_INSTALL,
					  MADVISE_GUARD_REMOVE};

	allow_if(f, SCMP_SYS(mmap), no_code);
	allow_if(f, SCMP_SYS(mprotect), no_code);
	/* Not clone3, whose flags are in memory. Without it the C library takes clone. */
	allow_if(f, SCMP_SYS(clone), thread);
	allow_if(f, SCMP_SYS(tgkill), (struct test){0, UINT32_MAX, (uint32_t)getpid()});
	allow_if(f, SCMP_SYS(prctl), set_name);
	allow_if(f, SCMP_SYS(fallocate), punch);
	allow_if(f, SCMP_SYS(sendto), connected);
	allow_one_of(f, SCMP_SYS(fcntl), 1, sizeof commands / sizeof *commands, commands);
	allow_one_of(f, SCMP_SYS(madvise), 2, sizeof advice / sizeof *advice, advice);
	/* libfuse has made its rings before, so io_uring_setup stays forbidden. The kernel does not filter
	 * the operations that are put into a ring. */
	if (sandbox->io_uring)
		allow(f, SCMP_SYS(io_uring_enter));
	if (sandbox->terminal)
		allow_if(f, SCMP_SYS(ioctl), (struct test){1, UINT32_MAX, TIOCGWINSZ});
}

bool h5_seccomp_available(void)
{
	return seccomp_api_get() >= API_SECCOMP_CALL;
}

/* Makes a filter that allows nothing yet; `error` is its answer. */
static int make_filter(int error, scmp_filter_ctx *filter)
{
	*filter = seccomp_init(SCMP_ACT_ERRNO((unsigned)error));
	if (!*filter)
		return -ENOMEM;
	/* Calls of another architecture are not on the list. The caller has set no_new_privs. */
	return seccomp_attr_set(*filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)) ||
			       seccomp_attr_set(*filter, SCMP_FLTATR_CTL_NNP, 0) ||
			       seccomp_attr_set(*filter, SCMP_FLTATR_CTL_TSYNC, 1) ||
			       seccomp_attr_set(*filter, SCMP_FLTATR_CTL_OPTIMIZE, BINARY_TREE)
		       ? -EINVAL
		       : 0;
}

int h5_seccomp_enter(const struct h5_sandbox *sandbox)
{
	struct filters f = {0};

	f.rc = make_filter(ENOSYS, &f.listed);
	if (!f.rc)
		f.rc = make_filter(EPERM, &f.checked);
	for (size_t i = 0; i < sizeof always / sizeof *always; i++)
		allow(&f, always[i]);
	allow_some(&f, sandbox);
	allow_files(&f, sandbox);
	if (sandbox->changed >= 0)
		allow_journals(&f);
	if (sandbox->made >= 0)
		allow_making(&f);
	/* The first filter must let us load the second one, which ends that. */
	add(&f, f.checked, SCMP_SYS(seccomp), NULL);
	if (!f.rc)
		f.rc = seccomp_load(f.checked);
	if (!f.rc)
		f.rc = seccomp_load(f.listed);
	seccomp_release(f.checked);
	seccomp_release(f.listed);
	return f.rc;
}

/* Running programs, making processes, signals to other ones and looking into them, changing who may use a
 * file, changing what this machine is; and to wait for connections. */
static const int never[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(fork),
	SCMP_SYS(vfork),
	SCMP_SYS(kill),
	SCMP_SYS(tkill),
	SCMP_SYS(rt_sigqueueinfo),
	SCMP_SYS(rt_tgsigqueueinfo),
	SCMP_SYS(pidfd_send_signal),
	SCMP_SYS(chmod),
	SCMP_SYS(fchmod),
	SCMP_SYS(fchmodat),
	SCMP_SYS(chown),
	SCMP_SYS(fchown),
	SCMP_SYS(lchown),
	SCMP_SYS(fchownat),
	SCMP_SYS(setxattr),
	SCMP_SYS(lsetxattr),
	SCMP_SYS(fsetxattr),
	SCMP_SYS(removexattr),
	SCMP_SYS(lremovexattr),
	SCMP_SYS(fremovexattr),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(open_tree),
	SCMP_SYS(move_mount),
	SCMP_SYS(fsopen),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(setns),
	SCMP_SYS(unshare),
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(reboot),
	SCMP_SYS(bind),
	SCMP_SYS(listen),
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
	SCMP_SYS(open_by_handle_at),
};

int h5_seccomp_enter_fetcher(void)
{
	static const struct scmp_arg_cmp process = {0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0};
	const struct scmp_arg_cmp other = {.op = SCMP_CMP_NE, .datum_a = (scmp_datum_t)getpid()};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int rc = filter ? seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0) : -ENOMEM;

	for (size_t i = 0; i < sizeof never / sizeof *never && !rc; i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), never[i], 0);
	/* To itself, as abort() does. */
	if (!rc)
		rc = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1, &other);
	/* Threads look names up. The flags of clone3 are in memory; without it the C library takes clone. */
	if (!rc)
		rc = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, &process);
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!rc)
		rc = seccomp_load(filter);
	seccomp_release(filter);
	return rc;
}

#else

int h5_seccomp_enter_fetcher(void)
{
	return -ENOSYS;
}

bool h5_seccomp_available(void)
{
	return false;
}

int h5_seccomp_enter(const struct h5_sandbox *sandbox)
{
	(void)sandbox;
	return -ENOSYS;
}

#endif
