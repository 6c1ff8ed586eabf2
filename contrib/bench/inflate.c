/* The limit of what reading deflated chunks can do: inflating them alone, with libdeflate on all cores.
 *
 *     inflate FILE CHUNKS SIZE THREADS
 *
 * CHUNKS lists where they lie, an address and a size a line; SIZE is that of a chunk inflated. */
#include "bench.h"

#include <libdeflate.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* What the threads share. */
struct work {
	const char *file;
	const uint64_t *chunks; /* address, size, address, size, ... */
	size_t count;		/* of numbers */
	size_t size;
	atomic_size_t next;
};

static void *inflate_chunks(void *context)
{
	struct work *w = context;
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	char *out = allocate(w->size);
	size_t i;

	if (!d)
		die("libdeflate");
	while ((i = atomic_fetch_add(&w->next, 2)) + 1 < w->count)
		if (libdeflate_zlib_decompress(d, w->file + w->chunks[i], w->chunks[i + 1], out, w->size,
					       NULL))
			die("chunk %zu", i / 2);
	libdeflate_free_decompressor(d);
	free(out);
	return NULL;
}

int main(int argc, char **argv)
{
	struct work w = {0};
	unsigned n = argc == 5 ? (unsigned)number(argv[4]) : 0;
	pthread_t threads[64];
	size_t length;
	double began;

	if (!n || n > sizeof threads / sizeof *threads)
		die("usage: see the source");
	w.file = map_source(argv[1], &length);
	w.chunks = read_offsets(argv[2], &w.count);
	w.size = number(argv[3]);
	for (size_t i = 0; i + 1 < w.count; i += 2)
		if (w.chunks[i] > length || w.chunks[i + 1] > length - w.chunks[i])
			die("chunk %zu", i / 2);
	began = now();
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, inflate_chunks, &w))
			die("pthread_create");
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("%.6f\n", now() - began);
	return 0;
}
