/* The line on the terminal: bytes, rate, time left. tests/offline/offline_progress.py runs whole commands. */
#include "offline/progress.h"

#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MIB = 1 << 20, COLUMNS = 120 };

static char line[512];

/* Draws the line on a new terminal, as if `done` bytes of `total` had taken so many seconds. Returns the
 * line. */
static const char *drawn(uint64_t total, uint64_t done, long seconds)
{
	const struct winsize size = {.ws_row = 24, .ws_col = COLUMNS};
	struct h5_progress progress = {.wanted = true};
	int master = posix_openpt(O_RDWR | O_NOCTTY), terminal, saved;
	ssize_t n;

	ck_assert_int_ge(master, 0);
	ck_assert(!grantpt(master) && !unlockpt(master));
	terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
	ck_assert_int_ge(terminal, 0);
	ck_assert_int_eq(ioctl(terminal, TIOCSWINSZ, &size), 0);
	saved = dup(STDERR_FILENO);
	dup2(terminal, STDERR_FILENO);
	h5_progress_begin(&progress, total);
	progress.begin.tv_sec -= seconds;
	h5_progress_show(&progress, done, "/x", 2);
	dup2(saved, STDERR_FILENO);
	n = read(master, line, sizeof line - 1);
	ck_assert_int_gt(n, 0);
	line[n] = 0;
	close(saved);
	close(terminal);
	close(master);
	return strrchr(line, '\r') + 1;
}

static void assert_drawn(const char *is, const char *expected)
{
	const char *at = strstr(is, expected);

	ck_assert_msg(at, "%s, not %s", is, expected);
}

/* They hold even if the machine stops for some tenths of a second. */
START_TEST(rate_and_time_left)
{
	assert_drawn(drawn(120 * MIB, 60 * MIB, 40), "60 MiB of 120 MiB, 1.5 MiB/s, 0:40 left  /x");
	assert_drawn(drawn(7200ull * MIB, 0, 40), "0 bytes of 7.0 GiB  /x");
	assert_drawn(drawn(UINT64_C(7290) * 60 * MIB, 60 * MIB, 60), " left  /x");
	assert_drawn(drawn(UINT64_C(7290) * 60 * MIB, 60 * MIB, 60), ", 121:");
}
END_TEST

START_TEST(what_is_not_known)
{
	ck_assert_str_eq(strstr(drawn(0, 60 * MIB, 40), "60"), "60 MiB, 1.5 MiB/s  /x");
	/* The total was an estimate, and too low. */
	ck_assert_str_eq(strstr(drawn(MIB, 60 * MIB, 40), "60"), "60 MiB, 1.5 MiB/s  /x");
	/* Too early to tell. */
	ck_assert_str_eq(strstr(drawn(120 * MIB, 60 * MIB, 0), "60"), "60 MiB of 120 MiB  /x");
}
END_TEST

UNIT_MAIN("progress", rate_and_time_left, what_is_not_known)
