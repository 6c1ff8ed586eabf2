/* Objects, names and attributes are made, changed and removed in a file, with remounts in between; what no
 * request names stays as it was, and a sound file stays sound. */
#include "base/error.h"
#include "base/interrupt.h"
#include "fuzz.h"
#include "mount.h"
#include "untouched.h"
#include "vfs/handle.h"
#include "vfs/node.h"
#include "write.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	NODES = 24,
	NAMES = 32,  /* that were found */
	HANDLES = 4, /* that are open at once */
	DEPTH = 64,  /* entries of a directory that are looked at */
	WRITE_MAX = 40000,
};

struct scene {
	struct fuzz_mount mount;
	struct fuzz_objects objects;
	struct h5_node *nodes[NODES]; /* referenced, but for the first, the root */
	unsigned node_count;
	char names[NAMES][256];
	unsigned name_count;
	struct h5_handle *handles[HANDLES];
	bool sound;
};

/* ---- what requests are about ---- */

static void add_name(struct scene *s, const char *name)
{
	if (s->name_count < NAMES)
		strncpy(s->names[s->name_count++], name, sizeof s->names[0] - 1);
}

static void add_attributes(struct scene *s, struct h5_node *node)
{
	struct h5_buf names;

	h5_buf_init(&names, SIZE_MAX);
	fuzz_request(&s->mount.budget);
	h5_vfs_listxattr(s->mount.vfs, node, &names);
	for (size_t i = 0; i < names.size; i += strlen(names.data + i) + 1)
		add_name(s, names.data + i + strlen("user."));
	h5_buf_release(&names);
}

static void add_entries(struct scene *s, struct h5_node *directory)
{
	struct h5_vfs_entry entry;
	struct h5_dir *dir;

	fuzz_request(&s->mount.budget);
	if (h5_vfs_opendir(s->mount.vfs, directory, &dir))
		return;
	for (size_t i = 0; i < h5_vfs_dir_count(dir) && i < DEPTH; i++) {
		add_name(s, h5_vfs_dir_name(dir, i));
		fuzz_request(&s->mount.budget);
		if (s->node_count < NODES &&
		    !h5_vfs_lookup(s->mount.vfs, directory, h5_vfs_dir_name(dir, i), &entry))
			s->nodes[s->node_count++] = entry.node;
	}
	h5_vfs_closedir(dir);
}

static bool begin(struct scene *s)
{
	if (!fuzz_mount_open(&s->mount, true))
		return false;
	s->node_count = s->name_count = 0;
	s->nodes[s->node_count++] = h5_vfs_root(s->mount.vfs);
	for (unsigned i = 0; i < s->node_count; i++) {
		add_entries(s, s->nodes[i]);
		add_attributes(s, s->nodes[i]);
	}
	return true;
}

static void close_handle(struct scene *s, unsigned i)
{
	fuzz_request(&s->mount.budget);
	if (s->handles[i]) {
		h5_vfs_flush(s->handles[i]);
		h5_vfs_close_file(s->handles[i]);
	}
	s->handles[i] = NULL;
}

static void end(struct scene *s)
{
	for (unsigned i = 0; i < HANDLES; i++)
		close_handle(s, i);
	fuzz_request(&s->mount.budget);
	h5_vfs_finish(s->mount.vfs);
	fuzz_mount_close(&s->mount);
}

static void touch(struct scene *s, const struct h5_node *node)
{
	if (node->entity.file)
		fuzz_objects_touch(&s->objects, node->entity.address);
}

static struct h5_node *node_at(struct scene *s, uint8_t n)
{
	struct h5_node *node = s->nodes[n % s->node_count];

	touch(s, node);
	return node;
}

/* The directory of a request, and the name there, whose object is touched, too. */
static struct h5_node *directory_at(struct scene *s, uint8_t n, const char *name)
{
	struct h5_node *node = node_at(s, n);
	struct h5_vfs_entry entry;

	fuzz_request(&s->mount.budget);
	if (!h5_vfs_lookup(s->mount.vfs, node, name, &entry)) {
		touch(s, entry.node);
		h5_vfs_forget(s->mount.vfs, entry.node, 1);
	}
	fuzz_request(&s->mount.budget);
	return node;
}

/* As the kernel passes them: neither empty, `.` nor `..`, and without slashes. */
static const char *name_at(const struct scene *s, uint8_t n)
{
	static const char *const others[] = {
		"a",
		"b",
		"new",
		"%2F",
		"%",
		"%2E%2E",
		"%25%2F",
		"%41",
		"%2f",
		"%2",
		"%00",
		"caf\xc3",
		"\xff",
		"%~",
		".h5fs",
		"a%~0123456789abcdef",
		"very long name: 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 "
		"0123456789 "
		"0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 "
		"0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 012345",
	};

	if (n < 128 && s->name_count && *s->names[n % s->name_count])
		return s->names[n % s->name_count];
	return others[n % (sizeof others / sizeof *others)];
}

/* ---- requests: eight bytes each, the first of which tells which it is ---- */

/* Keeps the node that a request has made. */
static void keep(struct scene *s, int rc, const struct h5_vfs_entry *entry)
{
	if (rc)
		return;
	touch(s, entry->node);
	if (s->node_count < NODES)
		s->nodes[s->node_count++] = entry->node;
	else
		h5_vfs_forget(s->mount.vfs, entry->node, 1);
}

static void make_directory(struct scene *s, const uint8_t *q)
{
	const char *name = name_at(s, q[2]);
	struct h5_node *parent = directory_at(s, q[1], name);
	struct h5_vfs_entry entry;

	keep(s, h5_vfs_mkdir(s->mount.vfs, parent, name, &entry), &entry);
}

static void write_bytes(struct scene *s, struct h5_handle *handle, uint64_t offset, size_t n, uint8_t value)
{
	static const enum h5_write_where wheres[] = {H5_WRITE_AT, H5_WRITE_APPEND, H5_WRITE_INSIDE};
	uint8_t bytes[WRITE_MAX];
	size_t written;
	uint64_t stale;

	touch(s, handle->node);
	memset(bytes, value, n % WRITE_MAX);
	fuzz_request(&s->mount.budget);
	if (!h5_vfs_write(handle, offset, bytes, n % WRITE_MAX, wheres[value % 3], &written, &stale) &&
	    stale != H5_NOT_STALE)
		h5_vfs_tell_size(s->mount.vfs, handle->node);
}

static void create(struct scene *s, const uint8_t *q)
{
	const char *name = name_at(s, q[2]);
	struct h5_node *parent = directory_at(s, q[1], name);
	int flags = O_RDWR | (q[3] & 1 ? O_TRUNC : 0) | (q[3] & 2 ? O_EXCL : 0);
	unsigned i = q[3] / 4 % HANDLES;
	struct h5_vfs_entry entry;
	int rc;

	close_handle(s, i);
	fuzz_request(&s->mount.budget);
	rc = h5_vfs_create(s->mount.vfs, parent, name, flags, &entry, &s->handles[i]);
	if (rc)
		s->handles[i] = NULL;
	keep(s, rc, &entry);
	if (!rc)
		write_bytes(s, s->handles[i], 0, q[4] * 16u, q[5] * 3);
	if (q[6] & 1)
		close_handle(s, i);
}

static void open_node(struct scene *s, const uint8_t *q)
{
	static const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_TRUNC};
	unsigned i = q[3] / 4 % HANDLES;

	close_handle(s, i);
	fuzz_request(&s->mount.budget);
	if (h5_vfs_open_file(s->mount.vfs, node_at(s, q[1]), modes[q[3] % 4], &s->handles[i]))
		s->handles[i] = NULL;
}

/* Something through an open file. */
static void use_handle(struct scene *s, const uint8_t *q)
{
	struct h5_handle *handle = s->handles[q[1] % HANDLES];
	uint64_t offset = q[3] * (q[4] & 1 ? 1u : 997u), stale;
	char data[256];
	size_t got;

	if (!handle)
		return;
	touch(s, handle->node);
	fuzz_request(&s->mount.budget);
	switch (q[2] % 6) {
	case 0:
		h5_vfs_fallocate(handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, q[5] * 256u);
		break;
	case 1:
		if (!h5_vfs_truncate(s->mount.vfs, handle->node, handle, offset, &stale) &&
		    stale != H5_NOT_STALE)
			h5_vfs_tell_size(s->mount.vfs, handle->node);
		break;
	case 2:
		h5_vfs_fsync(handle);
		break;
	case 3:
		if (!h5_vfs_read(handle, offset, data, sizeof data, &got))
			fuzz_touch(data, got);
		break;
	case 4:
		close_handle(s, q[1] % HANDLES);
		break;
	default:
		write_bytes(s, handle, offset, q[5] * (q[4] & 2 ? 1u : 64u), q[6]);
	}
}

static void remove_name(struct scene *s, const uint8_t *q)
{
	const char *name = name_at(s, q[2]);
	struct h5_node *parent = directory_at(s, q[1], name);

	if (q[3] & 1)
		h5_vfs_rmdir(s->mount.vfs, parent, name);
	else
		h5_vfs_unlink(s->mount.vfs, parent, name);
}

static void rename_name(struct scene *s, const uint8_t *q)
{
	const char *from = name_at(s, q[2]), *to = name_at(s, q[4]);
	struct h5_node *parent = directory_at(s, q[1], from);

	for (int rc = -ESTALE, i = 0; rc == -ESTALE && i < 2; i++) /* the kernel asks again */
		rc = h5_vfs_rename(s->mount.vfs, parent, from, directory_at(s, q[3], to), to, q[5] % 4);
}

static void add_link(struct scene *s, const uint8_t *q)
{
	const char *name = name_at(s, q[3]);
	struct h5_node *node = node_at(s, q[1]), *parent = directory_at(s, q[2], name);
	struct h5_vfs_entry entry;

	keep(s, h5_vfs_link(s->mount.vfs, node, parent, name, &entry), &entry);
}

static void add_symlink(struct scene *s, const uint8_t *q)
{
	static const char *const targets[] = {
		"a/b/",		  "..",		"../../..", "/a", "extlink:f//a/b",
		"extlink:f",	  "udlink:65",	"%2E%2E",   ".",  "extlink:f\x01//",
		"%zz/%2F//a/./b", "extlink://", "\xff"};
	const char *name = name_at(s, q[2]);
	struct h5_node *parent = directory_at(s, q[1], name);
	unsigned n = q[3] % (sizeof targets / sizeof *targets + 1);
	struct h5_vfs_entry entry;

	keep(s, h5_vfs_symlink(s->mount.vfs, n ? targets[n - 1] : name_at(s, q[4]), parent, name, &entry),
	     &entry);
}

static const char *xattr_at(const struct scene *s, uint8_t n, char whole[300])
{
	static const char *const own[] = {"h5fs.dtype",	  "h5fs.shape", "h5fs.maxshape", "h5fs.chunks",
					  "h5fs.filters", "h5fs.fill",	"h5fs.info",	 "h5fs.comment",
					  "h5fs.storage", "h5fs.none",	"user.",	 "h5fs.type."};
	static const char *const prefixes[] = {"user.", "user.", "h5fs.type.", "h5fs.raw."};

	if (n >= 192)
		return own[n % (sizeof own / sizeof *own)];
	snprintf(whole, 300, "%s%s", prefixes[n / 32 % 4], name_at(s, n % 32 + (n & 128)));
	return whole;
}

static size_t value_at(const struct scene *s, const uint8_t *q, char value[4096])
{
	static const char *const values[] = {
		"5",
		"[1,2,3]",
		"0.5",
		"text",
		"",
		"null",
		"TRUE",
		"\"Infinity\"",
		"<i4",
		"(3,)<i4",
		"S10",
		"vlen str",
		">f8",
		"|u1",
		"[[\"a\",\"<i4\"],[\"b\",\"<f8\",[3]]]",
		"(2,2)|V3",
		"0",
		"6,2",
		"inf",
		"inf,2",
		"2,2",
		"3",
		"",
		"shuffle,deflate(4)",
		"fletcher32",
		"lzf",
		"none",
		"{\"dtype\":\"<f4\",\"shape\":\"0,4\",\"filters\":\"shuffle,deflate(4)\"}",
		"{\"shape\":\"18446744073709551615,2\"}",
		"{\"chunks\":\"1\",\"maxshape\":\"inf\"}",
		"{\"dtype\":",
		"[[[[",
		"[\"/\",null]",
		"/",
		"-9223372036854775809",
		"1e400",
	};
	unsigned n = q[3] % (sizeof values / sizeof *values + 4);
	size_t size;

	if (n >= 4) {
		size = strlen(values[n - 4]);
		memcpy(value, values[n - 4], size);
	} else if (n >= 2) {
		size = q[4] * 16u;
		memset(value, q[5], size);
	} else {
		size = strlen(name_at(s, q[4]));
		memcpy(value, name_at(s, q[4]), size);
	}
	return size;
}

static void set_attribute(struct scene *s, const uint8_t *q)
{
	struct h5_node *node = node_at(s, q[1]);
	char whole[300], value[4096];
	const char *name = xattr_at(s, q[2], whole);
	size_t size = value_at(s, q, value);

	fuzz_request(&s->mount.budget);
	h5_vfs_setxattr(s->mount.vfs, node, name, value, size, q[6] % 4);
}

static void remove_attribute(struct scene *s, const uint8_t *q)
{
	struct h5_node *node = node_at(s, q[1]);
	char whole[300];

	fuzz_request(&s->mount.budget);
	h5_vfs_removexattr(s->mount.vfs, node, xattr_at(s, q[2], whole));
}

static void look(struct scene *s, const uint8_t *q)
{
	struct h5_node *node = s->nodes[q[1] % s->node_count];
	struct h5_vfs_entry entry;
	struct h5_buf out;
	struct stat st;

	fuzz_request(&s->mount.budget);
	h5_vfs_getattr(s->mount.vfs, node, &st);
	if (!h5_vfs_lookup(s->mount.vfs, node, name_at(s, q[2]), &entry))
		h5_vfs_forget(s->mount.vfs, entry.node, 1);
	h5_buf_init(&out, SIZE_MAX);
	h5_vfs_getxattr(s->mount.vfs, node, "h5fs.info", &out);
	h5_vfs_find_path(s->mount.vfs, node, &out);
	h5_buf_release(&out);
}

static void truncate_node(struct scene *s, const uint8_t *q)
{
	struct h5_node *node = node_at(s, q[1]);
	uint64_t stale;

	fuzz_request(&s->mount.budget);
	if (!h5_vfs_truncate(s->mount.vfs, node, NULL, q[2] * (q[3] & 1 ? 1u : 16u), &stale) &&
	    stale != H5_NOT_STALE)
		h5_vfs_tell_size(s->mount.vfs, node);
}

static void commit(struct scene *s, const uint8_t *q)
{
	fuzz_request(&s->mount.budget);
	h5_vfs_commit(s->mount.vfs);
	if (q[1] & 1)
		h5_vfs_give_back(s->mount.vfs);
}

/* ---- all of it ---- */

typedef void request(struct scene *s, const uint8_t *q);

static request *const requests[] = {
	make_directory, create,	       open_node,	 use_handle, use_handle,    remove_name,
	remove_name,	rename_name,   rename_name,	 add_link,   add_symlink,   set_attribute,
	set_attribute,	set_attribute, remove_attribute, look,	     truncate_node, commit};

/* Ends the mount, and begins another. */
static bool remount(struct scene *s)
{
	end(s);
	if (begin(s))
		return true;
	FUZZ_HOLDS(s->mount.budget.checks <= 0 || !(s->sound || fuzz_objects_open(&s->objects)));
	return false;
}

static void do_requests(struct scene *s, const uint8_t *q)
{
	unsigned count = sizeof requests / sizeof *requests;

	if (!begin(s))
		return;
	for (const uint8_t *last = q + FUZZ_REQUESTS; q < last; q += FUZZ_REQUEST) {
		if (*q % (count + 1) < count)
			requests[*q % (count + 1)](s, q);
		else if (!remount(s))
			return;
	}
	end(s);
}

/* Opens the file for reading, and says whether it is sound. */
static bool look_at(struct scene *s, bool *open)
{
	bool finished = false, sound = false;

	s->mount.budget = (struct fuzz_budget)FUZZ_BUDGET;
	fuzz_wrong_checksums = 0;
	*open = fuzz_mount_open(&s->mount, false);
	if (*open)
		sound = !fuzz_mount_damage(&s->mount, &finished) && !fuzz_wrong_checksums;
	return finished && sound;
}

static bool look_before(struct scene *s)
{
	bool open;

	s->sound = look_at(s, &open);
	if (!open)
		return false;
	fuzz_objects_find(&s->objects, h5_file_set_root(s->mount.set), &s->mount.budget);
	fuzz_mount_close(&s->mount);
	return true;
}

static void look_after(struct scene *s)
{
	struct fuzz_walk walk = {.budget = &s->mount.budget};
	bool open, sound = look_at(s, &open), in_time = s->mount.budget.checks > 0;

	if (in_time)
		FUZZ_HOLDS(s->sound ? sound : open || !fuzz_objects_open(&s->objects));
	if (!open)
		return;
	fuzz_objects_compare(&s->objects, s->sound, h5_file_set_root(s->mount.set), &s->mount.budget);
	walk.vfs = s->mount.vfs;
	fuzz_walk(&walk);
	fuzz_mount_close(&s->mount);
}

void fuzz_requests(const void *arg, const uint8_t *data, size_t size)
{
	static struct scene s;

	(void)arg;
	if (size < FUZZ_REQUESTS)
		return;
	memset(&s, 0, sizeof s);
	size -= FUZZ_REQUESTS;
	fuzz_mount_begin(&s.mount, data, size);
	if (look_before(&s)) {
		do_requests(&s, data + size);
		look_after(&s);
		fuzz_objects_release(&s.objects);
	}
	fuzz_mount_end();
}
