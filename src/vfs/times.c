#include "vfs/times.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

enum {
	SECOND = 1000000000,
	OBJECTS_MAX = 1 << 16, /* whose times are remembered, about 100 bytes each */
};

struct h5_changed_object {
	uint64_t address;
	struct timespec time;
	UT_hash_handle hh;
};

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* Each change has a later time than the one before. */
static void advance(struct timespec *changed)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!is_later(&now, changed)) {
		now = *changed;
		now.tv_nsec++;
	}
	if (now.tv_nsec >= SECOND) {
		now.tv_sec++;
		now.tv_nsec -= SECOND;
	}
	*changed = now;
}

static void forget(struct h5_vfs *vfs)
{
	struct h5_changed_object *object, *next;

	HASH_ITER(hh, vfs->changed_objects, object, next)
	{
		HASH_DEL(vfs->changed_objects, object);
		free(object);
	}
}

void h5_times_note_all(struct h5_vfs *vfs)
{
	assert(h5_is_locked_to_write(vfs));
	advance(&vfs->changed);
	vfs->all_changed = vfs->changed;
	forget(vfs);
}

static struct h5_changed_object *find(const struct h5_vfs *vfs, uint64_t address)
{
	struct h5_changed_object *object;

	HASH_FIND(hh, vfs->changed_objects, &address, sizeof address, object);
	return object;
}

static struct h5_changed_object *add(struct h5_vfs *vfs, uint64_t address)
{
	struct h5_changed_object *object;

	if (HASH_COUNT(vfs->changed_objects) >= OBJECTS_MAX)
		return NULL;
	object = calloc(1, sizeof *object);
	if (!object)
		return NULL;
	object->address = address;
	HASH_ADD(hh, vfs->changed_objects, address, sizeof object->address, object);
	if (object->hh.tbl)
		return object;
	free(object);
	return NULL;
}

void h5_times_note(struct h5_vfs *vfs, uint64_t address)
{
	struct h5_changed_object *object = find(vfs, address);

	assert(h5_is_locked_to_write(vfs));
	if (!object)
		object = add(vfs, address);
	if (!object) {
		/* A time may be too late, but none ever goes back. */
		h5_times_note_all(vfs);
		return;
	}
	advance(&vfs->changed);
	object->time = vfs->changed;
}

static void raise_to(struct timespec *time, const struct timespec *least)
{
	if (is_later(least, time))
		*time = *least;
}

void h5_times_get(const struct h5_vfs *vfs, uint64_t address, struct timespec *mtime, struct timespec *ctime)
{
	const struct h5_changed_object *object = address == H5_UNDEF ? NULL : find(vfs, address);

	/* Another program that writes the file, too, changes what it likes. */
	if (!vfs->may_change) {
		*mtime = vfs->opened_mtime;
		*ctime = vfs->opened_ctime;
	}
	raise_to(mtime, &vfs->all_changed);
	raise_to(ctime, &vfs->all_changed);
	if (object) {
		raise_to(mtime, &object->time);
		raise_to(ctime, &object->time);
	}
}

struct timespec h5_times_last(const struct h5_vfs *vfs)
{
	struct timespec last = vfs->opened_mtime;

	raise_to(&last, &vfs->changed);
	return last;
}

void h5_times_free(struct h5_vfs *vfs)
{
	forget(vfs);
}
