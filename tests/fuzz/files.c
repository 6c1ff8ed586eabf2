/* Whole files: read, checked, recovered by a journal, and written. */
#include "base/checked.h"
#include "base/interrupt.h"
#include "format/subfiling.h"
#include "fuzz.h"
#include "io/stripes.h"
#include "mount.h"
#include "offline/check.h"
#include "store/onion.h"
#include "write.h"

#include <string.h>

/* The last byte of the file also chooses options. */
static void run_read(const void *arg, const uint8_t *data, size_t size)
{
	uint8_t choice = size ? data[size - 1] : 0;
	const struct h5_file_set_options options = fuzz_set_options(choice & 1);
	const struct h5_vfs_options vfs_options = {
		.order_by_creation = choice & 2, .raw_attributes = choice & 4, .zarr_decoded = choice & 4};
	struct fuzz_budget budget = FUZZ_BUDGET;
	struct fuzz_walk walk = {.budget = &budget,
				 .honest = fuzz_looks_honest(data, size),
				 .views = !(choice & 8),
				 .first_view = size / 8};
	struct h5_file_set *set;

	(void)arg;
	fuzz_wrong_checksums = 0;
	fuzz_request(&budget);
	if (h5_file_set_open_memory(data, size, &options, &set))
		return;
	fuzz_request(&budget);
	if (!h5_vfs_open(set, &vfs_options, &walk.vfs)) {
		fuzz_walk(&walk);
		h5_interrupt_begin(NULL, NULL);
		h5_vfs_close(walk.vfs);
	}
	h5_file_set_close(set);
}

static void hear(void *arg, const char *path, const struct h5_error *error)
{
	(void)arg;
	fuzz_touch(path, strlen(path));
	FUZZ_HOLDS(error->code);
}

/* What h5fs --check does. */
static void run_check(const void *arg, const uint8_t *data, size_t size)
{
	const struct h5_file_set_options options = fuzz_set_options(false);
	struct fuzz_budget budget = FUZZ_BUDGET;
	struct h5_check check = {.found = hear};
	struct h5_file_set *set;

	(void)arg;
	fuzz_request(&budget);
	if (h5_file_set_open_memory(data, size, &options, &set))
		return;
	fuzz_request(&budget);
	h5_check_file(h5_file_set_root(set), &check);
	h5_extents_release(&check.unused);
	h5_interrupt_begin(NULL, NULL);
	h5_file_set_close(set);
}

/* A file with a journal beside it, which is hostile input like any other: behind the file's bytes stand the
 * journal's, the size of these (2 bytes), and how the file is opened. */
static void run_journal(const void *arg, const uint8_t *data, size_t size)
{
	struct fuzz_mount mount;
	struct fuzz_walk walk = {.budget = &mount.budget};
	size_t n;

	(void)arg;
	if (size < 3)
		return;
	n = (size_t)h5_uint_from(data + size - 3, 2);
	size -= 3;
	n = n < size ? n : size;
	fuzz_mount_begin(&mount, data, size - n);
	fuzz_put_file(mount.journal, data + size - n, n);
	if (fuzz_mount_open(&mount, data[size + 2] & 1)) {
		walk.vfs = mount.vfs;
		fuzz_walk(&walk);
		fuzz_mount_close(&mount);
	}
	fuzz_mount_end();
}

static void read_revision(struct h5_onion *onion, uint64_t revision)
{
	struct h5_io_stat st;
	struct h5_io *io;
	char buf[4096];

	if (h5_onion_open_revision(onion, revision, revision & 1, &io))
		return;
	FUZZ_HOLDS(!h5_onion_check(onion, revision));
	FUZZ_HOLDS(!h5_io_stat(io, &st) && st.size <= INT64_MAX && st.stored <= st.size);
	for (unsigned i = 0; i < 64; i++) {
		/* From the begin, around the end, and with steps between. */
		uint64_t at = i < 32 ? i * (uint64_t)3001 : st.size - h5_min(st.size, 1u << (i - 32)) / 2;
		size_t got;

		if (h5_io_read_some(io, at, buf, sizeof buf, &got))
			continue;
		FUZZ_HOLDS(got <= sizeof buf && (at >= st.size ? !got : got <= st.size - at));
		fuzz_touch(buf, got);
	}
	h5_io_close(io);
}

/* A file with revisions: behind its bytes stand those of the onion file, and the size of these (2 bytes). */
static void run_onion(const void *arg, const uint8_t *data, size_t size)
{
	struct fuzz_budget budget = FUZZ_BUDGET;
	struct h5_io *origin, *pages;
	struct h5_onion *onion;
	size_t n;

	(void)arg;
	if (size < 2)
		return;
	n = (size_t)h5_min(h5_uint_from(data + size - 2, 2), size - 2);
	size -= 2 + n;
	fuzz_request(&budget);
	if (h5_io_open_memory(data, size, &origin))
		return;
	if (h5_io_open_memory(data + size, n, &pages)) {
		h5_io_close(origin);
		return;
	}
	if (h5_onion_open(origin, pages, &onion))
		return;
	FUZZ_HOLDS(h5_onion_newest(onion) <= H5_REVISIONS_MAX);
	for (uint64_t i = h5_onion_first(onion); i <= h5_onion_newest(onion) && i < 8; i++)
		read_revision(onion, i);
	h5_interrupt_begin(NULL, NULL);
	h5_onion_close(onion);
}

enum { SUBFILES_MAX = 16 };

/* The subfiles of a configuration: each has a part of the data, but each eighth is missing. */
static struct h5_io *open_subfiles(const struct h5_subfiling_config *config, const uint8_t *data, size_t size)
{
	unsigned count = (unsigned)h5_min(config->subfiles, SUBFILES_MAX);
	struct h5_io_member list[SUBFILES_MAX] = {0};
	struct h5_io *stub, *io = NULL;

	FUZZ_HOLDS(!h5_io_open_memory("", 0, &stub));
	for (unsigned i = 0; i < count; i++) {
		list[i].name = strdup("subfile");
		FUZZ_HOLDS(list[i].name);
		if (i % 8 < 7)
			FUZZ_HOLDS(!h5_io_open_memory(data + size * i / count,
						      size * (i + 1) / count - size * i / count,
						      &list[i].io));
	}
	FUZZ_HOLDS(!h5_io_open_stripes(stub, list, count, config->stripe_size, &io));
	return io;
}

/* The configuration of a file of the subfiling driver, whose text also is what the subfiles hold. */
static void run_subfiles(const void *arg, const uint8_t *data, size_t size)
{
	static struct h5_subfiling_config config;
	struct h5_io_stat st;
	struct h5_io *io;
	char buf[1024];

	(void)arg;
	if (h5_subfiling_config_decode((const char *)data, size, &config))
		return;
	FUZZ_HOLDS(config.stripe_size && config.stripe_size <= INT64_MAX && config.subfiles);
	FUZZ_HOLDS(memchr(config.folder, 0, sizeof config.folder));
	io = open_subfiles(&config, data, size);
	FUZZ_HOLDS(!h5_io_stat(io, &st) && st.size <= INT64_MAX && st.stored <= st.size);
	for (unsigned i = 0; i < 64; i++) {
		uint64_t at = i < 32 ? i * (uint64_t)101 : st.size - h5_min(st.size, 1u << (i - 32)) / 2;
		size_t got;

		if (h5_io_read_some(io, at, buf, sizeof buf, &got))
			continue;
		FUZZ_HOLDS(got <= sizeof buf && (at >= st.size ? !got : got <= st.size - at));
		fuzz_touch(buf, got);
	}
	h5_io_close(io);
}

static const struct fuzz_target targets[] = {
	{"file_read", run_read, NULL, 0},
	{"file_check", run_check, NULL, 0},
	{"file_journal", run_journal, NULL, 256},
	{"file_onion", run_onion, NULL, 256},
	{"file_subfiles", run_subfiles, NULL, 0},
	{"file_write", fuzz_write, NULL, FUZZ_OPERATIONS},
	{"file_requests", fuzz_requests, NULL, FUZZ_REQUESTS},
};

bool fuzz_file_at(unsigned n, struct fuzz_target *target)
{
	if (n >= sizeof targets / sizeof *targets)
		return false;
	*target = targets[n];
	return true;
}
