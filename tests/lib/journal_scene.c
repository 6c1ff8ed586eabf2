#include "journal_scene.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scene scene;

void scene_put(const char *name, const void *data, size_t n)
{
	int fd = openat(scene.dirfd, name, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, data, n), (ssize_t)n);
	close(fd);
}

size_t scene_get(const char *name, uint8_t *data, size_t n)
{
	int fd = openat(scene.dirfd, name, O_RDONLY);
	ssize_t got;

	ck_assert_int_ge(fd, 0);
	got = read(fd, data, n);
	ck_assert_int_ge(got, 0);
	close(fd);
	return (size_t)got;
}

bool scene_exists(const char *name)
{
	return !faccessat(scene.dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

struct h5_io *scene_open(bool writable)
{
	struct h5_io *io;
	int fd = openat(scene.dirfd, "a.h5", writable ? O_RDWR : O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(h5_io_open_fd(fd, H5_LOCK_ALWAYS, writable, &io), 0);
	return io;
}

void scene_add_patch(uint64_t offset, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		scene.after[offset + i] = (uint8_t)~scene.before[offset + i];
	scene.patches[scene.record.patch_count++] = (struct h5_journal_patch){.offset = offset,
									      .size = size,
									      .before = scene.before + offset,
									      .after = scene.after + offset};
}

void scene_add_guard(uint64_t offset, uint32_t size)
{
	scene.patches[scene.record.patch_count++] = (struct h5_journal_patch){
		.offset = offset, .size = size, .guard = true, .before = scene.before + offset};
}

void scene_add_extent(uint64_t offset, uint64_t size)
{
	scene.extents[scene.record.extent_count++] =
		(struct h5_journal_extent){offset, size, h5_journal_hash(scene.before + offset, size)};
}

void scene_setup(void)
{
	memset(&scene, 0, sizeof scene);
	scene.dirfd = open(scratch_folder(), O_PATH | O_DIRECTORY);
	scene.place = (struct h5_journal_place){
		.dirfd = scene.dirfd, .name = SCENE_JOURNAL, .owner = geteuid(), .mode = S_IFREG | 0644};
	for (size_t i = 0; i < SCENE_SIZE; i++)
		scene.before[i] = scene.after[i] = (uint8_t)(i * 2654435761u >> 13);
	scene.record = (struct h5_journal_record){.size = SCENE_SIZE - 1000,
						  .patches = scene.patches,
						  .extents = scene.extents,
						  .objects = scene.objects};
	scene_put("a.h5", scene.before, SCENE_SIZE);
}

void scene_teardown(void)
{
	int fd = openat(scene.dirfd, ".", O_RDONLY | O_DIRECTORY);
	DIR *dir = fdopendir(fd);

	h5_journal_close(scene.journal, false);
	for (struct dirent *e; (e = readdir(dir));)
		unlinkat(scene.dirfd, e->d_name, 0);
	closedir(dir);
	close(scene.dirfd);
}

/* Patches that lie in one sector, cross one edge, cross several, and share a sector; a guard around two. */
void scene_usual_record(void)
{
	scene_add_patch(8000, 1500);
	scene_add_patch(40, 8);
	scene_add_patch(1500, 100);
	scene_add_patch(4200, 8);
	scene_add_patch(4220, 20);
	scene_add_guard(4100, 700);
	scene_add_extent(12288, 1);
	scene_add_extent(20000, 200000);
	scene.objects[0] = 800;
	scene.objects[1] = 123456;
	scene.record.object_count = 2;
}

void scene_write_journal(bool swmr)
{
	ck_assert_int_eq(h5_journal_create(&scene.place, swmr, &scene.journal), 0);
	ck_assert_int_eq(h5_journal_write(scene.journal, &scene.record), 0);
}

/* The writer is no more. */
void scene_crash(void)
{
	h5_journal_close(scene.journal, false);
	scene.journal = NULL;
}

void scene_check_file(const uint8_t *expected)
{
	static uint8_t data[SCENE_SIZE + 1];

	ck_assert_uint_eq(scene_get("a.h5", data, sizeof data), SCENE_SIZE);
	ck_assert(!memcmp(data, expected, SCENE_SIZE));
}

int scene_recover(bool write, struct h5_recovered *recovered)
{
	struct h5_io *io = scene_open(write), *overlay;
	int rc = h5_journal_recover(&scene.place, io, write, &overlay, recovered);

	h5_io_close(overlay ? overlay : io);
	return rc;
}

/* Recovers, with writing and before without; both must come to this. */
void scene_expect(enum h5_recovery what)
{
	static uint8_t old[SCENE_SIZE];
	struct h5_recovered recovered;

	scene_get("a.h5", old, sizeof old);
	ck_assert_int_eq(scene_recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, what);
	h5_recovered_release(&recovered);
	scene_check_file(old);
	ck_assert(scene_exists(SCENE_JOURNAL));
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, what);
	if (what != H5_RECOVERY_REPLAYED)
		scene_check_file(old);
	ck_assert_int_eq(scene_exists(SCENE_JOURNAL), what == H5_RECOVERY_STALE || what == H5_RECOVERY_BUSY);
	h5_recovered_release(&recovered);
}
