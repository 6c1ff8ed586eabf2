/* What links lead to in the tree of the mount. */
#include "vfs/private.h"

#include "base/array.h"
#include "base/error.h"
#include "object/path.h"
#include "vfs/directory.h"
#include "vfs/name.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

void h5_entity_release(struct h5_entity *entity)
{
	free(entity->target);
	entity->target = NULL;
}

/* True: no component of the text, followed from the directory, leads above the root of its tree. */
static bool stays_inside(const struct h5_node *directory, const char *text)
{
	unsigned depth = h5_node_depth(directory);

	if (*text == '/')
		return false;
	while (*text) {
		size_t n = strcspn(text, "/");

		if (n == 2 && !memcmp(text, "..", 2)) {
			if (!depth--)
				return false;
		} else if (n && !(n == 1 && *text == '.')) {
			depth++;
		}
		text += n + (text[n] == '/');
	}
	return true;
}

int h5_entity_symlink(const struct h5_node *directory, struct h5_entity *entity, struct h5_buf *target)
{
	int rc;

	if (!target->err && !target->size)
		h5_buf_byte(target, '.');
	h5_buf_byte(target, 0);
	if (target->err == -E2BIG) {
		h5_buf_release(target);
		h5_buf_init(target, PATH_MAX);
		h5_buf_add(target, "toolong:", sizeof "toolong:");
	}
	rc = target->err;
	/* The code that makes targets should make none that leads out; this is the last guard. */
	if (!rc && !stays_inside(directory, target->data))
		rc = h5_fail(-EUCLEAN, directory->entity.address, "a link that would lead out of the mount");
	if (rc) {
		h5_buf_release(target);
		return rc;
	}
	*entity = (struct h5_entity){
		.kind = H5_NODE_SYMLINK, .address = H5_UNDEF, .target = h5_buf_take(target)};
	return 0;
}

static const enum h5_node_kind kinds[] = {[H5_OBJECT_UNKNOWN] = H5_NODE_DAMAGED,
					  [H5_OBJECT_GROUP] = H5_NODE_DIRECTORY,
					  [H5_OBJECT_DATASET] = H5_NODE_DATASET,
					  [H5_OBJECT_DATATYPE] = H5_NODE_DATATYPE};

int h5_entity_kind(struct h5_file *file, uint64_t address, enum h5_node_kind *kind)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(file, address, &ref, &object);

	*kind = H5_NODE_DAMAGED;
	if (!rc) {
		*kind = kinds[object->kind];
		h5_file_put(file, ref);
	}
	return h5_is_passing(rc) ? rc : 0;
}

int h5_entity_turn_back(const struct h5_node *directory, struct h5_entity *entity)
{
	struct h5_buf up;

	if (entity->kind != H5_NODE_DIRECTORY)
		return 0;
	h5_buf_init(&up, PATH_MAX);
	for (const struct h5_node *d = directory; d; d = d->parent) {
		if (d->entity.file == entity->file && d->entity.address == entity->address)
			return h5_entity_symlink(directory, entity, &up);
		h5_buf_text(&up, up.size ? "/.." : "..");
	}
	h5_buf_release(&up);
	return 0;
}

/* Makes the entity of an object of the file. `known`: its kind, if the link tells. */
static int resolve_object(const struct h5_node *directory, struct h5_file *file, uint64_t address,
			  enum h5_object_kind known, struct h5_entity *entity)
{
	int rc = 0;

	*entity = (struct h5_entity){.file = file, .address = address, .kind = kinds[known]};
	if (known == H5_OBJECT_UNKNOWN)
		rc = h5_entity_kind(file, address, &entity->kind);
	return rc ? rc : h5_entity_turn_back(directory, entity);
}

int h5_links_resolve_object(const struct h5_node *directory, const struct h5_object *object,
			    struct h5_entity *entity)
{
	*entity = (struct h5_entity){
		.file = directory->entity.file, .address = object->address, .kind = kinds[object->kind]};
	return h5_entity_turn_back(directory, entity);
}

/* True: the directory may have an entry named like the first component of the target. */
static bool leads_somewhere(const struct h5_node *directory, const struct h5_buf *target)
{
	const char *slash = memchr(target->data, '/', target->size);
	size_t n = slash ? (size_t)(slash - target->data) : target->size, size;
	char component[H5_NAME_MAX + 1], name[H5_NAME_MAX + 1];
	const struct h5_object *group;
	struct h5_link link = {0};
	struct h5_lru_entry *ref;
	int rc;

	if (n > H5_NAME_MAX)
		return false;
	if (h5_object_get(directory->entity.file, directory->entity.address, &ref, &group))
		return true;
	memcpy(component, target->data, n);
	component[n] = 0;
	size = h5_name_unescape(component, name);
	rc = h5_group_lookup(directory->entity.file, group, name, size, &link);
	h5_link_release(&link);
	h5_file_put(directory->entity.file, ref);
	return rc != -ENOENT || h5_name_is_cut(component);
}

/* Makes a symlink whose target exists nowhere and says where the link would lead. If a link has the name of
 * the target's first component, the target could lead somewhere; then its `..` are escaped. */
static int resolve_dangling(const struct h5_node *directory, const char *file, size_t file_size,
			    const char *path, size_t size, struct h5_entity *entity)
{
	struct h5_buf target, inside;

	h5_buf_init(&target, PATH_MAX);
	h5_buf_text(&target, H5_DANGLING);
	h5_buf_add(&target, file, file_size);
	h5_buf_text(&target, "//");
	while (size && *path == '/') {
		path++;
		size--;
	}
	h5_buf_add(&target, path, size);
	h5_buf_byte(&target, 0);
	if (target.err)
		return h5_entity_symlink(directory, entity, &target);
	target.size = strlen(target.data);
	if (stays_inside(directory, target.data) && !leads_somewhere(directory, &target))
		return h5_entity_symlink(directory, entity, &target);
	h5_buf_init(&inside, PATH_MAX);
	h5_path_escape(&inside, target.data, target.size);
	h5_buf_release(&target);
	return h5_entity_symlink(directory, entity, &inside);
}

/* What a link leads to. It was followed with the result `rc` to an object; if there is none that can be
 * opened, makes a dangling symlink. */
static int resolve_found(const struct h5_node *directory, int rc, struct h5_file *file, uint64_t address,
			 const char *name, size_t name_size, const struct h5_link *link,
			 struct h5_entity *entity)
{
	if (!rc)
		rc = resolve_object(directory, file, address, H5_OBJECT_UNKNOWN, entity);
	if (rc ? !h5_path_is_dead(rc) : entity->kind != H5_NODE_DAMAGED)
		return rc;
	return resolve_dangling(directory, name, name_size, link->target, link->target_size, entity);
}

static int resolve_external(const struct h5_node *directory, const struct h5_link *link,
			    struct h5_entity *entity)
{
	struct h5_file *file;
	uint64_t address;
	int rc = h5_path_find_external(directory->entity.file, link->file, link->file_size, link->target,
				       link->target_size, &file, &address);

	return resolve_found(directory, rc, file, address, link->file, link->file_size, link, entity);
}

/* Shows a soft link as the object that it leads to, since no symlink can lead there: the link is below an
 * external link, or leads out of the group that is mounted. */
static int resolve_through(const struct h5_node *directory, const struct h5_link *link,
			   struct h5_entity *entity)
{
	struct h5_file *file;
	uint64_t address;
	int rc = h5_path_find(directory->entity.file, directory->entity.address, link->target,
			      link->target_size, &file, &address);

	return resolve_found(directory, rc, file, address, "", 0, link, entity);
}

/* True: the path from the root group leads into the mounted group; its first *size bytes lead to that group.
 */
static bool is_mounted(const struct h5_vfs *vfs, const struct h5_buf *path, size_t *size)
{
	*size = strlen(vfs->prefix);
	if (!*size)
		return true;
	if (path->size < *size || memcmp(path->data, vfs->prefix, *size))
		return false;
	if (path->size > *size && path->data[(*size)++] != '/')
		return false;
	return true;
}

/* The offset behind so many components of a path, which has one slash between two. Its size: it has fewer. */
static size_t skip_components(const char *path, size_t size, unsigned count)
{
	size_t at = 0;

	for (; count && at < size; count--) {
		const char *slash = memchr(path + at, '/', size - at);

		at = slash ? (size_t)(slash - path) + 1 : size;
	}
	return at;
}

static bool is_component(const char *path, size_t size, unsigned index, const char *name)
{
	size_t at = skip_components(path, size, index), n = strlen(name);

	return n && n <= size - at && !memcmp(path + at, name, n) && (at + n == size || path[at + n] == '/');
}

/* How many directories from the root on, up to this one, the path from there begins with. */
static unsigned count_shared(const struct h5_node *directory, unsigned depth, const char *path, size_t size)
{
	unsigned shared = depth;

	for (; depth; directory = directory->parent)
		if (!is_component(path, size, --depth, directory->name))
			shared = depth;
	return shared;
}

/* Makes the shortest target that leads from the directory along a path from the root of the mount. */
static void add_way(struct h5_buf *target, const struct h5_node *directory, const char *path, size_t size)
{
	unsigned depth = h5_node_depth(directory), shared = count_shared(directory, depth, path, size);
	size_t at = skip_components(path, size, shared);

	for (unsigned i = shared; i < depth; i++)
		h5_buf_text(target, i > shared ? "/.." : "..");
	if (at < size && target->size)
		h5_buf_byte(target, '/');
	h5_buf_add(target, path + at, size - at);
}

static int resolve_absolute(const struct h5_vfs *vfs, const struct h5_node *directory,
			    const struct h5_link *link, struct h5_entity *entity)
{
	struct h5_buf path, target;
	size_t skipped = 0;

	h5_buf_init(&path, PATH_MAX);
	h5_path_escape(&path, link->target, link->target_size);
	if (!path.err && !is_mounted(vfs, &path, &skipped)) {
		h5_buf_release(&path);
		return resolve_through(directory, link, entity);
	}
	h5_buf_init(&target, PATH_MAX);
	if (path.err)
		target.err = path.err;
	else
		/* Nothing of the path may be left: it leads to the root. */
		add_way(&target, directory, path.size ? path.data + skipped : "", path.size - skipped);
	h5_buf_release(&path);
	return h5_entity_symlink(directory, entity, &target);
}

static int resolve_soft(const struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
			struct h5_entity *entity)
{
	struct h5_buf target;

	if (directory->entity.file != vfs->file)
		return resolve_through(directory, link, entity);
	if (link->target_size && link->target[0] == '/')
		return resolve_absolute(vfs, directory, link, entity);
	h5_buf_init(&target, PATH_MAX);
	h5_path_escape(&target, link->target, link->target_size);
	return h5_entity_symlink(directory, entity, &target);
}

static int resolve_user_defined(const struct h5_node *directory, const struct h5_link *link,
				struct h5_entity *entity)
{
	struct h5_buf target;

	h5_buf_init(&target, PATH_MAX);
	h5_buf_printf(&target, "udlink:%u", link->type);
	return h5_entity_symlink(directory, entity, &target);
}

static int resolve(const struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
		   struct h5_entity *entity)
{
	switch (link->type) {
	case H5_LINK_HARD:
		return resolve_object(directory, directory->entity.file, link->address, link->cached_kind,
				      entity);
	case H5_LINK_SOFT:
		return resolve_soft(vfs, directory, link, entity);
	case H5_LINK_EXTERNAL:
		return resolve_external(directory, link, entity);
	default:
		return resolve_user_defined(directory, link, entity);
	}
}

int h5_links_resolve(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_link *link,
		     struct h5_entity *entity)
{
	int rc;

	*entity = (struct h5_entity){0};
	rc = resolve(vfs, directory, link, entity);
	if (!rc && link->type != H5_LINK_HARD && entity->kind == H5_NODE_DIRECTORY &&
	    entity->file == vfs->file)
		vfs->shown_twice = true;
	return rc;
}

/* ---- the list of an open directory ---- */

/* Makes room for one more item, with n bytes of text. */
static int reserve(struct h5_dir_list *list, size_t n)
{
	int rc = h5_array_reserve(&list->items, &list->capacity, list->count + 1, &list->items_charge);
	size_t need = list->text_bytes + n;

	if (!rc && need > list->text_charge.bytes)
		rc = h5_charge_set(&list->text_charge, need + need / 4);
	return rc;
}

int h5_dir_list_add_link(struct h5_dir_list *list, const struct h5_link *link)
{
	char name[H5_NAME_MAX + 1], *text;
	size_t size = h5_name_escape(link->name, link->name_size, name) + 1;
	size_t n = size + link->target_size + link->file_size;
	int rc = reserve(list, n);
	struct h5_dir_item *item;

	if (rc)
		return rc;
	text = malloc(n);
	if (!text)
		return -ENOMEM;
	item = &list->items[list->count++];
	*item = (struct h5_dir_item){.text = text, .link = *link, .next = list->count};
	list->text_bytes += n;
	memcpy(text, name, size);
	text += size;
	item->link.name = NULL;
	item->link.name_size = 0;
	if (link->target_size)
		memcpy(text, link->target, link->target_size);
	item->link.target = text;
	text += link->target_size;
	if (link->file_size)
		memcpy(text, link->file, link->file_size);
	item->link.file = text;
	return 0;
}

int h5_dir_list_add(struct h5_dir_list *list, const char *name, struct h5_entity *entity)
{
	size_t n = strlen(name) + 1;
	char *text = strdup(name);
	int rc = text ? reserve(list, n) : -ENOMEM;

	if (rc) {
		free(text);
		h5_entity_release(entity);
		return rc;
	}
	list->text_bytes += n;
	list->items[list->count] =
		(struct h5_dir_item){.text = text, .entity = *entity, .next = list->count + 1};
	list->count++;
	return 0;
}

void h5_dir_list_release(struct h5_dir_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].text);
		h5_entity_release(&list->items[i].entity);
	}
	free(list->items);
	h5_charge_release(&list->items_charge);
	h5_charge_release(&list->text_charge);
	*list = (struct h5_dir_list){0};
}
