/* Records which functions of a program run, for contrib/hops: linked into one that was built with
 * -finstrument-functions. The record is the file $HOPS: the number of events, then the events. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))

struct event {
	uint64_t function, call_site;
	uint32_t thread, enters;
};

enum { EVENTS = 1 << 21 };

static struct record {
	uint64_t count;
	struct event events[EVENTS];
} * record;
static __thread uint32_t thread;

PLAIN __attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("HOPS");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	void *memory;

	if (fd < 0)
		return;
	if (!ftruncate(fd, sizeof *record)) {
		memory = mmap(NULL, sizeof *record, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		record = memory == MAP_FAILED ? NULL : memory;
	}
	close(fd);
}

PLAIN static void add(void *function, void *call_site, uint32_t enters)
{
	uint64_t i;

	if (!record)
		return;
	if (!thread)
		thread = (uint32_t)syscall(SYS_gettid);
	i = __atomic_fetch_add(&record->count, 1, __ATOMIC_SEQ_CST);
	if (i < EVENTS)
		record->events[i] = (struct event){(uint64_t)function, (uint64_t)call_site, thread, enters};
}

PLAIN void __cyg_profile_func_enter(void *function, void *call_site);
PLAIN void __cyg_profile_func_exit(void *function, void *call_site);

void __cyg_profile_func_enter(void *function, void *call_site)
{
	add(function, call_site, 1);
}

void __cyg_profile_func_exit(void *function, void *call_site)
{
	add(function, call_site, 0);
}
