#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void die(const char *format, ...)
{
	int code = errno;
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", code ? strerror(code) : "failed");
	exit(1);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (end == text || *end)
		die("%s is no number", text);
	return n;
}

enum sync_when sync_when(const char *text)
{
	static const char *const names[] = {"none", "end", "each"};

	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(text, names[i]))
			return (enum sync_when)i;
	die("sync: %s", text);
}

void *allocate(size_t size)
{
	void *p = malloc(size);

	if (!p)
		die("malloc");
	return p;
}

const char *map_source(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *p;

	if (fd < 0 || fstat(fd, &st))
		die("%s", path);
	*size = (size_t)st.st_size;
	p = mmap(NULL, *size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (p == MAP_FAILED)
		die("%s", path);
	close(fd);
	return p;
}

uint64_t *read_offsets(const char *path, size_t *count)
{
	FILE *f = fopen(path, "r");
	size_t room = 1 << 16;
	uint64_t *offsets = allocate(room * sizeof *offsets);

	if (!f)
		die("%s", path);
	*count = 0;
	while (*count < room && fscanf(f, "%" SCNu64, &offsets[*count]) == 1)
		++*count;
	fclose(f);
	return offsets;
}

/* A process that waits until `start` is closed at its other end. */
static void fork_part(part_fn *part, unsigned i, unsigned n, void *context, const int start[2])
{
	char byte;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return;
	close(start[1]);
	if (read(start[0], &byte, 1))
		die("pipe");
	part(i, n, context);
	exit(0);
}

double run_parts(part_fn *part, unsigned n, void *context)
{
	int start[2], status, bad = 0;
	double began;

	if (n == 1) {
		began = now();
		part(0, 1, context);
		return now() - began;
	}
	if (pipe(start))
		die("pipe");
	for (unsigned i = 0; i < n; i++)
		fork_part(part, i, n, context, start);
	close(start[0]);
	began = now();
	close(start[1]);
	for (unsigned i = 0; i < n; i++)
		bad |= wait(&status) < 0 || status;
	if (bad)
		die("a reader");
	return now() - began;
}
