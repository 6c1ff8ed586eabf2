/* Views: what the files of a mount contain.
 *
 * A view shows each object of one kind as a file, whose bytes are made when they are asked for. An object's
 * own file in the tree is of the view that shows its contents: raw, lines, jsonl or ddl. The other views
 * (attrs, csv, json, npy, png, svg, values, zarr, zarr3) have a folder each below `.h5fs`, with files for
 * other programs; kerchunk.json is one file there.
 *
 * A view is one file of this folder, with a struct h5_view_ops, and a line each in views.h and in table.c or
 * view.c. It decides neither the names of its files nor where they are in the tree. */
#ifndef H5_VIEW_VIEW_H
#define H5_VIEW_VIEW_H

#include "base/buf.h"
#include "base/extents.h"
#include "dataset/replacement.h"
#include "object/attribute.h"
#include "object/object.h"
#include "object/value_parse.h"
#include "view/colours.h"
#include "view/text.h"

#include <assert.h>
#include <stdlib.h>

struct h5_view_ops;
struct h5_intake_ops;

/* The tree that a view shows, for views that describe all of it in one file. */
struct h5_view_tree {
	struct h5_file *file; /* borrowed */
	uint64_t root;	      /* address of the group */
	/* Makes the file name of a link, for its directory in the tree of the view; returns the length. */
	size_t (*name)(const struct h5_view_ops *view, const char *name, size_t size, char out[256]);
	const char *url; /* where programs find the file; borrowed */
	/* Says what is left out, and why. */
	void (*log)(const char *format, ...) __attribute__((format(printf, 1, 2)));
};

/* An object in a view. The caller sets the first members, and all others to 0. */
struct h5_view {
	const struct h5_view_ops *ops; /* NULL: the one that shows the object's contents */
	struct h5_file *file;	       /* borrowed */
	uint64_t address;	       /* of the object */
	/* Borrowed: name of an attribute, in a view of attributes; if the object is a directory, path of a
	 * file below that. NULL: the object. */
	const char *part;
	const struct h5_view_tree *tree; /* borrowed */
	struct h5_value_context context;
	enum h5_colours colours; /* of pictures */
	bool zarr_decoded;	 /* zarr, zarr3: no chunk is shown as it is stored */
	uint64_t state;		 /* changes whenever anything in the file may have */
	/* Changes whenever the elements of this object may have; but the cache forgets all of a virtual
	 * dataset (store/followers). */
	uint64_t own_state;

	/* set by h5_view_begin() */
	struct h5_lru_entry *object_ref, *dataset_ref;
	const struct h5_object *object;	  /* NULL once the view is open, since headers may be large */
	const struct h5_dataset *dataset; /* NULL: the object is no dataset */
	struct h5_dataset *outline;	  /* owned: the same dataset, decoded from a known object */
	/* From this offset on the file has the bytes of the dataset; H5_UNDEF: nowhere. */
	uint64_t dataset_from;

	/* set by the view's `open` */
	uint64_t size;	    /* bytes of the file */
	struct h5_buf head; /* the first bytes of the file; in some views all */
	struct h5_text_source source;
	struct h5_text *own;	  /* owned */
	struct h5_lru_entry *ref; /* to a value of the cache of blocks, for the view's use */
	const struct h5_text *text;
	void *mine; /* owned: what the view keeps, free() */
};

/* Objects that are directories, with files that the view names. In a view of directories all are that it
 * shows, and links are shown as what they lead to. In other views some datasets are. */
struct h5_view_directory_ops {
	/* True: this object is a directory; any other one is a file. NULL: it is a view of directories. */
	bool (*is_one)(const struct h5_view *view);
	/* True: a link of that name must have another file name. NULL: none must. */
	bool (*is_taken)(const char *name, size_t size);
	/* Finds the file or directory at the path below the object's directory; -ENOENT: there is none.
	 * *size: the size of a file, or H5_UNDEF if finding it takes work. */
	int (*find)(const struct h5_view *view, const char *path, bool *is_directory, uint64_t *size);
	/* Lists view->part, which is a directory, or if NULL that of the object: the first entry from
	 * *position on. 1: there is one; *position is that of the next. 0: there are no more. */
	int (*next)(const struct h5_view *view, uint64_t *position, char name[256], bool *is_directory);
};

/* An open file through which a view is written. The caller sets the first members, and all others to 0. */
struct h5_view_input {
	const struct h5_view_ops *ops;
	struct h5_file *file; /* borrowed */
	uint64_t address;
	struct h5_dataset_writer *writer; /* borrowed */
	/* Text that takes the place of the old one goes here, from its first line on; NULL: it is added to
	 * the dataset. Borrowed. */
	struct h5_replacement *replacement;
	/* For text: how its values are read. The heap is the writer's. */
	struct h5_value_context context;
	int (*object_address)(void *arg, const char *path, size_t n, uint64_t *address);
	void *arg;

	/* Bytes that were written, but that the dataset cannot take before more of them come, such as an
	 * incomplete row of raw elements. No other open file sees them. */
	uint8_t *data; /* owned */
	size_t capacity;
	size_t filled;		/* 0: there are no such bytes */
	struct h5_extents gaps; /* of a row of sparse data: which of these bytes nobody has written */
	uint64_t offset;	/* where these bytes begin */
	bool floats;   /* an append began these bytes: they go to wherever the end is when complete */
	size_t lines;  /* text: whole lines among these bytes, fewer than a row of the dataset has */
	size_t line;   /* text: where the line begins that is incomplete */
	uint64_t next; /* text: the offset behind the last write; 0: there was none */
};

struct h5_view_ops {
	const char *name;   /* of the view's folder, or of the format of contents */
	const char *suffix; /* of the names of the view's files; NULL: the view has no folder, but one file */
	bool is_text;	    /* its files have a line for each element */
	bool of_attributes; /* attributes are its files, and each object is a directory */
	const struct h5_view_directory_ops *directory; /* NULL: all objects are files */
	bool is_sized; /* the size is found without work on the elements: an outline tells it */
	/* 0: the object has a file. -ENOENT: it has none. The answer stays the same if elements are added. */
	int (*shows)(const struct h5_view *view);
	/* Sets view->size and, with `reading`, what `read` needs. */
	int (*open)(struct h5_view *view, bool reading);
	/* Reads n bytes at the offset, all after the head and inside the size. NULL: they are bytes of the
	 * dataset, if there are any. */
	int (*read)(const struct h5_view *view, uint64_t offset, void *buf, size_t n);
	/* As h5_dataset_seek(); NULL: the file has no holes. */
	int (*seek)(const struct h5_view *view, uint64_t offset, bool hole, uint64_t *found);
	void (*release)(struct h5_view *view); /* NULL: nothing to do */
	/* Writes at the offset, or, with `append`, at the end, wherever that is. *written: how many of the n
	 * bytes, also on failure. -EFBIG: nothing more fits; -EINVAL: it would leave incomplete bytes behind
	 * elsewhere. NULL: the files of the view are read-only. In a view that is text all is written at the
	 * end, and the caller sees to it that the offset is the end. */
	int (*write)(struct h5_view_input *input, uint64_t offset, const void *data, size_t n, bool append,
		     size_t *written);
	/* True: in a file of so many bytes the bytes that are incomplete would be all there. `complete` adds
	 * what they lack, the fill value. NULL: never. */
	bool (*is_completed)(const struct h5_view_input *input, uint64_t size);
	int (*complete)(struct h5_view_input *input);
	/* 0: nothing of the bytes that are incomplete would be lost if the file was closed now. -EINVAL: they
	 * would. NULL: all of them would be. */
	int (*check)(struct h5_view_input *input);
	/* The file is closed: writes those of these bytes that may end here. The others are lost. NULL: all
	 * are. */
	int (*finish)(struct h5_view_input *input);
	/* What becomes of files that are written whole; NULL: the files of the view are not made so. */
	const struct h5_intake_ops *intake;
};

/* All views that are below `.h5fs`; the last one is NULL. */
extern const struct h5_view_ops *const h5_views[];

/* The view that shows the contents of the dataset. */
const struct h5_view_ops *h5_view_of_dataset(const struct h5_dataset *dataset);

/* 0: the object has a file in the view, or with `as_directory` is a directory there that has files of its
 * own. -ENOENT: it is not, or cannot be decoded. */
int h5_view_shows(const struct h5_view *view, bool as_directory);

/* True: each object that the view shows is a directory. */
static inline bool h5_view_is_of_directories(const struct h5_view_ops *ops)
{
	return ops->directory && !ops->directory->is_one;
}

/* Finds the object and the view. `known`: the object, borrowed until the view is open, if all that is wanted
 * may be told by the outline of a dataset; else NULL. To be released on failure, too. */
int h5_view_begin(struct h5_view *view, const struct h5_object *known);
/* After h5_view_begin(), before h5_view_open(): makes the dataset whole, if there is one. */
int h5_view_complete(struct h5_view *view);
/* After h5_view_begin(): finds the size, and with `reading` makes the view ready to be read. -EOVERFLOW: the
 * file has more than 2^63-1 bytes. */
int h5_view_open(struct h5_view *view, bool reading);
/* h5_view_read() from an offset inside the head. */
int h5_view_read_head(const struct h5_view *view, uint64_t offset, void *buf, size_t n);
void h5_view_release(struct h5_view *view); /* may run twice */

/* The error of a dataset that cannot grow. */
int h5_view_input_refuse(const struct h5_view_input *input);

/* Drops the bytes that are incomplete. May run twice. */
static inline void h5_view_input_release(struct h5_view_input *input)
{
	free(input->data);
	h5_extents_release(&input->gaps);
	input->data = NULL;
	input->capacity = input->filled = input->lines = input->line = 0;
}

/* n bytes at the offset, at least one, all inside the size. */
static inline int h5_view_read(const struct h5_view *view, uint64_t offset, void *buf, size_t n)
{
	assert(n && offset < view->size && n <= view->size - offset);
	if (offset < view->head.size)
		return h5_view_read_head(view, offset, buf, n);
	if (view->ops->read)
		return view->ops->read(view, offset, buf, n);
	return h5_dataset_read(view->dataset, offset - view->dataset_from, buf, n);
}

/* As h5_dataset_seek(), at an offset inside the size. */
static inline int h5_view_seek(const struct h5_view *view, uint64_t offset, bool hole, uint64_t *found)
{
	assert(offset < view->size);
	*found = hole ? view->size : offset;
	return view->ops->seek ? view->ops->seek(view, offset, hole, found) : 0;
}

#endif
