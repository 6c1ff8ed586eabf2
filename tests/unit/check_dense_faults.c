/* Changes of dense storage that fail or are cut off by a kill, and storage that is damaged. */
#include "base/lookup3.h"
#include "change/transaction.h"
#include "crash_image.h"
#include "dense_model.h"
#include "fault_alloc.h"
#include "fault_call.h"

#include <stdio.h>
#include <string.h>

/* ---- kills ---- */

struct kill_case {
	const char *group;
	unsigned inserts, replaces, removes; /* of the commit */
	bool all_go;			     /* then the storage is given up */
};

static const struct kill_case kill_cases[] = {
	{"links-tracked-0", 3, 0, 0, false},	     {"links-tracked-10", 1, 0, 0, false},
	{"links-unordered-10", 40, 0, 0, false},     {"links-tracked-60", 0, 0, 5, false},
	{"links-tracked-60", 10, 5, 20, false},	     {"attributes-tracked-10", 0, 9, 0, false},
	{"attributes-unordered-60", 9, 9, 9, false}, {"links-tracked-5000", 5, 5, 5, false},
	{"attributes-tracked-60", 9, 0, 0, false},   {"links-unordered-60", 0, 0, 0, true},
};

enum { KILL_CASES = sizeof kill_cases / sizeof *kill_cases };

/* A message that is there, or none; limit: no such. */
static unsigned choose_message(struct dense *d, bool exists)
{
	unsigned i = (unsigned)dense_choose(d, d->limit);

	for (unsigned n = 0; n < d->limit; n++, i = (i + 1) % d->limit)
		if (d->messages[i].exists == exists)
			return i;
	return d->limit;
}

/* No message changes twice: what it is in between is neither old nor new. */
static void run_case(struct dense *d, const struct kill_case *c)
{
	unsigned last = 0;

	dense_create(d);
	for (unsigned n = 0; n < c->inserts; n++)
		SUCCEEDS(dense_insert(d, choose_message(d, false), d->sizes[n % d->size_count]));
	for (unsigned n = 0; n < c->replaces; last++)
		if (d->messages[last].exists)
			SUCCEEDS(dense_replace(d, last, d->sizes[n++ % d->size_count]));
	for (unsigned n = 0; n < c->removes; last++)
		if (d->messages[last].exists) {
			SUCCEEDS(dense_remove(d, last));
			n++;
		}
	if (!c->all_go)
		return;
	SUCCEEDS(h5_dense_free(d->file, &d->info, d->kind));
	memset(d->messages, 0, sizeof d->messages);
}

/* After a kill between any two cells of a commit each message is old or new. Ends d. */
static void kill_everywhere(struct dense *d, const struct kill_case *c, struct fault_io *record)
{
	struct crash_image image = {0};
	char old[128], new[128];
	char prefix[128];

	snprintf(old, sizeof old, "%s/old", scratch_folder());
	snprintf(new, sizeof new, "%s/new", scratch_folder());
	dense_write_expected(d, old);
	crash_image_load(&image, d->scratch.path);
	record->record = true;
	run_case(d, c);
	SUCCEEDS(dense_commit(d));
	record->record = false;
	dense_write_expected(d, new);
	snprintf(prefix, sizeof prefix, "%s/state", scratch_folder());
	crash_image_save_states(&image, record, prefix);
	scratch_judge_python("tests/judge/dense_states.py %s %s %s %s", scratch_folder(), c->group, old, new);
	dense_end(d);
	fault_io_release(record);
	free(image.data);
}

START_TEST(killed_between_cells)
{
	const struct kill_case *c = &kill_cases[_i];
	struct fault_io record = {0};
	struct dense *d = dense_begin(c->group, 5100, &record);

	/* Some space that is used again, and objects whose removal is not settled. */
	if (d->info.heap != H5_UNDEF && !c->all_go) {
		dense_shake(d, 10, 50);
		SUCCEEDS(dense_commit(d));
		for (unsigned n = 0; n < 3; n++)
			SUCCEEDS(dense_remove(d, choose_message(d, true)));
	}
	SUCCEEDS(dense_commit(d));
	kill_everywhere(d, c, &record);
}
END_TEST

/* The first commit of a file with a cache image: the heap is in the image, and the header of the index that
 * leads into the heap is not. */
START_TEST(killed_as_the_image_goes)
{
	static const struct kill_case c = {"attributes-unordered-10", 3, 0, 0, false};
	struct fault_io record = {0};

	kill_everywhere(dense_begin_in("dense_write-image.h5", c.group, 100, &record), &c, &record);
}
END_TEST

/* ---- failures ---- */

static int perform(struct dense *d, unsigned step)
{
	static const unsigned sizes[] = {20, 6000, 300};
	unsigned size = sizes[step % 3], there = choose_message(d, true), new = choose_message(d, false);

	if (d->kind == H5_NAMED_LINK && size > 5000)
		size = 900;
	if (step % 4 == 3 || new == d->limit)
		return dense_remove(d, there);
	if (step % 4 == 2)
		return dense_replace(d, there, step % 8 == 2 ? d->messages[there].size : size);
	return dense_insert(d, new, size);
}

enum fault_of { FAULT_OF_MEMORY, FAULT_OF_READS };

/* A change fails at each place, and changes nothing; then it succeeds. */
static unsigned fail_everywhere(struct dense *d, unsigned step, enum fault_of what)
{
	const struct h5_named_info info = d->info;
	const uint64_t random = d->random;
	unsigned failures = 0;
	int rc = -EIO;

	for (unsigned long n = 1; rc; n++) {
		d->random = random;
		if (what == FAULT_OF_MEMORY) {
			fault_alloc_arm(n);
			fault_alloc_count(true);
		} else {
			/* Nothing is cached. */
			h5_tx_forget(d->file, d->info.heap);
			fault_call_arm(CALL_FAILS, n, false);
		}
		rc = perform(d, step);
		fault_alloc_count(false);
		fault_alloc_disarm();
		fault_call_disarm();
		if (!rc)
			break;
		ck_assert_int_eq(rc, what == FAULT_OF_MEMORY ? -ENOMEM : -EIO);
		ck_assert(!h5_dense_has_moved(&info, &d->info));
		if (failures++ % 8 == 0)
			dense_check(d);
	}
	return failures;
}

START_TEST(a_failed_change_changes_nothing)
{
	static const char *const groups[] = {"links-tracked-60", "attributes-tracked-10",
					     "attributes-unordered-60"};
	struct dense *d = dense_begin(groups[_i / 2], 70, NULL);
	unsigned failures = 0;

	for (unsigned step = 0; step < 16; step++) {
		failures += fail_everywhere(d, step, _i % 2 ? FAULT_OF_READS : FAULT_OF_MEMORY);
		dense_check(d);
		if (step % 3 == 2)
			SUCCEEDS(dense_commit(d));
	}
	ck_assert_uint_gt(failures, 0);
	dense_judge(d, 3);
	dense_check(d);
	dense_end(d);
}
END_TEST

/* True: the storage has what the model has. */
static bool is_as(struct dense *d)
{
	struct h5_named_storage storage;
	bool same = true;

	h5_named_storage_dense(d->file, d->kind, &d->info, &storage);
	for (unsigned i = 0; i < d->limit && same; i++) {
		const struct dense_message *m = &d->messages[i];
		struct h5_message_body body;
		const char *name = dense_name(i);
		int rc = h5_named_find(&storage, name, strlen(name), &body);
		size_t n;
		const uint8_t *bytes = dense_message(d, i, m->version, m->size, m->order, &n);

		same = m->exists
			       ? !rc && h5_reader_left(&body.reader) == n && !memcmp(body.reader.p, bytes, n)
			       : rc == -ENOENT;
		if (!rc)
			h5_message_release(d->file, &body);
	}
	return same;
}

/* Each write and sync of a commit fails: when the file is opened again, the commit was made or not. */
START_TEST(a_commit_fails)
{
	struct fault_io fault = {.error = -EIO};
	struct dense *d = dense_begin(_i ? "attributes-tracked-60" : "links-tracked-60", 80, &fault);
	struct dense *before = malloc(sizeof *before);
	unsigned made = 0, lost = 0;
	int rc = -EIO;

	ck_assert_ptr_nonnull(before);
	for (unsigned n = 1; rc; n++) {
		*before = *d;
		fault_io_arm(&fault, n);
		for (unsigned step = 0; step < 8; step++)
			SUCCEEDS(perform(d, step));
		rc = dense_commit(d);
		fault_io_disarm(&fault);
		if (!rc)
			break;
		dense_close(d);
		dense_open(d);
		if (is_as(d)) {
			made++;
		} else {
			memcpy(d->messages, before->messages, sizeof d->messages);
			d->next_order = before->next_order;
			lost++;
		}
		dense_check(d);
	}
	ck_assert_uint_gt(lost, 2);
	ck_assert_uint_gt(made, 2);
	dense_judge(d, 5);
	free(before);
	dense_end(d);
	fault_io_release(&fault);
}
END_TEST

/* ---- damage ---- */

struct block {
	size_t at, size;
	bool is_sealed; /* its last bytes are a checksum */
};

/* All blocks of dense storage, by their signatures. */
static unsigned find_blocks(const struct crash_image *image, struct block *blocks, unsigned room)
{
	static const struct {
		char signature[5];
		size_t size;
	} kinds[] = {{"FRHP", 146}, {"FSHD", 82}, {"FSSE", 0}, {"BTHD", 38}, {"FHIB", 0}, {"FHDB", 0}};
	unsigned count = 0;

	for (size_t at = 0; at + 600 < image->size; at++)
		for (unsigned k = 0; k < sizeof kinds / sizeof *kinds && count < room; k++)
			if (!memcmp(image->data + at, kinds[k].signature, 4))
				blocks[count++] =
					(struct block){at, kinds[k].size ? kinds[k].size : 60, kinds[k].size};
	return count;
}

static void damage(struct dense *d, const struct block *block, uint8_t *image)
{
	static const uint8_t values[] = {0, 1, 4, 0x7f, 0x80, 0xff};
	uint8_t *bytes = image + block->at;

	for (uint64_t n = 1 + dense_choose(d, 3); n; n--) {
		size_t at = 4 + (size_t)dense_choose(d, block->size - 8);

		bytes[at] = dense_choose(d, 2) ? (uint8_t)(bytes[at] + dense_choose(d, 3) - 1)
					       : values[dense_choose(d, sizeof values)];
	}
	if (block->is_sealed)
		h5_uint_to(bytes + block->size - 4, h5_lookup3(bytes, block->size - 4, 0), 4);
}

/* Whatever the result: no memory is hurt, and no walk is endless. */
START_TEST(damaged_storage)
{
	enum { BLOCKS = 400, ROUNDS = 300 };
	struct dense *d = dense_begin(_i ? "attributes-tracked-60" : "links-tracked-60", 80, NULL);
	struct crash_image image = {0}, changed = {0};
	struct block blocks[BLOCKS];
	unsigned count, refused = 0;

	dense_shake(d, 60, 60);
	SUCCEEDS(dense_commit(d));
	dense_shake(d, 10, 30);
	SUCCEEDS(dense_commit(d));
	dense_close(d);
	crash_image_load(&image, d->scratch.path);
	count = find_blocks(&image, blocks, BLOCKS);
	for (unsigned round = 0; round < ROUNDS; round++) {
		crash_image_copy(&changed, &image);
		damage(d, &blocks[dense_choose(d, count)], changed.data);
		crash_image_save(&changed, d->scratch.path);
		scratch_open(&d->scratch);
		d->file = d->scratch.file;
		for (unsigned n = 0; !dense_load(d) && n < 12; n++)
			refused += dense_step(d, 60) != 0;
		refused += h5_dense_free(d->file, &d->info, d->kind) != 0;
		dense_close(d);
	}
	ck_assert_uint_gt(refused, 50);
	free(image.data);
	free(changed.data);
	dense_end(d);
}
END_TEST

UNIT_MAIN_LOOPS("dense_faults", {killed_between_cells, KILL_CASES}, {killed_as_the_image_goes, 1},
		{a_failed_change_changes_nothing, 6}, {a_commit_fails, 2}, {damaged_storage, 2})
