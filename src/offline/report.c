#include "offline/offline.h"

#include "base/escape.h"
#include "offline/check.h"
#include "store/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	BAR = 30,		   /* characters of the bar */
	REDRAWN_AFTER = 100000000, /* nanoseconds between two drawings of the bar */
	PATH_SHOWN = 40,
	LINE_MOST = 1 << 24,
};

#define ERASE "\r\033[K"

struct report {
	uint64_t file_size;
	bool terminal; /* standard error is one */
	struct timespec drawn;
};

static void erase_bar(const struct report *r)
{
	if (r->terminal)
		fputs(ERASE, stderr);
}

static void found(void *arg, const char *path, const struct h5_error *error)
{
	struct h5_buf line;

	h5_buf_init(&line, LINE_MOST);
	h5_escape(&line, path, strlen(path));
	h5_buf_text(&line, ": ");
	h5_escape(&line, error->text, strlen(error->text));
	if (error->address != H5_UNDEF)
		h5_buf_printf(&line, " at address %" PRIu64, error->address);
	erase_bar(arg);
	printf("%.*s\n", (int)line.size, line.data);
	fflush(stdout);
	h5_buf_release(&line);
}

/* Shows how far the check is, by the stored bytes of chunks, since these take most of the time. */
static void draw_bar(void *arg, const char *path, uint64_t bytes)
{
	struct report *r = arg;
	struct timespec now;
	struct h5_buf shown;
	unsigned full;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if ((int64_t)(now.tv_sec - r->drawn.tv_sec) * 1000000000 + now.tv_nsec - r->drawn.tv_nsec <
	    REDRAWN_AFTER)
		return;
	r->drawn = now;
	full = r->file_size ? (unsigned)((double)bytes / (double)r->file_size * (double)BAR) : 0;
	if (full > BAR)
		full = BAR;
	h5_buf_init(&shown, LINE_MOST);
	h5_escape(&shown, path, strnlen(path, PATH_SHOWN));
	fprintf(stderr, ERASE "[%.*s%*s] %.*s", (int)full, "##############################",
		(int)(BAR - full), "", (int)shown.size, shown.data);
	h5_buf_release(&shown);
}

int h5_offline_check(struct h5_file_set *set, const char *name, enum h5_offline_result *result)
{
	struct h5_file *file = h5_file_set_root(set);
	struct report r = {.file_size = h5_file_size(file), .terminal = isatty(STDERR_FILENO)};
	struct h5_check check = {.found = found, .progress = r.terminal ? draw_bar : NULL, .arg = &r};
	int rc = h5_check_file(file, &check);

	erase_bar(&r);
	if (rc)
		return rc;
	*result = check.damaged ? H5_OFFLINE_DAMAGED : check.unknown ? H5_OFFLINE_UNKNOWN : H5_OFFLINE_SOUND;
	printf("%s: %" PRIu64 " objects, %" PRIu64 " chunks decoded: ", name, check.objects, check.chunks);
	if (check.damaged)
		printf("%" PRIu64 " damaged", check.damaged);
	else
		printf("no damage found");
	if (check.unknown)
		printf(", %" PRIu64 " that this version cannot verify", check.unknown);
	putchar('\n');
	return 0;
}
