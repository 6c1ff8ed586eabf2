#include "idle_fetcher.h"

#include <stdlib.h>
#include <string.h>

struct h5_fetcher *idle_fetcher_new(uint32_t cells, uint64_t size, uint64_t whole)
{
	struct h5_fetcher *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->end = (struct h5_remote_end){.memory = calloc(cells, H5_REMOTE_CELL), .cells = cells};
	f->multi = curl_multi_init();
	f->url = strdup("http://host/folder/x.h5?secret");
	f->options.url = f->url;
	f->sources[0] =
		(struct h5_source){.known = true, .url = strdup("http://host/folder/x.h5"), .size = size};
	f->sources[1] = (struct h5_source){.known = true,
					   .url = strdup("http://host/folder/y.h5"),
					   .size = whole,
					   .whole = calloc(1, (size_t)whole)};
	f->sources_used = 2;
	if (f->end.memory && f->multi && f->url && f->sources[0].url && f->sources[1].url &&
	    f->sources[1].whole)
		return f;
	idle_fetcher_free(f);
	return NULL;
}

void idle_fetcher_free(struct h5_fetcher *f)
{
	for (size_t i = 0; i < f->sources_used; i++)
		h5_source_forget(f, &f->sources[i]);
	curl_multi_cleanup(f->multi);
	free(f->end.memory);
	free(f->url);
	free(f);
}
