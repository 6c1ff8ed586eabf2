/* Object headers that are made from nothing: groups and datasets of each layout, which libhdf5 reads and
 * changes in tests/judge/header_create_judge.py. */
#include "base/error.h"
#include "change/object_header_create.h"
#include "change/transaction.h"
#include "crash_image.h"
#include "fault_alloc.h"
#include "format/dataspace.h"
#include "format/fill_value.h"
#include "format/header_messages.h"
#include "format/layout.h"
#include "format/named_message.h"
#include "scratch.h"

#include <stdio.h>
#include <string.h>

enum { MESSAGES_MAX = 8, BODY_MAX = 65536, COMPACT_LARGE = 60000, ROWS = 5 };

/* ---- messages ---- */

struct messages {
	struct h5_new_message list[MESSAGES_MAX];
	size_t count;
	struct h5_writer w; /* over the bodies */
	const uint8_t *begin;
	uint8_t bodies[2 * BODY_MAX];
};

static void messages_init(struct messages *m)
{
	m->count = 0;
	m->w = h5_writer_init(m->bodies, sizeof m->bodies, 8, 8);
	m->begin = m->bodies;
}

/* The bytes that were written since the last message are one. */
static void add(struct messages *m, enum h5_message_type type, uint8_t flags)
{
	if (m->w.err)
		abort(); /* no ck_assert(), which allocates memory, and that may be about to fail */
	m->list[m->count++] = (struct h5_new_message){
		.type = type, .flags = flags, .body = m->begin, .size = (size_t)(m->w.p - m->begin)};
	m->begin = m->w.p;
}

static void add_group(struct messages *m)
{
	const struct h5_named_info info = {.heap = H5_UNDEF, .name_index = H5_UNDEF, .order_index = H5_UNDEF};

	h5_link_info_encode(&m->w, &info);
	add(m, H5_MSG_LINK_INFO, 0);
	h5_group_info_encode(&m->w, &(struct h5_group_info){0});
	add(m, H5_MSG_GROUP_INFO, 1);
}

/* What every dataset has: numbers of 4 bytes. */
static void add_dataset(struct messages *m, uint64_t rows, uint64_t most, enum h5_allocation_time allocation)
{
	static const uint8_t type[] = {0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0};
	struct h5_dataspace space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {rows}, .max = {most}};

	h5_dataspace_encode(&m->w, &space);
	add(m, H5_MSG_DATASPACE, 0);
	h5_write_bytes(&m->w, type, sizeof type);
	add(m, H5_MSG_DATATYPE, 1);
	h5_fill_value_encode(&m->w, &(struct h5_fill_value){.allocation = (uint8_t)allocation});
	add(m, H5_MSG_FILL_VALUE, 1);
}

static void add_layout(struct messages *m, const struct h5_layout *layout)
{
	h5_layout_encode(&m->w, layout);
	add(m, H5_MSG_LAYOUT, 0);
}

static void add_compact(struct messages *m, size_t n)
{
	static uint8_t data[BODY_MAX];
	struct h5_layout layout = {.version = 3, .class = H5_LAYOUT_COMPACT, .compact = {data, (uint32_t)n}};

	for (size_t i = 0; i < n / 4; i++)
		h5_uint_to(data + 4 * i, i, 4);
	add_dataset(m, n / 4, n / 4, H5_ALLOCATION_EARLY);
	add_layout(m, &layout);
}

static void add_contiguous(struct messages *m)
{
	const struct h5_layout layout = {
		.version = 3, .class = H5_LAYOUT_CONTIGUOUS, .contiguous = {H5_UNDEF, 4 * ROWS}};

	add_dataset(m, ROWS, ROWS, H5_ALLOCATION_LATE);
	add_layout(m, &layout);
}

/* In the style of the file: a version 1 B-tree or an extensible array. */
static void add_chunked(struct messages *m, bool latest)
{
	struct h5_layout layout = {.version = latest ? 4 : 3, .class = H5_LAYOUT_CHUNKED};

	layout.chunked =
		(struct h5_chunk_layout){.rank = 1,
					 .dims = {16},
					 .element_size = 4,
					 .index = latest ? H5_INDEX_EXTENSIBLE_ARRAY : H5_INDEX_BTREE1,
					 .address = H5_UNDEF};
	if (latest) {
		layout.chunked.extensible_array.max_bits = 32;
		layout.chunked.extensible_array.index_elements = 4;
		layout.chunked.extensible_array.min_pointers = 4;
		layout.chunked.extensible_array.min_elements = 16;
		layout.chunked.extensible_array.page_bits = 10;
	}
	add_dataset(m, ROWS, H5_UNLIMITED, H5_ALLOCATION_INCREMENTAL);
	add_layout(m, &layout);
}

/* ---- objects ---- */

static const char *const kinds[] = {"group", "compact", "large", "contiguous", "chunked"};
enum { KINDS = sizeof kinds / sizeof *kinds, STYLES = 6 };

static void describe(struct messages *m, size_t kind, bool latest)
{
	switch (kind) {
	case 0:
		add_group(m);
		break;
	case 1:
		add_compact(m, 4 * ROWS);
		break;
	case 2:
		add_compact(m, COMPACT_LARGE);
		break;
	case 3:
		add_contiguous(m);
		break;
	default:
		add_chunked(m, latest);
	}
}

static struct h5_new_header style(unsigned i)
{
	return (struct h5_new_header){.times = i % 2,
				      .time = 1700000000,
				      .tracks_order = i > 1,
				      .indexes_order = i > 3,
				      .room = (size_t)i * i * 100};
}

static int create(struct scratch *s, size_t kind, unsigned i, bool latest, uint64_t *address)
{
	static struct messages m;
	const struct h5_new_header how = style(i);

	messages_init(&m);
	describe(&m, kind, latest);
	return h5_header_create(s->file, m.list, m.count, &how, address);
}

/* A hard link, as a message of the root group. */
static int name(struct scratch *s, const char *name, uint64_t address)
{
	uint8_t body[64];
	struct h5_writer w = h5_writer_init(body, sizeof body, 8, 8);
	struct h5_new_message m = {.type = H5_MSG_LINK, .body = body};

	h5_write_u8(&w, 1);
	h5_write_u8(&w, 0);
	h5_write_u8(&w, (uint8_t)strlen(name));
	h5_write_bytes(&w, name, strlen(name));
	h5_write_offset(&w, address);
	m.size = h5_writer_at(&w);
	return h5_header_insert(s->file, h5_file_superblock(s->file)->root, &m);
}

static void begin(struct scratch *s, int latest, struct fault_io *fault)
{
	scratch_init(s, latest ? "header_create-latest.h5" : "header_create-v18.h5");
	scratch_wrap(s, fault);
	scratch_open(s);
	ck_assert(h5_tx_is_writable(s->file));
}

/* The header is as libhdf5 wants it, and in pages. */
static void check(struct scratch *s, uint64_t address, size_t kind)
{
	const struct h5_superblock *sb = h5_file_superblock(s->file);
	struct h5_header h;

	SUCCEEDS(h5_header_load(s->file, address, &h));
	SUCCEEDS(h5_header_check(s->file, &h));
	ck_assert_uint_eq(h.chunk_count, kind == 2 ? 2 : 1);
	ck_assert_uint_eq((sb->base + address) / H5_CELL,
			  (sb->base + address + h.chunks->size - 1) / H5_CELL);
	h5_header_release(&h);
}

static void create_all(struct scratch *s, bool latest)
{
	char text[32];

	for (size_t kind = 0; kind < KINDS; kind++)
		for (unsigned i = 0; i < STYLES; i++) {
			uint64_t address;

			SUCCEEDS(create(s, kind, i, latest, &address));
			check(s, address, kind);
			snprintf(text, sizeof text, "%s%u", kinds[kind], i);
			SUCCEEDS(name(s, text, address));
		}
}

START_TEST(objects_as_libhdf5_has_them)
{
	struct scratch s;

	begin(&s, _i, NULL);
	create_all(&s, _i);
	SUCCEEDS(h5_tx_commit(s.file));
	scratch_close(&s);
	scratch_judge_python("tests/judge/header_create_judge.py %s", s.path);
	scratch_release(&s);
}
END_TEST

START_TEST(killed_between_cells)
{
	struct fault_io record = {.record = true};
	struct crash_image image = {0};
	unsigned states = 0;
	struct scratch s;
	char path[128];

	begin(&s, _i, &record);
	crash_image_load(&image, s.path);
	create_all(&s, _i);
	SUCCEEDS(h5_tx_commit(s.file));
	for (size_t i = 0; i < record.count; i++) {
		const struct fault_event *e = &record.events[i];

		if (e->file)
			continue;
		crash_image_apply(&image, e, e->size);
		snprintf(path, sizeof path, "%s/state-%03u.h5", scratch_folder(), states++);
		crash_image_save(&image, path);
	}
	scratch_own_judge_python("tests/judge/header_create_judge.py --states %s %d", scratch_folder(),
				 KINDS * STYLES);
	free(image.data);
	scratch_release(&s);
	fault_io_release(&record);
}
END_TEST

/* Space of what is made and given up before a commit is used again; that of what was committed later. */
/* What waits for the commit is read from memory: all of a new header. */
START_TEST(new_headers_are_in_memory)
{
	struct h5_header header;
	struct scratch s;
	uint64_t address;

	begin(&s, _i, NULL);
	SUCCEEDS(create(&s, 2, 0, _i, &address));
	SUCCEEDS(h5_header_load(s.file, address, &header));
	ck_assert_uint_eq(h5_file_pending(s.file, address), header.chunks->size);
	ck_assert_uint_eq(h5_file_pending(s.file, address + 8), header.chunks->size - 8);
	h5_header_release(&header);
	SUCCEEDS(h5_tx_commit(s.file));
	ck_assert_uint_eq(h5_file_pending(s.file, address), 0);
	SUCCEEDS(h5_header_load(s.file, address, &header));
	h5_header_release(&header);
	scratch_release(&s);
}
END_TEST

/* Makes each allocation fail once, and takes the header back if it is made all the same. Returns how many
 * calls failed. */
static unsigned fail_allocations(struct scratch *s, size_t kind, bool latest)
{
	unsigned failed = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		uint64_t address;
		int rc;

		h5_unit_begin(s->file);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = create(s, kind, 5, latest, &address);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_int_eq(h5_unit_end(s->file, rc ? rc : -ECANCELED), rc ? rc : -ECANCELED);
		ck_assert(!rc || (fired && rc == -ENOMEM));
		failed += rc != 0;
	}
	return failed;
}

START_TEST(every_allocation_can_fail)
{
	struct scratch s;
	unsigned failed = 0;

	begin(&s, _i, NULL);
	for (size_t kind = 0; kind < KINDS; kind++)
		failed += fail_allocations(&s, kind, _i);
	ck_assert_uint_gt(failed, 3 * KINDS);
	create_all(&s, _i);
	SUCCEEDS(h5_tx_commit(s.file));
	scratch_close(&s);
	scratch_judge_python("tests/judge/header_create_judge.py %s", s.path);
	scratch_release(&s);
}
END_TEST

START_TEST(messages_too_large)
{
	static uint8_t body[BODY_MAX];
	struct h5_new_message m = {.type = H5_MSG_COMMENT, .body = body, .size = BODY_MAX};
	const struct h5_new_header how = {.room = SIZE_MAX};
	struct h5_header h;
	uint64_t address;
	struct scratch s;

	begin(&s, _i, NULL);
	ck_assert_int_eq(h5_header_create(s.file, &m, 1, &how, &address), -E2BIG);
	ck_assert(!h5_tx_is_pending(s.file));
	m.size--;
	SUCCEEDS(h5_header_create(s.file, &m, 1, &how, &address));
	SUCCEEDS(h5_header_load(s.file, address, &h));
	ck_assert_uint_eq(h.chunks->size, H5_CELL);
	ck_assert_uint_eq(h.count, 1);
	ck_assert_uint_eq(h.messages->size, BODY_MAX - 1);
	h5_header_release(&h);
	SUCCEEDS(h5_header_create(s.file, NULL, 0, &(struct h5_new_header){0}, &address));
	SUCCEEDS(h5_header_load(s.file, address, &h));
	ck_assert_uint_eq(h.count, 0);
	h5_header_release(&h);
	scratch_release(&s);
}
END_TEST

/* The messages leave `rest` bytes of a chunk free: each limit, and the numbers beside it. */
static const struct {
	uint8_t version;
	size_t count, size; /* of the messages, each of so many bytes */
	size_t rest;
	int nils; /* -1: there is no such layout */
} rests[] = {
	{2, 1, 10, 0, 0},
	{2, 1, 10, 3, 0},
	{2, 1, 10, 4, 1},
	{2, 1, 10, 65539, 1},
	/* Each of two NIL messages has a prefix at least. */
	{2, 1, 10, 65540, 2},
	{2, 1, 10, 65542, 2},
	{2, 1, 10, 65543, 2},
	{2, 1, 10, 131078, 2},
	{2, 1, 10, 131079, -1},
	{2, 2, 10, 131079, 3},
	{2, 2, 10, 131081, 3},
	{2, 2, 10, 131082, 3},
	/* Nothing is there that could be padded, or could come between. */
	{2, 0, 0, 0, 0},
	{2, 0, 0, 3, -1},
	{2, 0, 0, 4, 1},
	{2, 0, 0, 65539, 1},
	{2, 0, 0, 65540, -1},
	{2, 1, 65532, 3, 0},
	{2, 1, 65533, 3, -1},
	{2, 1, 65535, 0, 0},
	{2, 1, 65535, 1, -1},
	{2, 1, 65536, 0, -1},
	{1, 1, 16, 0, 0},
	{1, 1, 16, 4, -1},
	{1, 1, 16, 7, -1},
	{1, 1, 16, 8, 1},
	{1, 1, 9, 8, 1},
	{1, 1, 16, 65536, 1},
	{1, 1, 16, 65544, 2},
	{1, 1, 65528, 0, 0},
	{1, 1, 65529, 0, -1},
};

enum { RESTS = sizeof rests / sizeof *rests, REST_SIZE = 200000 };

/* The messages have their bytes and zeros; NIL messages, of which no two are neighbours, have what was there.
 */
static void check_laid(const struct h5_object_header *prefix, const uint8_t *bytes, size_t n,
		       const uint8_t *body, size_t i)
{
	struct h5_reader r = h5_reader_init(bytes, n, 0, 8, 8);
	struct h5_message message;
	size_t found = 0, nils = 0;
	bool after_nil = false;

	while (h5_object_header_next(&r, prefix, &message) > 0) {
		const bool nil = message.type == H5_MSG_NIL;

		ck_assert(!nil || !after_nil);
		after_nil = nil;
		nils += nil;
		found += !nil;
		for (size_t k = 0; k < message.size; k++)
			if (message.data[k] != (nil ? 0xa5 : k < rests[i].size ? body[k] : 0))
				ck_abort_msg("case %zu, byte %zu of message %zu", i, k, found + nils);
	}
	ck_assert_uint_eq(h5_reader_left(&r), 0);
	ck_assert_uint_eq(found, rests[i].count);
	ck_assert_int_eq((int)nils, rests[i].nils);
}

START_TEST(what_is_left_of_a_chunk)
{
	static uint8_t body[BODY_MAX], bytes[REST_SIZE + 1];

	memset(body, 0x3c, sizeof body);
	for (size_t i = 0; i < RESTS; i++) {
		const struct h5_object_header prefix = {.version = rests[i].version};
		const struct h5_message message = {
			.type = H5_MSG_COMMENT, .size = (uint32_t)rests[i].size, .data = body};
		const struct h5_message messages[] = {message, message};
		const size_t head = rests[i].version == 1 ? 8 : 4,
			     size = rests[i].version == 1 ? (rests[i].size + 7) / 8 * 8 : rests[i].size,
			     n = rests[i].count * (head + size) + rests[i].rest;
		unsigned laid;
		bool fits;

		ck_assert_uint_lt(n, sizeof bytes);
		memset(bytes, 0xa5, sizeof bytes);
		fits = h5_header_lay(&prefix, bytes, n, messages, rests[i].count, &laid);
		ck_assert_msg(fits == (rests[i].nils >= 0), "case %zu", i);
		ck_assert_uint_eq(bytes[n], 0xa5);
		if (!fits)
			continue;
		ck_assert_uint_eq(laid, rests[i].count + (unsigned)rests[i].nils);
		check_laid(&prefix, bytes, n, body, i);
		/* One byte less is not enough. */
		if (!rests[i].rest && n)
			ck_assert(!h5_header_lay(&prefix, bytes, n - 1, messages, rests[i].count, &laid));
	}
}
END_TEST

UNIT_MAIN_LOOPS("header_create", {objects_as_libhdf5_has_them, 2}, {killed_between_cells, 2},
		{new_headers_are_in_memory, 2}, {every_allocation_can_fail, 2}, {messages_too_large, 2},
		{what_is_left_of_a_chunk, 1})
