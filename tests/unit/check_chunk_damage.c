/* Chunk indexes that are damaged, or that are another dataset's: an error, an end, and no crash. */
#include "base/lookup3.h"
#include "chunk_index_account.h"
#include "dataset/private.h"

struct image {
	uint8_t *data;
	size_t size, capacity;
};

static struct image load_image(const char *name)
{
	FILE *file = fopen(data_path(name), "rb");
	struct image m = {.capacity = 4 << 20};

	ck_assert_ptr_nonnull(file);
	m.data = calloc(1, m.capacity);
	ck_assert_ptr_nonnull(m.data);
	m.size = fread(m.data, 1, m.capacity, file);
	ck_assert_uint_lt(m.size, m.capacity / 2);
	fclose(file);
	return m;
}

static void put(struct image *m, uint64_t value, unsigned n)
{
	ck_assert_uint_le(m->size + n, m->capacity);
	for (unsigned i = 0; i < n; i++)
		m->data[m->size++] = (uint8_t)(value >> (8 * i));
}

static void put_signature(struct image *m, const char *signature)
{
	for (unsigned i = 0; i < 4; i++)
		put(m, (uint8_t)signature[i], 1);
}

/* The checksum of the bytes [from, to), behind them. */
static void sign(struct image *m, size_t from, size_t to)
{
	uint32_t sum = h5_lookup3(m->data + from, to - from, 0);

	for (unsigned i = 0; i < 4; i++)
		m->data[to + i] = (uint8_t)(sum >> (8 * i));
}

static struct h5_file_set *open_image(const struct image *m, size_t size)
{
	struct h5_file_set *set;

	ck_assert_int_eq(h5_file_set_open_memory(m->data, size, &options, &set), 0);
	return set;
}

/* Looks up some chunks of the dataset and walks over all; the first error. */
static int use(const struct image *m, size_t size, const struct fixture *f)
{
	uint64_t scaled[H5_RANK_MAX] = {0}, count = 0;
	struct opened o;
	int rc = open_index(&o, open_image(m, size), f), err = 0;

	for (unsigned i = 0; !rc && i < 64; i++) {
		struct h5_chunk chunk;

		rc = h5_chunk_index_lookup(o.index, NULL, scaled, &chunk);
		for (unsigned k = 0; k < 37; k++)
			next_chunk(f, &o.layout.chunked, scaled);
	}
	if (o.index)
		err = h5_chunk_index_walk(o.index, count_chunk, &count);
	close_index(&o);
	return rc ? rc : err;
}

/* All datasets of one file. */
static unsigned read_fixtures(const char *file, struct fixture *all, unsigned max)
{
	FILE *text = open_account();
	unsigned n = 0;

	while (n < max && read_fixture(text, &all[n])) {
		free(all[n].chunks);
		n += !strcmp(all[n].file, file);
	}
	fclose(text);
	return n;
}

static bool same_chunk(const struct h5_chunk *a, const struct h5_chunk *b)
{
	return a->address == b->address && a->size == b->size && a->filter_mask == b->filter_mask;
}

/* Looks up all chunks in order, and in reverse, with a cursor and without; lookups that fail either way. Sets
 * *after where one succeeds after another has failed. */
static uint64_t use_cursor(const struct image *m, const struct fixture *f, bool *after)
{
	uint64_t scaled[5000][2], n = 0, failed = 0;
	struct h5_chunk_cursor cursor = {0};
	struct opened o;
	bool bad = false;

	ck_assert_uint_le(f->space.rank, 2);
	if (open_index(&o, open_image(m, m->size), f)) {
		close_index(&o);
		return 0;
	}
	memset(scaled[0], 0, sizeof scaled[0]);
	do {
		ck_assert_uint_lt(++n, 5000);
		memcpy(scaled[n], scaled[n - 1], sizeof scaled[n]);
	} while (next_chunk(f, &o.layout.chunked, scaled[n]));
	for (uint64_t i = 0; i < 2 * n; i++) {
		const uint64_t *at = scaled[i < n ? i : 2 * n - 1 - i];
		struct h5_chunk with, without;
		int rc = h5_chunk_index_lookup(o.index, NULL, at, &without);

		ck_assert_int_eq(h5_chunk_index_lookup(o.index, &cursor, at, &with), rc);
		ck_assert(rc || same_chunk(&with, &without));
		failed += !!rc;
		*after |= bad && !rc;
		bad = rc;
	}
	h5_chunk_cursor_release(o.index, &cursor);
	close_index(&o);
	return failed;
}

static size_t find_bytes(const struct image *m, const char *signature, size_t from)
{
	const uint8_t *p = memmem(m->data + from, m->size - from, signature, 4);

	return p ? (size_t)(p - m->data) : m->size;
}

/* Of the index: what a layout message of version 4 ends with. */
static size_t index_address(const struct image *m, const struct fixture *f)
{
	return (size_t)h5_uint_from(m->data + f->layout_address + f->layout_size - 8, 8);
}

/* A bit of every block in turn, whose owner notices. */
START_TEST(flipped_bits_are_noticed)
{
	static const char *const signatures[] = {"FAHD", "FADB", "EAHD", "EAIB", "EASB",
						 "EADB", "BTHD", "BTIN", "BTLF"};
	struct image m = load_image("chunk_index-new.h5");
	struct fixture all[64];
	unsigned n = read_fixtures("chunk_index-new.h5", all, 64);

	ck_assert_uint_gt(n, 20);
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(use(&m, m.size, &all[i]), 0);
	for (size_t s = 0; s < sizeof signatures / sizeof *signatures; s++) {
		unsigned blocks = 0;

		for (size_t at = 0; (at = find_bytes(&m, signatures[s], at)) < m.size && blocks < 12; at++) {
			unsigned noticed = 0;

			blocks++;
			m.data[at + 15] ^= 4;
			for (unsigned i = 0; i < n; i++) {
				int rc = use(&m, m.size, &all[i]);

				ck_assert(!rc || rc == -EUCLEAN);
				noticed += !!rc;
			}
			m.data[at + 15] ^= 4;
			/* the root group's links may be in a tree, too */
			ck_assert_msg(noticed == 1 || (noticed == 0 && signatures[s][0] == 'B'),
				      "%s at %zu: %u", signatures[s], at, noticed);
		}
		ck_assert_uint_gt(blocks, 0);
	}
	free(m.data);
}
END_TEST

/* The first page of a fixed array comes behind the bitmap of its data block and the checksum. */
START_TEST(flipped_bit_of_a_page)
{
	struct fixture f = find_fixture("chunk_index-new.h5", "fixed-paged");
	struct image m = load_image(f.file);
	const size_t header = index_address(&m, &f);
	/* after max num entries */
	const size_t block = (size_t)h5_uint_from(m.data + header + 16, 8);

	/* 4200 chunks: 5 pages, a byte of bitmap */
	ck_assert_uint_eq(h5_uint_from(m.data + header + 8, 8), 4200);
	m.data[block + 6 + 8 + 1 + 4 + 80] ^= 1;
	ck_assert_int_eq(use(&m, m.size, &f), -EUCLEAN);
	ck_assert(strstr(h5_error_last()->text, "page"));
	free(f.chunks);
	free(m.data);
}
END_TEST

/* A damaged block takes its own chunks away, and nobody else's. */
START_TEST(cursors_pass_over_damage)
{
	static const struct {
		const char *file, *name, *signature;
	} cases[] = {
		{"chunk_index-new.h5", "fixed-paged", NULL},
		{"chunk_index-new.h5", "one-unlimited", "EADB"},
		{"chunk_index-new.h5", "one-unlimited", "EASB"},
		{"chunk_index-new.h5", "one-unlimited-gzip", "EADB"},
		{"chunk_index-new.h5", "two-unlimited-deep", "BTLF"},
		{"chunk_index-new.h5", "two-unlimited-deep-sum", "BTLF"},
		{"chunk_index-old.h5", "two-unlimited-deep", "TREE"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture f = find_fixture(cases[i].file, cases[i].name);
		struct image m = load_image(f.file);
		unsigned hit = 0;
		size_t at = 0;
		bool after = false;

		ck_assert_uint_eq(use_cursor(&m, &f, &after), 0);
		for (; (at = cases[i].signature ? find_bytes(&m, cases[i].signature, at) : at) < m.size;
		     at += cases[i].signature ? 1 : m.size) {
			uint64_t failed;

			if (!cases[i].signature) /* in the second page */
				at = (size_t)h5_uint_from(m.data + index_address(&m, &f) + 16, 8) + 6 + 8 +
				     1 + 4 + 1028 * 8;
			after = false;
			m.data[at] ^= 4;
			/* A block of another dataset is nothing to look further into. */
			failed = use(&m, m.size, &f) ? use_cursor(&m, &f, &after) : 0;
			m.data[at] ^= 4;
			hit += failed && after;
		}
		ck_assert_msg(hit, "%s: %s", f.name, cases[i].signature);
		free(f.chunks);
		free(m.data);
	}
}
END_TEST

START_TEST(truncated_files)
{
	static const char *const files[] = {"chunk_index-new.h5", "chunk_index-old.h5"};

	for (size_t k = 0; k < 2; k++) {
		struct image m = load_image(files[k]);
		struct fixture all[64];
		unsigned n = read_fixtures(files[k], all, 64), failed = 0;

		for (unsigned i = 0; i < n; i++) {
			for (size_t size = m.size; size > 1000; size -= size / 9) {
				int rc = use(&m, size, &all[i]);

				ck_assert(!rc || rc == -EUCLEAN);
				failed += !!rc;
			}
		}
		ck_assert_uint_gt(failed, n);
		free(m.data);
	}
}
END_TEST

/* Each byte of each header in turn, with a correct checksum: whatever it says now, there is an end and no
 * crash. */
START_TEST(headers_with_other_values)
{
	static const struct {
		const char *signature, *name;
		size_t size;
	} headers[] = {
		{"FAHD", "fixed-paged", 24},	    {"FAHD", "fixed-paged-gzip", 24},
		{"EAHD", "one-unlimited", 68},	    {"EAHD", "one-unlimited-middle-gzip", 68},
		{"BTHD", "two-unlimited-deep", 34},
	};
	static const uint8_t values[] = {0, 1, 2, 4, 8, 31, 63, 64, 127, 128, 255};
	struct image m = load_image("chunk_index-new.h5");

	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		struct fixture f = find_fixture("chunk_index-new.h5", headers[i].name);
		size_t at = index_address(&m, &f);
		unsigned failed = 0;

		ck_assert_mem_eq(m.data + at, headers[i].signature, 4);
		ck_assert_int_eq(use(&m, m.size, &f), 0);
		for (size_t k = 4; k < headers[i].size; k++) {
			uint8_t old = m.data[at + k];

			for (size_t v = 0; v < sizeof values; v++) {
				int rc;

				m.data[at + k] = values[v];
				sign(&m, at, at + headers[i].size);
				rc = use(&m, m.size, &f);
				ck_assert_msg(!rc || rc == -EUCLEAN || rc == -ENOTSUP, "%s byte %zu: %d",
					      headers[i].name, k, rc);
				failed += !!rc;
			}
			m.data[at + k] = old;
		}
		ck_assert_uint_gt(failed, headers[i].size);
		sign(&m, at, at + headers[i].size);
		free(f.chunks);
	}
	free(m.data);
}
END_TEST

/* Version 1 nodes have no checksum: other bytes there, and there is an end and no crash. */
START_TEST(version_1_nodes_with_other_bytes)
{
	struct fixture f = find_fixture("chunk_index-old.h5", "fixed-paged");
	struct image m = load_image(f.file);
	uint32_t random = 1;
	unsigned failed = 0;

	for (unsigned i = 0; i < 2000; i++) {
		size_t at;
		uint8_t old;
		int rc;

		random = random * 1664525 + 1013904223;
		at = h5_uint_from(m.data + f.layout_address + 3, 8) + (random >> 8) % 400;
		old = m.data[at];
		m.data[at] = (uint8_t)(random >> 24);
		rc = use(&m, m.size, &f);
		ck_assert(!rc || rc == -EUCLEAN);
		failed += !!rc;
		m.data[at] = old;
	}
	ck_assert_uint_gt(failed, 100);
	free(f.chunks);
	free(m.data);
}
END_TEST

START_TEST(version_1_circles_levels_counts)
{
	struct fixture f = find_fixture("chunk_index-old.h5", "fixed-paged");
	struct image m = load_image(f.file);
	/* layout version 3: version, class, dimensionality, address */
	const uint64_t root = h5_uint_from(m.data + f.layout_address + 3, 8);
	uint8_t *node = m.data + root, *child = node + 24 + 8 + 3 * 8;
	uint8_t keep[128];

	ck_assert_mem_eq(node, "TREE\1", 5);
	ck_assert_uint_ge(node[5], 1);
	ck_assert_int_eq(use(&m, m.size, &f), 0);
	memcpy(keep, node, sizeof keep);
	for (unsigned i = 0; i < 8; i++)
		child[i] = (uint8_t)(root >> (8 * i)); /* its own first child */
	ck_assert_int_eq(use(&m, m.size, &f), -EUCLEAN);
	memcpy(node, keep, sizeof keep);
	node[5]++; /* children of another level */
	ck_assert_int_eq(use(&m, m.size, &f), -EUCLEAN);
	node[5] = 255;
	ck_assert_int_eq(use(&m, m.size, &f), -EUCLEAN);
	memcpy(node, keep, sizeof keep);
	node[6] = node[7] = 255; /* entries */
	ck_assert_int_eq(use(&m, m.size, &f), -EUCLEAN);
	memcpy(node, keep, sizeof keep);
	node[4] = 0; /* a group's */
	ck_assert_int_eq(use(&m, m.size, &f), -EUCLEAN);
	free(f.chunks);
	free(m.data);
}
END_TEST

/* A line of 100 chunks of 8 bytes. */
static int open_line(struct opened *o, const struct image *m, enum h5_index_type type, uint64_t address,
		     uint8_t layout_version, bool filtered, uint64_t chunk_size, uint64_t max)
{
	const struct h5_chunk_layout layout = {
		.rank = 1, .dims = {1}, .element_size = 8, .index = type, .address = address};
	const struct h5_dataspace space = {
		.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {100}, .max = {max}, .elements = 100};

	*o = (struct opened){.set = open_image(m, m->size)};
	o->file = h5_file_set_root(o->set);
	return h5_chunk_index_open(o->file, layout_version, &layout, &space, filtered, chunk_size, &o->index);
}

/* Fifty levels, each of two pointers to one child: 2^50 nodes to a walk that doesn't count. */
START_TEST(version_1_shared_children)
{
	struct image m = load_image("chunk_index-array500.h5");
	uint64_t child = 16, count = 0;
	struct h5_chunk chunk;
	struct opened o;

	for (unsigned level = 0; level < 50; level++) {
		uint64_t at = m.size;

		put_signature(&m, "TREE");
		put(&m, 1, 1);
		put(&m, level, 1);
		put(&m, 2, 2);
		put(&m, H5_UNDEF, 8);
		put(&m, H5_UNDEF, 8);
		for (unsigned i = 0; i < 3; i++) {
			put(&m, 8, 4);
			put(&m, 0, 4);
			put(&m, i * 5, 8);
			put(&m, 0, 8);
			if (i < 2)
				put(&m, child, 8);
		}
		child = at;
	}
	ck_assert_int_eq(open_line(&o, &m, H5_INDEX_BTREE1, child, 3, false, 8, 100), 0);
	ck_assert_int_eq(h5_chunk_index_lookup(o.index, NULL, (const uint64_t[]){0}, &chunk), 0);
	ck_assert_uint_eq(chunk.address, 16);
	ck_assert_int_eq(h5_chunk_index_lookup(o.index, NULL, (const uint64_t[]){3}, &chunk), 0);
	ck_assert(chunk.address == H5_UNDEF);
	ck_assert_int_eq(h5_chunk_index_walk(o.index, count_chunk, &count), -EUCLEAN);
	close_index(&o);
	free(m.data);
}
END_TEST

/* Writers leave a last key that the next chunk's equals but for the coordinate inside the element. */
START_TEST(version_1_last_key)
{
	struct image m = load_image("chunk_index-array500.h5");
	uint64_t at = m.size;
	struct opened o;

	put_signature(&m, "TREE");
	put(&m, 1, 1);
	put(&m, 0, 1);
	put(&m, 2, 2);
	put(&m, H5_UNDEF, 8);
	put(&m, H5_UNDEF, 8);
	for (unsigned i = 0; i < 3; i++) {
		put(&m, i < 2 ? 5 : 0, 4);
		put(&m, i, 4);
		put(&m, i < 2 ? i : 1, 8);
		put(&m, i < 2 ? 0 : 1, 8);
		if (i < 2)
			put(&m, 1000 + i, 8);
	}
	ck_assert_int_eq(open_line(&o, &m, H5_INDEX_BTREE1, at, 3, true, 8, 100), 0);
	for (uint64_t i = 0; i < 3; i++) {
		struct h5_chunk chunk;

		ck_assert_int_eq(h5_chunk_index_lookup(o.index, NULL, &i, &chunk), 0);
		ck_assert(chunk.address == (i < 2 ? 1000 + i : H5_UNDEF));
		ck_assert_uint_eq(chunk.size, i < 2 ? 5 : 0);
		ck_assert_uint_eq(chunk.filter_mask, i < 2 ? i : 0);
	}
	close_index(&o);
	free(m.data);
}
END_TEST

/* A fixed array of 100 elements of which number 7 is there, with a Chunk Size of `width` bytes. */
static uint64_t put_fixed_array(struct image *m, unsigned width)
{
	uint64_t block = m->size, header = block + 14 + 100 * (12 + (uint64_t)width) + 4;

	put_signature(m, "FADB");
	put(m, 0, 1);
	put(m, 1, 1);
	put(m, header, 8);
	for (unsigned i = 0; i < 100; i++) {
		put(m, i == 7 ? 4096 : H5_UNDEF, 8);
		put(m, i == 7 ? 5 : 0, width);
		put(m, i == 7 ? 3 : 0, 4);
	}
	sign(m, block, m->size);
	m->size += 4;
	ck_assert_uint_eq(m->size, header);
	put_signature(m, "FAHD");
	put(m, 0, 1);
	put(m, 1, 1);
	put(m, 12 + width, 1);
	put(m, 10, 1);
	put(m, 100, 8);
	put(m, block, 8);
	sign(m, header, m->size);
	m->size += 4;
	return header;
}

/* Chunks 7 and 8 together have this many bytes, or one more than can be counted. */
START_TEST(stored_bytes_are_counted)
{
	static const struct {
		uint64_t sizes[2];
		int result;
	} cases[] = {{{5, 7}, 0},
		     {{UINT64_MAX - 7, 7}, 0},
		     {{UINT64_MAX - 7, 8}, -EUCLEAN},
		     {{UINT64_C(1) << 63, UINT64_C(1) << 63}, -EUCLEAN}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct image m = load_image("chunk_index-array500.h5");
		const size_t block = m.size, element = block + 14 + 7 * 20;
		uint64_t address = put_fixed_array(&m, 8), bytes;
		struct h5_dataset dataset = {.ops = &h5_layout_chunked, .is_whole = true};
		struct opened o;
		int rc;

		for (size_t k = 0; k < 2; k++) {
			h5_uint_to(m.data + element + k * 20, 4096, 8);
			h5_uint_to(m.data + element + k * 20 + 8, cases[i].sizes[k], 8);
		}
		sign(&m, block, block + 14 + 100 * 20);
		ck_assert_int_eq(open_line(&o, &m, H5_INDEX_FIXED_ARRAY, address, 5, true, 8, 100), 0);
		dataset.index = o.index;
		rc = h5_dataset_storage(&dataset, &bytes);
		ck_assert_int_eq(rc, cases[i].result);
		if (rc)
			ck_assert_str_eq(h5_error_last()->text, "chunks: more than 2^64 bytes are stored");
		else
			ck_assert_uint_eq(bytes, cases[i].sizes[0] + cases[i].sizes[1]);
		close_index(&o);
		free(m.data);
	}
}
END_TEST

/* The width of Chunk Size: by the chunk's size in layout version 4, that of all lengths in version 5. */
START_TEST(chunk_size_width)
{
	static const struct {
		unsigned width, version;
		uint64_t chunk_size;
		int result;
	} cases[] = {
		{2, 4, 8, 0},
		{2, 4, 255, 0},
		{2, 4, 256, -EUCLEAN},
		{3, 4, 256, 0},
		{3, 4, 65535, 0},
		{4, 4, 65536, 0},
		{8, 4, (uint64_t)1 << 60, 0},
		{9, 4, UINT64_MAX, -EUCLEAN},
		{8, 4, 8, -EUCLEAN},
		{8, 5, 8, 0},
		{2, 5, 8, -EUCLEAN},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct image m = load_image("chunk_index-array500.h5");
		uint64_t address = put_fixed_array(&m, cases[i].width > 8 ? 8 : cases[i].width);
		struct h5_chunk chunk;
		struct opened o;
		int rc;

		if (cases[i].width > 8) { /* a wider one can't be written, but said */
			m.data[address + 6] = (uint8_t)(12 + cases[i].width);
			sign(&m, address, address + 24);
		}
		rc = open_line(&o, &m, H5_INDEX_FIXED_ARRAY, address, (uint8_t)cases[i].version, true,
			       cases[i].chunk_size, 100);
		ck_assert_msg(rc == cases[i].result, "case %zu: %d", i, rc);
		if (!rc) {
			ck_assert_int_eq(h5_chunk_index_lookup(o.index, NULL, (const uint64_t[]){7}, &chunk),
					 0);
			ck_assert_uint_eq(chunk.address, 4096);
			ck_assert_uint_eq(chunk.size, 5);
			ck_assert_uint_eq(chunk.filter_mask, 3);
			ck_assert_int_eq(h5_chunk_index_lookup(o.index, NULL, (const uint64_t[]){8}, &chunk),
					 0);
			ck_assert(chunk.address == H5_UNDEF);
		}
		close_index(&o);
		free(m.data);
	}
}
END_TEST

/* The error names the chunks that the index is for. */
START_TEST(indexes_of_other_chunks)
{
	static const char *const texts[] = {"fixed array: it is for unfiltered chunks",
					    "fixed array: it is for filtered chunks",
					    "fixed array: it is for unfiltered structured chunks",
					    "fixed array: it is for filtered structured chunks",
					    "fixed array: client 4 is not supported"};
	struct image m = load_image("chunk_index-array500.h5");
	const uint64_t address = put_fixed_array(&m, 2);
	struct opened o;

	for (unsigned i = 0; i < 10; i++) {
		const unsigned client = i / 2;
		const bool filtered = i % 2;
		int rc;

		m.data[address + 5] = (uint8_t)client;
		sign(&m, address, address + 24);
		rc = open_line(&o, &m, H5_INDEX_FIXED_ARRAY, address, 4, filtered, 8, 100);
		if (client == 4)
			ck_assert_int_eq(rc, -ENOTSUP);
		else if (client != filtered)
			ck_assert_int_eq(rc, -EUCLEAN);
		if (client != filtered)
			ck_assert_str_eq(h5_error_last()->text, texts[client]);
		else /* elements of filtered chunks are larger */
			ck_assert_int_eq(rc, filtered ? 0 : -EUCLEAN);
		close_index(&o);
	}
	free(m.data);
}
END_TEST

/* An index that doesn't fit its dataset. */
START_TEST(indexes_of_other_datasets)
{
	struct image m = load_image("chunk_index-array500.h5");
	struct fixture f = find_fixture("chunk_index-array500.h5", "array");
	const uint64_t fixed = put_fixed_array(&m, 2), array = find_bytes(&m, "EAHD", 0);
	struct opened o;
	const struct {
		enum h5_index_type type;
		uint64_t address;
		bool filtered;
		uint64_t max;
		int result;
	} cases[] = {
		{H5_INDEX_FIXED_ARRAY, fixed, true, 100, 0},
		{H5_INDEX_FIXED_ARRAY, fixed, true, 101, -EUCLEAN},
		{H5_INDEX_FIXED_ARRAY, fixed, true, H5_UNLIMITED, -EUCLEAN},
		{H5_INDEX_FIXED_ARRAY, fixed, false, 100, -EUCLEAN},
		{H5_INDEX_FIXED_ARRAY, array, true, 100, -EUCLEAN},
		{H5_INDEX_EXTENSIBLE_ARRAY, array, false, H5_UNLIMITED, 0},
		{H5_INDEX_EXTENSIBLE_ARRAY, array, false, 500, -EUCLEAN},
		{H5_INDEX_EXTENSIBLE_ARRAY, array, true, H5_UNLIMITED, -EUCLEAN},
		{H5_INDEX_EXTENSIBLE_ARRAY, fixed, false, H5_UNLIMITED, -EUCLEAN},
		{H5_INDEX_BTREE2, array, false, H5_UNLIMITED, -EUCLEAN},
		{H5_INDEX_IMPLICIT, 0, false, 100, 0},
		{H5_INDEX_IMPLICIT, 0, true, 100, -EUCLEAN},
		{H5_INDEX_IMPLICIT, 0, false, H5_UNLIMITED, -EUCLEAN},
		{H5_INDEX_IMPLICIT, m.size - 799, false, 100, -EUCLEAN},
		{H5_INDEX_IMPLICIT, m.size - 800, false, 100, 0},
		{H5_INDEX_IMPLICIT, 0, false, UINT64_MAX - 1, -EUCLEAN},
		{(enum h5_index_type)6, 0, false, 100, -EUCLEAN},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int rc = open_line(&o, &m, cases[i].type, cases[i].address, 4, cases[i].filtered, 8,
				   cases[i].max);

		ck_assert_msg(rc == cases[i].result, "case %zu: %d", i, rc);
		close_index(&o);
	}
	free(f.chunks);
	free(m.data);
}
END_TEST

UNIT_MAIN("chunk_damage", flipped_bits_are_noticed, flipped_bit_of_a_page, cursors_pass_over_damage,
	  truncated_files, headers_with_other_values, version_1_nodes_with_other_bytes,
	  version_1_circles_levels_counts, version_1_shared_children, version_1_last_key, chunk_size_width,
	  stored_bytes_are_counted, indexes_of_other_chunks, indexes_of_other_datasets)
