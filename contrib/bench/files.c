/* Reads and writes files with the system calls that programs make: those of a mount and plain ones alike.
 *
 *     files whole FILE READERS                  each reader its part, by read(2) of 1 MiB into the same
 * buffer files random FILE OFFSETS SIZE            pread(2) at the offsets of a list files append FILE SOURCE
 * SIZE COUNT SYNC  write(2) at the end; SYNC: none, end, each files first FILE OFFSET POINT COMMAND...  from
 * the start of a daemon that mounts at POINT to one byte of FILE */
#include "bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

static int open_or_die(const char *path, int flags)
{
	int fd = open(path, flags);

	if (fd < 0)
		die("%s", path);
	return fd;
}

static void read_part(unsigned i, unsigned n, void *context)
{
	const char *path = context;
	int fd = open_or_die(path, O_RDONLY);
	char *buffer = allocate(PIECE);
	struct stat st;
	off_t at, end;

	if (fstat(fd, &st))
		die("%s", path);
	at = st.st_size / PIECE * i / n * PIECE;
	end = i + 1 == n ? st.st_size : st.st_size / PIECE * (i + 1) / n * PIECE;
	if (lseek(fd, at, SEEK_SET) < 0)
		die("%s", path);
	while (at < end) {
		ssize_t got = read(fd, buffer, PIECE);

		if (got <= 0)
			die("%s at %lld", path, (long long)at);
		at += got;
	}
	close(fd);
	free(buffer);
}

static double read_random(const char *path, const char *list, size_t size)
{
	size_t count;
	uint64_t *offsets = read_offsets(list, &count);
	char *buffer = allocate(size);
	double began = now();
	int fd = open_or_die(path, O_RDONLY);

	for (size_t i = 0; i < count; i++)
		if (pread(fd, buffer, size, (off_t)offsets[i]) != (ssize_t)size)
			die("%s at %llu", path, (unsigned long long)offsets[i]);
	close(fd);
	began = now() - began;
	free(buffer);
	free(offsets);
	return began;
}

static double append(const char *path, const char *source, size_t size, uint64_t count, enum sync_when when)
{
	size_t total, at = 0;
	const char *from = map_source(source, &total);
	double began = now();
	int fd = open_or_die(path, O_WRONLY | O_APPEND | O_CREAT);

	for (uint64_t i = 0; i < count; i++) {
		if (write(fd, from + at, size) != (ssize_t)size || (when == SYNC_EACH && fsync(fd)))
			die("%s", path);
		at = at + 2 * size <= total ? at + size : 0;
	}
	if ((when == SYNC_END && fsync(fd)) || close(fd))
		die("%s", path);
	return now() - began;
}

static void run(char *const *command)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		execvp(command[0], command);
		die("%s", command[0]);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("%s", command[0]);
}

/* The command ends once its daemon serves; the daemon then is a child of this process. */
static double first_byte(const char *path, off_t offset, char *point, char *const *command)
{
	double began, seconds;
	char byte, *unmount[] = {"fusermount3", "-u", point, NULL};
	int fd;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		die("prctl");
	began = now();
	run(command);
	fd = open_or_die(path, O_RDONLY);
	if (pread(fd, &byte, 1, offset) != 1)
		die("%s", path);
	seconds = now() - began;
	close(fd);
	run(unmount);
	while (wait(NULL) > 0)
		;
	return seconds;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";
	double seconds;

	if (!strcmp(what, "whole") && argc == 4)
		seconds = run_parts(read_part, (unsigned)number(argv[3]), argv[2]);
	else if (!strcmp(what, "random") && argc == 5)
		seconds = read_random(argv[2], argv[3], number(argv[4]));
	else if (!strcmp(what, "append") && argc == 7)
		seconds = append(argv[2], argv[3], number(argv[4]), number(argv[5]), sync_when(argv[6]));
	else if (!strcmp(what, "first") && argc > 5)
		seconds = first_byte(argv[2], (off_t)number(argv[3]), argv[4], argv + 5);
	else
		die("usage: see the source");
	printf("%.6f\n", seconds);
	return 0;
}
