#include "offline/offline.h"

#include "base/escape.h"
#include "change/transaction.h"
#include "offline/check.h"
#include "offline/progress.h"
#include "store/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MOST = 1 << 24 };

static void found(void *arg, const char *path, const struct h5_error *error)
{
	struct h5_buf line;

	h5_buf_init(&line, LINE_MOST);
	h5_escape(&line, path, strlen(path));
	h5_buf_text(&line, ": ");
	h5_escape(&line, error->text, strlen(error->text));
	if (error->address != H5_UNDEF)
		h5_buf_printf(&line, " at address %" PRIu64, error->address);
	h5_progress_erase(arg);
	printf("%.*s\n", (int)line.size, line.data);
	fflush(stdout);
	h5_buf_release(&line);
}

/* By the stored bytes of chunks, since these take most of the time. */
static void show_progress(void *arg, const char *path, uint64_t bytes)
{
	h5_progress_show(arg, bytes, path, strlen(path));
}

static uint64_t bytes_of(const struct h5_extents *extents)
{
	uint64_t bytes = 0;

	h5_extents_each(e, extents) bytes += e->size;
	return bytes;
}

static void print_unused(const struct h5_check *check)
{
	if (check->unused_known)
		printf("nothing refers to %" PRIu64 " bytes", bytes_of(&check->unused));
	else
		printf("how many bytes nothing refers to is not certain");
	if (check->values_known && check->lost_values)
		printf(", nor to %" PRIu64 " values in the global heap, of %" PRIu64 " bytes",
		       check->lost_values, check->lost_bytes);
	putchar('\n');
}

/* Checks the records of revisions that are not shown. */
static int check_revisions(struct h5_file_set *set, struct h5_check *check)
{
	const struct h5_onion *onion = h5_file_set_revisions(set);
	int rc = 0;

	if (!onion)
		return 0;
	for (uint64_t i = h5_onion_first(onion); i <= h5_onion_newest(onion) && !rc; i++) {
		rc = i == h5_file_set_shown_revision(set) ? 0 : h5_file_set_check_revision(set, i);
		if (rc != -EUCLEAN && rc != -ENOTSUP)
			continue;
		*(rc == -EUCLEAN ? &check->damaged : &check->unknown) += 1;
		check->found(check->arg, "(revisions)", h5_error_last());
		rc = 0;
	}
	return rc;
}

/* Checks the file, and prints what is found. */
static int check_file(struct h5_file_set *set, struct h5_progress *progress, struct h5_check *check,
		      enum h5_offline_result *result)
{
	struct h5_file *file = h5_file_set_root(set);
	int rc;

	*check = (struct h5_check){.found = found, .progress = show_progress, .arg = progress};
	if (progress)
		h5_progress_begin(progress, h5_file_size(file));
	rc = h5_check_file(file, check);
	if (!rc)
		rc = check_revisions(set, check);
	h5_progress_erase(progress);
	*result = check->damaged   ? H5_OFFLINE_DAMAGED
		  : check->unknown ? H5_OFFLINE_UNKNOWN
				   : H5_OFFLINE_SOUND;
	return rc;
}

static void print_sum(const char *name, const struct h5_check *check)
{
	printf("%s: %" PRIu64 " objects, %" PRIu64 " chunks decoded: ", name, check->objects, check->chunks);
	if (check->damaged)
		printf("%" PRIu64 " damaged", check->damaged);
	else
		printf("no damage found");
	if (check->excess)
		printf(", %" PRIu64 " counts that are too high", check->excess);
	if (check->unknown)
		printf(", %" PRIu64 " that this version cannot verify", check->unknown);
	printf("; ");
	print_unused(check);
}

int h5_offline_check(struct h5_file_set *set, const char *name, struct h5_progress *progress,
		     enum h5_offline_result *result)
{
	struct h5_check check;
	int rc = check_file(set, progress, &check, result);

	if (!rc)
		print_sum(name, &check);
	if (!rc && h5_file_set_revisions(set))
		printf("%s: this is revision %" PRIu64
		       "; of other revisions the records were verified, but not what they hold\n",
		       name, h5_file_set_shown_revision(set));
	h5_extents_release(&check.unused);
	return rc;
}

static int give_back(struct h5_file *file, const char *name, const struct h5_extents *unused)
{
	struct h5_io_stat before, after;
	int rc = h5_file_stat(file, &before);

	if (!rc)
		rc = h5_tx_reclaim(file, unused);
	if (!rc)
		rc = h5_file_stat(file, &after);
	if (!rc)
		printf("%s: nothing refers to %" PRIu64 " bytes: of %" PRIu64 " bytes on the disk %" PRIu64
		       " are left\n",
		       name, bytes_of(unused), before.stored, after.stored);
	return rc;
}

int h5_offline_reclaim(struct h5_file_set *set, const char *name, struct h5_progress *progress,
		       enum h5_offline_result *result)
{
	struct h5_check check;
	int rc = check_file(set, progress, &check, result);

	if (!rc && check.unused_known)
		rc = give_back(h5_file_set_root(set), name, &check.unused);
	else if (!rc)
		print_sum(name, &check);
	if (!rc && !check.unused_known && *result == H5_OFFLINE_SOUND)
		*result = H5_OFFLINE_UNKNOWN;
	h5_extents_release(&check.unused);
	return rc;
}
