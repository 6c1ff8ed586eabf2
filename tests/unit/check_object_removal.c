/* Objects are named and removed: all space that only they use is given up, and nothing else. */
#include "base/error.h"
#include "change/transaction.h"
#include "dataset/removal.h"
#include "object/path.h"
#include "scratch.h"
#include "store/object_header.h"

#include <stdio.h>
#include <string.h>

static const unsigned versions[] = {0, 2, 3};

static void begin(struct scratch *s, unsigned version)
{
	char fixture[64];

	snprintf(fixture, sizeof fixture, "object_removal-%u.h5", version);
	scratch_init(s, fixture);
	scratch_open(s);
}

static uint64_t find(const struct scratch *s, const char *path)
{
	struct h5_file *file;
	uint64_t address;

	SUCCEEDS(h5_path_find(s->file, h5_file_superblock(s->file)->root, path, strlen(path), &file,
			      &address));
	return address;
}

START_TEST(names_are_counted)
{
	struct scratch s;
	uint64_t address;
	bool last;

	begin(&s, versions[_i]);
	address = find(&s, "contiguous");
	SUCCEEDS(h5_object_add_name(s.file, address));
	SUCCEEDS(h5_object_add_name(s.file, address));
	ck_assert_int_eq(h5_object_remove(s.file, address), -EBUSY);
	SUCCEEDS(h5_object_drop_name(s.file, address, &last));
	ck_assert(!last);
	SUCCEEDS(h5_object_drop_name(s.file, address, &last));
	ck_assert(!last);
	SUCCEEDS(h5_object_drop_name(s.file, address, &last));
	ck_assert(last);
	SUCCEEDS(h5_object_remove(s.file, address));
	ck_assert_int_eq(h5_object_remove(s.file, h5_file_superblock(s.file)->root), -EBUSY);
	scratch_release(&s);
}
END_TEST

START_TEST(objects_go)
{
	static const char *const names[] = {"compact", "contiguous", "nothing", "group"};
	struct scratch s;

	begin(&s, versions[_i]);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		SUCCEEDS(h5_object_remove(s.file, find(&s, names[i])));
	scratch_release(&s);
}
END_TEST

UNIT_MAIN_LOOPS("object_removal", {names_are_counted, 3}, {objects_go, 3})
