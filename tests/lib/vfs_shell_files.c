/* Requests of vfs_shell: files that are open. */
#include "vfs_shell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned file_number(const char *word)
{
	return (unsigned)(shell_number(word) % FILES);
}

static int run_create(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[2]);
	int flags = *words[3] ? (int)shell_number(words[3]) : O_RDWR;
	struct h5_vfs_entry entry;
	struct h5_node *parent;
	const char *name;
	int rc = s->files[i] ? -EMFILE : shell_find_parent(s, words[1], &parent, &name);

	if (rc)
		return rc;
	rc = h5_vfs_create(s->vfs, parent, name, flags | O_CREAT | O_EXCL, &entry, &s->files[i]);
	if (!rc)
		s->nodes[i] = entry.node;
	shell_forget(s, parent);
	return rc;
}

static int run_open(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[2]);
	struct h5_node *node;
	int rc = s->files[i] ? -EMFILE : shell_find(s, words[1], &node);

	if (rc)
		return rc;
	rc = h5_vfs_open_file(s->vfs, node, (int)shell_number(words[3]), &s->files[i]);
	if (rc)
		shell_forget(s, node);
	else
		s->nodes[i] = node;
	return rc;
}

void shell_close(struct shell *s, unsigned i)
{
	if (!s->files[i])
		return;
	h5_vfs_close_file(s->files[i]);
	shell_forget(s, s->nodes[i]);
	s->files[i] = NULL;
}

static int run_close(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[1]);
	int rc = s->files[i] ? h5_vfs_flush(s->files[i]) : -EBADF;

	shell_close(s, i);
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
	uint64_t offset = shell_number(words[2]), seed = shell_number(words[4]), stale, at;
	size_t n = shell_number(words[3]), written = 0;
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
	int rc = shell_find_parent(s, path, &parent, &name);

	if (rc)
		return rc;
	rc = h5_vfs_lookup(s->vfs, parent, name, &entry);
	if (rc == -ENOENT) {
		rc = h5_vfs_create(s->vfs, parent, name, flags | O_CREAT, &entry, &s->files[i]);
	} else if (!rc) {
		rc = h5_vfs_open_file(s->vfs, entry.node, flags, &s->files[i]);
		if (rc)
			shell_forget(s, entry.node);
	}
	if (!rc)
		s->nodes[i] = entry.node;
	shell_forget(s, parent);
	return rc;
}

static int run_put(struct shell *s, char *words[WORDS])
{
	const unsigned i = FILES - 1;
	int rc = s->files[i] ? -EMFILE : make_or_open(s, words[1], (int)shell_number(words[2]), i), flushed;

	if (rc)
		return rc;
	rc = write_at_end(s, i, words[3], read_hex(words[3]));
	flushed = h5_vfs_flush(s->files[i]);
	shell_close(s, i);
	return rc ? rc : flushed;
}

static int run_resize(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[1]);
	uint64_t stale;
	int rc = s->files[i] ? 0 : -EBADF;

	if (!rc)
		rc = h5_vfs_truncate(s->vfs, s->nodes[i], s->files[i], shell_number(words[2]), &stale);
	if (!rc)
		tell_size(s, i, stale);
	return rc;
}

static int run_punch(struct shell *s, char *words[WORDS])
{
	unsigned i = file_number(words[1]);

	return s->files[i] ? h5_vfs_fallocate(s->files[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					      shell_number(words[2]), shell_number(words[3]))
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

const struct request shell_files[] = {
	{"create", run_create}, {"open", run_open},   {"close", run_close},   {"write", run_write},
	{"text", run_text},	{"put", run_put},     {"resize", run_resize}, {"punch", run_punch},
	{"fsync", run_fsync},	{"flush", run_flush}, {NULL, NULL},
};
