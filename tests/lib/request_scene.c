#include "request_scene.h"
#include "base/error.h"
#include "change/new_file.h"
#include "change/open.h"
#include "fault_alloc.h"
#include "fault_call.h"
#include "scratch.h"
#include "vfs/private.h"
#include "vfs_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct vfs_scene scene;
struct request_fault request_fault;
struct fault_io request_io = {.error = -ENOSPC};
static char other_path[512];

void request_open(const char *path, bool writable, const char *subdir)
{
	const struct h5_file_set_options options = {.block_cache = 8 << 20,
						    .chunk_cache = 8 << 20,
						    .external = H5_EXTERNAL_BENEATH,
						    .lock = H5_LOCK_ALWAYS,
						    .writable = writable,
						    .check = h5_vfs_check_object,
						    .wrap = fault_io_wrap,
						    .wrap_arg = &request_io};
	const struct h5_vfs_options vfs = {
		.writable = writable, .subdir = subdir, .gather = 1 << 20, .file_fd = -1};

	request_io.files = 0;
	SUCCEEDS(h5_open_file(path, &options, &scene.set, NULL));
	SUCCEEDS(h5_vfs_open(scene.set, &vfs, &scene.vfs));
}

void request_close(void)
{
	SUCCEEDS(h5_vfs_finish(scene.vfs));
	h5_vfs_close(scene.vfs);
	h5_file_set_close(scene.set);
}

void request_forget(struct h5_node *node)
{
	if (node != h5_vfs_root(scene.vfs))
		h5_vfs_forget(scene.vfs, node, 1);
}

struct h5_node *request_find(const char *path)
{
	struct h5_node *node = h5_vfs_root(scene.vfs);

	if (*path)
		ck_assert_msg(!vfs_scene_find(&scene, path, &node), "%s", path);
	return node;
}

/* The directory of a path, and the last name in it. */
static struct h5_node *find_parent(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char parent[512] = "";

	if (slash)
		snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
	*name = slash ? slash + 1 : path;
	return request_find(parent);
}

/* ---- faults ---- */

void request_fault_begin(void)
{
	if (!request_fault.n)
		return;
	vfs_scene_empty_caches(&scene);
	if (request_fault.reads)
		fault_call_arm(CALL_FAILS, request_fault.n, false);
	else
		fault_alloc_arm(request_fault.n);
	fault_alloc_count(true);
}

void request_fault_end(void)
{
	fault_alloc_count(false);
	request_fault.fired =
		request_fault.n && (request_fault.reads ? fault_call_disarm() : fault_alloc_disarm());
	request_fault.n = 0;
}

/* ---- requests ---- */

/* What the other path leads to, or its directory and last name. */
static struct h5_node *second_node, *second_parent;
static const char *second_name;

static int write_value(const struct request *r, struct h5_handle *handle)
{
	const size_t n = r->size ? r->size : strlen(r->value);
	uint64_t stale;
	size_t written;
	int rc = h5_vfs_write(handle, 0, r->value, n, H5_WRITE_APPEND, &written, &stale);

	return rc ? rc : h5_vfs_flush(handle);
}

static int do_open(const struct request *r, struct h5_node *node)
{
	struct h5_handle *handle;
	int rc = h5_vfs_open_file(scene.vfs, node, (int)r->flags, &handle);

	if (rc)
		return rc;
	if (r->value)
		rc = write_value(r, handle);
	h5_vfs_close_file(handle);
	return rc;
}

static int do_create(const struct request *r, struct h5_node *parent, const char *name)
{
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	int rc = h5_vfs_create(scene.vfs, parent, name, (int)r->flags, &entry, &handle);

	if (rc)
		return rc;
	if (r->value)
		rc = write_value(r, handle);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, entry.node, 1);
	return rc;
}

static int do_opendir(struct h5_node *node)
{
	struct h5_dir *dir;
	int rc = h5_vfs_opendir(scene.vfs, node, &dir);

	if (!rc)
		h5_vfs_closedir(dir);
	return rc;
}

/* Requests about what is at the path. 1: it is no such request. */
static int ask_about(const struct request *r, struct h5_node *node)
{
	const char *value = r->value ? r->value : "";
	const size_t size = r->size ? r->size : strlen(value);
	uint64_t stale;

	if (!strcmp(r->what, "set"))
		return h5_vfs_setxattr(scene.vfs, node, r->second, value, size, (int)r->flags);
	if (!strcmp(r->what, "remove"))
		return h5_vfs_removexattr(scene.vfs, node, r->second);
	if (!strcmp(r->what, "open"))
		return do_open(r, node);
	if (!strcmp(r->what, "truncate"))
		return h5_vfs_truncate(scene.vfs, node, NULL, r->size, &stale);
	if (!strcmp(r->what, "readlink"))
		return h5_vfs_readlink(node, &value);
	return !strcmp(r->what, "opendir") ? do_opendir(node) : 1;
}

/* Requests that make a name. 1: it is no such request. */
static int make(const struct request *r, struct h5_node *parent, const char *name)
{
	struct h5_vfs_entry entry = {0};
	int rc;

	if (!strcmp(r->what, "mkdir")) {
		rc = h5_vfs_mkdir(scene.vfs, parent, name, &entry);
	} else if (!strcmp(r->what, "mknod")) {
		rc = h5_vfs_mknod(scene.vfs, parent, name, &entry);
	} else if (!strcmp(r->what, "lookup")) {
		rc = h5_vfs_lookup(scene.vfs, parent, name, &entry);
	} else if (!strcmp(r->what, "symlink")) {
		rc = h5_vfs_symlink(scene.vfs, r->second, parent, name, &entry);
	} else if (!strcmp(r->what, "link")) {
		rc = h5_vfs_link(scene.vfs, second_node, parent, name, &entry);
	} else {
		return 1;
	}
	if (!rc)
		h5_vfs_forget(scene.vfs, entry.node, 1);
	return rc;
}

static int do_rename(const struct request *r, struct h5_node *parent, const char *name)
{
	int rc = h5_vfs_rename(scene.vfs, parent, name, second_parent, second_name, r->flags);

	if (rc == -ESTALE) /* the kernel asks again */
		rc = h5_vfs_rename(scene.vfs, parent, name, second_parent, second_name, r->flags);
	return rc;
}

static int ask_in(const struct request *r, struct h5_node *parent, const char *name)
{
	int rc = make(r, parent, name);

	if (rc <= 0)
		return rc;
	if (!strcmp(r->what, "create"))
		return do_create(r, parent, name);
	if (!strcmp(r->what, "unlink"))
		return h5_vfs_unlink(scene.vfs, parent, name);
	if (!strcmp(r->what, "rmdir"))
		return h5_vfs_rmdir(scene.vfs, parent, name);
	ck_assert_str_eq(r->what, "rename");
	return do_rename(r, parent, name);
}

int request_ask(const struct request *r)
{
	static const char *const about[] = {"set", "remove", "open", "truncate", "readlink", "opendir"};
	const char *name = NULL;
	struct h5_node *node;
	int rc;

	h5_error_clear();
	for (unsigned i = 0; i < sizeof about / sizeof *about; i++)
		if (!strcmp(about[i], r->what)) {
			node = request_find(r->path);
			request_fault_begin();
			rc = ask_about(r, node);
			request_fault_end();
			request_forget(node);
			return rc;
		}
	node = find_parent(r->path, &name);
	second_parent = !strcmp(r->what, "rename") ? find_parent(r->second, &second_name) : NULL;
	second_node = !strcmp(r->what, "link") ? request_find(r->second) : NULL;
	request_fault_begin();
	rc = ask_in(r, node, name);
	request_fault_end();
	if (second_parent)
		request_forget(second_parent);
	if (second_node)
		request_forget(second_node);
	request_forget(node);
	return rc;
}

uint64_t request_digest(void)
{
	uint64_t d;

	SUCCEEDS(vfs_digest(scene.vfs, &d));
	return d;
}

/* Writes all of a file. */
void request_write(const char *path, int flags, const void *data, size_t n)
{
	struct h5_node *node = request_find(path);
	struct h5_handle *handle;
	uint64_t stale;
	size_t written;

	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, flags, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, data, n, H5_WRITE_AT, &written, &stale));
	ck_assert_uint_eq(written, n);
	SUCCEEDS(h5_vfs_flush(handle));
	h5_vfs_close_file(handle);
	request_forget(node);
}

void request_check_bytes(const char *path, const void *data, size_t n)
{
	struct h5_node *node = request_find(path);
	struct h5_handle *handle;
	uint8_t bytes[512];
	size_t got;

	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle));
	SUCCEEDS(h5_vfs_read(handle, 0, bytes, sizeof bytes, &got));
	ck_assert_uint_eq(got, n);
	ck_assert(!memcmp(bytes, data, n));
	h5_vfs_close_file(handle);
	request_forget(node);
}

uint64_t request_size(const char *path)
{
	struct h5_node *node = request_find(path);
	struct stat st;

	SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
	request_forget(node);
	return (uint64_t)st.st_size;
}

uint64_t request_address(const char *path)
{
	struct h5_node *node = request_find(path);
	uint64_t address = node->entity.address;

	request_forget(node);
	return address;
}

int request_open_group(const char *subdir)
{
	const struct h5_vfs_options options = {
		.writable = true, .subdir = subdir, .gather = 1 << 20, .file_fd = -1};

	return h5_vfs_open(scene.set, &options, &scene.vfs);
}

/* ---- the file, and one beside it ---- */

const int32_t request_elements[6] = {1, 2, 3, 40, 50, 60};
char request_npy[128 + 12]; /* a file of three elements */

void request_begin(void)
{
	memset(request_npy, ' ', 128);
	memcpy(request_npy, "\x93NUMPY\1\0\x76\0{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }",
	       10 + 57);
	request_npy[127] = '\n';
	memcpy(request_npy + 128, request_elements, 12);
	snprintf(other_path, sizeof other_path, "%s/other.h5", scratch_folder());
	SUCCEEDS(h5_new_file_make(other_path, 3, 1));
	request_open(other_path, true, NULL);
	ASK("mkdir", "below");
	ASK("mknod", "file");
	request_close();
	snprintf(scene.path, sizeof scene.path, "%s/main.h5", scratch_folder());
	SUCCEEDS(h5_new_file_make(scene.path, 3, 1));
	request_open(scene.path, true, NULL);
	ASK("mkdir", "group");
	ASK("mkdir", "group/sub");
	ASK("mkdir", "empty");
	ASK("mknod", "group/file");
	request_write("group/file", O_WRONLY, "some bytes", 10);
	ASK("link", "group/again", "group/file");
	ASK("mknod", "data");
	ASK("set", "data", "h5fs.info", "{\"dtype\":\"<i4\",\"shape\":\"6\",\"maxshape\":\"inf\"}");
	request_write("data", O_WRONLY, request_elements, sizeof request_elements);
	ASK("mknod", "fixed");
	ASK("set", "fixed", "h5fs.info", "{\"dtype\":\"<i4\",\"shape\":\"6\",\"maxshape\":\"6\"}");
	request_write("fixed", O_WRONLY, request_elements, sizeof request_elements);
	ASK("mknod", "new");
	ASK("mknod", "declared");
	ASK("set", "declared", "h5fs.dtype", "<i4");
	ASK("set", "data", "user.number", "5");
	ASK("set", "data", "user.text", "words");
	ASK("set", "group", "user.text", "words");
	ASK("symlink", "soft", "group/file");
	ASK("symlink", "into", "group/sub");
	ASK("symlink", "outside", "extlink:other.h5//");
	ASK("symlink", "far", "extlink:other.h5//file");
	SUCCEEDS(h5_vfs_commit(scene.vfs));
}

void request_end(void)
{
	request_close();
	/* A commit that failed may have left a journal. */
	scratch_run("rm -r '%s'/*", scratch_folder());
}
