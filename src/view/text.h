/* Elements as text. A form makes a piece of the text from each element.
 *
 * Only the element tells how long its piece is. So one pass over all elements finds the size of the text and
 * makes an index; then any range of the text is made without the pieces before it. */
#ifndef H5_VIEW_TEXT_H
#define H5_VIEW_TEXT_H

#include "dataset/dataset.h"
#include "object/value.h"

enum { H5_TEXT_PIECE_MAX = 1 << 27 }; /* most bytes of a piece; a longer one is refused */

struct h5_text_form;

/* What a text is made from; all of it is borrowed. */
struct h5_text_source {
	const struct h5_text_form *form;
	struct h5_value_context context;
	uint64_t address; /* of the object, for errors */
	const struct h5_datatype *type;
	const struct h5_dataspace *space;
	const struct h5_dataset *dataset; /* has the elements; NULL: the elements are in `data` */
	uint64_t first;			  /* number of the first one in the dataset */
	const uint8_t *data;		  /* the elements, if there is no dataset */
	uint64_t state; /* changes whenever the elements may have changed; 0: they never change */
};

struct h5_text_form {
	unsigned id; /* of this form alone */
	/* Number of pieces before those of the elements, such as column names; NULL: none. */
	uint64_t (*heads)(const struct h5_text_source *source);
	int (*head)(const struct h5_text_source *source, uint64_t i, struct h5_buf *out);
	/* Appends the piece of element i. */
	int (*piece)(const struct h5_text_source *source, uint64_t i, const uint8_t *element,
		     struct h5_buf *out);
	/* The length of the piece; NULL: only the piece tells. */
	int (*length)(const struct h5_text_source *source, const uint8_t *element, uint64_t *length);
};

struct h5_text; /* immutable: an index from elements to offsets */

int h5_text_open(const struct h5_text_source *source, struct h5_text **text);
void h5_text_close(struct h5_text *text); /* NULL is fine */
/* The text of a dataset through the cache of blocks: a reference, which h5_file_put() gives back. */
int h5_text_get(const struct h5_text_source *source, struct h5_lru_entry **ref, const struct h5_text **text);
uint64_t h5_text_size(const struct h5_text *text);
/* n bytes at the offset, all inside the size. */
int h5_text_read(const struct h5_text_source *source, const struct h5_text *text, uint64_t offset, void *buf,
		 size_t n);

#endif
