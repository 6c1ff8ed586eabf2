#include "mount.h"

#include "base/interrupt.h"
#include "change/open.h"
#include "fuzz.h"
#include "offline/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64];

static void remove_folder(void)
{
	rmdir(folder);
}

/* One folder for the process. */
static void make_folder(void)
{
	if (*folder)
		return;
	snprintf(folder, sizeof folder, "%s/h5fs-fuzz.XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	FUZZ_HOLDS(mkdtemp(folder));
	atexit(remove_folder);
}

void fuzz_put_file(const char *path, const uint8_t *data, size_t size)
{
	FILE *f = fopen(path, "wb");

	FUZZ_HOLDS(f && fwrite(data, 1, size, f) == size && !fclose(f));
}

void fuzz_mount_begin(struct fuzz_mount *mount, const uint8_t *data, size_t size)
{
	make_folder();
	*mount = (struct fuzz_mount){.budget = FUZZ_BUDGET};
	snprintf(mount->path, sizeof mount->path, "%s/file.h5", folder);
	snprintf(mount->journal, sizeof mount->journal, "%s.h5fs-journal", mount->path);
	fuzz_put_file(mount->path, data, size);
}

/* A journal may also have been set aside. */
void fuzz_mount_end(void)
{
	DIR *all = opendir(folder);
	struct dirent *entry;

	FUZZ_HOLDS(all);
	while ((entry = readdir(all)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(all), entry->d_name, 0);
	closedir(all);
}

bool fuzz_mount_open(struct fuzz_mount *mount, bool writable)
{
	struct h5_file_set_options options = fuzz_set_options(false);
	struct h5_vfs_options vfs_options = {
		.writable = writable, .commit_at_close = true, .gather = 1 << 14, .file_fd = -1};

	options.writable = writable;
	options.check = h5_vfs_check_object;
	fuzz_request(&mount->budget);
	if (h5_open_file(mount->path, &options, &mount->set, NULL))
		return false;
	if (!h5_vfs_open(mount->set, &vfs_options, &mount->vfs))
		return true;
	h5_file_set_close(mount->set);
	mount->set = NULL;
	return false;
}

void fuzz_mount_close(struct fuzz_mount *mount)
{
	h5_interrupt_begin(NULL, NULL);
	h5_vfs_close(mount->vfs);
	h5_file_set_close(mount->set);
	mount->vfs = NULL;
	mount->set = NULL;
}

static void hear(void *arg, const char *path, const struct h5_error *error)
{
	(void)arg;
	(void)path;
	(void)error;
}

uint64_t fuzz_mount_damage(struct fuzz_mount *mount, bool *finished)
{
	struct h5_check check = {.found = hear};

	fuzz_request(&mount->budget);
	*finished = !h5_check_file(h5_file_set_root(mount->set), &check) && !check.unknown;
	h5_extents_release(&check.unused);
	return check.damaged;
}
