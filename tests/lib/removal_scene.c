#include "removal_scene.h"

#include "change/object_header_edit.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "dataset/removal.h"
#include "object/group_write.h"
#include "object/path.h"
#include "store/extension.h"

#include <stdio.h>
#include <string.h>

void removal_open(struct removal_scene *s, const char *prefix, unsigned version)
{
	char name[64];

	memset(s, 0, sizeof *s);
	snprintf(name, sizeof name, "object_removal-%s%u.h5", prefix, version);
	scratch_init(&s->scratch, name);
	scratch_wrap(&s->scratch, &s->fault);
	scratch_open(&s->scratch);
}

void removal_begin(struct removal_scene *s, unsigned version)
{
	char name[64], path[512], stays[8];
	struct removable object;
	FILE *f;

	removal_open(s, "", version);
	snprintf(name, sizeof name, "object_removal-%u.txt", version);
	scratch_fixture(name, path);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	while (fscanf(f, "%63s %ju %7s", object.path, &object.bytes, stays) == 3) {
		ck_assert_uint_lt(s->count + s->staying, REMOVAL_OBJECTS_MAX);
		if (strcmp(stays, "stays"))
			s->objects[s->count++] = object;
		else
			s->objects[REMOVAL_OBJECTS_MAX - ++s->staying] = object;
	}
	fclose(f);
	ck_assert_uint_gt(s->count, 20);
}

void removal_end(struct removal_scene *s)
{
	scratch_release(&s->scratch);
	fault_io_release(&s->fault);
}

static int look_up(const struct removal_scene *s, const char *path, size_t n, uint64_t *address)
{
	struct h5_file *file;

	return h5_path_find(s->scratch.file, h5_file_superblock(s->scratch.file)->root, path, n, &file,
			    address);
}

uint64_t removal_find(const struct removal_scene *s, const char *path)
{
	uint64_t address;

	SUCCEEDS(look_up(s, path, strlen(path), &address));
	return address;
}

static int set_table(const void *arg, uint8_t *body, size_t n)
{
	struct h5_writer w = h5_writer_init(body, n, 8, 8);

	return h5_shared_table_message_encode(&w, arg);
}

uint64_t removal_put_table_across_pages(struct removal_scene *s)
{
	enum { PAGE = 4096 };
	struct h5_file *file = s->scratch.file;
	struct h5_shared_table_message where;
	uint8_t bytes[256];
	uint64_t at;
	size_t n;

	SUCCEEDS(h5_extension_shared_table(file, &where));
	n = h5_shared_table_size(where.indexes, 8);
	SUCCEEDS(h5_file_read(file, where.address, bytes, n));
	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_RAW, 3 * PAGE, &at));
	where.address = at / PAGE * PAGE + 2 * PAGE - n / 2;
	SUCCEEDS(h5_tx_write(file, where.address, bytes, n));
	SUCCEEDS(h5_header_update(file, h5_file_superblock(file)->extension, H5_MSG_SHARED_TABLE, set_table,
				  &where));
	SUCCEEDS(h5_tx_commit(file));
	return where.address;
}

/* Removes the link of that path. */
int removal_unlink(struct removal_scene *s, const char *path)
{
	const char *slash = strrchr(path, '/');
	uint64_t group;
	int rc = look_up(s, path, (size_t)(slash - path), &group);

	return rc ? rc : h5_group_remove(s->scratch.file, group, slash + 1, strlen(slash + 1));
}

/* Removes an object with its only name. */
int removal_remove(struct removal_scene *s, const char *path)
{
	struct h5_file *file = s->scratch.file;
	uint64_t address;
	bool last;
	int rc = look_up(s, path, strlen(path), &address);

	if (rc)
		return rc;
	h5_unit_begin(file);
	rc = removal_unlink(s, path);
	if (!rc)
		rc = h5_object_drop_name(file, address, &last);
	if (!rc)
		rc = last ? h5_object_remove(file, address) : -EINVAL;
	return h5_unit_end(file, rc);
}

uint32_t removal_references(const struct removal_scene *s, const char *path)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	uint32_t count;

	SUCCEEDS(h5_object_get(s->scratch.file, removal_find(s, path), &ref, &object));
	SUCCEEDS(h5_header_references(s->scratch.file, &object->header, &count));
	h5_file_put(s->scratch.file, ref);
	return count;
}

int removal_add_extent(void *arg, uint64_t address, uint64_t n)
{
	struct removal_sum *sum = arg;

	sum->bytes += n;
	ck_assert_msg(!h5_extents_touches(sum->met, address, n), "%ju bytes at %ju are visited twice",
		      (uintmax_t)n, (uintmax_t)address);
	ck_assert_int_eq(h5_extents_add(sum->met, address, n), 0);
	return 0;
}

int removal_stop(void *arg, uint64_t address, uint64_t n)
{
	(void)arg;
	(void)address;
	(void)n;
	return 77;
}

/* The space becomes free with the next commits: it can be allocated as a whole. */
void removal_assert_is_free(struct removal_scene *s, const struct h5_extents *space)
{
	struct h5_extents left = {0};
	uint64_t end = h5_file_end(s->scratch.file), address;

	h5_extents_each(e, space) SUCCEEDS(h5_extents_add(&left, e->address, e->size));
	for (int i = 0; i < 2; i++) {
		SUCCEEDS(h5_tx_allocate(s->scratch.file, H5_ALLOCATE_RAW, 1, &address));
		SUCCEEDS(h5_tx_write(s->scratch.file, address, "", 1));
		SUCCEEDS(h5_extents_remove(&left, address, 1));
		SUCCEEDS(h5_tx_commit(s->scratch.file));
	}
	for (address = 0; address < end && left.count;) {
		SUCCEEDS(h5_tx_allocate(s->scratch.file, H5_ALLOCATE_RAW, 1, &address));
		SUCCEEDS(h5_extents_remove(&left, address, 1));
	}
	ck_assert_uint_eq(left.count, 0);
	h5_extents_release(&left);
}
