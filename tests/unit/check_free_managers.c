/* Files that keep track of their free space: what h5fs finds, uses and gives up stands in the managers that
 * it writes, each byte once, and nothing else does. */
#include "base/extents.h"
#include "change/object_header_edit.h"
#include "change/transaction.h"
#include "crash_image.h"
#include "format/free_space.h"
#include "scratch.h"
#include "store/extension.h"
#include "store/free_sections.h"

#include <errno.h>
#include <string.h>

enum { KEPT = 16, FOR_METADATA = 4096 };

/* What a file states. */
struct stated {
	struct h5_file_space_info info;
	struct h5_extents sections, managers;	 /* free space; space of the managers themselves */
	uint64_t totals[H5_FREE_SPACE_MANAGERS]; /* bytes of the sections */
	unsigned count;
	bool ours; /* that h5fs has written */
};

static struct scratch scratch;

static void add(struct h5_extents *set, uint64_t address, uint64_t n)
{
	ck_assert(!h5_extents_touches(set, address, n));
	SUCCEEDS(h5_extents_add(set, address, n));
}

static int note_section(void *arg, unsigned manager, const struct h5_free_section *section)
{
	struct stated *stated = arg;

	/* Without pages the size decides. */
	if (stated->ours && !stated->info.page_size)
		ck_assert_uint_eq(manager,
				  section->size > FOR_METADATA ? H5_MANAGER_RAW : H5_MANAGER_METADATA);
	ck_assert_uint_ge(section->size, stated->info.threshold);
	add(&stated->sections, section->offset, section->size);
	stated->totals[manager] += section->size;
	stated->count++;
	return 0;
}

/* Of the file as it is on the medium. */
static void read_managers(struct stated *stated, bool ours)
{
	memset(stated, 0, sizeof *stated);
	stated->ours = ours;
	scratch.options.writable = false;
	scratch_open(&scratch);
	SUCCEEDS(h5_extension_file_space(scratch.file, &stated->info));
	ck_assert(stated->info.persist);
	SUCCEEDS(h5_free_sections_each(scratch.file, &stated->info, note_section, stated));
	for (unsigned i = 0; i < H5_FREE_SPACE_MANAGERS; i++) {
		struct h5_free_space_header header;

		if (stated->info.managers[i] == H5_UNDEF)
			continue;
		SUCCEEDS(h5_free_manager_header(scratch.file, stated->info.managers[i], &header));
		add(&stated->managers, stated->info.managers[i], h5_free_space_header_size(8, 8));
		add(&stated->managers, header.list, header.list_room);
		ck_assert_uint_le(header.list_size, header.list_room);
		ck_assert_uint_gt(header.sections, 0);
		ck_assert_uint_eq(header.total, stated->totals[i]);
	}
	h5_extents_each(e, &stated->managers)
		ck_assert(!h5_extents_touches(&stated->sections, e->address, e->size));
	scratch_close(&scratch);
	scratch.options.writable = true;
}

static void stated_release(struct stated *stated)
{
	h5_extents_release(&stated->sections);
	h5_extents_release(&stated->managers);
}

static void check_same(const struct h5_extents *found, const struct h5_extents *expected)
{
	h5_extents_each(e, expected)
		ck_assert_msg(h5_extents_covers(found, e->address, e->size), "%ju, %ju bytes are not there",
			      (uintmax_t)e->address, (uintmax_t)e->size);
	h5_extents_each(e, found)
		ck_assert_msg(h5_extents_covers(expected, e->address, e->size), "%ju, %ju bytes are there",
			      (uintmax_t)e->address, (uintmax_t)e->size);
}

static uint64_t write_raw(uint64_t n)
{
	uint8_t *bytes = calloc(1, n);
	uint64_t at;

	ck_assert_ptr_nonnull(bytes);
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, n, &at));
	SUCCEEDS(h5_tx_write(scratch.file, at, bytes, n));
	free(bytes);
	return at;
}

static void take(struct h5_extents *set, uint64_t address, uint64_t n)
{
	SUCCEEDS(h5_extents_remove(set, address, n));
}

/* What is given up is free, with what was free before and with the space of the managers before. */
START_TEST(what_is_free_is_stated)
{
	static const char *const files[] = {"crash_persist.h5", "crash_persist_user.h5"};
	/* The first ones that are large enough hold the managers. */
	static const uint64_t sizes[] = {1, 8, 100, 1000, 1000, 1000, 4095, 4096, 4097, 20000};
	enum { SIZES = sizeof sizes / sizeof *sizes };
	struct h5_extents expected = {0};
	uint64_t at[SIZES];
	struct stated s;

	scratch_init(&scratch, files[_i]);
	read_managers(&s, false);
	h5_extents_each(e, &s.sections) add(&expected, e->address, e->size);
	h5_extents_each(e, &s.managers) add(&expected, e->address, e->size);
	stated_release(&s);
	scratch_open(&scratch);
	for (unsigned i = 0; i < SIZES; i++) {
		at[i] = write_raw(KEPT + sizes[i] + KEPT); /* what is kept keeps them apart */
		take(&expected, at[i], KEPT + sizes[i] + KEPT);
	}
	SUCCEEDS(h5_tx_commit(scratch.file));
	for (unsigned i = 0; i < SIZES; i++) {
		h5_tx_free(scratch.file, at[i] + KEPT, sizes[i]);
		add(&expected, at[i] + KEPT, sizes[i]);
	}
	take(&expected, write_raw(KEPT), KEPT);
	SUCCEEDS(h5_tx_commit(scratch.file));
	scratch_close(&scratch);
	for (int again = 0; again < 3; again++) {
		struct crash_image before = {0}, after = {0};

		read_managers(&s, true);
		h5_extents_each(e, &s.managers) take(&expected, e->address, e->size);
		check_same(&s.sections, &expected);
		ck_assert_uint_ge(s.count, 2);
		/* A mount that changes nothing leaves all as it is. */
		crash_image_load(&before, scratch.path);
		scratch_open(&scratch);
		if (again == 1) {
			h5_extents_each(e, &s.managers) add(&expected, e->address, e->size);
			take(&expected, write_raw(KEPT), KEPT);
			SUCCEEDS(h5_tx_commit(scratch.file));
		}
		scratch_close(&scratch);
		crash_image_load(&after, scratch.path);
		ck_assert(again == 1 ||
			  (before.size == after.size && !memcmp(before.data, after.data, before.size)));
		free(before.data);
		free(after.data);
		stated_release(&s);
	}
	scratch_judge("h5dump -H '%s' > /dev/null", scratch.path);
	h5_extents_release(&expected);
	scratch_release(&scratch);
}
END_TEST

/* The first commit takes the managers away, and states the end that the file has then, before a kill. */
START_TEST(meanwhile_there_are_none)
{
	static const char *const files[] = {"crash_persist.h5", "crash_persist_user.h5",
					    "crash_persist_paged.h5"};
	struct crash_image image = {0};
	struct stated s;

	scratch_init(&scratch, files[_i]);
	read_managers(&s, false);
	ck_assert_uint_gt(s.count, 0);
	stated_release(&s);
	scratch_open(&scratch);
	write_raw(50000);
	SUCCEEDS(h5_tx_commit(scratch.file));
	crash_image_load(&image, scratch.path);
	scratch_close(&scratch);
	crash_image_save(&image, scratch.path);
	free(image.data);
	read_managers(&s, true);
	ck_assert_uint_eq(s.count, 0);
	for (unsigned i = 0; i < H5_FREE_SPACE_MANAGERS; i++)
		ck_assert_uint_eq(s.info.managers[i], H5_UNDEF);
	stated_release(&s);
	scratch_judge("h5dump -H '%s' > /dev/null", scratch.path);
	scratch_release(&scratch);
}
END_TEST

/* If the managers cannot be written at the end, the file is sound, and gets them at the end of the next
 * mount. */
START_TEST(each_call_can_fail)
{
	unsigned long n = 1;

	for (bool fired = true; fired; n++) {
		struct fault_io fault = {.error = -EIO};
		struct stated s;
		uint64_t at;

		scratch_init(&scratch, "crash_persist.h5");
		scratch_wrap(&scratch, &fault);
		scratch_open(&scratch);
		write_raw(100);
		SUCCEEDS(h5_tx_commit(scratch.file));
		fault_io_arm(&fault, n);
		scratch_close(&scratch);
		fired = fault_io_disarm(&fault);
		/* A journal that is left heals it. */
		scratch_wrap(&scratch, NULL);
		scratch_open(&scratch);
		at = write_raw(5000);
		write_raw(8);
		SUCCEEDS(h5_tx_commit(scratch.file));
		h5_tx_free(scratch.file, at, 5000);
		write_raw(8);
		SUCCEEDS(h5_tx_commit(scratch.file));
		scratch_close(&scratch);
		read_managers(&s, true);
		ck_assert_uint_gt(s.count, 0);
		stated_release(&s);
		scratch_release(&scratch);
		fault_io_release(&fault);
	}
	ck_assert_uint_gt(n, 8);
}
END_TEST

/* ---- lists that do not settle ---- */

static int set_threshold(const void *threshold, uint8_t *body, size_t n)
{
	enum { BEFORE = 3 }; /* version, strategy, persistent */

	ck_assert_uint_ge(n, BEFORE + 8);
	h5_uint_to(body + BEFORE, *(const uint64_t *)threshold, 8);
	return 0;
}

/* Commits something. */
static void commit(struct h5_extents *free)
{
	take(free, write_raw(KEPT), KEPT);
	SUCCEEDS(h5_tx_commit(scratch.file));
}

/* Opens a file with that threshold, and fills all of its free space. */
static void begin_full(uint64_t threshold)
{
	struct h5_extents free = {0};
	struct stated s;

	scratch_init(&scratch, "crash_persist.h5");
	read_managers(&s, false);
	h5_extents_each(e, &s.sections) add(&free, e->address, e->size);
	h5_extents_each(e, &s.managers) add(&free, e->address, e->size);
	stated_release(&s);
	scratch_open(&scratch);
	SUCCEEDS(h5_header_update(scratch.file, h5_file_superblock(scratch.file)->extension,
				  H5_MSG_FILE_SPACE_INFO, set_threshold, &threshold));
	for (int i = 0; i < 3; i++)
		commit(&free);
	/* The largest first, since the first one that is large enough is taken. */
	while (free.count) {
		uint64_t most = 0;

		h5_extents_each(e, &free) most = e->size > most ? e->size : most;
		take(&free, write_raw(most), most);
	}
	h5_extents_release(&free);
}

/* A block of raw data, of which parts become free. */
struct parts {
	uint64_t at, next;
	struct h5_extents free;
};

enum { PARTS_SIZE = 300000 };

static void parts_begin(struct parts *parts)
{
	*parts = (struct parts){.at = write_raw(PARTS_SIZE)};
	SUCCEEDS(h5_tx_commit(scratch.file));
	parts->next = (parts->at + 7) / 8 * 8 + 8;
}

/* At a multiple of 8, with something between it and the one before. */
static void free_part(struct parts *parts, uint64_t n)
{
	ck_assert_uint_lt(parts->next + n, parts->at + PARTS_SIZE);
	h5_tx_free(scratch.file, parts->next, n);
	add(&parts->free, parts->next, n);
	parts->next += (n + 7) / 8 * 8 + 8;
}

/* Ends the mount. */
static void parts_end(struct parts *parts, struct stated *stated)
{
	uint64_t last = parts->at + PARTS_SIZE - 8;

	/* Something to commit. */
	SUCCEEDS(h5_tx_patch(scratch.file, last, "x", 1, H5_STAGE_BLOCK));
	SUCCEEDS(h5_tx_commit(scratch.file));
	scratch_close(&scratch);
	read_managers(stated, true);
	h5_extents_each(e, &stated->managers) take(&parts->free, e->address, e->size);
	scratch_judge("h5dump -H '%s' > /dev/null", scratch.path);
	/* The next mount can take the managers away. */
	scratch_open(&scratch);
	write_raw(KEPT);
	SUCCEEDS(h5_tx_commit(scratch.file));
	scratch_release(&scratch);
}

/* No section is stated that is not free, and all but so many free bytes are. */
static void check_parts(const struct parts *parts, const struct stated *stated, uint64_t lost)
{
	uint64_t bytes = 0;

	h5_extents_each(e, &stated->sections) if (e->address < parts->at + PARTS_SIZE)
	{
		ck_assert(h5_extents_covers(&parts->free, e->address, e->size));
		bytes += e->size;
	}
	h5_extents_each(e, &parts->free) bytes -= e->size;
	ck_assert_int_eq((int64_t)bytes, -(int64_t)lost);
}

/* If the only free section is a large one, there is a small one in it too, the gap behind the header of the
 * manager. With both managers in it there may be no large one any more, with one there is. So that manager
 * comes and goes, and in the end its space is lost. */
START_TEST(a_manager_that_comes_and_goes)
{
	enum { OF_ONE = 82 + 99 }; /* bytes of a manager of one section */
	static const struct {
		uint64_t size, lost;
	} cases[] = {{FOR_METADATA, 0},
		     {FOR_METADATA + 1, 0},
		     {FOR_METADATA + 200, 0},
		     {FOR_METADATA + 215, 0}, /* the first try fits; others would not */
		     {FOR_METADATA + 315, OF_ONE},
		     {FOR_METADATA + 500, 0}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct parts parts;
		struct stated s;

		begin_full(1);
		parts_begin(&parts);
		free_part(&parts, cases[i].size);
		parts_end(&parts, &s);
		check_parts(&parts, &s, cases[i].lost);
		stated_release(&s);
		h5_extents_release(&parts.free);
	}
}
END_TEST

/* With 256 sections, counts in the list have two bytes, with 255 one. Each time the list has the space of the
 * number before, since the manager of the large section comes and goes. In the end that section is left out,
 * and of the others as many as do not fit, the smallest first. */
START_TEST(a_list_that_does_not_fit)
{
	enum { THRESHOLD = 64, SECTIONS = 254, LEAST = 2 * THRESHOLD, SMALL = 92, LARGE = 4175 };
	struct parts parts;
	struct stated s;

	begin_full(THRESHOLD);
	parts_begin(&parts);
	free_part(&parts, 91); /* of a header and a rest that is too small */
	free_part(&parts, SMALL);
	free_part(&parts, LARGE);
	for (unsigned i = 0; i < SECTIONS; i++)
		free_part(&parts, LEAST + i);
	parts_end(&parts, &s);
	ck_assert_uint_eq(s.count, SECTIONS + 1);
	check_parts(&parts, &s, 91 - 82 + SMALL + LARGE);
	stated_release(&s);
	h5_extents_release(&parts.free);
}
END_TEST

/* In a file with pages, space that is free on both sides of the edge of a page is stated as two sections. */
START_TEST(sections_end_with_pages)
{
	enum { PIECES = 16 };
	struct h5_extents kept = {0};
	uint64_t at[PIECES], page, half;
	unsigned first = 4;
	struct stated s;

	scratch_init(&scratch, "crash_persist_paged.h5");
	read_managers(&s, false);
	page = s.info.page_size;
	half = page / 2;
	stated_release(&s);
	scratch_open(&scratch);
	for (unsigned i = 0; i < PIECES; i++)
		at[i] = write_raw(half);
	SUCCEEDS(h5_tx_commit(scratch.file));
	while (at[first] + half != at[first + 1] || at[first + 1] % page)
		ck_assert_uint_lt(++first, PIECES - 2);
	for (unsigned i = 0; i < PIECES; i++) {
		if (i == first || i == first + 1)
			h5_tx_free(scratch.file, at[i], half);
		else
			add(&kept, at[i], half);
	}
	add(&kept, write_raw(KEPT), KEPT);
	SUCCEEDS(h5_tx_commit(scratch.file));
	scratch_close(&scratch);
	read_managers(&s, true);
	ck_assert(h5_extents_covers(&s.sections, at[first], 2 * half));
	h5_extents_each(e, &kept) ck_assert(!h5_extents_touches(&s.sections, e->address, e->size));
	stated_release(&s);
	h5_extents_release(&kept);
	scratch_judge("h5dump -H '%s' > /dev/null", scratch.path);
	scratch_release(&scratch);
}
END_TEST

UNIT_MAIN_LOOPS("free_managers", {sections_end_with_pages, 1}, {what_is_free_is_stated, 2},
		{meanwhile_there_are_none, 3}, {each_call_can_fail, 1}, {a_manager_that_comes_and_goes, 1},
		{a_list_that_does_not_fit, 1})
