#include "base/error.h"
#include "base/interrupt.h"
#include "base/room.h"
#include "format/superblock.h"
#include "store/file_set.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static void note_used(void *arg, size_t used)
{
	*(size_t *)arg = used;
}

START_TEST(charges_are_refused_and_never_wait)
{
	struct h5_account account = {0}, other = {0};
	struct h5_charge a = {0}, b = {0}, late = {0};
	struct h5_room *room;
	size_t used = 0;
	int rc;

	/* Nothing is counted without an account. */
	ck_assert_int_eq(h5_charge_set(&a, SIZE_MAX), 0);
	ck_assert_int_eq(h5_room_open(10 << 20, note_used, &used, &room), 0);
	h5_account_begin(&other, room);
	ck_assert_int_eq(h5_charge_set(&late, 6 << 20), 0);
	h5_account_set(NULL);
	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_charge_set(&a, 11 << 20), -EFBIG);
	ck_assert_int_eq(h5_charge_set(&a, 3 << 20), 0);
	ck_assert_int_eq(h5_charge_set(&b, 3 << 20), -ENOMEM);
	ck_assert_uint_eq(b.bytes, 0);
	ck_assert_int_eq(h5_charge_set(&a, 1 << 20), 0);
	ck_assert_int_eq(h5_charge_set(&b, 3 << 20), 0);
	ck_assert_uint_gt(used, 9 << 20);
	h5_charge_release(&b);
	h5_charge_release(&b);
	/* The end of a request gives back what it holds; another one's is not its to give. */
	h5_charge_release(&late);
	ck_assert_uint_ge(used, 6 << 20);
	h5_account_end(&account);
	h5_account_set(&other);
	h5_account_end(&other);
	ck_assert_uint_eq(used, 0);
	/* Refused, but it could do without: once is enough. */
	rc = 0;
	ck_assert(!h5_account_again(&account, &rc));
	/* Refused, and failed: once more, with all of the room. What was charged before counts no more. */
	rc = -ENOMEM;
	ck_assert(h5_account_again(&account, &rc));
	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_charge_set(&a, 10 << 20), 0);
	h5_account_end(&account);
	ck_assert(!h5_account_again(&account, &rc));
	rc = 0;
	ck_assert(!h5_account_again(&other, &rc));
	h5_room_close(room);
}
END_TEST

static bool is_unwanted(void *arg)
{
	(void)arg;
	return true;
}

/* Who gives up waiting has no room to himself, and nobody waits behind him. */
START_TEST(a_request_that_is_not_wanted_any_more)
{
	struct h5_account account = {0}, other = {0}, third = {0};
	struct h5_charge a = {0}, b = {0}, c = {0};
	struct h5_interrupt interrupt;
	struct h5_room *room;
	int rc = -ENOMEM;

	ck_assert_int_eq(h5_room_open(10 << 20, NULL, NULL, &room), 0);
	h5_account_begin(&other, room);
	ck_assert_int_eq(h5_charge_set(&b, 8 << 20), 0);
	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_charge_set(&a, 8 << 20), -ENOMEM);
	h5_account_end(&account);
	/* Its first second is over. */
	h5_interrupt_begin(is_unwanted, NULL);
	h5_interrupt_get(&interrupt);
	interrupt.begin.tv_sec -= 10;
	h5_interrupt_set(&interrupt);
	ck_assert(!h5_account_again(&account, &rc));
	ck_assert_int_eq(rc, -EINTR);
	h5_interrupt_begin(NULL, NULL);
	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_charge_set(&a, 8 << 20), -ENOMEM);
	h5_account_end(&account);
	h5_account_begin(&third, room);
	ck_assert_int_eq(h5_charge_set(&c, 2 << 20), 0);
	h5_account_end(&third);
	h5_account_set(&other);
	h5_account_end(&other);
	h5_room_close(room);
}
END_TEST

/* Memory did not fail it, this time: to run again would not help. */
START_TEST(a_request_that_fails_for_another_reason)
{
	struct h5_account account = {0}, other = {0};
	struct h5_charge a = {0}, b = {0};
	struct h5_room *room;
	int rc = -EIO;

	ck_assert_int_eq(h5_room_open(10 << 20, NULL, NULL, &room), 0);
	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_charge_set(&a, 1 << 20), 0);
	h5_account_end(&account);
	ck_assert(!h5_account_again(&account, &rc));
	ck_assert_int_eq(rc, -EIO);
	/* More than there is at all is not more alone. */
	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_charge_set(&a, 11 << 20), -EFBIG);
	h5_account_end(&account);
	rc = -EFBIG;
	ck_assert(!h5_account_again(&account, &rc));
	/* Refused in a run that could do without; the next one is not. */
	h5_account_begin(&other, room);
	ck_assert_int_eq(h5_charge_set(&b, 8 << 20), 0);
	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_charge_set(&a, 8 << 20), -ENOMEM);
	h5_account_end(&account);
	h5_account_set(&other);
	h5_account_end(&other);
	rc = 0;
	ck_assert(!h5_account_again(&account, &rc));
	h5_account_begin(&account, room);
	h5_account_end(&account);
	rc = -EIO;
	ck_assert(!h5_account_again(&account, &rc));
	ck_assert_int_eq(rc, -EIO);
	h5_room_close(room);
}
END_TEST

/* Another thread of a request may go on when that has ended, and has given back all it held. */
START_TEST(a_release_after_the_end)
{
	struct h5_account account = {0}, other = {0};
	struct h5_charge a = {0}, b = {0};
	struct h5_room *room;
	size_t used = 0;

	ck_assert_int_eq(h5_room_open(10 << 20, note_used, &used, &room), 0);
	h5_account_begin(&other, room);
	ck_assert_int_eq(h5_charge_set(&b, 3 << 20), 0);
	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_charge_set(&a, 2 << 20), 0);
	h5_account_end(&account);
	ck_assert_ptr_null(h5_account_get());
	ck_assert_uint_lt(used, 3 << 20);
	h5_account_set(&account);
	h5_charge_release(&a);
	ck_assert_uint_eq(account.taken, 0);
	h5_account_set(&other);
	h5_account_end(&other);
	ck_assert_uint_eq(used, 0);
	h5_room_close(room);
}
END_TEST

/* ---- turns: the linker leads h5_thread_wait_a_second() here ---- */

void __real_h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock);
void __wrap_h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock);

static atomic_bool waits_for_a_signal;
static atomic_uint waits;

void __wrap_h5_thread_wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	if (!waits_for_a_signal) {
		__real_h5_thread_wait_a_second(condition, lock);
		return;
	}
	waits++;
	pthread_cond_wait(condition, lock);
}

static void await_waits(unsigned n)
{
	while (waits < n)
		sched_yield();
}

/* Is refused, waits for its turn, and runs again when the others have waited so often. */
static void *take_turn(void *arg)
{
	struct h5_room *room = arg;
	struct h5_account account = {0};
	struct h5_charge charge = {0};
	int rc = -ENOMEM;

	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_charge_set(&charge, 8 << 20), -ENOMEM);
	h5_account_end(&account);
	ck_assert(h5_account_again(&account, &rc));
	await_waits(3);
	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_charge_set(&charge, 8 << 20), 0);
	h5_account_end(&account);
	rc = 0;
	ck_assert(!h5_account_again(&account, &rc));
	return NULL;
}

/* A request that waits for its turn wakes when another one gives memory back, or ends its turn. */
START_TEST(turns_are_told)
{
	struct h5_account account = {0};
	struct h5_charge charge = {0};
	struct h5_room *room;
	pthread_t first, second;

	ck_assert_int_eq(h5_room_open(10 << 20, NULL, NULL, &room), 0);
	waits_for_a_signal = true;
	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_charge_set(&charge, 8 << 20), 0);
	ck_assert_int_eq(pthread_create(&first, NULL, take_turn, room), 0);
	await_waits(1);
	ck_assert_int_eq(pthread_create(&second, NULL, take_turn, room), 0);
	await_waits(2);
	h5_account_end(&account);
	pthread_join(first, NULL);
	pthread_join(second, NULL);
	waits_for_a_signal = false;
	h5_room_close(room);
}
END_TEST

struct large_request {
	struct h5_room *room;
	pthread_t thread;
	_Atomic(size_t) *held, *most;
	int result;
};

/* Takes its memory in two steps, so that some are refused in between. */
static void *request_much(void *arg)
{
	struct large_request *q = arg;
	struct h5_account account = {0};

	for (int round = 0; round < 50; round++)
		do {
			struct h5_charge charge = {0};
			size_t now;

			h5_account_begin(&account, q->room);
			q->result = h5_charge_set(&charge, 3 << 20);
			sched_yield();
			if (!q->result)
				q->result = h5_charge_set(&charge, 7 << 20);
			if (!q->result) {
				now = atomic_fetch_add(q->held, 7 << 20) + (7 << 20);
				if (now > *q->most)
					*q->most = now;
				sched_yield();
				atomic_fetch_sub(q->held, 7 << 20);
			}
			h5_account_end(&account);
		} while (h5_account_again(&account, &q->result));
	return NULL;
}

START_TEST(many_large_requests_come_to_their_end)
{
	struct large_request requests[16];
	_Atomic(size_t) held = 0, most = 0;
	struct h5_room *room;

	ck_assert_int_eq(h5_room_open(20 << 20, NULL, NULL, &room), 0);
	for (int i = 0; i < 16; i++) {
		requests[i] = (struct large_request){.room = room, .held = &held, .most = &most};
		ck_assert_int_eq(pthread_create(&requests[i].thread, NULL, request_much, &requests[i]), 0);
	}
	for (int i = 0; i < 16; i++) {
		pthread_join(requests[i].thread, NULL);
		ck_assert_int_eq(requests[i].result, 0);
	}
	ck_assert_uint_gt(most, 0);
	ck_assert_uint_le(most, (20 << 20) + 3 * (1 << 18)); /* each has an allowance beside */
	h5_room_close(room);
}
END_TEST

/* ---- the room that files have ---- */

/* As much as both caches together, and 64 MiB at least. */
START_TEST(files_have_room_as_their_caches)
{
	enum { MIB = 1 << 20 };
	static const struct {
		size_t chunks, blocks, room;
	} cases[] = {{1, 1, 64 * MIB},
		     {40 * MIB, 24 * MIB, 64 * MIB},
		     {40 * MIB, 24 * MIB + 1, 64 * MIB + 1},
		     {100 * MIB, 0, 100 * MIB},
		     {100 * MIB, 30 * MIB, 130 * MIB},
		     {SIZE_MAX - 7, 7, SIZE_MAX},
		     {SIZE_MAX - 7, 8, SIZE_MAX},
		     {100 * MIB, SIZE_MAX, SIZE_MAX}};
	const struct h5_superblock sb = {.version = 2,
					 .size_of_offsets = 8,
					 .size_of_lengths = 8,
					 .extension = H5_UNDEF,
					 .end = H5_SUPERBLOCK_NEW,
					 .driver_info = H5_UNDEF,
					 .root = 48};
	uint8_t bytes[H5_SUPERBLOCK_NEW];
	struct h5_writer w = h5_writer_init(bytes, sizeof bytes, 8, 8);

	h5_superblock_encode(&w, &sb);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct h5_file_set_options options = {.chunk_cache = cases[i].chunks,
							    .block_cache = cases[i].blocks};
		const size_t room = cases[i].room;
		struct h5_account account = {0};
		struct h5_charge charge = {0};
		struct h5_file_set *set;

		ck_assert_int_eq(h5_file_set_open_memory(bytes, sizeof bytes, &options, &set), 0);
		h5_account_begin(&account, h5_file_set_room(set));
		ck_assert_int_eq(h5_charge_set(&charge, room), 0);
		if (room < SIZE_MAX)
			ck_assert_int_eq(h5_charge_set(&charge, room + 1), -EFBIG);
		h5_charge_release(&charge);
		h5_account_end(&account);
		h5_file_set_close(set);
	}
}
END_TEST

UNIT_MAIN("room", charges_are_refused_and_never_wait, a_request_that_is_not_wanted_any_more,
	  a_request_that_fails_for_another_reason, a_release_after_the_end, turns_are_told,
	  many_large_requests_come_to_their_end, files_have_room_as_their_caches)
