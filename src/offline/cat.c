#include "offline/offline.h"

#include "base/buf.h"
#include "base/error.h"
#include "offline/progress.h"
#include "offline/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PIECE = 1 << 20,
	PATH_MOST = 1 << 20,
};

static int write_out(const char *data, size_t n, enum h5_offline_result *result)
{
	while (n) {
		ssize_t written = write(STDOUT_FILENO, data, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			*result = H5_OFFLINE_NO_OUTPUT;
			return written ? -errno : -EIO;
		}
		data += written;
		n -= (size_t)written;
	}
	return 0;
}

/* The reads come in order, so that chunks are decoded ahead by the workers meanwhile. */
static int copy_out(struct h5_vfs *vfs, struct h5_handle *handle, const char *name,
		    struct h5_progress *progress, enum h5_offline_result *result)
{
	char *piece = malloc(PIECE);
	uint64_t offset = 0;
	size_t got = PIECE;
	int rc = piece ? 0 : -ENOMEM;

	while (!rc && got) {
		h5_walk_request(vfs);
		rc = h5_vfs_read(handle, offset, piece, PIECE, &got);
		if (!rc)
			rc = write_out(piece, got, result);
		offset += got;
		if (!rc)
			h5_progress_show(progress, offset, name, strlen(name));
	}
	h5_progress_erase(progress);
	free(piece);
	return rc;
}

int h5_offline_cat(struct h5_vfs *vfs, const char *path, const char *name, struct h5_progress *progress,
		   enum h5_offline_result *result)
{
	struct h5_vfs_entry entry;
	struct h5_handle *handle;
	struct h5_buf way;
	int rc;

	*result = H5_OFFLINE_FAILED;
	h5_buf_init(&way, PATH_MOST);
	rc = h5_walk_find(vfs, path, &entry, &way);
	h5_buf_release(&way);
	if (rc)
		return rc;
	h5_walk_request(vfs);
	rc = S_ISDIR(entry.st.st_mode) ? -EISDIR : h5_vfs_open_file(vfs, entry.node, O_RDONLY, &handle);
	if (!rc) {
		h5_progress_begin(progress, entry.size_known ? (uint64_t)entry.st.st_size : 0);
		rc = copy_out(vfs, handle, name, progress, result);
		h5_vfs_close_file(handle);
	}
	h5_walk_forget(vfs, entry.node);
	if (!rc)
		*result = H5_OFFLINE_SOUND;
	return rc;
}
