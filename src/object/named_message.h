/* The named messages of an object: its links, or its attributes.
 *
 * Both kinds are stored in the same two ways, and an info message in the object header tells in which:
 *
 *   compact  as messages of the object header
 *   dense    as objects of a fractal heap, with a version 2 B-tree whose records are sorted by the hash of
 *            the name and then by the name, and perhaps with a second one in the order of creation
 *
 * group.c and attribute.c know what the messages mean. Specification IV.A.2.c, IV.A.2.g,
 * IV.A.2.m, IV.A.2.v, III.A.2. */
#ifndef H5_OBJECT_NAMED_MESSAGE_H
#define H5_OBJECT_NAMED_MESSAGE_H

#include "format/named_message.h"
#include "object/damage.h"
#include "object/name_list.h"
#include "object/object.h"

enum h5_named_kind { H5_NAMED_LINK, H5_NAMED_ATTRIBUTE };

struct h5_named_ops; /* how messages of a kind are found and decoded: named_message.c */

/* Where an object keeps its messages of one kind. A plain struct: nothing to release. */
struct h5_named_storage {
	const struct h5_named_ops *ops; /* of the kind */
	struct h5_file *file;		/* borrowed */
	const struct h5_object *object; /* borrowed */
	bool is_dense;
	struct h5_named_info info; /* if the storage is dense */
	struct h5_damage damage;   /* an info message that cannot be read; then only compact ones are found */
};

int h5_named_storage_find(struct h5_file *file, const struct h5_object *object, enum h5_named_kind kind,
			  struct h5_named_storage *storage);

/* Opens the message of that name; h5_message_release(). -ENOENT: there is none. A damaged compact message
 * does not keep others from being found. */
int h5_named_find(const struct h5_named_storage *storage, const char *name, size_t size,
		  struct h5_message_body *body);
/* The message of the header itself, in compact storage; it may be a shared one. Borrowed from the object. */
int h5_named_find_compact(const struct h5_named_storage *storage, const char *name, size_t size,
			  const struct h5_message **message);

/* Dense storage without its object, which need not have an info message yet. */
void h5_named_storage_dense(struct h5_file *file, enum h5_named_kind kind, const struct h5_named_info *info,
			    struct h5_named_storage *storage);

/* What an index knows of a message. */
struct h5_named_entry {
	uint8_t id[H5_HEAP_ID_MAX]; /* of the heap object */
	size_t id_size;
	int64_t order;	/* of creation, if the object tracks it */
	bool is_shared; /* the ID is one of the file's heap of shared messages */
};

/* A search in the index by name of dense storage. */
struct h5_named_search {
	const struct h5_named_storage *storage; /* borrowed */
	const char *name;			/* borrowed */
	size_t size;
	uint32_t hash;		      /* of the name */
	struct h5_message_body *body; /* the message that was found last; h5_message_release() */
	/* Becomes the entry of that message; NULL: the caller needs none. The caller sets it only after it
	 * has checked that heap IDs are not too large. */
	struct h5_named_entry *entry;
};

struct h5_named_search h5_named_search_init(const struct h5_named_storage *storage, const char *name,
					    size_t size, struct h5_message_body *body);
/* h5_btree2_compare; `arg` is a struct h5_named_search. */
int h5_named_compare(void *arg, struct h5_reader record, int *rc);

/* How many there are, by the index of dense ones. */
int h5_named_count(const struct h5_named_storage *storage, uint64_t *count);

/* Verifies dense storage: the heap, and that each index has a record for each message; notes what is damaged.
 */
int h5_named_check(const struct h5_named_storage *storage, struct h5_damage *damage);

/* Visits all messages of dense storage, in the order of the index by name. A result other than 0 of `visit`
 * ends the visits and is returned; `name` and `message` are borrowed. */
typedef int h5_named_visit(void *arg, const struct h5_name *name, const struct h5_named_record *record,
			   struct h5_reader message);
int h5_named_iterate_dense(const struct h5_named_storage *storage, h5_named_visit *visit, void *arg);

/* All of them, no name twice:
 *
 *   rc = h5_named_begin(&walk, &storage, order);
 *   while (!rc && (rc = h5_named_next(&walk, &name, &message)) > 0)
 *           rc = ...;
 *   h5_named_end(&walk);
 *
 * Messages that cannot be read are left out; the first such error comes at the end. */
struct h5_named_walk {
	struct h5_named_storage storage; /* a copy */
	struct h5_name_list names;
	size_t next;
	struct h5_damage damage;
	struct h5_message_body body; /* of the current message, if it was opened again */
};

int h5_named_begin(struct h5_named_walk *walk, const struct h5_named_storage *storage,
		   enum h5_name_order order);
/* 1: *name and *message are the next one's, borrowed until the next call; 0: the end; else an error. */
int h5_named_next(struct h5_named_walk *walk, const struct h5_name **name, struct h5_reader *message);
void h5_named_end(struct h5_named_walk *walk); /* also after a failure */

#endif
