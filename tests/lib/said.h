/* What a command says on standard output, or on standard error. */
#ifndef H5_TESTS_SAID_H
#define H5_TESTS_SAID_H

#include "scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct said {
	char path[200];
	int fd, before; /* the descriptor that is caught, and what it was */
	char *text;	/* owned */
	size_t size;	/* of it */
};

static inline void begin_catch(struct said *said, int fd)
{
	int file;

	fflush(NULL);
	*said = (struct said){.fd = fd, .before = dup(fd)};
	snprintf(said->path, sizeof said->path, "%s/said-%d", scratch_folder(), fd);
	file = open(said->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(dup2(file, fd), fd);
	close(file);
}

static inline void end_catch(struct said *said)
{
	off_t n;

	fflush(NULL);
	n = lseek(said->fd, 0, SEEK_END);
	ck_assert_int_ge(n, 0);
	said->size = (size_t)n;
	said->text = calloc(1, (size_t)n + 1);
	lseek(said->fd, 0, SEEK_SET);
	ck_assert_int_eq(read(said->fd, said->text, (size_t)n), n);
	dup2(said->before, said->fd);
	close(said->before);
}

#endif
