/* Between the files of h5fs --check. From the ground up: check_walk.c gathers the objects that links lead to,
 * check_shared.c uses of shared
 * messages, check_heap.c what values refer to, check_object.c looks at each object, check.c goes from object
 * to object.
 */
#ifndef H5_OFFLINE_CHECK_PRIVATE_H
#define H5_OFFLINE_CHECK_PRIVATE_H

#include "format/datatype.h"
#include "format/shared_message.h"
#include "object/damage.h"
#include "offline/check.h"
#include "offline/check_values.h"
#include "offline/usage.h"

struct h5_check_found;

/* The objects that were found, each once, in the order of the links. All zero: none. */
struct h5_check_walk {
	struct h5_check_found *first, *last; /* owned */
	struct h5_check_found *now;	     /* the last one that h5_check_next() gave */
	struct h5_check_found *by_address;   /* a hash of the same */
};

/* Uses of messages in the file's heaps of shared messages. All zero: none. */
struct h5_check_shared {
	struct h5_check_use *uses; /* owned */
	size_t count, capacity;
};

struct h5_checker {
	struct h5_file *file;
	struct h5_check *check;
	const char *path;	 /* of the object that is checked */
	struct h5_damage damage; /* hears of all damage */
	struct h5_check_walk walk;
	struct h5_check_values values;
	struct h5_usage usage;
	struct h5_check_shared shared;
};

/* ---- check_walk.c ---- */

/* A link, or a message, leads to the object. */
int h5_check_add(struct h5_check_walk *walk, uint64_t address, const char *path);
/* Adds the object that a hard link of the one at checker->path leads to. */
int h5_check_add_link(struct h5_checker *checker, const char *name, size_t size, uint64_t address);
/* The next object; false: there is none. The path is borrowed until the next call. */
bool h5_check_next(struct h5_check_walk *walk, uint64_t *address, const char **path);
/* The object that h5_check_next() gave last counts so many links and messages that lead to it. */
void h5_check_set_count(struct h5_check_walk *walk, uint32_t count);
/* To be called at the end: tells of each object whose count is wrong. If all is known, also of counts that
 * are too high. */
int h5_check_counts(struct h5_checker *checker);
void h5_check_walk_release(struct h5_check_walk *walk);

/* Tells of a count that is too high, which is no damage; h5_fail() has just said what it is. */
static inline void h5_check_tell_excess(struct h5_checker *checker, int rc)
{
	struct h5_error error = *h5_error_last();

	error.code = rc;
	checker->check->excess++;
	checker->check->found(checker->check->arg, checker->path, &error);
}

/* ---- check_shared.c ---- */

int h5_check_add_shared(struct h5_check_shared *shared, const struct h5_shared_use *use);
void h5_check_shared_release(struct h5_check_shared *shared);
/* To be called at the end: tells of each shared message whose count is wrong, if all uses are known. */
int h5_check_shared_counts(struct h5_checker *checker);

/* ---- check_heap.c ---- */

/* Something refers to the object of the global heap. Verifies its collection, once. */
int h5_check_add_reference(struct h5_checker *checker, uint64_t address, uint32_t index);
/* The same with all that the element refers to. If it cannot be read, reading it as text tells. */
int h5_check_add_references(struct h5_checker *checker, const struct h5_datatype *type,
			    const uint8_t *element);
/* To be called at the end: counts the objects that nothing refers to, if all is known. */
int h5_check_heap(struct h5_checker *checker);

/* ---- check_object.c ---- */

/* Checks all that belongs to the object, without the objects that its links lead to. */
int h5_check_object(struct h5_checker *checker, uint64_t address);

#endif
