#include "fuse/opening.h"

#include "base/error.h"
#include "fuse/sandbox.h"

#include <string.h>

int h5_opening_check(const struct h5_options *o)
{
	return o->url && o->set.writable ? h5_fail(-EROFS, H5_UNDEF, "a file behind a URL can only be read")
					 : 0;
}

static int start_fetcher(struct h5_options *o)
{
	int rc;

	o->fetcher.alone = o->set.external == H5_EXTERNAL_NONE;
	o->fetcher.confine = o->sandbox ? h5_sandbox_enter_fetcher : NULL;
	rc = h5_fetcher_start(&o->fetcher, &o->set.remote);

	/* Only the fetcher needs to know the query, which may be a secret. */
	explicit_bzero(o->url, strlen(o->url));
	return rc;
}

int h5_opening_begin(struct h5_options *o, struct h5_file_set **set, struct h5_opened *opened)
{
	int rc = o->url ? start_fetcher(o) : 0;

	return rc ? rc : h5_open_file(o->file, &o->set, set, opened);
}

void h5_opening_end(struct h5_options *o, struct h5_file_set *set, struct h5_opened *opened)
{
	h5_remote_end(o->set.remote); /* work in the background may be waiting for bytes */
	h5_file_set_close(set);
	h5_remote_close(o->set.remote);
	o->set.remote = NULL;
	h5_opened_release(opened);
}
