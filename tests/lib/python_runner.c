#include "python_runner.h"
#include "unit.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { LONGEST = 5000, SECONDS = 280 /* less than a test may take */ };

struct answer {
	int64_t number;
	int32_t status;
} __attribute__((packed));

/* One for the program and the processes of its tests. */
static struct {
	int ends[2]; /* of questions, of answers */
	int64_t *asked;
} runner;

/* Before there are processes of tests; Python itself starts when it is first needed. */
__attribute__((constructor)) static void prepare(void)
{
	struct timeval patience = {.tv_sec = SECONDS};

	runner.asked =
		mmap(NULL, sizeof *runner.asked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (runner.asked == MAP_FAILED ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, runner.ends) ||
	    setsockopt(runner.ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience))
		abort();
}

/* It survives this process, and the signal that ends all processes of a test. */
static void start(const char *source)
{
	char path[512];

	snprintf(path, sizeof path, "%s/tests/judge/runner.py", source);
	fflush(stdout);
	if (fork())
		return;
	setsid();
	dup2(runner.ends[1], 0);
	close_range(3, ~0U, 0);
	/* By another name it would be taken for the first one in PATH, with the libraries of that. */
	execl("/usr/bin/python3", "/usr/bin/python3", path, (char *)NULL);
	_exit(127);
}

static bool ask(const char *source, const char *folder, const char *command)
{
	char question[LONGEST];
	struct answer answer = {0};
	int64_t number = ++*runner.asked;
	int n = snprintf(question, sizeof question, "%jd%c%s%c%s", (intmax_t)number, 0, folder, 0, command);

	ck_assert_int_lt(n, (int)sizeof question);
	if (number == 1)
		start(source);
	ck_assert_int_eq(send(runner.ends[0], question, (size_t)n, 0), n);
	/* A test that was given up may have left a question that is answered now. */
	while (answer.number != number)
		ck_assert_msg(recv(runner.ends[0], &answer, sizeof answer, 0) == sizeof answer,
			      "no answer from Python: %s", command);
	return !answer.status;
}

bool python_runner_run(const char *source, const char *command)
{
	return ask(source, "", command);
}

bool python_runner_ask_others(const char *source, const char *folder, const char *command)
{
	return ask(source, folder, command);
}
