/* Elements as text: each makes a piece of it, by one of several forms.
 *
 * How long a piece is, only its element tells. One pass over all of them gives the size of the text and an
 * index, so that any range of it is made without what stands before. */
#ifndef H5_VIEW_TEXT_H
#define H5_VIEW_TEXT_H

#include "dataset/dataset.h"
#include "object/value.h"

struct h5_text_form;

/* What a text is made of; all of it is borrowed. */
struct h5_text_source {
	const struct h5_text_form *form;
	struct h5_value_context context;
	uint64_t address; /* of the object, for errors */
	const struct h5_datatype *type;
	const struct h5_dataspace *space;
	const struct h5_dataset *dataset; /* where the elements are, or */
	const uint8_t *data;		  /* the elements themselves */
	uint64_t state;			  /* stands for what they are now, if that may change */
};

struct h5_text_form {
	unsigned id; /* a number of its own */
	/* How many pieces stand before those of the elements; NULL: none. */
	uint64_t (*heads)(const struct h5_text_source *source);
	int (*head)(const struct h5_text_source *source, uint64_t i, struct h5_buf *out);
	/* The piece of element i. */
	int (*piece)(const struct h5_text_source *source, uint64_t i, const uint8_t *element,
		     struct h5_buf *out);
	/* Its length, where that is known without the piece; NULL: it isn't. */
	int (*length)(const struct h5_text_source *source, const uint8_t *element, uint64_t *length);
};

struct h5_text; /* immutable: an index from elements to offsets */

int h5_text_open(const struct h5_text_source *source, struct h5_text **text);
void h5_text_close(struct h5_text *text); /* NULL is fine */
/* The same of a dataset through the block cache: a reference; h5_file_put() gives it back. */
int h5_text_get(const struct h5_text_source *source, struct h5_lru_entry **ref, const struct h5_text **text);
uint64_t h5_text_size(const struct h5_text *text);
/* n bytes at the offset, all inside the size. */
int h5_text_read(const struct h5_text_source *source, const struct h5_text *text, uint64_t offset, void *buf,
		 size_t n);

#endif
