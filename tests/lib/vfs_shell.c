/* A mount without FUSE, for tests that need to know each write: requests come on standard input, a line each,
 * with tabs between the words; for each a line is answered.
 *
 *	vfs_shell FILE [RECORD]
 *
 *	mkdir PATH		rmdir PATH		unlink PATH
 *	rename PATH PATH FLAGS	link PATH PATH		symlink TARGET PATH
 *	set PATH XATTR VALUE	remove PATH XATTR	commit
 *	hold PATH		looks the path up and forgets it only at the end
 *	fail N			the N-th call to write, resize or sync from now on fails
 *
 * The answer: the error, or 0, and how many calls have been recorded. In the end, RECORD has all calls: for
 * each, numbers little-endian, u8 kind (enum fault_kind), u8 file (0: the HDF5 file, 1: the journal), u64
 * offset, u64 bytes, and these. Paths are below the root, without a slash at the ends; "" is the root. */
#include "base/error.h"
#include "base/interrupt.h"
#include "change/open.h"
#include "fault_io.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 4, LINE = 70000, HELD = 64 };

struct shell {
	struct fault_io fault;
	struct h5_file_set *set;
	struct h5_vfs *vfs;
	struct h5_node *held[HELD];
	unsigned count;
};

struct request {
	const char *name;
	int (*run)(struct shell *s, char *words[WORDS]);
};

static void forget(struct shell *s, struct h5_node *node)
{
	if (node != h5_vfs_root(s->vfs))
		h5_vfs_forget(s->vfs, node, 1);
}

/* The node of a path; the caller forgets it. Changes the path. */
static int find(struct shell *s, char *path, struct h5_node **node)
{
	struct h5_vfs_entry entry;
	int rc = 0;

	*node = h5_vfs_root(s->vfs);
	for (char *name = strtok(path, "/"); name && !rc; name = strtok(NULL, "/")) {
		rc = h5_vfs_lookup(s->vfs, *node, name, &entry);
		forget(s, *node);
		*node = rc ? NULL : entry.node;
	}
	return rc;
}

/* The directory above a path, which the caller forgets, and the last name of the path. */
static int find_parent(struct shell *s, char *path, struct h5_node **parent, const char **name)
{
	char *slash = strrchr(path, '/');

	*name = slash ? slash + 1 : path;
	if (slash)
		*slash = 0;
	return find(s, slash ? path : "", parent);
}

static int forget_entry(struct shell *s, int rc, const struct h5_vfs_entry *entry)
{
	if (!rc)
		forget(s, entry->node);
	return rc;
}

static int run_mkdir(struct shell *s, char *words[WORDS])
{
	struct h5_vfs_entry entry;
	struct h5_node *parent;
	const char *name;
	int rc = find_parent(s, words[1], &parent, &name);

	if (rc)
		return rc;
	rc = forget_entry(s, h5_vfs_mkdir(s->vfs, parent, name, &entry), &entry);
	forget(s, parent);
	return rc;
}

static int run_rmdir(struct shell *s, char *words[WORDS])
{
	struct h5_node *parent;
	const char *name;
	int rc = find_parent(s, words[1], &parent, &name);

	if (rc)
		return rc;
	rc = h5_vfs_rmdir(s->vfs, parent, name);
	forget(s, parent);
	return rc;
}

static int run_unlink(struct shell *s, char *words[WORDS])
{
	struct h5_node *parent;
	const char *name;
	int rc = find_parent(s, words[1], &parent, &name);

	if (rc)
		return rc;
	rc = h5_vfs_unlink(s->vfs, parent, name);
	forget(s, parent);
	return rc;
}

static int run_rename(struct shell *s, char *words[WORDS])
{
	struct h5_node *from, *to;
	const char *name, *new_name;
	int rc = find_parent(s, words[1], &from, &name);

	if (rc)
		return rc;
	rc = find_parent(s, words[2], &to, &new_name);
	if (!rc) {
		rc = h5_vfs_rename(s->vfs, from, name, to, new_name, (unsigned)atoi(words[3]));
		forget(s, to);
	}
	forget(s, from);
	return rc;
}

static int run_link(struct shell *s, char *words[WORDS])
{
	struct h5_node *node, *parent;
	struct h5_vfs_entry entry;
	const char *name;
	int rc = find(s, words[1], &node);

	if (rc)
		return rc;
	rc = find_parent(s, words[2], &parent, &name);
	if (!rc) {
		rc = forget_entry(s, h5_vfs_link(s->vfs, node, parent, name, &entry), &entry);
		forget(s, parent);
	}
	forget(s, node);
	return rc;
}

static int run_symlink(struct shell *s, char *words[WORDS])
{
	struct h5_vfs_entry entry;
	struct h5_node *parent;
	const char *name;
	int rc = find_parent(s, words[2], &parent, &name);

	if (rc)
		return rc;
	rc = forget_entry(s, h5_vfs_symlink(s->vfs, words[1], parent, name, &entry), &entry);
	forget(s, parent);
	return rc;
}

static int run_set(struct shell *s, char *words[WORDS])
{
	struct h5_node *node;
	int rc = find(s, words[1], &node);

	if (rc)
		return rc;
	rc = h5_vfs_setxattr(s->vfs, node, words[2], words[3], strlen(words[3]), 0);
	forget(s, node);
	return rc;
}

static int run_remove(struct shell *s, char *words[WORDS])
{
	struct h5_node *node;
	int rc = find(s, words[1], &node);

	if (rc)
		return rc;
	rc = h5_vfs_removexattr(s->vfs, node, words[2]);
	forget(s, node);
	return rc;
}

static int run_commit(struct shell *s, char *words[WORDS])
{
	(void)words;
	return h5_vfs_commit(s->vfs);
}

static int run_hold(struct shell *s, char *words[WORDS])
{
	struct h5_node *node;
	int rc = s->count < HELD ? find(s, words[1], &node) : -EMFILE;

	if (!rc)
		s->held[s->count++] = node;
	return rc;
}

static int run_fail(struct shell *s, char *words[WORDS])
{
	fault_io_disarm(&s->fault);
	fault_io_arm(&s->fault, strtoul(words[1], NULL, 10));
	return 0;
}

static const struct request requests[] = {
	{"mkdir", run_mkdir},	  {"rmdir", run_rmdir}, {"unlink", run_unlink}, {"rename", run_rename},
	{"link", run_link},	  {"set", run_set},	{"remove", run_remove}, {"commit", run_commit},
	{"symlink", run_symlink}, {"hold", run_hold},	{"fail", run_fail},
};

static int run(struct shell *s, char *line)
{
	static char none[] = "";
	char *words[WORDS] = {none, none, none, none};

	line[strcspn(line, "\n")] = 0;
	for (unsigned i = 0; i < WORDS && line; i++)
		words[i] = strsep(&line, "\t");
	h5_error_clear();
	h5_interrupt_begin(NULL, NULL);
	for (unsigned i = 0; i < sizeof requests / sizeof *requests; i++)
		if (!strcmp(requests[i].name, words[0]))
			return requests[i].run(s, words);
	return -ENOSYS;
}

static int open_file(struct shell *s, const char *path)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20,
						    .chunk_cache = 1 << 20,
						    .lock = H5_LOCK_ALWAYS,
						    .writable = true,
						    .check = h5_vfs_check_object,
						    .wrap = fault_io_wrap,
						    .wrap_arg = &s->fault};
	const struct h5_vfs_options vfs_options = {.writable = true, .gather = 1 << 20, .file_fd = -1};
	int rc = h5_open_file(path, &options, &s->set, NULL);

	if (!rc)
		rc = h5_vfs_open(s->set, &vfs_options, &s->vfs);
	if (rc)
		fprintf(stderr, "%s: %s: %s\n", path, strerror(-rc), h5_error_last()->text);
	return rc;
}

static int close_file(struct shell *s)
{
	int rc;

	while (s->count)
		forget(s, s->held[--s->count]);
	rc = h5_vfs_finish(s->vfs);
	h5_vfs_close(s->vfs);
	h5_file_set_close(s->set);
	return rc;
}

static void write_number(FILE *f, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		fputc((int)(v >> 8 * i & 255), f);
}

static int write_record(const struct fault_io *fault, const char *path)
{
	FILE *f = fopen(path, "wb");

	if (!f)
		return -errno;
	for (size_t i = 0; i < fault->count; i++) {
		const struct fault_event *event = &fault->events[i];
		bool has_data = event->kind == FAULT_WRITE || event->kind == FAULT_PUNCH;

		write_number(f, event->kind, 1);
		write_number(f, event->file, 1);
		write_number(f, event->offset, 8);
		write_number(f, has_data ? event->size : 0, 8);
		if (has_data)
			fwrite(event->data, 1, event->size, f);
	}
	return fclose(f) ? -errno : 0;
}

int main(int argc, char **argv)
{
	static char line[LINE];
	struct shell s = {.fault = {.record = argc > 2, .error = -EIO}};
	int rc;

	if (argc < 2 || open_file(&s, argv[1]))
		return 2;
	while (fgets(line, sizeof line, stdin)) {
		rc = run(&s, line);
		printf("%d %zu\n", -rc, s.fault.count);
		fflush(stdout);
	}
	rc = close_file(&s);
	if (!rc && argc > 2)
		rc = write_record(&s.fault, argv[2]);
	fault_io_release(&s.fault);
	if (rc)
		fprintf(stderr, "%s\n", strerror(-rc));
	return rc ? 1 : 0;
}
