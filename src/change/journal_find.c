/* Finds a journal that has a wrong name, since its file was renamed while it was mounted. */
#include "base/error.h"
#include "change/journal_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	NAMES_MAX = 100000, /* that are looked at in one folder */
	OPENED_MAX = 1000,  /* journals among them that are opened */
};

static bool is_journal(const char *name)
{
	size_t n = strlen(name), suffix = sizeof H5_JOURNAL_SUFFIX - 1;

	return n > suffix && !strcmp(name + n - suffix, H5_JOURNAL_SUFFIX);
}

static int search(const struct h5_journal_place *place, DIR *dir, char *name, size_t size)
{
	unsigned names = 0, opened = 0;
	const struct dirent *entry;

	while (names++ < NAMES_MAX && opened < OPENED_MAX && (entry = readdir(dir))) {
		struct h5_journal_header header;

		if (!is_journal(entry->d_name) || strlen(entry->d_name) >= size)
			continue;
		opened++;
		/* Others, and files that are no journals, are passed over. */
		if (!h5_journal_peek(place, entry->d_name, &header) &&
		    h5_journal_same_file(&header.file, &place->file)) {
			strcpy(name, entry->d_name);
			return 0;
		}
	}
	return -ENOENT;
}

int h5_journal_find(const struct h5_journal_place *place, char *name, size_t size)
{
	struct stat st;
	DIR *dir;
	int fd, rc;

	if (!fstatat(place->dirfd, place->name, &st, AT_SYMLINK_NOFOLLOW) || errno != ENOENT)
		return -ENOENT; /* something has the right name, so no other name is looked for */
	fd = openat(place->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -ENOENT;
	}
	rc = search(place, dir, name, size);
	closedir(dir);
	return rc;
}

/* Removes the link beside the file that led to the journal under its old name. That name begins with the
 * file's. */
static void drop_old_pointer(const struct h5_journal_place *place, const char *name)
{
	size_t file = strlen(name) - (sizeof H5_JOURNAL_WHOSE - 1) - (sizeof H5_JOURNAL_SUFFIX - 1);
	char pointer[NAME_MAX + 1], path[PATH_MAX];
	const struct h5_journal_place old = {.beside = place->beside, .pointer = pointer, .path = path};

	if (!place->pointer || file > strlen(name))
		return;
	snprintf(pointer, sizeof pointer, "%.*s" H5_JOURNAL_SUFFIX, (int)file, name);
	snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(place->path, '/') - place->path), place->path,
		 name);
	h5_journal_unpoint(&old);
}

int h5_journal_adopt(const struct h5_journal_place *place, const char *name)
{
	struct h5_journal_place found = *place;
	struct h5_io *io;
	int rc;

	found.name = name;
	found.wrap = NULL;
	rc = h5_journal_open(&found, false, true, &io);
	if (rc)
		return rc;
	rc = renameat2(place->dirfd, name, place->dirfd, place->name, RENAME_NOREPLACE);
	/* Not every file system knows the flag. When the search began, nothing had that name. */
	if (rc && errno == EINVAL)
		rc = renameat(place->dirfd, name, place->dirfd, place->name);
	if (rc)
		rc = h5_fail(-errno, H5_UNDEF, "journal: renaming %s to %s: %s", name, place->name,
			     strerror(errno));
	else
		rc = h5_journal_sync_directory(place->dirfd);
	if (!rc)
		drop_old_pointer(place, name);
	h5_io_close(io);
	return rc;
}
