#include "crash_image.h"

#include "base/error.h"
#include "crash_workloads.h"
#include "store/file_set.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096 };

void crash_image_resize(struct crash_image *image, size_t size)
{
	if (size > image->capacity) {
		image->capacity = size + size / 2 + PAGE;
		image->data = realloc(image->data, image->capacity);
		if (!image->data)
			CRASH_FAILED("out of memory");
	}
	if (size > image->size)
		memset(image->data + image->size, 0, size - image->size);
	image->size = size;
}

void crash_image_write(struct crash_image *image, uint64_t offset, const void *data, size_t n)
{
	if (offset + n > image->size)
		crash_image_resize(image, (size_t)offset + n);
	if (n)
		memcpy(image->data + offset, data, n);
}

void crash_image_copy(struct crash_image *to, const struct crash_image *from)
{
	crash_image_resize(to, from->size);
	if (from->size)
		memcpy(to->data, from->data, from->size);
}

/* The event, as far as its first n bytes. */
void crash_image_apply(struct crash_image *image, const struct fault_event *event, size_t n)
{
	if (event->kind == FAULT_WRITE || event->kind == FAULT_PUNCH)
		crash_image_write(image, event->offset, event->data, n);
	else if (event->kind == FAULT_RESIZE)
		crash_image_resize(image, (size_t)event->offset);
}

void crash_image_save(const struct crash_image *image, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, image->data, image->size) != (ssize_t)image->size || close(fd))
		CRASH_FAILED("%s cannot be written", path);
}

static void save_state(const struct crash_image *image, const char *prefix, unsigned number)
{
	char path[256];

	snprintf(path, sizeof path, "%s-%03u.h5", prefix, number);
	crash_image_save(image, path);
}

unsigned crash_image_save_states(struct crash_image *image, const struct fault_io *record, const char *prefix)
{
	size_t size = image->size;
	unsigned states = 0;

	for (size_t i = 0; i < record->count; i++) {
		const struct fault_event *e = &record->events[i];

		if (e->file)
			continue;
		if (e->kind == FAULT_PUNCH || e->kind == FAULT_RESIZE ||
		    (e->kind == FAULT_WRITE && e->offset < size))
			save_state(image, prefix, states++);
		crash_image_apply(image, e, e->size);
	}
	save_state(image, prefix, states++);
	return states;
}

void crash_image_load(struct crash_image *image, const char *path)
{
	int fd = open(path, O_RDONLY);
	off_t size = lseek(fd, 0, SEEK_END);

	crash_image_resize(image, size < 0 ? 0 : (size_t)size);
	if (fd < 0 || pread(fd, image->data, image->size, 0) != (ssize_t)image->size || close(fd))
		CRASH_FAILED("%s cannot be read", path);
}

unsigned crash_image_look(struct crash_image *image, struct fault_io *record,
			  void (*look)(const void *arg, struct h5_file *file), const void *arg)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};
	unsigned states = 0;

	for (size_t i = 0; i < record->count; i++) {
		struct h5_file_set *set;

		if (record->events[i].file)
			continue;
		crash_image_apply(image, &record->events[i], record->events[i].size);
		if (h5_file_set_open_memory(image->data, image->size, &options, &set))
			CRASH_FAILED("%s", h5_error_last()->text);
		look(arg, h5_file_set_root(set));
		h5_file_set_close(set);
		states++;
	}
	fault_io_release(record);
	*record = (struct fault_io){0};
	return states;
}

/* An h5_io over it, for recovery. */
struct image_io {
	struct h5_io io;
	struct crash_image *image; /* borrowed */
};

static int image_io_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct crash_image *image = ((struct image_io *)io)->image;
	size_t left = offset < image->size ? image->size - (size_t)offset : 0;

	*got = left < n ? left : n;
	if (*got)
		memcpy(buf, image->data + offset, *got);
	return 0;
}

static int image_io_stat(struct h5_io *io, struct h5_io_stat *st)
{
	uint64_t size = ((struct image_io *)io)->image->size;

	*st = (struct h5_io_stat){.size = size, .end = size, .locked = true, .links = 1};
	return 0;
}

static int image_io_write(struct h5_io *io, uint64_t offset, const void *buf, size_t n)
{
	crash_image_write(((struct image_io *)io)->image, offset, buf, n);
	return 0;
}

static int image_io_resize(struct h5_io *io, uint64_t size)
{
	crash_image_resize(((struct image_io *)io)->image, (size_t)size);
	return 0;
}

static int image_io_sync(struct h5_io *io)
{
	(void)io;
	return 0;
}

static void image_io_close(struct h5_io *io)
{
	free(io);
}

struct h5_io *crash_image_open(struct crash_image *image)
{
	static const struct h5_io_ops ops = {.read = image_io_read,
					     .stat = image_io_stat,
					     .write = image_io_write,
					     .resize = image_io_resize,
					     .sync = image_io_sync,
					     .close = image_io_close};
	struct image_io *io = calloc(1, sizeof *io);

	if (!io)
		CRASH_FAILED("out of memory");
	io->io.ops = &ops;
	io->image = image;
	return &io->io;
}
