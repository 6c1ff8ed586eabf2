/* Where the journal lies: links to it, other names, owners; and what remains of it if a call fails. */
#include "base/error.h"
#include "change/journal_private.h"
#include "fault_alloc.h"
#include "fault_system.h"
#include "journal_scene.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHER "b.h5.h5fs-journal"
#define LINK  "a.h5.link"

static char elsewhere[256]; /* what the link says */

/* The file can be recognised, and a link leads to its journal. */
static void begin(void)
{
	scene.place.file = (struct h5_journal_file){.inode = 5, .born = 6, .nanoseconds = 7};
	scene.place.beside = scene.dirfd;
	scene.place.pointer = LINK;
	snprintf(elsewhere, sizeof elsewhere, "/folder/%s", SCENE_JOURNAL);
	scene.place.path = elsewhere;
}

static unsigned count_entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned count = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static unsigned count_descriptors(void)
{
	return count_entries("/proc/self/fd");
}

static void move(const char *from, const char *to)
{
	ck_assert_int_eq(renameat(scene.dirfd, from, scene.dirfd, to), 0);
}

/* A journal is left under that name. */
static void leave_journal(const char *name)
{
	scene_write_journal(false);
	scene_crash();
	move(SCENE_JOURNAL, name);
	if (scene_exists(LINK))
		ck_assert_int_eq(unlinkat(scene.dirfd, LINK, 0), 0);
}

struct fault {
	const char *call;
	unsigned n;
	int error;
};

static void arm(const struct fault *fault)
{
	fault_system_disarm();
	if (fault->call)
		fault_system_arm(fault->call, fault->n, 1, fault->error);
}

/* ---- making one, and removing it ---- */

START_TEST(making_one_fails)
{
	static const struct {
		struct fault fault;
		int rc;
	} cases[] = {{{"fcntl64", 1, EMFILE}, -EMFILE}, /* its folder */
		     {{"fcntl64", 2, EMFILE}, -EMFILE}, /* the folder of the link */
		     {{"getrandom", 1, ENOSYS}, -ENOSYS},
		     {{"openat64", 1, ENOSPC}, -ENOSPC},
		     {{"fchmod", 1, EPERM}, -EPERM},
		     {{"openat64", 2, EIO}, -EIO}, /* to sync its folder */
		     {{"fsync", 1, EIO}, -EIO},
		     {{"fsync", 1, EINVAL}, 0},
		     /* The link is not needed. */
		     {{"symlinkat", 1, EACCES}, 0},
		     {{"fsync", 2, EIO}, 0}};
	unsigned descriptors = count_descriptors();

	begin();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int rc;

		arm(&cases[i].fault);
		rc = h5_journal_create(&scene.place, false, &scene.journal);
		fault_system_disarm();
		ck_assert_msg(rc == cases[i].rc, "%zu: %d %s", i, rc, h5_error_last()->text);
		ck_assert(!rc || h5_error_last()->code == rc);
		ck_assert_int_eq(scene_exists(SCENE_JOURNAL), !rc);
		ck_assert_int_eq(scene_exists(LINK), !rc && strcmp(cases[i].fault.call, "symlinkat") != 0);
		if (!rc)
			h5_journal_close(scene.journal, true);
		scene.journal = NULL;
		ck_assert(!scene_exists(SCENE_JOURNAL) && !scene_exists(LINK));
		ck_assert_uint_eq(count_descriptors(), descriptors);
	}
}
END_TEST

START_TEST(memory_is_short)
{
	unsigned descriptors = count_descriptors(), failures = 0;
	bool fired = true;

	begin();
	for (unsigned long n = 1; fired; n++) {
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_journal_create(&scene.place, false, &scene.journal);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_msg(rc == (fired ? -ENOMEM : 0), "%lu: %d", n, rc);
		ck_assert_int_eq(scene_exists(SCENE_JOURNAL), !rc);
		failures += fired;
		if (!rc)
			h5_journal_close(scene.journal, true);
		scene.journal = NULL;
		ck_assert_uint_eq(count_descriptors(), descriptors);
	}
	ck_assert_uint_ge(failures, 6); /* itself, three names, its file, its header */
}
END_TEST

/* The journal is durable before it is used, and the link goes with it, but not a link of others. */
START_TEST(calls_have_their_order)
{
	begin();
	fault_system_disarm();
	ck_assert_int_eq(h5_journal_create(&scene.place, false, &scene.journal), 0);
	ck_assert_ptr_nonnull(
		strstr(fault_system_calls(), "openat64 fsync close symlinkat openat64 fsync close "));
	fault_system_disarm();
	h5_journal_close(scene.journal, true);
	scene.journal = NULL;
	ck_assert_ptr_nonnull(
		strstr(fault_system_calls(),
		       "readlinkat unlinkat openat64 fsync close unlinkat openat64 fsync close "));
	for (int other = 0; other < 3; other++) {
		static const char *const targets[] = {("/folder/" SCENE_JOURNAL "x"), "/folder/",
						      ("/Folder/" SCENE_JOURNAL)};

		ck_assert_int_eq(symlinkat(targets[other], scene.dirfd, LINK), 0);
		ck_assert_int_eq(h5_journal_check_beside(&scene.place), -EPERM);
		ck_assert_int_eq(h5_journal_create(&scene.place, false, &scene.journal), 0);
		h5_journal_close(scene.journal, true);
		scene.journal = NULL;
		ck_assert(scene_exists(LINK));
		ck_assert_int_eq(unlinkat(scene.dirfd, LINK, 0), 0);
		ck_assert_int_eq(h5_journal_check_beside(&scene.place), 0);
	}
	/* A file is no link of ours either. */
	scene_put(LINK, "", 0);
	ck_assert_int_eq(h5_journal_check_beside(&scene.place), -EPERM);
	h5_journal_unpoint(&scene.place);
	ck_assert(scene_exists(LINK));
}
END_TEST

START_TEST(removing_one_fails)
{
	struct h5_recovered recovered = {.id = {0xab, 1}};
	static char name[NAME_MAX + 1];

	scene_put(SCENE_JOURNAL, "", 0);
	arm(&(struct fault){"unlinkat", 1, EBUSY});
	ck_assert_int_eq(h5_journal_remove(&scene.place), -EBUSY);
	ck_assert(scene_exists(SCENE_JOURNAL));
	arm(&(struct fault){"fsync", 1, EIO});
	ck_assert_int_eq(h5_journal_remove(&scene.place), -EIO);
	ck_assert(!scene_exists(SCENE_JOURNAL));
	/* Setting it aside. */
	scene_put(SCENE_JOURNAL, "", 0);
	arm(&(struct fault){"renameat", 1, EROFS});
	ck_assert_int_eq(h5_journal_set_aside(&scene.place, &recovered), -EROFS);
	ck_assert(scene_exists(SCENE_JOURNAL));
	arm(&(struct fault){"fsync", 1, EIO});
	ck_assert_int_eq(h5_journal_set_aside(&scene.place, &recovered), -EIO);
	ck_assert(scene_exists(SCENE_JOURNAL ".stale-ab010000000000000000000000000000"));
	/* The longest name that can be. */
	memset(name, 'n', NAME_MAX - strlen(".stale-") - 32);
	fault_system_disarm();
	for (int longer = 0; longer < 2; longer++) {
		scene_put(name, "", 0);
		scene.place.name = name;
		ck_assert_int_eq(h5_journal_set_aside(&scene.place, &recovered), longer ? -ENAMETOOLONG : 0);
		ck_assert_int_eq(scene_exists(name), longer);
		strcat(name, "n");
	}
}
END_TEST

/* ---- opening one ---- */

START_TEST(opening_one_fails)
{
	static const struct {
		struct fault fault;
		int rc;
	} cases[] = {{{"openat64", 1, EACCES}, -EACCES},
		     {{"openat64", 1, EMFILE}, -EMFILE},
		     {{"fstat64", 1, EIO}, -EIO},
		     {{"openat64", 1, ELOOP}, -ELOOP},
		     {{"openat64", 1, EWOULDBLOCK}, 0}};
	unsigned descriptors = count_descriptors();
	struct h5_recovered recovered;

	scene_usual_record();
	leave_journal(SCENE_JOURNAL);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_io *io = scene_open(true), *overlay;
		int rc;

		arm(&cases[i].fault);
		rc = h5_journal_recover(&scene.place, io, true, &overlay, &recovered);
		fault_system_disarm();
		h5_io_close(overlay ? overlay : io);
		ck_assert_msg(rc == cases[i].rc, "%zu: %d", i, rc);
		ck_assert_int_eq(recovered.what, rc ? H5_RECOVERY_NONE : H5_RECOVERY_BUSY);
		ck_assert_uint_eq(count_descriptors(), descriptors);
	}
	scene_expect(H5_RECOVERY_REPLAYED);
}
END_TEST

/* The user is told where the journal is. */
START_TEST(links_tell_where)
{
	static const char *const cases[][2] = {
		{"there", "journal=."}, {"/there", "journal=/"}, {"/far/away/there", "journal=/far/away"}};
	struct h5_recovered recovered;

	for (size_t i = 0; i < 3; i++) {
		size_t n = strlen(cases[i][1]);
		const char *text = h5_error_last()->text;

		ck_assert_int_eq(symlinkat(cases[i][0], scene.dirfd, SCENE_JOURNAL), 0);
		ck_assert_int_eq(scene_recover(true, &recovered), -ELOOP);
		ck_assert_uint_gt(strlen(text), n);
		ck_assert_str_eq(text + strlen(text) - n, cases[i][1]);
		ck_assert_int_eq(unlinkat(scene.dirfd, SCENE_JOURNAL, 0), 0);
	}
}
END_TEST

START_TEST(rights_of_a_new_one)
{
	static const struct {
		unsigned mode, rights;
	} cases[] = {{0, 0600}, {0444, 0644}, {0777, 0666}, {06755, 0644}, {0622, 0622}, {0060, 0660}};
	struct stat st;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		scene.place.mode = S_IFREG | cases[i].mode;
		ck_assert_int_eq(h5_journal_create(&scene.place, false, &scene.journal), 0);
		ck_assert_int_eq(fstatat(scene.dirfd, SCENE_JOURNAL, &st, 0), 0);
		ck_assert_uint_eq(st.st_mode & 07777, cases[i].rights);
		h5_journal_close(scene.journal, true);
		scene.journal = NULL;
	}
	if (geteuid() != 0) {
		puts("only root can give files away: not tried");
		return;
	}
	scene.place.owner = 12345;
	arm(&(struct fault){"fchown", 1, EPERM});
	ck_assert_int_eq(h5_journal_create(&scene.place, false, &scene.journal), -EPERM);
	ck_assert(!scene_exists(SCENE_JOURNAL));
}
END_TEST

/* Without memory there is no name for a journal in a folder of its own, and nothing stays open. */
START_TEST(a_home_without_memory)
{
	unsigned descriptors = count_descriptors(), failed = 0;
	const char *folder = scratch_folder();
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct h5_io *io = scene_open(false);
		struct h5_journal_home home;
		int rc;

		h5_journal_home_init(&home);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_journal_home_open(&home, io, "/somewhere/a.h5", scene.dirfd, folder);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!rc || (fired && rc == -ENOMEM));
		failed += rc != 0;
		if (!rc) {
			ck_assert_str_eq(home.place.pointer, SCENE_JOURNAL);
			ck_assert_int_eq(strncmp(home.place.path, folder, strlen(folder)), 0);
		}
		h5_journal_home_release(&home);
		h5_io_close(io);
		ck_assert_uint_eq(count_descriptors(), descriptors);
	}
	/* The name of the link, where that leads, and perhaps the folder's path. */
	ck_assert_uint_ge(failed, 2);
}
END_TEST

/* ---- under another name ---- */

static int find(char name[NAME_MAX + 1])
{
	unsigned descriptors = count_descriptors();
	int rc;

	*name = 0;
	rc = h5_journal_find(&scene.place, name, NAME_MAX + 1);
	ck_assert_uint_eq(count_descriptors(), descriptors);
	return rc;
}

START_TEST(found_by_what_it_says)
{
	static const struct h5_journal_file others[] = {
		{0, 6, 7}, {4, 6, 7}, {5, 5, 7}, {5, 6, 8}, {5, 0, 0}};
	char name[NAME_MAX + 1];

	begin();
	ck_assert_int_eq(find(name), -ENOENT);
	leave_journal(OTHER);
	ck_assert_int_eq(find(name), 0);
	ck_assert_str_eq(name, OTHER);
	ck_assert_int_eq(h5_journal_find(&scene.place, name, strlen(OTHER) + 1), 0);
	ck_assert_int_eq(h5_journal_find(&scene.place, name, strlen(OTHER)), -ENOENT);
	/* Not that of another file, */
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		scene.place.file = others[i];
		ck_assert_int_eq(find(name), -ENOENT);
	}
	begin();
	/* nor one whose name says nothing, or ends in another way, */
	move(OTHER, ".h5fs-journal");
	ck_assert_int_eq(find(name), -ENOENT);
	move(".h5fs-journal", "b.h5.h5fs-journal~");
	ck_assert_int_eq(find(name), -ENOENT);
	move("b.h5.h5fs-journal~", "x.h5fs-journal");
	ck_assert_int_eq(find(name), 0);
	/* nor one that others may write, */
	ck_assert_int_eq(linkat(scene.dirfd, "x.h5fs-journal", scene.dirfd, "y", 0), 0);
	ck_assert_int_eq(find(name), -ENOENT);
	ck_assert_int_eq(unlinkat(scene.dirfd, "y", 0), 0);
	ck_assert_int_eq(find(name), 0);
	/* nor any, if something has the right name. */
	ck_assert_int_eq(symlinkat("none", scene.dirfd, SCENE_JOURNAL), 0);
	ck_assert_int_eq(find(name), -ENOENT);
}
END_TEST

START_TEST(looking_fails)
{
	static const struct {
		struct fault fault;
		int rc;
	} cases[] = {{{"fstatat64", 1, EACCES}, -ENOENT}, /* of the right name */
		     {{"openat64", 1, EACCES}, -ENOENT},  /* of the folder */
		     {{"openat64", 2, EACCES}, -ENOENT},  /* of the journal */
		     {{"fstat64", 1, EIO}, -ENOENT},
		     /* It may be there. */
		     {{"openat64", 1, EMFILE}, -EMFILE},
		     {{"openat64", 1, ENFILE}, -ENFILE},
		     {{"openat64", 2, EMFILE}, -EMFILE},
		     {{"openat64", 2, ENFILE}, -ENFILE},
		     {{"fstatat64", 1, ENOMEM}, -ENOMEM},
		     {{"readdir64", 1, ENOMEM}, -ENOMEM},
		     {{"readdir64", 1, EIO}, -ENOENT}};
	unsigned descriptors = count_descriptors();
	char name[NAME_MAX + 1];
	unsigned long n = 1;

	begin();
	leave_journal(OTHER);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		arm(&cases[i].fault);
		ck_assert_msg(h5_journal_find(&scene.place, name, sizeof name) == cases[i].rc, "%zu", i);
		fault_system_disarm();
	}
	ck_assert_int_eq(find(name), 0);
	for (bool fired = true; fired; n++) {
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_journal_find(&scene.place, name, sizeof name);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
		ck_assert_uint_eq(count_descriptors(), descriptors);
	}
	ck_assert_uint_gt(n, 2);
}
END_TEST

START_TEST(adopting_one)
{
	static const struct {
		struct fault faults[2];
		int rc;
	} cases[] = {{{{0}}, 0},
		     {{{"renameat2", 1, EINVAL}}, 0},
		     {{{"renameat2", 1, EINVAL}, {"renameat", 1, EXDEV}}, -EXDEV},
		     {{{"renameat2", 1, EEXIST}}, -EEXIST},
		     {{{"openat64", 1, EACCES}}, -EACCES},
		     {{{"fstat64", 1, EIO}}, -EIO},
		     {{{"fsync", 1, EIO}}, -EIO}};
	unsigned descriptors = count_descriptors();
	struct h5_io *io;

	begin();
	scene_usual_record();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const bool renamed = !cases[i].rc || !strcmp(cases[i].faults[0].call, "fsync");
		int rc;

		leave_journal(OTHER);
		fault_system_disarm();
		for (unsigned k = 0; k < 2 && cases[i].faults[k].call; k++)
			fault_system_arm(cases[i].faults[k].call, cases[i].faults[k].n, 1,
					 cases[i].faults[k].error);
		rc = h5_journal_adopt(&scene.place, OTHER);
		fault_system_disarm();
		ck_assert_msg(rc == cases[i].rc, "%zu: %d %s", i, rc, h5_error_last()->text);
		ck_assert_uint_eq(count_descriptors(), descriptors);
		ck_assert_int_eq(scene_exists(SCENE_JOURNAL), renamed);
		ck_assert_int_eq(scene_exists(OTHER), !renamed);
		unlinkat(scene.dirfd, renamed ? SCENE_JOURNAL : OTHER, 0);
	}
	/* A reader has it open. */
	leave_journal(OTHER);
	scene.place.name = OTHER;
	SUCCEEDS(h5_journal_open(&scene.place, false, false, &io));
	scene.place.name = SCENE_JOURNAL;
	ck_assert_int_eq(h5_journal_adopt(&scene.place, OTHER), -EWOULDBLOCK);
	ck_assert(scene_exists(OTHER) && !scene_exists(SCENE_JOURNAL));
	h5_io_close(io);
	unlinkat(scene.dirfd, OTHER, 0);
	/* In use. */
	scene_write_journal(false);
	move(SCENE_JOURNAL, OTHER);
	ck_assert_int_eq(h5_journal_adopt(&scene.place, OTHER), -EWOULDBLOCK);
	ck_assert(scene_exists(OTHER));
}
END_TEST

/* Of a file that was renamed the link beside it goes, if it led to this journal. */
START_TEST(links_of_old_names)
{
	static const struct {
		const char *link, *target;
		bool goes;
	} cases[] = {{"old.h5.h5fs-journal", "/folder/old.h5" H5_JOURNAL_WHOSE ".h5fs-journal", true},
		     {"old.h5.h5fs-journal", "/folder/new.h5" H5_JOURNAL_WHOSE ".h5fs-journal", false},
		     {"old.h5.h5fs-journal", "/other/old.h5" H5_JOURNAL_WHOSE ".h5fs-journal", false},
		     {"old.h.h5fs-journal", "/folder/old.h5" H5_JOURNAL_WHOSE ".h5fs-journal", false}};
	const char *old = "old.h5" H5_JOURNAL_WHOSE ".h5fs-journal";

	begin();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		leave_journal(old);
		ck_assert_int_eq(symlinkat(cases[i].target, scene.dirfd, cases[i].link), 0);
		ck_assert_int_eq(h5_journal_adopt(&scene.place, old), 0);
		ck_assert_msg(scene_exists(cases[i].link) == !cases[i].goes, "%zu", i);
		unlinkat(scene.dirfd, cases[i].link, 0);
		unlinkat(scene.dirfd, SCENE_JOURNAL, 0);
	}
	/* A name too short to say whose it is. */
	leave_journal("x.h5fs-journal");
	ck_assert_int_eq(symlinkat("/folder/x.h5fs-journal", scene.dirfd, "x.h5fs-journal.h5fs-journal"), 0);
	ck_assert_int_eq(h5_journal_adopt(&scene.place, "x.h5fs-journal"), 0);
	ck_assert(scene_exists("x.h5fs-journal.h5fs-journal"));
}
END_TEST

/* ---- which file it is ---- */

static struct h5_journal_file identify(const char *name)
{
	struct h5_journal_home home;
	struct h5_journal_file file;
	struct h5_io *io = scene_open(false);
	char path[64];

	snprintf(path, sizeof path, "/%s", name);
	h5_journal_home_init(&home);
	SUCCEEDS(h5_journal_home_open(&home, io, path, scene.dirfd, NULL));
	file = home.place.file;
	h5_journal_home_release(&home);
	h5_io_close(io);
	return file;
}

/* False: this file system does not know when files were born. */
static bool ask(struct statx *st)
{
	ck_assert_int_eq(statx(scene.dirfd, "a.h5", 0, STATX_INO | STATX_BTIME, st), 0);
	if (st->stx_mask & STATX_BTIME)
		return true;
	puts("no file is recognised without its time of birth: not tried");
	return false;
}

static bool is_unknown(struct h5_journal_file file)
{
	return !file.inode && !file.born && !file.nanoseconds;
}

START_TEST(files_are_recognised)
{
	const struct h5_journal_file file = identify("a.h5");
	struct statx st;

	if (!ask(&st))
		return;
	ck_assert_uint_eq(file.inode, st.stx_ino);
	ck_assert_int_eq((long)file.born, st.stx_btime.tv_sec);
	ck_assert_uint_eq(file.nanoseconds, st.stx_btime.tv_nsec);
	/* Another file has taken the name. */
	scene_put("c.h5", "", 0);
	ck_assert(is_unknown(identify("c.h5")));
	arm(&(struct fault){"statx", 1, EACCES});
	ck_assert(is_unknown(identify("a.h5")));
	arm(&(struct fault){"statx", 1, 0});
	ck_assert(is_unknown(identify("a.h5")));
}
END_TEST

/* All names of the file must lead to the journal. */
START_TEST(names_of_the_file)
{
	char longest[NAME_MAX + 1] = {0};
	struct statx st;

	if (!ask(&st))
		return;
	scene.place.file = identify("a.h5");
	ck_assert(h5_journal_is_found_by_all(&scene.place, 1));
	ck_assert(!h5_journal_is_found_by_all(&scene.place, 2));
	ck_assert_int_eq(linkat(scene.dirfd, "a.h5", scene.dirfd, "b.h5", 0), 0);
	ck_assert(h5_journal_is_found_by_all(&scene.place, 2));
	/* Each name in the folder is asked about; of one of the file's names it is not known when that was
	 * born. */
	for (int error = 0; error <= EIO; error += EIO) {
		unsigned missed = 0;

		for (unsigned n = 1; n <= 8; n++) {
			arm(&(struct fault){"statx", n, error});
			missed += !h5_journal_is_found_by_all(&scene.place, 2);
		}
		ck_assert_uint_eq(missed, 2);
	}
	arm(&(struct fault){"openat64", 1, EACCES});
	ck_assert(!h5_journal_is_found_by_all(&scene.place, 2));
	fault_system_disarm();
	/* Our own journal is no other one; another name has one. */
	scene_put(SCENE_JOURNAL, "", 0);
	ck_assert(h5_journal_is_found_by_all(&scene.place, 2));
	scene_put(OTHER, "", 0);
	ck_assert(!h5_journal_is_found_by_all(&scene.place, 2));
	ck_assert_int_eq(unlinkat(scene.dirfd, OTHER, 0), 0);
	arm(&(struct fault){"fstatat64", 1, EACCES});
	ck_assert(!h5_journal_is_found_by_all(&scene.place, 2));
	fault_system_disarm();
	/* In a folder of its own it is not found. */
	scene.place.pointer = LINK;
	ck_assert(!h5_journal_is_found_by_all(&scene.place, 2));
	scene.place.pointer = NULL;
	/* The longest name whose journal has one, and a longer one. */
	for (size_t more = 0; more < 2; more++) {
		memset(longest, 'n', NAME_MAX - strlen(".h5fs-journal") + more);
		move("b.h5", longest);
		ck_assert(h5_journal_is_found_by_all(&scene.place, 2) == !more);
		move(longest, "b.h5");
	}
}
END_TEST

/* Journals of other files that readdir() has before the name. Of these, only `most` stay in the folder. */
static unsigned journals_before(const char *name, unsigned most)
{
	DIR *dir = fdopendir(openat(scene.dirfd, ".", O_RDONLY | O_CLOEXEC));
	const struct dirent *entry;
	unsigned before = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) && strcmp(entry->d_name, name) != 0) {
		if (strncmp(entry->d_name, "other", 5) != 0)
			continue;
		if (before < most)
			before++;
		else
			ck_assert_int_eq(unlinkat(scene.dirfd, entry->d_name, 0), 0);
	}
	closedir(dir);
	return before;
}

/* When h5fs opens a file, it reads at most 1000 journals. It finds the file's own one if readdir() lists at
 * most 998 others before it. */
START_TEST(more_journals_than_are_opened)
{
	char name[64] = "a.h5", other[64];
	struct statx st;

	if (!ask(&st))
		return;
	scene.place.file = identify(name);
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(other, sizeof other, "other%u.h5fs-journal", i);
		scene_put(other, "", 0);
	}
	/* Some file systems list names by their hashes. */
	for (unsigned i = 0; journals_before(name, UINT_MAX) < 999; i++) {
		ck_assert_uint_lt(i, 100);
		snprintf(other, sizeof other, "%u.h5", i);
		move(name, other);
		strcpy(name, other);
	}
	ck_assert_uint_eq(journals_before(name, 999), 999);
	ck_assert(!h5_journal_is_found_by_all(&scene.place, 1));
	ck_assert_uint_eq(journals_before(name, 998), 998);
	ck_assert(h5_journal_is_found_by_all(&scene.place, 1));
}
END_TEST

/* Names that readdir() has before this one. */
static unsigned names_before(const char *name)
{
	DIR *dir = fdopendir(openat(scene.dirfd, ".", O_RDONLY | O_CLOEXEC));
	const struct dirent *entry;
	unsigned before = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) && strcmp(entry->d_name, name) != 0)
		before++;
	closedir(dir);
	return before;
}

/* In a large folder, it looks at 100,000 names. */
START_TEST(more_names_than_are_looked_at)
{
	enum { MOST = 100000 };
	char name[NAME_MAX + 1];
	struct statx st;
	unsigned before;

	begin();
	leave_journal(OTHER);
	before = names_before(OTHER);
	fault_system_add_names(MOST - before);
	ck_assert_int_eq(h5_journal_find(&scene.place, name, sizeof name), -ENOENT);
	fault_system_add_names(MOST - before - 1);
	ck_assert_int_eq(h5_journal_find(&scene.place, name, sizeof name), 0);
	if (!ask(&st))
		return;
	scene.place.pointer = NULL;
	scene.place.file = identify("a.h5");
	before = names_before("a.h5");
	fault_system_add_names(MOST - before);
	ck_assert(!h5_journal_is_found_by_all(&scene.place, 1));
	fault_system_add_names(MOST - before - 1);
	ck_assert(h5_journal_is_found_by_all(&scene.place, 1));
}
END_TEST

SCENE_MAIN("journal names", a_home_without_memory, making_one_fails, memory_is_short, calls_have_their_order,
	   removing_one_fails, opening_one_fails, links_tell_where, rights_of_a_new_one,
	   found_by_what_it_says, looking_fails, adopting_one, links_of_old_names, files_are_recognised,
	   names_of_the_file, more_journals_than_are_opened, more_names_than_are_looked_at)
