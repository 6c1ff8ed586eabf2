/* Messages of object headers, inserted, removed and resized: attributes, since libhdf5 can tell which of them
 * are there. It judges in tests/judge/header_insert_judge.py. */
#include "base/error.h"
#include "change/object_header_edit.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "crash_image.h"
#include "fault_alloc.h"
#include "format/named_message.h"
#include "object/path.h"
#include "scratch.h"

#include <stdio.h>
#include <string.h>

enum { ROUNDS = 3, OPERATIONS = 7, ATTRIBUTES_MAX = 64, BODY_MAX = 65536, NAME_SIZE = 8 };

/* ---- the model: the attributes that were added to a dataset ---- */

/* Named by its number, with so many bytes, of which byte k is number + k * step. */
struct attribute {
	unsigned number, size, step;
};

struct model {
	char name[16]; /* of the dataset */
	uint64_t address;
	struct attribute attributes[ATTRIBUTES_MAX];
	unsigned count;
};

struct scene {
	struct scratch s;
	struct fault_io fault;
	struct model *models;
	size_t count;
	unsigned random, next; /* number of the next attribute */
};

static unsigned draw(struct scene *scene, unsigned n)
{
	scene->random = scene->random * 1103515245 + 12345;
	return (scene->random >> 16) % n;
}

static void find_datasets(struct scene *scene)
{
	const struct h5_superblock *sb = h5_file_superblock(scene->s.file);
	struct h5_file *file;

	scene->models = calloc(200, sizeof *scene->models);
	scene->count = 0;
	for (const char *kind = "abcd"; *kind; kind++)
		for (unsigned i = 0;; i++) {
			struct model *m = &scene->models[scene->count];

			snprintf(m->name, sizeof m->name, "%c%03u", *kind, i);
			if (h5_path_find(scene->s.file, sb->root, m->name, strlen(m->name), &file,
					 &m->address))
				break;
			scene->count++;
		}
	ck_assert_uint_gt(scene->count, 100);
}

static void begin(struct scene *scene, const char *name)
{
	char fixture[64];

	*scene = (struct scene){.fault.record = true, .random = 1};
	snprintf(fixture, sizeof fixture, "%s.h5", name);
	scratch_init(&scene->s, fixture);
	scratch_wrap(&scene->s, &scene->fault);
	scratch_open(&scene->s);
	ck_assert(h5_tx_is_writable(scene->s.file));
	find_datasets(scene);
}

static void end(struct scene *scene)
{
	scratch_release(&scene->s);
	fault_io_release(&scene->fault);
	free(scene->models);
}

/* ---- attribute messages ---- */

/* Of version 3: bytes, one dimension. */
static size_t encode(const struct attribute *a, uint8_t *body)
{
	static const uint8_t type[] = {0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0};
	static const uint8_t space[] = {2, 1, 0, 1};
	struct h5_writer w = h5_writer_init(body, BODY_MAX, 8, 8);
	char name[NAME_SIZE];

	snprintf(name, sizeof name, "x%06u", a->number);
	h5_write_u8(&w, 3);
	h5_write_u8(&w, 0);
	h5_write_u16(&w, NAME_SIZE);
	h5_write_u16(&w, sizeof type);
	h5_write_u16(&w, sizeof space + 8);
	h5_write_u8(&w, 0);
	h5_write_bytes(&w, name, NAME_SIZE);
	h5_write_bytes(&w, type, sizeof type);
	h5_write_bytes(&w, space, sizeof space);
	h5_write_u64(&w, a->size);
	for (unsigned k = 0; k < a->size; k++)
		h5_write_u8(&w, (uint8_t)(a->number + k * a->step));
	if (w.err)
		abort(); /* no ck_assert(), which allocates memory, and that may be about to fail */
	return h5_writer_at(&w);
}

/* The message of an attribute in a loaded header; NULL: there is none. */
static const struct h5_message *find(const struct h5_header *h, unsigned number)
{
	char name[NAME_SIZE];

	snprintf(name, sizeof name, "x%06u", number);
	for (unsigned i = 0; i < h->count; i++) {
		const struct h5_message *m = &h->messages[i];

		if (m->type == H5_MSG_ATTRIBUTE && m->size > 9 + NAME_SIZE && m->data[0] == 3 &&
		    !memcmp(m->data + 9, name, NAME_SIZE))
			return m;
	}
	return NULL;
}

/* The number in the attribute info message, which becomes one more. */
struct counter {
	uint16_t order;
};

static int count_order(const void *arg, uint8_t *body, size_t n)
{
	struct counter *counter = (struct counter *)(uintptr_t)arg;

	if (n < 4 || !(body[1] & 1))
		return 0;
	counter->order = (uint16_t)h5_uint_from(body + 2, 2);
	h5_uint_to(body + 2, counter->order + 1u, 2);
	return 0;
}

/* A version 2 header with attributes tells how they are stored. */
static int describe(struct scratch *s, uint64_t address, const struct h5_header *h, struct counter *counter)
{
	uint8_t body[H5_NAMED_INFO_MAX];
	struct h5_writer w = h5_writer_init(body, sizeof body, 8, 8);
	struct h5_named_info info = {.tracks_order = h->prefix.flags & H5_HEADER_ORDER_TRACKED,
				     .indexes_order = h->prefix.flags & H5_HEADER_ORDER_INDEXED,
				     .heap = H5_UNDEF,
				     .name_index = H5_UNDEF,
				     .order_index = H5_UNDEF};
	struct h5_new_message m = {.type = H5_MSG_ATTRIBUTE_INFO, .body = body};
	int rc = 0;

	if (h->prefix.version == 1)
		return 0;
	h5_attribute_info_encode(&w, &info);
	m.size = h5_writer_at(&w);
	if (!h5_header_find(h, H5_MSG_ATTRIBUTE_INFO))
		rc = h5_header_insert(s->file, address, &m);
	return rc ? rc : h5_header_update(s->file, address, H5_MSG_ATTRIBUTE_INFO, count_order, counter);
}

enum kind { INSERT, REMOVE, SET };

static int insert(struct scratch *s, uint64_t address, const struct h5_header *h,
		  struct h5_new_message *message)
{
	struct counter counter = {0};
	int rc = h5_unit_begin(s->file);

	if (rc)
		return rc;
	rc = describe(s, address, h, &counter);
	message->has_order = true;
	message->order = counter.order;
	if (!rc)
		rc = h5_header_insert(s->file, address, message);
	return h5_unit_end(s->file, rc);
}

/* Libhdf5 2.2 aborts if there is an attribute info message but no attribute, so that goes with the last one.
 */
static int remove_attribute(struct scratch *s, uint64_t address, const struct h5_header *h, unsigned number)
{
	const struct h5_message *info = h5_header_find(h, H5_MSG_ATTRIBUTE_INFO);
	unsigned attributes = 0;
	struct h5_header now;
	int rc;

	for (unsigned i = 0; i < h->count; i++)
		attributes += h->messages[i].type == H5_MSG_ATTRIBUTE;
	rc = h5_unit_begin(s->file);
	if (rc)
		return rc;
	rc = h5_header_remove(s->file, address, find(h, number));
	if (!rc && info && attributes == 1) {
		rc = h5_header_load(s->file, address, &now);
		if (!rc) {
			rc = h5_header_remove(s->file, address, h5_header_find(&now, H5_MSG_ATTRIBUTE_INFO));
			h5_header_release(&now);
		}
	}
	return h5_unit_end(s->file, rc);
}

static int apply(struct scratch *s, const struct model *model, enum kind kind, const struct attribute *a)
{
	static uint8_t body[BODY_MAX];
	struct h5_new_message message = {.type = H5_MSG_ATTRIBUTE, .body = body, .size = encode(a, body)};
	struct h5_header h;
	int rc = h5_header_load(s->file, model->address, &h);

	if (rc)
		return rc;
	switch (kind) {
	case INSERT:
		rc = insert(s, model->address, &h, &message);
		break;
	case REMOVE:
		rc = remove_attribute(s, model->address, &h, a->number);
		break;
	case SET:
		rc = h5_header_set(s->file, model->address, find(&h, a->number), &message);
	}
	h5_header_release(&h);
	return rc;
}

/* ---- random changes ---- */

static unsigned draw_size(struct scene *scene)
{
	switch (draw(scene, 40)) {
	case 0:
		return 20000 + draw(scene, 45000);
	case 1:
	case 2:
		return 2000 + draw(scene, 5000);
	default:
		return draw(scene, 300);
	}
}

/* A change that can be made to the model; *i: of which attribute. */
static enum kind draw_change(struct scene *scene, const struct model *model, unsigned *i,
			     struct attribute *attribute)
{
	enum kind kind = (enum kind[]){INSERT, INSERT, INSERT, REMOVE, REMOVE, SET}[draw(scene, 6)];

	if (!model->count)
		kind = INSERT;
	if (model->count == ATTRIBUTES_MAX)
		kind = REMOVE;
	*i = kind == INSERT ? model->count : draw(scene, model->count);
	*attribute = model->attributes[*i];
	if (kind == INSERT)
		attribute->number = scene->next++;
	if (kind != REMOVE) {
		attribute->size = draw_size(scene);
		attribute->step = draw(scene, 256);
	}
	return kind;
}

static void update_model(struct model *model, enum kind kind, unsigned i, const struct attribute *attribute)
{
	if (kind == REMOVE)
		model->attributes[i] = model->attributes[--model->count];
	else
		model->attributes[i] = *attribute;
	if (kind == INSERT)
		model->count++;
}

/* All versions of libhdf5 accept the header, and it has the attributes of the model and no others. */
static void check(struct scratch *s, const struct model *model)
{
	uint8_t *body = malloc(BODY_MAX);
	struct h5_header h;
	unsigned count = 0;

	SUCCEEDS(h5_header_load(s->file, model->address, &h));
	SUCCEEDS(h5_header_check(s->file, &h));
	for (unsigned i = 0; i < h.count; i++)
		count += h.messages[i].type == H5_MSG_ATTRIBUTE && h.messages[i].size > 16 &&
			 h.messages[i].data[0] == 3 && h.messages[i].data[9] == 'x';
	ck_assert_uint_eq(count, model->count);
	for (unsigned i = 0; i < model->count; i++) {
		const struct h5_message *m = find(&h, model->attributes[i].number);
		size_t n = encode(&model->attributes[i], body);

		if (!m || m->size < n || memcmp(m->data, body, n))
			ck_abort_msg("%s: attribute %u", model->name, model->attributes[i].number);
	}
	h5_header_release(&h);
	free(body);
}

static void change(struct scene *scene, struct model *model)
{
	struct attribute attribute;
	unsigned i;
	enum kind kind = draw_change(scene, model, &i, &attribute);

	SUCCEEDS(apply(&scene->s, model, kind, &attribute));
	update_model(model, kind, i, &attribute);
	check(&scene->s, model);
}

/* Writes that are no cells, in one commit: of those behind the journal's record. */
static unsigned commit(struct scene *scene)
{
	size_t begin = scene->fault.count;
	unsigned torn = 0;

	SUCCEEDS(h5_tx_commit(scene->s.file));
	for (size_t i = begin; i < scene->fault.count; i++) {
		const struct fault_event *e = &scene->fault.events[i];

		if (e->file)
			torn = 0;
		torn += e->kind == FAULT_WRITE && !e->file &&
			e->offset / H5_CELL != (e->offset + e->size - 1) / H5_CELL;
	}
	return torn;
}

/* Tells the judge what is expected. */
static void save_models(const struct scene *scene)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/model", scratch_folder());
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	for (size_t i = 0; i < scene->count; i++)
		for (unsigned k = 0; k < scene->models[i].count; k++) {
			const struct attribute *a = &scene->models[i].attributes[k];

			fprintf(f, "%s x%06u %u %u %u\n", scene->models[i].name, a->number, a->size,
				a->number, a->step);
		}
	fclose(f);
}

static void judge(struct scene *scene)
{
	save_models(scene);
	scratch_close(&scene->s);
	scratch_judge_python("tests/judge/header_insert_judge.py %s %s %s/model", scene->s.original,
			     scene->s.path, scratch_folder());
}

START_TEST(random_changes)
{
	static const char *const names[] = {"header_edit_v1", "header_edit_v2", "header_edit_block"};
	struct scene scene;
	unsigned torn = 0;

	begin(&scene, names[_i]);
	for (int round = 1; round <= ROUNDS; round++) {
		for (size_t i = 0; i < scene.count; i++)
			for (unsigned k = 0; k < OPERATIONS; k++)
				change(&scene, &scene.models[i]);
		torn += commit(&scene);
	}
	/* A version 2 header across the edge of a page has one such write, in the first round mostly. */
	ck_assert_msg(_i ? torn < scene.count / 5 : !torn, "%u writes are no cells", torn);
	judge(&scene);
	end(&scene);
}
END_TEST

/* A header that grows step by step has few continuation blocks, and the space of what went is used again. */
START_TEST(blocks_are_few)
{
	struct scene scene;
	struct h5_header h;
	struct model *m;
	uint64_t before;

	begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	m = &scene.models[scene.count - 1];
	SUCCEEDS(h5_header_load(scene.s.file, m->address, &h));
	before = h.chunk_count;
	h5_header_release(&h);
	for (unsigned i = 0; i < 20 * ATTRIBUTES_MAX; i++) {
		struct attribute a = {.number = i % ATTRIBUTES_MAX, .size = 20 + i % ATTRIBUTES_MAX};

		if (i >= ATTRIBUTES_MAX) {
			SUCCEEDS(apply(&scene.s, m, REMOVE, &a));
			update_model(m, REMOVE, 0, NULL);
			m->attributes[0] = m->attributes[m->count];
		}
		SUCCEEDS(apply(&scene.s, m, INSERT, &a));
		if (i < ATTRIBUTES_MAX)
			m->attributes[i] = a;
		m->count++;
	}
	check(&scene.s, m);
	SUCCEEDS(h5_header_load(scene.s.file, m->address, &h));
	ck_assert_msg(h.chunk_count <= before + 6, "%u blocks", h.chunk_count);
	h5_header_release(&h);
	end(&scene);
}
END_TEST

/* NIL messages side by side never have more bytes than one may have. */
START_TEST(large_messages)
{
	struct scene scene;

	begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	for (size_t i = 0; i < scene.count; i += 7) {
		struct model *m = &scene.models[i];

		for (unsigned k = 0; k < 5; k++) {
			struct attribute a = {.number = k, .size = 40000 + 5000 * k, .step = k};

			SUCCEEDS(apply(&scene.s, m, INSERT, &a));
			update_model(m, INSERT, m->count, &a);
		}
		for (unsigned k = 0; k < 8; k++) {
			struct attribute *a = &m->attributes[draw(&scene, m->count)];

			a->size = k % 2 ? 30000 + draw(&scene, 35000) : draw(&scene, 100);
			SUCCEEDS(apply(&scene.s, m, SET, a));
			check(&scene.s, m);
			if (k % 4 == 3) {
				SUCCEEDS(apply(&scene.s, m, REMOVE, a));
				update_model(m, REMOVE, (unsigned)(a - m->attributes), NULL);
				check(&scene.s, m);
			}
		}
	}
	commit(&scene);
	judge(&scene);
	end(&scene);
}
END_TEST

/* ---- failures ---- */

/* Makes each allocation of a change fail once, and takes the change back if it succeeds all the same. Returns
 * how many changes failed. */
static unsigned fail_allocations(struct scratch *s, const struct model *model, enum kind kind,
				 const struct attribute *a)
{
	unsigned failed = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		int rc;

		SUCCEEDS(h5_unit_begin(s->file));
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = apply(s, model, kind, a);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_int_eq(h5_unit_end(s->file, rc ? rc : -ECANCELED), rc ? rc : -ECANCELED);
		ck_assert(!rc || (fired && rc == -ENOMEM));
		failed += rc != 0;
		check(s, model);
	}
	return failed;
}

/* Then the header is as before, and the same change works later. */
START_TEST(every_allocation_can_fail)
{
	struct scene scene;
	unsigned failed = 0;

	begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	for (size_t i = 0; i < scene.count; i += 11) {
		struct model *m = &scene.models[i];

		for (unsigned k = 0; k < 6; k++) {
			struct attribute a;
			unsigned which;
			enum kind kind = draw_change(&scene, m, &which, &a);

			failed += fail_allocations(&scene.s, m, kind, &a);
			SUCCEEDS(apply(&scene.s, m, kind, &a));
			update_model(m, kind, which, &a);
			check(&scene.s, m);
		}
	}
	ck_assert_uint_gt(failed, 500);
	commit(&scene);
	judge(&scene);
	end(&scene);
}
END_TEST

/* A commit that fails leaves each header as before or as after, with the help of the journal. */
START_TEST(every_call_of_a_commit_can_fail)
{
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct attribute a = {.number = 1, .size = 50};
		struct scene scene;
		struct h5_header h;
		int rc;

		begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
		scene.fault.error = -EIO;
		for (size_t i = 0; i < 10; i++) {
			SUCCEEDS(apply(&scene.s, &scene.models[i], INSERT, &a));
			update_model(&scene.models[i], INSERT, 0, &a);
		}
		fault_io_arm(&scene.fault, n);
		rc = h5_tx_commit(scene.s.file);
		fired = fault_io_disarm(&scene.fault);
		ck_assert(fired == (rc != 0));
		if (rc && h5_tx_is_writable(scene.s.file))
			SUCCEEDS(h5_tx_commit(scene.s.file));
		scratch_close(&scene.s);
		scratch_wrap(&scene.s, NULL);
		scratch_open(&scene.s);
		for (size_t i = 0; i < 10; i++) {
			SUCCEEDS(h5_header_load(scene.s.file, scene.models[i].address, &h));
			scene.models[i].count = find(&h, 1) ? 1 : 0;
			h5_header_release(&h);
			ck_assert(rc || scene.models[i].count);
			check(&scene.s, &scene.models[i]);
		}
		end(&scene);
	}
}
END_TEST

static void save_state(const struct crash_image *image, unsigned commit, unsigned number)
{
	char path[128];

	snprintf(path, sizeof path, "%s/state-%u-%03u.h5", scratch_folder(), commit, number);
	crash_image_save(image, path);
}

/* Between any two cells of a commit libhdf5 finds the attributes of each dataset as before or as after. */
START_TEST(killed_between_cells)
{
	enum { COMMITS = 5, DATASETS = 8 };
	struct crash_image image = {0};
	unsigned states = 0;
	struct scene scene;

	begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	for (unsigned c = 0; c < COMMITS; c++) {
		fault_io_release(&scene.fault);
		scene.fault.record = true;
		crash_image_load(&image, scene.s.path);
		for (unsigned k = 0; k < DATASETS; k++)
			change(&scene, &scene.models[k * 13 % scene.count]);
		commit(&scene);
		for (size_t i = 0; i < scene.fault.count; i++) {
			const struct fault_event *e = &scene.fault.events[i];

			if (e->file)
				continue;
			if (e->kind == FAULT_WRITE)
				save_state(&image, c, states++);
			crash_image_apply(&image, e, e->size);
		}
		save_state(&image, c, states++);
	}
	ck_assert_uint_gt(states, COMMITS * DATASETS);
	scratch_python("tests/judge/header_insert_judge.py %s %u", scratch_folder(), COMMITS);
	free(image.data);
	end(&scene);
}
END_TEST

/* ---- what cannot be ---- */

START_TEST(refusals)
{
	static uint8_t body[BODY_MAX];
	struct h5_new_message m = {.type = H5_MSG_ATTRIBUTE, .body = body, .size = BODY_MAX};
	struct h5_message absent = {.type = H5_MSG_ATTRIBUTE, .address = 100};
	struct scene scene;
	uint64_t address;

	begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	address = scene.models[0].address;
	ck_assert_int_eq(h5_header_insert(scene.s.file, address, &m), -E2BIG);
	ck_assert_int_eq(h5_header_remove(scene.s.file, address, &absent), -EINVAL);
	ck_assert_int_eq(h5_header_set(scene.s.file, address, &absent, &m), -EINVAL);
	ck_assert_int_eq(h5_header_set_references(scene.s.file, address, 0), -EINVAL);
	m = (struct h5_new_message){.type = H5_MSG_REFERENCE_COUNT, .body = body, .size = 5};
	if (!_i)
		ck_assert_int_eq(h5_header_insert(scene.s.file, address, &m), -ENOTSUP);
	/* no header is there */
	ck_assert_int_eq(h5_header_insert(scene.s.file, address + 1, &m), -EUCLEAN);
	ck_assert_int_eq(h5_header_set_references(scene.s.file, address + 1, 2), -EUCLEAN);
	ck_assert(!h5_tx_is_pending(scene.s.file));
	end(&scene);
}
END_TEST

/* Changes some bytes of the header's first chunk, so that the checksum is right. */
static void damage(struct scene *scene, uint64_t address)
{
	struct h5_header h;
	uint8_t *bytes;
	size_t n;

	SUCCEEDS(h5_header_load(scene->s.file, address, &h));
	n = (size_t)h.chunks->size;
	bytes = h.chunks->bytes;
	for (unsigned i = 0; i < 1 + draw(scene, 3); i++)
		bytes[6 + draw(scene, n < 300 ? (unsigned)n - 6 : 294)] = (uint8_t)draw(scene, 256);
	if (h.prefix.version > 1)
		h5_header_seal(bytes, n);
	SUCCEEDS(h5_tx_patch(scene->s.file, address, bytes, n, H5_STAGE_OBJECT));
	h5_header_release(&h);
}

/* A damaged header gives an error, or is changed as far as it can be read. */
START_TEST(damaged_headers)
{
	unsigned refused = 0, done = 0;
	struct scene scene;

	begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	for (unsigned k = 0; k < 10 * scene.count; k++) {
		struct model *m = &scene.models[k % scene.count];
		struct attribute a = {.number = k, .size = draw_size(&scene)};
		struct h5_header h;
		int rc;

		SUCCEEDS(h5_unit_begin(scene.s.file));
		damage(&scene, m->address);
		rc = apply(&scene.s, m, INSERT, &a);
		if (!rc)
			rc = h5_header_load(scene.s.file, m->address, &h);
		else
			ck_assert_str_ne(h5_error_last()->text, "");
		if (!rc) {
			/* the last one, as others may move */
			if (h.count)
				rc = h5_header_remove(scene.s.file, m->address, &h.messages[h.count - 1]);
			h5_header_release(&h);
		}
		refused += rc != 0;
		done += !rc;
		ck_assert_int_eq(h5_unit_end(scene.s.file, -ECANCELED), -ECANCELED);
		check(&scene.s, m);
	}
	ck_assert_msg(refused > 20 && done > 20, "%u refused, %u done", refused, done);
	end(&scene);
}
END_TEST

/* The count is what libhdf5 reads, and it is gone from where it was not needed. */
START_TEST(references)
{
	struct scene scene;
	uint32_t count;

	begin(&scene, _i ? "header_edit_v2" : "header_edit_v1");
	for (size_t i = 0; i < scene.count; i++) {
		uint64_t address = scene.models[i].address;

		SUCCEEDS(h5_header_references(scene.s.file, address, &count));
		ck_assert_uint_eq(count, 1);
		for (uint32_t k = 1; k < 5; k++) {
			SUCCEEDS(h5_header_set_references(scene.s.file, address, k % 4 + 2));
			SUCCEEDS(h5_header_references(scene.s.file, address, &count));
			ck_assert_uint_eq(count, k % 4 + 2);
			check(&scene.s, &scene.models[i]);
		}
		if (i % 2)
			SUCCEEDS(h5_header_set_references(scene.s.file, address, 1));
	}
	commit(&scene);
	scratch_close(&scene.s);
	scratch_judge(
		"/usr/bin/python3 -c \"import h5py, sys; f = h5py.File(sys.argv[1], 'r')\n"
		"found = [h5py.h5o.get_info(f[n].id).rc for k in 'abcd' for n in sorted(f) if n[0] == k]\n"
		"assert found == [2, 1] * (len(found) // 2), found\" %s",
		scene.s.path);
	end(&scene);
}
END_TEST

UNIT_MAIN_LOOPS("header_insert", {random_changes, 3}, {blocks_are_few, 2}, {large_messages, 2},
		{every_allocation_can_fail, 2}, {every_call_of_a_commit_can_fail, 2},
		{killed_between_cells, 2}, {refusals, 2}, {damaged_headers, 2}, {references, 2})
