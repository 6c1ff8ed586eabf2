/* Requests of vfs_shell: directories, links, attributes, and what is of the whole mount. */
#include "vfs_digest.h"
#include "vfs_shell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

unsigned long shell_number(const char *word)
{
	return strtoul(word, NULL, 10);
}

void shell_forget(struct shell *s, struct h5_node *node)
{
	if (node != h5_vfs_root(s->vfs))
		h5_vfs_forget(s->vfs, node, 1);
}

int shell_find(struct shell *s, char *path, struct h5_node **node)
{
	struct h5_vfs_entry entry;
	int rc = 0;

	*node = h5_vfs_root(s->vfs);
	for (char *name = strtok(path, "/"); name && !rc; name = strtok(NULL, "/")) {
		rc = h5_vfs_lookup(s->vfs, *node, name, &entry);
		shell_forget(s, *node);
		*node = rc ? NULL : entry.node;
	}
	return rc;
}

int shell_find_parent(struct shell *s, char *path, struct h5_node **parent, const char **name)
{
	char *slash = strrchr(path, '/');

	*name = slash ? slash + 1 : path;
	if (slash)
		*slash = 0;
	return shell_find(s, slash ? path : "", parent);
}

static int forget_entry(struct shell *s, int rc, const struct h5_vfs_entry *entry)
{
	if (!rc)
		shell_forget(s, entry->node);
	return rc;
}

static int run_mkdir(struct shell *s, char *words[WORDS])
{
	struct h5_vfs_entry entry;
	struct h5_node *parent;
	const char *name;
	int rc = shell_find_parent(s, words[1], &parent, &name);

	if (rc)
		return rc;
	rc = forget_entry(s, h5_vfs_mkdir(s->vfs, parent, name, &entry), &entry);
	shell_forget(s, parent);
	return rc;
}

static int run_rmdir(struct shell *s, char *words[WORDS])
{
	struct h5_node *parent;
	const char *name;
	int rc = shell_find_parent(s, words[1], &parent, &name);

	if (rc)
		return rc;
	rc = h5_vfs_rmdir(s->vfs, parent, name);
	shell_forget(s, parent);
	return rc;
}

static int run_unlink(struct shell *s, char *words[WORDS])
{
	struct h5_node *parent;
	const char *name;
	int rc = shell_find_parent(s, words[1], &parent, &name);

	if (rc)
		return rc;
	rc = h5_vfs_unlink(s->vfs, parent, name);
	shell_forget(s, parent);
	return rc;
}

static int run_rename(struct shell *s, char *words[WORDS])
{
	struct h5_node *from, *to;
	const char *name, *new_name;
	int rc = shell_find_parent(s, words[1], &from, &name);

	if (rc)
		return rc;
	rc = shell_find_parent(s, words[2], &to, &new_name);
	if (!rc) {
		rc = h5_vfs_rename(s->vfs, from, name, to, new_name, (unsigned)atoi(words[3]));
		if (rc == -ESTALE) /* the kernel asks again */
			rc = h5_vfs_rename(s->vfs, from, name, to, new_name, (unsigned)atoi(words[3]));
		shell_forget(s, to);
	}
	shell_forget(s, from);
	return rc;
}

static int run_link(struct shell *s, char *words[WORDS])
{
	struct h5_node *node, *parent;
	struct h5_vfs_entry entry;
	const char *name;
	int rc = shell_find(s, words[1], &node);

	if (rc)
		return rc;
	rc = shell_find_parent(s, words[2], &parent, &name);
	if (!rc) {
		rc = forget_entry(s, h5_vfs_link(s->vfs, node, parent, name, &entry), &entry);
		shell_forget(s, parent);
	}
	shell_forget(s, node);
	return rc;
}

static int run_symlink(struct shell *s, char *words[WORDS])
{
	struct h5_vfs_entry entry;
	struct h5_node *parent;
	const char *name;
	int rc = shell_find_parent(s, words[2], &parent, &name);

	if (rc)
		return rc;
	rc = forget_entry(s, h5_vfs_symlink(s->vfs, words[1], parent, name, &entry), &entry);
	shell_forget(s, parent);
	return rc;
}

static int run_set(struct shell *s, char *words[WORDS])
{
	struct h5_node *node;
	int rc = shell_find(s, words[1], &node);

	if (rc)
		return rc;
	rc = h5_vfs_setxattr(s->vfs, node, words[2], words[3], strlen(words[3]), 0);
	shell_forget(s, node);
	return rc;
}

static int run_remove(struct shell *s, char *words[WORDS])
{
	struct h5_node *node;
	int rc = shell_find(s, words[1], &node);

	if (rc)
		return rc;
	rc = h5_vfs_removexattr(s->vfs, node, words[2]);
	shell_forget(s, node);
	return rc;
}

static int run_commit(struct shell *s, char *words[WORDS])
{
	(void)words;
	return h5_vfs_commit(s->vfs);
}

static int run_fsync_directory(struct shell *s, char *words[WORDS])
{
	struct h5_node *node;
	int rc = shell_find(s, words[1], &node);

	if (rc)
		return rc;
	rc = h5_vfs_fsync_directory(s->vfs, node);
	shell_forget(s, node);
	return rc;
}

static int run_hold(struct shell *s, char *words[WORDS])
{
	struct h5_node *node;
	int rc = s->count < HELD ? shell_find(s, words[1], &node) : -EMFILE;

	if (!rc)
		s->held[s->count++] = node;
	return rc;
}

static int run_release(struct shell *s, char *words[WORDS])
{
	(void)words;
	return h5_vfs_give_back(s->vfs);
}

static int run_digest(struct shell *s, char *words[WORDS])
{
	(void)words;
	return vfs_digest(s->vfs, &s->digest);
}

const struct request shell_names[] = {
	{"mkdir", run_mkdir},
	{"rmdir", run_rmdir},
	{"unlink", run_unlink},
	{"rename", run_rename},
	{"link", run_link},
	{"set", run_set},
	{"remove", run_remove},
	{"commit", run_commit},
	{"symlink", run_symlink},
	{"hold", run_hold},
	{"digest", run_digest},
	{"release", run_release},
	{"fsync-directory", run_fsync_directory},
	{NULL, NULL},
};
