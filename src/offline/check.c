#include "offline/check.h"

#include "base/buf.h"
#include "base/interrupt.h"
#include "object/file_space.h"
#include "object/object.h"
#include "object/shared_table.h"
#include "offline/check_private.h"
#include "store/extension.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum { PATH_MOST = 1 << 16 }; /* bytes of a path; a longer one is cut */

/* An object that a hard link leads to; the hash is by address, the list in the order of the links. */
struct found {
	uint64_t address;
	char *path; /* owned */
	struct found *next;
	UT_hash_handle hh;
};

struct walk {
	struct found *by_address;
	struct found *first, *last;
};

static int add(struct walk *w, uint64_t address, const char *path)
{
	struct found *f;

	HASH_FIND(hh, w->by_address, &address, sizeof address, f);
	if (f)
		return 0;
	f = calloc(1, sizeof *f);
	if (f)
		f->path = strdup(path);
	if (!f || !f->path) {
		free(f);
		return h5_fail(-ENOMEM, address, "check: out of memory");
	}
	f->address = address;
	HASH_ADD(hh, w->by_address, address, sizeof f->address, f);
	if (!f->hh.tbl) {
		free(f->path);
		free(f);
		return h5_fail(-ENOMEM, address, "check: out of memory");
	}
	if (w->last)
		w->last->next = f;
	else
		w->first = f;
	w->last = f;
	return 0;
}

int h5_check_link(struct h5_checker *c, const char *name, size_t size, uint64_t address)
{
	struct h5_buf path;
	int rc;

	h5_buf_init(&path, PATH_MOST);
	h5_buf_text(&path, strcmp(c->path, "/") ? c->path : "");
	h5_buf_byte(&path, '/');
	h5_buf_add(&path, name, size);
	h5_buf_byte(&path, 0);
	rc = path.err == -ENOMEM ? -ENOMEM : add(c->walk, address, path.err ? c->path : path.data);
	h5_buf_release(&path);
	return rc;
}

static void heard(void *arg, const struct h5_error *error)
{
	struct h5_checker *c = arg;

	if (error->code == -ENOTSUP || error->code == -EFBIG)
		c->check->unknown++;
	else
		c->check->damaged++;
	c->check->found(c->check->arg, c->path, error);
}

/* Whether the file is as long as it says. */
static int check_size(struct h5_file *file)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	const char *missing = h5_file_missing(file);
	uint64_t end = sb->base + h5_file_end(file);

	if (missing)
		return h5_fail(-EUCLEAN, H5_UNDEF, "missing: %s", missing);
	if (sb->end != H5_UNDEF && sb->end > end)
		return h5_fail(-EUCLEAN, H5_UNDEF, "truncated: %ju bytes of %ju", (uintmax_t)end,
			       (uintmax_t)sb->end);
	return 0;
}

/* What belongs to no object. */
static int check_own_structures(struct h5_checker *c)
{
	int rc;

	c->path = "(superblock)";
	rc = h5_damage_note(&c->damage, check_size(c->file));
	if (rc)
		return rc;
	c->path = "(superblock extension)";
	rc = h5_damage_note(&c->damage, h5_extension_check(c->file));
	c->path = "(shared messages)";
	if (!rc)
		rc = h5_shared_table_check(c->file, &c->damage);
	c->path = "(free space)";
	if (!rc)
		rc = h5_file_space_check(c->file, &c->damage);
	return rc;
}

static int check_objects(struct h5_checker *c, struct walk *w)
{
	int rc = add(w, h5_file_superblock(c->file)->root, "/");

	for (struct found *f = w->first; f && !rc; f = f->next) {
		c->path = f->path;
		if (c->check->progress)
			c->check->progress(c->check->arg, c->path, c->check->bytes);
		/* All of the check has one bound of work: what follows is not looked at any more. */
		rc = h5_interrupt_check();
		if (rc == -EFBIG)
			return h5_damage_note(&c->damage, rc);
		if (!rc)
			rc = h5_check_object(c, f->address);
		c->check->objects++;
		/* The path is told once; of the object there remains that it was looked at. */
		free(f->path);
		f->path = NULL;
	}
	return rc;
}

int h5_check_file(struct h5_file *file, struct h5_check *check)
{
	struct walk w = {0};
	struct h5_checker c = {.file = file, .check = check, .walk = &w};
	struct found *f, *next;
	int rc;

	c.damage.heard = heard;
	c.damage.too_large = true;
	c.damage.arg = &c;
	check->objects = check->chunks = check->bytes = check->damaged = check->unknown = 0;
	rc = check_own_structures(&c);
	if (!rc)
		rc = check_objects(&c, &w);
	h5_seen_release(&c.heaps);
	HASH_CLEAR(hh, w.by_address);
	for (f = w.first; f; f = next) {
		next = f->next;
		free(f->path);
		free(f);
	}
	return rc;
}
