#include "view/npy_header.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/json_read.h"
#include "object/numpy_parse.h"

#include <string.h>

static const char signature[] = "\x93NUMPY";

enum {
	ALIGNMENT = 64,
	SIGNATURE = sizeof signature - 1,
	VERSION = 2,
	VERSIONS = 3,
};

static int refuse(const char *what)
{
	return h5_fail(-EINVAL, H5_UNDEF, "npy: %s", what);
}

/* ---- making ---- */

static bool is_ascii(const struct h5_buf *text)
{
	for (size_t i = 0; i < text->size; i++)
		if ((unsigned char)text->data[i] > 127)
			return false;
	return true;
}

void h5_npy_header_make(const struct h5_buf *dictionary, struct h5_buf *head)
{
	unsigned version = !is_ascii(dictionary) ? 3 : dictionary->size > UINT16_MAX - ALIGNMENT ? 2 : 1;
	size_t before = SIGNATURE + VERSION + (version == 1 ? 2 : 4);
	size_t whole = (before + dictionary->size + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

	h5_buf_init(head, SIZE_MAX);
	h5_buf_add(head, signature, SIGNATURE);
	h5_buf_byte(head, (char)version);
	h5_buf_byte(head, 0);
	for (size_t i = 0; i < before - SIGNATURE - VERSION; i++)
		h5_buf_byte(head, (char)((whole - before) >> (8 * i)));
	h5_buf_add(head, dictionary->data, dictionary->size);
	while (!head->err && head->size < whole - 1)
		h5_buf_byte(head, ' ');
	h5_buf_byte(head, '\n');
}

/* ---- the preamble ---- */

/* Bytes before the dictionary. */
static size_t preamble(const uint8_t *data)
{
	return SIGNATURE + VERSION + (data[SIGNATURE] == 1 ? 2 : 4);
}

int h5_npy_header_size(const uint8_t *data, size_t n, size_t *size)
{
	size_t length = 0, before;

	*size = 0;
	if (n && memcmp(data, signature, h5_min(n, SIGNATURE)) != 0)
		return refuse("the file does not begin as NumPy's files do");
	if (n < SIGNATURE + VERSION)
		return 0;
	if (!data[SIGNATURE] || data[SIGNATURE] > VERSIONS || data[SIGNATURE + 1])
		return refuse("a version that is not known");
	before = preamble(data);
	if (n < before)
		return 0;
	for (size_t i = before; i-- > SIGNATURE + VERSION;)
		length = length << 8 | data[i];
	if (length > H5_NPY_DICTIONARY_MAX)
		return refuse("the header is too long");
	*size = before + length;
	return 0;
}

/* ---- Python's words as JSON ---- */

/* Rewrites a dictionary of Python's as a text of JSON's. Numbers, brackets, colons and commas are the same;
 * what is wrong with these, the reader of JSON finds. */
struct rewriter {
	const char *p, *end;
	bool is_latin1; /* bytes above 127 are characters; else they are of UTF-8 */
	struct h5_buf out;
};

static bool take_word(struct rewriter *w, const char *word, const char *json)
{
	size_t n = strlen(word);

	if ((size_t)(w->end - w->p) < n || memcmp(w->p, word, n) != 0)
		return false;
	w->p += n;
	h5_buf_text(&w->out, json);
	return true;
}

/* A comma after the last member is Python's only. */
static void drop_comma(struct rewriter *w)
{
	size_t n = w->out.size;

	while (n && strchr(" \n\t\r", w->out.data[n - 1]))
		n--;
	if (n && w->out.data[n - 1] == ',')
		w->out.size = n - 1;
}

static void add_character(struct rewriter *w, unsigned char c)
{
	if (c == '"' || c < ' ') {
		h5_buf_printf(&w->out, "\\u%04x", c);
	} else if (c > 127 && w->is_latin1) {
		h5_buf_byte(&w->out, (char)(0xc0 | c >> 6));
		h5_buf_byte(&w->out, (char)(0x80 | (c & 0x3f)));
	} else {
		h5_buf_byte(&w->out, (char)c);
	}
}

/* Behind a backslash. False: an escape that NumPy does not write. */
static bool add_escape(struct rewriter *w)
{
	static const char same[] = "nrt\\";
	char c = w->p < w->end ? *w->p++ : 0;

	if (c && strchr(same, c)) {
		h5_buf_byte(&w->out, '\\');
		h5_buf_byte(&w->out, c);
	} else if (c == '\'' || c == '"') {
		add_character(w, (unsigned char)c);
	} else if (c == 'u') {
		h5_buf_text(&w->out, "\\u");
	} else if (c == 'x') {
		h5_buf_text(&w->out, "\\u00");
	} else {
		return false;
	}
	return true;
}

static int take_string(struct rewriter *w)
{
	const char quote = *w->p++;

	h5_buf_byte(&w->out, '"');
	while (w->p < w->end && *w->p != quote) {
		char c = *w->p++;

		if (c != '\\')
			add_character(w, (unsigned char)c);
		else if (!add_escape(w))
			return refuse("an escape in the header that is not known");
	}
	if (w->p == w->end)
		return refuse("a string of the header does not end");
	w->p++;
	h5_buf_byte(&w->out, '"');
	return 0;
}

static int take_one(struct rewriter *w)
{
	char c = *w->p;

	if (c == '\'' || c == '"')
		return take_string(w);
	if (take_word(w, "True", "true") || take_word(w, "False", "false") || take_word(w, "None", "null"))
		return 0;
	w->p++;
	if (c == ')' || c == ']' || c == '}')
		drop_comma(w);
	h5_buf_byte(&w->out, c == '(' ? '[' : c == ')' ? ']' : c);
	return 0;
}

static int rewrite(struct rewriter *w)
{
	int rc = 0;

	while (w->p < w->end && !rc)
		rc = take_one(w);
	if (!rc && w->out.err)
		rc = h5_fail(w->out.err, H5_UNDEF, "npy: no memory for the header");
	return rc;
}

/* ---- what the dictionary says ---- */

static int read_shape(struct json_object *json, struct h5_dataspace *space)
{
	const size_t rank =
		json_object_is_type(json, json_type_array) ? json_object_array_length(json) : SIZE_MAX;

	memset(space, 0, sizeof *space);
	if (rank > H5_RANK_MAX)
		return refuse("the shape is no tuple of at most 32 numbers");
	space->kind = rank ? H5_SPACE_SIMPLE : H5_SPACE_SCALAR;
	space->rank = (unsigned)rank;
	for (size_t i = 0; i < rank; i++) {
		struct json_object *dim = json_object_array_get_idx(json, i);
		int64_t number = json_object_is_type(dim, json_type_int) ? json_object_get_int64(dim) : -1;

		/* json-c makes the largest number of what is larger. */
		if (number < 0 || number == INT64_MAX)
			return refuse("the shape is no tuple of numbers");
		space->dims[i] = space->max[i] = (uint64_t)number;
	}
	if (!h5_product(space->dims, space->rank, &space->elements))
		return refuse("too many elements");
	return 0;
}

static int read_members(struct json_object *root, uint8_t size_of_offsets, struct h5_npy_header *header)
{
	struct json_object *type, *order, *shape;
	int rc;

	if (!json_object_is_type(root, json_type_object) || json_object_object_length(root) != 3 ||
	    !json_object_object_get_ex(root, "descr", &type) ||
	    !json_object_object_get_ex(root, "fortran_order", &order) ||
	    !json_object_object_get_ex(root, "shape", &shape) ||
	    !json_object_is_type(order, json_type_boolean))
		return refuse("the header has not just descr, fortran_order and shape");
	rc = read_shape(shape, &header->space);
	if (rc)
		return rc;
	header->is_fortran = json_object_get_boolean(order);
	return h5_numpy_parse_json(type, size_of_offsets, &header->type);
}

int h5_npy_header_read(const uint8_t *data, size_t size, uint8_t size_of_offsets,
		       struct h5_npy_header *header)
{
	struct rewriter w = {.p = (const char *)data + preamble(data),
			     .end = (const char *)data + size,
			     .is_latin1 = data[SIGNATURE] < VERSIONS};
	struct h5_json_document document;
	int rc;

	*header = (struct h5_npy_header){0};
	h5_buf_init(&w.out, SIZE_MAX);
	rc = rewrite(&w);
	if (!rc)
		rc = h5_json_read(w.out.data ? w.out.data : "", w.out.size, &document);
	h5_buf_release(&w.out);
	if (rc)
		return rc;
	rc = read_members(document.root, size_of_offsets, header);
	h5_json_document_release(&document);
	if (rc)
		h5_npy_header_release(header);
	return rc;
}

void h5_npy_header_release(struct h5_npy_header *header)
{
	h5_datatype_free(header->type);
	header->type = NULL;
}
