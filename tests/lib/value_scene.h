/* A file that takes values, and knows its objects: for tests of values that are read from text. */
#ifndef H5_TESTS_VALUE_SCENE_H
#define H5_TESTS_VALUE_SCENE_H

#include "object/value_parse.h"
#include "scratch.h"
#include "values.h"

struct value_scene {
	struct scratch scratch;
	struct h5_global_heap_writer heap;
	struct h5_value_context context;
	struct h5_value_parser parser;
	struct {
		uint64_t address;
		char path[64];
	} objects[32];
	unsigned count;
};

static int value_scene_path(void *arg, uint64_t address, struct h5_buf *path)
{
	const struct value_scene *s = arg;

	for (unsigned i = 0; i < s->count; i++)
		if (s->objects[i].address == address) {
			h5_buf_text(path, s->objects[i].path);
			return 0;
		}
	return -ENOENT;
}

static int value_scene_address(void *arg, const char *path, size_t n, uint64_t *address)
{
	const struct value_scene *s = arg;

	for (unsigned i = 0; i < s->count; i++)
		if (strlen(s->objects[i].path) == n && !memcmp(s->objects[i].path, path, n)) {
			*address = s->objects[i].address;
			return 0;
		}
	return -ENOENT;
}

static void value_scene_begin(struct value_scene *s)
{
	char path[4096], line[4096];
	unsigned long long address;
	FILE *f = open_data("value.txt", path, sizeof path);

	memset(s, 0, sizeof *s);
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "path %llu %63[^\n]", &address, s->objects[s->count].path) == 2)
			s->objects[s->count++].address = address;
	fclose(f);
	scratch_init(&s->scratch, "value.h5");
	scratch_open(&s->scratch);
	h5_global_heap_writer_init(&s->heap, s->scratch.file);
	s->context = (struct h5_value_context){s->scratch.file, value_scene_path, s};
	s->parser = (struct h5_value_parser){&s->context, &s->heap.sink, value_scene_address, s};
}

static void value_scene_end(struct value_scene *s)
{
	scratch_release(&s->scratch);
}

/* The element, or the elements, are written as the text. */
static void value_reads_back(const struct h5_value_context *context, const struct h5_datatype *type,
			     const struct h5_dataspace *space, const uint8_t *data, const char *text,
			     size_t n, const char *what)
{
	struct h5_buf out;

	h5_buf_init(&out, 1 << 24);
	SUCCEEDS(h5_value_text(context, type, space, data, &out));
	ends_with(&out, text, n, what);
	h5_buf_release(&out);
}

#endif
