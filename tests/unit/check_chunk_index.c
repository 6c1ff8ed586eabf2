/* Chunk indexes against what libhdf5 says of its own files (tests/fixtures/chunk_index.py). */
#include "change/open.h"
#include "chunk_index/private.h"
#include "chunk_index_account.h"
#include "format/extensible_array.h"

static void open_file(struct opened *o, const struct fixture *f)
{
	struct h5_file_set *set;

	ck_assert_int_eq(h5_open_file(data_path(f->file), &options, &set, NULL), 0);
	ck_assert_msg(!open_index(o, set, f), "%s: %s", f->name, h5_error_last()->text);
}

/* ---- what libhdf5 reports ---- */

static const struct expected *expected_at(const struct fixture *f, const struct h5_chunk_layout *layout,
					  const uint64_t *scaled)
{
	for (size_t i = 0; i < f->count; i++) {
		bool same = true;

		for (unsigned d = 0; d < f->space.rank; d++)
			same &= f->chunks[i].offset[d] == scaled[d] * layout->dims[d];
		if (same)
			return &f->chunks[i];
	}
	return NULL;
}

struct walked {
	struct fixture *fixture;
	uint64_t known, all;
};

static int visit(void *arg, const struct h5_chunk *chunk)
{
	const struct expected key = {.chunk = {.address = chunk->address}};
	struct walked *w = arg;
	struct expected *e;

	w->all++;
	e = bsearch(&key, w->fixture->chunks, w->fixture->count, sizeof key, by_address);
	if (e) {
		ck_assert(!e->walked);
		ck_assert_uint_eq(chunk->size, e->chunk.size);
		ck_assert_uint_eq(chunk->filter_mask, e->chunk.filter_mask);
		e->walked = true;
		w->known++;
	}
	return 0;
}

/* Fails at the last of so many visits. */
static int fail_at_last(void *arg, const struct h5_chunk *chunk)
{
	uint64_t *left = arg;

	(void)chunk;
	ck_assert_uint_gt(*left, 0);
	return --*left ? 0 : -ECANCELED;
}

static void check_listed(struct fixture *f)
{
	const char *name = f->name;
	struct walked w = {.fixture = f};
	uint64_t scaled[H5_RANK_MAX] = {0}, found = 0, left;
	struct opened o;

	open_file(&o, f);
	do {
		const struct expected *e = expected_at(f, &o.layout.chunked, scaled);
		struct h5_chunk chunk;
		int rc = h5_chunk_index_lookup(o.index, NULL, scaled, &chunk);

		ck_assert_msg(!rc, "%s: %s", name, h5_error_last()->text);
		if (!e) {
			ck_assert_msg(chunk.address == H5_UNDEF, "%s: a chunk that is not there", name);
			continue;
		}
		found++;
		ck_assert_msg(chunk.address == e->chunk.address, "%s: %ju not %ju", name,
			      (uintmax_t)chunk.address, (uintmax_t)e->chunk.address);
		ck_assert_msg(chunk.size == e->chunk.size && chunk.filter_mask == e->chunk.filter_mask,
			      "%s: size %ju not %ju, mask %u not %u", name, (uintmax_t)chunk.size,
			      (uintmax_t)e->chunk.size, chunk.filter_mask, e->chunk.filter_mask);
	} while (next_chunk(f, &o.layout.chunked, scaled));
	ck_assert_uint_eq(found, f->count);

	ck_assert_int_eq(h5_chunk_index_walk(o.index, visit, &w), 0);
	ck_assert_uint_eq(w.known, f->count);
	ck_assert_msg(w.all == f->count, "%s: walked %ju chunks of %zu", name, (uintmax_t)w.all, f->count);
	/* The walk ends with the visit that fails, and fails as it did. */
	left = (f->count + 1) / 2;
	if (left)
		ck_assert_int_eq(h5_chunk_index_walk(o.index, fail_at_last, &left), -ECANCELED);
	close_index(&o);
}

START_TEST(every_index_finds_what_libhdf5_reports)
{
	FILE *text = open_account();
	unsigned seen[H5_INDEX_BTREE2 + 1][2] = {{0}};
	struct fixture f;

	while (read_fixture(text, &f)) {
		if (!f.step) {
			struct opened o;

			check_listed(&f);
			open_file(&o, &f);
			seen[o.layout.chunked.index][f.filtered]++;
			close_index(&o);
		}
		free(f.chunks);
	}
	fclose(text);
	for (unsigned i = 0; i <= H5_INDEX_BTREE2; i++) {
		ck_assert_uint_gt(seen[i][0], 0);
		if (i != H5_INDEX_IMPLICIT)
			ck_assert_uint_gt(seen[i][1], 0);
	}
}
END_TEST

/* ---- many chunks: number n has the value n ---- */

enum { MANY = 150000 }; /* in trees of several levels, in arrays of several super blocks */

static void to_scaled(const struct fixture *f, uint64_t n, uint64_t *scaled)
{
	for (unsigned d = f->space.rank; d-- > 0; n /= f->space.dims[d])
		scaled[d] = n % f->space.dims[d];
}

static void check_value(const struct opened *o, const struct fixture *f, uint64_t n)
{
	uint64_t scaled[H5_RANK_MAX];
	struct h5_chunk chunk;
	uint8_t value[4];
	int rc;

	to_scaled(f, n, scaled);
	rc = h5_chunk_index_lookup(o->index, NULL, scaled, &chunk);
	ck_assert_msg(!rc, "%s %ju: %s", f->name, (uintmax_t)n, h5_error_last()->text);
	if (n % f->step) {
		ck_assert(chunk.address == H5_UNDEF);
		return;
	}
	/* A filtered one has its checksum behind it. */
	ck_assert_uint_eq(chunk.size, f->filtered ? 8 : 4);
	ck_assert_uint_eq(chunk.filter_mask, 0);
	ck_assert_int_eq(h5_file_read(o->file, chunk.address, value, 4), 0);
	ck_assert_uint_eq(h5_uint_from(value, 4), n);
}

/* Blocks that the lookup of chunk n loads into an empty cache. */
static uint64_t loads(const struct fixture *f, uint64_t n)
{
	struct h5_lru_stats stats;
	struct opened o;

	open_file(&o, f);
	check_value(&o, f, n);
	h5_lru_stats(h5_file_set_blocks(o.set), &stats);
	close_index(&o);
	return stats.misses;
}

static void check_values(const struct fixture *f)
{
	const uint64_t n = f->space.rank > 1 ? f->space.dims[0] * f->space.dims[1] : f->space.dims[0];
	const uint64_t stride = n > 1000000 ? 211 : n > MANY ? 13 : 1, last = (n - 1) / f->step * f->step;
	uint64_t count = 0;
	struct opened o;

	open_file(&o, f);
	for (uint64_t i = 0; i < n; i += stride)
		check_value(&o, f, i);
	for (uint64_t i = 0; i < n; i += f->step * (f->step > 1 ? 1 : stride * 3 + 1))
		check_value(&o, f, i);
	ck_assert_int_eq(h5_chunk_index_walk(o.index, count_chunk, &count), 0);
	ck_assert_uint_eq(count, (n - 1) / f->step + 1);
	close_index(&o);

	/* The last chunk lies deepest in an array; in between, whatever the tree has. */
	ck_assert_uint_le(loads(f, last), 6);
	ck_assert_uint_le(loads(f, n / 2 / f->step * f->step), 6);
	ck_assert_uint_le(loads(f, 0), 6);
	if (f->step > 1)
		ck_assert_uint_le(loads(f, last - 1), 6);
}

START_TEST(many_chunks_by_few_blocks)
{
	unsigned many[H5_INDEX_BTREE2 + 1] = {0};
	FILE *text = open_account();
	struct fixture f;

	while (read_fixture(text, &f)) {
		if (f.step) {
			struct opened o;

			check_values(&f);
			open_file(&o, &f);
			if (f.space.dims[0] * (f.space.rank > 1 ? f.space.dims[1] : 1) >= MANY)
				many[o.layout.chunked.index]++;
			close_index(&o);
		}
		free(f.chunks);
	}
	fclose(text);
	ck_assert_uint_gt(many[H5_INDEX_BTREE1], 0);
	ck_assert_uint_gt(many[H5_INDEX_FIXED_ARRAY], 0);
	ck_assert_uint_gt(many[H5_INDEX_EXTENSIBLE_ARRAY], 0);
	ck_assert_uint_gt(many[H5_INDEX_BTREE2], 0);
}
END_TEST

/* ---- the decoders of the extensible array, on the reference's example: 500 chunks of one number ---- */

static uint64_t offset_at(const struct opened *o, const uint8_t *p, unsigned i)
{
	struct h5_reader r = h5_file_reader(o->file, p + 8 * i, 8, H5_UNDEF);

	return h5_read_offset(&r);
}

static struct h5_reader read_at(const struct opened *o, uint64_t address, size_t n, uint8_t *data)
{
	ck_assert_int_eq(h5_file_read(o->file, address, data, n), 0);
	return h5_file_reader(o->file, data, n, address);
}

/* That data block's elements are those of the chunks from `first` on. */
static void check_elements(const struct opened *o, const struct fixture *f, const uint8_t *elements,
			   uint64_t n, uint64_t first)
{
	for (uint64_t i = 0; i < n && first + i < f->space.dims[0]; i++) {
		const uint64_t scaled[] = {first + i};
		const struct expected *e = expected_at(f, &o->layout.chunked, scaled);

		ck_assert_ptr_nonnull(e);
		ck_assert_uint_eq(offset_at(o, elements, (unsigned)i), e->chunk.address);
	}
}

/* Another reader has loaded the data block by the header that is there by now. */
START_TEST(a_fixed_array_that_has_changed)
{
	struct fixture f = find_fixture("chunk_index-new.h5", "fixed1");
	const uint64_t first = 0;
	struct h5_fixed_array_header *header, sound;
	struct h5_chunk chunk;
	struct opened o;

	open_file(&o, &f);
	ck_assert_int_eq(o.layout.chunked.index, H5_INDEX_FIXED_ARRAY);
	header = &o.index->fixed_array;
	sound = *header;
	ck_assert_int_eq(h5_chunk_index_lookup(o.index, NULL, &first, &chunk), 0);
	for (unsigned i = 0; i < 2; i++) {
		header->block_size += !i;
		header->pages += i;
		ck_assert_int_eq(h5_chunk_index_lookup(o.index, NULL, &first, &chunk), -EUCLEAN);
		ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "it has changed"));
		*header = sound;
	}
	ck_assert_int_eq(h5_chunk_index_lookup(o.index, NULL, &first, &chunk), 0);
	close_index(&o);
	free(f.chunks);
}
END_TEST

START_TEST(extensible_array_of_500)
{
	static const uint64_t block_offsets[] = {0, 48, 112, 144, 368, 432};
	struct fixture f = find_fixture("chunk_index-array500.h5", "array");
	struct h5_extensible_array_header header;
	struct h5_extensible_array_index_block root;
	struct h5_extensible_array_super_block super_block;
	struct h5_extensible_array_super super;
	uint8_t memory[2048], more[2048];
	struct h5_reader r;
	struct opened o;
	uint64_t at, first = 4;
	unsigned i = 0;

	open_file(&o, &f);
	r = read_at(&o, o.layout.chunked.address, H5_EXTENSIBLE_ARRAY_HEADER_MAX, memory);
	ck_assert_int_eq(h5_extensible_array_header_decode(&r, &header), 0);
	ck_assert_uint_eq(header.max_bits, 32);
	ck_assert_uint_eq(header.page_elements, 1024);
	ck_assert_uint_eq(header.super_blocks, 29);
	ck_assert_uint_eq(header.index_super_blocks, 4);
	ck_assert_uint_eq(header.index_data_blocks, 6);
	ck_assert_uint_eq(header.index_super_pointers, 25);
	ck_assert_uint_eq(header.max_index, 500);

	r = read_at(&o, header.index_block, header.index_block_size, memory);
	ck_assert_int_eq(h5_extensible_array_index_block_decode(&r, &header, &root), 0);
	check_elements(&o, &f, root.elements, 4, 0);
	for (unsigned number = 0; number < 4; number++) {
		h5_extensible_array_super(&header, number, 8, &super);
		ck_assert_uint_eq(super.first_element + 4, first);
		for (unsigned k = 0; k < super.data_blocks; k++, i++) {
			struct h5_extensible_array_data_block block;

			ck_assert_uint_eq(super.first_data_block + k, i);
			r = read_at(&o, offset_at(&o, root.data_blocks, i), super.data_block_size, more);
			ck_assert_int_eq(h5_extensible_array_data_block_decode(&r, &header, &super, &block),
					 0);
			ck_assert_uint_eq(block.block_offset, block_offsets[i]);
			check_elements(&o, &f, block.elements, super.elements, first);
			first += super.elements;
		}
	}
	ck_assert_uint_eq(i, 6);
	ck_assert_uint_eq(first, 244);

	at = offset_at(&o, root.super_blocks, 0);
	for (unsigned k = 1; k < 25; k++)
		ck_assert(offset_at(&o, root.super_blocks, k) == H5_UNDEF);
	h5_extensible_array_super(&header, 4, 8, &super);
	ck_assert_uint_eq(super.data_blocks, 4);
	ck_assert_uint_eq(super.elements, 64);
	r = read_at(&o, at, super.block_size, memory);
	ck_assert_int_eq(h5_extensible_array_super_block_decode(&r, &header, &super, &super_block), 0);
	ck_assert_uint_eq(super_block.block_offset, 240);
	for (unsigned k = 0; k < 4; k++) {
		struct h5_extensible_array_data_block block;

		r = read_at(&o, offset_at(&o, super_block.data_blocks, k), super.data_block_size, more);
		ck_assert_int_eq(h5_extensible_array_data_block_decode(&r, &header, &super, &block), 0);
		ck_assert_uint_eq(block.block_offset, 240 + 64 * k);
		check_elements(&o, &f, block.elements, super.elements, first);
		first += super.elements;
	}
	ck_assert_uint_eq(first, 500);
	close_index(&o);
	free(f.chunks);
}
END_TEST

/* The reference's table for the default parameters, and where paging begins. */
START_TEST(extensible_array_geometry)
{
	static const uint64_t table[][5] = {{0, 1, 16, 0, 0},	      {1, 1, 32, 16, 1},
					    {2, 2, 32, 48, 2},	      {3, 2, 64, 112, 4},
					    {4, 4, 64, 240, 6},	      {5, 4, 128, 496, 10},
					    {6, 8, 128, 1008, 14},    {11, 32, 1024, 32752, 0},
					    {12, 64, 1024, 65520, 0}, {13, 64, 2048, 131056, 0}};
	const struct h5_extensible_array_header header = {.element_size = 8,
							  .max_bits = 32,
							  .super_blocks = 29,
							  .min_elements = 16,
							  .min_pointers = 4,
							  .page_elements = 1024,
							  .offset_size = 4};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		unsigned number = (unsigned)table[i][0];
		struct h5_extensible_array_super super;

		h5_extensible_array_super(&header, number, 8, &super);
		ck_assert_uint_eq(super.data_blocks, table[i][1]);
		ck_assert_uint_eq(super.elements, table[i][2]);
		ck_assert_uint_eq(super.first_element, table[i][3]);
		if (i < 7)
			ck_assert_uint_eq(super.first_data_block, table[i][4]);
		ck_assert_uint_eq(super.pages, number < 13 ? 0 : 2);
		ck_assert_uint_eq(super.bitmap_size, number < 13 ? 0 : 64);
		ck_assert_uint_eq(h5_extensible_array_super_of(&header, super.first_element), number);
		if (number)
			ck_assert_uint_eq(h5_extensible_array_super_of(&header, super.first_element - 1),
					  number - 1);
	}
}
END_TEST

UNIT_MAIN("chunk_index", every_index_finds_what_libhdf5_reports, many_chunks_by_few_blocks,
	  a_fixed_array_that_has_changed, extensible_array_of_500, extensible_array_geometry)
