#include "fault_io.h"

#include "base/checked.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR = 512 };

struct wrapped {
	struct h5_io io;
	struct h5_io *inner;
	struct fault_io *fault;
	unsigned file;
	struct h5_io_ops ops; /* the operations that the inner one has */
};

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static void add_event(struct fault_io *fault, struct fault_event event, const void *data)
{
	if (!fault->record)
		return;
	if (fault->count == fault->capacity) {
		fault->capacity = 2 * fault->capacity + 64;
		fault->events = must(realloc(fault->events, fault->capacity * sizeof *fault->events));
	}
	if (event.size) {
		event.data = must(malloc(event.size));
		memcpy(event.data, data, event.size);
	}
	fault->events[fault->count++] = event;
}

static bool call_fails(struct fault_io *fault, bool reads)
{
	unsigned long call;

	if (reads != fault->reads)
		return false;
	call = ++fault->calls;
	return fault->fail && (call == fault->fail || (fault->lasting && call > fault->fail));
}

static bool fails(struct fault_io *fault)
{
	return call_fails(fault, false);
}

static int wrapped_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	struct wrapped *w = (struct wrapped *)io;

	if (call_fails(w->fault, true))
		return h5_fail(w->fault->error, offset, "a read was made to fail");
	return h5_io_read_some(w->inner, offset, buf, n, got);
}

static int wrapped_stat(struct h5_io *io, struct h5_io_stat *st)
{
	return h5_io_stat(((struct wrapped *)io)->inner, st);
}

static int wrapped_write(struct h5_io *io, uint64_t offset, const void *buf, size_t n)
{
	struct wrapped *w = (struct wrapped *)io;
	bool bad = fails(w->fault);
	int rc;

	if (bad) {
		n /= 2;
		n -= h5_min(n, (offset + n) % (w->fault->torn_at ? w->fault->torn_at : SECTOR));
	}
	if (n)
		add_event(w->fault, (struct fault_event){FAULT_WRITE, w->file, offset, n, NULL}, buf);
	rc = h5_io_write(w->inner, offset, buf, n);
	return bad ? h5_fail(w->fault->error, offset, "a write was made to fail") : rc;
}

static int wrapped_punch(struct h5_io *io, uint64_t offset, uint64_t n)
{
	struct wrapped *w = (struct wrapped *)io;
	uint8_t *zeros = NULL;

	if (fails(w->fault))
		return h5_fail(w->fault->error, offset, "a punch was made to fail");
	if (w->fault->record)
		zeros = must(calloc(1, n));
	add_event(w->fault, (struct fault_event){FAULT_PUNCH, w->file, offset, n, NULL}, zeros);
	free(zeros);
	return h5_io_punch(w->inner, offset, n);
}

static int wrapped_resize(struct h5_io *io, uint64_t size)
{
	struct wrapped *w = (struct wrapped *)io;

	if (fails(w->fault))
		return h5_fail(w->fault->error, size, "a resize was made to fail");
	add_event(w->fault, (struct fault_event){FAULT_RESIZE, w->file, size, 0, NULL}, NULL);
	return h5_io_resize(w->inner, size);
}

/* The medium is not what is tested: what a sync promises is in the order of the events. */
static int wrapped_sync(struct h5_io *io)
{
	struct wrapped *w = (struct wrapped *)io;

	if (fails(w->fault))
		return h5_fail(w->fault->error, H5_UNDEF, "a sync was made to fail");
	add_event(w->fault, (struct fault_event){FAULT_SYNC, w->file, 0, 0, NULL}, NULL);
	return 0;
}

static int wrapped_unlock(struct h5_io *io)
{
	struct wrapped *w = (struct wrapped *)io;

	add_event(w->fault, (struct fault_event){FAULT_UNLOCK, w->file, 0, 0, NULL}, NULL);
	return h5_io_unlock(w->inner);
}

static void wrapped_close(struct h5_io *io)
{
	h5_io_close(((struct wrapped *)io)->inner);
	free(io);
}

struct h5_io *fault_io_wrap(void *arg, struct h5_io *io)
{
	struct wrapped *w = must(calloc(1, sizeof *w));

	w->ops = (struct h5_io_ops){.read = wrapped_read,
				    .stat = wrapped_stat,
				    .write = io->ops->write ? wrapped_write : NULL,
				    .punch = io->ops->punch ? wrapped_punch : NULL,
				    .resize = io->ops->resize ? wrapped_resize : NULL,
				    .sync = io->ops->sync ? wrapped_sync : NULL,
				    .unlock = io->ops->unlock ? wrapped_unlock : NULL,
				    .close = wrapped_close};
	w->io.ops = &w->ops;
	w->inner = io;
	w->fault = arg;
	w->file = w->fault->files++;
	return &w->io;
}

void fault_io_arm(struct fault_io *fault, unsigned long n)
{
	fault->calls = 0;
	fault->fail = n;
}

bool fault_io_disarm(struct fault_io *fault)
{
	bool fired = fault->fail && fault->calls >= fault->fail;

	fault->fail = 0;
	return fired;
}

void fault_io_mark(struct fault_io *fault, uint64_t number)
{
	add_event(fault, (struct fault_event){FAULT_MARK, 0, number, 0, NULL}, NULL);
}

void fault_io_release(struct fault_io *fault)
{
	for (size_t i = 0; i < fault->count; i++)
		free(fault->events[i].data);
	free(fault->events);
	fault->events = NULL;
	fault->count = fault->capacity = 0;
}

static void write_number(FILE *f, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		fputc((int)(v >> 8 * i & 255), f);
}

int fault_io_save(const struct fault_io *fault, const char *path)
{
	FILE *f = fopen(path, "wb");

	if (!f)
		return -errno;
	for (size_t i = 0; i < fault->count; i++) {
		const struct fault_event *event = &fault->events[i];
		bool has_data = event->kind == FAULT_WRITE || event->kind == FAULT_PUNCH;

		write_number(f, event->kind, 1);
		write_number(f, event->file, 1);
		write_number(f, event->offset, 8);
		write_number(f, has_data ? event->size : 0, 8);
		if (has_data)
			fwrite(event->data, 1, event->size, f);
	}
	return fclose(f) ? -errno : 0;
}
