/* Chunks that are set where their index is damaged: an error, and the damage is not written over with a
 * checksum that is right. */
#include "base/error.h"
#include "index_target.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	BLOCKS_MAX = 2000,
	FIRST = 300, /* chunks in small blocks, each of which is set */
	STEP = 101,  /* from one of the others that is set to the next one */
	FLIP = 0x10, /* the bit that is damaged */
};

struct block {
	uint64_t address, n;
	char signature[5]; /* "": a page */
};

struct scene {
	struct target t;
	char sound[192]; /* the path of a copy of the file */
	uint64_t chunks;
	struct block blocks[BLOCKS_MAX];
	size_t count;
};

static struct scene s;

static int note_block(void *arg, uint64_t address, uint64_t n)
{
	struct block *block = &s.blocks[s.count++];

	(void)arg;
	ck_assert_uint_le(s.count, BLOCKS_MAX);
	*block = (struct block){.address = address, .n = n};
	SUCCEEDS(h5_file_read(s.t.file, address, block->signature, 4));
	if (memcmp(block->signature, "FA", 2) && memcmp(block->signature, "EA", 2))
		*block->signature = 0;
	return 0;
}

static int pass_over(void *arg, uint64_t address, uint64_t n)
{
	(void)arg;
	(void)address;
	(void)n;
	return 0;
}

/* A file of an index with so many chunks. */
static void begin(const char *fixture, uint64_t chunks)
{
	const struct h5_extent_visits visits = {pass_over, note_block, NULL};

	memset(&s, 0, sizeof s);
	target_init(&s.t, fixture, "a", NULL);
	s.chunks = chunks;
	target_append(&s.t, chunks, chunks);
	SUCCEEDS(h5_chunk_index_extents(s.t.index, &visits));
	target_close(&s.t);
	snprintf(s.sound, sizeof s.sound, "%s.sound", s.t.scratch.path);
	scratch_copy(s.t.scratch.path, s.sound);
}

static void flip(uint64_t address)
{
	int fd = open(s.t.scratch.path, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	ck_assert_int_eq(pread(fd, &byte, 1, (off_t)address), 1);
	byte ^= FLIP;
	ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)address), 1);
	close(fd);
}

/* Sets chunks all over the index; how many cannot be set. */
static unsigned set_some(void)
{
	unsigned failed = 0;

	target_open(&s.t);
	for (uint64_t n = 0; n < s.chunks; n += n < FIRST ? 1 : STEP) {
		int rc = target_set(&s.t, n);

		ck_assert_msg(!rc || rc == -EUCLEAN, "%ju: %s", (uintmax_t)n, h5_error_last()->text);
		failed += !!rc;
	}
	SUCCEEDS(target_commit(&s.t));
	target_close(&s.t);
	return failed;
}

static void damage(const struct block *block, uint64_t at)
{
	unsigned failed;

	scratch_copy(s.sound, s.t.scratch.path);
	flip(block->address + at);
	failed = set_some();
	ck_assert_msg(failed, "%s at %ju, %ju bytes: byte %ju", block->signature, (uintmax_t)block->address,
		      (uintmax_t)block->n, (uintmax_t)at);
	ck_assert_uint_eq(set_some(), failed);
}

/* True: no block of the kind comes later (1), or before (-1). */
static bool is_outermost(size_t i, int direction)
{
	for (size_t k = i + (size_t)direction; k < s.count; k += (size_t)direction)
		if (!strcmp(s.blocks[k].signature, s.blocks[i].signature))
			return false;
	return true;
}

/* True: the block has pages, which come right behind what it begins with. Then that is not read. */
static bool has_pages(size_t i)
{
	return i + 1 < s.count && *s.blocks[i].signature && !*s.blocks[i + 1].signature;
}

START_TEST(damage_stays)
{
	static const struct {
		const char *fixture;
		uint64_t chunks;
		unsigned blocks; /* that are damaged */
	} cases[] = {{"chunk_index_write-plain.h5", 132500, 6},
		     {"chunk_index_write-filtered.h5", 132500, 6},
		     {"fixed_array_write-block.h5", 900, 1},
		     {"fixed_array_write-paged.h5", 3077, 2},
		     {"fixed_array_write-filtered.h5", 2500, 2}};
	unsigned blocks = 0;

	begin(cases[_i].fixture, cases[_i].chunks);
	for (size_t i = 0; i < s.count; i++) {
		const struct block *block = &s.blocks[i];

		/* Without its header nothing can be asked of an index. */
		if (!strcmp(block->signature + 2, "HD") || has_pages(i) ||
		    (!is_outermost(i, -1) && !is_outermost(i, 1)))
			continue;
		blocks++;
		damage(block, 6);
		damage(block, block->n / 2);
		damage(block, block->n - 6);
	}
	ck_assert_uint_eq(blocks, cases[_i].blocks);
	unlink(s.sound);
	target_release(&s.t);
}
END_TEST

UNIT_MAIN_LOOPS("index_damage_write", {damage_stays, 5})
