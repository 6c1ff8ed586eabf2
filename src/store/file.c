#include "store/file.h"

#include "base/checked.h"
#include "base/error.h"
#include "store/cache_image.h"
#include "store/file_set_private.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct h5_file {
	struct h5_file_set *set; /* borrowed */
	struct h5_io *io;
	struct h5_superblock superblock;
	struct h5_cache_image *image; /* NULL: none */
	/* all above is immutable after h5_file_open() */
	atomic_uint_fast64_t size; /* bytes of the file beyond the base address */
	atomic_uint_fast64_t number;
	pthread_mutex_t seen_lock; /* guards seen */
	struct h5_io_stat seen;	   /* what h5_file_refresh() compares with */
};

/* The signature stands at byte 0, 512, 1024, 2048, ... (specification II.A): a user block may come before it.
 */
static int find_superblock(struct h5_io *io, uint64_t size, struct h5_superblock *sb)
{
	uint8_t data[H5_SUPERBLOCK_MAX];

	for (uint64_t at = 0; at + sizeof H5_SIGNATURE - 1 <= size; at = at ? 2 * at : 512) {
		size_t n = (size_t)h5_min(sizeof data, size - at);
		int rc = h5_io_read(io, at, data, n);

		if (rc)
			return rc;
		if (memcmp(data, H5_SIGNATURE, sizeof H5_SIGNATURE - 1))
			continue;
		rc = h5_superblock_decode(data, n, at, sb);
		/* As libhdf5 has it: the superblock's place is the base, whatever a stale field says. */
		sb->base = at;
		return rc;
	}
	return h5_fail(-EINVAL, H5_UNDEF, "not an HDF5 file (no signature)");
}

int h5_file_open(struct h5_file_set *set, struct h5_io *io, struct h5_file **out)
{
	struct h5_file *file = calloc(1, sizeof *file);
	int rc;

	if (!file)
		return -ENOMEM;
	rc = h5_io_stat(io, &file->seen);
	if (!rc)
		rc = find_superblock(io, file->seen.size, &file->superblock);
	if (rc) {
		free(file);
		return rc;
	}
	file->set = set;
	file->io = io;
	pthread_mutex_init(&file->seen_lock, NULL);
	file->size = file->seen.size - file->superblock.base;
	file->number = h5_file_set_next_number(set);
	rc = h5_cache_image_open(file, &file->image);
	if (rc) {
		file->io = NULL; /* remains the caller's */
		h5_file_close(file);
		return rc;
	}
	*out = file;
	return 0;
}

void h5_file_close(struct h5_file *file)
{
	if (!file)
		return;
	h5_cache_image_close(file->image);
	h5_io_close(file->io);
	pthread_mutex_destroy(&file->seen_lock);
	free(file);
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool h5_file_refresh(struct h5_file *file)
{
	struct h5_io_stat st;
	bool changed = false;

	pthread_mutex_lock(&file->seen_lock);
	if (!h5_io_stat(file->io, &st) && st.size >= file->superblock.base)
		changed = st.size != file->seen.size || !is_same_time(&st.mtime, &file->seen.mtime);
	if (changed) {
		file->seen = st;
		file->size = st.size - file->superblock.base;
		/* What is cached under the old number is found no more, and evicted in its turn. */
		file->number = h5_file_set_next_number(file->set);
	}
	pthread_mutex_unlock(&file->seen_lock);
	return changed;
}

const struct h5_superblock *h5_file_superblock(const struct h5_file *file)
{
	return &file->superblock;
}

struct h5_file_set *h5_file_set_of(const struct h5_file *file)
{
	return file->set;
}

uint64_t h5_file_number(const struct h5_file *file)
{
	return file->number;
}

int h5_file_stat(struct h5_file *file, struct h5_io_stat *st)
{
	return h5_io_stat(file->io, st);
}

uint64_t h5_file_size(const struct h5_file *file)
{
	return file->size;
}

/* n bytes that are known to lie inside the file. */
static int read_inside(struct h5_file *file, uint64_t address, void *buf, size_t n)
{
	int rc = h5_io_read(file->io, file->superblock.base + address, buf, n);

	if (!rc && file->image)
		h5_cache_image_apply(file->image, address, buf, n);
	return rc;
}

int h5_file_read_some(struct h5_file *file, uint64_t address, void *buf, size_t n, size_t *got)
{
	uint64_t size = file->size;

	if (address >= size)
		return h5_fail(-EUCLEAN, address, "address beyond the end of the file");
	*got = (size_t)h5_min(n, size - address);
	return read_inside(file, address, buf, *got);
}

int h5_file_read(struct h5_file *file, uint64_t address, void *buf, size_t n)
{
	uint64_t size = file->size;

	if (!n)
		return 0;
	if (address >= size || n > size - address)
		return h5_fail(-EUCLEAN, address, "%zu bytes reach beyond the end of the file", n);
	return read_inside(file, address, buf, n);
}

struct h5_reader h5_file_reader(const struct h5_file *file, const void *data, size_t n, uint64_t address)
{
	return h5_reader_init(data, n, address, file->superblock.size_of_offsets,
			      file->superblock.size_of_lengths);
}

struct block_request {
	struct h5_file *file;
	const struct h5_block_type *type;
	uint64_t address;
	const void *arg;
};

static int load_block(void *arg, void **value, size_t *cost)
{
	const struct block_request *q = arg;

	return q->type->load(q->file, q->address, q->arg, value, cost);
}

int h5_file_block(struct h5_file *file, const struct h5_block_type *type, uint64_t address, uint64_t variant,
		  const void *arg, struct h5_lru_entry **ref)
{
	const struct h5_lru_key key = {
		.kind = &type->kind, .owner = file->number, .address = address, .variant = variant};
	struct block_request request = {file, type, address, arg};

	*ref = NULL;
	if (address >= file->size)
		return h5_fail(-EUCLEAN, address, "%s: address beyond the end of the file", type->kind.name);
	return h5_lru_get(h5_file_set_blocks(file->set), &key, load_block, &request, ref);
}

void h5_file_put(struct h5_file *file, struct h5_lru_entry *ref)
{
	if (ref)
		h5_lru_put(h5_file_set_blocks(file->set), ref);
}
