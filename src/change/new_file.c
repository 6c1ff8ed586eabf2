#include "change/new_file.h"

#include "base/error.h"
#include "change/object_header_layout.h"
#include "format/btree1.h"
#include "format/header_messages.h"
#include "format/named_message.h"
#include "format/superblock.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FILE_SIZE = 512,
	EXTENSION_SIZE = 24, /* bytes of the superblock's extension, unused ones included */
	ATTEMPTS = 100,	     /* at a name that nobody has */
	/* Nodes of version 1 B-trees of chunks have room for twice so many. Each dataset has a whole node,
	 * and with libhdf5's 32 that has more than 2,000 bytes. The other two are libhdf5's. */
	CHUNK_K = 8,
	GROUP_INTERNAL_K = 16,
	GROUP_LEAF_K = 4,
};

/* ---- its bytes ---- */

/* Version 1 B-trees are the index of chunks that change their number, as readers know it that know no
 * version 3 of the superblock. */
static void encode_extension(struct h5_writer *w)
{
	const struct h5_btree1_k k = {
		.chunk = CHUNK_K, .group_internal = GROUP_INTERNAL_K, .group_leaf = GROUP_LEAF_K};
	uint8_t body[H5_BTREE1_K_SIZE];
	struct h5_writer to_body = h5_writer_init(body, sizeof body, 8, 8);
	struct h5_object_header prefix = {.version = 2};
	const struct h5_message message = {.type = H5_MSG_BTREE_K, .data = body, .size = sizeof body};
	uint8_t *begin = w->p;
	unsigned laid;
	bool fits;

	h5_btree1_k_encode(&to_body, &k);
	prefix.chunk_size = h5_message_space(&prefix, &message);
	h5_object_header_encode(w, &prefix);
	fits = h5_header_lay(&prefix, w->p, (size_t)prefix.chunk_size, &message, 1, &laid);
	assert(fits);
	(void)fits;
	h5_header_seal(begin, (size_t)(w->p - begin) + (size_t)prefix.chunk_size + H5_OBJECT_HEADER_CHECKSUM);
	w->p = begin + EXTENSION_SIZE;
}

/* The root group takes all that is left; the room in it is for links. */
static void encode_root(struct h5_writer *w, uint32_t time)
{
	const struct h5_named_info info = {
		.tracks_order = true, .heap = H5_UNDEF, .name_index = H5_UNDEF, .order_index = H5_UNDEF};
	uint8_t links[H5_NAMED_INFO_MAX], group[H5_GROUP_INFO_MAX];
	struct h5_writer to_links = h5_writer_init(links, sizeof links, 8, 8);
	struct h5_writer to_group = h5_writer_init(group, sizeof group, 8, 8);
	struct h5_object_header prefix = {.version = 2, .flags = H5_HEADER_TIMES, .mtime = time};
	struct h5_message messages[2] = {{.type = H5_MSG_LINK_INFO, .data = links},
					 {.type = H5_MSG_GROUP_INFO, .data = group}};
	const uint8_t *begin = w->p;
	size_t n = (size_t)(w->end - w->p), head;
	unsigned laid;
	bool fits;

	h5_link_info_encode(&to_links, &info);
	h5_group_info_encode(&to_group, &(struct h5_group_info){0});
	messages[0].size = (uint32_t)h5_writer_at(&to_links);
	messages[1].size = (uint32_t)h5_writer_at(&to_group);
	/* The size of the messages has two bytes in the prefix, whatever of these numbers it is. */
	prefix.chunk_size = n - H5_OBJECT_HEADER_CHECKSUM;
	h5_object_header_encode(w, &prefix);
	head = (size_t)(w->p - begin);
	prefix.chunk_size -= head;
	w->p -= head;
	h5_object_header_encode(w, &prefix);
	fits = h5_header_lay(&prefix, w->p, (size_t)prefix.chunk_size, messages, 2, &laid);
	assert(fits);
	(void)fits;
	h5_header_seal(w->p - head, n);
}

static void encode_file(uint8_t bytes[FILE_SIZE], uint8_t superblock, uint32_t time)
{
	struct h5_writer w = h5_writer_init(bytes, FILE_SIZE, 8, 8);
	const bool extended = superblock < 3;
	const struct h5_superblock sb = {.version = superblock,
					 .size_of_offsets = 8,
					 .size_of_lengths = 8,
					 .extension = extended ? H5_SUPERBLOCK_NEW : H5_UNDEF,
					 .end = FILE_SIZE,
					 .root = H5_SUPERBLOCK_NEW + (extended ? EXTENSION_SIZE : 0)};

	memset(bytes, 0, FILE_SIZE);
	h5_superblock_encode(&w, &sb);
	assert(!w.err);
	if (extended)
		encode_extension(&w);
	encode_root(&w, time);
}

/* ---- its place ---- */

static int refuse(const char *path)
{
	int code = errno;

	return h5_fail(-code, H5_UNDEF, "%s cannot be made: %s", path, strerror(code));
}

static int write_all(int fd, const uint8_t *data, size_t n)
{
	while (n) {
		ssize_t written = write(fd, data, n);

		if (written < 0 && errno != EINTR)
			return -1;
		data += written > 0 ? written : 0;
		n -= written > 0 ? (size_t)written : 0;
	}
	return fsync(fd);
}

/* Gives the file its name, if nothing has that. Not all file systems can rename without replacing, and not
 * all have hard links. */
static int give_name(const char *from, const char *to)
{
	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	return link(from, to) || unlink(from) ? -1 : 0;
}

/* Opens a new file beside the path; *name is the caller's. */
static int open_beside(const char *path, char **name, int *fd)
{
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		if (asprintf(name, "%s.h5fs-new-%ld", path, (long)getpid() + i) < 0) {
			*name = NULL;
			return h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
		}
		*fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (*fd >= 0)
			return 0;
		free(*name);
		*name = NULL;
		if (errno != EEXIST)
			break;
	}
	return refuse(path);
}

static int sync_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int rc = fd < 0 || fsync(fd) ? -1 : 0;

	/* A folder that cannot be read cannot be synced either. */
	if (rc && (errno == EACCES || errno == EINVAL))
		rc = 0;
	if (fd >= 0)
		close(fd);
	free(folder);
	return rc;
}

int h5_new_file_make(const char *path, uint8_t superblock, uint32_t time)
{
	uint8_t bytes[FILE_SIZE];
	char *name = NULL;
	int fd = -1, rc;

	if (!faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	encode_file(bytes, superblock, time);
	rc = open_beside(path, &name, &fd);
	if (rc)
		return rc;
	if (write_all(fd, bytes, sizeof bytes))
		rc = refuse(path);
	if (close(fd) && !rc)
		rc = refuse(path);
	if (!rc && give_name(name, path))
		rc = errno == EEXIST ? -EEXIST : refuse(path);
	if (rc)
		unlink(name);
	else if (sync_folder(path))
		rc = refuse(path);
	free(name);
	return rc;
}
