#include "object/group_write.h"

#include "base/error.h"
#include "base/writer.h"
#include "change/object_header_edit.h"
#include "change/transaction.h"
#include "object/named_message_write.h"
#include "object/symbol_table_write.h"

#include <stdlib.h>
#include <string.h>

/* A group whose links are changed. */
struct change {
	struct h5_file *file;
	uint64_t address;
	struct h5_lru_entry *ref; /* to the object */
	const struct h5_object *object;
	struct h5_group_storage storage;
};

/* Even if it fails, the caller calls end(). */
static int begin(struct change *change, struct h5_file *file, uint64_t address)
{
	int rc;

	*change = (struct change){.file = file, .address = address};
	rc = h5_object_get(file, address, &change->ref, &change->object);
	if (!rc)
		rc = h5_group_storage_find(file, change->object, &change->storage);
	if (!rc && change->storage.messages.damage.first.code)
		rc = h5_fail(-EUCLEAN, address, "its link info message is damaged");
	return rc;
}

static int end(struct change *change, int rc)
{
	h5_file_put(change->file, change->ref);
	change->ref = NULL;
	return rc;
}

static int check_name(const struct change *change, const char *name, size_t size)
{
	if (!size || (size == 1 && *name == '.') || memchr(name, '\0', size) || memchr(name, '/', size))
		return h5_fail(-EINVAL, change->address, "group: no link can have this name");
	return 0;
}

static bool has_nul(const char *text, size_t size)
{
	return size && memchr(text, '\0', size);
}

/* Checks where the link leads. */
static int check_target(const struct change *change, const struct h5_link *link)
{
	if (link->type != H5_LINK_SOFT && link->type != H5_LINK_EXTERNAL)
		return 0;
	if (!link->target_size || (link->type == H5_LINK_EXTERNAL && !link->file_size) ||
	    has_nul(link->target, link->target_size) || has_nul(link->file, link->file_size))
		return h5_fail(-EINVAL, change->address, "group: no link can lead there");
	return 0;
}

/* Looks for the link of that name; of *link only what is no text stays valid. */
static int find(const struct change *change, const char *name, size_t size, struct h5_link *link)
{
	int rc = h5_group_lookup(change->file, change->object, name, size, link);
	struct h5_link found = *link;

	if (!rc)
		h5_link_release(link);
	*link = found;
	return rc;
}

/* ---- link messages ---- */

/* Puts the link in the place of the one of that name; NULL: it is one more. */
static int put_message(const struct change *change, const char *name, size_t size, const struct h5_link *link,
		       int64_t order)
{
	const struct h5_named_info *info = &change->storage.messages.info;
	struct h5_new_named message;
	int rc = h5_link_message(change->file, link, info->tracks_order,
				 name ? order : (int64_t)info->next_order, &message);

	if (rc)
		return rc;
	rc = name ? h5_named_rename(change->file, change->address, name, size, &message)
		  : h5_named_insert(change->file, change->address, &message);
	free((void *)message.body);
	return rc;
}

/* The same in a group of the old style, which becomes one of the new style. */
static int put_renewed(struct change *change, const char *name, size_t size, const struct h5_link *link)
{
	struct h5_new_named message;
	int rc = h5_link_message(change->file, link, false, 0, &message);

	if (rc)
		return rc;
	free((void *)message.body);
	h5_unit_begin(change->file);
	rc = end(change, h5_group_renew(change->file, change->address));
	if (!rc)
		rc = begin(change, change->file, change->address);
	if (!rc)
		rc = put_message(change, name, size, link, 0);
	return h5_unit_end(change->file, rc);
}

/* True: the group is of the old style, and its symbol table cannot hold the link. */
static bool must_renew(const struct change *change, const struct h5_link *link)
{
	return change->storage.is_old && link->type != H5_LINK_HARD && link->type != H5_LINK_SOFT;
}

/* ---- symbol tables ---- */

static int update_table(const void *arg, uint8_t *body, size_t n)
{
	const struct change *change = arg;
	const struct h5_superblock *sb = h5_file_superblock(change->file);
	struct h5_writer w = h5_writer_init(body, n, sb->size_of_offsets, sb->size_of_lengths);

	return h5_symbol_table_encode(&w, &change->storage.table);
}

/* Begins the unit of a change of the symbol table. On failure there is nothing to end. */
static int begin_table(const struct change *change)
{
	int rc;

	h5_unit_begin(change->file);
	rc = h5_tx_touch(change->file, change->address);
	return rc ? h5_unit_end(change->file, rc) : 0;
}

/* `before`: of the root of the B-tree. */
static int end_table(struct change *change, uint64_t before, int rc)
{
	struct h5_symbol_table *table = &change->storage.table;

	if (!rc && table->btree != before)
		rc = h5_header_update(change->file, change->address, H5_MSG_SYMBOL_TABLE, update_table,
				      change);
	/* The cache forgets what was decoded from the links. It keeps the object header unless that changed.
	 */
	h5_tx_forget_but(change->file, change->address, &h5_object_block);
	rc = h5_unit_end(change->file, rc);
	h5_unit_unsave(change->file, table, sizeof *table);
	return rc;
}

static int check_symbol(const struct change *change, const struct h5_link *link)
{
	if (link->name_size > H5_SYMBOL_TEXT_MAX || link->target_size > H5_SYMBOL_TEXT_MAX)
		return h5_fail(-ENAMETOOLONG, change->address, "group: a text is too long");
	return 0;
}

typedef int change_table(struct h5_file *file, struct h5_symbol_table *table, const char *name, size_t size,
			 const struct h5_link *link);

static int set_symbol(struct change *change, change_table *set, const struct h5_link *link)
{
	uint64_t before = change->storage.table.btree;
	int rc = check_symbol(change, link);

	if (!rc)
		rc = begin_table(change);
	if (rc)
		return rc;
	return end_table(change, before,
			 set(change->file, &change->storage.table, link->name, link->name_size, link));
}

static int remove_symbol(struct change *change, const char *name, size_t size)
{
	uint64_t before = change->storage.table.btree;
	int rc = begin_table(change);

	if (rc)
		return rc;
	return end_table(change, before,
			 h5_symbol_table_remove(change->file, &change->storage.table, name, size));
}

static int rename_symbol(struct change *change, const char *name, size_t size, const struct h5_link *as)
{
	uint64_t before = change->storage.table.btree;
	int rc = check_symbol(change, as);

	if (!rc)
		rc = begin_table(change);
	if (rc)
		return rc;
	return end_table(change, before,
			 h5_symbol_table_rename(change->file, &change->storage.table, name, size, as));
}

/* ---- links ---- */

static int insert(struct change *change, const struct h5_link *link)
{
	struct h5_link old;
	int rc = check_name(change, link->name, link->name_size);

	if (!rc)
		rc = check_target(change, link);
	if (!rc)
		rc = find(change, link->name, link->name_size, &old);
	if (rc != -ENOENT)
		return rc ? rc : -EEXIST;
	if (must_renew(change, link))
		return put_renewed(change, NULL, 0, link);
	return change->storage.is_old ? set_symbol(change, h5_symbol_table_insert, link)
				      : put_message(change, NULL, 0, link, 0);
}

int h5_group_insert(struct h5_file *file, uint64_t group, const struct h5_link *link)
{
	struct change change;
	int rc = begin(&change, file, group);

	return end(&change, rc ? rc : insert(&change, link));
}

static int change_link(struct change *change, const struct h5_link *link)
{
	struct h5_link old;
	int rc = check_target(change, link);

	if (!rc)
		rc = find(change, link->name, link->name_size, &old);
	if (rc)
		return rc;
	if (must_renew(change, link))
		return put_renewed(change, link->name, link->name_size, link);
	return change->storage.is_old ? set_symbol(change, h5_symbol_table_change, link)
				      : put_message(change, link->name, link->name_size, link, old.order);
}

int h5_group_change(struct h5_file *file, uint64_t group, const struct h5_link *link)
{
	struct change change;
	int rc = begin(&change, file, group);

	return end(&change, rc ? rc : change_link(&change, link));
}

static int remove_link(struct change *change, const char *name, size_t size)
{
	return change->storage.is_old
		       ? remove_symbol(change, name, size)
		       : h5_named_remove(change->file, change->address, H5_NAMED_LINK, name, size);
}

int h5_group_remove(struct h5_file *file, uint64_t group, const char *name, size_t size)
{
	struct change change;
	int rc = begin(&change, file, group);

	return end(&change, rc ? rc : remove_link(&change, name, size));
}

static int rename_link(struct change *change, const char *name, size_t size, const struct h5_link *as)
{
	struct h5_link old, taken;
	int rc = check_name(change, as->name, as->name_size);

	if (!rc)
		rc = check_target(change, as);
	if (!rc)
		rc = find(change, name, size, &old);
	if (rc)
		return rc;
	if (!h5_name_compare(name, size, as->name, as->name_size))
		return change_link(change, as);
	rc = find(change, as->name, as->name_size, &taken);
	if (rc != -ENOENT)
		return rc ? rc : -EEXIST;
	if (must_renew(change, as))
		return put_renewed(change, name, size, as);
	return change->storage.is_old ? rename_symbol(change, name, size, as)
				      : put_message(change, name, size, as, old.order);
}

int h5_group_rename(struct h5_file *file, uint64_t group, const char *name, size_t size,
		    const struct h5_link *as)
{
	struct change change;
	int rc = begin(&change, file, group);

	return end(&change, rc ? rc : rename_link(&change, name, size, as));
}

bool h5_group_renames_at_once(struct h5_file *file, uint64_t group)
{
	struct change change;
	int rc = begin(&change, file, group);
	bool at_once = !rc && (change.storage.is_old || change.storage.messages.is_dense);

	end(&change, rc);
	return at_once;
}

/* ---- style ---- */

int h5_group_style(struct h5_file *file, uint64_t parent, struct h5_new_group *how)
{
	struct change change;
	int rc = begin(&change, file, parent);

	*how = (struct h5_new_group){.tracks_order = change.storage.messages.info.tracks_order,
				     .indexes_order = change.storage.messages.info.indexes_order};
	return end(&change, rc);
}
