/* Replies that the kernel no longer wants, since who asked was interrupted: what they tell of is closed and
 * forgotten again, in a file that is mounted and in one of a folder. And names that the latter notes. */
#include "fault_alloc.h"
#include "fuse/log.h"
#include "fuse/operations.h"
#include "fuse/tree_operations.h"
#include "scratch.h"
#include "tree/private.h"
#include "tree_scene.h"
#include "vfs_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What the last request did. */
static struct {
	bool lost; /* the kernel wants no reply */
	unsigned replies;
	int error;
	unsigned forgotten, closed, directories_closed;
} done;

static struct h5_mount m;
static bool direct; /* files are read directly */
static fuse_req_t const request = (fuse_req_t)&m;

void *__wrap_fuse_req_userdata(fuse_req_t req);
void *__wrap_fuse_req_userdata(fuse_req_t req)
{
	ck_assert(req == request);
	return &m;
}

int __wrap_fuse_req_interrupted(fuse_req_t req);
int __wrap_fuse_req_interrupted(fuse_req_t req)
{
	ck_assert(req == request);
	return 0;
}

int __wrap_fuse_session_exited(const struct fuse_session *session);
int __wrap_fuse_session_exited(const struct fuse_session *session)
{
	ck_assert_ptr_null(session);
	return 0;
}

int __wrap_fuse_reply_err(fuse_req_t req, int error);
int __wrap_fuse_reply_err(fuse_req_t req, int error)
{
	ck_assert(req == request);
	done.error = error;
	done.replies++;
	return 0;
}

static int reply(fuse_req_t req)
{
	ck_assert(req == request);
	done.replies++;
	return done.lost ? -ENOENT : 0;
}

int __wrap_fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *e);
int __wrap_fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *e)
{
	ck_assert_uint_ne(e->ino, 0);
	return reply(req);
}

int __wrap_fuse_reply_open(fuse_req_t req, const struct fuse_file_info *fi);
int __wrap_fuse_reply_open(fuse_req_t req, const struct fuse_file_info *fi)
{
	ck_assert_uint_ne(fi->fh, 0);
	return reply(req);
}

int __wrap_fuse_reply_create(fuse_req_t req, const struct fuse_entry_param *e,
			     const struct fuse_file_info *fi);
int __wrap_fuse_reply_create(fuse_req_t req, const struct fuse_entry_param *e,
			     const struct fuse_file_info *fi)
{
	ck_assert(e->ino && fi->fh);
	ck_assert_int_eq(fi->direct_io, direct);
	return reply(req);
}

bool __wrap_h5_vfs_is_direct(const struct h5_handle *handle);
bool __wrap_h5_vfs_is_direct(const struct h5_handle *handle)
{
	ck_assert_ptr_nonnull(handle);
	return direct;
}

/* Names that are noted, with the directories. */
static char noted[200];

void __real_h5_tree_note_name(struct h5_tree *tree, struct h5_tree_node *directory,
			      const struct h5_tree_inside *in, const char *name);
void __wrap_h5_tree_note_name(struct h5_tree *tree, struct h5_tree_node *directory,
			      const struct h5_tree_inside *in, const char *name);
void __wrap_h5_tree_note_name(struct h5_tree *tree, struct h5_tree_node *directory,
			      const struct h5_tree_inside *in, const char *name)
{
	struct h5_buf path;
	size_t n = strlen(noted);

	h5_buf_init(&path, 100);
	h5_tree_path(tree, directory, &path);
	snprintf(noted + n, sizeof noted - n, "%.*s/%s ", (int)path.size, path.data, name);
	h5_buf_release(&path);
	__real_h5_tree_note_name(tree, directory, in, name);
}

/* What undoes it: in a folder the tree's functions, which call those of the file's. To close a file forgets
 * its node, too. */

static bool within; /* one of them */

/* What there is to undo in a file of a folder. */
static struct {
	unsigned created, closed, named;
	unsigned long failing; /* which allocation after the file was made; 0: none */
} inside;

int __real_h5_vfs_create(struct h5_vfs *vfs, struct h5_node *parent, const char *name, int flags,
			 struct h5_vfs_entry *entry, struct h5_handle **handle);
int __wrap_h5_vfs_create(struct h5_vfs *vfs, struct h5_node *parent, const char *name, int flags,
			 struct h5_vfs_entry *entry, struct h5_handle **handle);
int __wrap_h5_vfs_create(struct h5_vfs *vfs, struct h5_node *parent, const char *name, int flags,
			 struct h5_vfs_entry *entry, struct h5_handle **handle)
{
	int rc = __real_h5_vfs_create(vfs, parent, name, flags, entry, handle);

	inside.created += !rc;
	fault_alloc_arm(inside.failing);
	return rc;
}

int __real_h5_tree_entry(struct h5_tree *tree, struct h5_tree_node *directory, const char *name,
			 const struct h5_vfs_entry *found, struct h5_tree_entry *entry);
int __wrap_h5_tree_entry(struct h5_tree *tree, struct h5_tree_node *directory, const char *name,
			 const struct h5_vfs_entry *found, struct h5_tree_entry *entry);
int __wrap_h5_tree_entry(struct h5_tree *tree, struct h5_tree_node *directory, const char *name,
			 const struct h5_vfs_entry *found, struct h5_tree_entry *entry)
{
	int rc = __real_h5_tree_entry(tree, directory, name, found, entry);

	inside.named += !rc;
	return rc;
}

void __real_h5_vfs_forget(struct h5_vfs *vfs, struct h5_node *node, uint64_t n);
void __wrap_h5_vfs_forget(struct h5_vfs *vfs, struct h5_node *node, uint64_t n);
void __wrap_h5_vfs_forget(struct h5_vfs *vfs, struct h5_node *node, uint64_t n)
{
	done.forgotten += !m.tree && !within;
	__real_h5_vfs_forget(vfs, node, n);
}

void __real_h5_vfs_close_file(struct h5_handle *handle);
void __wrap_h5_vfs_close_file(struct h5_handle *handle);
void __wrap_h5_vfs_close_file(struct h5_handle *handle)
{
	done.closed += !m.tree;
	inside.closed++;
	within = true;
	__real_h5_vfs_close_file(handle);
	within = false;
}

void __real_h5_vfs_closedir(struct h5_dir *dir);
void __wrap_h5_vfs_closedir(struct h5_dir *dir);
void __wrap_h5_vfs_closedir(struct h5_dir *dir)
{
	done.directories_closed += !m.tree;
	within = true;
	__real_h5_vfs_closedir(dir);
	within = false;
}

void __real_h5_tree_forget(struct h5_tree *tree, struct h5_tree_node *node, uint64_t n);
void __wrap_h5_tree_forget(struct h5_tree *tree, struct h5_tree_node *node, uint64_t n);
void __wrap_h5_tree_forget(struct h5_tree *tree, struct h5_tree_node *node, uint64_t n)
{
	ck_assert_uint_eq(n, 1);
	done.forgotten++;
	__real_h5_tree_forget(tree, node, n);
}

void __real_h5_tree_close_file(struct h5_tree_handle *handle);
void __wrap_h5_tree_close_file(struct h5_tree_handle *handle);
void __wrap_h5_tree_close_file(struct h5_tree_handle *handle)
{
	done.closed++;
	__real_h5_tree_close_file(handle);
}

void __real_h5_tree_closedir(struct h5_tree_dir *dir);
void __wrap_h5_tree_closedir(struct h5_tree_dir *dir);
void __wrap_h5_tree_closedir(struct h5_tree_dir *dir)
{
	done.directories_closed++;
	__real_h5_tree_closedir(dir);
}

/* ---- requests ---- */

enum question { LOOKUP, OPEN, OPENDIR, CREATE, MKDIR, MKNOD, SYMLINK, LINK, QUESTIONS };

/* Asks in the directory, or about the file. */
static void ask(const struct fuse_lowlevel_ops *ops, enum question question, fuse_ino_t directory,
		fuse_ino_t file, const char *name)
{
	struct fuse_file_info fi = {.flags = question == CREATE ? O_RDWR | O_CREAT : O_RDONLY};

	memset(&done, 0, sizeof done);
	done.lost = true;
	if (question == LOOKUP)
		ops->lookup(request, directory, "data");
	else if (question == OPEN)
		ops->open(request, file, &fi);
	else if (question == OPENDIR)
		ops->opendir(request, directory, &fi);
	else if (question == CREATE)
		ops->create(request, directory, name, S_IFREG | 0644, &fi);
	else if (question == MKDIR)
		ops->mkdir(request, directory, name, 0755);
	else if (question == MKNOD)
		ops->mknod(request, directory, name, S_IFREG | 0644, 0);
	else if (question == SYMLINK)
		ops->symlink(request, "data", directory, name);
	else
		ops->link(request, file, directory, name);
	ck_assert_uint_eq(done.replies, 1);
	ck_assert_msg(!done.error, "%d: %d", question, done.error);
	ck_assert_uint_eq(done.forgotten, question != OPEN && question != OPENDIR);
	ck_assert_uint_eq(done.closed, question == OPEN || question == CREATE);
	ck_assert_uint_eq(done.directories_closed, question == OPENDIR);
}

static void ask_all(const struct fuse_lowlevel_ops *ops, fuse_ino_t directory, fuse_ino_t file)
{
	char name[] = "new 0";

	for (unsigned i = 0; i < QUESTIONS; i++) {
		name[4] = (char)('0' + i);
		direct = m.tree;
		ask(ops, i, directory, file, name);
	}
	memset(&done, 0, sizeof done);
}

START_TEST(in_a_file)
{
	struct h5_node *group, *data;
	struct vfs_scene scene;

	vfs_scene_open(&scene, "check_tree.h5");
	m = (struct h5_mount){
		.vfs = scene.vfs, .readahead = -1, .writable = true, .opened = ATOMIC_FLAG_INIT};
	SUCCEEDS(vfs_scene_find(&scene, "group", &group));
	SUCCEEDS(vfs_scene_find(&scene, "group/data", &data));
	ask_all(&h5_operations, h5_vfs_id(group), h5_vfs_id(data));
	h5_vfs_forget(scene.vfs, data, 1);
	h5_vfs_forget(scene.vfs, group, 1);
	vfs_scene_close(&scene);
}
END_TEST

START_TEST(in_a_folder)
{
	struct h5_tree_node *file, *group, *data;

	folder_begin();
	folder.options.set.writable = folder.options.vfs.writable = true;
	folder.options.vfs.gather = 1 << 20;
	folder_reopen();
	m = (struct h5_mount){
		.tree = folder.tree, .readahead = -1, .writable = true, .opened = ATOMIC_FLAG_INIT};
	file = folder_find(h5_tree_root(folder.tree), "a.h5");
	group = folder_find(file, "group");
	data = folder_find(group, "data");
	ask_all(&h5_tree_operations, (uintptr_t)group, (uintptr_t)data);
	ck_assert_uint_eq(file->file->uses, 0);
	folder_forget(data);
	folder_forget(group);
	folder_forget(file);
	folder_end();
}
END_TEST

/* Each allocation fails once while a file is made: what was opened and named before is closed and forgotten.
 */
START_TEST(files_that_cannot_be_made)
{
	unsigned unnamed = 0, named = 0;
	struct h5_tree_node *file;
	bool fired = true;

	folder_begin();
	folder.options.set.writable = folder.options.vfs.writable = true;
	folder.options.vfs.gather = 1 << 20;
	folder_reopen();
	m = (struct h5_mount){
		.tree = folder.tree, .readahead = -1, .writable = true, .opened = ATOMIC_FLAG_INIT};
	file = folder_find(h5_tree_root(folder.tree), "a.h5");
	h5_log_set_level(H5_LOG_QUIET);
	for (unsigned long n = 1; fired; n++) {
		struct fuse_file_info fi = {.flags = O_RDWR | O_CREAT};
		char name[20];

		snprintf(name, sizeof name, "new %lu", n);
		memset(&done, 0, sizeof done);
		memset(&inside, 0, sizeof inside);
		done.lost = true;
		direct = true;
		inside.failing = n;
		fault_alloc_count(true);
		h5_tree_operations.create(request, (uintptr_t)file, name, S_IFREG | 0644, &fi);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_uint_eq(done.replies, 1);
		/* What closes the file again can do without. */
		ck_assert(!done.error || (fired && done.error == ENOMEM));
		ck_assert_uint_eq(inside.created, 1);
		ck_assert_uint_eq(inside.closed, inside.created);
		ck_assert_uint_eq(done.forgotten, inside.named);
		ck_assert_uint_eq(done.closed, !done.error);
		ck_assert_uint_eq(file->file->uses, 0);
		unnamed += done.error && !inside.named;
		named += done.error && inside.named;
	}
	ck_assert(unnamed && named);
	h5_log_set_level(H5_LOG_NORMAL);
	folder_forget(file);
	folder_end();
}
END_TEST

/* A node in a file of a folder keeps a name by which it is found again; after an exchange both do. */
START_TEST(names_that_move)
{
	struct h5_tree_node *file, *group;

	folder_begin();
	folder.options.set.writable = folder.options.vfs.writable = true;
	folder.options.vfs.gather = 1 << 20;
	folder_reopen();
	m = (struct h5_mount){
		.tree = folder.tree, .readahead = -1, .writable = true, .opened = ATOMIC_FLAG_INIT};
	file = folder_find(h5_tree_root(folder.tree), "a.h5");
	group = folder_find(file, "group");
	for (unsigned i = 0; i < 4; i++) {
		static const struct {
			const char *from, *to; /* in the group, and in the root group */
			unsigned flags;
			int error;
			const char *noted;
		} moves[] = {{"none", "moved", 0, ENOENT, ""},
			     {"data", "moved", 0, 0, "a.h5/moved "},
			     {"third", "moved", RENAME_EXCHANGE, 0, "a.h5/moved a.h5/group/third "},
			     {"none", "moved", RENAME_EXCHANGE, ENOENT, ""}};

		memset(&done, 0, sizeof done);
		memset(noted, 0, sizeof noted);
		h5_tree_operations.rename(request, (uintptr_t)group, moves[i].from, (uintptr_t)file,
					  moves[i].to, moves[i].flags);
		ck_assert_uint_eq(done.replies, 1);
		ck_assert_int_eq(done.error, moves[i].error);
		ck_assert_str_eq(noted, moves[i].noted);
		ck_assert_uint_eq(file->file->uses, 0);
	}
	folder_forget(group);
	folder_forget(file);
	folder_end();
}
END_TEST

UNIT_MAIN("lost replies", in_a_file, in_a_folder, files_that_cannot_be_made, names_that_move)
