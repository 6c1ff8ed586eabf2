/* How the commands without a mount end, and what they say of what they could not do. */
#include "base/interrupt.h"
#include "offline/offline.h"
#include "offline/walk.h"
#include "said.h"
#include "scratch.h"
#include "store/file.h"
#include "vfs_scene.h"

#include <string.h>

/* ---- what fails ---- */

static unsigned long checks_left; /* the last of so many fails; 0: none does */
static int interrupts;		  /* how it fails */

int __wrap_h5_interrupt_check(void);
int __wrap_h5_interrupt_check(void)
{
	return checks_left && !--checks_left ? h5_fail(interrupts, 77, "it takes\ttoo long") : 0;
}

/* How the next values of attributes fail; 0: not at all. */
static struct refusal {
	int code;
	uint64_t address;
	bool is_told; /* in words */
} refusals[2];

int __real_h5_vfs_getxattr(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out);
int __wrap_h5_vfs_getxattr(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out);
int __wrap_h5_vfs_getxattr(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out)
{
	const struct refusal now = refusals[0];

	if (!now.code)
		return __real_h5_vfs_getxattr(vfs, node, name, out);
	refusals[0] = refusals[1];
	refusals[1].code = 0;
	if (now.is_told)
		h5_fail(now.code, now.address, "no \t value");
	return now.code;
}

/* ---- checks ---- */

typedef int command(struct h5_file_set *set, const char *name, struct h5_progress *progress,
		    enum h5_offline_result *result);

/* Runs it on a copy of the file, of which the n-th question whether the work is wanted has this answer. */
static char *run(command *what, const char *fixture, unsigned long n, int answer, int *rc,
		 enum h5_offline_result *result)
{
	struct scratch scratch;
	struct said said;

	scratch_init(&scratch, fixture);
	scratch_open(&scratch);
	interrupts = answer;
	checks_left = n;
	begin_catch(&said, STDOUT_FILENO);
	*rc = what(scratch.set, "x.h5", NULL, result);
	end_catch(&said);
	if (n)
		ck_assert_uint_eq(checks_left, 0);
	checks_left = 0;
	scratch_close(&scratch);
	if (n)
		scratch_run("cmp '%s' '%s'", scratch.path, scratch.original);
	scratch_release(&scratch);
	return said.text;
}

/* Nobody takes what was verified until then for all. */
START_TEST(interrupted)
{
	static command *const commands[] = {h5_offline_check, h5_offline_reclaim};
	enum h5_offline_result result;
	char *text;
	int rc;

	for (int i = 0; i < 2; i++) {
		for (unsigned long n = 1; n < 10; n++) {
			text = run(commands[i], "check_values.h5", n, -EINTR, &rc, &result);
			ck_assert_int_eq(rc, -EINTR);
			ck_assert_str_eq(text, "");
			free(text);
		}
		text = run(commands[i], "check_values.h5", 1, -EFBIG, &rc, &result);
		ck_assert_int_eq(rc, 0);
		ck_assert_int_eq(result, H5_OFFLINE_UNKNOWN);
		ck_assert_str_eq(text,
				 "/: it takes\\011too long at address 77\n"
				 "x.h5: 0 objects, 0 chunks decoded: no damage found, 1 that this "
				 "version cannot verify; how many bytes nothing refers to is not certain\n");
		free(text);
	}
}
END_TEST

START_TEST(sound)
{
	enum h5_offline_result result;
	char *text;
	int rc;

	text = run(h5_offline_check, "check_values.h5", 0, 0, &rc, &result);
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(result, H5_OFFLINE_SOUND);
	ck_assert_msg(strstr(text, " chunks decoded: no damage found; nothing refers to ") &&
			      strstr(text, " bytes, nor to 1 values in the global heap, of 3 bytes\n"),
		      "%s", text);
	free(text);
	text = run(h5_offline_reclaim, "check_values.h5", 0, 0, &rc, &result);
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(result, H5_OFFLINE_SOUND);
	ck_assert_msg(!strncmp(text, "x.h5: nothing refers to ", 24) && strstr(text, " are left\n"), "%s",
		      text);
	free(text);
}
END_TEST

/* Nothing is given back of a file whose space is not known, though it is sound. */
START_TEST(not_known)
{
	static const char sum[] = ": no damage found; how many bytes nothing refers to is not certain\n";
	enum h5_offline_result result;
	char *text;
	int rc;

	text = run(h5_offline_check, "rare_sohm_88_plain.h5", 0, 0, &rc, &result);
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(result, H5_OFFLINE_SOUND);
	ck_assert_msg(strstr(text, sum), "%s", text);
	free(text);
	text = run(h5_offline_reclaim, "rare_sohm_88_plain.h5", 0, 0, &rc, &result);
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(result, H5_OFFLINE_UNKNOWN);
	ck_assert_msg(strstr(text, sum), "%s", text);
	free(text);
}
END_TEST

/* ---- lists ---- */

static struct vfs_scene scene;

static void setup(void)
{
	vfs_scene_open_in_place(&scene, "check_tree.h5");
}

static void teardown(void)
{
	vfs_scene_close(&scene);
}

/* The text is on standard error. */
static char *list(enum h5_offline_result *result)
{
	struct said said, told;

	begin_catch(&told, STDERR_FILENO);
	begin_catch(&said, STDOUT_FILENO);
	ck_assert_int_eq(h5_offline_list(scene.vfs, "/", false, result), 0);
	end_catch(&said);
	end_catch(&told);
	ck_assert(strstr(said.text, "/group/data"));
	free(said.text);
	return told.text;
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* Damage is worse than what is not known, whichever comes first. */
START_TEST(the_worst_of_a_list)
{
	static const struct {
		int codes[2];
		unsigned told;
		enum h5_offline_result result;
	} all[] = {{{0, 0}, 0, H5_OFFLINE_SOUND},
		   {{-ENODATA, 0}, 0, H5_OFFLINE_SOUND},
		   {{-ENOTSUP, 0}, 1, H5_OFFLINE_UNKNOWN},
		   {{-EFBIG, -ENOTSUP}, 2, H5_OFFLINE_UNKNOWN},
		   {{-EUCLEAN, 0}, 1, H5_OFFLINE_DAMAGED},
		   {{-EIO, 0}, 1, H5_OFFLINE_DAMAGED},
		   {{-EFBIG, -EUCLEAN}, 2, H5_OFFLINE_DAMAGED},
		   {{-EUCLEAN, -EFBIG}, 2, H5_OFFLINE_DAMAGED},
		   {{-EUCLEAN, -ENOTSUP}, 2, H5_OFFLINE_DAMAGED}};
	enum h5_offline_result result;
	char *told;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		for (unsigned j = 0; j < 2; j++)
			refusals[j].code = all[i].codes[j];
		told = list(&result);
		ck_assert_msg(result == all[i].result, "%zu: %d", i, (int)result);
		ck_assert_uint_eq(count_lines(told), all[i].told);
		free(told);
	}
}
END_TEST

/* In its own words if there are any, with the address that it knows. */
START_TEST(what_a_list_complains_of)
{
	static const struct {
		struct refusal refusal;
		const char *text;
	} all[] = {{{-EUCLEAN, 77, true}, ": no \\011 value at address 77\n"},
		   {{-EUCLEAN, H5_UNDEF, true}, ": no \\011 value\n"},
		   {{-EUCLEAN, 77, false}, ": Structure needs cleaning\n"}};
	enum h5_offline_result result;
	char *told;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		refusals[0] = all[i].refusal;
		told = list(&result);
		ck_assert_msg(*told == '/' && !strcmp(strchr(told, ':'), all[i].text), "%s", told);
		free(told);
	}
}
END_TEST

/* ---- paths ---- */

START_TEST(slashes_at_the_end)
{
	static const struct {
		const char *path;
		int rc;
	} all[] = {{"group/data", 0},
		   {"group/data/", -ENOTDIR},
		   {"group/data//", -ENOTDIR},
		   {"group/", 0},
		   {"group//", 0},
		   {"/", 0},
		   {"", 0},
		   {"group/data/x", -ENOTDIR},
		   {"folder/", 0},
		   {"soft/", -ENOTDIR},
		   {"soft", 0},
		   {"group/none/", -ENOENT}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct h5_vfs_entry entry;
		struct h5_buf way;
		int rc;

		h5_buf_init(&way, 1000);
		rc = h5_walk_find(scene.vfs, all[i].path, &entry, &way);
		ck_assert_msg(rc == all[i].rc, "%s: %d", all[i].path, rc);
		if (!rc)
			h5_walk_forget(scene.vfs, entry.node);
		h5_buf_release(&way);
	}
}
END_TEST

UNIT_MAIN_AROUND("offline results", setup, teardown, interrupted, sound, not_known, the_worst_of_a_list,
		 what_a_list_complains_of, slashes_at_the_end)
