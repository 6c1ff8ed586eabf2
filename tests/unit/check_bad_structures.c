/* Structures that no writer makes (tests/fixtures/bad_structures.py): each is refused, within a second, and
 * its neighbour is as before. */
#include "base/interrupt.h"
#include "scratch.h"
#include "vfs_scene.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { GOOD = 40, MILLISECONDS = 1000 };

static uint64_t work_limit(void *arg)
{
	(void)arg;
	return MILLISECONDS;
}

/* What comes of opening and reading the file, which is there in any case. */
static int read_file(struct vfs_scene *scene, const char *name, uint8_t bytes[GOOD], size_t *got)
{
	struct h5_handle *handle;
	struct h5_node *node;
	struct stat st;
	int rc;

	h5_interrupt_begin(NULL, scene->vfs);
	h5_interrupt_bound(work_limit);
	h5_error_clear();
	ck_assert_str_eq(h5_error_last()->text, "");
	SUCCEEDS(vfs_scene_find(scene, name, &node));
	SUCCEEDS(h5_vfs_getattr(scene->vfs, node, &st));
	rc = h5_vfs_open_file(scene->vfs, node, O_RDONLY, &handle);
	if (!rc) {
		rc = h5_vfs_read(handle, 0, bytes, GOOD, got);
		h5_vfs_close_file(handle);
	}
	h5_vfs_forget(scene->vfs, node, 1);
	return rc;
}

START_TEST(each_is_refused)
{
	struct vfs_scene scene;
	char path[512], name[64];
	unsigned count = 0;
	FILE *list;

	scratch_fixture("bad_structures.list", path);
	list = fopen(path, "r");
	ck_assert_ptr_nonnull(list);
	vfs_scene_open_in_place(&scene, "bad_structures.h5");
	while (fscanf(list, "%63s", name) == 1) {
		uint8_t bytes[GOOD];
		size_t got = 0;
		int rc = read_file(&scene, name, bytes, &got);

		ck_assert_msg(rc == -EUCLEAN, "%s: %d %s", name, rc, h5_error_last()->text);
		ck_assert_str_ne(h5_error_last()->text, "");
		SUCCEEDS(read_file(&scene, "good", bytes, &got));
		ck_assert_uint_eq(got, GOOD);
		for (size_t i = 0; i < GOOD; i++)
			ck_assert_uint_eq(bytes[i], i);
		count++;
	}
	ck_assert_uint_gt(count, 25);
	vfs_scene_close(&scene);
	fclose(list);
}
END_TEST

UNIT_MAIN("bad structures", each_is_refused)
