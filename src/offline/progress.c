#include "offline/progress.h"

#include "base/checked.h"
#include "base/escape.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
	REDRAWN_AFTER = 200000000, /* nanoseconds between two drawings of the line */
	WIDTH = 80,		   /* of a terminal that does not tell its own */
	LINE_MOST = 1 << 16,
	SECOND = 1000000000,
};

#define ERASE "\r\033[K"

/* Nanoseconds from one time to the next. */
static uint64_t between(const struct timespec *from, const struct timespec *to)
{
	int64_t time = (int64_t)(to->tv_sec - from->tv_sec) * SECOND + to->tv_nsec - from->tv_nsec;

	return time > 0 ? (uint64_t)time : 0;
}

/* Columns of the terminal; 0: standard error is none. */
static unsigned terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size))
		return 0;
	return size.ws_col ? size.ws_col : WIDTH;
}

static void add_bytes(struct h5_buf *line, uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	double shown = (double)bytes;
	const char *unit = units;

	if (bytes < 1024) {
		h5_buf_printf(line, "%" PRIu64 " bytes", bytes);
		return;
	}
	for (shown /= 1024; shown >= 1024; shown /= 1024)
		unit++;
	h5_buf_printf(line, "%.*f %ciB", shown < 10 ? 1 : 0, shown, *unit);
}

static void add_time(struct h5_buf *line, double seconds)
{
	uint64_t s = seconds < 1e9 ? (uint64_t)seconds : 1000000000;

	if (s >= 3600)
		h5_buf_printf(line, "%" PRIu64 ":%02u:%02u", s / 3600, (unsigned)(s / 60 % 60),
			      (unsigned)(s % 60));
	else
		h5_buf_printf(line, "%u:%02u", (unsigned)(s / 60), (unsigned)(s % 60));
}

static void add_numbers(struct h5_buf *line, const struct h5_progress *p, uint64_t done, uint64_t elapsed)
{
	double rate = elapsed ? (double)done * (double)SECOND / (double)elapsed : 0;

	add_bytes(line, done);
	/* The total may be an estimate. */
	if (p->total && done <= p->total) {
		h5_buf_text(line, " of ");
		add_bytes(line, p->total);
	}
	if (rate < 1 || elapsed < SECOND)
		return;
	h5_buf_text(line, ", ");
	add_bytes(line, (uint64_t)rate);
	h5_buf_text(line, "/s");
	if (p->total && done <= p->total) {
		h5_buf_text(line, ", ");
		add_time(line, (double)(p->total - done) / rate);
		h5_buf_text(line, " left");
	}
}

/* How many bytes of the UTF-8 text fit into so many columns. Characters of three bytes or more may be two
 * columns wide. */
static size_t fitting(const char *text, size_t size, unsigned columns)
{
	size_t at = 0;

	while (at < size) {
		unsigned char c = (unsigned char)text[at];
		size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
		unsigned width = n > 2 ? 2 : 1;

		assert(n <= size - at);
		if (columns < width)
			break;
		columns -= width;
		at += n;
	}
	return at;
}

void h5_progress_begin(struct h5_progress *progress, uint64_t total)
{
	progress->wanted = progress->wanted && terminal_width();
	progress->drawn = false;
	progress->total = total;
	clock_gettime(CLOCK_MONOTONIC, &progress->begin);
	progress->last = (struct timespec){0};
}

void h5_progress_show(struct h5_progress *progress, uint64_t done, const char *what, size_t size)
{
	struct timespec now;
	struct h5_buf line;
	unsigned width;

	if (!progress || !progress->wanted)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (between(&progress->last, &now) < REDRAWN_AFTER)
		return;
	progress->last = now;
	width = terminal_width();
	h5_buf_init(&line, LINE_MOST);
	add_numbers(&line, progress, done, between(&progress->begin, &now));
	h5_buf_text(&line, "  ");
	h5_escape(&line, what, (size_t)h5_min(size, width));
	/* A cursor behind the last column would begin another line. */
	fprintf(stderr, ERASE "%.*s", (int)fitting(line.data, line.size, width ? width - 1 : 0), line.data);
	h5_buf_release(&line);
	progress->drawn = true;
}

void h5_progress_erase(struct h5_progress *progress)
{
	if (progress && progress->drawn)
		fputs(ERASE, stderr);
	if (progress)
		progress->drawn = false;
}
