#include "io/io.h"

#include "base/checked.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

struct memory {
	struct h5_io io;
	const uint8_t *data;
	size_t size;
};

static int memory_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct memory *m = (struct memory *)io;

	*got = offset < m->size ? (size_t)h5_min(n, m->size - offset) : 0;
	if (*got)
		memcpy(buf, m->data + offset, *got);
	return 0;
}

static int memory_stat(struct h5_io *io, struct h5_io_stat *st)
{
	uint64_t size = ((const struct memory *)io)->size;

	*st = (struct h5_io_stat){.size = size, .stored = size, .end = size, .locked = true};
	return 0;
}

static void memory_close(struct h5_io *io)
{
	free(io);
}

static const struct h5_io_ops memory_ops = {.read = memory_read, .stat = memory_stat, .close = memory_close};

int h5_io_open_memory(const void *data, size_t size, struct h5_io **io)
{
	struct memory *m = calloc(1, sizeof *m);

	if (!m)
		return -ENOMEM;
	m->io.ops = &memory_ops;
	m->data = data;
	m->size = size;
	*io = &m->io;
	return 0;
}
