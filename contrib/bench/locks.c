/* Counts the locks that a program takes: LD_PRELOAD=locks.so LOCKS_FILE=FILE PROGRAM. FILE must have
 * sizeof(struct counts) * THREADS bytes; each thread adds to one of them. Waiting for a condition is not
 * counted: it is for work, not for a lock. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 256 };

struct counts {
	uint64_t taken, waited;
	uint64_t unused[6]; /* a line of the processor's cache for each */
};

typedef int lock_call(void *lock);

static struct {
	struct counts *counts; /* NULL: nothing is counted */
	atomic_uint threads;
} all;

static _Thread_local struct counts *own;

static lock_call *find(const char *name)
{
	return (lock_call *)dlsym(RTLD_NEXT, name);
}

/* Before the program's sandbox, which lets it open nothing. */
__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("LOCKS_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *counts;

	if (fd < 0)
		return;
	counts = mmap(NULL, sizeof(struct counts) * THREADS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	all.counts = counts == MAP_FAILED ? NULL : counts;
	close(fd);
}

static int take(void *lock, lock_call *try, lock_call *wait)
{
	if (!all.counts)
		return wait(lock);
	if (!own)
		own = &all.counts[atomic_fetch_add(&all.threads, 1) % THREADS];
	own->taken++;
	if (!try(lock))
		return 0;
	own->waited++;
	return wait(lock);
}

/* The call of this name, which first tries `try_name`. */
#define COUNTED(name, try_name, type)                                                                        \
	int name(type *lock)                                                                                 \
	{                                                                                                    \
		static _Atomic(lock_call *) try, wait;                                                       \
                                                                                                             \
		if (!wait) {                                                                                 \
			try = find(#try_name);                                                               \
			wait = find(#name);                                                                  \
		}                                                                                            \
		return take(lock, try, wait);                                                                \
	}

COUNTED(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t)
COUNTED(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t)
