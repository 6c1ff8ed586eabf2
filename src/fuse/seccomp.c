/* A list of what is allowed; all else fails. A call that we have not thought of must not cost what users have
 * written and the file has not got yet, so it does not kill the process but fails with ENOSYS, as in a kernel
 * that lacks it: the C library, which tries new calls first, falls back to old ones then. Forbidden arguments
 * give EPERM.
 *
 * What is allowed whatever its arguments, Linux 5.11 and later know without running the filter. */
#include "fuse/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The processors whose arguments we know how to look at: 64 bits, the low half first. */
#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__ && !defined __AARCH64EB__
#define ARCH AUDIT_ARCH_AARCH64
#elif defined __riscv && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#endif

#ifdef ARCH

static const int always[] = {
	SYS_read, /* the most frequent ones first */
	SYS_writev,
	SYS_pread64,
	SYS_preadv,
	SYS_futex,
	SYS_write,
	SYS_pwrite64,
	SYS_pwritev,
	SYS_ppoll,
	SYS_sched_yield,
	SYS_clock_gettime,
	SYS_splice,
	SYS_vmsplice,
	SYS_fdatasync,
	SYS_fstat,
	SYS_newfstatat,
	SYS_statx,
	SYS_munmap,
	SYS_mremap,
	SYS_brk,
	SYS_close,
	SYS_lseek,
	SYS_rt_sigprocmask,
	SYS_rt_sigtimedwait,
	SYS_rt_sigreturn,
	SYS_rt_sigaction,
	SYS_sigaltstack,
	SYS_restart_syscall,
	SYS_clock_nanosleep,
	SYS_nanosleep,
	SYS_getpid,
	SYS_getppid,
	SYS_gettid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_getcpu,
	SYS_getrandom,
	SYS_sched_getaffinity,
	SYS_sysinfo,
	SYS_fstatfs,
	SYS_flock,
	SYS_fsync,
	SYS_ftruncate,
	SYS_dup3,
	SYS_pipe2,
	SYS_readv,
	SYS_wait4, /* for the process that unmounts */
	SYS_set_robust_list,
	SYS_setsid,
#ifdef SYS_rseq
	SYS_rseq,
#endif
#ifdef SYS_poll
	SYS_poll,
#endif
	SYS_exit,
	SYS_exit_group,
};

enum { LENGTH = 4 * sizeof always / sizeof *always + 150 };

/* What makes no thread but a process, or takes it out of where it belongs. */
#define NOT_OF_THREADS                                                                                       \
	(CLONE_VFORK | CLONE_PTRACE | CLONE_PARENT | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |          \
	 CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* MADV_GUARD_INSTALL, MADV_GUARD_REMOVE: for stacks, of C libraries newer than these headers. */
enum { GUARD_INSTALL = 102, GUARD_REMOVE = 103 };

struct program {
	struct sock_filter code[LENGTH];
	unsigned short n;
};

static void add(struct program *p, struct sock_filter instruction)
{
	p->code[p->n++] = instruction;
}

static void load(struct program *p, size_t offset)
{
	add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void give(struct program *p, uint32_t action)
{
	add(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* Passes over as many instructions unless the accumulator has that value. */
static void unless(struct program *p, uint32_t value, uint8_t skip)
{
	add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip));
}

static void allow(struct program *p, int number)
{
	unless(p, (uint32_t)number, 1);
	give(p, SECCOMP_RET_ALLOW);
}

struct test {
	unsigned argument;
	uint32_t mask, value;
};

/* Allows it where (argument & mask) == value, in each of the n tests; these are about the low 32 bits. */
static void allow_if(struct program *p, int number, unsigned n, const struct test *tests)
{
	unless(p, (uint32_t)number, (uint8_t)(4 * n + 1));
	for (unsigned i = 0; i < n; i++) {
		load(p, offsetof(struct seccomp_data, args) + tests[i].argument * sizeof(uint64_t));
		add(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, tests[i].mask));
		add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, tests[i].value, 1, 0));
		give(p, SECCOMP_RET_ERRNO | EPERM);
	}
	give(p, SECCOMP_RET_ALLOW);
}

/* Allows it if the low 32 bits of the argument are one of the n values. */
static void allow_one_of(struct program *p, int number, unsigned argument, unsigned n, const uint32_t *values)
{
	unless(p, (uint32_t)number, (uint8_t)(2 * n + 2));
	load(p, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
	for (unsigned i = 0; i < n; i++) {
		unless(p, values[i], 1);
		give(p, SECCOMP_RET_ALLOW);
	}
	give(p, SECCOMP_RET_ERRNO | EPERM);
}

/* No file but those that are open, where there is no other to open. */
static void allow_files(struct program *p, const struct h5_sandbox *s)
{
	static const struct test reading = {2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY};
	static const struct test file = {2, UINT32_MAX, 0};

	if (s->readable < 0 && s->writable < 0 && s->journals < 0)
		return;
	/* The flags of openat2 are in memory; Landlock knows better anyway. */
	allow(p, SYS_openat2);
	allow(p, SYS_readlinkat);
	if (s->writable < 0)
		allow_if(p, SYS_openat, 1, &reading);
	else
		allow(p, SYS_openat);
	if (s->journals >= 0)
		allow_if(p, SYS_unlinkat, 1, &file);
}

static void allow_some(struct program *p)
{
	static const struct test data = {2, PROT_EXEC, 0};
	static const struct test thread = {0, CLONE_THREAD | NOT_OF_THREADS, CLONE_THREAD};
	static const struct test name = {0, UINT32_MAX, PR_SET_NAME};
	/* No address: to what the socket is connected with, the system log or our other process. */
	static const struct test connected = {5, UINT32_MAX, 0};
	/* None has signals sent to a process of our choice, as F_SETOWN and F_SETSIG do. */
	static const uint32_t commands[] = {F_GETFD,	     F_SETFD,	   F_GETFL,
					    F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_SETPIPE_SZ};
	/* None takes pages away from other processes, as MADV_HWPOISON does for root. */
	static const uint32_t advice[] = {MADV_DONTNEED, MADV_FREE,	MADV_HUGEPAGE, MADV_NOHUGEPAGE,
					  MADV_WILLNEED, GUARD_INSTALL, GUARD_REMOVE};
	const struct test own = {0, UINT32_MAX, (uint32_t)getpid()};

	allow_if(p, SYS_mmap, 1, &data);
	allow_if(p, SYS_mprotect, 1, &data);
	/* clone3 has its flags in memory: without it the C library takes clone. */
	allow_if(p, SYS_clone, 1, &thread);
	allow_if(p, SYS_tgkill, 1, &own);
	allow_if(p, SYS_prctl, 1, &name);
	allow_if(p, SYS_sendto, 1, &connected);
	allow_one_of(p, SYS_fcntl, 1, sizeof commands / sizeof *commands, commands);
	allow_one_of(p, SYS_madvise, 2, sizeof advice / sizeof *advice, advice);
}

bool h5_seccomp_available(void)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	return !syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
}

int h5_seccomp_enter(const struct h5_sandbox *s)
{
	struct program p = {.n = 0};
	struct sock_fprog filter = {.filter = p.code};
	long rc;

	load(&p, offsetof(struct seccomp_data, arch));
	add(&p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
	give(&p, SECCOMP_RET_ERRNO | ENOSYS);
	load(&p, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof always / sizeof *always; i++)
		allow(&p, always[i]);
	/* These look at arguments, and so come to an end where they are meant. */
	allow_some(&p);
	allow_files(&p, s);
	give(&p, SECCOMP_RET_ERRNO | ENOSYS);
	filter.len = p.n;
	rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
	/* More than 0: the number of a thread that would stay outside. */
	return rc < 0 ? -errno : rc ? -ESRCH : 0;
}

#else

bool h5_seccomp_available(void)
{
	return false;
}

int h5_seccomp_enter(const struct h5_sandbox *s)
{
	(void)s;
	return -ENOSYS;
}

#endif
