/* Chunks set and removed through version 2 B-trees, against trees that libhdf5 makes of the same changes
 * (tests/fixtures/btree2_write.py), against a model in memory, and by libhdf5 as the reader and next writer
 * (tests/btree2_judge.py). */
#include "base/error.h"
#include "base/lookup3.h"
#include "chunk_index/chunk_index.h"
#include "fault_io.h"
#include "format/btree2.h"
#include "store/block.h"
#include "store/file_set.h"
#include "store/object_header.h"
#include "store/transaction.h"
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- a writable copy of a file, and the index of one of its datasets ---- */

struct target {
	char folder[64], path[96];
	struct h5_file_set_options options;
	struct h5_file_set *set;
	struct h5_file *file;
	uint64_t header;
	struct h5_dataspace space;
	struct h5_layout layout;
	uint8_t space_body[512], layout_body[512];
	size_t space_size, layout_size;
	bool filtered;
	struct h5_chunk_index *index;
};

static const char *data_folder(void)
{
	return getenv("H5FS_TEST_DATA") ? getenv("H5FS_TEST_DATA") : "tests/data";
}

static const char *source_folder(void)
{
	return getenv("srcdir") ? getenv("srcdir") : ".";
}

static void run(const char *command)
{
	ck_assert_msg(!system(command), "%s", command);
}

static void copy_body(const struct h5_message *m, uint8_t *body, size_t *size)
{
	ck_assert_ptr_nonnull(m);
	ck_assert_uint_le(m->size, 512);
	memcpy(body, m->data, m->size);
	*size = m->size;
}

static void read_header(struct target *t)
{
	struct h5_header header;
	struct h5_reader r;

	ck_assert_int_eq(h5_header_load(t->file, t->header, &header), 0);
	copy_body(h5_header_find(&header, H5_MSG_DATASPACE), t->space_body, &t->space_size);
	copy_body(h5_header_find(&header, H5_MSG_LAYOUT), t->layout_body, &t->layout_size);
	t->filtered = h5_header_find(&header, H5_MSG_PIPELINE);
	h5_header_release(&header);
	r = h5_file_reader(t->file, t->space_body, t->space_size, H5_UNDEF);
	ck_assert_int_eq(h5_dataspace_decode(&r, &t->space), 0);
	r = h5_file_reader(t->file, t->layout_body, t->layout_size, H5_UNDEF);
	ck_assert_int_eq(h5_layout_decode(&r, &t->layout), 0);
	ck_assert_int_eq(t->layout.chunked.index, H5_INDEX_BTREE2);
}

static void open_index(struct target *t)
{
	ck_assert_msg(!h5_chunk_index_open(t->file, t->layout.version, &t->layout.chunked, &t->space,
					   t->filtered, 4, &t->index),
		      "%s", h5_error_last()->text);
}

static void open_target(struct target *t)
{
	ck_assert_msg(!h5_file_set_open(t->path, &t->options, &t->set), "%s", h5_error_last()->text);
	t->file = h5_file_set_root(t->set);
	read_header(t);
	open_index(t);
}

static void begin(struct target *t, const char *file, uint64_t header)
{
	char command[1024];

	memset(t, 0, sizeof *t);
	strcpy(t->folder, "/tmp/check_btree2_write.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(t->folder));
	snprintf(t->path, sizeof t->path, "%s/file.h5", t->folder);
	snprintf(command, sizeof command, "cp %s/%s %s", data_folder(), file, t->path);
	run(command);
	t->header = header;
	t->options = (struct h5_file_set_options){
		.block_cache = 1 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_ALWAYS, .writable = true};
	open_target(t);
}

static void close_target(struct target *t)
{
	h5_chunk_index_close(t->index);
	h5_file_set_close(t->set);
	t->index = NULL;
	t->set = NULL;
}

static void end(struct target *t)
{
	char command[128];

	close_target(t);
	snprintf(command, sizeof command, "rm -r %s", t->folder);
	run(command);
}

/* What stands in the object header follows, and all is committed. */
static void commit(struct target *t)
{
	const struct h5_superblock *sb = h5_file_superblock(t->file);

	t->layout.chunked.address = h5_chunk_index_layout(t->index)->address;
	ck_assert_int_eq(h5_layout_update(t->layout_body, t->layout_size, sb->size_of_offsets,
					  sb->size_of_lengths, &t->layout),
			 0);
	ck_assert_int_eq(h5_header_replace(t->file, t->header, H5_MSG_LAYOUT, t->layout_body, t->layout_size),
			 0);
	ck_assert_int_eq(h5_dataspace_update(t->space_body, t->space_size, sb->size_of_lengths, &t->space),
			 0);
	ck_assert_int_eq(
		h5_header_replace(t->file, t->header, H5_MSG_DATASPACE, t->space_body, t->space_size), 0);
	ck_assert_msg(!h5_tx_commit(t->file), "%s", h5_error_last()->text);
}

static int set_chunk(struct target *t, const uint64_t *scaled, uint32_t value)
{
	struct h5_chunk chunk = {.size = 4, .filter_mask = t->filtered};
	int rc = h5_tx_allocate(t->file, H5_ALLOCATE_RAW, 4, &chunk.address);
	uint8_t bytes[4];

	h5_uint_to(bytes, value, 4);
	if (!rc)
		rc = h5_tx_write(t->file, chunk.address, bytes, 4);
	return rc ? rc : h5_chunk_index_set(t->index, scaled, &chunk);
}

static int remove_chunk(struct target *t, const uint64_t *scaled)
{
	struct h5_chunk old, none = {.address = H5_UNDEF};
	int rc = h5_chunk_index_lookup(t->index, scaled, &old);

	if (!rc)
		rc = h5_chunk_index_set(t->index, scaled, &none);
	if (!rc && old.address != H5_UNDEF)
		h5_tx_free(t->file, old.address, old.size);
	return rc;
}

/* ---- what holds for every tree ---- */

struct block {
	uint64_t address;
	size_t size; /* with checksum */
};

struct tree {
	const struct target *target;
	struct block *blocks; /* the header first; NULL: not asked for */
	size_t block_count;
	struct h5_btree2_header header;
	uint64_t previous[H5_RANK_MAX]; /* record */
	bool any;
};

static void check_record(struct tree *tree, const uint8_t *record)
{
	unsigned rank = tree->target->space.rank;
	struct h5_reader r = h5_reader_init(record + tree->header.record_size - 8 * rank, 8 * rank, 0, 8, 8);
	uint64_t scaled[H5_RANK_MAX];
	int order = 0;

	for (unsigned i = 0; i < rank; i++) {
		scaled[i] = h5_read_u64(&r);
		if (!order && scaled[i] != tree->previous[i])
			order = scaled[i] < tree->previous[i] ? -1 : 1;
	}
	ck_assert(!tree->any || order > 0);
	tree->any = true;
	memcpy(tree->previous, scaled, sizeof scaled);
}

static int decode_header(struct h5_reader *r, void *header)
{
	return h5_btree2_header_decode(r, header);
}

/* Records in it and beneath. */
static uint64_t check_node(struct tree *tree, uint64_t address, unsigned level, uint64_t records)
{
	const struct h5_btree2_level *limits = &tree->header.levels[level];
	size_t size = h5_btree2_node_size(&tree->header, level, records), cost;
	struct h5_btree2_node *node;
	uint64_t total = records;
	struct h5_reader r;
	void *data;

	ck_assert_uint_gt(size, 0);
	if (tree->blocks)
		tree->blocks[tree->block_count++] = (struct block){address, size};
	if (address != tree->header.root)
		ck_assert_uint_ge(records, limits->merge_records);
	ck_assert_int_eq(h5_block_read(tree->target->file, address, 0, tree->header.node_size, "", &data), 0);
	for (size_t i = size; i < tree->header.node_size; i++)
		ck_assert_int_eq(((uint8_t *)data)[i], 0);
	node = h5_btree2_node_new(&tree->header, level, (size_t)records, &cost);
	r = h5_file_reader(tree->target->file, data, size, address);
	ck_assert_int_eq(h5_btree2_node_decode(&r, &tree->header, (size_t)records, node), 0);
	for (size_t i = 0; i <= records; i++) {
		if (level) {
			uint64_t beneath = check_node(tree, node->children[i].address, level - 1,
						      node->children[i].records);

			ck_assert_uint_eq(beneath, node->children[i].total);
			total += beneath;
		}
		if (i < records)
			check_record(tree, node->records + i * tree->header.record_size);
	}
	free(node);
	free(data);
	return total;
}

static void check_all(struct tree *tree)
{
	uint64_t address = h5_chunk_index_layout(tree->target->index)->address, records = 0;
	struct h5_btree2_header *h = &tree->header;

	ck_assert(address != H5_UNDEF);
	ck_assert_int_eq(
		h5_block_decode_header(tree->target->file, address, H5_BTREE2_HEADER_MAX, decode_header, h),
		0);
	if (tree->blocks)
		tree->blocks[tree->block_count++] = (struct block){address, H5_BTREE2_HEADER_MAX};
	if (h->root != H5_UNDEF)
		records = check_node(tree, h->root, h->depth, h->root_records);
	ck_assert_uint_eq(records, h->records);
}

/* Its depth. */
static unsigned check_tree(const struct target *t)
{
	struct tree tree = {.target = t};

	check_all(&tree);
	return tree.header.depth;
}

/* ---- the same changes as libhdf5 ---- */

/* Byte by byte, but for addresses. */
static void assert_same_as_reference(struct target *t, const char *name)
{
	char command[1024];

	close_target(t);
	snprintf(command, sizeof command,
		 "/usr/bin/python3 '%s/tests/index_structure.py' '%s/btree2_write-reference.h5' %s '%s' %s",
		 source_folder(), data_folder(), name, t->path, name);
	run(command);
	open_target(t);
}

struct paragraph {
	char name[32];
	uint64_t header, empty_header;
	unsigned rank;
	size_t count;
};

static bool next_paragraph(FILE *text, struct paragraph *p)
{
	return fscanf(text, " dataset %31s %" SCNu64 " %" SCNu64 " %u %zu", p->name, &p->header,
		      &p->empty_header, &p->rank, &p->count) == 5;
}

static FILE *open_account(void)
{
	char path[1024];
	FILE *text;

	snprintf(path, sizeof path, "%s/btree2_write.txt", data_folder());
	text = fopen(path, "r");
	ck_assert_ptr_nonnull(text);
	return text;
}

static struct paragraph find_paragraph(const char *name)
{
	FILE *text = open_account();
	struct paragraph p;
	bool found = false;

	while (!found && next_paragraph(text, &p)) {
		found = !strcmp(p.name, name);
		for (size_t lines = p.count + 2; lines;)
			lines -= fgetc(text) == '\n';
	}
	fclose(text);
	ck_assert(found);
	return p;
}

static void change_as_told(struct target *t, FILE *text, const struct paragraph *p, size_t commit_every)
{
	uint32_t value = 0;

	for (unsigned d = 0; d < p->rank; d++)
		ck_assert_int_eq(fscanf(text, "%" SCNu64, &t->space.dims[d]), 1);
	for (size_t i = 0; i < p->count; i++) {
		uint64_t scaled[H5_RANK_MAX];
		char sign;
		int rc;

		ck_assert_int_eq(fscanf(text, " %c", &sign), 1);
		for (unsigned d = 0; d < p->rank; d++)
			ck_assert_int_eq(fscanf(text, "%" SCNu64, &scaled[d]), 1);
		rc = sign == '+' ? set_chunk(t, scaled, value++) : remove_chunk(t, scaled);
		ck_assert_msg(!rc, "%s, line %zu: %s", p->name, i, h5_error_last()->text);
		if (i % commit_every == commit_every - 1)
			commit(t);
	}
	commit(t);
}

START_TEST(trees_have_the_shape_of_libhdf5s)
{
	FILE *text = open_account();
	struct paragraph p;
	unsigned depth, deepest = 0, all = 0;

	while (next_paragraph(text, &p)) {
		struct target t;

		begin(&t, "btree2_write-empty.h5", p.empty_header);
		change_as_told(&t, text, &p, 1000);
		assert_same_as_reference(&t, p.name);
		depth = check_tree(&t);
		deepest = depth > deepest ? depth : deepest;
		end(&t);
		all++;
	}
	fclose(text);
	ck_assert_uint_eq(all, 10);
	ck_assert_uint_ge(deepest, 3);
}
END_TEST

/* ---- random changes against a model ---- */

enum { MODEL_MAX = 40 * 40 * 8 };

struct model {
	struct target t;
	uint32_t node_size;
	uint64_t shape[3];	    /* chunks; further dimensions have one */
	uint32_t values[MODEL_MAX]; /* 0: no chunk */
	uint32_t value;
	uint64_t random;
};

static struct model *model_begin(const char *name, uint32_t node_size, const uint64_t shape[3])
{
	struct model *m = calloc(1, sizeof *m);
	struct paragraph p = find_paragraph(name);

	ck_assert_ptr_nonnull(m);
	begin(&m->t, "btree2_write-empty.h5", p.empty_header);
	memcpy(m->shape, shape, sizeof m->shape);
	for (unsigned i = 0; i < m->t.space.rank; i++)
		m->t.space.dims[i] = i < 3 ? shape[i] : 1;
	m->node_size = node_size;
	m->random = node_size;
	m->t.layout.chunked.btree2.node_size = node_size;
	h5_chunk_index_close(m->t.index);
	open_index(&m->t);
	return m;
}

static uint64_t choose(struct model *m, uint64_t n)
{
	m->random = m->random * 6364136223846793005u + 1442695040888963407u;
	return (m->random >> 33) % n;
}

static void model_scaled(const struct model *m, size_t i, uint64_t *scaled)
{
	memset(scaled, 0, H5_RANK_MAX * sizeof *scaled);
	for (unsigned d = 3; d-- > 0; i /= m->shape[d])
		scaled[d] = i % m->shape[d];
}

static size_t model_size(const struct model *m)
{
	return (size_t)(m->shape[0] * m->shape[1] * m->shape[2]);
}

static int model_set(struct model *m, size_t i)
{
	uint64_t scaled[H5_RANK_MAX];
	struct h5_chunk old;
	int rc;

	model_scaled(m, i, scaled);
	ck_assert_int_eq(h5_chunk_index_lookup(m->t.index, scaled, &old), 0);
	rc = set_chunk(&m->t, scaled, m->value + 1);
	if (rc)
		return rc;
	if (old.address != H5_UNDEF)
		h5_tx_free(m->t.file, old.address, old.size);
	m->values[i] = ++m->value;
	return 0;
}

static int model_remove(struct model *m, size_t i)
{
	uint64_t scaled[H5_RANK_MAX];
	int rc;

	model_scaled(m, i, scaled);
	rc = remove_chunk(&m->t, scaled);
	if (!rc)
		m->values[i] = 0;
	return rc;
}

static int count_chunk(void *arg, const struct h5_chunk *chunk)
{
	(void)chunk;
	++*(uint64_t *)arg;
	return 0;
}

static void model_check(const struct model *m)
{
	uint64_t stored = 0, walked = 0;

	for (size_t i = 0; i < model_size(m); i++) {
		uint64_t scaled[H5_RANK_MAX];
		struct h5_chunk chunk;
		uint8_t bytes[4];

		model_scaled(m, i, scaled);
		ck_assert_msg(!h5_chunk_index_lookup(m->t.index, scaled, &chunk), "%s",
			      h5_error_last()->text);
		ck_assert_msg((chunk.address != H5_UNDEF) == (m->values[i] != 0), "chunk %zu", i);
		if (!m->values[i])
			continue;
		stored++;
		ck_assert_int_eq(h5_file_read(m->t.file, chunk.address, bytes, 4), 0);
		ck_assert_uint_eq(h5_uint_from(bytes, 4), m->values[i]);
		ck_assert_uint_eq(chunk.filter_mask, m->t.filtered);
	}
	ck_assert_int_eq(h5_chunk_index_walk(m->t.index, count_chunk, &walked), 0);
	ck_assert_uint_eq(walked, stored);
	if (h5_chunk_index_layout(m->t.index)->address != H5_UNDEF)
		check_tree(&m->t);
}

static void model_reopen(struct model *m)
{
	commit(&m->t);
	close_target(&m->t);
	open_target(&m->t);
	model_check(m);
}

/* libhdf5 reads the file; seed: and changes it. (With nodes much smaller than it makes, which an edited
 * layout message gets it to use, version 1.10.8 corrupts its memory even in a file that nobody else has
 * written.) */
static void model_judge(struct model *m, const char *name, unsigned seed)
{
	char path[128], command[1024];
	FILE *text;

	commit(&m->t);
	close_target(&m->t);
	snprintf(path, sizeof path, "%s/expected", m->t.folder);
	text = fopen(path, "w");
	ck_assert_ptr_nonnull(text);
	for (size_t i = 0; i < model_size(m); i++) {
		uint64_t scaled[H5_RANK_MAX];

		model_scaled(m, i, scaled);
		for (unsigned d = 0; d < m->t.space.rank && m->values[i]; d++)
			fprintf(text, "%" PRIu64 " ", scaled[d]);
		if (m->values[i])
			fprintf(text, "%u\n", m->values[i]);
	}
	ck_assert_int_eq(fclose(text), 0);
	snprintf(command, sizeof command, "/usr/bin/python3 '%s/tests/btree2_judge.py' '%s' %s '%s'",
		 source_folder(), m->t.path, name, path);
	if (seed && m->node_size >= 512)
		snprintf(command + strlen(command), 16, " %u", seed);
	run(command);
	open_target(&m->t);
}

static void model_end(struct model *m)
{
	end(&m->t);
	free(m);
}

struct variant {
	const char *name; /* of the dataset */
	uint32_t node_size;
	uint64_t shape[3];
};

static const struct variant variants[] = {
	{"random", 256, {30, 40, 1}},	    {"random", 512, {40, 60, 1}},
	{"random", 2048, {60, 80, 1}},	    {"filtered", 288, {50, 30, 1}},
	{"filtered", 5000, {70, 50, 1}},    {"rows_deep", 1000, {10, 20, 10}},
	{"random_deep", 2048, {10, 9, 30}},
};

enum { VARIANTS = sizeof variants / sizeof *variants };

/* Sets and removes chunks here and there; `grow`: sets in a hundred. */
static void model_shake(struct model *m, unsigned times, unsigned grow)
{
	for (unsigned n = 0; n < times; n++) {
		size_t i = (size_t)choose(m, model_size(m));
		int rc = choose(m, 100) < grow ? model_set(m, i) : model_remove(m, i);

		ck_assert_msg(!rc, "%s", h5_error_last()->text);
		if (!choose(m, 1000))
			commit(&m->t);
	}
}

START_TEST(random_changes)
{
	const struct variant *v = &variants[_i];
	struct model *m = model_begin(v->name, v->node_size, v->shape);
	unsigned all = (unsigned)model_size(m);

	model_check(m);
	model_shake(m, all, 90);
	model_check(m);
	model_judge(m, v->name, 0);
	model_shake(m, all, 30);
	model_check(m);
	model_shake(m, 2 * all, 10);
	model_reopen(m);
	model_shake(m, 2 * all, 80);
	model_reopen(m);
	model_judge(m, v->name, 1 + (unsigned)_i);
	model_end(m);
}
END_TEST

/* In the order of appending, then from behind until nothing is left, and again. */
START_TEST(all_and_nothing)
{
	const struct variant *v = &variants[_i];
	struct model *m = model_begin(v->name, v->node_size, v->shape);

	for (unsigned round = 0; round < 2; round++) {
		for (size_t i = 0; i < model_size(m); i++)
			ck_assert_int_eq(model_set(m, i), 0);
		model_reopen(m);
		for (size_t i = model_size(m); i-- > 0;)
			ck_assert_int_eq(model_remove(m, round ? model_size(m) - 1 - i : i), 0);
		model_reopen(m);
		ck_assert_int_eq(model_remove(m, 0), 0);
	}
	model_judge(m, v->name, 9);
	model_end(m);
}
END_TEST

struct trimmed {
	struct model *m;
	uint64_t first, count;
};

static int visit_trimmed(void *arg, const struct h5_chunk *chunk)
{
	struct trimmed *trimmed = arg;
	uint8_t bytes[4];
	size_t i = (size_t)(trimmed->first * trimmed->m->shape[1] * trimmed->m->shape[2]);
	uint64_t value;

	ck_assert_int_eq(h5_file_read(trimmed->m->t.file, chunk->address, bytes, 4), 0);
	value = h5_uint_from(bytes, 4);
	while (i < model_size(trimmed->m) && trimmed->m->values[i] != value)
		i++;
	ck_assert_uint_lt(i, model_size(trimmed->m));
	trimmed->m->values[i] = 0;
	trimmed->count++;
	h5_tx_free(trimmed->m->t.file, chunk->address, chunk->size);
	return 0;
}

static uint64_t model_trim(struct model *m, uint64_t first)
{
	struct trimmed trimmed = {m, first, 0};

	ck_assert_msg(!h5_chunk_index_trim(m->t.index, first, visit_trimmed, &trimmed), "%s",
		      h5_error_last()->text);
	for (size_t i = (size_t)(first * m->shape[1] * m->shape[2]); i < model_size(m); i++)
		ck_assert_uint_eq(m->values[i], 0);
	return trimmed.count;
}

START_TEST(trims)
{
	const struct variant *v = &variants[_i];
	struct model *m = model_begin(v->name, v->node_size, v->shape);
	unsigned all = (unsigned)model_size(m);

	ck_assert_uint_eq(model_trim(m, 0), 0);
	model_shake(m, 2 * all, 80);
	commit(&m->t);
	for (uint64_t first = v->shape[0]; first; first = first * 2 / 3) {
		model_trim(m, first);
		ck_assert_uint_eq(model_trim(m, first), 0);
		model_check(m);
		if (first % 2)
			model_reopen(m);
		model_shake(m, all / 20, 80);
	}
	model_judge(m, v->name, 20 + (unsigned)_i);
	model_end(m);

	m = model_begin(v->name, v->node_size, v->shape);
	model_shake(m, 2 * all, 95);
	ck_assert_uint_gt(model_trim(m, 0), 0);
	model_reopen(m);
	model_shake(m, all, 90);
	model_judge(m, v->name, 40 + (unsigned)_i);
	model_end(m);
}
END_TEST

/* Nodes that libhdf5 has put anywhere: some cross pages, and move when a record changes. */
START_TEST(trees_of_libhdf5)
{
	static const char *const names[] = {"filtered", "random", "random_deep"};
	struct paragraph p = find_paragraph(names[_i]);
	struct model *m = calloc(1, sizeof *m);

	ck_assert_ptr_nonnull(m);
	begin(&m->t, "btree2_write-reference.h5", p.header);
	m->node_size = 2048;
	for (unsigned d = 0; d < 3; d++)
		m->shape[d] = d < m->t.space.rank ? m->t.space.dims[d] : 1;
	ck_assert_uint_le(model_size(m), MODEL_MAX);
	for (size_t i = 0; i < model_size(m); i++)
		ck_assert_msg(!model_set(m, i), "%s", h5_error_last()->text);
	model_check(m);
	model_judge(m, p.name, 0);
	for (size_t i = 0; i < model_size(m); i += 7)
		ck_assert_int_eq(model_set(m, i), 0);
	model_shake(m, (unsigned)model_size(m), 30);
	model_check(m);
	model_judge(m, p.name, 60 + (unsigned)_i);
	model_end(m);
}
END_TEST

/* The tree's header lies across the edge of a page: it moves. */
START_TEST(a_header_that_is_no_cell)
{
	const uint64_t shape[3] = {20, 20, 1};
	struct model *m = model_begin("random", 2048, shape);
	uint8_t header[H5_BTREE2_HEADER_MAX];
	uint64_t at;

	model_shake(m, 400, 90);
	commit(&m->t);
	ck_assert_int_eq(
		h5_file_read(m->t.file, h5_chunk_index_layout(m->t.index)->address, header, sizeof header),
		0);
	ck_assert_int_eq(h5_tx_allocate(m->t.file, H5_ALLOCATE_RAW, 3 * H5_CELL, &at), 0);
	at += 2 * H5_CELL - at % H5_CELL - 20;
	ck_assert_int_eq(h5_tx_write(m->t.file, at, header, sizeof header), 0);
	m->t.layout.chunked.address = at;
	h5_chunk_index_close(m->t.index);
	open_index(&m->t);
	model_reopen(m);
	ck_assert_uint_eq(h5_chunk_index_layout(m->t.index)->address, at);
	model_shake(m, 10, 90);
	ck_assert_uint_ne(h5_chunk_index_layout(m->t.index)->address, at);
	model_reopen(m);
	model_judge(m, "random", 3);
	model_end(m);
}
END_TEST

/* ---- failures ---- */

static int ignore_chunk(void *arg, const struct h5_chunk *chunk)
{
	(void)arg;
	(void)chunk;
	return 0;
}

/* Each write of some change fails once: the tree is as it was, and takes the change then. */
START_TEST(a_failed_change_changes_nothing)
{
	const uint64_t shape[3] = {20, 20, 1};
	struct model *m = model_begin("filtered", 288, shape);
	struct fault_io fault = {.error = -EIO};
	unsigned failures = 0;

	commit(&m->t); /* the dimensions */
	close_target(&m->t);
	m->t.options.wrap = fault_io_wrap;
	m->t.options.wrap_arg = &fault;
	open_target(&m->t);
	m->t.layout.chunked.btree2.node_size = 288;
	h5_chunk_index_close(m->t.index);
	open_index(&m->t);
	for (unsigned round = 0; round < 300; round++) {
		size_t i = (size_t)choose(m, model_size(m));
		bool sets = choose(m, 100) < 70;
		int rc = -EIO;

		for (unsigned n = 1; rc; n++) {
			fault.fail = fault.calls + n;
			rc = sets ? model_set(m, i) : model_remove(m, i);
			fault.fail = 0;
			ck_assert(!rc || rc == -EIO);
			failures += rc != 0;
			if (rc && round % 10 == 0)
				model_check(m);
		}
		if (round % 50 == 0)
			model_reopen(m);
	}
	ck_assert_uint_gt(failures, 100);
	for (unsigned n = 1;; n++) {
		int rc;

		fault.fail = fault.calls + n;
		rc = h5_chunk_index_trim(m->t.index, 7, ignore_chunk, NULL);
		fault.fail = 0;
		if (!rc)
			break;
		ck_assert_int_eq(rc, -EIO);
		model_check(m);
	}
	memset(m->values + 7 * 20, 0, 13 * 20 * sizeof *m->values);
	model_reopen(m);
	model_judge(m, "filtered", 5);
	model_end(m);
	fault_io_release(&fault);
}
END_TEST

/* Reads the file, or writes it with these bytes. */
static void whole_file(const char *path, const char *mode, uint8_t *bytes, size_t *size)
{
	FILE *file = fopen(path, mode);

	ck_assert_ptr_nonnull(file);
	if (*mode == 'r')
		*size = fread(bytes, 1, *size, file);
	else
		ck_assert_uint_eq(fwrite(bytes, 1, *size, file), *size);
	ck_assert_int_eq(fclose(file), 0);
}

/* Bytes of a block that the checksum vouches for, and that are wrong; more often where its fields are. */
static void damage(struct model *m, const struct block *block, uint8_t *image)
{
	uint8_t *bytes = image + block->address;

	for (uint64_t n = 1 + choose(m, 3); n; n--) {
		size_t at = (size_t)(choose(m, 2) ? choose(m, block->size - 4)
						  : block->size - 5 - choose(m, block->size / 3));

		bytes[at] = (uint8_t)(choose(m, 2) ? choose(m, 256) : bytes[at] + choose(m, 3) - 1);
	}
	h5_uint_to(bytes + block->size - 4, h5_lookup3(bytes, block->size - 4, 0), 4);
}

/* Whatever the result: no memory is hurt, and no walk is endless. */
START_TEST(damaged_trees)
{
	enum { SIZE = 1 << 20, BLOCKS = 1000 };
	const uint64_t shape[3] = {40, 40, 1};
	struct model *m = model_begin("random", 512, shape);
	uint8_t *image = malloc(SIZE), *changed = malloc(SIZE);
	struct tree tree = {.target = &m->t, .blocks = calloc(BLOCKS, sizeof *tree.blocks)};
	unsigned refused = 0;
	size_t size = SIZE;

	model_shake(m, 1600, 95);
	commit(&m->t);
	check_all(&tree);
	ck_assert_uint_ge(tree.header.depth, 2);
	ck_assert_uint_le(tree.block_count, BLOCKS);
	close_target(&m->t);
	whole_file(m->t.path, "r", image, &size);
	ck_assert_uint_lt(size, SIZE);
	for (unsigned round = 0; round < 400; round++) {
		/* The header, the root, and the others. */
		size_t i = (size_t)(choose(m, 2) ? choose(m, 2) : choose(m, tree.block_count));

		memcpy(changed, image, size);
		damage(m, &tree.blocks[i], changed);
		whole_file(m->t.path, "w", changed, &size);
		ck_assert_int_eq(h5_file_set_open(m->t.path, &m->t.options, &m->t.set), 0);
		m->t.file = h5_file_set_root(m->t.set);
		read_header(&m->t);
		if (h5_chunk_index_open(m->t.file, m->t.layout.version, &m->t.layout.chunked, &m->t.space,
					m->t.filtered, 4, &m->t.index)) {
			m->t.index = NULL;
			refused++;
		}
		for (unsigned n = 0; m->t.index && n < 40; n++) {
			uint64_t scaled[H5_RANK_MAX];

			model_scaled(m, (size_t)choose(m, model_size(m)), scaled);
			refused += (n % 2 ? set_chunk(&m->t, scaled, n) : remove_chunk(&m->t, scaled)) != 0;
		}
		if (m->t.index)
			refused += h5_chunk_index_trim(m->t.index, choose(m, 40), ignore_chunk, NULL) != 0;
		close_target(&m->t);
	}
	ck_assert_uint_gt(refused, 400);
	free(tree.blocks);
	free(image);
	free(changed);
	open_target(&m->t);
	model_end(m);
}
END_TEST

/* Parameters that make no tree that can be changed. */
START_TEST(impossible_trees)
{
	static const struct {
		uint32_t node_size;
		uint8_t split_percent, merge_percent;
	} bad[] = {{0, 100, 40},  {10, 100, 40}, {80, 100, 40},	  {UINT32_MAX, 100, 40}, {2048, 103, 40},
		   {2048, 0, 40}, {2048, 1, 0},	 {2048, 100, 50}, {2048, 100, 0},	 {2048, 100, 90}};
	const uint64_t shape[3] = {20, 20, 1}, scaled[2] = {1, 1};
	struct model *m = model_begin("random", 2048, shape);

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int rc;

		m->t.layout.chunked.btree2.node_size = bad[i].node_size;
		m->t.layout.chunked.btree2.split_percent = bad[i].split_percent;
		m->t.layout.chunked.btree2.merge_percent = bad[i].merge_percent;
		h5_chunk_index_close(m->t.index);
		open_index(&m->t);
		rc = set_chunk(&m->t, scaled, 1);
		ck_assert_msg(rc == -ENOTSUP || rc == -EUCLEAN, "%zu: %d", i, rc);
		ck_assert(h5_chunk_index_layout(m->t.index)->address == H5_UNDEF);
	}
	model_check(m);
	model_end(m);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("btree2_write");
	TCase *all = tcase_create("btree2_write");
	SRunner *runner;
	int failed;

	tcase_set_timeout(all, 300);
	tcase_add_test(all, trees_have_the_shape_of_libhdf5s);
	tcase_add_loop_test(all, random_changes, 0, VARIANTS);
	tcase_add_loop_test(all, all_and_nothing, 0, VARIANTS);
	tcase_add_loop_test(all, trims, 0, VARIANTS);
	tcase_add_loop_test(all, trees_of_libhdf5, 0, 3);
	tcase_add_test(all, a_header_that_is_no_cell);
	tcase_add_test(all, a_failed_change_changes_nothing);
	tcase_add_test(all, damaged_trees);
	tcase_add_test(all, impossible_trees);
	suite_add_tcase(suite, all);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
