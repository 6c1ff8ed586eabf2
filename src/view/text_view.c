/* What views of datasets as text share. */
#include "view/views.h"

#include "view/pages.h"

int h5_view_text_open(struct h5_view *v, const struct h5_text_form *form, const struct h5_page *page,
		      bool by_names)
{
	const uint64_t state = by_names ? v->state : v->own_state;
	int rc;

	v->source = (struct h5_text_source){.form = form,
					    .context = v->context,
					    .address = v->address,
					    .type = v->dataset->type,
					    .space = page ? &page->space : &v->dataset->space,
					    .dataset = v->dataset,
					    .first = page ? page->first : 0,
					    .state = page ? h5_page_state(page, state) : state};
	rc = h5_text_get(&v->source, &v->ref, &v->text);
	if (!rc)
		v->size = h5_text_size(v->text);
	return rc;
}

int h5_view_text_read(const struct h5_view *v, uint64_t offset, void *buf, size_t n)
{
	return h5_text_read(&v->source, v->text, offset, buf, n);
}

void h5_view_text_release(struct h5_view *v)
{
	h5_file_put(v->file, v->ref);
	v->ref = NULL;
}
