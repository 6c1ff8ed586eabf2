/* Messages of object headers, inserted, removed and resized: attributes, since libhdf5 can tell which of them
 * are there. It judges in tests/judge/header_insert_judge.py. */
#include "base/error.h"
#include "change/transaction.h"
#include "header_model.h"

#include <stdio.h>

enum { ROUNDS = 3, OPERATIONS = 7 };

START_TEST(random_changes)
{
	static const char *const names[] = {"header_edit_v1", "header_edit_v2", "header_edit_block"};
	struct header_scene scene;
	unsigned torn = 0;

	header_scene_begin(&scene, names[_i]);
	for (int round = 1; round <= ROUNDS; round++) {
		for (size_t i = 0; i < scene.count; i++)
			for (unsigned k = 0; k < OPERATIONS; k++)
				header_change_model(&scene, &scene.models[i]);
		torn += header_commit(&scene);
	}
	/* A version 2 header across the edge of a page has one such write, in the first round mostly. */
	ck_assert_msg(_i ? torn < scene.count / 5 : !torn, "%u writes are no cells", torn);
	header_judge(&scene);
	header_scene_end(&scene);
}
END_TEST

/* A header that grows step by step has few continuation blocks, and the space of what went is used again. */
START_TEST(blocks_are_few)
{
	struct header_scene scene;
	struct h5_header h;
	struct header_model *m;
	uint64_t before;

	header_scene_begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	m = &scene.models[scene.count - 1];
	SUCCEEDS(h5_header_load(scene.s.file, m->address, &h));
	before = h.chunk_count;
	h5_header_release(&h);
	for (unsigned i = 0; i < 20 * HEADER_ATTRIBUTES_MAX; i++) {
		struct header_attribute a = {.number = i % HEADER_ATTRIBUTES_MAX,
					     .size = 20 + i % HEADER_ATTRIBUTES_MAX};

		if (i >= HEADER_ATTRIBUTES_MAX) {
			SUCCEEDS(header_apply(&scene.s, m, HEADER_REMOVE, &a));
			header_update_model(m, HEADER_REMOVE, 0, NULL);
			m->attributes[0] = m->attributes[m->count];
		}
		SUCCEEDS(header_apply(&scene.s, m, HEADER_INSERT, &a));
		if (i < HEADER_ATTRIBUTES_MAX)
			m->attributes[i] = a;
		m->count++;
	}
	header_check_model(&scene.s, m);
	SUCCEEDS(h5_header_load(scene.s.file, m->address, &h));
	ck_assert_msg(h.chunk_count <= before + 6, "%u blocks", h.chunk_count);
	h5_header_release(&h);
	header_scene_end(&scene);
}
END_TEST

/* NIL messages side by side never have more bytes than one may have. */
START_TEST(large_messages)
{
	struct header_scene scene;

	header_scene_begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	for (size_t i = 0; i < scene.count; i += 7) {
		struct header_model *m = &scene.models[i];

		for (unsigned k = 0; k < 5; k++) {
			struct header_attribute a = {.number = k, .size = 40000 + 5000 * k, .step = k};

			SUCCEEDS(header_apply(&scene.s, m, HEADER_INSERT, &a));
			header_update_model(m, HEADER_INSERT, m->count, &a);
		}
		for (unsigned k = 0; k < 8; k++) {
			struct header_attribute *a = &m->attributes[header_draw(&scene, m->count)];

			a->size = k % 2 ? 30000 + header_draw(&scene, 35000) : header_draw(&scene, 100);
			SUCCEEDS(header_apply(&scene.s, m, HEADER_SET, a));
			header_check_model(&scene.s, m);
			if (k % 4 == 3) {
				SUCCEEDS(header_apply(&scene.s, m, HEADER_REMOVE, a));
				header_update_model(m, HEADER_REMOVE, (unsigned)(a - m->attributes), NULL);
				header_check_model(&scene.s, m);
			}
		}
	}
	header_commit(&scene);
	header_judge(&scene);
	header_scene_end(&scene);
}
END_TEST

/* ---- what cannot be ---- */

START_TEST(refusals)
{
	static uint8_t body[HEADER_BODY_MAX];
	struct h5_new_message m = {.type = H5_MSG_ATTRIBUTE, .body = body, .size = HEADER_BODY_MAX};
	struct h5_message absent = {.type = H5_MSG_ATTRIBUTE, .address = 100};
	struct header_scene scene;
	uint64_t address;

	header_scene_begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	address = scene.models[0].address;
	ck_assert_int_eq(h5_header_insert(scene.s.file, address, &m), -E2BIG);
	ck_assert_int_eq(h5_header_remove(scene.s.file, address, &absent), -EINVAL);
	ck_assert_int_eq(h5_header_set(scene.s.file, address, &absent, &m), -EINVAL);
	ck_assert_int_eq(h5_header_set_references(scene.s.file, address, 0), -EINVAL);
	m = (struct h5_new_message){.type = H5_MSG_REFERENCE_COUNT, .body = body, .size = 5};
	if (!_i)
		ck_assert_int_eq(h5_header_insert(scene.s.file, address, &m), -ENOTSUP);
	/* no header is there */
	ck_assert_int_eq(h5_header_insert(scene.s.file, address + 1, &m), -EUCLEAN);
	ck_assert_int_eq(h5_header_set_references(scene.s.file, address + 1, 2), -EUCLEAN);
	ck_assert(!h5_tx_is_pending(scene.s.file));
	header_scene_end(&scene);
}
END_TEST

/* The count is what libhdf5 reads, and it is gone from where it was not needed. */
START_TEST(references)
{
	struct header_scene scene;

	header_scene_begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	for (size_t i = 0; i < scene.count; i++) {
		uint64_t address = scene.models[i].address;

		ck_assert_uint_eq(scratch_references(scene.s.file, address), 1);
		for (uint32_t k = 1; k < 5; k++) {
			SUCCEEDS(h5_header_set_references(scene.s.file, address, k % 4 + 2));
			ck_assert_uint_eq(scratch_references(scene.s.file, address), k % 4 + 2);
			header_check_model(&scene.s, &scene.models[i]);
		}
		if (i % 2)
			SUCCEEDS(h5_header_set_references(scene.s.file, address, 1));
	}
	header_commit(&scene);
	scratch_close(&scene.s);
	scratch_judge(
		"/usr/bin/python3 -c \"import h5py, sys; f = h5py.File(sys.argv[1], 'r')\n"
		"found = [h5py.h5o.get_info(f[n].id).rc for k in 'abcd' for n in sorted(f) if n[0] == k]\n"
		"assert found == [2, 1] * (len(found) // 2), found\" %s",
		scene.s.path);
	header_scene_end(&scene);
}
END_TEST

UNIT_MAIN_LOOPS_AROUND("header_insert", scratch_keep_accounts, NULL, {random_changes, 3}, {blocks_are_few, 2},
		       {large_messages, 2}, {refusals, 2}, {references, 2})
