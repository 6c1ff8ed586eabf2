#include "object/dense_write.h"

#include "base/error.h"
#include "change/transaction.h"
#include "object/fractal_heap_write.h"
#include "object/named_record_write.h"

#include <string.h>

/* Begins a unit that restores *info if it fails. */
static int begin(struct h5_file *file, struct h5_named_info *info)
{
	int rc;

	h5_unit_begin(file);
	rc = h5_unit_save(file, info, sizeof *info);
	return rc ? h5_unit_end(file, rc) : 0;
}

int h5_dense_create(struct h5_file *file, enum h5_named_kind kind, bool tracks_order, bool indexes_order,
		    struct h5_named_info *info)
{
	const struct h5_fractal_heap_parameters parameters = h5_named_heap_parameters(kind);
	int rc = begin(file, info);

	if (rc)
		return rc;
	info->tracks_order = tracks_order;
	rc = h5_fractal_heap_create(file, &parameters, &info->heap);
	if (!rc)
		rc = h5_named_index_create(file, kind, indexes_order, info);
	return h5_unit_end(file, rc);
}

/* ---- a heap whose header is no cell ---- */

struct rebuilding {
	struct h5_file *file;
	enum h5_named_kind kind;
	struct h5_named_info *to;
};

static int refuse_shared(void *arg, const struct h5_name *name, const struct h5_named_record *record,
			 struct h5_reader message)
{
	(void)arg;
	(void)name;
	(void)message;
	return record->is_shared;
}

static int copy_message(void *arg, const struct h5_name *name, const struct h5_named_record *record,
			struct h5_reader message)
{
	const struct rebuilding *r = arg;
	int64_t order = r->kind == H5_NAMED_LINK ? name->order : record->order;

	return h5_dense_insert(r->file, r->to, r->kind, name->text, name->size, message.begin,
			       (size_t)(message.end - message.begin), order);
}

static int rebuild(const struct h5_named_storage *storage, struct h5_named_info *info,
		   enum h5_named_kind kind)
{
	struct h5_named_info old = *info, new = *info;
	struct rebuilding rebuilding = {storage->file, kind, &new};
	int rc = begin(storage->file, info);

	if (rc)
		return rc;
	rc = h5_dense_create(storage->file, kind, old.tracks_order, old.order_index != H5_UNDEF, &new);
	if (!rc)
		rc = h5_named_iterate_dense(storage, copy_message, &rebuilding);
	if (!rc)
		rc = h5_dense_free(storage->file, &old, kind);
	if (!rc)
		*info = new;
	rc = h5_unit_end(storage->file, rc);
	h5_unit_unsave(storage->file, &old, sizeof old);
	h5_unit_unsave(storage->file, &new, sizeof new);
	return rc;
}

/* A heap's header cannot move. If it is no cell, which happens to one header in thirty of libhdf5's, all of
 * the storage is made anew, once. Shared messages cannot be; then a change is left to the journal. */
static int make_safe(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind)
{
	struct h5_named_storage storage;
	int rc;

	if (h5_fractal_heap_is_safe(file, info->heap))
		return 0;
	h5_named_storage_dense(file, kind, info, &storage);
	rc = kind == H5_NAMED_ATTRIBUTE ? h5_named_iterate_dense(&storage, refuse_shared, NULL) : 0;
	if (rc)
		return rc > 0 ? 0 : rc;
	return rebuild(&storage, info, kind);
}

/* ---- changes ---- */

static int insert(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind, const char *name,
		  size_t name_size, const void *message, size_t message_size, struct h5_named_entry *entry)
{
	int rc = h5_fractal_heap_insert(file, info->heap, message, message_size, entry->id, entry->id_size);

	return rc ? rc : h5_named_index_set(file, kind, info, name, name_size, entry);
}

int h5_dense_insert(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind,
		    const char *name, size_t name_size, const void *message, size_t message_size,
		    int64_t order)
{
	struct h5_named_entry entry;
	int rc = h5_named_index_find(file, kind, info, name, name_size, &entry);

	if (rc != -ENOENT)
		return rc ? rc : -EEXIST;
	entry = (struct h5_named_entry){
		.id_size = h5_named_heap_parameters(kind).id_size,
		.order = kind == H5_NAMED_ATTRIBUTE && !info->tracks_order ? H5_NO_ATTRIBUTE_ORDER : order,
	};
	rc = begin(file, info);
	if (rc)
		return rc;
	rc = make_safe(file, info, kind);
	if (!rc)
		rc = insert(file, info, kind, name, name_size, message, message_size, &entry);
	return h5_unit_end(file, rc);
}

/* The message that no record leads to any more goes from the heap. A shared one is in the file's, and the
 * caller's. */
static int drop_object(struct h5_file *file, const struct h5_named_info *info,
		       const struct h5_named_entry *old)
{
	return old->is_shared ? 0 : h5_fractal_heap_remove(file, info->heap, old->id, old->id_size);
}

/* The old object keeps its bytes until the commit is certain, so each record leads to the old message or to
 * the new one. An attribute may change where it is. A link may not: if it were changed again in the same
 * commit, or removed, a kill could leave it leading to an object that is not there any more. */
static int replace(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind,
		   const char *name, size_t name_size, const void *message, size_t message_size,
		   const struct h5_named_entry *old)
{
	struct h5_named_entry new = *old;
	bool replaced = false;
	int rc = 0;

	new.is_shared = false;
	if (kind == H5_NAMED_ATTRIBUTE && !old->is_shared)
		rc = h5_fractal_heap_replace(file, info->heap, old->id, old->id_size, message, message_size,
					     &replaced);
	if (rc || replaced)
		return rc;
	rc = insert(file, info, kind, name, name_size, message, message_size, &new);
	return rc ? rc : drop_object(file, info, old);
}

int h5_dense_replace(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind,
		     const char *name, size_t name_size, const void *message, size_t message_size)
{
	struct h5_named_entry entry;
	int rc = begin(file, info);

	if (rc)
		return rc;
	rc = make_safe(file, info, kind);
	if (!rc)
		rc = h5_named_index_find(file, kind, info, name, name_size, &entry);
	if (!rc)
		rc = replace(file, info, kind, name, name_size, message, message_size, &entry);
	return h5_unit_end(file, rc);
}

/* Takes a message out of the indexes; *entry: where it is in the heap. */
static int take(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind, const char *name,
		size_t name_size, struct h5_named_entry *entry)
{
	int rc = make_safe(file, info, kind);

	return rc ? rc : h5_named_index_remove(file, kind, info, name, name_size, entry);
}

int h5_dense_rename(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind,
		    const char *name, size_t name_size, const char *new_name, size_t new_size,
		    const void *message, size_t message_size)
{
	struct h5_named_entry old, new;
	int rc;

	if (!h5_name_compare(name, name_size, new_name, new_size))
		return h5_dense_replace(file, info, kind, name, name_size, message, message_size);
	rc = begin(file, info);
	if (rc)
		return rc;
	rc = take(file, info, kind, name, name_size, &old);
	new = old;
	new.is_shared = false;
	if (!rc)
		rc = insert(file, info, kind, new_name, new_size, message, message_size, &new);
	if (!rc)
		rc = drop_object(file, info, &old);
	return h5_unit_end(file, rc);
}

int h5_dense_remove(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind,
		    const char *name, size_t name_size)
{
	struct h5_named_entry entry;
	int rc = begin(file, info);

	if (rc)
		return rc;
	rc = take(file, info, kind, name, name_size, &entry);
	if (!rc)
		rc = drop_object(file, info, &entry);
	return h5_unit_end(file, rc);
}

int h5_dense_extents(struct h5_file *file, enum h5_named_kind kind, const struct h5_named_info *info,
		     h5_extent_visit *visit, void *arg)
{
	int rc = h5_named_index_extents(file, kind, info, visit, arg);

	return rc ? rc : h5_fractal_heap_extents(file, info->heap, visit, arg);
}

int h5_dense_free(struct h5_file *file, struct h5_named_info *info, enum h5_named_kind kind)
{
	int rc = begin(file, info);

	if (rc)
		return rc;
	rc = h5_named_index_free(file, kind, info);
	if (!rc)
		rc = h5_fractal_heap_free(file, info->heap);
	if (!rc)
		info->heap = H5_UNDEF;
	return h5_unit_end(file, rc);
}
