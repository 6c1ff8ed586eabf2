#include "fuse/report.h"

#include "base/error.h"
#include "fuse/log.h"
#include "fuse/status.h"
#include "store/file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int status_of(const struct h5_options *o, int code)
{
	static const int remote[] = {
		[H5_REMOTE_NOT_FOUND] = EXIT_NOT_FOUND,	    [H5_REMOTE_FORBIDDEN] = EXIT_FORBIDDEN,
		[H5_REMOTE_NO_RANGES] = EXIT_NO_RANGES,	    [H5_REMOTE_NETWORK] = EXIT_NETWORK,
		[H5_REMOTE_CERTIFICATE] = EXIT_CERTIFICATE, [H5_REMOTE_OTHER] = EXIT_FILE,
	};
	enum h5_remote_reason reason = o->set.remote ? h5_remote_reason(o->set.remote) : H5_REMOTE_FINE;

	if (o->disk_cache_fails)
		return EXIT_DISK_CACHE;
	if (reason < sizeof remote / sizeof *remote && remote[reason])
		return remote[reason];
	if (o->is_folder && o->url && (code == -ENOENT || code == -EIO))
		return code == -EIO ? EXIT_NETWORK : EXIT_NOT_FOUND;
	switch (code) {
	case -EROFS:
	case -EACCES:
	case -EPERM:
	case -ENOSPC:
		return o->set.writable ? EXIT_READ_ONLY : EXIT_FILE;
	case -EBUSY:
	case -EMLINK:
		return EXIT_FORCE;
	case -EUCLEAN:
	case -EIO:
		return EXIT_DAMAGED;
	case -EWOULDBLOCK:
		return EXIT_LOCKED;
	case -ENOTSUP:
		return EXIT_UNSUPPORTED;
	default:
		return EXIT_FILE;
	}
}

int h5_report_refusal(const struct h5_options *o, int code)
{
	const struct h5_error *e = h5_error_last();
	int status = status_of(o, code);
	const char *what = status == EXIT_READ_ONLY ? "cannot be written: " : "";

	if (e->code != code)
		h5_log("%s: %s%s", o->file, what, strerror(-code));
	else if (e->address == H5_UNDEF)
		h5_log("%s: %s%s", o->file, what, e->text);
	else
		h5_log("%s: %s%s at address %" PRIu64, o->file, what, e->text, e->address);
	return status;
}

int h5_report_incomplete(const struct h5_options *o)
{
	h5_log("%s: not all of it could be fetched, so damage may be none", o->file);
	return EXIT_NETWORK;
}

bool h5_report_is_marked(const struct h5_file *file)
{
	const struct h5_superblock *sb = h5_file_superblock(file);

	return sb->version >= 3 && sb->consistency & (H5_FLAG_WRITING | H5_FLAG_SWMR);
}

const char *h5_report_recovery(const struct h5_opened *opened)
{
	switch (opened->recovered.what) {
	case H5_RECOVERY_REPLAYED:
		return "what a killed mount had begun to commit was completed from its journal";
	case H5_RECOVERY_STALE:
		return "its journal is stale, since another program has written the file: not replayed";
	case H5_RECOVERY_BUSY:
		return "another h5fs writes it";
	case H5_RECOVERY_UNFIT:
		return "its journal is not heeded: it is shown as it is";
	default:
		return opened->recovered.swmr ? "the marks of a killed swmr mount were cleared" : NULL;
	}
}

void h5_report_warnings(const struct h5_options *o, const char *name, const struct h5_file_set *set,
			const struct h5_opened *opened)
{
	struct h5_file *file = h5_file_set_root(set);
	const struct h5_superblock *sb = h5_file_superblock(file);
	const char *missing = h5_file_missing(file), *warning = opened->warning,
		   *done = h5_report_recovery(opened);
	uint64_t end = sb->base + h5_file_end(file);

	if (warning && done)
		h5_log_at(H5_LOG_NORMAL, "%s: %s (%s)", name, done, warning);
	else if (warning || done)
		h5_log_at(H5_LOG_NORMAL, "%s: %s", name, warning ? warning : done);
	if (!o->set.writable && h5_report_is_marked(file))
		h5_log_at(
			H5_LOG_NORMAL,
			"%s: marked as open for writing: a program writes it without a lock, or has crashed",
			name);
	if (h5_file_set_revisions(set) && h5_onion_is_written(h5_file_set_revisions(set)))
		h5_log_at(H5_LOG_NORMAL,
			  "%s: a program writes a new revision of it, or has crashed: those before are shown",
			  name);
	if (missing)
		h5_log_at(H5_LOG_NORMAL, "%s: missing%s: %s; what lies in it cannot be read", name,
			  o->set.external == H5_EXTERNAL_NONE ? ", or not opened (external=none)" : "",
			  missing);
	else if (sb->end != H5_UNDEF && sb->end > end)
		h5_log_at(H5_LOG_NORMAL,
			  "%s: truncated: %" PRIu64 " bytes of %" PRIu64 "; what lies beyond cannot be read",
			  name, end, sb->end);
}
