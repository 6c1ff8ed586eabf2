#include "header_model.h"

#include "base/error.h"
#include "change/object_header_edit.h"
#include "change/transaction.h"
#include "format/named_message.h"
#include "object/path.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 8 };

unsigned header_draw(struct header_scene *scene, unsigned n)
{
	scene->random = scene->random * 1103515245 + 12345;
	return (scene->random >> 16) % n;
}

static void find_datasets(struct header_scene *scene)
{
	const struct h5_superblock *sb = h5_file_superblock(scene->s.file);
	struct h5_file *file;

	scene->models = calloc(200, sizeof *scene->models);
	scene->count = 0;
	for (const char *kind = "abcd"; *kind; kind++)
		for (unsigned i = 0;; i++) {
			struct header_model *m = &scene->models[scene->count];

			snprintf(m->name, sizeof m->name, "%c%03u", *kind, i);
			if (h5_path_find(scene->s.file, sb->root, m->name, strlen(m->name), &file,
					 &m->address))
				break;
			scene->count++;
		}
	ck_assert_uint_gt(scene->count, 100);
}

void header_scene_begin(struct header_scene *scene, const char *name)
{
	char fixture[64];

	*scene = (struct header_scene){.fault.record = true, .random = 1};
	snprintf(fixture, sizeof fixture, "%s.h5", name);
	scratch_init(&scene->s, fixture);
	scratch_wrap(&scene->s, &scene->fault);
	scratch_open(&scene->s);
	ck_assert(h5_tx_is_writable(scene->s.file));
	find_datasets(scene);
}

void header_scene_end(struct header_scene *scene)
{
	scratch_release(&scene->s);
	fault_io_release(&scene->fault);
	free(scene->models);
}

/* ---- attribute messages ---- */

/* Of version 3: bytes, one dimension. */
static size_t header_encode(const struct header_attribute *a, uint8_t *body)
{
	static const uint8_t type[] = {0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0};
	static const uint8_t space[] = {2, 1, 0, 1};
	struct h5_writer w = h5_writer_init(body, HEADER_BODY_MAX, 8, 8);
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
const struct h5_message *header_find_attribute(const struct h5_header *h, unsigned number)
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

static int insert(struct scratch *s, uint64_t address, const struct h5_header *h,
		  struct h5_new_message *message)
{
	struct counter counter = {0};
	int rc = 0;

	h5_unit_begin(s->file);
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
	h5_unit_begin(s->file);
	rc = h5_header_remove(s->file, address, header_find_attribute(h, number));
	if (!rc && info && attributes == 1) {
		rc = h5_header_load(s->file, address, &now);
		if (!rc) {
			rc = h5_header_remove(s->file, address, h5_header_find(&now, H5_MSG_ATTRIBUTE_INFO));
			h5_header_release(&now);
		}
	}
	return h5_unit_end(s->file, rc);
}

int header_apply(struct scratch *s, const struct header_model *model, enum header_kind kind,
		 const struct header_attribute *a)
{
	static uint8_t body[HEADER_BODY_MAX];
	struct h5_new_message message = {
		.type = H5_MSG_ATTRIBUTE, .body = body, .size = header_encode(a, body)};
	struct h5_header h;
	int rc = h5_header_load(s->file, model->address, &h);

	if (rc)
		return rc;
	switch (kind) {
	case HEADER_INSERT:
		rc = insert(s, model->address, &h, &message);
		break;
	case HEADER_REMOVE:
		rc = remove_attribute(s, model->address, &h, a->number);
		break;
	case HEADER_SET:
		rc = h5_header_set(s->file, model->address, header_find_attribute(&h, a->number), &message);
	}
	h5_header_release(&h);
	return rc;
}

/* ---- random changes ---- */

unsigned header_draw_size(struct header_scene *scene)
{
	switch (header_draw(scene, 40)) {
	case 0:
		return 20000 + header_draw(scene, 45000);
	case 1:
	case 2:
		return 2000 + header_draw(scene, 5000);
	default:
		return header_draw(scene, 300);
	}
}

/* A change that can be made to the model; *i: of which attribute. */
enum header_kind header_draw_change(struct header_scene *scene, const struct header_model *model, unsigned *i,
				    struct header_attribute *attribute)
{
	enum header_kind kind =
		(enum header_kind[]){HEADER_INSERT, HEADER_INSERT, HEADER_INSERT,
				     HEADER_REMOVE, HEADER_REMOVE, HEADER_SET}[header_draw(scene, 6)];

	if (!model->count)
		kind = HEADER_INSERT;
	if (model->count == HEADER_ATTRIBUTES_MAX)
		kind = HEADER_REMOVE;
	*i = kind == HEADER_INSERT ? model->count : header_draw(scene, model->count);
	*attribute = model->attributes[*i];
	if (kind == HEADER_INSERT)
		attribute->number = scene->next++;
	if (kind != HEADER_REMOVE) {
		attribute->size = header_draw_size(scene);
		attribute->step = header_draw(scene, 256);
	}
	return kind;
}

void header_update_model(struct header_model *model, enum header_kind kind, unsigned i,
			 const struct header_attribute *attribute)
{
	if (kind == HEADER_REMOVE)
		model->attributes[i] = model->attributes[--model->count];
	else
		model->attributes[i] = *attribute;
	if (kind == HEADER_INSERT)
		model->count++;
}

/* All versions of libhdf5 accept the header, and it has the attributes of the model and no others. */
void header_check_model(struct scratch *s, const struct header_model *model)
{
	uint8_t *body = malloc(HEADER_BODY_MAX);
	struct h5_header h;
	unsigned count = 0;

	SUCCEEDS(h5_header_load(s->file, model->address, &h));
	SUCCEEDS(h5_header_check(s->file, &h));
	for (unsigned i = 0; i < h.count; i++)
		count += h.messages[i].type == H5_MSG_ATTRIBUTE && h.messages[i].size > 16 &&
			 h.messages[i].data[0] == 3 && h.messages[i].data[9] == 'x';
	ck_assert_uint_eq(count, model->count);
	for (unsigned i = 0; i < model->count; i++) {
		const struct h5_message *m = header_find_attribute(&h, model->attributes[i].number);
		size_t n = header_encode(&model->attributes[i], body);

		if (!m || m->size < n || memcmp(m->data, body, n))
			ck_abort_msg("%s: attribute %u", model->name, model->attributes[i].number);
	}
	h5_header_release(&h);
	free(body);
}

void header_change_model(struct header_scene *scene, struct header_model *model)
{
	struct header_attribute attribute;
	unsigned i;
	enum header_kind kind = header_draw_change(scene, model, &i, &attribute);

	SUCCEEDS(header_apply(&scene->s, model, kind, &attribute));
	header_update_model(model, kind, i, &attribute);
	header_check_model(&scene->s, model);
}

/* Writes that are no cells, in one commit: of those behind the journal's record. */
unsigned header_commit(struct header_scene *scene)
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
static void save_models(const struct header_scene *scene)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/model", scratch_folder());
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	for (size_t i = 0; i < scene->count; i++)
		for (unsigned k = 0; k < scene->models[i].count; k++) {
			const struct header_attribute *a = &scene->models[i].attributes[k];

			fprintf(f, "%s x%06u %u %u %u\n", scene->models[i].name, a->number, a->size,
				a->number, a->step);
		}
	fclose(f);
}

void header_judge(struct header_scene *scene)
{
	save_models(scene);
	scratch_close(&scene->s);
	scratch_judge_python("tests/judge/header_insert_judge.py %s %s %s/model", scene->s.original,
			     scene->s.path, scratch_folder());
}
