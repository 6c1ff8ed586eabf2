#include "offline/offline.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/hash_table.h"
#include "object/json.h"
#include "offline/walk.h"
#include "vfs/vfs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	VALUE_MOST = 1 << 20,
	LINE_MOST = 1 << 27,
};

/* A directory whose entries were listed. */
struct listed {
	uint64_t number; /* st_ino */
	char *path;	 /* owned */
	UT_hash_handle hh;
};

struct list {
	struct h5_vfs *vfs;
	struct h5_walk walk;
	bool json; /* a line is a JSON object */
	struct h5_buf value, line;
	struct listed *listed;
	enum h5_offline_result result;
};

/* What h5_error_last() tells of the failure, in words. */
static const char *reason(int rc)
{
	const struct h5_error *e = h5_error_last();

	return e->code == rc ? e->text : strerror(-rc);
}

static void complain(struct list *list, int rc)
{
	const struct h5_error *e = h5_error_last();
	struct h5_buf said;

	h5_buf_init(&said, LINE_MOST);
	h5_escape(&said, list->walk.path.data, list->walk.path.size);
	h5_buf_text(&said, ": ");
	h5_escape(&said, reason(rc), strlen(reason(rc)));
	if (e->code == rc && e->address != H5_UNDEF)
		h5_buf_printf(&said, " at address %" PRIu64, e->address);
	fflush(stdout);
	fprintf(stderr, "%.*s\n", (int)said.size, said.data);
	h5_buf_release(&said);
	if (rc != -ENOTSUP && rc != -EFBIG)
		list->result = H5_OFFLINE_DAMAGED;
	else if (list->result == H5_OFFLINE_SOUND)
		list->result = H5_OFFLINE_UNKNOWN;
}

/* The value of an xattr of the node, valid until the next call; NULL: it has none, or that is damaged, which
 * was reported. */
static const char *value_of(struct list *list, struct h5_node *node, const char *name)
{
	int rc;

	list->value.size = 0;
	h5_error_clear();
	rc = h5_vfs_getxattr(list->vfs, node, name, &list->value);
	if (rc && rc != -ENODATA)
		complain(list, rc);
	if (rc)
		return NULL;
	h5_buf_byte(&list->value, 0);
	return list->value.err ? NULL : list->value.data;
}

static void add_text(struct list *list, const char *before, const char *text, const char *behind)
{
	if (!text || !*text)
		return;
	h5_buf_text(&list->line, before);
	h5_escape(&list->line, text, strlen(text));
	h5_buf_text(&list->line, behind);
}

/* Adds the size and ratio of a raw dataset. Of one that is text, the size is known only after reading all of
 * it. */
static void add_ratio(struct list *list, const struct h5_vfs_entry *entry, uint64_t stored)
{
	const char *format = value_of(list, entry->node, "h5fs.format");
	struct stat st = entry->st;
	uint64_t size;

	if (!stored || !format || strcmp(format, "raw") != 0)
		return;
	if (!entry->size_known) {
		int rc = h5_vfs_getattr(list->vfs, entry->node, &st);

		if (rc) {
			complain(list, rc);
			return;
		}
	}
	size = (uint64_t)st.st_size;
	if (size != stored)
		h5_buf_printf(&list->line, " of %" PRIu64 "  ratio %.2f", size,
			      (double)size / (double)stored);
}

static void add_dataset(struct list *list, const struct h5_vfs_entry *entry)
{
	struct h5_node *node = entry->node;
	const char *storage;
	uint64_t stored;

	add_text(list, "  ", value_of(list, node, "h5fs.dtype"), "");
	add_text(list, "  (", value_of(list, node, "h5fs.shape"), ")");
	add_text(list, "  ", value_of(list, node, "h5fs.layout"), "");
	add_text(list, "(", value_of(list, node, "h5fs.chunks"), ")");
	add_text(list, "  ", value_of(list, node, "h5fs.filters"), "");
	storage = value_of(list, node, "h5fs.storage");
	if (!storage)
		return;
	stored = strtoull(storage, NULL, 10);
	h5_buf_printf(&list->line, "  %" PRIu64 " bytes", stored);
	add_ratio(list, entry, stored);
}

/* Makes the line of an entry, after complaints about it. `same`: where the same directory was listed; NULL:
 * nowhere. */
static void add_line(struct list *list, const struct h5_vfs_entry *entry, const struct listed *same)
{
	const char *target, *class;

	h5_escape(&list->line, list->walk.path.data, list->walk.path.size);
	if (S_ISLNK(entry->st.st_mode)) {
		if (!h5_vfs_readlink(entry->node, &target))
			add_text(list, " -> ", target, "");
	} else if (!S_ISDIR(entry->st.st_mode)) {
		class = value_of(list, entry->node, "h5fs.class");
		if (class && !strcmp(class, "dataset"))
			add_dataset(list, entry);
		else
			add_text(list, "  ", class, "");
	} else {
		if (list->walk.path.size > 1)
			h5_buf_byte(&list->line, '/');
		if (same)
			add_text(list, "  as ", same->path, "");
	}
}

/* ---- JSON ---- */

/* Adds the members of a document, whose lines become one. */
static void add_members(struct h5_json *object, const struct h5_buf *document)
{
	h5_json_item(object);
	/* Without its braces. */
	for (size_t i = 1; i + 2 < document->size; i++) {
		char c = document->data[i];

		if (c != '\n') {
			h5_buf_byte(object->out, c);
			continue;
		}
		if (document->data[i - 1] == ',')
			h5_buf_byte(object->out, ' ');
		while (i + 3 < document->size && document->data[i + 1] == ' ')
			i++;
	}
}

static void add_description(struct list *list, struct h5_json *object, const struct h5_vfs_entry *entry)
{
	int rc;

	list->value.size = 0;
	rc = h5_vfs_describe(list->vfs, entry->node, &list->value);
	if (rc == -ENODATA) {
		h5_json_text(h5_json_key(object, "class"), S_ISDIR(entry->st.st_mode) ? "directory" : "file");
	} else if (rc) {
		complain(list, rc);
		h5_json_text(h5_json_key(object, "error"), reason(rc));
	} else {
		add_members(object, &list->value);
	}
}

static void add_json(struct list *list, const struct h5_vfs_entry *entry, const struct listed *same)
{
	struct h5_json object = h5_json_object(&list->line);
	const char *target;

	object.spaced = true;
	h5_json_string(h5_json_key(&object, "path"), list->walk.path.data, list->walk.path.size);
	if (S_ISLNK(entry->st.st_mode)) {
		h5_json_text(h5_json_key(&object, "class"), "link");
		if (!h5_vfs_readlink(entry->node, &target))
			h5_json_text(h5_json_key(&object, "target"), target);
	} else if (same) {
		h5_json_text(h5_json_key(&object, "class"), "group");
		h5_json_text(h5_json_key(&object, "as"), same->path);
	} else {
		add_description(list, &object, entry);
	}
	h5_json_close(&object);
}

static int print_entry(struct list *list, const struct h5_vfs_entry *entry, const struct listed *same)
{
	list->line.size = 0;
	if (list->json)
		add_json(list, entry, same);
	else
		add_line(list, entry, same);
	if (list->line.err)
		return list->line.err;
	fwrite(list->line.data, 1, list->line.size, stdout);
	putchar('\n');
	return 0;
}

/* ---- the walk ---- */

static struct listed *find_listed(const struct list *list, const struct stat *st)
{
	uint64_t number = st->st_ino;
	struct listed *found;

	HASH_FIND(hh, list->listed, &number, sizeof number, found);
	return found;
}

/* Remembers a directory, so that its entries are listed once, even if several hard links lead to it. */
static int note_listed(struct list *list, const struct stat *st)
{
	struct listed *new = calloc(1, sizeof *new);

	if (new)
		new->path = strndup(list->walk.path.data, list->walk.path.size);
	if (!new || !new->path) {
		free(new);
		return -ENOMEM;
	}
	new->number = st->st_ino;
	HASH_ADD(hh, list->listed, number, sizeof new->number, new);
	if (!new->hh.tbl) {
		free(new->path);
		free(new);
		return -ENOMEM;
	}
	return 0;
}

static void release_listed(struct list *list)
{
	struct listed *one, *next;

	HASH_ITER(hh, list->listed, one, next)
	{
		HASH_DEL(list->listed, one);
		free(one->path);
		free(one);
	}
}

static int visit(struct h5_walk *walk, const char *name, const struct h5_vfs_entry *entry, bool *enter)
{
	struct list *list = walk->arg;
	const struct listed *same = *enter ? find_listed(list, &entry->st) : NULL;
	int rc = print_entry(list, entry, same);

	(void)name;
	if (*enter && !same && !rc)
		rc = note_listed(list, &entry->st);
	*enter = *enter && !same;
	return rc;
}

static void failed(struct h5_walk *walk, int code)
{
	complain(walk->arg, code);
}

static int list_from(struct list *list, const struct h5_vfs_entry *entry, const char *path)
{
	bool enter = S_ISDIR(entry->st.st_mode);
	int rc;

	h5_buf_text(&list->walk.path, path);
	rc = list->walk.path.err;
	if (!rc)
		rc = visit(&list->walk, NULL, entry, &enter);
	h5_buf_release(&list->walk.path);
	if (!rc && enter)
		rc = h5_walk_run(&list->walk, entry->node, path);
	/* It was reported that the list is not complete. */
	return rc == -EFBIG ? 0 : rc;
}

int h5_offline_list(struct h5_vfs *vfs, const char *path, bool json, enum h5_offline_result *result)
{
	static const struct h5_walk_ops ops = {.visit = visit, .failed = failed};
	struct list list = {.vfs = vfs, .walk = {.vfs = vfs, .ops = &ops, .arg = &list}, .json = json};
	struct h5_vfs_entry entry;
	struct h5_buf way;
	int rc;

	h5_buf_init(&way, VALUE_MOST);
	h5_buf_init(&list.walk.path, VALUE_MOST);
	h5_buf_init(&list.value, json ? LINE_MOST : VALUE_MOST);
	h5_buf_init(&list.line, LINE_MOST);
	rc = h5_walk_find(vfs, path, &entry, &way);
	if (rc) {
		h5_buf_text(&list.walk.path, path);
		complain(&list, rc);
		list.result = H5_OFFLINE_FAILED;
		rc = 0;
	} else {
		rc = list_from(&list, &entry, way.data);
		h5_walk_forget(vfs, entry.node);
	}
	h5_buf_release(&way);
	h5_buf_release(&list.walk.path);
	h5_buf_release(&list.value);
	h5_buf_release(&list.line);
	release_listed(&list);
	*result = list.result;
	return rc;
}
