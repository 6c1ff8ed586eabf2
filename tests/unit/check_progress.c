/* The line on the terminal: bytes, rate, time left; and signals that stop the work.
 * tests/offline/offline_progress.py runs whole commands. */
#include "offline/progress.h"
#include "offline/stop.h"

#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20, COLUMNS = 120, SECOND = 1000000000, BEGIN = 5000 };

static char line[512];

/* The time that it is; the clock stands still. */
static struct timespec now;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	(void)clock;
	*t = now;
	return 0;
}

/* A terminal, of which standard error is the end. */
struct terminal {
	int master, end, saved;
};

static void open_terminal(struct terminal *t, unsigned short columns)
{
	const struct winsize size = {.ws_row = 24, .ws_col = columns};

	t->master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	ck_assert_int_ge(t->master, 0);
	ck_assert(!grantpt(t->master) && !unlockpt(t->master));
	t->end = open(ptsname(t->master), O_RDWR | O_NOCTTY);
	ck_assert_int_ge(t->end, 0);
	ck_assert_int_eq(ioctl(t->end, TIOCSWINSZ, &size), 0);
	t->saved = dup(STDERR_FILENO);
	dup2(t->end, STDERR_FILENO);
}

static void close_terminal(struct terminal *t)
{
	dup2(t->saved, STDERR_FILENO);
	close(t->saved);
	close(t->end);
	close(t->master);
}

/* What was drawn since the last call. */
static const char *read_line(struct terminal *t)
{
	ssize_t n = read(t->master, line, sizeof line - 1);

	line[n > 0 ? n : 0] = 0;
	return line;
}

static void set_time(uint64_t nanoseconds)
{
	now = (struct timespec){.tv_sec = BEGIN + (time_t)(nanoseconds / SECOND),
				.tv_nsec = (long)(nanoseconds % SECOND)};
}

/* Draws the line on a new terminal, as if `done` bytes of `total` had taken so long. Returns the line. */
static const char *drawn_after(uint64_t total, uint64_t done, uint64_t nanoseconds, unsigned short columns,
			       const char *what)
{
	struct h5_progress progress = {.wanted = true};
	struct terminal t;

	open_terminal(&t, columns);
	set_time(0);
	h5_progress_begin(&progress, total);
	set_time(nanoseconds);
	h5_progress_show(&progress, done, what, strlen(what));
	read_line(&t);
	close_terminal(&t);
	ck_assert_ptr_eq(strstr(line, "\r\033[K"), line);
	return line + strlen("\r\033[K");
}

static const char *drawn(uint64_t total, uint64_t done, uint64_t seconds)
{
	return drawn_after(total, done, seconds * SECOND, COLUMNS, "/x");
}

START_TEST(rate_and_time_left)
{
	const uint64_t many = UINT64_C(2000000000);

	ck_assert_str_eq(drawn(120 * MIB, 60 * MIB, 40), "60 MiB of 120 MiB, 1.5 MiB/s, 0:40 left  /x");
	ck_assert_str_eq(drawn(7200ull * MIB, 0, 40), "0 bytes of 7.0 GiB  /x");
	ck_assert_str_eq(drawn(3600ull * MIB, MIB, 1), "1.0 MiB of 3.5 GiB, 1.0 MiB/s, 59:59 left  /x");
	ck_assert_str_eq(drawn(3601ull * MIB, MIB, 1), "1.0 MiB of 3.5 GiB, 1.0 MiB/s, 1:00:00 left  /x");
	ck_assert_str_eq(drawn(90062ull * MIB, MIB, 1), "1.0 MiB of 88 GiB, 1.0 MiB/s, 25:01:01 left  /x");
	ck_assert_str_eq(drawn(many, 1, 1), "1 bytes of 1.9 GiB, 1 bytes/s, 277777:46:40 left  /x");
	ck_assert_str_eq(drawn(999999999, 1, 1), "1 bytes of 954 MiB, 1 bytes/s, 277777:46:38 left  /x");
	ck_assert_str_eq(drawn(many, 1, 2), "1 bytes of 1.9 GiB  /x");
	ck_assert_str_eq(drawn(MIB, MIB, 1), "1.0 MiB of 1.0 MiB, 1.0 MiB/s, 0:00 left  /x");
}
END_TEST

START_TEST(what_is_not_known)
{
	ck_assert_str_eq(drawn(0, 60 * MIB, 40), "60 MiB, 1.5 MiB/s  /x");
	/* The total was an estimate, and too low. */
	ck_assert_str_eq(drawn(MIB, 60 * MIB, 40), "60 MiB, 1.5 MiB/s  /x");
	/* Too early to tell. */
	ck_assert_str_eq(drawn(120 * MIB, 60 * MIB, 0), "60 MiB of 120 MiB  /x");
	ck_assert_str_eq(drawn_after(4 * MIB, MIB, SECOND - 1, COLUMNS, "/x"), "1.0 MiB of 4.0 MiB  /x");
	ck_assert_str_eq(drawn_after(4 * MIB, MIB, SECOND, COLUMNS, "/x"),
			 "1.0 MiB of 4.0 MiB, 1.0 MiB/s, 0:03 left  /x");
}
END_TEST

START_TEST(numbers_of_bytes)
{
	static const struct {
		uint64_t bytes;
		const char *shown;
	} cases[] = {
		{0, "0 bytes"},
		{1023, "1023 bytes"},
		{1024, "1.0 KiB"},
		{9 << 10, "9.0 KiB"},
		{10 << 10, "10 KiB"},
		{1023 << 10, "1023 KiB"},
		{1 << 20, "1.0 MiB"},
		{UINT64_C(1) << 40, "1.0 TiB"},
		{UINT64_C(3) << 50, "3.0 PiB"},
		{UINT64_C(15) << 60, "15 EiB"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char expected[64];

		snprintf(expected, sizeof expected, "%s  /x", cases[i].shown);
		ck_assert_str_eq(drawn(0, cases[i].bytes, 0), expected);
	}
}
END_TEST

/* The last column stays free. Some characters are two columns wide. */
START_TEST(widths)
{
	static const struct {
		const char *text;
		unsigned columns;
	} pieces[] = {{"0 bytes  /", 10}, {"\u00e9", 1}, {"\u5bbd", 2}, {"\U0001f600", 2}, {"x", 1}, {"", 9}};
	const char *const name = "/\u00e9\u5bbd\U0001f600x";
	unsigned short columns = 11;
	char expected[64] = "", many[101];

	for (unsigned i = 0; i < 5; i++) {
		strcat(expected, pieces[i].text);
		for (unsigned n = 0; n < pieces[i + 1].columns; n++)
			ck_assert_str_eq(drawn_after(0, 0, 0, columns++, name), expected);
	}
	/* One that does not tell how wide it is. */
	memset(many, 'x', 100);
	many[100] = 0;
	ck_assert_uint_eq(strlen(drawn_after(0, 0, 0, 0, many)), 79);
	ck_assert_uint_eq(strlen(drawn_after(0, 0, 0, 1, many)), 0);
}
END_TEST

/* Five times a second; erased once. */
START_TEST(how_often)
{
	enum { AFTER = SECOND / 5 };
	struct h5_progress progress = {.wanted = true};
	struct terminal t;
	int null;

	open_terminal(&t, COLUMNS);
	set_time(0);
	h5_progress_begin(&progress, 0);
	h5_progress_erase(&progress);
	ck_assert_str_eq(read_line(&t), "");
	for (unsigned i = 0; i < 3; i++) {
		set_time((uint64_t)i * AFTER);
		h5_progress_show(&progress, i, "/x", 2);
		ck_assert_str_ne(read_line(&t), "");
		set_time((uint64_t)(i + 1) * AFTER - 1);
		h5_progress_show(&progress, i, "/x", 2);
		ck_assert_str_eq(read_line(&t), "");
	}
	h5_progress_erase(&progress);
	ck_assert_str_eq(read_line(&t), "\r\033[K");
	h5_progress_erase(&progress);
	ck_assert_str_eq(read_line(&t), "");
	/* What begins then has drawn nothing so far. */
	set_time(4ull * AFTER);
	h5_progress_show(&progress, 3, "/x", 2);
	h5_progress_begin(&progress, 0);
	read_line(&t);
	h5_progress_erase(&progress);
	ck_assert_str_eq(read_line(&t), "");
	h5_progress_show(&progress, 0, "/x", 2);
	ck_assert_str_ne(read_line(&t), "");
	/* Nothing is drawn that nobody wants, or that is nowhere to be seen. */
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	dup2(null, STDERR_FILENO);
	h5_progress_begin(&progress, 0);
	ck_assert(!progress.wanted);
	dup2(t.end, STDERR_FILENO);
	close(null);
	progress.wanted = false;
	h5_progress_begin(&progress, 0);
	set_time(10ull * SECOND);
	h5_progress_show(&progress, 0, "/x", 2);
	ck_assert_str_eq(read_line(&t), "");
	close_terminal(&t);
	h5_progress_show(NULL, 0, "/x", 2);
	h5_progress_erase(NULL);
}
END_TEST

/* ---- signals ---- */

/* Runs in a process of its own; returns how that ends. */
static int status_of(void (*run)(int number), int number)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		signal(number, SIG_DFL); /* who runs the test may have it ignored */
		run(number);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static void hear_and_obey(int number)
{
	h5_stop_hear();
	h5_stop_obey();
	if (h5_stop_signal())
		_exit(1);
	raise(number);
	if (h5_stop_signal() != number)
		_exit(2);
	h5_stop_obey();
}

/* A process whose parent wants it to go on, as nohup does. */
static void ignore(int number)
{
	signal(number, SIG_IGN);
	h5_stop_hear();
	raise(number);
	if (h5_stop_signal())
		_exit(1);
	h5_stop_obey();
}

/* What is under way comes to an end first; then the process ends as if it had not heard the signal. */
START_TEST(signals_that_stop_it)
{
	static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		int status = status_of(hear_and_obey, numbers[i]);

		ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i], "%d: %#x", numbers[i],
			      (unsigned)status);
		ck_assert_int_eq(status_of(ignore, numbers[i]), 0);
	}
}
END_TEST

UNIT_MAIN("progress", rate_and_time_left, what_is_not_known, numbers_of_bytes, widths, how_often,
	  signals_that_stop_it)
