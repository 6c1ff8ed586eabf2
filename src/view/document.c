#include "view/document.h"

#include "base/error.h"
#include "store/file_set.h"

#include <stdlib.h>
#include <string.h>

/* What the cache makes a document of. */
struct making {
	const struct h5_view *view;
	const struct h5_document *kind;
};

void h5_document_free(void *value)
{
	h5_buf_release(value);
	free(value);
}

static int make(const struct making *m, struct h5_buf *out)
{
	int rc;

	h5_buf_init(out, m->kind->most);
	rc = m->kind->make(m->view, out);
	if (!rc)
		rc = out->err;
	if (rc == -E2BIG)
		rc = h5_fail(-ENOTSUP, m->view->address, "%s: its text is over %zu bytes", m->kind->kind.name,
			     m->kind->most);
	return rc;
}

static int load(void *arg, void **value, size_t *cost)
{
	struct h5_buf *document = calloc(1, sizeof *document);
	int rc = document ? make(arg, document) : -ENOMEM;

	if (rc) {
		if (document)
			h5_document_free(document);
		return rc;
	}
	/* The cache counts it from here on. */
	h5_charge_release(&document->charge);
	*value = document;
	*cost = sizeof *document + document->capacity;
	return 0;
}

static struct h5_lru *cache_of(const struct h5_view *v)
{
	return h5_file_set_chunks(h5_file_set_of(v->file));
}

/* The state is the owner: it differs from file to file, and after each change. On success the caller puts the
 * reference. */
static int get(const struct h5_view *v, const struct h5_document *kind, uint64_t part,
	       struct h5_lru_entry **ref, const struct h5_buf **document)
{
	struct making m = {v, kind};
	struct h5_lru_key key = {&kind->kind, v->state, v->address, part};
	int rc = h5_lru_get(cache_of(v), &key, load, &m, ref);

	*document = rc ? NULL : h5_lru_value(*ref);
	return rc;
}

int h5_document_open(struct h5_view *v, const struct h5_document *kind, uint64_t part)
{
	const struct h5_buf *document;
	struct h5_lru_entry *ref;
	int rc = get(v, kind, part, &ref, &document);

	if (rc)
		return rc;
	v->size = document->size;
	h5_lru_put(cache_of(v), ref);
	return 0;
}

int h5_document_read(const struct h5_view *view, const struct h5_document *kind, uint64_t part,
		     uint64_t offset, void *buf, size_t n)
{
	struct h5_lru_entry *object_ref, *ref = NULL;
	const struct h5_buf *document;
	struct h5_view v = *view;
	int rc = h5_object_get(v.file, v.address, &object_ref, &v.object);

	if (rc)
		return rc;
	rc = get(&v, kind, part, &ref, &document);
	if (!rc && document->size == v.size)
		memcpy(buf, document->data + offset, n);
	else if (!rc)
		rc = h5_fail(-EUCLEAN, v.address, "its %s has changed", kind->kind.name);
	h5_lru_put(cache_of(&v), ref);
	h5_file_put(v.file, object_ref);
	return rc;
}
