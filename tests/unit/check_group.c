#include "base/error.h"
#include "object/path.h"
#include "object/symbol_table.h"
#include "objects.h"

struct listing {
	struct h5_buf links, orders;
	const struct opened *opened;
	const struct h5_object *group;
	uint64_t count;
};

static void add_link(struct h5_buf *out, const struct h5_link *link)
{
	h5_buf_text(out, "link ");
	add_hex(out, link->name, link->name_size);
	if (link->type == H5_LINK_HARD) {
		h5_buf_printf(out, " hard %" PRIu64, link->address);
	} else if (link->type == H5_LINK_SOFT) {
		h5_buf_text(out, " soft ");
		add_hex(out, link->target, link->target_size);
	} else if (link->type == H5_LINK_EXTERNAL) {
		h5_buf_text(out, " external ");
		add_hex(out, link->target, link->target_size);
		h5_buf_text(out, " ");
		add_hex(out, link->file, link->file_size);
	} else {
		h5_buf_printf(out, " %u", link->type);
	}
	h5_buf_text(out, "\n");
}

/* A link by name is the link of the listing. */
static int list_and_look_up(struct listing *l, const struct h5_link *link)
{
	struct h5_link found;

	ck_assert_int_eq(h5_group_lookup(l->opened->file, l->group, link->name, link->name_size, &found), 0);
	ck_assert_int_eq(found.has_order, link->has_order);
	ck_assert_int_eq(found.order, link->order);
	ck_assert_int_eq(found.cached_kind, link->cached_kind);
	add_link(&l->links, &found);
	h5_link_release(&found);
	h5_link_release(&found);
	l->count++;
	return 0;
}

static int list_order(struct listing *l, const struct h5_link *link)
{
	if (!link->has_order)
		return 1;
	h5_buf_text(&l->orders, "order ");
	add_hex(&l->orders, link->name, link->name_size);
	h5_buf_text(&l->orders, "\n");
	return 0;
}

static int list_links(struct listing *l, enum h5_name_order order,
		      int (*list)(struct listing *, const struct h5_link *))
{
	const struct h5_link *link;
	struct h5_link_walk walk;
	int rc = h5_link_begin(&walk, l->opened->file, l->group, order);

	while (!rc && (rc = h5_link_next(&walk, &link)) > 0)
		rc = list(l, link);
	h5_link_end(&walk);
	return rc;
}

START_TEST(links_are_as_h5py_says)
{
	for (unsigned i = 0; i < OBJECTS_FILES; i++) {
		struct opened o = objects_open(objects_files[i]);
		struct expected e = expected_open(objects_files[i]);
		uint64_t links = 0;

		while (expected_next(&e)) {
			struct h5_lru_entry *ref;
			const struct h5_object *group = object_at(&o, e.address, &ref);
			struct listing l = {.opened = &o, .group = group};
			uint64_t count;
			int rc;

			h5_buf_init(&l.links, SIZE_MAX);
			h5_buf_init(&l.orders, SIZE_MAX);
			rc = list_links(&l, H5_NAMES_SORTED, list_and_look_up);
			ck_assert_int_eq(rc, e.kind == H5_OBJECT_GROUP ? 0 : -ENOTDIR);
			assert_text(&l.links, &e.links);
			if (!rc) {
				ck_assert_int_eq(h5_group_count(o.file, group, &count), 0);
				ck_assert_uint_eq(count, l.count);
				links += count;
			}
			if (!rc && e.orders.size) {
				ck_assert_int_eq(list_links(&l, H5_NAMES_BY_CREATION, list_order), 0);
				assert_text(&l.orders, &e.orders);
			}
			h5_buf_release(&l.links);
			h5_buf_release(&l.orders);
			h5_file_put(o.file, ref);
		}
		ck_assert_uint_gt(links, 6);
		objects_close(&o);
	}
}
END_TEST

/* What an entry of a symbol table caches of its object; nothing where that has several links. */
START_TEST(cached_kinds)
{
	struct opened o = objects_open("old");
	struct h5_lru_entry *ref;
	const struct h5_object *group = object_named(&o, "plain400", &ref);
	struct h5_link link;

	ck_assert_int_eq(h5_group_lookup(o.file, group, "group77", 7, &link), 0);
	ck_assert_int_eq(link.cached_kind, H5_OBJECT_GROUP);
	h5_link_release(&link);
	ck_assert_int_eq(h5_group_lookup(o.file, group, "soft77", 6, &link), 0);
	ck_assert_int_eq(link.cached_kind, H5_OBJECT_UNKNOWN);
	h5_link_release(&link);
	h5_file_put(o.file, ref);
	objects_close(&o);
}
END_TEST

START_TEST(unknown_names_are_not_there)
{
	static const char *const groups[] = {"links0", "links2", "links3", "plain3", "plain400"};
	static const char *const names[] = {"", "a", "hard", "hard0\0", "hard00", "zzz", "\xff"};

	for (unsigned i = 0; i < 2; i++) {
		struct opened o = objects_open(objects_files[i]);

		for (unsigned k = 0; k < 5; k++) {
			struct h5_lru_entry *root_ref, *ref;
			const struct h5_object *root = object_named(&o, "", &root_ref), *group;
			struct h5_link link;

			if (!h5_group_lookup(o.file, root, groups[k], strlen(groups[k]), &link)) {
				group = object_at(&o, link.address, &ref);
				h5_link_release(&link);
				for (unsigned n = 0; n < 7; n++)
					ck_assert_int_eq(h5_group_lookup(o.file, group, names[n],
									 n == 3 ? 6 : strlen(names[n]),
									 &link),
							 -ENOENT);
				h5_file_put(o.file, ref);
			}
			h5_file_put(o.file, root_ref);
		}
		objects_close(&o);
	}
}
END_TEST

/* Names and targets of a group of 100,000 are those of its numbers, in order. */
static int check_numbers(struct h5_file *file, const struct h5_object *group, unsigned *number)
{
	const struct h5_link *link;
	struct h5_link_walk walk;
	int rc = h5_link_begin(&walk, file, group, H5_NAMES_SORTED);

	while (!rc && (rc = h5_link_next(&walk, &link)) > 0) {
		char name[16], target[16];

		snprintf(name, sizeof name, "link%06u", *number);
		snprintf(target, sizeof target, "/t%06u", (*number)++);
		rc = link->type != H5_LINK_SOFT || link->name_size != 10 || memcmp(link->name, name, 10) ||
		     link->target_size != 8 || memcmp(link->target, target, 8);
	}
	h5_link_end(&walk);
	return rc;
}

START_TEST(many_links)
{
	static const char *const names[] = {"old_many", "latest_many"};

	for (unsigned i = 0; i < 2; i++) {
		struct opened o = objects_open(names[i]);
		struct h5_lru_stats before, after;
		struct h5_lru_entry *ref;
		const struct h5_object *group = object_named(&o, "many", &ref);
		struct h5_link link;
		unsigned number = 0;
		uint64_t count;

		h5_lru_stats(h5_file_set_blocks(o.set), &before);
		ck_assert_int_eq(h5_group_lookup(o.file, group, "link054321", 10, &link), 0);
		h5_lru_stats(h5_file_set_blocks(o.set), &after);
		ck_assert_uint_eq(link.target_size, 8);
		ck_assert_mem_eq(link.target, "/t054321", 8);
		h5_link_release(&link);
		/* A few levels of the tree, and pieces of the heap that the keys on the way lie in. */
		ck_assert_uint_lt(after.misses - before.misses, 25);
		ck_assert_int_eq(check_numbers(o.file, group, &number), 0);
		ck_assert_uint_eq(number, 100000);
		ck_assert_int_eq(h5_group_count(o.file, group, &count), 0);
		ck_assert_uint_eq(count, 100000);
		h5_file_put(o.file, ref);
		objects_close(&o);
	}
}
END_TEST

/* A walk that ends early leaves nothing behind. */
START_TEST(a_walk_may_end_early)
{
	struct opened o = objects_open("old");
	const struct h5_link *link;
	struct h5_link_walk walk;
	struct h5_lru_entry *ref;
	const struct h5_object *group = object_named(&o, "links400", &ref);

	ck_assert_int_eq(h5_link_begin(&walk, o.file, group, H5_NAMES_SORTED), 0);
	for (unsigned n = 0; n < 3; n++)
		ck_assert_int_eq(h5_link_next(&walk, &link), 1);
	h5_link_end(&walk);
	h5_file_put(o.file, ref);
	objects_close(&o);
}
END_TEST

static int count_links(struct h5_file *file, const struct h5_object *group, unsigned *n)
{
	const struct h5_link *link;
	struct h5_link_walk walk;
	int rc = h5_link_begin(&walk, file, group, H5_NAMES_SORTED);

	for (; !rc && (rc = h5_link_next(&walk, &link)) > 0; rc = 0)
		++*n;
	h5_link_end(&walk);
	return rc;
}

/* Lists a group of a file in which the n-th `signature` is damaged: some links, and the error at the end. */
static void check_damage(const char *name, const char *group_name, const char *signature, unsigned n,
			 unsigned least, unsigned most)
{
	struct opened o = objects_load(name);
	uint8_t *at = objects_find(&o, signature, 4, n);
	const struct h5_object *group;
	struct h5_lru_entry *ref;
	unsigned links = 0;

	ck_assert_ptr_nonnull(at);
	at[1] ^= 0x20;
	objects_serve(&o);
	group = object_named(&o, group_name, &ref);
	ck_assert_int_eq(count_links(o.file, group, &links), -EUCLEAN);
	ck_assert_int_eq(h5_error_last()->code, -EUCLEAN);
	ck_assert_uint_ge(links, least);
	ck_assert_uint_le(links, most);
	h5_file_put(o.file, ref);
	objects_close(&o);
}

/* A node of at most 8 entries, of many. */
START_TEST(damaged_node_leaves_its_neighbours)
{
	struct opened o = objects_load("old");
	uint8_t *node = NULL;
	unsigned nodes = 0;

	while ((node = objects_next(&o, "SNOD", 4, node)))
		nodes++;
	free(o.bytes);
	ck_assert_uint_gt(nodes, 100);
	check_damage("old", "plain400", "SNOD", nodes / 2, 1200 - 8, 1199);
}
END_TEST

START_TEST(damaged_heap_or_tree)
{
	check_damage("old_many", "many", "HEAP", 1, 0, 0);
	check_damage("latest_many", "many", "BTHD", 0, 0, 0);
	check_damage("latest_many", "many", "FRHP", 0, 0, 0);
	check_damage("latest_many", "many", "FHIB", 0, 1, 99999);
	check_damage("latest_many", "many", "FHDB", 9, 90000, 99999);
	check_damage("latest_many", "many", "BTLF", 9, 1, 99999);
	check_damage("filtered", "group2000", "FHIB", 0, 1, 2000);
}
END_TEST

/* A tree whose node is its own sibling and child again. */
START_TEST(cycle_in_the_tree)
{
	struct opened o = objects_load("old_many");
	const struct h5_object *group;
	struct h5_lru_entry *ref;
	unsigned links = 0;
	uint8_t *node = NULL;

	/* a node of level 1 and more: all its children are the first one */
	while ((node = objects_next(&o, "TREE", 4, node)))
		if (node[4] == 0 && node[5] > 0)
			for (unsigned c = 1; c < (unsigned)node[6]; c++)
				memcpy(node + 24 + 8 + 16 * c, node + 24 + 8, 8);
	objects_serve(&o);
	group = object_named(&o, "many", &ref);
	ck_assert_int_eq(count_links(o.file, group, &links), -EUCLEAN);
	ck_assert_uint_gt(links, 0);
	ck_assert_uint_lt(links, 100000);
	h5_file_put(o.file, ref);
	objects_close(&o);
}
END_TEST

/* Names in the order of their creation; those of one number as they were added. Of equal names the first
 * stays.
 */
START_TEST(names_are_sorted)
{
	static const struct {
		const char *text;
		int64_t order;
	} names[] = {{"b", 5}, {"a", 5}, {"c", -4}, {"b", -9}, {"aa", 5}};
	static const char *const expected[2][4] = {{"a", "aa", "b", "c"}, {"c", "b", "a", "aa"}};
	struct opened o = objects_open("latest");

	for (enum h5_name_order order = H5_NAMES_SORTED; order <= H5_NAMES_BY_CREATION; order++) {
		for (unsigned unordered = 0; unordered < 2; unordered++) {
			struct h5_name_list list;
			void *data;

			h5_name_list_init(&list, o.file);
			for (unsigned i = 0; i < 5; i++) {
				const struct h5_name name = {names[i].text, strlen(names[i].text),
							     !unordered || i != 2, names[i].order};

				ck_assert_int_eq(h5_name_list_add(&list, &name, 1, &data), 0);
				*(uint8_t *)data = (uint8_t)i;
			}
			h5_name_list_sort(&list, order);
			ck_assert_uint_eq(list.count, 4);
			for (unsigned i = 0; i < 4; i++) {
				ck_assert_str_eq(list.items[i].name.text,
						 expected[order == H5_NAMES_BY_CREATION && !unordered][i]);
				ck_assert_uint_ne(*(uint8_t *)list.items[i].data, 3);
			}
			h5_name_list_release(&list);
		}
	}
	objects_close(&o);
}
END_TEST

/* Names and data of just as many bytes as the file can have; 64 bytes of the data of each do not count. */
START_TEST(too_many_names)
{
	struct opened o = objects_open("latest");
	const struct h5_name name = {.text = "name", .size = 4};
	struct h5_name_list list;
	void *data;

	h5_name_list_init(&list, o.file);
	list.limit = 100;
	ck_assert_int_eq(h5_name_list_add(&list, &name, 96, &data), 0);
	ck_assert_int_eq(h5_name_list_add(&list, &name, 60, &data), 0);
	ck_assert_int_eq(h5_name_list_add(&list, &name, 61, &data), -EUCLEAN);
	ck_assert_uint_eq(list.count, 2);
	h5_name_list_release(&list);
	objects_close(&o);
}
END_TEST

/* Nobody knows where a link of a user-defined type leads. */
START_TEST(user_defined_links)
{
	const struct h5_link user = {.type = 187, .name = "user", .name_size = 4};
	struct opened o = objects_open("latest");
	struct h5_lru_entry *ref;
	const struct h5_object *group = object_named(&o, "links2", &ref);
	struct h5_file *file;
	uint64_t address;

	ck_assert_int_eq(h5_path_find(o.file, group->address, "user", 4, &file, &address), -ENOENT);
	ck_assert_str_eq(h5_error_last()->text, "user-defined link");
	ck_assert_int_eq(h5_path_of_link(o.file, group->address, &user, &file, &address), -ENOENT);
	ck_assert(h5_path_is_dead(-ENOENT));
	h5_file_put(o.file, ref);
	objects_close(&o);
}
END_TEST

/* A link is dead if nothing is where it leads; but if that could not be found out, another try may find it.
 */
START_TEST(dead_links)
{
	static const int dead[] = {-ENOENT, -EACCES, -ELOOP,   -ENAMETOOLONG,
				   -EINVAL, -EISDIR, -EUCLEAN, -ENOTSUP},
			 others[] = {0, -EIO, -ENOMEM, -EINTR, -EMFILE, -ENFILE, -ESTALE};

	for (size_t i = 0; i < sizeof dead / sizeof *dead; i++)
		ck_assert(h5_path_is_dead(dead[i]));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		ck_assert(!h5_path_is_dead(others[i]));
}
END_TEST

START_TEST(a_node_of_no_names)
{
	const struct h5_symbol_node node = {.count = 0};
	struct h5_symbol_search search = {.name = "a", .size = 1};
	bool found = true;
	size_t i = 1;

	ck_assert_int_eq(h5_symbol_search_entry(&search, &node, &i, &found), 0);
	ck_assert(!i && !found);
}
END_TEST

UNIT_MAIN("group", links_are_as_h5py_says, cached_kinds, unknown_names_are_not_there, many_links,
	  a_walk_may_end_early, damaged_node_leaves_its_neighbours, damaged_heap_or_tree, cycle_in_the_tree,
	  names_are_sorted, a_node_of_no_names, too_many_names, user_defined_links, dead_links)
