#include "base/buf.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/interrupt.h"
#include "base/lookup3.h"
#include "base/lru.h"
#include "base/reader.h"
#include "base/room.h"
#include "base/siphash.h"
#include "io/io.h"
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

/* Known values of Jenkins' hashlittle(). */
START_TEST(lookup3_known_values)
{
	const char *text = "Four score and seven years ago";

	ck_assert_uint_eq(h5_lookup3("", 0, 0), 0xdeadbeef);
	ck_assert_uint_eq(h5_lookup3("", 0, 0xdeadbeef), 0xbd5b7dde);
	ck_assert_uint_eq(h5_lookup3(text, strlen(text), 0), 0x17770551);
	ck_assert_uint_eq(h5_lookup3(text, strlen(text), 1), 0xcd628161);
}
END_TEST

/* Of the first bytes 00 01 02 ... with the key 00 01 ... 0f: the paper's appendix A, and the reference's
 * list. */
START_TEST(siphash_known_values)
{
	uint8_t bytes[16];

	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)i;
	ck_assert_uint_eq(h5_siphash(bytes, bytes, 0), 0x726fdb47dd0e0e31);
	ck_assert_uint_eq(h5_siphash(bytes, bytes, 1), 0x74f839c593dc67fd);
	ck_assert_uint_eq(h5_siphash(bytes, bytes, 8), 0x93f5f5799a932462);
	ck_assert_uint_eq(h5_siphash(bytes, bytes, 15), 0xa129ca6149be45e5);
}
END_TEST

START_TEST(reader_is_bounded_and_sticky)
{
	const uint8_t data[] = {1, 2, 3, 0xff, 0xff, 0xff, 0xff, 9};
	struct h5_reader r = h5_reader_init(data, sizeof data, 100, 4, 8), sub;

	ck_assert_uint_eq(h5_read_u8(&r), 1);
	ck_assert_uint_eq(h5_read_u16(&r), 0x0302);
	ck_assert_uint_eq(h5_reader_address(&r), 103);
	ck_assert(h5_read_offset(&r) == H5_UNDEF);
	ck_assert_int_eq(h5_reader_check(&r, "x"), 0);
	sub = h5_reader_sub(&r, 2);
	ck_assert(sub.err && r.err);
	ck_assert_uint_eq(h5_read_u8(&r), 0); /* sticky, though a byte is left */
	ck_assert_int_eq(h5_reader_check(&r, "thing"), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "thing: truncated");
	ck_assert_uint_eq(h5_error_last()->address, 100);
}
END_TEST

START_TEST(reader_verifies_checksums)
{
	uint8_t data[9] = "HELLO";
	uint32_t sum = h5_lookup3(data, 5, 0);
	struct h5_reader r;

	for (int i = 0; i < 4; i++)
		data[5 + i] = (uint8_t)(sum >> (8 * i));
	r = h5_reader_init(data, 9, 0, 8, 8);
	h5_reader_skip(&r, 5);
	ck_assert_int_eq(h5_reader_checksum(&r, "x"), 0);
	data[0] ^= 1;
	r = h5_reader_init(data, 9, 0, 8, 8);
	h5_reader_skip(&r, 5);
	ck_assert_int_eq(h5_reader_checksum(&r, "x"), -EUCLEAN);
}
END_TEST

START_TEST(products_are_checked)
{
	const uint64_t large[] = {1ull << 40, 1ull << 40}, empty[] = {1ull << 40, 1ull << 40, 0};
	uint64_t p;

	ck_assert(!h5_product(large, 2, &p));
	ck_assert(h5_product(empty, 3, &p) && p == 0);
	ck_assert(h5_product(large, 1, &p) && p == 1ull << 40);
	ck_assert(h5_product(NULL, 0, &p) && p == 1);
}
END_TEST

START_TEST(buf_stops_at_its_limit)
{
	struct h5_buf b;

	h5_buf_init(&b, 10);
	h5_buf_text(&b, "12345");
	h5_buf_printf(&b, "%d", 678);
	ck_assert_int_eq(b.err, 0);
	h5_buf_text(&b, "901");
	ck_assert_int_eq(b.err, -E2BIG);
	h5_buf_byte(&b, 'x');
	ck_assert_uint_eq(b.size, 8);
	ck_assert_mem_eq(b.data, "12345678", 8);
	h5_buf_release(&b);
	h5_buf_release(&b);
}
END_TEST

static void ck_escaped(const char *text, size_t size, const char *shown)
{
	struct h5_buf b;
	char fixed[256];

	h5_buf_init(&b, SIZE_MAX);
	h5_escape(&b, text, size);
	h5_buf_byte(&b, 0);
	ck_assert_str_eq(b.data, shown);
	h5_escape_into(fixed, sizeof fixed, text, size);
	ck_assert_str_eq(fixed, shown);
	h5_buf_release(&b);
}

START_TEST(text_cannot_steer_a_terminal)
{
	char small[8];

	ck_escaped("plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 17,
		   "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
	ck_escaped("\x1b[31m\n\x7f\\", 8, "\\033[31m\\012\\177\\134");
	/* C1: as UTF-8, and as single bytes, as a terminal without UTF-8 takes them */
	ck_escaped("\xc2\x9b\xc2\x80\xc2\xa0", 6, "\\302\\233\\302\\200\xc2\xa0");
	ck_escaped("\x9b"
		   "31m\x84",
		   5, "\\23331m\\204");
	/* What is no UTF-8: too long a form, a surrogate, beyond the last character, cut off. */
	ck_escaped("\xc0\x9b", 2, "\\300\\233");
	ck_escaped("\xe0\x82\x9b", 3, "\\340\\202\\233");
	ck_escaped("\xed\xa0\x80", 3, "\\355\\240\\200");
	ck_escaped("\xf4\x90\x80\x80", 4, "\\364\\220\\200\\200");
	ck_escaped("\xe2\x82", 2, "\\342\\202");
	h5_escape_into(small, sizeof small, "abcd\n\n", 6);
	ck_assert_str_eq(small, "abcd");
}
END_TEST

/* ---- the LRU cache ---- */

static const struct h5_lru_kind kind = {"test", free};

struct loader {
	unsigned calls;
	int result;
	pthread_barrier_t *barrier; /* waits inside the load */
};

static int load(void *arg, void **value, size_t *cost)
{
	struct loader *l = arg;

	l->calls++;
	if (l->barrier)
		pthread_barrier_wait(l->barrier);
	if (l->result)
		return l->result;
	*value = malloc(1);
	*cost = 1000;
	return *value ? 0 : -ENOMEM;
}

static void touch(struct h5_lru *lru, struct loader *l, uint64_t address)
{
	struct h5_lru_key key = {&kind, 0, address, 0};
	struct h5_lru_entry *e;

	ck_assert_int_eq(h5_lru_get(lru, &key, load, l, &e), 0);
	h5_lru_put(lru, e);
}

START_TEST(lru_keeps_the_latest_within_its_budget)
{
	struct loader l = {0};
	struct h5_lru_stats stats;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
	for (uint64_t a = 0; a < 3; a++)
		touch(lru, &l, a);
	touch(lru, &l, 0);
	ck_assert_uint_eq(l.calls, 3);
	touch(lru, &l, 3); /* evicts 1, the least recently used */
	touch(lru, &l, 0);
	touch(lru, &l, 2);
	ck_assert_uint_eq(l.calls, 4);
	touch(lru, &l, 1);
	ck_assert_uint_eq(l.calls, 5);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_le(stats.bytes, 3500);
	ck_assert_uint_eq(stats.hits, 3);
	ck_assert_uint_eq(stats.misses, 5);
	h5_lru_close(lru);
}
END_TEST

START_TEST(lru_keeps_a_value_over_its_budget)
{
	struct loader l = {0};
	struct h5_lru_stats stats;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(10, &lru), 0);
	touch(lru, &l, 1);
	touch(lru, &l, 1);
	ck_assert_uint_eq(l.calls, 1);
	touch(lru, &l, 2);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 1);
	h5_lru_close(lru);
}
END_TEST

START_TEST(lru_does_not_cache_failures)
{
	struct loader l = {.result = -EIO};
	struct h5_lru_key key = {&kind, 1, 2, 3};
	struct h5_lru_entry *e;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
	ck_assert_int_eq(h5_lru_get(lru, &key, load, &l, &e), -EIO);
	ck_assert_ptr_null(e);
	l.result = 0;
	ck_assert_int_eq(h5_lru_get(lru, &key, load, &l, &e), 0);
	ck_assert_uint_eq(l.calls, 2);
	h5_lru_put(lru, e);
	h5_lru_close(lru);
}
END_TEST

struct holder {
	struct h5_lru *lru;
	struct h5_lru_entry *held;
};

static void release_holder(void *value)
{
	struct holder *h = value;

	h5_lru_put(h->lru, h->held);
	free(h);
}

static const struct h5_lru_kind holder_kind = {"holder", release_holder};

static int load_holder(void *arg, void **value, size_t *cost)
{
	struct holder *h = calloc(1, sizeof *h);
	struct h5_lru_key key = {&kind, 0, 1, 0};
	struct loader l = {0};

	h->lru = arg;
	*value = h;
	*cost = sizeof *h;
	return h5_lru_get(h->lru, &key, load, &l, &h->held);
}

/* A value that references another one in the same cache: evicted, it gives that back. */
START_TEST(lru_values_may_hold_references)
{
	struct h5_lru_key key = {&holder_kind, 0, 2, 0};
	struct h5_lru_stats stats;
	struct loader l = {0};
	struct h5_lru_entry *e;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(0, &lru), 0);
	ck_assert_int_eq(h5_lru_get(lru, &key, load_holder, lru, &e), 0);
	h5_lru_put(lru, e);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 2); /* the latest stays, and what it holds */
	touch(lru, &l, 3);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 1);
	ck_assert_uint_ge(stats.evictions, 2);
	h5_lru_close(lru);
}
END_TEST

struct reader_thread {
	struct h5_lru *lru;
	struct loader *loader;
};

static void *get_in_thread(void *arg)
{
	struct reader_thread *t = arg;

	touch(t->lru, t->loader, 5);
	return NULL;
}

/* Two threads ask for one key; the loader runs once, the second one waits for it. */
START_TEST(lru_loads_once)
{
	pthread_barrier_t barrier;
	struct loader l = {.barrier = &barrier};
	struct reader_thread t;
	pthread_t a, b;

	pthread_barrier_init(&barrier, NULL, 2);
	ck_assert_int_eq(h5_lru_open(3500, &t.lru), 0);
	t.loader = &l;
	pthread_create(&a, NULL, get_in_thread, &t);
	pthread_create(&b, NULL, get_in_thread, &t);
	pthread_barrier_wait(&barrier); /* with the one load; a second load would wait here for ever */
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	ck_assert_uint_eq(l.calls, 1);
	h5_lru_close(t.lru);
	pthread_barrier_destroy(&barrier);
}
END_TEST

static int load_while_others_try(void *arg, void **value, size_t *cost)
{
	struct reader_thread *t = arg;
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_lru_entry *e;

	/* A thread of its own would do the same: it is the key that is being loaded. */
	ck_assert(h5_lru_has(t->lru, &key));
	ck_assert_int_eq(h5_lru_try(t->lru, &key, load, t->loader, &e), -EAGAIN);
	ck_assert_ptr_null(e);
	return load(t->loader, value, cost);
}

START_TEST(lru_tells_what_is_being_loaded)
{
	struct loader l = {0};
	struct reader_thread t = {.loader = &l};
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_lru_entry *e;

	ck_assert_int_eq(h5_lru_open(3500, &t.lru), 0);
	ck_assert(!h5_lru_has(t.lru, &key));
	ck_assert_int_eq(h5_lru_try(t.lru, &key, load_while_others_try, &t, &e), 0);
	h5_lru_put(t.lru, e);
	ck_assert(h5_lru_has(t.lru, &key));
	ck_assert_int_eq(h5_lru_try(t.lru, &key, load, &l, &e), 0);
	h5_lru_put(t.lru, e);
	ck_assert_uint_eq(l.calls, 1);
	h5_lru_close(t.lru);
}
END_TEST

/* Dropped by one who has it, it lives as long as another one has it, too. */
START_TEST(lru_forgets_what_is_dropped)
{
	struct loader l = {0};
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_lru_stats stats;
	struct h5_lru_entry *a, *b;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
	ck_assert_int_eq(h5_lru_get(lru, &key, load, &l, &a), 0);
	ck_assert_int_eq(h5_lru_get(lru, &key, load, &l, &b), 0);
	h5_lru_drop(lru, a);
	ck_assert(!h5_lru_has(lru, &key));
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 1);
	h5_lru_drop(lru, b); /* may be dropped twice */
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 0);
	ck_assert_uint_eq(stats.bytes, 0);
	touch(lru, &l, 5);
	ck_assert_uint_eq(l.calls, 2);
	h5_lru_close(lru);
}
END_TEST

/* Threads that reserve, and what they have at one time. */
struct reserving {
	struct h5_lru *lru;
	atomic_size_t held, turns;
	size_t most; /* that may be held by several */
};

static void *reserve_again_and_again(void *arg)
{
	struct reserving *r = arg;
	unsigned number = (unsigned)atomic_fetch_add(&r->turns, 1);

	for (unsigned i = 0; i < 500; i++) {
		size_t n = (number * 7919 + i * 104729) % 13 << 20, held;

		/* Now and then more than there is. */
		if (i % 50 == number)
			n = 100 << 20;
		ck_assert_int_eq(h5_lru_reserve(r->lru, n), 0);
		held = atomic_fetch_add(&r->held, n) + n;
		ck_assert_msg(held <= r->most || held == n, "%zu bytes are held", held);
		atomic_fetch_sub(&r->held, n);
		h5_lru_unreserve(r->lru, n);
	}
	return NULL;
}

/* Nobody waits for ever, and no more is given away than there is but to one who is alone. */
START_TEST(lru_reserves_within_its_budget)
{
	struct reserving r = {.most = 40 << 20};
	pthread_t threads[8];

	ck_assert_int_eq(h5_lru_open(r.most, &r.lru), 0);
	for (unsigned i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, reserve_again_and_again, &r);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	h5_lru_close(r.lru);
}
END_TEST

START_TEST(lru_evicts_for_what_is_reserved)
{
	struct loader l = {0};
	struct h5_lru_stats stats;
	struct h5_lru *lru;

	ck_assert_int_eq(h5_lru_open(3500, &lru), 0);
	for (uint64_t i = 1; i < 4; i++)
		touch(lru, &l, i);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_gt(stats.entries, 1);
	ck_assert_int_eq(h5_lru_reserve(lru, 3000), 0);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 0);
	/* What comes meanwhile stays as long as nothing else does. */
	for (uint64_t i = 1; i < 4; i++)
		touch(lru, &l, i);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_eq(stats.entries, 1);
	h5_lru_unreserve(lru, 3000);
	for (uint64_t i = 1; i < 4; i++)
		touch(lru, &l, i);
	h5_lru_stats(lru, &stats);
	ck_assert_uint_gt(stats.entries, 1);
	h5_lru_close(lru);
}
END_TEST

static bool never_wanted(void *arg)
{
	++*(unsigned *)arg;
	return true;
}

static void *wait_unwanted(void *arg)
{
	const struct reader_thread *t = arg;
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_lru_entry *e;
	unsigned asked = 0;

	h5_interrupt_begin(never_wanted, &asked);
	ck_assert_int_eq(h5_lru_get(t->lru, &key, load, t->loader, &e), -EINTR);
	ck_assert_ptr_null(e);
	ck_assert_uint_ge(asked, 1);
	return NULL;
}

static int load_meanwhile(void *arg, void **value, size_t *cost)
{
	struct reader_thread *t = arg;
	pthread_t waiting;

	pthread_create(&waiting, NULL, wait_unwanted, t);
	pthread_join(waiting, NULL);
	return load(t->loader, value, cost);
}

/* The wait for another thread's load ends where nobody wants the result; the load goes on. */
START_TEST(lru_waits_only_while_it_is_wanted)
{
	struct loader l = {0};
	struct reader_thread t = {.loader = &l};
	struct h5_lru_key key = {&kind, 0, 5, 0};
	struct h5_lru_entry *e;

	ck_assert_int_eq(h5_lru_open(3500, &t.lru), 0);
	ck_assert_int_eq(h5_lru_get(t.lru, &key, load_meanwhile, &t, &e), 0);
	ck_assert_uint_eq(l.calls, 1);
	h5_lru_put(t.lru, e);
	h5_lru_close(t.lru);
}
END_TEST

/* ---- the memory of requests ---- */

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

START_TEST(nothing_is_interrupted_in_its_first_second)
{
	unsigned asked = 0;

	ck_assert_int_eq(h5_interrupt_check(), 0);
	h5_interrupt_begin(never_wanted, &asked);
	ck_assert_int_eq(h5_interrupt_check(), 0);
	ck_assert_uint_eq(asked, 1);
	h5_interrupt_begin(NULL, NULL);
	ck_assert_int_eq(h5_interrupt_check(), 0);
	ck_assert_uint_eq(asked, 1);
}
END_TEST

/* The kernel may cache for long only what a lock keeps from changing. */
START_TEST(io_tells_whether_it_is_locked)
{
	const enum h5_lock_mode modes[] = {H5_LOCK_NONE, H5_LOCK_ALWAYS, H5_LOCK_BEST_EFFORT};
	struct h5_io_stat st;
	struct h5_io *io;

	for (unsigned i = 0; i < 3; i++) {
		int fd = memfd_create("io", 0);

		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(h5_io_open_fd(fd, modes[i], false, &io), 0);
		ck_assert_int_eq(h5_io_stat(io, &st), 0);
		ck_assert_int_eq(st.locked, modes[i] != H5_LOCK_NONE);
		h5_io_close(io);
	}
}
END_TEST

UNIT_MAIN("base", lookup3_known_values, siphash_known_values, reader_is_bounded_and_sticky,
	  reader_verifies_checksums, products_are_checked, buf_stops_at_its_limit,
	  text_cannot_steer_a_terminal, lru_keeps_the_latest_within_its_budget,
	  lru_keeps_a_value_over_its_budget, lru_does_not_cache_failures, lru_values_may_hold_references,
	  lru_loads_once, lru_tells_what_is_being_loaded, lru_forgets_what_is_dropped,
	  lru_reserves_within_its_budget, lru_evicts_for_what_is_reserved, lru_waits_only_while_it_is_wanted,
	  charges_are_refused_and_never_wait, many_large_requests_come_to_their_end,
	  nothing_is_interrupted_in_its_first_second, io_tells_whether_it_is_locked)
