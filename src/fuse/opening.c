#include "fuse/opening.h"

#include "base/error.h"
#include "fuse/log.h"
#include "fuse/sandbox.h"
#include "remote/disk_folder.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int h5_opening_check(const struct h5_options *o)
{
	if (!o->is_folder && (o->match || o->open_files))
		return h5_fail(-EINVAL, H5_UNDEF, "match and open_files are for the mount of a folder");
	if (o->url && o->set.writable)
		return h5_fail(-EROFS, H5_UNDEF, "%s behind a URL can only be read",
			       o->is_folder ? "what lies" : "a file");
	if (o->is_folder && (o->subdir || o->journal || o->create || o->set.has_revision))
		return h5_fail(-EINVAL, H5_UNDEF,
			       "subdir, journal, create and revision are for the mount of one file");
	if (o->is_folder && o->set.writable && o->set.swmr)
		return h5_fail(-EINVAL, H5_UNDEF, "rw with swmr is for the mount of one file");
	return 0;
}

static int open_disk_cache(struct h5_options *o)
{
	o->fetcher.disk_cache = o->disk_cache ? h5_disk_folder_open(o->disk_cache) : -1;
	o->disk_cache_fails = o->disk_cache && o->fetcher.disk_cache < 0;
	return o->disk_cache_fails ? o->fetcher.disk_cache : 0;
}

static void say(const char *note)
{
	h5_log_at(H5_LOG_NORMAL, "disk cache: %s", note);
}

int h5_opening_start_fetcher(struct h5_options *o)
{
	int rc = open_disk_cache(o);

	if (rc)
		return rc;
	o->fetcher.alone = o->set.external == H5_EXTERNAL_NONE && !o->is_folder;
	o->fetcher.confine = o->sandbox ? h5_sandbox_enter_fetcher : NULL;
	rc = h5_fetcher_start(&o->fetcher, &o->set.remote);
	if (!rc)
		h5_remote_set_listener(o->set.remote, say);
	if (o->fetcher.disk_cache >= 0)
		close(o->fetcher.disk_cache);
	/* Only the fetcher needs to know the query, which may be a secret. */
	explicit_bzero(o->url, strlen(o->url));
	return rc;
}

int h5_opening_begin(struct h5_options *o, struct h5_file_set **set, struct h5_opened *opened)
{
	int rc = o->url ? h5_opening_start_fetcher(o) : 0;

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
