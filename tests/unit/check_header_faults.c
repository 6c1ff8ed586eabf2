/* Changes of object headers that fail or are interrupted, and headers that are damaged. */
#include "base/error.h"
#include "change/object_header_edit.h"
#include "change/object_header_rewrite.h"
#include "change/private.h"
#include "change/transaction.h"
#include "crash_image.h"
#include "fault_alloc.h"
#include "header_model.h"

#include <stdio.h>

/* Makes each allocation of a change fail once, and takes the change back if it succeeds all the same. Returns
 * how many changes failed. */
static unsigned fail_allocations(struct scratch *s, const struct header_model *model, enum header_kind kind,
				 const struct header_attribute *a)
{
	unsigned failed = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		int rc;

		h5_unit_begin(s->file);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = header_apply(s, model, kind, a);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_int_eq(h5_unit_end(s->file, rc ? rc : -ECANCELED), rc ? rc : -ECANCELED);
		ck_assert(!rc || (fired && rc == -ENOMEM));
		failed += rc != 0;
		header_check_model(s, model);
	}
	return failed;
}

/* Then the header is as before, and the same change works later. */
START_TEST(every_allocation_can_fail)
{
	struct header_scene scene;
	unsigned failed = 0;

	header_scene_begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	for (size_t i = 0; i < scene.count; i += 17) {
		struct header_model *m = &scene.models[i];

		for (unsigned k = 0; k < 6; k++) {
			struct header_attribute a;
			unsigned which;
			enum header_kind kind = header_draw_change(&scene, m, &which, &a);

			failed += fail_allocations(&scene.s, m, kind, &a);
			SUCCEEDS(header_apply(&scene.s, m, kind, &a));
			header_update_model(m, kind, which, &a);
			header_check_model(&scene.s, m);
		}
	}
	ck_assert_uint_gt(failed, 300);
	header_commit(&scene);
	header_judge(&scene);
	header_scene_end(&scene);
}
END_TEST

/* A commit that fails leaves each header as before or as after, with the help of the journal. */
START_TEST(every_call_of_a_commit_can_fail)
{
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct header_attribute a = {.number = 1, .size = 50};
		struct header_scene scene;
		struct h5_header h;
		int rc;

		header_scene_begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
		scene.fault.error = -EIO;
		for (size_t i = 0; i < 10; i++) {
			SUCCEEDS(header_apply(&scene.s, &scene.models[i], HEADER_INSERT, &a));
			header_update_model(&scene.models[i], HEADER_INSERT, 0, &a);
		}
		fault_io_arm(&scene.fault, n);
		rc = h5_tx_commit(scene.s.file);
		fired = fault_io_disarm(&scene.fault);
		ck_assert(fired == (rc != 0));
		if (rc && h5_tx_is_writable(scene.s.file))
			SUCCEEDS(h5_tx_commit(scene.s.file));
		scratch_close(&scene.s);
		scratch_wrap(&scene.s, NULL);
		scratch_open(&scene.s);
		for (size_t i = 0; i < 10; i++) {
			SUCCEEDS(h5_header_load(scene.s.file, scene.models[i].address, &h));
			scene.models[i].count = header_find_attribute(&h, 1) ? 1 : 0;
			h5_header_release(&h);
			ck_assert(rc || scene.models[i].count);
			header_check_model(&scene.s, &scene.models[i]);
		}
		header_scene_end(&scene);
	}
}
END_TEST

/* Between any two cells of a commit libhdf5 finds the attributes of each dataset as before or as after. */
START_TEST(killed_between_cells)
{
	enum { COMMITS = 5, DATASETS = 8 };
	struct crash_image image = {0};
	char prefix[128];
	unsigned states = 0;
	struct header_scene scene;

	header_scene_begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	for (unsigned c = 0; c < COMMITS; c++) {
		fault_io_release(&scene.fault);
		scene.fault.record = true;
		crash_image_load(&image, scene.s.path);
		for (unsigned k = 0; k < DATASETS; k++)
			header_change_model(&scene, &scene.models[k * 13 % scene.count]);
		header_commit(&scene);
		snprintf(prefix, sizeof prefix, "%s/state-%u", scene.s.folder, c);
		states += crash_image_save_states(&image, &scene.fault, prefix);
	}
	ck_assert_uint_gt(states, COMMITS * DATASETS);
	scratch_own_judge_python("tests/judge/header_insert_judge.py %s %u", scene.s.folder, COMMITS);
	free(image.data);
	header_scene_end(&scene);
}
END_TEST

/* Changes some bytes of the header's first chunk, so that the checksum is right. */
static void damage(struct header_scene *scene, uint64_t address)
{
	struct h5_header h;
	uint8_t *bytes;
	size_t n;

	SUCCEEDS(h5_header_load(scene->s.file, address, &h));
	n = (size_t)h.chunks->size;
	bytes = h.chunks->bytes;
	for (unsigned i = 0; i < 1 + header_draw(scene, 3); i++)
		bytes[6 + header_draw(scene, n < 300 ? (unsigned)n - 6 : 294)] =
			(uint8_t)header_draw(scene, 256);
	if (h.prefix.version > 1)
		h5_header_seal(bytes, n);
	SUCCEEDS(h5_tx_patch(scene->s.file, address, bytes, n, H5_STAGE_OBJECT));
	h5_header_release(&h);
}

/* A damaged header gives an error, or is changed as far as it can be read. */
START_TEST(damaged_headers)
{
	unsigned refused = 0, done = 0;
	struct header_scene scene;

	header_scene_begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	for (unsigned k = 0; k < 3 * scene.count; k++) {
		struct header_model *m = &scene.models[k % scene.count];
		struct header_attribute a = {.number = k, .size = header_draw_size(&scene)};
		struct h5_header h;
		int rc;

		h5_unit_begin(scene.s.file);
		damage(&scene, m->address);
		rc = header_apply(&scene.s, m, HEADER_INSERT, &a);
		if (!rc)
			rc = h5_header_load(scene.s.file, m->address, &h);
		else
			ck_assert_str_ne(h5_error_last()->text, "");
		if (!rc) {
			/* the last one, as others may move */
			if (h.count)
				rc = h5_header_remove(scene.s.file, m->address, &h.messages[h.count - 1]);
			h5_header_release(&h);
		}
		refused += rc != 0;
		done += !rc;
		ck_assert_int_eq(h5_unit_end(scene.s.file, -ECANCELED), -ECANCELED);
		header_check_model(&scene.s, m);
	}
	ck_assert_msg(refused > 10 && done > 10, "%u refused, %u done", refused, done);
	header_scene_end(&scene);
}
END_TEST

static int change_last(const void *arg, uint8_t *body, size_t n)
{
	(void)arg;
	body[n - 1] ^= 1;
	return 0;
}

static int insert_attribute(const struct header_scene *scene, unsigned size)
{
	const struct header_attribute a = {.number = 900, .size = size, .step = 1};
	struct scratch s = scene->s;

	return header_apply(&s, &scene->models[0], HEADER_INSERT, &a);
}

static int insert_little(const struct header_scene *scene, const struct h5_header *header)
{
	(void)header;
	return insert_attribute(scene, 10);
}

static int insert_much(const struct header_scene *scene, const struct h5_header *header)
{
	(void)header;
	return insert_attribute(scene, 3000);
}

static int update(const struct header_scene *scene, const struct h5_header *header)
{
	(void)header;
	return h5_header_update(scene->s.file, scene->models[0].address, H5_MSG_DATASPACE, change_last, NULL);
}

static int count_links(const struct header_scene *scene, const struct h5_header *header)
{
	(void)header;
	return h5_header_set_references(scene->s.file, scene->models[0].address, 3);
}

static int rewrite(const struct header_scene *scene, const struct h5_header *header)
{
	return h5_header_rewrite(scene->s.file, scene->models[0].address, header->messages, header->count,
				 H5_STAGE_OBJECT);
}

static int (*const changes[])(const struct header_scene *scene, const struct h5_header *header) = {
	insert_little, insert_much, update, count_links, rewrite};
enum { CHANGES = sizeof changes / sizeof *changes };

/* The first change of a transaction succeeds only if it was noted whose it is: if the journal turns out to be
 * stale, the object is checked. */
START_TEST(changes_are_noted)
{
	unsigned failed = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct header_scene scene;
		struct h5_header header;
		uint64_t address;
		int rc;

		header_scene_begin(&scene, _i / CHANGES ? "header_edit_v2" : "header_edit_v1");
		address = scene.models[0].address;
		SUCCEEDS(h5_header_load(scene.s.file, address, &header));
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = changes[_i % CHANGES](&scene, &header);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		h5_header_release(&header);
		ck_assert(!rc || (fired && rc == -ENOMEM));
		ck_assert(rc || h5_extents_has(&h5_tx_find(scene.s.file)->objects, address));
		failed += rc != 0;
		header_scene_end(&scene);
	}
	ck_assert_uint_gt(failed, 2);
}
END_TEST

UNIT_MAIN_LOOPS("header_faults", {every_allocation_can_fail, 2}, {changes_are_noted, CHANGES * 2},
		{every_call_of_a_commit_can_fail, 2}, {killed_between_cells, 2}, {damaged_headers, 2})
