/* Documents: files of views that are made as a whole. They are in the cache of chunks, so they are in memory
 * once for all readers, and open files hold none. */
#ifndef H5_VIEW_DOCUMENT_H
#define H5_VIEW_DOCUMENT_H

#include "view/view.h"

/* A kind of documents: one static const for each. */
struct h5_document {
	struct h5_lru_kind kind; /* H5_DOCUMENT_KIND() */
	size_t most;		 /* bytes of the longest; -ENOTSUP: it would be longer */
	/* Appends the document. view->object is the object. */
	int (*make)(const struct h5_view *view, struct h5_buf *out);
};

#define H5_DOCUMENT_KIND(name)                                                                               \
	{                                                                                                    \
		name, h5_document_free                                                                       \
	}

void h5_document_free(void *value);

/* Makes the document and sets view->size. `part`: a number that tells documents of one object and kind
 * apart. */
int h5_document_open(struct h5_view *view, const struct h5_document *kind, uint64_t part);
/* n bytes at the offset of the same document, all inside the size. */
int h5_document_read(const struct h5_view *view, const struct h5_document *kind, uint64_t part,
		     uint64_t offset, void *buf, size_t n);
#endif
