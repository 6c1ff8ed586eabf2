#include "base/base64.h"
#include "base/buf.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/hash_table.h"
#include "base/interrupt.h"
#include "base/lookup3.h"
#include "base/reader.h"
#include "base/seen.h"
#include "base/siphash.h"
#include "base/wait.h"
#include "fault_alloc.h"
#include "io/io.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

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

/* The context comes before the text of the same error, and stays if the text becomes too long. */
START_TEST(errors_get_a_context)
{
	char text[sizeof h5_error_last()->text];

	ck_assert_int_eq(h5_fail(-EIO, 7, "no disk"), -EIO);
	ck_assert_int_eq(h5_fail_in(-EIO, "file %d", 3), -EIO);
	ck_assert_str_eq(h5_error_last()->text, "file 3: no disk");
	ck_assert_uint_eq(h5_error_last()->address, 7);
	/* An error that left no text: what is there is another one's. */
	ck_assert_int_eq(h5_fail_in(-ENOMEM, "file %d", 4), -ENOMEM);
	ck_assert_str_eq(h5_error_last()->text, "file 3: no disk");
	ck_assert_int_eq(h5_error_last()->code, -EIO);
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = 0;
	ck_assert_int_eq(h5_fail(-EIO, 7, "%s", text), -EIO);
	ck_assert_int_eq(h5_fail_in(-EIO, "file %d", 5), -EIO);
	memcpy(text, "file 5: ", 8);
	ck_assert_str_eq(h5_error_last()->text, text);
	(void)h5_fail(-EBUSY, 8, "a%.2s", h5_error_last()->text + 1);
	ck_assert_str_eq(h5_error_last()->text, "ail");
}
END_TEST

/* Numbers of each size; all bits set: not defined, whatever the size. */
START_TEST(numbers_of_all_sizes)
{
	uint8_t data[9];

	for (unsigned n = 0; n <= 9; n++)
		for (unsigned low = 0xfe; low <= 0xff; low++) {
			const uint64_t ones = n >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * n) - 1;
			struct h5_reader r = h5_reader_init(data, sizeof data, 0, (uint8_t)n, (uint8_t)n);
			uint64_t expected = n && n < 9 ? low == 0xff ? UINT64_MAX : ones - 1 : 0;

			memset(data, 0xff, sizeof data);
			data[0] = (uint8_t)low;
			ck_assert_uint_eq(h5_read_offset(&r), expected);
			ck_assert_uint_eq(h5_reader_at(&r), n < 9 ? n : 0);
			ck_assert_int_eq(r.err, n > 8);
			r = h5_reader_init(data, sizeof data, 0, (uint8_t)n, (uint8_t)n);
			ck_assert_uint_eq(h5_read_length(&r), expected);
			r = h5_reader_init(data, sizeof data, 0, (uint8_t)n, (uint8_t)n);
			ck_assert_uint_eq(h5_read_uint(&r, n), n > 8 || !n   ? 0
							       : low == 0xff ? ones
									     : ones - 1);
		}
	memset(data, 0, sizeof data);
	for (uint8_t n = 0; n <= 8; n++) {
		struct h5_reader r = h5_reader_init(data, sizeof data, 0, n, n);

		ck_assert_uint_eq(h5_read_offset(&r), 0);
	}
}
END_TEST

START_TEST(readers_of_parts)
{
	const uint8_t data[] = {1, 2, 3, 4, 5};
	struct h5_reader r = h5_reader_init(data, sizeof data, 100, 8, 8), sub;

	h5_reader_skip(&r, 1);
	sub = h5_reader_sub(&r, 3);
	ck_assert(!sub.err && !r.err);
	ck_assert_uint_eq(h5_reader_left(&sub), 3);
	ck_assert_uint_eq(h5_reader_at(&sub), 0);
	ck_assert_uint_eq(h5_reader_address(&sub), 101);
	ck_assert_uint_eq(h5_reader_left(&r), 1);
	ck_assert_uint_eq(h5_read_u8(&sub), 2);
	ck_assert_uint_eq(h5_reader_address(&sub), 102);
	h5_reader_skip(&sub, 3); /* it has no more than its part */
	ck_assert(sub.err && !r.err);
	sub = h5_reader_sub(&r, 0);
	ck_assert(!sub.err);
	ck_assert_uint_eq(h5_reader_left(&sub), 0);
	sub = h5_reader_sub(&r, 1);
	ck_assert(!sub.err);
	ck_assert_uint_eq(h5_reader_left(&r), 0);
	sub = h5_reader_sub(&r, 1);
	ck_assert(sub.err && r.err);
	ck_assert_uint_eq(h5_reader_left(&sub), 0);
	r = h5_reader_init(data, sizeof data, H5_UNDEF, 8, 8);
	h5_reader_skip(&r, 2);
	ck_assert(h5_reader_address(&r) == H5_UNDEF);
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

/* Of any length, a whole one or nothing. */
START_TEST(buf_prints)
{
	static const size_t lengths[] = {0, 254, 255, 256, 257, 70000};
	struct h5_buf b;
	char *text;

	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		text = calloc(lengths[i] + 1, 1);
		memset(text, 'x', lengths[i]);
		h5_buf_init(&b, lengths[i] + 4);
		h5_buf_byte(&b, '<');
		h5_buf_printf(&b, "%s%c", text, '>');
		ck_assert_int_eq(b.err, 0);
		ck_assert_uint_eq(b.size, lengths[i] + 2);
		ck_assert_mem_eq(b.data + 1, text, lengths[i]);
		ck_assert_int_eq(b.data[lengths[i] + 1], '>');
		h5_buf_printf(&b, "%s", "abc");
		ck_assert_int_eq(b.err, -E2BIG);
		ck_assert_uint_eq(b.size, lengths[i] + 2);
		h5_buf_release(&b);
		free(text);
	}
}
END_TEST

/* Those of RFC 4648, section 10, and bytes of which all digits come. */
START_TEST(base64_known_values)
{
	static const char *const values[][2] = {{"", ""},
						{"f", "Zg=="},
						{"fo", "Zm8="},
						{"foo", "Zm9v"},
						{"foob", "Zm9vYg=="},
						{"fooba", "Zm9vYmE="},
						{"foobar", "Zm9vYmFy"},
						{"\xff\xfe", "//4="},
						{"\xfb\xf0", "+/A="}};

	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		uint8_t data[8];
		struct h5_buf b;

		memset(data, 0xff, sizeof data); /* what lies behind the bytes is not encoded */
		memcpy(data, values[i][0], strlen(values[i][0]));
		h5_buf_init(&b, SIZE_MAX);
		h5_base64(&b, data, strlen(values[i][0]));
		ck_assert_int_eq(b.err, 0);
		ck_assert_uint_eq(b.size, strlen(values[i][1]));
		ck_assert(!b.size || !memcmp(b.data, values[i][1], b.size));
		h5_buf_release(&b);
	}
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

/* The first and the last of each form, and what is just outside. */
START_TEST(utf8_is_what_unicode_says)
{
	static const char *const good[] = {"\x01",
					   "\x7f",
					   "\xc2\x80",
					   "\xdf\xbf",
					   "\xe0\xa0\x80",
					   "\xe0\xbf\xbf",
					   "\xe1\x80\x80",
					   "\xec\xbf\xbf",
					   "\xed\x80\x80",
					   "\xed\x9f\xbf",
					   "\xee\x80\x80",
					   "\xef\xbf\xbf",
					   "\xf0\x90\x80\x80",
					   "\xf0\xbf\x8f\xbf",
					   "\xf1\x80\x80\x80",
					   "\xf3\xbf\xbf\xbf",
					   "\xf4\x80\x80\x80",
					   "\xf4\x8f\xbf\xbf"};
	static const char *const bad[] = {"\x80",
					  "\xbf",
					  "\xc0\x80",
					  "\xc1\xbf",
					  "\xc2\x7f",
					  "\xc2\xc0",
					  "\xe0\x9f\xbf",
					  "\xe0\xa0\x7f",
					  "\xe0\xa0\xc0",
					  "\xe1\x7f\x80",
					  "\xe1\xc0\x80",
					  "\xed\xa0\x80",
					  "\xed\x9f\xc0",
					  "\xf0\x8f\xbf\xbf",
					  "\xf0\x90\x80\x7f",
					  "\xf0\x90\xc0\x80",
					  "\xf4\x90\x80\x80",
					  "\xf4\x8f\xbf\xc0",
					  "\xf5\x80\x80\x80",
					  "\xff"};

	ck_assert(h5_is_utf8("", 0));
	ck_assert(h5_is_utf8("\0", 1));
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		const size_t n = strlen(good[i]);
		char twice[16];

		ck_assert_msg(h5_is_utf8(good[i], n), "%zu", i);
		for (size_t cut = 1; cut < n; cut++)
			ck_assert_msg(!h5_is_utf8(good[i], cut), "%zu", i);
		snprintf(twice, sizeof twice, "%s%s", good[i], good[i]);
		ck_assert(h5_is_utf8(twice, 2 * n));
		if (n > 1)
			ck_assert(!h5_is_utf8(twice, 2 * n - 1));
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(!h5_is_utf8(bad[i], strlen(bad[i])), "%zu", i);
}
END_TEST

/* A text is cut where there is no room for a whole character and the NUL. */
START_TEST(escaped_text_is_cut)
{
	static const struct {
		const char *text, *shown[6]; /* with room for 1, 2, ... bytes */
	} cases[] = {{"abc", {"", "a", "ab", "abc", "abc", "abc"}},
		     {"\n", {"", "", "", "", "\\012", "\\012"}},
		     {"\xc3\xa9z", {"", "", "\xc3\xa9", "\xc3\xa9z", "\xc3\xa9z", "\xc3\xa9z"}}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (size_t room = 1; room <= 6; room++) {
			char out[8];

			memset(out, '#', sizeof out);
			h5_escape_into(out, room, cases[i].text, strlen(cases[i].text));
			ck_assert_str_eq(out, cases[i].shown[room - 1]);
			ck_assert_int_eq(out[room], '#');
		}
}
END_TEST

static bool never_wanted(void *arg)
{
	++*(unsigned *)arg;
	return true;
}

START_TEST(nothing_is_interrupted_in_its_first_second)
{
	unsigned asked = 0;

	ck_assert_int_eq(h5_interrupt_check(), 0);
	h5_interrupt_begin(never_wanted, &asked);
	while (!asked) /* some milliseconds */
		ck_assert_int_eq(h5_interrupt_check(), 0);
	ck_assert_uint_eq(asked, 1);
	h5_interrupt_begin(NULL, NULL);
	ck_assert_int_eq(h5_interrupt_check(), 0);
	ck_assert_uint_eq(asked, 1);
}
END_TEST

/* ---- clocks that the test sets, in milliseconds ---- */

static struct {
	bool set;
	long now, worked;
} clocks;

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	const long at = clock == CLOCK_THREAD_CPUTIME_ID ? clocks.worked : clocks.now;

	if (!clocks.set)
		return __real_clock_gettime(clock, t);
	*t = (struct timespec){.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000};
	return 0;
}

static int check_after(long passed, long worked)
{
	clocks.now += passed;
	clocks.worked += worked;
	return h5_interrupt_check();
}

static uint64_t limit_of(void *arg)
{
	return *(const unsigned *)arg;
}

START_TEST(a_request_is_interrupted_after_its_first_second)
{
	unsigned asked = 0;

	clocks.set = true;
	for (clocks.now = 1000; clocks.now < 4000; clocks.now += 700) {
		h5_interrupt_begin(never_wanted, &asked);
		asked = 0;
		/* Nobody is asked before some time has passed. */
		ck_assert_int_eq(check_after(0, 0), 0);
		ck_assert_uint_eq(asked, 0);
		ck_assert_int_eq(check_after(999, 0), 0);
		ck_assert_uint_eq(asked, 1);
		ck_assert_int_eq(check_after(1, 0), -EINTR);
		ck_assert_int_eq(check_after(5000, 0), -EINTR);
		h5_interrupt_begin(NULL, NULL);
		ck_assert_int_eq(check_after(5000, 0), 0);
	}
	clocks.set = false;
}
END_TEST

/* What a thread has worked in its first second does not count, nor for other requests, or other threads. */
START_TEST(the_work_of_a_request_is_limited)
{
	struct h5_interrupt of_another;
	unsigned limit = 1000, none = 0;

	clocks.set = true;
	clocks.now = clocks.worked = 7000;
	for (unsigned i = 0; i < 4; i++) {
		if (i < 2) {
			h5_interrupt_begin(NULL, &limit);
			h5_interrupt_bound(limit_of);
		} else {
			h5_interrupt_get(&of_another);
			h5_interrupt_set(&of_another);
		}
		if (i < 2)
			ck_assert_int_eq(check_after(999, 9000), 0);
		ck_assert_int_eq(check_after(1001, 9000), 0);
		ck_assert_int_eq(check_after(3000, 1001), 0);
		ck_assert_int_eq(check_after(1, 1), -EFBIG);
		ck_assert_int_eq(check_after(1, 0), -EFBIG);
	}
	h5_interrupt_begin(NULL, &none);
	h5_interrupt_bound(limit_of);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(check_after(60000, 60000), 0);
	/* The next request has no limit. */
	h5_interrupt_begin(NULL, &limit);
	h5_interrupt_bound(limit_of);
	h5_interrupt_begin(NULL, &limit);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(check_after(60000, 60000), 0);
	h5_interrupt_begin(NULL, NULL);
	clocks.set = false;
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

static unsigned told;

static void tell(void)
{
	told++;
}

START_TEST(a_wait_is_told_once)
{
	told = 0;
	h5_wait_begins();
	ck_assert_uint_eq(told, 0);
	h5_wait_set(tell);
	ck_assert(h5_wait_is_noticed());
	h5_wait_begins();
	h5_wait_begins();
	ck_assert_uint_eq(told, 1);
	ck_assert(!h5_wait_is_noticed());
	h5_wait_set(tell);
	h5_wait_set(NULL);
	h5_wait_begins();
	ck_assert_uint_eq(told, 1);
}
END_TEST

static void read_once(int fd, char *buf, size_t n)
{
	struct h5_io *io;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(h5_io_open_fd(fd, H5_LOCK_NONE, false, &io), 0);
	ck_assert_int_eq(h5_io_read(io, 0, buf, n), 0);
	h5_io_close(io);
}

/* The bytes of files in /proc, and in some file systems, may or may not be there: nobody can ask. */
START_TEST(a_read_tells_before_it_waits)
{
	FILE *file = tmpfile();
	int fd = file ? dup(fileno(file)) : -1;
	char buf[6];
	struct iovec all = {buf, sizeof buf};
	bool can_ask;

	ck_assert_int_eq(pwrite(fd, "memory", 6, 0), 6);
	can_ask = preadv2(fd, &all, 1, 0, RWF_NOWAIT) == 6;
	fclose(file);
	told = 0;
	h5_wait_set(tell);
	read_once(fd, buf, sizeof buf);
	ck_assert_mem_eq(buf, "memory", 6);
	ck_assert_uint_eq(told, !can_ask);
	told = 0;
	h5_wait_set(tell);
	read_once(open("/proc/version", O_RDONLY), buf, 5);
	ck_assert_mem_eq(buf, "Linux", 5);
	ck_assert_uint_eq(told, 1);
	read_once(open("/proc/version", O_RDONLY), buf, 5);
	ck_assert_uint_eq(told, 1);
}
END_TEST

/* The first numbers and the later ones are kept in two ways. */
START_TEST(seen_numbers_are_a_set)
{
	struct h5_seen seen = {0};

	for (unsigned round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < 40; i++) {
			for (uint64_t k = 0; k < 40; k++)
				ck_assert_int_eq(h5_seen_has(&seen, k * k), k < i);
			ck_assert_int_eq(h5_seen_add(&seen, i * i), 0);
			ck_assert_int_eq(h5_seen_add(&seen, i * i), -EEXIST);
			ck_assert_int_eq(h5_seen_add(&seen, 0), -EEXIST);
		}
		h5_seen_release(&seen);
	}
}
END_TEST

/* ---- while memory is short ---- */

START_TEST(seen_numbers_while_memory_is_short)
{
	struct h5_seen seen = {0};
	unsigned failed = 0;

	for (uint64_t k = 0; k < 100; k++) {
		bool fired = true;

		for (unsigned n = 1; fired; n++) {
			int rc;

			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_seen_add(&seen, k);
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
			for (uint64_t i = 0; i < 100; i++)
				ck_assert_int_eq(h5_seen_has(&seen, i), i < k || (i == k && !fired));
			failed += fired;
		}
	}
	ck_assert_uint_gt(failed, 0);
	h5_seen_release(&seen);
}
END_TEST

/* A buffer keeps what it has, and the error. */
START_TEST(buffers_while_memory_is_short)
{
	char long_text[1000];
	bool fired = true;
	unsigned failed = 0;

	memset(long_text, 'x', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = 0;
	for (unsigned n = 1; fired; n++) {
		struct h5_buf b;

		h5_buf_init(&b, SIZE_MAX);
		h5_buf_text(&b, "abc");
		fault_alloc_arm(n);
		fault_alloc_count(true);
		h5_buf_printf(&b, "%s", long_text);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!b.err || (fired && b.err == -ENOMEM)); /* libc may do without */
		ck_assert_uint_eq(b.size, b.err ? 3 : 3 + sizeof long_text - 1);
		failed += b.err != 0;
		ck_assert_mem_eq(b.data, "abc", 3);
		if (b.err) {
			h5_buf_byte(&b, 'd');
			ck_assert_uint_eq(b.size, 3);
		}
		h5_buf_release(&b);
	}
	ck_assert_uint_gt(failed, 1);
}
END_TEST

/* With chains of four, 10,000 items would have 65,536. */
START_TEST(a_table_has_no_more_buckets_than_four_times_its_items)
{
	enum { ITEMS = 10000 };
	struct item {
		uint64_t key;
		UT_hash_handle hh;
	} *items = calloc(ITEMS, sizeof *items), *table = NULL;

	for (uint64_t i = 0; i < ITEMS; i++) {
		items[i].key = 800 * i;
		HASH_ADD(hh, table, key, sizeof items[i].key, &items[i]);
	}
	ck_assert_uint_le(table->hh.tbl->num_buckets, 4 * ITEMS);
	HASH_CLEAR(hh, table);
	free(items);
}
END_TEST

enum { CHAINS = 1 << 10, KEYS = 4 * CHAINS, LONGEST = 40 };

/* The keys, of so many bytes each, go to all chains: by chance the longest has about 14. */
static void check_chains(const void *keys, size_t size)
{
	static unsigned chains[CHAINS];

	memset(chains, 0, sizeof chains);
	for (size_t i = 0; i < KEYS; i++)
		ck_assert_uint_lt(++chains[h5_hash((const uint8_t *)keys + i * size, size) % CHAINS],
				  LONGEST);
}

START_TEST(keys_go_to_all_chains)
{
	static uint64_t keys[KEYS], pairs[KEYS][2];
	static char names[KEYS][13];

	for (unsigned shift = 0; shift < 50; shift++) {
		for (uint64_t i = 0; i < KEYS; i++) {
			keys[i] = i << shift;
			pairs[i][0] = i % 2;
			pairs[i][1] = i / 2 << shift;
		}
		check_chains(keys, sizeof *keys);
		check_chains(pairs, sizeof *pairs);
	}
	for (unsigned i = 0; i < KEYS; i++)
		snprintf(names[i], sizeof names[i], "dataset%05u", i);
	check_chains(names, sizeof *names);
	ck_assert_uint_ne(h5_hash(names, 1), h5_hash(names, 2));
}
END_TEST

/* Keys that uthash's own function puts into one chain, as the addresses in a file may be. */
START_TEST(chosen_keys_go_to_all_chains)
{
	static uint64_t keys[KEYS];
	uint64_t key = 0;

	for (size_t i = 0; i < KEYS; i++) {
		unsigned hash;

		do {
			key++;
			HASH_JEN(&key, sizeof key, hash);
		} while (hash % CHAINS);
		keys[i] = key;
	}
	check_chains(keys, sizeof *keys);
}
END_TEST

/* These are the values with the numbers that the code has for want of chance. */
START_TEST(hashes_are_other_ones_in_each_process)
{
	ck_assert_uint_ne(h5_hash("", 0), 0xe5328ae);
	ck_assert_uint_ne(h5_hash("key", 3), 0x5590ba16);
}
END_TEST

UNIT_MAIN("base", lookup3_known_values, siphash_known_values, reader_is_bounded_and_sticky,
	  errors_get_a_context, numbers_of_all_sizes, readers_of_parts, utf8_is_what_unicode_says,
	  escaped_text_is_cut, seen_numbers_while_memory_is_short, buffers_while_memory_is_short,
	  reader_verifies_checksums, products_are_checked, buf_stops_at_its_limit, buf_prints,
	  base64_known_values, text_cannot_steer_a_terminal, nothing_is_interrupted_in_its_first_second,
	  a_request_is_interrupted_after_its_first_second, the_work_of_a_request_is_limited,
	  io_tells_whether_it_is_locked, a_wait_is_told_once, a_read_tells_before_it_waits,
	  seen_numbers_are_a_set, a_table_has_no_more_buckets_than_four_times_its_items,
	  keys_go_to_all_chains, chosen_keys_go_to_all_chains, hashes_are_other_ones_in_each_process)
