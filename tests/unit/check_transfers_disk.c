/* What of the answers of a server is kept on the disk, and served from there. */
#include "config.h"

#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef HAVE_LIBCURL

#include "base/checked.h"
#include "fault_alloc.h"
#include "scratch.h"
#include "transfer_scene.h"

/* Another process, which finds what is there. */
static void use_disk(void)
{
	char path[128];

	snprintf(path, sizeof path, "%s/cache", scratch_folder());
	h5_disk_begin(scene.f, h5_disk_folder_open(path));
	ck_assert_int_ge(scene.f->disk.fd, 0);
	scene.f->disk.budget = 1 << 30;
}

static void begin_again(void)
{
	begin();
	use_disk();
}

static void begin_disk(void)
{
	scratch_run("rm -rf %s/cache", scratch_folder());
	begin_again();
}

static void end_disk(void)
{
	h5_source_forget(scene.f, &scene.f->sources[2]);
	ck_assert_uint_eq(scene.f->disk.open, 0);
	close(scene.f->disk.fd);
	free(scene.f->scratch);
	end();
}

/* What is in the cells behind the bytes that were wanted stays as it was. */
static void check_rest(uint64_t n)
{
	for (uint64_t i = n; i % CELL; i++)
		ck_assert_int_eq(scene.f->end.memory[(scene.f->end.cells - 1 - i / CELL) * CELL + i % CELL],
				 0);
}

/* Reads bytes of the file that is open: how many of them were on the disk. `steps`: NULL: all. */
static uint64_t read_file(uint64_t offset, uint64_t n, const struct step *step)
{
	const struct h5_remote_request request = {
		.what = H5_REMOTE_READ, .id = 9, .file = 2, .offset = offset, .n = n};

	memset(scene.f->end.memory, 0, (size_t)CELLS * CELL);
	check_reply(ask(request, step, !!step), &(struct expected){.got = n, .size = SIZE}, "read");
	check_cells(&request, n);
	check_rest(n);
	return scene.reply.from_disk;
}

/* Opens it with its first n bytes. */
static uint64_t open_file(uint64_t n, const struct step *steps, size_t count, const struct expected *expected)
{
	struct h5_remote_request request = opening;

	request.n = n;
	memset(scene.f->end.memory, 0, (size_t)CELLS * CELL);
	check_reply(ask(request, steps, count), expected, "open");
	check_cells(&request, expected->got);
	return scene.reply.from_disk;
}

#define OFFER "If-None-Match: \"a\""
#define FIRST HEAD("206") RANGE("0-16383/49052") TAG("a")

static const struct step fetched = {.url = MINE,
				    .fields = {"!If-"},
				    .time = 99,
				    .head = FIRST END,
				    .n = CELL,
				    .piece = 1000},
			 confirmed = {.url = MINE,
				      .range = "0-16383",
				      .fields = {OFFER, "!If-Match"},
				      .head = HEAD("304") TAG("a") END},
			 last_block = {.url = MINE,
				       .range = "32768-49051",
				       .fields = {"If-Match: \"a\"", "!If-None"},
				       .head = HEAD("206") RANGE("32768-49051/49052") TAG("a") END,
				       .from = N,
				       .n = CELL - 100},
			 middle = {.url = MINE,
				   .range = "16384-32767",
				   .head = HEAD("206") RANGE("16384-32767/49052") TAG("a") END,
				   .from = CELL,
				   .n = CELL};
static const struct expected one_cell = {.got = CELL, .size = SIZE, .tag = "a"};

/* Bytes that were fetched once are read from the disk later, by the next process too. The server only
 * confirms that they are still the same. */
START_TEST(bytes_on_disk)
{
	begin_disk();
	ck_assert_uint_eq(open_file(CELL, &fetched, 1, &one_cell), 0);
	ck_assert_uint_eq(read_file(N, CELL - 100, &last_block), 0);
	ck_assert_uint_eq(read_file(0, SIZE, &middle), SIZE - CELL);
	ck_assert_uint_eq(scene.reply.received, CELL);
	ck_assert_uint_eq(read_file(0, SIZE, NULL), SIZE);
	ck_assert_uint_eq(scene.reply.requests, 0);
	close_file(2);
	ck_assert_uint_eq(scene.f->disk.open, 0);
	ck_assert_uint_eq(open_file(CELL, &confirmed, 1, &one_cell), CELL);
	ck_assert_int_eq(scene.reply.mtime, 99);
	ck_assert_uint_eq(scene.reply.received, 0);
	ck_assert_uint_eq(read_file(CELL, N - 100, NULL), N - 100);
	end_disk();
	begin_again();
	ck_assert_uint_eq(
		open_file(CELL, (struct step[]){{.url = MINE, .fields = {OFFER}, .head = HEAD("304") END}}, 1,
			  &one_cell),
		CELL);
	ck_assert_uint_eq(read_file(0, SIZE, NULL), SIZE);
	end_disk();
	/* Its end is not a whole block. */
	begin_again();
	ck_assert_uint_eq(
		open_file(4 * CELL,
			  (struct step[]){{.url = MINE, .fields = {OFFER}, .head = HEAD("304") END}}, 1,
			  &(struct expected){.got = SIZE, .size = SIZE, .tag = "a"}),
		SIZE);
	end_disk();
}
END_TEST

/* Only if all of what is asked for is there, and only once, the server is asked whether it is the present
 * version. */
START_TEST(offers)
{
	static const struct step whole = {
		.url = MINE, .range = "0-32767", .fields = {"!If-"}, .head = PART, .n = N};
	const struct step lies[] = {{.url = MINE, .fields = {OFFER}, .head = HEAD("304") TAG("b") END},
				    fetched},
			  newer = {.url = MINE,
				   .fields = {OFFER},
				   .head = HEAD("206") RANGE("0-16383/49052") TAG("b") END,
				   .n = CELL},
			  again[] = {{.url = MINE, .fields = {OFFER}, .head = HEAD("500") END}, confirmed},
			  refused = {.url = MINE, .fields = {OFFER}, .head = HEAD("404") END};

	begin_disk();
	open_file(CELL, &fetched, 1, &one_cell);
	close_file(2);
	ck_assert_uint_eq(open_file(N, &whole, 1, &(struct expected){.got = N, .size = SIZE, .tag = "a"}), 0);
	close_file(2);
	ck_assert_uint_eq(open_file(CELL, lies, 2,
				    &(struct expected){.got = CELL, .size = SIZE, .tag = "a", .repeated = 1}),
			  0);
	close_file(2);
	ck_assert_uint_eq(open_file(CELL, again, 2,
				    &(struct expected){.got = CELL, .size = SIZE, .tag = "a", .repeated = 1}),
			  CELL);
	close_file(2);
	open_file(CELL, &refused, 1,
		  &(struct expected)FAILED(-ENOENT, H5_REMOTE_NOT_FOUND, "not found (HTTP 404)", 0));
	ck_assert_uint_eq(scene.f->disk.open, 0);
	ck_assert_uint_eq(
		open_file(CELL, &newer, 1, &(struct expected){.got = CELL, .size = SIZE, .tag = "b"}), 0);
	ck_assert_uint_eq(read_file(0, CELL, NULL), CELL);
	/* Of the older version nothing counts. */
	ck_assert_uint_eq(
		read_file(CELL, CELL,
			  (struct step[]){{.url = MINE,
					   .fields = {"If-Match: \"b\""},
					   .head = HEAD("206") RANGE("16384-32767/49052") TAG("b") END,
					   .from = CELL,
					   .n = CELL}}),
		0);
	end_disk();
}
END_TEST

/* What may not be stored is not, nor what the server could not confirm. */
START_TEST(what_is_not_kept)
{
	static const struct step all[] = {
		{.url = MINE, .head = FIRST LINE("Cache-Control: no-store") END, .n = CELL},
		{.url = MINE,
		 .head = HEAD("206") RANGE("0-16383/49052") LINE("ETag: W/\"a\"") END,
		 .n = CELL},
		{.url = MINE, .head = HEAD("206") RANGE("0-16383/49052") END, .n = CELL},
		{.url = MINE, .head = HEAD("200") TAG("a") END, .n = SIZE}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		begin_disk();
		open_file(CELL, &all[i], 1, &(struct expected){.got = CELL, .size = SIZE});
		ck_assert_ptr_null(scene.f->sources[2].disk);
		close_file(2);
		open_file(CELL, &fetched, 1, &one_cell); /* nothing is offered */
		end_disk();
	}
	/* An answer that does not tell its tag may be of another version. */
	begin_disk();
	open_file(CELL, &fetched, 1, &one_cell);
	ck_assert_uint_eq(read_file(CELL, CELL,
				    (struct step[]){{.url = MINE,
						     .head = HEAD("206") RANGE("16384-32767/49052") END,
						     .from = CELL,
						     .n = CELL}}),
			  0);
	ck_assert_uint_eq(read_file(CELL, CELL, &middle), 0);
	ck_assert_uint_eq(read_file(CELL, CELL, NULL), CELL);
	/* Nothing is stored any more, but what is there can be read. */
	scene.f->disk.stopped = true;
	ck_assert_uint_eq(read_file(N, CELL - 100, &last_block), 0);
	ck_assert_uint_eq(read_file(N, CELL - 100, &last_block), 0);
	ck_assert_uint_eq(read_file(0, N, NULL), N);
	end_disk();
	/* Without a disk cache. */
	begin();
	h5_disk_begin(scene.f, -1);
	open_file(CELL, &fetched, 1, &one_cell);
	ck_assert_ptr_null(scene.f->sources[2].disk);
	ck_assert_uint_eq(read_file(N, CELL - 100, &last_block), 0);
	end();
}
END_TEST

/* Each try to open a file brings bytes of its own, which may be those of another version. */
START_TEST(bytes_of_two_tries)
{
	static const struct step tries[] = {{.url = MINE,
					     .head = HEAD("206") RANGE("0-32767/49052") TAG("b") END,
					     .from = 1,
					     .n = CELL + 9,
					     .result = CURLE_PARTIAL_FILE},
					    {.url = MINE, .head = PART, .n = N}};

	begin_disk();
	ck_assert_uint_eq(
		open_file(N, tries, 2, &(struct expected){.got = N, .size = SIZE, .tag = "a", .repeated = 1}),
		0);
	ck_assert_uint_eq(read_file(0, N, NULL), N);
	end_disk();
}
END_TEST

/* A try that may not be kept breaks off within a block, and the next one may be kept: the block of which it
 * has no begin is not stored, nor is what follows. */
START_TEST(bytes_behind_a_try_without_a_tag)
{
	const struct h5_remote_request request = {
		.what = H5_REMOTE_READ, .id = 9, .file = 2, .offset = CELL, .n = SIZE - CELL};
	static const struct step tries[] = {{.url = MINE,
					     .range = "16384-49051",
					     .head = HEAD("206") RANGE("16384-49051/49052") END,
					     .from = CELL,
					     .n = 100,
					     .result = CURLE_PARTIAL_FILE},
					    {.url = MINE,
					     .range = "16484-49051",
					     .head = HEAD("206") RANGE("16484-49051/49052") TAG("a") END,
					     .from = CELL + 100,
					     .n = SIZE - CELL - 100}},
				 whole = {.url = MINE,
					  .range = "16384-49051",
					  .head = HEAD("206") RANGE("16384-49051/49052") TAG("a") END,
					  .from = CELL,
					  .n = SIZE - CELL};

	begin_disk();
	open_file(CELL, &fetched, 1, &one_cell);
	check_reply(ask(request, tries, 2),
		    &(struct expected){.got = SIZE - CELL, .size = SIZE, .repeated = 1}, "read");
	check_cells(&request, SIZE - CELL);
	ck_assert_uint_eq(read_file(CELL, SIZE - CELL, &whole), 0);
	ck_assert_uint_eq(read_file(CELL, SIZE - CELL, NULL), SIZE - CELL);
	end_disk();
}
END_TEST

/* Nor are bytes kept if more of them came than were asked for. */
START_TEST(bytes_of_a_longer_answer)
{
	static const struct step tries[] = {{.url = MINE,
					     .range = "16384-32767",
					     .head = HEAD("206") RANGE("16384-32767/49052") TAG("a") END,
					     .from = CELL + 1,
					     .n = CELL + 9},
					    {.url = MINE,
					     .range = "16384-32767",
					     .head = HEAD("206") RANGE("16384-32767/49052") TAG("a") END,
					     .from = CELL,
					     .n = CELL}};
	const struct h5_remote_request request = {
		.what = H5_REMOTE_READ, .id = 9, .file = 2, .offset = CELL, .n = CELL};

	begin_disk();
	open_file(CELL, &fetched, 1, &one_cell);
	check_reply(ask(request, tries, 2), &(struct expected){.got = CELL, .size = SIZE, .repeated = 1},
		    "longer");
	check_cells(&request, CELL);
	ck_assert_uint_eq(read_file(CELL, CELL, NULL), CELL);
	end_disk();
}
END_TEST

/* While a request waits for its next try: what came of it takes no memory but the cells. */
static void (*sleep_between)(void *arg, int milliseconds);

static void sleep_without_copies(void *arg, int milliseconds)
{
	for (size_t i = 0; i < H5_REMOTE_UNDER_WAY; i++)
		ck_assert_ptr_null(scene.f->transfers[i].kept);
	sleep_between(arg, milliseconds);
}

START_TEST(nothing_is_held_that_is_not_kept)
{
	static const struct step cut = {.url = MINE, .head = FIRST END, .n = 9, .result = CURLE_PARTIAL_FILE};
	const struct step tries[] = {cut, fetched};
	const struct expected expected = {.got = CELL, .size = SIZE, .tag = "a", .repeated = 1};

	/* There is no disk cache, or nothing is stored in it any more. */
	for (int there = 0; there < 2; there++) {
		if (there)
			begin_disk();
		else
			begin();
		if (!there)
			h5_disk_begin(scene.f, -1);
		scene.f->disk.stopped = there;
		sleep_between = fake_curl.wait;
		fake_curl.wait = sleep_without_copies;
		ck_assert_uint_eq(open_file(CELL, tries, 2, &expected), 0);
		ck_assert_ptr_null(scene.f->sources[2].disk);
		if (there)
			end_disk();
		else
			end();
	}
}
END_TEST

/* What is written counts, with what the map of a file may take. Once that fails, nothing more is stored, and
 * the log hears of it. */
START_TEST(room_on_the_disk)
{
	const struct h5_remote_request request = {
		.what = H5_REMOTE_READ, .id = 9, .file = 2, .offset = N, .n = CELL - 100};
	struct rlimit before, limit;

	begin_disk();
	open_file(CELL, &fetched, 1, &one_cell);
	scene.f->disk.room = 10 * CELL;
	ck_assert_uint_eq(read_file(CELL, CELL, &middle), 0);
	ck_assert_uint_eq(scene.f->disk.room, 9 * CELL - 4096);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 100;
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ask(request, &last_block, 1);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	ck_assert_int_eq(scene.reply.code, 0);
	ck_assert_str_eq(scene.reply.text, "nothing more is stored: File too large");
	check_cells(&request, request.n);
	ck_assert(scene.f->disk.stopped);
	ck_assert_uint_eq(read_file(N, CELL - 100, &last_block), 0);
	ck_assert_uint_eq(read_file(0, N, NULL), N);
	end_disk();
}
END_TEST

/* A block that is damaged is fetched, and the log hears of it once. */
START_TEST(damaged_blocks)
{
	static const struct step start = {
		.url = MINE, .range = "0-16383", .fields = {"!If-None"}, .head = FIRST END, .n = CELL};
	const struct h5_disk_file *file;
	uint8_t byte;

	begin_disk();
	open_file(CELL, &fetched, 1, &one_cell);
	read_file(CELL, CELL, &middle);
	file = scene.f->sources[2].disk;
	ck_assert_int_eq(pread(file->fd, &byte, 1, (off_t)h5_disk_offset(SIZE, 1) + 77), 1);
	byte ^= 1;
	ck_assert_int_eq(pwrite(file->fd, &byte, 1, (off_t)h5_disk_offset(SIZE, 1) + 77), 1);
	/* The block before it is sound. */
	ck_assert_uint_eq(read_file(0, CELL, NULL), CELL);
	{
		const struct h5_remote_request request = {
			.what = H5_REMOTE_READ, .id = 9, .file = 2, .offset = CELL, .n = CELL};

		ask(request, &middle, 1);
		ck_assert_int_eq(scene.reply.code, 0);
		ck_assert_uint_eq(scene.reply.from_disk, 0);
		ck_assert_ptr_nonnull(strstr(scene.reply.text, "block 1 is damaged: thrown away"));
		check_cells(&request, CELL);
	}
	/* A new file has taken its place. */
	ck_assert_uint_eq(read_file(CELL, CELL, NULL), CELL);
	ck_assert_uint_eq(read_file(0, CELL, &start), 0);
	/* If it is to be offered. */
	file = scene.f->sources[2].disk;
	ck_assert_int_eq(pwrite(file->fd, &byte, 1, (off_t)h5_disk_offset(SIZE, 0) + 5), 1);
	close_file(2);
	{
		struct h5_remote_request request = opening;

		request.n = CELL;
		ask(request, &fetched, 1);
		ck_assert_int_eq(scene.reply.code, 0);
		ck_assert_uint_eq(scene.reply.from_disk, 0);
		ck_assert_ptr_nonnull(strstr(scene.reply.text, "block 0 is damaged: thrown away"));
	}
	ck_assert_uint_eq(read_file(0, CELL, NULL), CELL);
	end_disk();
}
END_TEST

/* A file that is cut while it is in use has nothing of what it had. */
START_TEST(a_cut_file)
{
	static const struct step start = {.url = MINE, .range = "0-16383", .head = FIRST END, .n = CELL};
	const struct h5_remote_request request = {.what = H5_REMOTE_READ, .id = 9, .file = 2, .n = CELL};

	begin_disk();
	open_file(CELL, &fetched, 1, &one_cell);
	ck_assert_int_eq(ftruncate(scene.f->sources[2].disk->fd, 0), 0);
	ask(request, &start, 1);
	ck_assert_int_eq(scene.reply.code, 0);
	ck_assert_uint_eq(scene.reply.from_disk, 0);
	ck_assert_ptr_nonnull(strstr(scene.reply.text, ": thrown away"));
	check_cells(&request, CELL);
	ck_assert_uint_eq(read_file(0, CELL, NULL), CELL);
	end_disk();
}
END_TEST

/* Confirms what is offered, and else sends it. */
static bool answer_either(void *arg, CURL *easy, struct fake_answer *a)
{
	(void)arg;
	if (fake_curl_field(easy, OFFER))
		*a = (struct fake_answer){.head = confirmed.head};
	else
		*a = (struct fake_answer){
			.head = fetched.head, .body = (const char *)content, .size = CELL, .piece = 1000};
	return true;
}

/* Opens the file and reads its first cell: each is served, or has an error that says so. True: both are
 * served. */
static bool use_file(void)
{
	const struct h5_remote_request start = {.what = H5_REMOTE_READ, .id = 9, .file = 2, .n = CELL};
	struct h5_remote_request request = opening;

	request.n = CELL;
	memset(scene.f->end.memory, 0, (size_t)CELLS * CELL);
	try(request, NULL, 0);
	if (!scene.reply.code) {
		check_cells(&request, CELL);
		memset(scene.f->end.memory, 0, (size_t)CELLS * CELL);
		try(start, NULL, 0);
	}
	if (!scene.reply.code) {
		check_cells(&start, CELL);
		return true;
	}
	ck_assert_int_ne(scene.f->sources[2].known, scene.reply.id == opening.id);
	ck_assert(!strcmp(scene.reply.text, "no memory for a request") ||
		  !strcmp(scene.reply.text, "not a file beside the URL"));
	return false;
}

/* The disk cache is a help, and no more: without memory for it, bytes come from the server. */
START_TEST(memory_is_short)
{
	for (int i = 0; i < 4; i++) {
		bool there = i % 2, fired = true;

		for (unsigned long n = 1; fired; n++) {
			bool served;

			begin_disk();
			if (there) {
				open_file(CELL, &fetched, 1, &one_cell);
				close_file(2);
			}
			fake_curl.ask = answer_either;
			(i / 2 ? fault_alloc_arm : fake_curl_arm)(n);
			served = use_file();
			fired = (i / 2 ? fault_alloc_disarm : fake_curl_disarm)();
			/* What libcurl has no memory for is an error. */
			ck_assert(i / 2 ? served || fired : served != fired);
			if (scene.f->sources[2].known)
				close_file(2);
			ck_assert_uint_eq(scene.f->disk.open, 0);
			/* What is there stays there, and is found again. */
			ck_assert(use_file());
			if (there || !fired)
				ck_assert_uint_eq(scene.reply.from_disk, CELL);
			close_file(2);
			end_disk();
		}
	}
}
END_TEST

/* Bytes are kept for the place that redirects lead to. A URL with another signature is the same place. */
START_TEST(places_on_disk)
{
#define FROM(place, ...)                                                                                     \
	{                                                                                                    \
		.url = (place), .head = FIRST END, .n = CELL, __VA_ARGS__                                    \
	}
	static const struct step
		first[] = {{.url = MINE, .fields = {"!If-"}, LEADS("http://a/x?Signature=1&Expires=1")},
			   FROM("http://a/x?Signature=1&Expires=1", .fields = {"!If-"})},
		second[] = {{.url = MINE, .fields = {"!If-"}, LEADS("http://a/x?Signature=2&Expires=2")},
			    {.url = "http://a/x?Signature=2&Expires=2",
			     .fields = {OFFER},
			     .head = HEAD("304") END}},
		third[] = {{.url = MINE, .fields = {"!If-"}, LEADS("http://b/x")},
			   FROM("http://b/x", .fields = {"!If-"})},
		gone[] = {{.url = "http://b/x", .head = HEAD("403") END},
			  {.url = MINE, LEADS("http://b/x?Signature=3")},
			  {.url = "http://b/x?Signature=3",
			   .head = HEAD("206") RANGE("16384-32767/49052") TAG("a") END,
			   .from = CELL,
			   .n = CELL}},
		moved[] = {{.url = "http://b/x?Signature=3", .head = HEAD("403") END},
			   {.url = MINE, LEADS("http://c/x")},
			   {.url = "http://c/x",
			    .head = HEAD("206") RANGE("32768-49051/49052") TAG("a") END,
			    .from = N,
			    .n = CELL - 100}};
	const struct h5_remote_request
		request = {.what = H5_REMOTE_READ, .id = 9, .file = 2, .offset = CELL, .n = CELL},
		last = {.what = H5_REMOTE_READ, .id = 9, .file = 2, .offset = N, .n = CELL - 100};

	begin_disk();
	ck_assert_uint_eq(open_file(CELL, first, 2, &one_cell), 0);
	close_file(2);
	ck_assert_uint_eq(open_file(CELL, second, 2, &one_cell), CELL);
	close_file(2);
	ck_assert_uint_eq(open_file(CELL, third, 2, &one_cell), 0);
	ask(request, gone, 3);
	ck_assert_int_eq(scene.reply.code, 0);
	ck_assert_ptr_nonnull(scene.f->sources[2].disk);
	ck_assert_uint_eq(read_file(CELL, CELL, NULL), CELL);
	ask(last, moved, 3);
	ck_assert_int_eq(scene.reply.code, 0);
	ck_assert_ptr_null(scene.f->sources[2].disk);
	end_disk();
}
END_TEST

/* ---- more than is read or written at once ---- */

#define OF_LARGE(range) HEAD("206") RANGE(range "/1146780") TAG("a") END

_Static_assert(LARGE == 1146780, "as the answers say");

static const struct step first_block = {.url = MINE, .head = OF_LARGE("0-16383"), .n = CELL};

static void begin_large_disk(void)
{
	scratch_run("rm -rf %s/cache", scratch_folder());
	begin_large();
	use_disk();
}

static void open_large(uint64_t n, const struct step *step)
{
	struct h5_remote_request request = opening;

	request.n = n;
	check_reply(ask(request, step, 1), &(struct expected){.got = h5_min(n, LARGE), .size = LARGE},
		    "open");
	check_cells(&request, h5_min(n, LARGE));
}

/* As read_file(). */
static uint64_t read_large(uint64_t first, uint64_t end, const struct step *step)
{
	const struct h5_remote_request request = {.what = H5_REMOTE_READ,
						  .id = 9,
						  .file = 2,
						  .offset = first * CELL,
						  .n = h5_min(end * CELL, LARGE) - first * CELL};

	memset(scene.f->end.memory, 0, (size_t)scene.f->end.cells * CELL);
	ask(request, step, !!step);
	ck_assert_int_eq(scene.reply.code, 0);
	ck_assert_uint_eq(scene.reply.got, request.n);
	check_cells(&request, request.n);
	return scene.reply.from_disk;
}

/* All of a file that comes at once is kept; it comes back in parts. */
START_TEST(a_large_file)
{
	static const struct step rest = {.url = MINE,
					 .range = "16384-1146779",
					 .head = OF_LARGE("16384-1146779"),
					 .from = CELL,
					 .n = LARGE - CELL,
					 .piece = 50000},
				 behind = {.url = MINE,
					   .range = "524288-1146779",
					   .head = OF_LARGE("524288-1146779"),
					   .from = 32 * CELL,
					   .n = LARGE - 32 * CELL};
	const struct h5_disk_file *file;
	uint8_t byte;

	begin_large_disk();
	open_large(CELL, &first_block);
	ck_assert_uint_eq(read_large(1, BLOCKS, &rest), 0);
	ck_assert_uint_eq(read_large(0, BLOCKS, NULL), LARGE);
	for (unsigned i = 0; i < BLOCKS; i++)
		ck_assert_uint_eq(read_large(i, i + 1, NULL), i + 1 < BLOCKS ? CELL : CELL - 100);
	/* The blocks before the damaged one are read from the disk, and are not fetched. */
	file = scene.f->sources[2].disk;
	ck_assert_int_eq(pread(file->fd, &byte, 1, (off_t)h5_disk_offset(LARGE, 40) + 77), 1);
	byte ^= 1;
	ck_assert_int_eq(pwrite(file->fd, &byte, 1, (off_t)h5_disk_offset(LARGE, 40) + 77), 1);
	ck_assert_uint_eq(read_large(0, BLOCKS, &behind), 32 * CELL);
	ck_assert_ptr_nonnull(strstr(scene.reply.text, "block 40 is damaged: thrown away"));
	/* The new file has what was fetched. */
	ck_assert_uint_eq(read_large(32, BLOCKS, NULL), LARGE - 32 * CELL);
	end_disk();
}
END_TEST

/* Only what is missing in the middle is fetched. */
START_TEST(a_gap_in_a_large_file)
{
	static const struct step begin_of_it = {.url = MINE,
						.range = "16384-327679",
						.head = OF_LARGE("16384-327679"),
						.from = CELL,
						.n = 19 * CELL},
				 end_of_it = {.url = MINE,
					      .range = "737280-1146779",
					      .head = OF_LARGE("737280-1146779"),
					      .from = 45 * CELL,
					      .n = LARGE - 45 * CELL},
				 gap = {.url = MINE,
					.range = "327680-737279",
					.head = OF_LARGE("327680-737279"),
					.from = 20 * CELL,
					.n = 25 * CELL};

	begin_large_disk();
	open_large(CELL, &first_block);
	ck_assert_uint_eq(read_large(45, BLOCKS, &end_of_it), 0);
	ck_assert_uint_eq(read_large(1, 20, &begin_of_it), 0);
	ck_assert_uint_eq(read_large(0, BLOCKS, &gap), LARGE - 25 * CELL);
	ck_assert_uint_eq(scene.reply.received, 25 * CELL);
	ck_assert_uint_eq(read_large(0, BLOCKS, NULL), LARGE);
	end_disk();
}
END_TEST

/* Blocks at the end of what is wanted are verified, too: if one is damaged, all behind the begin is fetched.
 */
START_TEST(damage_behind_a_gap)
{
	static const struct step end_of_it = {.url = MINE,
					      .range = "737280-1146779",
					      .head = OF_LARGE("737280-1146779"),
					      .from = 45 * CELL,
					      .n = LARGE - 45 * CELL},
				 rest = {.url = MINE,
					 .range = "16384-1146779",
					 .head = OF_LARGE("16384-1146779"),
					 .from = CELL,
					 .n = LARGE - CELL};
	const struct h5_disk_file *file;
	uint8_t byte;

	begin_large_disk();
	open_large(CELL, &first_block);
	ck_assert_uint_eq(read_large(45, BLOCKS, &end_of_it), 0);
	file = scene.f->sources[2].disk;
	ck_assert_int_eq(pread(file->fd, &byte, 1, (off_t)h5_disk_offset(LARGE, 50) + 77), 1);
	byte ^= 1;
	ck_assert_int_eq(pwrite(file->fd, &byte, 1, (off_t)h5_disk_offset(LARGE, 50) + 77), 1);
	ck_assert_uint_eq(read_large(0, BLOCKS, &rest), CELL);
	ck_assert_ptr_nonnull(strstr(scene.reply.text, "block 50 is damaged: thrown away"));
	end_disk();
}
END_TEST

/* Of what opening a file brings, a mebibyte is kept. */
START_TEST(a_large_opening)
{
	static const struct step all = {.url = MINE,
					.range = "0-1146879",
					.head = OF_LARGE("0-1146779"),
					.n = LARGE,
					.piece = 60000},
				 behind = {.url = MINE,
					   .range = "1048576-1146779",
					   .head = OF_LARGE("1048576-1146779"),
					   .from = 64 * CELL,
					   .n = LARGE - 64 * CELL};

	begin_large_disk();
	open_large(BLOCKS * CELL, &all);
	ck_assert_uint_eq(read_large(0, 64, NULL), 64 * CELL);
	ck_assert_uint_eq(read_large(64, BLOCKS, &behind), 0);
	ck_assert_uint_eq(read_large(0, BLOCKS, NULL), LARGE);
	end_disk();
}
END_TEST

UNIT_MAIN("transfers_disk", bytes_on_disk, offers, what_is_not_kept, bytes_of_two_tries,
	  bytes_behind_a_try_without_a_tag, bytes_behind_a_try_without_a_tag, bytes_of_a_longer_answer,
	  nothing_is_held_that_is_not_kept, room_on_the_disk, damaged_blocks, a_cut_file, memory_is_short,
	  places_on_disk, a_large_file, a_gap_in_a_large_file, damage_behind_a_gap, a_large_opening)

#else

#include <stdio.h>

int main(void)
{
	puts("there is no libcurl, and so no fetcher");
	return 77;
}

#endif
