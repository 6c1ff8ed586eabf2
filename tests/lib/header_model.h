/* Attributes that are added to the datasets of a file of tests/fixtures/header_edit.py, as messages of their
 * object headers, and a model of them. */
#ifndef H5_TESTS_HEADER_MODEL_H
#define H5_TESTS_HEADER_MODEL_H

#include "change/object_header_insert.h"
#include "scratch.h"

enum { HEADER_ATTRIBUTES_MAX = 64, HEADER_BODY_MAX = 65536 };

/* Named by its number, with so many bytes, of which byte k is number + k * step. */
struct header_attribute {
	unsigned number, size, step;
};

struct header_model {
	char name[16]; /* of the dataset */
	uint64_t address;
	struct header_attribute attributes[HEADER_ATTRIBUTES_MAX];
	unsigned count;
};

struct header_scene {
	struct scratch s;
	struct fault_io fault;
	struct header_model *models;
	size_t count;
	unsigned random, next; /* number of the next attribute */
};

/* A copy of the fixture, open for writing, whose calls are recorded. */
void header_scene_begin(struct header_scene *scene, const char *name);
void header_scene_end(struct header_scene *scene);
/* A number below n. */
unsigned header_draw(struct header_scene *scene, unsigned n);

enum header_kind { HEADER_INSERT, HEADER_REMOVE, HEADER_SET };

/* The message of an attribute in a loaded header; NULL: there is none. */
const struct h5_message *header_find_attribute(const struct h5_header *h, unsigned number);
/* Changes the header and not the model. Allocates nothing itself. */
int header_apply(struct scratch *s, const struct header_model *model, enum header_kind kind,
		 const struct header_attribute *a);
unsigned header_draw_size(struct header_scene *scene);
/* A change that can be made to the model; *i: of which attribute. */
enum header_kind header_draw_change(struct header_scene *scene, const struct header_model *model, unsigned *i,
				    struct header_attribute *attribute);
void header_update_model(struct header_model *model, enum header_kind kind, unsigned i,
			 const struct header_attribute *attribute);
/* All versions of libhdf5 accept the header, and it has the attributes of the model and no others. */
void header_check_model(struct scratch *s, const struct header_model *model);
/* Makes a random change. */
void header_change_model(struct header_scene *scene, struct header_model *model);
/* Returns how many writes of the commit behind the journal's record were no cells. */
unsigned header_commit(struct header_scene *scene);
/* Closes the file; libhdf5 finds in it what is expected, and changes it. */
void header_judge(struct header_scene *scene);

#endif
