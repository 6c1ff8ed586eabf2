/* New files are there as a whole or not at all, whatever call fails; and nothing is left beside them. */
#include "base/error.h"
#include "base/reader.h"
#include "change/new_file.h"
#include "change/open.h"
#include "fault_alloc.h"
#include "fault_system.h"
#include "object/named_message.h"
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 512, TIME = 1234567890 };

static char folder[128], path[160];

static void setup(void)
{
	snprintf(folder, sizeof folder, "%s/new", scratch_folder());
	snprintf(path, sizeof path, "%s/a.h5", folder);
	ck_assert_int_eq(mkdir(folder, 0700), 0);
}

static void teardown(void)
{
	fault_system_disarm();
	scratch_run("rm -rf '%s'", folder);
}

/* How many names the folder has. */
static unsigned count_names(void)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	ck_assert_ptr_nonnull(dir);
	for (struct dirent *e; (e = readdir(dir));)
		count += *e->d_name != '.';
	closedir(dir);
	return count;
}

static void read_file(const char *name, uint8_t bytes[SIZE])
{
	uint8_t more[SIZE + 1];
	int fd = open(name, O_RDONLY);
	struct stat st;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(read(fd, more, sizeof more), SIZE);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq(st.st_nlink, 1);
	memcpy(bytes, more, SIZE);
	close(fd);
}

/* It is synced before it has its name, and the folder after that. */
START_TEST(all_is_synced_in_time)
{
	static const char begin[] = "open64 write fsync close renameat2 open64 fsync close ";

	fault_system_disarm();
	SUCCEEDS(h5_new_file_make(path, 2, TIME));
	ck_assert_str_eq(fault_system_calls(), begin);
	ck_assert_uint_eq(count_names(), 1);
	scratch_own_judge("h5dump -H '%s' > /dev/null", path);
	/* By a name in the current folder. */
	ck_assert_int_eq(chdir(folder), 0);
	fault_system_disarm();
	SUCCEEDS(h5_new_file_make("b.h5", 3, TIME));
	ck_assert_str_eq(fault_system_calls(), begin);
	ck_assert_uint_eq(count_names(), 2);
	/* In version 3 the superblock needs no extension. */
	for (uint8_t version = 2; version < 4; version++) {
		uint8_t bytes[SIZE];

		read_file(version == 2 ? path : "b.h5", bytes);
		ck_assert_uint_eq(bytes[8], version);
		ck_assert_int_eq(h5_uint_from(bytes + 20, 8) == UINT64_MAX, version == 3);
	}
	scratch_own_judge("h5dump -H '%s/b.h5' > /dev/null", folder);
}
END_TEST

/* The root group tells in which order its names were made. */
START_TEST(names_have_an_order)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20};
	struct h5_named_storage storage;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	struct h5_file_set *set;
	struct h5_file *file;

	for (uint8_t version = 2; version < 4; version++) {
		SUCCEEDS(h5_new_file_make(path, version, TIME));
		SUCCEEDS(h5_open_file(path, &options, &set, NULL));
		file = h5_file_set_root(set);
		SUCCEEDS(h5_object_get(file, h5_file_superblock(file)->root, &ref, &object));
		ck_assert_int_eq(object->kind, H5_OBJECT_GROUP);
		ck_assert(object->has_mtime && object->mtime == TIME);
		SUCCEEDS(h5_named_storage_find(file, object, H5_NAMED_LINK, &storage));
		ck_assert(!storage.is_dense && storage.info.tracks_order && !storage.info.indexes_order);
		ck_assert_uint_eq(storage.info.next_order, 0);
		h5_file_put(file, ref);
		h5_file_set_close(set);
		ck_assert_int_eq(unlink(path), 0);
	}
}
END_TEST

START_TEST(what_has_the_name_stays)
{
	char target[8] = "";

	SUCCEEDS(h5_new_file_make(path, 2, TIME));
	fault_system_disarm();
	ck_assert_int_eq(h5_new_file_make(path, 2, TIME), -EEXIST);
	ck_assert_str_eq(fault_system_calls(), "");
	ck_assert_int_eq(unlink(path), 0);
	/* A link that leads nowhere, too. */
	ck_assert_int_eq(symlink("none", path), 0);
	ck_assert_int_eq(h5_new_file_make(path, 2, TIME), -EEXIST);
	ck_assert_int_eq(readlink(path, target, sizeof target), 4);
	ck_assert_uint_eq(count_names(), 1);
}
END_TEST

struct fault {
	const char *call;
	unsigned n, count;
	int error;
};

START_TEST(calls_fail)
{
	enum { GONE, WHOLE };
	static const struct {
		struct fault faults[2];
		int rc, becomes;
	} cases[] = {
		{{{"open64", 1, 1, EACCES}}, -EACCES, GONE},
		{{{"open64", 1, 1, EEXIST}}, 0, WHOLE},
		{{{"open64", 1, 99, EEXIST}}, 0, WHOLE},
		{{{"open64", 1, 100, EEXIST}}, -EEXIST, GONE},
		{{{"open64", 1, 3, EEXIST}, {"write", 1, 1, ENOSPC}}, -ENOSPC, GONE},
		{{{"write", 1, 3, EINTR}}, 0, WHOLE},
		{{{"write", 1, 1, 0}}, 0, WHOLE},
		{{{"write", 1, SIZE, 0}}, 0, WHOLE},
		{{{"write", 1, 1, ENOSPC}}, -ENOSPC, GONE},
		{{{"fsync", 1, 1, EIO}}, -EIO, GONE},
		{{{"close", 1, 1, EDQUOT}}, -EDQUOT, GONE},
		/* The first error is the one that counts. */
		{{{"fsync", 1, 1, EIO}, {"close", 1, 1, EDQUOT}}, -EIO, GONE},
		{{{"renameat2", 1, 1, EEXIST}}, -EEXIST, GONE},
		{{{"renameat2", 1, 1, EACCES}}, -EACCES, GONE},
		{{{"renameat2", 1, 1, EINVAL}}, 0, WHOLE},
		{{{"renameat2", 1, 1, ENOSYS}}, 0, WHOLE},
		{{{"renameat2", 1, 1, EINVAL}, {"link", 1, 1, EEXIST}}, -EEXIST, GONE},
		{{{"renameat2", 1, 1, EINVAL}, {"link", 1, 1, EPERM}}, -EPERM, GONE},
		{{{"renameat2", 1, 1, EINVAL}, {"unlink", 1, 1, EIO}}, -EIO, WHOLE},
		/* The name is there, but perhaps not after a power cut. */
		{{{"open64", 2, 1, EIO}}, -EIO, WHOLE},
		{{{"fsync", 2, 1, EIO}}, -EIO, WHOLE},
		/* Such folders cannot be synced. */
		{{{"open64", 2, 1, EACCES}}, 0, WHOLE},
		{{{"fsync", 2, 1, EINVAL}}, 0, WHOLE},
	};
	uint8_t sound[SIZE], bytes[SIZE];

	SUCCEEDS(h5_new_file_make(path, 2, TIME));
	read_file(path, sound);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int rc;

		ck_assert_int_eq(unlink(path), 0);
		fault_system_disarm();
		for (unsigned k = 0; k < 2 && cases[i].faults[k].call; k++) {
			const struct fault *f = &cases[i].faults[k];

			fault_system_arm(f->call, f->n, f->count, f->error);
		}
		rc = h5_new_file_make(path, 2, TIME);
		fault_system_disarm();
		ck_assert_msg(rc == cases[i].rc, "%zu: %d %s", i, rc, h5_error_last()->text);
		ck_assert_uint_eq(count_names(), cases[i].becomes == WHOLE);
		if (cases[i].becomes == GONE)
			SUCCEEDS(h5_new_file_make(path, 2, TIME));
		read_file(path, bytes);
		ck_assert_mem_eq(bytes, sound, SIZE);
	}
}
END_TEST

START_TEST(memory_is_short)
{
	unsigned without = 0, with = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_new_file_make(path, 2, TIME);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_msg(!rc || (fired && rc == -ENOMEM), "%lu: %d %s", n, rc, h5_error_last()->text);
		ck_assert(rc || count_names() == 1);
		without += rc && !count_names();
		with += rc && count_names();
		unlink(path);
	}
	ck_assert_uint_ge(without, 1); /* no name for it */
	ck_assert_uint_eq(with, 1);    /* no name of the folder, which is not synced */
}
END_TEST

UNIT_MAIN_AROUND("new file", setup, teardown, all_is_synced_in_time, names_have_an_order,
		 what_has_the_name_stays, calls_fail, memory_is_short)
