/* Files of kinds that libraries don't write, against what tests/fixtures/expected.py says of them. */
#include "base/error.h"
#include "change/open.h"
#include "dataset/dataset.h"
#include "object/attribute.h"
#include "object/group.h"
#include "object/path.h"
#include "object/value.h"
#include "store/file_set.h"
#include "unit.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

static const struct h5_file_set_options options = {.block_cache = 1 << 20,
						   .chunk_cache = 1 << 20,
						   .external = H5_EXTERNAL_BENEATH,
						   .lock = H5_LOCK_NONE};

enum { FIELDS = 4, NAME_SIZE = 256 };

/* A line, its hex fields decoded. */
struct line {
	char where[NAME_SIZE + 80]; /* for messages */
	char *kind;
	struct h5_buf fields[FIELDS];
	char *last; /* field as it is written, a number perhaps */
};

static void unhex(const char *text, struct h5_buf *out)
{
	out->size = 0;
	for (; text[0] && text[1]; text += 2) {
		unsigned byte;

		if (sscanf(text, "%2x", &byte) != 1)
			return; /* a number */
		h5_buf_byte(out, (char)byte);
	}
}

static void split(const char *name, char *text, struct line *line)
{
	unsigned n = 0;
	char *save, *word;

	snprintf(line->where, sizeof line->where, "%s: %.70s", name, text);
	line->kind = strtok_r(text, " \n", &save);
	for (word = strtok_r(NULL, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		ck_assert_uint_lt(n, FIELDS);
		line->last = word;
		unhex(word, &line->fields[n++]);
	}
}

static void assert_same(const struct line *line, const void *got, size_t size, const struct h5_buf *expected)
{
	ck_assert_msg(size == expected->size && (!size || !memcmp(got, expected->data, size)),
		      "%s is %zu bytes: %.*s", line->where, size, (int)(size < 200 ? size : 200),
		      (const char *)got);
}

#define OK(line, call) ck_assert_msg(!(call), "%s: %s", (line)->where, h5_error_last()->text)

static uint64_t find(struct h5_file *file, const struct line *line)
{
	const struct h5_buf *path = &line->fields[0];
	struct h5_file *found_in;
	uint64_t address;

	OK(line,
	   h5_path_find(file, h5_file_superblock(file)->root, path->data, path->size, &found_in, &address));
	ck_assert_ptr_eq(found_in, file);
	return address;
}

static const struct h5_object *open_object(struct h5_file *file, const struct line *line,
					   struct h5_lru_entry **ref)
{
	const struct h5_object *object;

	OK(line, h5_object_get(file, find(file, line), ref, &object));
	return object;
}

/* Opens and reads. */
static int read_dataset(struct h5_file *file, const struct line *line, struct h5_lru_entry **ref,
			const struct h5_dataset **dataset, uint8_t **data)
{
	int rc = h5_dataset_get(file, find(file, line), ref, dataset);

	*data = NULL;
	if (rc)
		return rc;
	*data = malloc((*dataset)->size + 1);
	rc = h5_dataset_read(*dataset, 0, *data, (*dataset)->size);
	if (rc) {
		h5_file_put(file, *ref);
		*ref = NULL;
	}
	return rc;
}

static void check_dataset(struct h5_file *file, const struct line *line)
{
	const struct h5_buf *expected = &line->fields[1];
	bool fails = !strcmp(line->kind, "fails");
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	uint8_t *data;
	int rc = read_dataset(file, line, &ref, &dataset, &data);
	struct h5_buf lines;

	if (fails) {
		ck_assert_msg(rc == -atoi(line->last), "%s: %d, %s", line->where, rc,
			      rc ? h5_error_last()->text : "");
	} else if (strcmp(line->kind, "lines") != 0) {
		OK(line, rc);
		assert_same(line, data, dataset->size, expected);
		/* from the middle as well */
		OK(line,
		   h5_dataset_read(dataset, dataset->size / 2, data, dataset->size - dataset->size / 2));
		ck_assert_msg(
			!memcmp(data, expected->data + dataset->size / 2, dataset->size - dataset->size / 2),
			"%s, its second half", line->where);
	} else {
		OK(line, rc);
		h5_buf_init(&lines, 1 << 20);
		for (uint64_t i = 0; i < dataset->space.elements; i++) {
			OK(line,
			   h5_value_vlen_string(file, dataset->type, data + i * dataset->type->size, &lines));
			h5_buf_byte(&lines, '\n');
		}
		assert_same(line, lines.data, lines.size, expected);
		h5_buf_release(&lines);
	}
	free(data);
	h5_file_put(file, ref);
}

static int list_names(struct h5_file *file, const struct h5_object *group, struct h5_buf *names)
{
	const struct h5_link *link;
	struct h5_link_walk walk;
	int rc = h5_link_begin(&walk, file, group, H5_NAMES_SORTED);

	while (!rc && (rc = h5_link_next(&walk, &link)) > 0) {
		h5_buf_add(names, link->name, link->name_size);
		h5_buf_byte(names, '\n');
		rc = 0;
	}
	h5_link_end(&walk);
	return rc;
}

static void check_names(struct h5_file *file, const struct line *line)
{
	const struct h5_object *group;
	struct h5_lru_entry *ref;
	struct h5_buf names;
	uint64_t count, expected = 0;

	h5_buf_init(&names, 1 << 20);
	group = open_object(file, line, &ref);
	OK(line, list_names(file, group, &names));
	assert_same(line, names.data, names.size, &line->fields[1]);
	OK(line, h5_group_count(file, group, &count));
	for (size_t i = 0; i < names.size; i++)
		expected += names.data[i] == '\n';
	ck_assert_uint_eq(count, expected);
	h5_buf_release(&names);
	h5_file_put(file, ref);
}

static void check_soft(struct h5_file *file, const struct line *line)
{
	struct h5_buf path = line->fields[0];
	const char *name = memrchr(path.data, '/', path.size);
	struct line parent = *line;
	const struct h5_object *group;
	struct h5_lru_entry *ref;
	struct h5_link link;

	name = name ? name + 1 : path.data;
	parent.fields[0].size = (size_t)(name - path.data);
	group = open_object(file, &parent, &ref);
	OK(line, h5_group_lookup(file, group, name, path.size - (size_t)(name - path.data), &link));
	ck_assert_int_eq(link.type, H5_LINK_SOFT);
	assert_same(line, link.target, link.target_size, &line->fields[1]);
	h5_link_release(&link);
	h5_file_put(file, ref);
}

/* References in attributes lead to one dataset of the root group. */
static int path_of(void *arg, uint64_t address, struct h5_buf *path)
{
	uint64_t expected;
	struct h5_file *file = arg, *found_in;
	int rc = h5_path_find(file, h5_file_superblock(file)->root, "contiguous", 10, &found_in, &expected);

	if (rc || address != expected)
		return -ENOENT;
	h5_buf_text(path, "/contiguous");
	return 0;
}

static void check_attribute(struct h5_file *file, struct line *line)
{
	struct h5_value_context context = {.file = file, .object_path = path_of, .arg = file};
	const struct h5_object *object;
	struct h5_attribute attribute;
	struct h5_lru_entry *ref;
	struct h5_buf text;

	object = open_object(file, line, &ref);
	h5_buf_byte(&line->fields[1], 0);
	OK(line, h5_attribute_lookup(file, object, line->fields[1].data, &attribute));
	h5_buf_init(&text, 1 << 20);
	OK(line, h5_value_text(&context, attribute.type, &attribute.space, attribute.data, &text));
	assert_same(line, text.data, text.size, &line->fields[2]);
	h5_buf_release(&text);
	h5_attribute_release(&attribute);
	h5_file_put(file, ref);
}

static void check_line(struct h5_file *file, struct line *line)
{
	if (!strcmp(line->kind, "names"))
		check_names(file, line);
	else if (!strcmp(line->kind, "soft"))
		check_soft(file, line);
	else if (!strcmp(line->kind, "text"))
		check_attribute(file, line);
	else if (strcmp(line->kind, "property") != 0)
		check_dataset(file, line);
}

/* The number of lines checked. */
static unsigned check_file(const char *list)
{
	char path[NAME_SIZE], *text = NULL;
	struct h5_file_set *set = NULL;
	FILE *f = fopen(list, "r");
	struct line line;
	size_t capacity = 0;
	unsigned n = 0;

	ck_assert_ptr_nonnull(f);
	snprintf(path, sizeof path, "%.*s.h5", (int)strlen(list) - 4, list);
	for (unsigned i = 0; i < FIELDS; i++)
		h5_buf_init(&line.fields[i], SIZE_MAX);
	for (; getline(&text, &capacity, f) > 0; n++) {
		split(strrchr(path, '/'), text, &line);
		if (!strcmp(line.kind, "refused")) {
			int rc = h5_open_file(path, &options, &set, NULL);

			ck_assert_msg(rc == -atoi(line.last), "%s: %d", line.where, rc);
			ck_assert_str_ne(h5_error_last()->text, "");
			set = NULL;
			continue;
		}
		if (!set)
			OK(&line, h5_open_file(path, &options, &set, NULL));
		check_line(h5_file_set_root(set), &line);
	}
	ck_assert_uint_gt(n, 0);
	if (set)
		h5_file_set_close(set);
	for (unsigned i = 0; i < FIELDS; i++)
		h5_buf_release(&line.fields[i]);
	free(text);
	fclose(f);
	return n;
}

START_TEST(all_are_as_expected)
{
	const char *folder = getenv("H5FS_TEST_DATA");
	char pattern[NAME_SIZE];
	unsigned lines = 0;
	glob_t found;

	snprintf(pattern, sizeof pattern, "%s/rare_*.txt", folder ? folder : "tests/data");
	ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		lines += check_file(found.gl_pathv[i]);
	ck_assert_uint_ge(found.gl_pathc, 80);
	ck_assert_uint_ge(lines, 4000);
	globfree(&found);
}
END_TEST

UNIT_MAIN("rare", all_are_as_expected)
