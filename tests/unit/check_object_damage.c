/* Objects whose parts do not fit together: indexes of dense storage, records of shared messages, and managers
 * of free space. */
#include "base/error.h"
#include "base/lookup3.h"
#include "change/transaction.h"
#include "object/dense_write.h"
#include "object/file_space.h"
#include "object/path.h"
#include "object/shared_table.h"
#include "scratch.h"
#include "store/extension.h"

#include <stdio.h>
#include <string.h>

/* ---- indexes that do not fit ---- */

/* The dense links of a group. */
static struct h5_named_info links_of(struct h5_file *file, const char *name)
{
	struct h5_named_storage storage;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	struct h5_file *found;
	uint64_t address;

	SUCCEEDS(h5_path_find(file, h5_file_superblock(file)->root, name, strlen(name), &found, &address));
	SUCCEEDS(h5_object_get(file, address, &ref, &object));
	SUCCEEDS(h5_named_storage_find(file, object, H5_NAMED_LINK, &storage));
	h5_file_put(file, ref);
	ck_assert(storage.is_dense);
	return storage.info;
}

/* Changes a field of the header of a version 2 B-tree. */
static void patch_tree(struct h5_file *file, uint64_t address, unsigned at, unsigned width, int more)
{
	enum { SIZE = 38 };
	uint8_t bytes[SIZE];

	SUCCEEDS(h5_file_read(file, address, bytes, SIZE));
	ck_assert_mem_eq(bytes, "BTHD", 4);
	h5_uint_to(bytes + at, h5_uint_from(bytes + at, width) + (uint64_t)more, width);
	h5_uint_to(bytes + SIZE - 4, h5_lookup3(bytes, SIZE - 4, 0), 4);
	SUCCEEDS(h5_tx_patch(file, address, bytes, SIZE, H5_STAGE_HEAP));
	h5_tx_forget(file, address);
}

enum index_damage { NO_NAMES, FEWER_ORDERS, LARGER_RECORDS, LARGER_ORDERS, MORE_RECORDS, INDEX_DAMAGES };

static int remove_m50(struct h5_file *file, struct h5_named_info *info)
{
	return h5_dense_remove(file, info, H5_NAMED_LINK, "m50", 3);
}

/* One that has the number of creation of another one. */
static int insert_new(struct h5_file *file, struct h5_named_info *info)
{
	return h5_dense_insert(file, info, H5_NAMED_LINK, "new", 3, "message", 7, 5);
}

static int check_indexes(struct h5_file *file, struct h5_named_info *info)
{
	struct h5_named_storage storage;
	struct h5_damage damage = {0};
	int rc;

	h5_named_storage_dense(file, H5_NAMED_LINK, info, &storage);
	rc = h5_named_check(&storage, &damage);
	return rc ? rc : h5_damage_result(&damage);
}

static const struct {
	enum index_damage damage;
	int (*run)(struct h5_file *file, struct h5_named_info *info);
	int rc;
	const char *error;
} index_cases[] = {
	{INDEX_DAMAGES, check_indexes, 0, ""},
	{INDEX_DAMAGES, remove_m50, 0, ""},
	{NO_NAMES, remove_m50, -EUCLEAN, "dense storage: it has no index by name"},
	{NO_NAMES, insert_new, -EUCLEAN, "dense storage: it has no index by name"},
	{FEWER_ORDERS, remove_m50, -EUCLEAN, "dense storage: an index lacks a record"},
	{FEWER_ORDERS, insert_new, -EUCLEAN, "dense storage: the indexes disagree about creation order 5"},
	{FEWER_ORDERS, check_indexes, -EUCLEAN,
	 "version 2 B-tree: 10 records by creation order, but 60 by name"},
	{LARGER_RECORDS, remove_m50, -ENOTSUP, "dense storage: records of 12 bytes are not supported"},
	{LARGER_ORDERS, remove_m50, -ENOTSUP, "dense storage: records of 16 bytes are not supported"},
	{MORE_RECORDS, check_indexes, -EUCLEAN, "version 2 B-tree: 60 records, not 61"},
};
enum { INDEX_CASES = sizeof index_cases / sizeof *index_cases };

/* What fails leaves the storage as it is. */
START_TEST(indexes_do_not_fit)
{
	enum { RECORD_SIZE = 10, RECORDS = 26 };
	struct h5_named_info info, before;
	struct scratch scratch;

	scratch_init(&scratch, "dense_write.h5");
	scratch_open(&scratch);
	info = links_of(scratch.file, "links-tracked-60");
	switch (index_cases[_i].damage) {
	case NO_NAMES:
		info.name_index = H5_UNDEF;
		break;
	case FEWER_ORDERS:
		info.order_index = links_of(scratch.file, "links-tracked-10").order_index;
		break;
	case LARGER_RECORDS:
		patch_tree(scratch.file, info.name_index, RECORD_SIZE, 2, 1);
		break;
	case LARGER_ORDERS:
		patch_tree(scratch.file, info.order_index, RECORD_SIZE, 2, 1);
		break;
	case MORE_RECORDS:
		patch_tree(scratch.file, info.name_index, RECORDS, 8, 1);
		break;
	default:
		break;
	}
	before = info;
	h5_error_clear();
	ck_assert_int_eq(index_cases[_i].run(scratch.file, &info), index_cases[_i].rc);
	ck_assert_str_eq(h5_error_last()->text, index_cases[_i].error);
	if (index_cases[_i].rc)
		ck_assert(!h5_dense_has_moved(&before, &info));
	h5_tx_abandon(scratch.file);
	scratch_release(&scratch);
}
END_TEST

/* ---- records that say what is not so ---- */

/* Puts a block, whose last bytes are its checksum, into the file, which is closed. */
static void put_block(const struct scratch *s, uint64_t at, uint8_t *bytes, size_t n)
{
	FILE *f = fopen(s->path, "r+b");

	h5_uint_to(bytes + n - 4, h5_lookup3(bytes, n - 4, 0), 4);
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, (long)at, SEEK_SET), 0);
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

/* A record of a message whose hash is another one; a type of messages that no index has. */
START_TEST(a_wrong_hash)
{
	enum { INDEX = 4 + 14, HEAD = 4, RECORD = 17, MOST = 1 << 12 };
	static const uint8_t id[H5_SHARED_ID_SIZE];
	struct h5_shared_table_message where;
	struct h5_damage damage = {0};
	struct h5_heap_object message;
	uint8_t bytes[MOST], number[8];
	struct scratch scratch;
	uint64_t index;
	size_t n;

	scratch_init(&scratch, "rare_sohm_list.h5");
	scratch_open(&scratch);
	SUCCEEDS(h5_extension_shared_table(scratch.file, &where));
	SUCCEEDS(h5_file_read(scratch.file, where.address + INDEX, number, sizeof number));
	index = h5_uint_from(number, 8);
	SUCCEEDS(h5_file_read(scratch.file, where.address + INDEX - 2, number, 2));
	n = HEAD + RECORD * (size_t)h5_uint_from(number, 2) + 4;
	ck_assert_uint_le(n, MOST);
	SUCCEEDS(h5_file_read(scratch.file, index, bytes, n));
	SUCCEEDS(h5_shared_table_check(scratch.file, &damage));
	ck_assert_int_eq(damage.first.code, 0);
	ck_assert_int_eq(h5_shared_table_get(scratch.file, H5_MSG_LAYOUT, id, &message), -EUCLEAN);
	ck_assert(!!strstr(h5_error_last()->text, "no heap for messages of type 0x8"));
	ck_assert_ptr_null(message.data);
	scratch_close(&scratch);
	ck_assert_uint_eq(bytes[HEAD + RECORD], 0);
	bytes[HEAD + RECORD + 1] ^= 1;
	put_block(&scratch, index, bytes, n);
	scratch_open(&scratch);
	SUCCEEDS(h5_shared_table_check(scratch.file, &damage));
	ck_assert_int_eq(damage.first.code, -EUCLEAN);
	ck_assert_str_eq(damage.first.text, "shared message record: wrong hash of its message");
	scratch_release(&scratch);
}
END_TEST

static int stop_at_second(void *arg, uint64_t address, uint64_t n)
{
	unsigned *count = arg;

	(void)address;
	(void)n;
	return ++*count == 2 ? 77 : 0;
}

/* Two managers of free space that have more bytes than can be counted, or just as many; one without a list.
 */
START_TEST(free_space_of_managers)
{
	enum { SIZE = 82, TOTAL = 6, LIST = 54 };
	struct h5_file_space_info info;
	struct h5_damage damage = {0};
	unsigned count = 0, with_list = 0;
	struct scratch scratch;
	uint8_t bytes[SIZE];
	uint64_t total;

	scratch_init(&scratch, "crash_persist.h5");
	scratch_open(&scratch);
	SUCCEEDS(h5_extension_file_space(scratch.file, &info));
	scratch_close(&scratch);
	for (unsigned i = 0; i < info.count; i++) {
		if (info.managers[i] == H5_UNDEF)
			continue;
		scratch_open(&scratch);
		SUCCEEDS(h5_file_read(scratch.file, info.managers[i], bytes, SIZE));
		scratch_close(&scratch);
		h5_uint_to(bytes + TOTAL, count ? (UINT64_C(1) << 63) - !_i : UINT64_C(1) << 63, 8);
		if (count)
			h5_uint_to(bytes + LIST, H5_UNDEF, 8);
		with_list += !count;
		count++;
		put_block(&scratch, info.managers[i], bytes, SIZE);
	}
	ck_assert_uint_eq(count, 2);
	scratch_open(&scratch);
	ck_assert_int_eq(h5_file_space_free(scratch.file, &total), _i ? -EUCLEAN : 0);
	if (!_i)
		ck_assert_uint_eq(total, UINT64_MAX);
	count = 0;
	ck_assert_int_eq(h5_file_space_extents(scratch.file, stop_at_second, &count), 77);
	ck_assert_uint_eq(count, 2);
	count = 2;
	SUCCEEDS(h5_file_space_extents(scratch.file, stop_at_second, &count));
	ck_assert_uint_eq(count, 2 + 2 + with_list);
	SUCCEEDS(h5_file_space_check(scratch.file, &damage));
	ck_assert_int_eq(damage.first.code, 0);
	scratch_release(&scratch);
}
END_TEST

UNIT_MAIN_LOOPS("object_damage", {indexes_do_not_fit, INDEX_CASES}, {a_wrong_hash, 1},
		{free_space_of_managers, 2})
