/* The memory of all requests, under one budget.
 *
 * Code that allocates by a size from a file charges it here first. A charge never waits. If there is no room
 * it is refused with -ENOMEM, so the request unwinds as if malloc() had failed, and gives back all it holds.
 * Then, holding nothing, it waits for its turn, and runs again with the whole budget to itself. So no request
 * waits while it holds memory, and none fails because of the others. What alone needs more than the whole
 * budget gets -EFBIG.
 *
 * A thread charges to the account of its request. Without one (commands that mount nothing, changes of the
 * file, work in the background) nothing is counted. */
#ifndef H5_BASE_ROOM_H
#define H5_BASE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h5_room;

/* Tells how many bytes requests hold, so that caches can shrink by as much. Called without a lock. */
typedef void h5_room_press(void *arg, size_t used);

/* `capacity`: bytes that all requests together may hold. Each has a small allowance beside. */
int h5_room_open(size_t capacity, h5_room_press *press, void *arg, struct h5_room **room);
void h5_room_close(struct h5_room *room); /* NULL is fine */

/* The memory of one request. {0} before the first h5_account_begin(). */
struct h5_account {
	struct h5_room *room;
	uint64_t number; /* of this run of the request; 0: the request is not running */
	/* guarded by the room's lock: */
	size_t taken; /* bytes */
	bool refused; /* a charge was refused: the request shall run alone */
	bool alone;   /* the request has its turn */
	struct h5_account *prev,
		*next; /* in the queue of requests that wait for their turn; the first one has it */
};

/* This thread charges to the account from now on. */
void h5_account_begin(struct h5_account *account, struct h5_room *room);
/* The request has run: gives back all that it was charged for. */
void h5_account_end(struct h5_account *account);
/* To be called after that, without a lock. True: the request has failed (*rc) because it was refused memory,
 * has waited for its turn, and shall run again. If it is not wanted any more, *rc becomes -EINTR. */
bool h5_account_again(struct h5_account *account, int *rc);

/* The account of this thread, for a thread that does a part of its work; NULL: nothing is counted. */
struct h5_account *h5_account_get(void);
void h5_account_set(struct h5_account *account);

/* The bytes of one thing; {0}: none. Any thread may release it, at any time. If it is not released when its
 * request ends, the bytes are given back then. */
struct h5_charge {
	uint64_t account; /* number of the account */
	size_t bytes;
};

/* Sets the number of bytes; small ones count as 0. Never fails if it becomes smaller. -ENOMEM: refused.
 * -EFBIG: more than the whole budget. */
int h5_charge_set(struct h5_charge *charge, size_t bytes);
void h5_charge_release(struct h5_charge *charge); /* may run twice */

#endif
