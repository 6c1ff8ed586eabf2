/* A mount without FUSE, for tests that need to know each write: requests come on standard input, a line each,
 * with tabs between the words; for each a line is answered.
 *
 *	vfs_shell FILE [RECORD]
 *	vfs_shell --reclaim FILE RECORD
 *
 *	mkdir PATH		rmdir PATH		unlink PATH
 *	rename PATH PATH FLAGS	link PATH PATH		symlink TARGET PATH
 *	set PATH XATTR VALUE	remove PATH XATTR	commit
 *	fsync-directory PATH
 *	hold PATH		looks the path up and forgets it only at the end
 *	digest			a hash of all that the mount shows
 *	release			gives unused space back to the file system
 *
 * of files, which are known by a number N:
 *
 *	create PATH N		open PATH N FLAGS	close N
 *	write N OFFSET BYTES SEED	byte i of the file becomes SEED + 7 * i + 13 * (i / 256)
 *	text N TEXT		at the end; | in the text is a newline
 *	put PATH FLAGS HEX	makes or opens the file, writes these bytes, closes it
 *	resize N SIZE		punch N OFFSET BYTES
 *	fsync N			flush N
 *
 * and faults:
 *
 *	fail N ERROR		the N-th call to write, resize or sync from now on fails; 0: none
 *	fail-all N ERROR	and all calls after it
 *	fail-memory N		the N-th allocation of the next request fails
 *	fail-read N		the N-th call to read of the next request fails
 *
 * With --reclaim it does what h5fs --reclaim does, and nothing else.
 *
 * The answer: the error, or 0; how many calls have been recorded; 1 if a fault has happened since it was
 * asked for, else 0; and the hash. In the end, RECORD has all calls (fault_io_save()). Paths are below the
 * root, without a slash at the ends; "" is the root. */
#include "base/error.h"
#include "base/interrupt.h"
#include "change/open.h"
#include "fault_alloc.h"
#include "fault_call.h"
#include "fault_io.h"
#include "offline/offline.h"
#include "vfs/vfs.h"
#include "vfs_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 5, LINE = 200000, HELD = 64, FILES = 64 };

struct shell {
	struct fault_io fault;
	struct h5_file_set *set;
	struct h5_vfs *vfs;
	struct h5_node *held[HELD];
	unsigned count;
	struct h5_handle *files[FILES];
	struct h5_node *nodes[FILES]; /* of the files */
	unsigned long fail_memory, fail_read;
	bool fired;
	uint64_t digest;
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
		if (rc == -ESTALE) /* the kernel asks again */
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

static int run_fsync_directory(struct shell *s, char *words[WORDS])
{
	struct h5_node *node;
	int rc = find(s, words[1], &node);

	if (rc)
		return rc;
	rc = h5_vfs_fsync_directory(s->vfs, node);
	forget(s, node);
	return rc;
}

static int run_hold(struct shell *s, char *words[WORDS])
{
	struct h5_node *node;
	int rc = s->count < HELD ? find(s, words[1], &node) : -EMFILE;

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

/* ---- files ---- */

static unsigned long number(const char *word)
{
	return strtoul(word, NULL, 10);
}

static unsigned file_number(const char *word)
{
	return (unsigned)(number(word) % FILES);
}

static int run_create(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[2]);
	struct h5_vfs_entry entry;
	struct h5_node *parent;
	const char *name;
	int rc = s->files[i] ? -EMFILE : find_parent(s, words[1], &parent, &name);

	if (rc)
		return rc;
	rc = h5_vfs_create(s->vfs, parent, name, O_RDWR | O_CREAT | O_EXCL, &entry, &s->files[i]);
	if (!rc)
		s->nodes[i] = entry.node;
	forget(s, parent);
	return rc;
}

static int run_open(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[2]);
	struct h5_node *node;
	int rc = s->files[i] ? -EMFILE : find(s, words[1], &node);

	if (rc)
		return rc;
	rc = h5_vfs_open_file(s->vfs, node, (int)number(words[3]), &s->files[i]);
	if (rc)
		forget(s, node);
	else
		s->nodes[i] = node;
	return rc;
}

static void close_number(struct shell *s, unsigned i)
{
	if (!s->files[i])
		return;
	h5_vfs_close_file(s->files[i]);
	forget(s, s->nodes[i]);
	s->files[i] = NULL;
}

static int run_close(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[1]);
	int rc = s->files[i] ? h5_vfs_flush(s->files[i]) : -EBADF;

	close_number(s, i);
	return rc;
}

/* As the kernel does it after a write or a change of the size. */
static void tell_size(struct shell *s, unsigned i, uint64_t stale)
{
	if (stale != H5_NOT_STALE)
		h5_vfs_tell_size(s->vfs, s->nodes[i]);
}

static int run_write(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[1]);
	uint64_t offset = number(words[2]), seed = number(words[4]), stale, at;
	size_t n = number(words[3]), written = 0;
	uint8_t *data = malloc(n + 1);
	int rc = !data ? -ENOMEM : s->files[i] ? 0 : -EBADF;

	for (size_t j = 0; j < n && !rc; j++) {
		at = offset + j;
		data[j] = (uint8_t)(seed + 7 * at + 13 * (at / 256));
	}
	for (size_t done = 0; done < n && !rc; done += written) {
		rc = h5_vfs_write(s->files[i], offset + done, data + done, n - done, H5_WRITE_AT, &written,
				  &stale);
		if (!rc)
			tell_size(s, i, stale);
	}
	free(data);
	return rc;
}

static int write_at_end(struct shell *s, unsigned i, const char *data, size_t n)
{
	size_t written = 0;
	uint64_t stale;
	int rc = 0;

	for (size_t done = 0; done < n && !rc; done += written) {
		rc = h5_vfs_write(s->files[i], 0, data + done, n - done, H5_WRITE_APPEND, &written, &stale);
		if (!rc)
			tell_size(s, i, stale);
	}
	return rc;
}

static int run_text(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[1]);
	for (char *c = words[2]; *c; c++)
		if (*c == '|')
			*c = '\n';
	return s->files[i] ? write_at_end(s, i, words[2], strlen(words[2])) : -EBADF;
}

/* Makes the bytes of the hex digits out of them, in their place. */
static size_t read_hex(char *hex)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++)
		hex[i] = (char)strtoul((char[3]){hex[2 * i], hex[2 * i + 1]}, NULL, 16);
	return n;
}

static int make_or_open(struct shell *s, char *path, int flags, unsigned i)
{
	struct h5_vfs_entry entry;
	struct h5_node *parent;
	const char *name;
	int rc = find_parent(s, path, &parent, &name);

	if (rc)
		return rc;
	rc = h5_vfs_lookup(s->vfs, parent, name, &entry);
	if (rc == -ENOENT) {
		rc = h5_vfs_create(s->vfs, parent, name, flags | O_CREAT, &entry, &s->files[i]);
	} else if (!rc) {
		rc = h5_vfs_open_file(s->vfs, entry.node, flags, &s->files[i]);
		if (rc)
			forget(s, entry.node);
	}
	if (!rc)
		s->nodes[i] = entry.node;
	forget(s, parent);
	return rc;
}

static int run_put(struct shell *s, char *words[WORDS])
{
	const unsigned i = FILES - 1;
	int rc = s->files[i] ? -EMFILE : make_or_open(s, words[1], (int)number(words[2]), i), flushed;

	if (rc)
		return rc;
	rc = write_at_end(s, i, words[3], read_hex(words[3]));
	flushed = h5_vfs_flush(s->files[i]);
	close_number(s, i);
	return rc ? rc : flushed;
}

static int run_resize(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[1]);
	uint64_t stale;
	int rc = s->files[i] ? 0 : -EBADF;

	if (!rc)
		rc = h5_vfs_truncate(s->vfs, s->nodes[i], s->files[i], number(words[2]), &stale);
	if (!rc)
		tell_size(s, i, stale);
	return rc;
}

static int run_punch(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[1]);

	return s->files[i] ? h5_vfs_fallocate(s->files[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					      number(words[2]), number(words[3]))
			   : -EBADF;
}

static int run_fsync(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[1]);

	return s->files[i] ? h5_vfs_fsync(s->files[i]) : -EBADF;
}

static int run_flush(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[1]);

	return s->files[i] ? h5_vfs_flush(s->files[i]) : -EBADF;
}

/* ---- faults ---- */

static int run_fail(struct shell *s, char *words[WORDS])
{
	fault_io_disarm(&s->fault);
	fault_io_arm(&s->fault, number(words[1]));
	s->fault.error = *words[2] ? -(int)number(words[2]) : -EIO;
	s->fault.lasting = !strcmp(words[0], "fail-all");
	s->fired = false;
	return 0;
}

static int run_fail_memory(struct shell *s, char *words[WORDS])
{
	s->fail_memory = number(words[1]);
	return 0;
}

static int run_fail_read(struct shell *s, char *words[WORDS])
{
	s->fail_read = number(words[1]);
	return 0;
}

static const struct request requests[] = {
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
	{"create", run_create},
	{"open", run_open},
	{"close", run_close},
	{"write", run_write},
	{"text", run_text},
	{"put", run_put},
	{"resize", run_resize},
	{"punch", run_punch},
	{"fsync-directory", run_fsync_directory},
	{"fsync", run_fsync},
	{"flush", run_flush},
	{"fail", run_fail},
	{"fail-all", run_fail},
	{"fail-memory", run_fail_memory},
	{"fail-read", run_fail_read},
};

/* Runs the request with the faults that were asked for. */
static int run_request(struct shell *s, const struct request *request, char *words[WORDS])
{
	const bool arms = !strncmp(request->name, "fail", 4);
	int rc;

	if (!arms && s->fail_memory)
		fault_alloc_arm(s->fail_memory);
	if (!arms && s->fail_read)
		fault_call_arm(CALL_FAILS, s->fail_read, false);
	fault_alloc_count(!arms);
	rc = request->run(s, words);
	fault_alloc_count(false);
	if (arms)
		return rc;
	if (s->fail_memory || s->fail_read) {
		bool memory = fault_alloc_disarm(), read = fault_call_disarm();

		s->fired = memory || read;
		s->fail_memory = s->fail_read = 0;
	} else if (s->fault.fail) {
		s->fired = s->fault.calls >= s->fault.fail;
	}
	return rc;
}

static int run(struct shell *s, char *line)
{
	static char none[] = "";
	char *words[WORDS] = {none, none, none, none, none};

	line[strcspn(line, "\n")] = 0;
	for (unsigned i = 0; i < WORDS && line; i++)
		words[i] = strsep(&line, "\t");
	h5_error_clear();
	h5_interrupt_begin(NULL, NULL);
	for (unsigned i = 0; i < sizeof requests / sizeof *requests; i++)
		if (!strcmp(requests[i].name, words[0]))
			return run_request(s, &requests[i], words);
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

	for (unsigned i = 0; i < FILES; i++)
		close_number(s, i);
	while (s->count)
		forget(s, s->held[--s->count]);
	rc = h5_vfs_finish(s->vfs);
	h5_vfs_close(s->vfs);
	h5_file_set_close(s->set);
	return rc;
}

/* Gives unused space of the file back. */
static int reclaim(struct shell *s, const char *path)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20,
						    .chunk_cache = 1 << 20,
						    .lock = H5_LOCK_ALWAYS,
						    .writable = true,
						    .reclaims = true,
						    .check = h5_vfs_check_object,
						    .wrap = fault_io_wrap,
						    .wrap_arg = &s->fault};
	enum h5_offline_result result = H5_OFFLINE_DAMAGED;
	int rc = h5_open_file(path, &options, &s->set, NULL);

	if (rc)
		return rc;
	rc = h5_offline_reclaim(s->set, path, NULL, &result);
	h5_file_set_close(s->set);
	return rc || result == H5_OFFLINE_SOUND ? rc : -EUCLEAN;
}

int main(int argc, char **argv)
{
	static char line[LINE];
	struct shell s = {.fault = {.record = argc > 2, .error = -EIO}};
	int rc;

	if (argc == 4 && !strcmp(argv[1], "--reclaim")) {
		rc = reclaim(&s, argv[2]);
	} else {
		if (argc < 2 || open_file(&s, argv[1]))
			return 2;
		while (fgets(line, sizeof line, stdin)) {
			rc = run(&s, line);
			printf("%d %zu %d %016jx\n", -rc, s.fault.count, s.fired, (uintmax_t)s.digest);
			fflush(stdout);
		}
		rc = close_file(&s);
	}
	if (!rc && argc > 2)
		rc = fault_io_save(&s.fault, argv[argc - 1]);
	fault_io_release(&s.fault);
	if (rc)
		fprintf(stderr, "%s\n", strerror(-rc));
	return rc ? 1 : 0;
}
