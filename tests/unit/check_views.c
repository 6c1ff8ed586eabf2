/* Pictures, plots, text and other forms of datasets, while a call fails or a request is interrupted: that is
 * told, and nothing wrong is kept for the next reader. */
#include "base/buf.h"
#include "base/error.h"
#include "fault_kinds.h"
#include "scratch.h"
#include "vfs_scene.h"

#include <fcntl.h>
#include <string.h>

enum { PIECE = 7000, MOST = 1 << 20 };

static const char *const files[] = {
	".h5fs/png/picture.png",	".h5fs/png/numbers.png",   ".h5fs/png/movie/0001.png",
	".h5fs/svg/line.svg",		".h5fs/svg/rows.svg",	   ".h5fs/lines/unwritten",
	".h5fs/csv/rows.csv",		".h5fs/csv/texts.csv",	   "texts",
	".h5fs/json/line.json",		".h5fs/json/.json",	   ".h5fs/npy/line.npy",
	".h5fs/npy/rows.npy",		".h5fs/kerchunk.json",	   ".h5fs/zarr/.zmetadata",
	".h5fs/zarr/line/.zarray",	".h5fs/zarr/line/.zattrs", ".h5fs/zarr/line/3",
	".h5fs/zarr/texts/4",		".h5fs/zarr3/zarr.json",   ".h5fs/zarr3/line/zarr.json",
	".h5fs/zarr3/texts/zarr.json",	".h5fs/zarr3/texts/c/4",   ".h5fs/zarr/rows/0",
	".h5fs/zarr/nc/values/.zattrs", ".h5fs/zarr/nc/values/1",  ".h5fs/json/nc/values.json",
};
enum { FILES = sizeof files / sizeof *files };

static struct vfs_scene scene;
static struct h5_buf sound, found;

/* ---- what interrupts ---- */

static unsigned long checks_left; /* the last of so many fails, and that one alone; 0: none does */
static bool interrupted;

static void arm_check(unsigned long n)
{
	checks_left = n;
	interrupted = false;
}

static bool disarm_check(void)
{
	checks_left = 0;
	return interrupted;
}

int __wrap_h5_interrupt_check(void);
int __wrap_h5_interrupt_check(void)
{
	if (!checks_left || --checks_left)
		return 0;
	interrupted = true;
	return h5_fail(-EINTR, H5_UNDEF, "interrupted");
}

/* ---- reading ---- */

static int read_open(struct h5_handle *handle, struct h5_buf *out)
{
	static char piece[PIECE];
	uint64_t offset = 0;
	size_t got;
	int rc;

	do {
		rc = h5_vfs_read(handle, offset, piece, sizeof piece, &got);
		if (rc)
			break;
		h5_buf_add(out, piece, got);
		offset += got;
	} while (got);
	return rc;
}

static int read_file(struct h5_node *node, struct h5_buf *out)
{
	struct h5_handle *handle;
	int rc;

	out->size = 0;
	h5_error_clear();
	fault_alloc_count(true);
	rc = h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle);
	if (!rc) {
		rc = read_open(handle, out);
		h5_vfs_close_file(handle);
	}
	fault_alloc_count(false);
	return rc;
}

static bool is_sound(void)
{
	return found.size == sound.size && !memcmp(found.data, sound.data, sound.size);
}

static void setup(void)
{
	h5_buf_init(&sound, MOST);
	h5_buf_init(&found, MOST);
	vfs_scene_open_in_place(&scene, "check_views.h5");
}

static void teardown(void)
{
	vfs_scene_close(&scene);
	h5_buf_release(&sound);
	h5_buf_release(&found);
}

/* The n-th fault for each n that there is, but of those beyond 300 only some. `always`: it cannot go by
 * without an error. */
static void meet(const char *path, const struct fault *fault, bool always)
{
	struct h5_node *node;
	bool fired = true;
	int rc;

	SUCCEEDS(vfs_scene_find(&scene, path, &node));
	SUCCEEDS(read_file(node, &sound));
	ck_assert_uint_gt(sound.size, 0);
	/* The test's own buffer does not grow in a call that may fail. */
	SUCCEEDS(read_file(node, &found));
	for (unsigned long n = 1; fired; n += n < 300 ? 1 : 23) {
		vfs_scene_empty_caches(&scene);
		fault->arm(n);
		rc = read_file(node, &found);
		fired = fault->disarm();
		ck_assert_msg(rc ? fired && rc == fault->error : is_sound() && !(fired && always),
			      "%s, %lu: %d %s", path, n, rc, h5_error_last()->text);
		SUCCEEDS(read_file(node, &found));
		ck_assert_msg(is_sound(), "%s, after %lu", path, n);
	}
	h5_vfs_forget(scene.vfs, node, 1);
}

START_TEST(calls_that_fail)
{
	meet(files[_i % FILES], &faults[_i / FILES], false);
}
END_TEST

START_TEST(interruptions)
{
	static const struct fault fault = {arm_check, disarm_check, -EINTR};

	meet(files[_i], &fault, true);
}
END_TEST

int main(void)
{
	const struct unit_test tests[] = {{calls_that_fail, FILES * FAULTS}, {interruptions, FILES}};

	return unit_run("views", setup, teardown, tests, sizeof tests / sizeof *tests);
}
