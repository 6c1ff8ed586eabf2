#include "vfs/pending.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "change/transaction.h"
#include "object/group_write.h"
#include "vfs/objects.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct h5_pending {
	uint64_t address, group;
	bool is_whole;	   /* the next commit has the name */
	bool is_hidden;	   /* during a commit */
	bool is_committed; /* a commit has written the object, but not its name */
	UT_hash_handle hh;
	size_t name_size;
	char name[];
};

static struct h5_pending *find(const struct h5_vfs *vfs, uint64_t address)
{
	struct h5_pending *file;

	HASH_FIND(hh, vfs->pending, &address, sizeof address, file);
	return file;
}

static void drop(struct h5_vfs *vfs, struct h5_pending *file)
{
	assert(!file->is_hidden);
	HASH_DEL(vfs->pending, file);
	free(file);
}

void h5_pending_add(struct h5_vfs *vfs, uint64_t group, const char *name, size_t name_size, uint64_t address)
{
	struct h5_pending *file = malloc(sizeof *file + name_size), *old = find(vfs, address);

	assert(h5_is_locked_to_write(vfs));
	/* In a damaged file, space may be given up that is in use. */
	if (old)
		drop(vfs, old);
	if (!file)
		return;
	*file = (struct h5_pending){.address = address, .group = group, .name_size = name_size};
	memcpy(file->name, name, name_size);
	HASH_ADD(hh, vfs->pending, address, sizeof file->address, file);
	if (!file->hh.tbl)
		free(file);
}

/* One that a commit has left out is kept until a commit has it: if that fails, it has its name again. */
static void end(struct h5_vfs *vfs, struct h5_pending *file)
{
	if (file->is_committed)
		file->is_whole = true;
	else
		drop(vfs, file);
	h5_objects_await(vfs);
}

void h5_pending_end(struct h5_vfs *vfs, uint64_t address)
{
	struct h5_pending *file = find(vfs, address);

	if (file)
		end(vfs, file);
}

void h5_pending_closed(struct h5_vfs *vfs, uint64_t address)
{
	struct h5_pending *file = find(vfs, address);

	if (file && !h5_objects_is_written(vfs, address))
		end(vfs, file);
}

/* ---- commits ---- */

/* If that fails, the commit has the name. */
static bool hide(struct h5_vfs *vfs, const struct h5_pending *file)
{
	int rc;

	h5_unit_begin(vfs->file);
	/* No commit has had the name, so its cells need not come after those of other names. */
	h5_unit_hasten(vfs->file, H5_STAGE_NAME);
	rc = h5_group_remove(vfs->file, file->group, file->name, file->name_size);
	return !h5_unit_end(vfs->file, rc);
}

/* The last close may not have come as far as h5_pending_closed() yet. */
static void hide_all(struct h5_vfs *vfs)
{
	struct h5_pending *file, *next;

	HASH_ITER(hh, vfs->pending, file, next)
	if (!file->is_whole && h5_objects_is_written(vfs, file->address))
		file->is_hidden = hide(vfs, file);
}

static int insert(struct h5_vfs *vfs, const struct h5_pending *file)
{
	const struct h5_link link = {.type = H5_LINK_HARD,
				     .address = file->address,
				     .name = file->name,
				     .name_size = file->name_size};
	int rc;

	h5_unit_begin(vfs->file);
	rc = h5_group_insert(vfs->file, file->group, &link);
	return h5_unit_end(vfs->file, rc);
}

/* Its handles keep the file, and then it is removed. */
static void lose(struct h5_vfs *vfs, struct h5_pending *file, int rc)
{
	if (vfs->options.log)
		vfs->options.log("%s: address %" PRIu64 ": a new file has lost its name: %s",
				 vfs->options.file ? vfs->options.file : "", file->address, strerror(-rc));
	h5_objects_unname(vfs, file->address);
	drop(vfs, file);
}

/* The name had its place a moment ago. */
static void show(struct h5_vfs *vfs, struct h5_pending *file)
{
	int rc = insert(vfs, file);

	/* Memory may be short for a moment only. */
	if (rc == -ENOMEM)
		rc = insert(vfs, file);
	if (rc)
		lose(vfs, file, rc);
}

/* With names of new files in it, the transaction is never empty at another time. */
static void give_back(struct h5_vfs *vfs)
{
	if (vfs->gives_back)
		(void)h5_tx_give_back(vfs->file, H5_WASTE_LEAST);
}

static void show_all(struct h5_vfs *vfs, bool made)
{
	struct h5_pending *file, *next;

	HASH_ITER(hh, vfs->pending, file, next)
	{
		const bool was_hidden = file->is_hidden;

		file->is_hidden = false;
		file->is_committed |= made;
		if (was_hidden && h5_tx_is_writable(vfs->file))
			show(vfs, file);
		else if (made)
			drop(vfs, file);
	}
}

/* No request interrupts what is done for a commit. */
static void before_commit(void *arg)
{
	struct h5_vfs *vfs = arg;
	struct h5_interrupt request;

	if (!vfs->pending)
		return;
	h5_interrupt_pause(&request);
	hide_all(vfs);
	h5_interrupt_set(&request);
}

static void after_commit(void *arg, bool made)
{
	struct h5_vfs *vfs = arg;
	struct h5_interrupt request;

	if (!vfs->pending)
		return;
	h5_interrupt_pause(&request);
	if (made)
		give_back(vfs);
	show_all(vfs, made);
	h5_interrupt_set(&request);
}

void h5_pending_lose(struct h5_vfs *vfs)
{
	struct h5_pending *file, *next;

	HASH_ITER(hh, vfs->pending, file, next)
	{
		file->is_whole = false;
		if (file->is_committed)
			show(vfs, file);
		else
			drop(vfs, file);
	}
}

/* ---- the mount ---- */

void h5_pending_init(struct h5_vfs *vfs)
{
	vfs->around = (struct h5_tx_around){before_commit, after_commit, vfs};
	h5_tx_set_around(vfs->file, &vfs->around);
}

void h5_pending_free(struct h5_vfs *vfs)
{
	struct h5_pending *file, *next;

	HASH_ITER(hh, vfs->pending, file, next)
	drop(vfs, file);
	if (vfs->around.arg)
		h5_tx_set_around(vfs->file, NULL);
}
