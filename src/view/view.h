/* Views: what the files of a mount contain.
 *
 * A view shows each object of one kind as a file, whose bytes are made when they are asked for. The file that
 * stands for an object in the tree is of the view that shows its contents (raw, lines, jsonl, ddl); others
 * (attrs, csv, json, npy, png) are forms that other programs read, with a folder each below `.h5fs`.
 *
 * One file of this folder is one view, behind struct h5_view_ops; one line of view.c makes it known. Which
 * name an object has in it, and where that is in the tree, is not decided here. */
#ifndef H5_VIEW_VIEW_H
#define H5_VIEW_VIEW_H

#include "base/buf.h"
#include "dataset/writer.h"
#include "object/attribute.h"
#include "object/object.h"
#include "object/value.h"
#include "view/text.h"

struct h5_view_ops;

/* An object in a view. The caller sets the first part, and the rest to 0. */
struct h5_view {
	const struct h5_view_ops *ops; /* NULL: the one that shows the object's contents */
	struct h5_file *file;	       /* borrowed */
	uint64_t address;	       /* of the object */
	const char *attribute; /* borrowed; which one of the object, in a view of attributes; NULL: none */
	struct h5_value_context context;
	uint64_t state; /* stands for the contents of the file as they are now */

	/* h5_view_begin() */
	struct h5_lru_entry *object_ref, *dataset_ref;
	const struct h5_object *object;	  /* until it is open; headers may be large */
	const struct h5_dataset *dataset; /* NULL: the object is none */
	struct h5_dataset *decoded;	  /* owned: the same, if it is not from the cache */
	/* From here on the bytes are those of the dataset; H5_UNDEF: they are not. */
	uint64_t dataset_from;

	/* the view's `open` */
	uint64_t size;	    /* bytes of its file */
	struct h5_buf head; /* the bytes before; of some views all of them */
	struct h5_text_source source;
	struct h5_text *own;	  /* owned */
	struct h5_lru_entry *ref; /* of text, ... */
	const struct h5_text *text;
};

/* An open file through which a view is written. The caller sets the first part, and the rest to 0. */
struct h5_view_input {
	const struct h5_view_ops *ops;
	struct h5_file *file; /* borrowed */
	uint64_t address;
	struct h5_dataset_writer *writer; /* borrowed */

	/* Bytes that it has got, and that the dataset cannot take before more of them come: an incomplete row
	 * of raw elements. Nobody else knows of them. */
	uint8_t *data; /* owned */
	size_t capacity;
	size_t filled;	 /* 0: there are none */
	uint64_t offset; /* where they begin */
	bool floats;	 /* an append began it: it goes to the end, wherever that is when it is complete */
};

struct h5_view_ops {
	const char *name;   /* of its folder, or of the format of contents */
	const char *suffix; /* of the names of its files; NULL: it has no folder */
	bool of_attributes; /* these are its files, and each object is a directory */
	bool is_sized;	    /* the size is found without work on the elements */
	/* 0: the object has a file, by what does not change when elements are added. -ENOENT: it has none. */
	int (*shows)(const struct h5_view *view);
	/* Finds view->size, and with `reading` what reads need. */
	int (*open)(struct h5_view *view, bool reading);
	/* n bytes that are there, behind the head; NULL: there are none. */
	int (*read)(const struct h5_view *view, uint64_t offset, void *buf, size_t n);
	/* As h5_dataset_seek(); NULL: the file has no holes. */
	int (*seek)(const struct h5_view *view, uint64_t offset, bool hole, uint64_t *found);
	void (*release)(struct h5_view *view); /* NULL: nothing to do */
	/* Writes at the offset, or, with `append`, at the end, wherever that is: *written of the n bytes,
	 * also if it fails. -EFBIG: nothing fits; -EINVAL: what is incomplete would have to be left behind.
	 * NULL: files of the view are read-only. */
	int (*write)(struct h5_view_input *input, uint64_t offset, const void *data, size_t n, bool append,
		     size_t *written);
};

/* All views that have a folder; the last one is NULL. */
extern const struct h5_view_ops *const h5_views[];

/* The view that shows the contents of the dataset. */
const struct h5_view_ops *h5_view_of_dataset(const struct h5_dataset *dataset);

/* 0: the object has a file in the view. -ENOENT: it has none, or cannot be decoded. */
int h5_view_shows(const struct h5_view *view);

/* Finds the object and the view. `known`: the object, borrowed until the view is open, if the caller has it
 * from elsewhere than the cache; else NULL. h5_view_release() on failure, too. */
int h5_view_begin(struct h5_view *view, const struct h5_object *known);
/* After h5_view_begin(): finds the size. With `reading`: to be read. -EOVERFLOW: it has more than 2^63-1
 * bytes. */
int h5_view_open(struct h5_view *view, bool reading);
/* n bytes at the offset, all inside the size. */
int h5_view_read(const struct h5_view *view, uint64_t offset, void *buf, size_t n);
/* As h5_dataset_seek(). */
int h5_view_seek(const struct h5_view *view, uint64_t offset, bool hole, uint64_t *found);
void h5_view_release(struct h5_view *view); /* may run twice */

/* Forgets the bytes that are incomplete. May run twice. */
void h5_view_input_release(struct h5_view_input *input);

#endif
