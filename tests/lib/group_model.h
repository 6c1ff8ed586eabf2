/* A group and a model of its links, for tests that change links in whatever storage. The files are those of
 * tests/fixtures/group_write.py, which makes the same names and links. */
#ifndef H5_TESTS_GROUP_MODEL_H
#define H5_TESTS_GROUP_MODEL_H

#include "change/transaction.h"
#include "object/group_write.h"
#include "scratch.h"

enum {
	GROUP_LINKS = 1200,
	GROUP_NAME = 1100,
	GROUP_PATH = 5100,
	GROUP_TARGETS = 10,
	GROUP_REFERENCES = 1000000
};

struct group_link {
	char kind;	 /* 'h', 's', 'x'; 0: there is none */
	unsigned target; /* of a hard link: number of a dataset; else of the link itself, in all its names */
	int64_t order;
};

struct group_model {
	struct scratch scratch;
	struct h5_file *file;
	const char *name; /* in the root */
	uint64_t group;
	bool is_old, is_tracked;
	bool crosses; /* the header lies across the edge of a page */
	bool counts; /* the targets have GROUP_REFERENCES more than they have names in the group; else more */
	uint64_t targets[GROUP_TARGETS];
	struct group_link links[GROUP_LINKS]; /* by number */
	struct group_link moved;	      /* from the group to the root, where its name is "moved" */
	unsigned limit;			      /* numbers in use are below */
	unsigned serial;
	int64_t order;
	unsigned seed;
};

/* Opens a copy of group_write-FORM-N.h5. */
struct group_model *group_model_begin(const char *form, unsigned links, struct fault_io *fault);
void group_model_end(struct group_model *m);
/* The group is another one now, without links, as `how` says: made by us, in the place of the fixture's. */
void group_model_renew(struct group_model *m, const struct h5_new_group *how);
void group_model_commit(struct group_model *m);
void group_model_reopen(struct group_model *m); /* after a commit */

unsigned group_random(struct group_model *m, unsigned n);
/* A number that has a link, or has none; GROUP_LINKS: there is no such number. */
unsigned group_choose(struct group_model *m, bool exists);

/* Finds the group again, which may be of another style now. */
void group_look(struct group_model *m);
bool group_is_dense(struct group_model *m);
/* Hard links to the target. */
unsigned group_names(const struct group_model *m, unsigned target);

/* Changes, made to the file, and to the model if they succeed. */
int group_insert(struct group_model *m, unsigned i, char kind);
int group_change(struct group_model *m, unsigned i, char kind);
int group_remove(struct group_model *m, unsigned i);
int group_rename(struct group_model *m, unsigned i, unsigned j);
/* The link leads elsewhere, too. */
int group_rename_as(struct group_model *m, unsigned i, unsigned j, char kind);
/* The link moves to the root; it comes back as link i. */
int group_move_out(struct group_model *m, unsigned i);
int group_move_in(struct group_model *m, unsigned i);
/* Random changes that succeed: so many percent of them make links. */
int group_step(struct group_model *m, unsigned percent);
void group_shake(struct group_model *m, unsigned changes, unsigned percent);

/* True: of link i the file has what the model has. */
bool group_has(struct group_model *m, unsigned i);
/* Our reader sees what the model says: in the listing, and by each name. */
void group_check(struct group_model *m);
/* Writes the model for tests/judge/group_judge.py. */
void group_save(const struct group_model *m, const char *path);
/* Commits, closes the file, asks libhdf5 about it, and opens it again. by_all: newer versions, too. */
void group_judge(struct group_model *m, bool by_all);

/* A link "outside" to an object of another file, which the model does not know. */
void group_insert_external(struct h5_file *file, uint64_t group);

#endif
