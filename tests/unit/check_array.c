#include "base/array.h"
#include "base/error.h"
#include "fault_alloc.h"
#include "unit.h"

#include <errno.h>
#include <stdint.h>

struct list {
	uint64_t *items;
	size_t count, capacity;
};

START_TEST(array_keeps_its_items_when_it_grows)
{
	struct list list = {0};
	size_t grown = 0;

	for (uint64_t i = 0; i < 1000; i++) {
		size_t before = list.capacity;

		ck_assert_int_eq(h5_array_reserve(&list.items, &list.capacity, list.count + 1, NULL), 0);
		ck_assert(list.capacity == before || list.capacity >= 2 * before);
		grown += list.capacity != before;
		list.items[list.count++] = i;
	}
	for (uint64_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(list.items[i], i);
	ck_assert(grown <= 10);
	ck_assert_int_eq(h5_array_reserve(&list.items, &list.capacity, 5000, NULL), 0);
	ck_assert(list.capacity >= 5000);
	ck_assert_uint_eq(list.items[999], 999);
	free(list.items);
}
END_TEST

START_TEST(array_refuses_more_than_the_address_space)
{
	struct list list = {0};
	uint64_t *items;

	ck_assert_int_eq(h5_array_reserve(&list.items, &list.capacity, 3, NULL), 0);
	items = list.items;
	ck_assert_int_eq(h5_array_reserve(&list.items, &list.capacity, SIZE_MAX / 8 + 1, NULL), -ENOMEM);
	ck_assert_int_eq(h5_array_reserve(&list.items, &list.capacity, SIZE_MAX, NULL), -ENOMEM);
	ck_assert_ptr_eq(list.items, items);
	ck_assert_uint_eq(list.capacity, 8);
	free(list.items);
}
END_TEST

/* The request pays for what the array has, also after it could not grow. */
START_TEST(array_is_charged_to_the_request)
{
	enum { ROOM = 1 << 20 };
	struct h5_account account = {0};
	struct h5_charge charge = {0};
	struct list list = {0};
	struct h5_room *room;
	size_t capacity;

	ck_assert_int_eq(h5_room_open(ROOM, NULL, NULL, &room), 0);
	h5_account_begin(&account, room);
	ck_assert_int_eq(h5_array_reserve(&list.items, &list.capacity, ROOM / 32, &charge), 0);
	ck_assert_uint_eq(charge.bytes, list.capacity * sizeof *list.items);
	capacity = list.capacity;
	ck_assert_int_eq(h5_array_reserve(&list.items, &list.capacity, ROOM, &charge), -EFBIG);
	ck_assert_uint_eq(charge.bytes, capacity * sizeof *list.items);
	fault_alloc_arm(1);
	fault_alloc_count(true);
	ck_assert_int_eq(h5_array_reserve(&list.items, &list.capacity, capacity + 1, &charge), -ENOMEM);
	fault_alloc_count(false);
	ck_assert(fault_alloc_disarm());
	ck_assert_uint_eq(charge.bytes, capacity * sizeof *list.items);
	ck_assert_uint_eq(account.taken, charge.bytes);
	ck_assert_uint_eq(list.capacity, capacity);
	free(list.items);
	h5_charge_release(&charge);
	h5_account_end(&account);
	h5_room_close(room);
}
END_TEST

UNIT_MAIN("array", array_keeps_its_items_when_it_grows, array_refuses_more_than_the_address_space,
	  array_is_charged_to_the_request)
