/* Views: objects in forms that other programs read.
 *
 * A view shows each object of one kind as a file, whose bytes are made when they are asked for. One file of
 * this folder is one view, behind struct h5_view_ops; which name an object has in it, and where that stands
 * in the tree, is not decided here. */
#ifndef H5_VIEW_VIEW_H
#define H5_VIEW_VIEW_H

#include "base/buf.h"
#include "dataset/dataset.h"
#include "object/attribute.h"
#include "object/object.h"
#include "object/value.h"
#include "view/text.h"

struct h5_view_ops;

/* An object in a view. First the caller's; the rest is filled by h5_view_open(). */
struct h5_view {
	const struct h5_view_ops *ops;
	struct h5_file *file;  /* borrowed */
	uint64_t address;      /* of the object */
	const char *attribute; /* borrowed; which one of the object, in a view of attributes; NULL: none */
	struct h5_value_context context;
	uint64_t state; /* stands for the contents of the file as they are now */

	struct h5_lru_entry *object_ref, *dataset_ref;
	const struct h5_object *object;	  /* while it is opened; headers may be large */
	const struct h5_dataset *dataset; /* NULL: the object is none */
	uint64_t size;			  /* bytes of its file */
	/* From here on the bytes are those of the dataset; H5_UNDEF: they are not. */
	uint64_t dataset_from;
	struct h5_buf head; /* the bytes before; of some views all of them */
	/* of views that need them */
	struct h5_text_source source;
	struct h5_text *own;	       /* owned */
	struct h5_lru_entry *text_ref; /* of text */
	const struct h5_text *text;
};

struct h5_view_ops {
	const char *name;   /* of its folder */
	const char *suffix; /* of the names of its files */
	bool of_attributes; /* these are its files, and each object is a directory */
	/* 0: the object has a file, by what does not change when elements are added. -ENOENT: it has none. */
	int (*shows)(const struct h5_view *view);
	/* Finds v->size, and with `reading` what reads need. */
	int (*open)(struct h5_view *view, bool reading);
	/* n bytes that are there, behind the head; NULL: there are none. */
	int (*read)(const struct h5_view *view, uint64_t offset, void *buf, size_t n);
	void (*release)(struct h5_view *view); /* NULL: nothing to do */
};

/* All views; the last one is NULL. */
extern const struct h5_view_ops *const h5_views[];

/* 0: the object has a file in the view. -ENOENT: it has none, or cannot be decoded. */
int h5_view_shows(const struct h5_view *view);

/* With `reading`: to be read. h5_view_release() on failure, too. */
int h5_view_open(struct h5_view *view, bool reading);
/* n bytes at the offset, all inside the size. */
int h5_view_read(const struct h5_view *view, uint64_t offset, void *buf, size_t n);
void h5_view_release(struct h5_view *view); /* may run twice */

#endif
