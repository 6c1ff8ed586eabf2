#include "base/room.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/thread.h"
#include "base/wait.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include <utlist.h>

enum {
	COUNTED_LEAST = 1 << 14, /* bytes; smaller charges are not counted */
	ALLOWANCE = 1 << 18,	 /* bytes that each request has for itself */
};

struct h5_room {
	pthread_mutex_t lock; /* guards all below, and what struct h5_account says */
	pthread_cond_t changed;
	size_t capacity, used;
	struct h5_account *turns; /* the first is the one whose turn it is */
	uint64_t accounts;	  /* how many there have been */
	h5_room_press *press;
	void *arg;
};

static _Thread_local struct h5_account *current;

int h5_room_open(size_t capacity, h5_room_press *press, void *arg, struct h5_room **out)
{
	struct h5_room *room = calloc(1, sizeof *room);

	if (!room)
		return -ENOMEM;
	pthread_mutex_init(&room->lock, NULL);
	h5_thread_cond_init(&room->changed);
	room->capacity = capacity;
	room->press = press;
	room->arg = arg;
	*out = room;
	return 0;
}

void h5_room_close(struct h5_room *room)
{
	if (!room)
		return;
	assert(!room->used && !room->turns);
	pthread_cond_destroy(&room->changed);
	h5_mutex_destroy(&room->lock);
	free(room);
}

struct h5_account *h5_account_get(void)
{
	return current;
}

void h5_account_set(struct h5_account *account)
{
	current = account;
}

/* The bytes of an account beyond its allowance; only these count. */
static size_t shared_part(size_t taken)
{
	return taken > ALLOWANCE ? taken - ALLOWANCE : 0;
}

/* With the lock. */
static void set_taken(struct h5_account *account, size_t taken)
{
	struct h5_room *room = account->room;
	size_t used = room->used;

	assert(used >= shared_part(account->taken));
	room->used = used - shared_part(account->taken) + shared_part(taken);
	account->taken = taken;
	if (room->used < used)
		pthread_cond_broadcast(&room->changed);
}

/* Called without the lock, so another thread may have told a newer number before; the next change corrects
 * that. */
static void tell(struct h5_room *room, size_t before, size_t now)
{
	if (now != before && room->press)
		room->press(room->arg, now);
}

static int take(struct h5_account *account, size_t n)
{
	struct h5_room *room = account->room;
	size_t before, now;
	int rc = 0;

	pthread_mutex_lock(&room->lock);
	before = room->used;
	if (n > room->capacity || account->taken > room->capacity - n)
		rc = -EFBIG;
	else if (!account->alone && shared_part(account->taken + n) &&
		 (room->turns || n > room->capacity - before))
		rc = -ENOMEM;
	if (!rc)
		set_taken(account, account->taken + n);
	account->refused |= rc == -ENOMEM;
	now = room->used;
	pthread_mutex_unlock(&room->lock);
	tell(room, before, now);
	if (rc == -EFBIG)
		return h5_fail(rc, H5_UNDEF, "more memory than all requests may take (cache, index_cache)");
	return rc ? h5_fail(rc, H5_UNDEF, "no room for %zu bytes beside other requests", n) : 0;
}

static void give(struct h5_account *account, size_t n)
{
	struct h5_room *room = account->room;
	size_t before, now;

	if (!n)
		return;
	pthread_mutex_lock(&room->lock);
	assert(n <= account->taken);
	before = room->used;
	set_taken(account, account->taken - n);
	now = room->used;
	pthread_mutex_unlock(&room->lock);
	tell(room, before, now);
}

/* ---- requests ---- */

void h5_account_begin(struct h5_account *account, struct h5_room *room)
{
	pthread_mutex_lock(&room->lock);
	account->room = room;
	account->number = ++room->accounts;
	account->refused = false;
	pthread_mutex_unlock(&room->lock);
	current = account;
}

void h5_account_end(struct h5_account *account)
{
	current = NULL;
	give(account, account->taken);
	account->number = 0;
}

/* Asks once a second whether the request is still wanted. */
static int wait_for_turn(struct h5_account *account)
{
	struct h5_room *room = account->room;
	int rc = h5_interrupt_check();

	while (!rc && (room->turns != account || room->used)) {
		h5_wait_begins();
		h5_thread_wait_a_second(&room->changed, &room->lock);
		rc = h5_interrupt_check();
	}
	return rc;
}

static void leave_queue(struct h5_account *account)
{
	DL_DELETE(account->room->turns, account);
	account->alone = false;
	pthread_cond_broadcast(&account->room->changed);
}

bool h5_account_again(struct h5_account *account, int *rc)
{
	struct h5_room *room = account->room;
	bool again;
	int unwanted;

	pthread_mutex_lock(&room->lock);
	again = *rc < 0 && account->refused && !account->alone;
	if (account->alone)
		leave_queue(account);
	if (again) {
		DL_APPEND(room->turns, account);
		unwanted = wait_for_turn(account);
		if (unwanted) {
			leave_queue(account);
			*rc = unwanted;
			again = false;
		}
		account->alone = again;
	}
	pthread_mutex_unlock(&room->lock);
	return again;
}

/* ---- charges ---- */

int h5_charge_set(struct h5_charge *charge, size_t bytes)
{
	int rc = 0;

	if (!current)
		return 0;
	/* The charge of an earlier request was given back when that ended. */
	if (charge->account != current->number)
		*charge = (struct h5_charge){.account = current->number};
	if (bytes < COUNTED_LEAST)
		bytes = 0;
	if (bytes > charge->bytes)
		rc = take(current, bytes - charge->bytes);
	else
		give(current, charge->bytes - bytes);
	if (!rc)
		charge->bytes = bytes;
	return rc;
}

void h5_charge_release(struct h5_charge *charge)
{
	if (current && charge->account == current->number)
		give(current, charge->bytes);
	*charge = (struct h5_charge){0};
}
