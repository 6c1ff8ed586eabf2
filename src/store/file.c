#include "store/file.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/thread.h"
#include "format/onion.h"
#include "store/file_private.h"
#include "store/statistics.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct h5_file {
	const struct h5_file_shared *shared; /* borrowed */
	struct h5_io *io;
	struct h5_superblock superblock;
	const char *fixed; /* why it cannot be changed: what it is, in words; NULL: it can */
	bool in_pieces;
	char *missing; /* pieces that are not there, in words; NULL: none */
	/* `io` itself, if the file is changed by us; else NULL. */
	struct h5_overlay *changes;
	struct h5_overlay *image; /* in `io`; see h5_file_image() */
	struct h5_file_area areas[H5_FILE_AREAS_MAX];
	unsigned area_count; /* 0: it has no areas of its own */
	/* All above is immutable after h5_file_open() and h5_file_lay_over(), but for the image, and the ends
	 * of areas, which only a writer reads. */
	atomic_uint_fast64_t size; /* bytes of the file beyond the base address */
	atomic_uint_fast64_t end;  /* of its addresses */
	atomic_uint_fast64_t number;
	pthread_mutex_t seen_lock; /* guards seen */
	uint64_t device, inode;
	struct h5_io_stat seen; /* what h5_file_refresh() compares with */
	struct timespec looked; /* seen_lock: when `seen` was found */
};

enum {
	/* File systems store times that are up to so old: two changes within it may have the same mtime. */
	TICK = 20 * 1000 * 1000, /* nanoseconds */
	/* A block that is just being written fails its checksum. It is read again, so often, a millisecond
	   apart. */
	RETRIES = 40,
};

/* The signature stands at byte 0, 512, 1024, 2048, ... (specification II.A): a user block may come before it.
 * `only`: where it must stand; 0: anywhere. */
static int find_superblock(struct h5_io *io, uint64_t size, uint64_t only, struct h5_superblock *sb)
{
	uint8_t data[H5_SUPERBLOCK_MAX];

	for (uint64_t at = only; at + sizeof H5_SIGNATURE - 1 <= size; at = at ? 2 * at : 512) {
		size_t n;
		int rc = h5_io_read_some(io, at, data, sizeof data, &n); /* the first piece may be shorter */

		if (rc)
			return rc;
		if (n < sizeof H5_SIGNATURE - 1 || memcmp(data, H5_SIGNATURE, sizeof H5_SIGNATURE - 1)) {
			if (only)
				break;
			continue;
		}
		rc = h5_superblock_decode(data, n, at, sb);
		/* As in libhdf5, the base is where the superblock stands, even if its field says something
		 * else, and the stored end moves along. */
		if (!rc && sb->end != H5_UNDEF && sb->end >= sb->base &&
		    !h5_add(sb->end - sb->base, at, &sb->end))
			sb->end = H5_UNDEF;
		sb->base = at;
		return rc;
	}
	if (h5_io_begins_with(io, H5_ONION_SIGNATURE, sizeof H5_ONION_SIGNATURE - 1))
		return h5_fail(
			-EINVAL, H5_UNDEF,
			"not an HDF5 file, but the revisions of one (onion driver), which is beside it");
	if (h5_io_begins_with(io, H5_ONION_STUB, sizeof H5_ONION_STUB - 1))
		return h5_fail(-EINVAL, H5_UNDEF,
			       "no HDF5 file without its revisions (onion driver), in a file beside it");
	return only ? h5_fail(-EINVAL, only, "not an HDF5 file (no signature)")
		    : h5_fail(-EINVAL, H5_UNDEF, "not an HDF5 file (no signature)");
}

static uint64_t next_number(const struct h5_file_shared *shared)
{
	return atomic_fetch_add(shared->numbers, 1);
}

static int read_size(struct h5_file *file)
{
	int rc = h5_io_stat(file->io, &file->seen);

	if (!rc) {
		file->size = file->seen.size - file->superblock.base;
		file->end = file->seen.end - file->superblock.base;
	}
	return rc;
}

int h5_file_new(const struct h5_file_shared *shared, struct h5_io *io, uint64_t offset, struct h5_file **out)
{
	struct h5_file *file = calloc(1, sizeof *file);
	int rc;

	if (!file) {
		h5_io_close(io);
		return -ENOMEM;
	}
	file->shared = shared;
	file->io = io;
	pthread_mutex_init(&file->seen_lock, NULL);
	file->number = next_number(shared);
	clock_gettime(CLOCK_REALTIME, &file->looked);
	rc = h5_io_stat(io, &file->seen);
	file->device = file->seen.device;
	file->inode = file->seen.inode;
	if (!rc)
		rc = find_superblock(io, file->seen.size, offset, &file->superblock);
	if (!rc)
		rc = read_size(file);
	if (rc)
		h5_file_close(file);
	else
		*out = file;
	return rc;
}

int h5_file_read_through(struct h5_file *file, struct h5_io *io)
{
	file->io = io;
	h5_file_renumber(file);
	return read_size(file);
}

int h5_file_read_whole(struct h5_file *file, struct h5_io *io)
{
	struct h5_io_stat st;
	int rc;

	file->io = io;
	h5_file_renumber(file);
	rc = h5_io_stat(io, &st);
	if (!rc)
		rc = find_superblock(io, st.end, file->superblock.base, &file->superblock);
	return rc ? rc : read_size(file);
}

void h5_file_set_in_pieces(struct h5_file *file)
{
	file->in_pieces = true;
}

void h5_file_fix(struct h5_file *file, const char *what)
{
	file->fixed = what;
}

int h5_file_read_image(struct h5_file *file, struct h5_overlay *image)
{
	file->image = image;
	return h5_file_read_through(file, &image->io);
}

void h5_file_set_missing(struct h5_file *file, char *missing)
{
	assert(!file->missing);
	file->missing = missing;
}

void h5_file_finish(struct h5_file *file)
{
	if (file->io->ops->finish)
		file->io->ops->finish(file->io);
}

void h5_file_close(struct h5_file *file)
{
	if (!file)
		return;
	h5_io_close(file->io);
	h5_mutex_destroy(&file->seen_lock);
	free(file->missing);
	free(file);
}

struct h5_io *h5_file_leave_io(struct h5_file *file)
{
	struct h5_io *io = file->io;

	file->io = NULL;
	h5_file_close(file);
	return io;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_within_tick(const struct timespec *mtime, const struct timespec *looked)
{
	int64_t seconds = (int64_t)looked->tv_sec - mtime->tv_sec;

	return seconds < 2 && seconds * 1000000000 + looked->tv_nsec - mtime->tv_nsec < TICK;
}

/* Where the addresses end now, if another program makes the file longer. */
static uint64_t end_by_now(struct h5_file *file)
{
	struct h5_io_stat st;

	if (file->shared->follows && !h5_io_stat(file->io, &st) && st.end >= file->superblock.base)
		h5_file_extend(file, st.end - file->superblock.base);
	return file->end;
}

bool h5_file_refresh(struct h5_file *file)
{
	struct h5_io_stat st;
	struct timespec now;
	bool changed = false;

	if (file->changes)
		return false; /* only we change it */
	pthread_mutex_lock(&file->seen_lock);
	clock_gettime(CLOCK_REALTIME, &now);
	if (!h5_io_stat(file->io, &st) && st.size >= file->superblock.base)
		changed = st.size != file->seen.size || !is_same_time(&st.mtime, &file->seen.mtime) ||
			  is_within_tick(&file->seen.mtime, &file->looked);
	if (changed) {
		file->seen = st;
		file->looked = now;
		file->size = st.size - file->superblock.base;
		file->end = st.end - file->superblock.base;
		/* Nobody finds what is cached under the old number; it is evicted in its turn. */
		file->number = next_number(file->shared);
	}
	pthread_mutex_unlock(&file->seen_lock);
	return changed;
}

void h5_file_lay_over(struct h5_file *file, struct h5_overlay *changes)
{
	assert(!file->changes);
	file->io = &changes->io;
	file->changes = changes;
}

struct h5_overlay *h5_file_changes(const struct h5_file *file)
{
	return file->changes;
}

const struct h5_overlay *h5_file_image(const struct h5_file *file)
{
	return file->image;
}

void h5_file_drop_image(struct h5_file *file)
{
	h5_patches_release(&file->image->patches);
	file->image = NULL;
}

size_t h5_file_pending(const struct h5_file *file, uint64_t address)
{
	uint64_t offset = file->superblock.base + address;
	const struct h5_patches *patches;
	const struct h5_patch *patch;
	size_t i;

	if (!file->changes)
		return 0;
	patches = &file->changes->patches;
	i = h5_patches_find(patches, offset);
	if (i == patches->count || patches->list[i]->offset > offset)
		return 0;
	patch = patches->list[i];
	return patch->n - (size_t)(offset - patch->offset);
}

struct h5_io *h5_file_io(const struct h5_file *file)
{
	return file->io;
}

void h5_file_set_areas(struct h5_file *file, const struct h5_file_area *areas, unsigned count)
{
	assert(count && count <= H5_FILE_AREAS_MAX);
	memcpy(file->areas, areas, count * sizeof *areas);
	file->area_count = count;
}

unsigned h5_file_areas(const struct h5_file *file, struct h5_file_area areas[H5_FILE_AREAS_MAX])
{
	const struct h5_superblock *sb = &file->superblock;

	if (!file->area_count) {
		areas[0] = (struct h5_file_area){.end = sb->end - sb->base, .raw = true};
		return 1;
	}
	memcpy(areas, file->areas, sizeof file->areas);
	return file->area_count;
}

/* The area that holds the byte before `end`; NULL: the file is one. */
static struct h5_file_area *area_before(struct h5_file *file, uint64_t end)
{
	unsigned i = file->area_count;

	while (i > 1 && file->areas[i - 1].start >= end)
		i--;
	return i ? &file->areas[i - 1] : NULL;
}

void h5_file_extend(struct h5_file *file, uint64_t end)
{
	struct h5_file_area *area = area_before(file, end);

	if (area && end > area->end) {
		file->size += end - area->end;
		area->end = end;
	}
	if (end <= file->end)
		return;
	file->end = end;
	if (!area)
		file->size = end;
}

void h5_file_cut(struct h5_file *file, uint64_t end)
{
	struct h5_file_area *area = area_before(file, end);

	if (!area) {
		file->size = file->end = end;
		return;
	}
	file->size -= h5_min(file->size, area->end - h5_min(area->end, end));
	area->end = end;
	file->end = 0;
	for (unsigned i = 0; i < file->area_count; i++)
		if (file->areas[i].end > file->areas[i].start)
			file->end = file->areas[i].end;
}

void h5_file_renumber(struct h5_file *file)
{
	file->number = next_number(file->shared);
}

int h5_file_can_change(const struct h5_file *file)
{
	if (file->fixed)
		return h5_fail(-ENOTSUP, H5_UNDEF, "writing %s is not supported", file->fixed);
	if (!file->io->ops->write)
		return h5_fail(-EROFS, H5_UNDEF, "the file is open for reading");
	return 0;
}

bool h5_file_is_plain(const struct h5_file *file)
{
	return !file->fixed && !file->in_pieces && !file->missing && !file->image;
}

bool h5_file_is_family(const struct h5_file *file)
{
	return file->in_pieces && !file->fixed && !file->missing && !file->image;
}

const struct h5_superblock *h5_file_superblock(const struct h5_file *file)
{
	return &file->superblock;
}

const struct h5_file_shared *h5_file_shared(const struct h5_file *file)
{
	return file->shared;
}

uint64_t h5_file_number(const struct h5_file *file)
{
	return file->number;
}

int h5_file_stat(struct h5_file *file, struct h5_io_stat *st)
{
	return h5_io_stat(file->io, st);
}

void h5_file_identity(const struct h5_file *file, uint64_t *device, uint64_t *inode)
{
	*device = file->device;
	*inode = file->inode;
}

uint64_t h5_file_size(const struct h5_file *file)
{
	return file->size;
}

uint64_t h5_file_end(const struct h5_file *file)
{
	return file->end;
}

const char *h5_file_missing(const struct h5_file *file)
{
	return file->missing;
}

static void count_read(const struct h5_file *file, size_t n)
{
	struct h5_statistics *s = file->shared->statistics;

	h5_count(&s->reads, 1);
	h5_count(&s->bytes, n);
}

/* 0: n bytes from the address on lie inside the file. */
static int check_inside(struct h5_file *file, uint64_t address, size_t n)
{
	uint64_t end = file->end;

	if (address >= end || n > end - address)
		end = end_by_now(file);
	if (address >= end || n > end - address)
		return h5_fail(-EUCLEAN, address, "%zu bytes reach beyond the end of the file", n);
	return 0;
}

int h5_file_read_some(struct h5_file *file, uint64_t address, void *buf, size_t n, size_t *got)
{
	uint64_t end = file->end;
	int rc;

	if (address >= end)
		end = end_by_now(file);
	if (address >= end)
		return h5_fail(-EUCLEAN, address, "address beyond the end of the file");
	n = (size_t)h5_min(n, end - address);
	rc = h5_io_read_some(file->io, file->superblock.base + address, buf, n, got);
	if (!rc)
		count_read(file, *got);
	return rc;
}

int h5_file_read(struct h5_file *file, uint64_t address, void *buf, size_t n)
{
	const struct iovec buffer = {buf, n};

	return n ? h5_file_readv(file, address, &buffer, 1, n) : 0;
}

int h5_file_readv(struct h5_file *file, uint64_t address, const struct iovec *buffers, unsigned count,
		  size_t n)
{
	size_t got;
	int rc = check_inside(file, address, n);

	assert(count && count <= H5_IO_BUFFERS);
	if (!rc)
		rc = h5_io_readv(file->io, file->superblock.base + address, buffers, count, &got);
	if (rc)
		return rc;
	count_read(file, got);
	if (got < n)
		return h5_fail(-EUCLEAN, address, "%zu bytes reach beyond the end of the file", n);
	return 0;
}

uint64_t h5_file_window(const struct h5_file *file)
{
	return h5_io_want(file->io, NULL, 0, H5_WANTED_SOON);
}

bool h5_file_is_far(const struct h5_file *file)
{
	return h5_file_window(file);
}

void h5_file_want(struct h5_file *file, struct h5_io_range *ranges, size_t count, enum h5_wanted when)
{
	uint64_t end = file->end;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (ranges[i].n && ranges[i].offset < end)
			ranges[kept++] = (struct h5_io_range){file->superblock.base + ranges[i].offset,
							      h5_min(ranges[i].n, end - ranges[i].offset)};
	if (kept)
		h5_io_want(file->io, ranges, kept, when);
}

struct h5_reader h5_file_reader(const struct h5_file *file, const void *data, size_t n, uint64_t address)
{
	return h5_reader_init(data, n, address, file->superblock.size_of_offsets,
			      file->superblock.size_of_lengths);
}

/* ---- the cache of decoded blocks ---- */

struct block_request {
	struct h5_file *file;
	const struct h5_block_type *type;
	uint64_t address;
	const void *arg;
};

static int load_block(void *arg, void **value, size_t *cost)
{
	const struct block_request *q = arg;
	int rc = q->type->load(q->file, q->address, q->arg, value, cost);

	/* The block may just be being written. If another block failed that it needs, loading that one has
	 * tried again. */
	for (int i = 0; i < RETRIES && rc == -EUCLEAN && q->file->shared->follows &&
			h5_error_last()->address == q->address;
	     i++) {
		static const struct timespec pause = {.tv_nsec = 1000000};

		nanosleep(&pause, NULL);
		end_by_now(q->file);
		rc = q->type->load(q->file, q->address, q->arg, value, cost);
	}
	return rc;
}

static struct h5_lru_key key_of(const struct h5_file *file, const struct h5_block_type *type,
				uint64_t address, uint64_t variant)
{
	return (struct h5_lru_key){
		.kind = &type->kind, .owner = file->number, .address = address, .variant = variant};
}

int h5_file_block(struct h5_file *file, const struct h5_block_type *type, uint64_t address, uint64_t variant,
		  const void *arg, struct h5_lru_entry **ref)
{
	const struct h5_lru_key key = key_of(file, type, address, variant);
	struct block_request request = {file, type, address, arg};

	*ref = NULL;
	if (address >= file->end && address >= end_by_now(file))
		return h5_fail(-EUCLEAN, address, "%s: address beyond the end of the file", type->kind.name);
	return h5_lru_get(file->shared->blocks, &key, load_block, &request, ref);
}

void h5_file_add_block(struct h5_file *file, const struct h5_block_type *type, uint64_t address,
		       uint64_t variant, void *value, size_t cost)
{
	const struct h5_lru_key key = key_of(file, type, address, variant);

	h5_lru_add(file->shared->blocks, &key, value, cost);
}

void h5_file_put(struct h5_file *file, struct h5_lru_entry *ref)
{
	if (ref)
		h5_lru_put(file->shared->blocks, ref);
}
