#include "store/file.h"

#include "base/checked.h"
#include "base/error.h"
#include "store/cache_image.h"
#include "store/file_private.h"
#include "store/file_set_private.h"
#include "store/members.h"
#include "store/statistics.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct h5_file {
	struct h5_file_set *set; /* borrowed */
	struct h5_io *io;
	struct h5_superblock superblock;
	struct h5_cache_image *image; /* NULL: none */
	char *missing;		      /* what is not there of a file in several pieces; NULL: nothing */
	bool in_pieces;
	bool follows;	       /* a writer without a lock adds to the file while it is read (swmr) */
	struct h5_io *changes; /* the same as `io`, if that is what changes the file; NULL: it is not changed
				  by us */
	/* all above is immutable after h5_file_open() and h5_file_lay_over() */
	atomic_uint_fast64_t size; /* bytes of the file beyond the base address */
	atomic_uint_fast64_t end;  /* of its addresses */
	atomic_uint_fast64_t number;
	pthread_mutex_t seen_lock; /* guards seen */
	uint64_t device, inode;
	struct h5_io_stat seen; /* what h5_file_refresh() compares with */
	struct timespec looked; /* seen_lock: when that was */
};

enum {
	/* A time in a file may be this old when it is stored: a change that comes soon after a look shows no
	   other time. */
	TICK = 20 * 1000 * 1000, /* nanoseconds */
	/* A block that is just being written fails its checksum; so often it is read again, a millisecond
	   apart. */
	RETRIES = 40,
};

/* True for a file in which libhdf5's onion driver keeps the revisions of another one, beside that. */
static bool is_onion(struct h5_io *io, uint64_t size)
{
	static const char signature[] = {'O', 'H', 'D', 'H'};
	char found[sizeof signature];

	return size >= sizeof found && !h5_io_read(io, 0, found, sizeof found) &&
	       !memcmp(found, signature, sizeof found);
}

/* The signature stands at byte 0, 512, 1024, 2048, ... (specification II.A): a user block may come before it.
 * `only`: where it stands, if it is known; else 0. */
static int find_superblock(struct h5_io *io, uint64_t size, uint64_t only, struct h5_superblock *sb)
{
	uint8_t data[H5_SUPERBLOCK_MAX];

	for (uint64_t at = only; at + sizeof H5_SIGNATURE - 1 <= size; at = at ? 2 * at : 512) {
		size_t n = (size_t)h5_min(sizeof data, size - at);
		int rc = h5_io_read(io, at, data, n);

		if (rc)
			return rc;
		if (memcmp(data, H5_SIGNATURE, sizeof H5_SIGNATURE - 1)) {
			if (only)
				break;
			continue;
		}
		rc = h5_superblock_decode(data, n, at, sb);
		/* As libhdf5 has it: the superblock's place is the base, whatever a stale field says, and the
		 * end, which counts from the file's begin, moves with it. */
		if (!rc && sb->end != H5_UNDEF && sb->end >= sb->base &&
		    !h5_add(sb->end - sb->base, at, &sb->end))
			sb->end = H5_UNDEF;
		sb->base = at;
		return rc;
	}
	if (is_onion(io, size))
		return h5_fail(-EINVAL, H5_UNDEF,
			       "not an HDF5 file, but the revisions of one (onion driver)");
	return only ? h5_fail(-EINVAL, only, "not an HDF5 file (no signature)")
		    : h5_fail(-EINVAL, H5_UNDEF, "not an HDF5 file (no signature)");
}

/* Reads the superblock extension (specification II.C; empty where there is none), and what the file says of
 * its driver. */
static int read_extension(struct h5_file *file, struct h5_header *extension, struct h5_driver_info *driver)
{
	const struct h5_superblock *sb = &file->superblock;
	uint8_t block[H5_DRIVER_BLOCK_MAX];
	const struct h5_message *m;
	struct h5_reader r;
	size_t got;
	int rc;

	*extension = (struct h5_header){0};
	*driver = (struct h5_driver_info){0};
	if (sb->extension != H5_UNDEF) {
		rc = h5_header_load(file, sb->extension, extension);
		if (rc)
			return h5_fail_in(rc, "superblock extension");
		m = h5_header_find(extension, H5_MSG_DRIVER_INFO);
		if (!m)
			return 0;
		r = h5_file_reader(file, m->data, m->size, m->address);
		rc = h5_driver_info_message_decode(&r, driver);
		if (rc)
			h5_header_release(extension);
		return rc;
	}
	/* At address 0 is the superblock itself: some writers' word for none. */
	if (sb->driver_info == H5_UNDEF || !sb->driver_info)
		return 0;
	rc = h5_file_read_some(file, sb->driver_info, block, sizeof block, &got);
	if (rc)
		return h5_fail_in(rc, "driver information block");
	r = h5_file_reader(file, block, got, sb->driver_info);
	return h5_driver_info_block_decode(&r, driver);
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

/* The driver's information is where it tells how to get to: in another member. So it is guessed, read and
 * compared. */
static int open_guessed(struct h5_file *file, struct h5_members *members, struct h5_header *extension)
{
	const struct h5_superblock *sb = &file->superblock;
	struct h5_driver_info guess, driver;
	int rc;

	h5_driver_info_multi_default(&guess);
	if (sb->extension == H5_UNDEF || sb->extension < guess.member[1].start) {
		memset(&guess, 0, sizeof guess);
		guess.driver = H5_DRIVER_FAMILY;
		guess.member_size = file->seen.size;
	}
	rc = h5_members_open(members, &guess, true, &file->io);
	if (!rc)
		rc = read_size(file);
	if (!rc)
		rc = read_extension(file, extension, &driver);
	if (!rc && memcmp(&guess, &driver, sizeof driver))
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "driver information: not that of these files");
	return rc;
}

/* Puts the pieces of the file together, where it has several. */
static int open_members(struct h5_file *file, struct h5_members *members, struct h5_header *extension)
{
	const struct h5_superblock *sb = &file->superblock;
	bool cut = sb->end != H5_UNDEF && sb->end > file->seen.size;
	bool elsewhere = sb->extension != H5_UNDEF && sb->extension >= file->end;
	struct h5_driver_info driver;
	int rc = read_extension(file, extension, &driver);

	if (rc == -EUCLEAN && (cut || elsewhere || members->pattern))
		return open_guessed(file, members, extension);
	/* A file that holds all of its addresses is none of a family, whatever it says: its members may have
	 * been joined. */
	if (rc || (driver.driver != H5_DRIVER_MULTI && !cut && !members->pattern))
		return rc;
	if (driver.driver == H5_DRIVER_NONE) {
		/* Old families don't tell. */
		driver.member_size = file->seen.size;
		rc = h5_members_open(members, &driver, members->pattern, &file->io);
	} else {
		rc = h5_members_open(members, &driver, true, &file->io);
	}
	return rc ? rc : read_size(file);
}

int h5_file_open(struct h5_file_set *set, struct h5_io *io, const char *path, const char *pattern,
		 struct h5_file **out)
{
	struct h5_members members = {.set = set, .path = path, .pattern = pattern};
	struct h5_file *file = calloc(1, sizeof *file);
	struct h5_header extension = {0};
	int rc;

	if (!file) {
		h5_io_close(io);
		return -ENOMEM;
	}
	file->set = set;
	file->io = io;
	file->follows = h5_file_set_follows(set);
	pthread_mutex_init(&file->seen_lock, NULL);
	file->number = h5_file_set_next_number(set);
	clock_gettime(CLOCK_REALTIME, &file->looked);
	rc = h5_io_stat(io, &file->seen);
	file->device = file->seen.device;
	file->inode = file->seen.inode;
	if (!rc)
		rc = find_superblock(io, file->seen.size, h5_file_set_offset(set), &file->superblock);
	if (!rc)
		rc = read_size(file);
	if (!rc) {
		members.end = file->superblock.end;
		rc = open_members(file, &members, &extension);
		file->in_pieces = file->io != io;
		file->missing = members.missing;
	}
	if (!rc)
		rc = h5_cache_image_open(file, &extension, &file->image);
	h5_header_release(&extension);
	if (rc) {
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
	free(file->missing);
	free(file);
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

/* Looks how far a file reaches that somebody else makes longer. */
static uint64_t end_by_now(struct h5_file *file)
{
	struct h5_io_stat st;

	if (file->follows && !h5_io_stat(file->io, &st) && st.end >= file->superblock.base)
		h5_file_extend(file, st.end - file->superblock.base);
	return file->end;
}

bool h5_file_refresh(struct h5_file *file)
{
	struct h5_io_stat st;
	struct timespec now;
	bool changed = false;

	if (file->changes)
		return false; /* it changes by ourselves alone */
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
		/* What is cached under the old number is found no more, and evicted in its turn. */
		file->number = h5_file_set_next_number(file->set);
	}
	pthread_mutex_unlock(&file->seen_lock);
	return changed;
}

void h5_file_lay_over(struct h5_file *file, struct h5_io *changes)
{
	assert(!file->changes);
	file->io = file->changes = changes;
}

struct h5_io *h5_file_changes(const struct h5_file *file)
{
	return file->changes;
}

struct h5_io *h5_file_io(const struct h5_file *file)
{
	return file->io;
}

void h5_file_extend(struct h5_file *file, uint64_t end)
{
	if (end > file->end)
		file->size = file->end = end;
}

void h5_file_renumber(struct h5_file *file)
{
	file->number = h5_file_set_next_number(file->set);
}

int h5_file_can_change(const struct h5_file *file)
{
	if (!file->io->ops->write)
		return h5_fail(-EROFS, H5_UNDEF, "the file is open for reading");
	if (file->in_pieces)
		return h5_fail(-ENOTSUP, H5_UNDEF, "writing a file in several pieces is not supported");
	if (file->image)
		return h5_fail(-ENOTSUP, H5_UNDEF,
			       "writing a file with a metadata cache image is not supported");
	return 0;
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

static void lay_over(const struct h5_file *file, uint64_t address, uint8_t *buf, size_t n)
{
	if (file->image)
		h5_cache_image_apply(file->image, address, buf, n);
}

static void count_read(const struct h5_file *file, size_t n)
{
	struct h5_statistics *s = h5_file_set_statistics(file->set);

	h5_count(&s->reads, 1);
	h5_count(&s->bytes, n);
}

/* 0: n bytes from the address on lie inside the file, as far as is known by now. */
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
	if (rc)
		return rc;
	count_read(file, *got);
	lay_over(file, address, buf, *got);
	return 0;
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

	if (!rc)
		rc = h5_io_readv(file->io, file->superblock.base + address, buffers, count, &got);
	if (rc)
		return rc;
	count_read(file, got);
	if (got < n)
		return h5_fail(-EUCLEAN, address, "%zu bytes reach beyond the end of the file", n);
	for (unsigned i = 0; i < count; i++) {
		lay_over(file, address, buffers[i].iov_base, buffers[i].iov_len);
		address += buffers[i].iov_len;
	}
	return 0;
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
	int rc = q->type->load(q->file, q->address, q->arg, value, cost);

	/* It may just be being written. What another block's loading says was asked again there. */
	for (int i = 0;
	     i < RETRIES && rc == -EUCLEAN && q->file->follows && h5_error_last()->address == q->address;
	     i++) {
		static const struct timespec pause = {.tv_nsec = 1000000};

		nanosleep(&pause, NULL);
		end_by_now(q->file);
		rc = q->type->load(q->file, q->address, q->arg, value, cost);
	}
	return rc;
}

int h5_file_block(struct h5_file *file, const struct h5_block_type *type, uint64_t address, uint64_t variant,
		  const void *arg, struct h5_lru_entry **ref)
{
	const struct h5_lru_key key = {
		.kind = &type->kind, .owner = file->number, .address = address, .variant = variant};
	struct block_request request = {file, type, address, arg};

	*ref = NULL;
	if (address >= file->end && address >= end_by_now(file))
		return h5_fail(-EUCLEAN, address, "%s: address beyond the end of the file", type->kind.name);
	return h5_lru_get(h5_file_set_blocks(file->set), &key, load_block, &request, ref);
}

void h5_file_put(struct h5_file *file, struct h5_lru_entry *ref)
{
	if (ref)
		h5_lru_put(h5_file_set_blocks(file->set), ref);
}
