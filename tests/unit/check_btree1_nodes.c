/* The nodes of a version 1 B-tree of chunks after each change: their keys and siblings, which libhdf5 uses
 * when it changes the tree; and which nodes may change where they are. */
#include "index_target.h"
#include "store/btree1.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 90, NODES = 500, ALONG = 6 /* chunks of a row */, LEVELS = 8 };

struct seen {
	uint64_t address;
	unsigned level, count;
};

struct scene {
	struct target t;
	uint64_t where[CHUNKS]; /* the address of each chunk; H5_UNDEF: not stored */
	struct seen nodes[NODES];
	size_t count;
	uint64_t end[H5_RANK_MAX + 1];	      /* the last key of all */
	uint64_t last[LEVELS], right[LEVELS]; /* of the last node seen of a level: its address, its sibling */
	uint32_t random;
};

static uint32_t draw(struct scene *s, uint32_t below)
{
	s->random = s->random * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)s->random * below >> 32);
}

static void to_scaled(const struct scene *s, uint64_t n, uint64_t scaled[H5_RANK_MAX])
{
	memset(scaled, 0, H5_RANK_MAX * sizeof *scaled);
	scaled[0] = s->t.space.rank == 1 ? n : n / ALONG;
	if (s->t.space.rank > 1)
		scaled[1] = n % ALONG;
}

/* ---- what is in the file ---- */

static bool is_same(const struct scene *s, const struct h5_btree1_key *a, const struct h5_btree1_key *b)
{
	return !memcmp(a->offsets, b->offsets, (s->t.space.rank + 1) * sizeof *a->offsets);
}

static bool is_before(const struct scene *s, const struct h5_btree1_key *a, const struct h5_btree1_key *b)
{
	for (unsigned i = 0; i <= s->t.space.rank; i++)
		if (a->offsets[i] != b->offsets[i])
			return a->offsets[i] < b->offsets[i];
	return false;
}

/* The node, and all below it, from left to right. `low`, `high`: keys of the parent; NULL: the root. */
static void look(struct scene *s, uint64_t address, int level, const struct h5_btree1_key *low,
		 const struct h5_btree1_key *high)
{
	const struct h5_btree1_node *node;
	struct h5_lru_entry *ref;

	SUCCEEDS(
		h5_btree1_node_get(s->t.file, address, H5_BTREE1_CHUNK, s->t.space.rank, level, &ref, &node));
	ck_assert_uint_lt(s->count, NODES);
	ck_assert_uint_lt(node->level, LEVELS);
	s->nodes[s->count++] = (struct seen){address, node->level, node->count};
	ck_assert(node->count || level < 0);
	if (level < 0)
		memcpy(s->end, node->keys[node->count].offsets, (s->t.space.rank + 1) * sizeof *s->end);
	ck_assert(!low || is_same(s, low, &node->keys[0]));
	ck_assert(!high || is_same(s, high, &node->keys[node->count]));
	for (unsigned i = 0; i < node->count; i++)
		ck_assert(is_before(s, &node->keys[i], &node->keys[i + 1]));
	ck_assert_uint_eq(node->left, s->last[node->level]);
	ck_assert(node->left == H5_UNDEF || s->right[node->level] == address);
	s->last[node->level] = address;
	s->right[node->level] = node->right;
	for (unsigned i = 0; i < node->count && node->level; i++)
		look(s, node->children[i], node->level - 1, &node->keys[i], &node->keys[i + 1]);
	h5_file_put(s->t.file, ref);
}

static void look_at_all(struct scene *s)
{
	uint64_t stored = 0;

	s->count = 0;
	memset(s->last, 0xff, sizeof s->last);
	memset(s->right, 0xff, sizeof s->right);
	look(s, h5_chunk_index_layout(s->t.index)->address, -1, NULL, NULL);
	for (unsigned i = 0; i < LEVELS; i++)
		ck_assert_uint_eq(s->right[i], H5_UNDEF);
	for (uint64_t n = 0; n < CHUNKS; n++) {
		uint64_t scaled[H5_RANK_MAX];
		struct h5_chunk chunk;

		to_scaled(s, n, scaled);
		SUCCEEDS(h5_chunk_index_lookup(s->t.index, NULL, scaled, &chunk));
		ck_assert_uint_eq(chunk.address, s->where[n]);
		stored += chunk.address != H5_UNDEF;
	}
	ck_assert_uint_eq(target_count(&s->t), stored);
}

/* ---- changes ---- */

static void begin(struct scene *s, const char *name)
{
	memset(s, 0, sizeof *s);
	target_init(&s->t, "btree1_write-2.h5", name, NULL);
	memset(s->where, 0xff, sizeof s->where);
	s->random = (uint32_t)name[0];
}

static void set(struct scene *s, uint64_t n, uint64_t address)
{
	const struct h5_chunk chunk = {.address = address, .size = 4};
	uint64_t scaled[H5_RANK_MAX];

	to_scaled(s, n, scaled);
	SUCCEEDS(h5_chunk_index_set(s->t.index, scaled, &chunk));
	s->where[n] = address;
}

static void trim(struct scene *s, uint64_t row)
{
	uint64_t removed = 0, there = 0;
	const uint64_t first = s->t.space.rank == 1 ? row : row * ALONG;

	for (uint64_t n = first; n < CHUNKS; n++) {
		there += s->where[n] != H5_UNDEF;
		s->where[n] = H5_UNDEF;
	}
	SUCCEEDS(h5_chunk_index_trim(s->t.index, row, target_count_chunk, &removed));
	ck_assert_uint_eq(removed, there);
}

/* A chunk comes or goes, or the last rows do. Most come in the first half, and go in the second. */
static void change(struct scene *s, unsigned i, unsigned changes)
{
	const uint64_t n = draw(s, CHUNKS);
	const bool comes = draw(s, 8) < (i < changes / 2 ? 6u : 2u);

	if (!draw(s, 40))
		trim(s, draw(s, s->t.space.rank == 1 ? CHUNKS : CHUNKS / ALONG));
	else if (comes || s->where[n] != H5_UNDEF)
		set(s, n, comes ? 1000 + 8 * (uint64_t)draw(s, 1000) : H5_UNDEF);
}

START_TEST(keys_and_siblings_agree)
{
	static const char *const names[] = {"1", "2"};
	const bool commits = _i / 2;
	enum { CHANGES = 600 };
	struct scene *s = malloc(sizeof *s);
	size_t most = 0;

	ck_assert_ptr_nonnull(s);
	begin(s, names[_i % 2]);
	set(s, CHUNKS / 2, 800);
	for (unsigned i = 0; i < CHANGES; i++) {
		change(s, i, CHANGES);
		if (commits && draw(s, 2))
			SUCCEEDS(target_commit(&s->t));
		look_at_all(s);
		most = s->count > most ? s->count : most;
	}
	ck_assert_uint_gt(most, 20);
	target_release(&s->t);
	free(s);
}
END_TEST

/* Chunks come in the middle, at the beginning and at the end. No node of the last commit that stays where it
 * is has fewer entries: so any mixture of old and new nodes leads to all chunks. */
START_TEST(a_node_that_splits_moves)
{
	struct scene *s = malloc(sizeof *s);
	struct seen before[NODES];
	size_t count, moved = 0;

	ck_assert_ptr_nonnull(s);
	begin(s, "1");
	for (unsigned i = 0; i < CHUNKS; i++) {
		const uint64_t n = (uint64_t)(_i == 0 ? i : _i == 1 ? CHUNKS - 1 - i : i * 37 % CHUNKS);

		memcpy(before, s->nodes, sizeof before);
		count = s->count;
		set(s, n, 1000 + 8 * n);
		look_at_all(s);
		/* The last key of all is behind the last chunk, inside the element behind it: so it stays
		 * when the next chunk comes, and moves on with the one after that. */
		if (_i < 2)
			ck_assert_uint_eq(s->end[0], _i ? CHUNKS : n | 1);
		ck_assert_uint_eq(s->end[1], 4); /* bytes of an element */
		for (size_t a = 0; a < count; a++) {
			bool stays = false;

			for (size_t b = 0; b < s->count; b++) {
				if (s->nodes[b].address != before[a].address)
					continue;
				stays = true;
				if (s->nodes[b].level == before[a].level)
					ck_assert_uint_ge(s->nodes[b].count, before[a].count);
				else
					ck_assert_uint_eq(s->nodes[b].level, before[a].level + 1);
			}
			moved += !stays;
		}
		SUCCEEDS(target_commit(&s->t));
	}
	ck_assert_uint_gt(moved, 10);
	target_release(&s->t);
	free(s);
}
END_TEST

/* Moves a node to where it crosses a page, as libhdf5 may put one. */
static uint64_t put_across_pages(struct scene *s, uint64_t address)
{
	enum { PAGE = 4096, MOST = 2048 };
	uint8_t bytes[MOST], old[8], new[8];
	unsigned k, changed = 0;
	uint64_t at;
	size_t room;

	SUCCEEDS(h5_btree1_node_k(s->t.file, H5_BTREE1_CHUNK, &k));
	room = h5_btree1_node_room(H5_BTREE1_CHUNK, s->t.space.rank, k, 8, 8);
	ck_assert_uint_le(room, MOST);
	SUCCEEDS(h5_file_read(s->t.file, address, bytes, room));
	SUCCEEDS(h5_tx_allocate(s->t.file, H5_ALLOCATE_RAW, 3 * PAGE, &at));
	at = at / PAGE * PAGE + 2 * PAGE - room / 2;
	SUCCEEDS(h5_tx_write(s->t.file, at, bytes, room));
	h5_uint_to(old, address, 8);
	h5_uint_to(new, at, 8);
	/* Its parent leads to it, and its siblings. */
	for (size_t i = 0; i < s->count; i++) {
		uint8_t *found;

		if (s->nodes[i].address == address)
			continue;
		SUCCEEDS(h5_file_read(s->t.file, s->nodes[i].address, bytes, room));
		found = memmem(bytes, room, old, 8);
		if (!found)
			continue;
		memcpy(found, new, 8);
		SUCCEEDS(h5_tx_patch(s->t.file, s->nodes[i].address, bytes, room, H5_STAGE_BLOCK));
		changed++;
	}
	ck_assert_uint_eq(changed, 3);
	return at;
}

/* A chunk is replaced, so that the leaf moves which has it, and nothing else of the tree changes but what
 * leads to the leaf. */
START_TEST(a_leaf_across_a_page_moves)
{
	enum { MANY = 40 };
	struct scene *s = malloc(sizeof *s);
	uint64_t leaf = 0;

	ck_assert_ptr_nonnull(s);
	begin(s, "1");
	for (uint64_t n = 0; n < MANY; n++)
		set(s, n, 1000 + 8 * n);
	SUCCEEDS(target_commit(&s->t));
	look_at_all(s);
	for (size_t i = 0; i < s->count / 2; i++)
		if (!s->nodes[i].level)
			leaf = i;
	leaf = put_across_pages(s, s->nodes[leaf].address);
	SUCCEEDS(target_commit(&s->t));
	look_at_all(s);
	for (uint64_t n = 0; n < MANY; n++) {
		set(s, n, 2000 + 8 * n);
		look_at_all(s);
	}
	for (size_t i = 0; i < s->count; i++)
		ck_assert_uint_ne(s->nodes[i].address, leaf);
	SUCCEEDS(target_commit(&s->t));
	target_close(&s->t);
	target_open(&s->t);
	look_at_all(s);
	target_release(&s->t);
	free(s);
}
END_TEST

/* The tree becomes an empty leaf when the last chunk goes, from whichever side, and grows again. */
START_TEST(all_chunks_go)
{
	enum { MANY = 40 };
	struct scene *s = malloc(sizeof *s);

	ck_assert_ptr_nonnull(s);
	begin(s, "1");
	for (unsigned again = 0; again < 3; again++) {
		for (uint64_t n = 0; n < MANY; n++)
			set(s, n, 1000 + 8 * n);
		SUCCEEDS(target_commit(&s->t));
		look_at_all(s);
		ck_assert_uint_gt(s->nodes[0].level, 1);
		if (_i == 3)
			trim(s, 0);
		for (uint64_t i = 0; i < MANY && _i < 3; i++) {
			set(s, _i == 0 ? i : _i == 1 ? MANY - 1 - i : i * 17 % MANY, H5_UNDEF);
			look_at_all(s);
		}
		look_at_all(s);
		ck_assert_uint_eq(s->count, 1);
		ck_assert_uint_eq(s->nodes[0].level, 0);
		ck_assert_uint_eq(s->nodes[0].count, 0);
		SUCCEEDS(target_commit(&s->t));
	}
	target_release(&s->t);
	free(s);
}
END_TEST

/* All children of a node are the same node, so that a walk would go on for very long. It ends when it has
 * come to more bytes than the file has. */
START_TEST(a_walk_has_an_end)
{
	enum { DEEP = 10, FULL = 4, ROOM = 512, KEY = 8 + 8 * 3 /* bytes */ };
	uint64_t child = 1000, offsets[FULL + 1][H5_RANK_MAX + 1] = {{0}}, children[FULL], visited = 0,
		 leaves;
	struct h5_btree1_key keys[FULL + 1];
	const struct h5_superblock *sb;
	struct target t;
	unsigned k;

	target_init(&t, "btree1_write-2.h5", "2", NULL);
	sb = h5_file_superblock(t.file);
	ck_assert_uint_eq(t.space.rank, 2);
	SUCCEEDS(h5_btree1_node_k(t.file, H5_BTREE1_CHUNK, &k));
	ck_assert_uint_le(FULL, 2 * k);
	for (unsigned i = 0; i <= FULL; i++) {
		offsets[i][0] = i * t.layout.chunked.dims[0];
		keys[i] = (struct h5_btree1_key){.size = 4, .offsets = offsets[i]};
	}
	for (unsigned level = 0; level < DEEP; level++) {
		const struct h5_btree1_node node = {.type = H5_BTREE1_CHUNK,
						    .level = (uint8_t)level,
						    .count = FULL,
						    .left = H5_UNDEF,
						    .right = H5_UNDEF,
						    .children = children,
						    .keys = keys};
		uint8_t bytes[ROOM];
		struct h5_writer w =
			h5_writer_init(bytes, sizeof bytes, sb->size_of_offsets, sb->size_of_lengths);

		for (unsigned i = 0; i < FULL; i++)
			children[i] = child;
		SUCCEEDS(h5_btree1_node_encode(&w, &node, t.space.rank));
		SUCCEEDS(h5_tx_allocate(t.file, H5_ALLOCATE_METADATA, sizeof bytes, &child));
		SUCCEEDS(h5_tx_put(t.file, child, bytes, sizeof bytes));
	}
	t.layout.chunked.address = child;
	SUCCEEDS(target_open_index(&t));
	ck_assert_int_eq(h5_chunk_index_walk(t.index, target_count_chunk, &visited), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "chunk index: more blocks than the file can hold");
	leaves = visited / FULL;
	ck_assert_uint_le(leaves * (FULL + 1) * KEY, h5_file_size(t.file));
	ck_assert_uint_ge(leaves * (FULL + 1) * KEY, h5_file_size(t.file) / 2);
	target_release(&t);
}
END_TEST

UNIT_MAIN_LOOPS("btree1_nodes", {keys_and_siblings_agree, 4}, {a_node_that_splits_moves, 3},
		{a_leaf_across_a_page_moves, 1}, {all_chunks_go, 4}, {a_walk_has_an_end, 1})
