/* How a mount ends: by the process that unmounts for a daemon, and by h5fs -u and -o remount. */
#include "unmount_scene.h"

/* ---- one mount ---- */

static int unmount_once(bool quiet)
{
	int rc;

	scene.there = true;
	rc = h5_unmount(PLACE, quiet);
	scene.there = false;
	return rc;
}

START_TEST(root_unmounts_itself)
{
	begin();
	ck_assert_int_eq(unmount_once(true), 0);
	CHECK("umount", "");
	begin();
	scene.fails = "umount2";
	scene.error = EBUSY;
	ck_assert_int_eq(unmount_once(false), -EBUSY);
	CHECK("umount", "");
}
END_TEST

/* Others have fusermount3 do it. A path that begins with `-` is no option. */
START_TEST(others_have_it_unmounted)
{
	static const struct {
		const char *fails;
		int error, status, rc;
		const char *trace;
	} cases[] = {{NULL, 0, 0, 0, "fork waitpid"},
		     {NULL, 0, 1 << 8, -EPERM, "fork waitpid"},
		     {NULL, 0, SIGKILL, -EPERM, "fork waitpid"},
		     {"fork", EAGAIN, 0, -EAGAIN, "fork"},
		     {"waitpid", ECHILD, 0, -ECHILD, "fork waitpid"}};
	int ended;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		scene.user = 1000;
		scene.fails = cases[i].fails;
		scene.error = cases[i].error;
		scene.status = cases[i].status;
		ck_assert_int_eq(unmount_once(i % 2), cases[i].rc);
		CHECK(cases[i].trace, "");
	}
	for (unsigned quiet = 0; quiet < 2; quiet++)
		for (unsigned execs = 0; execs < 2; execs++) {
			begin();
			scene.user = 1000;
			scene.forked = 0;
			scene.execs = execs;
			ended = setjmp(scene.exit);
			if (!ended) {
				unmount_once(quiet);
				ck_abort_msg("the process has gone on");
			}
			ck_assert_int_eq(ended, execs ? 1000 : EXIT_FAILURE + 1);
			CHECK(quiet ? "fork exec -u -q -- " PLACE : "fork exec -u -- " PLACE, "");
		}
}
END_TEST

/* ---- the process that unmounts ---- */

enum { SIGNALS = 4 };
static const int numbers[SIGNALS] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1};

/* Runs the process, which gets the messages. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* The process that keeps the mount gives nothing back before it ends. */
static void keep(const struct message *list)
{
	struct h5_unmounter *unmounter = NULL;
	struct sigaction before[SIGNALS], now;
	sigset_t mask, all;

	for (unsigned i = 0; i < SIGNALS; i++)
		sigaction(numbers[i], NULL, &before[i]);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	messages = list;
	scene.forked = 0;
	scene.there = true;
	if (__lsan_disable)
		__lsan_disable();
	if (!setjmp(scene.exit)) {
		h5_unmounter_start(session, &options, &ours, &unmounter);
		ck_abort_msg("the process has gone on");
	}
	if (__lsan_enable)
		__lsan_enable();
	scene.there = false;
	sigprocmask(SIG_SETMASK, &mask, &all);
	for (int number = 1; number < SIGRTMIN; number++)
		ck_assert(!sigismember(&all, number));
	for (unsigned i = 0; i < SIGNALS; i++) {
		sigaction(numbers[i], &before[i], &now);
		ck_assert((now.sa_handler == SIG_IGN) == (numbers[i] == SIGUSR1));
		ck_assert(numbers[i] == SIGUSR1 || now.sa_flags & SA_RESTART);
	}
}

#define KEEPS	 "socketpair fork reopen-log keeper-end-as-3 closefrom-4 h5fs-unmounter answer"
#define UNMOUNTS "open-null null-as-0 session-unmount"

START_TEST(messages_to_the_process)
{
	static const struct {
		struct message messages[4];
		const char *trace, *said;
	} cases[] = {
		{{{"u", 0, 0}}, KEEPS " top " UNMOUNTS " remove", ""},
		{{{"l", 0, 0}}, KEEPS " remove", ""},
		{{{"?", 0, 0}}, KEEPS " remove", ""},
		{{{"d", 0, 0}, {"l", 0, 0}}, KEEPS " setsid answer remove", ""},
		{{{"a", 0, 0}, {"l", 0, 0}}, KEEPS " force remove", ""},
		{{{"t", 0, 0}, {"t", 0, 0}, {"l", 0, 0}}, KEEPS " top umount top umount remove", ""},
		{{{"ma line", 0, 0}, {"mb", 0, 0}, {"l", 0, 0}}, KEEPS " remove", "a lineb"},
		{{{NULL, EINTR, 0}, {"l", 0, 0}}, KEEPS " remove", ""},
		{{{NULL, EINTR, SIGHUP}, {"l", 0, SIGTERM}}, KEEPS " kill kill remove", ""},
		{{{NULL, EINTR, SIGINT}, {"l", 0, SIGUSR1}}, KEEPS " kill remove", ""},
		{{{NULL, 0, 0}}, KEEPS " top " UNMOUNTS " remove", PLACE ": the daemon has died: unmounted"},
		{{{NULL, ECONNRESET, 0}, {"mnobody hears it", 0, 0}, {"l", 0, 0}},
		 KEEPS " top " UNMOUNTS " remove",
		 PLACE ": the daemon has died: unmounted"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		keep(cases[i].messages);
		CHECK(cases[i].trace, cases[i].said);
	}
	/* A user's mount that is idle: fusermount3 says nothing if it is in use. */
	begin();
	scene.user = 1000;
	scene.execs = true;
	keep((const struct message[]){{"t", 0, 0}});
	CHECK(KEEPS " top fork exec -u -q -- " PLACE, "");
}
END_TEST

/* Another mount at that place is left alone; one that cannot be told apart is ours. */
START_TEST(whose_mount_it_is)
{
	static const struct {
		struct h5_mounted ours, top;
		const char *type, *fails;
		bool is_ours, asks;
	} cases[] = {
		{{0, 40, 7}, {0, 40, 7}, "fuse.h5fs", NULL, true, true},
		{{0, 40, 7}, {0, 40, 8}, "fuse.h5fs", NULL, false, true},
		{{0, 40, 0}, {0, 40, 8}, "fuse.h5fs", NULL, true, true},
		{{0, 40, 7}, {0, 41, 7}, "fuse.h5fs", NULL, false, true},
		{{0, 40, 7}, {1, 40, 7}, "fuse.h5fs", NULL, false, true},
		{{0, 40, 0}, {1, 40, 0}, "fuse.h5fs", NULL, false, true},
		{{0, 40, 7}, {0, 0, 0}, NULL, NULL, false, true},
		{{0, 40, 7}, {0, 0, 0}, NULL, "top", true, true},
		{{0, 0, 7}, {0, 40, 8}, "fuse.h5fs", NULL, true, false},
		{{1, 0, 7}, {0, 40, 7}, "fuse.h5fs", NULL, false, true},
		{{1, 0, 7}, {1, 0, 7}, "fuse.h5fs", NULL, true, true},
	};
	char expected[256];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (unsigned how = 0; how < 3; how++) {
			static const char *const texts[] = {"u", "t", NULL};
			const struct message list[] = {{texts[how], 0, 0}, {"l", 0, 0}};

			begin();
			ours = cases[i].ours;
			scene.top = cases[i].top;
			scene.type = cases[i].type;
			scene.fails = cases[i].fails;
			scene.error = EMFILE;
			snprintf(expected, sizeof expected, KEEPS "%s%s remove", cases[i].asks ? " top" : "",
				 !cases[i].is_ours ? ""
				 : how == 1	   ? " umount"
						   : " " UNMOUNTS);
			keep(list);
			CHECK(expected,
			      how == 2 && cases[i].is_ours ? PLACE ": the daemon has died: unmounted" : "");
		}
}
END_TEST

/* Without /dev/null in its place, libfuse would close another file. */
START_TEST(libfuse_gets_no_other_descriptor)
{
	begin();
	scene.fails = "open-null";
	scene.error = EMFILE;
	keep((const struct message[]){{"u", 0, 0}});
	CHECK(KEEPS " top open-null remove", "");
	begin();
	scene.fails = "dup2";
	scene.after = 1;
	scene.error = EMFILE;
	keep((const struct message[]){{"u", 0, 0}});
	CHECK(KEEPS " top open-null null-as-0 remove", "");
}
END_TEST

/* ---- the daemon's end ---- */

static struct h5_unmounter *start(int rc)
{
	struct h5_unmounter *u = NULL;

	scene.there = true;
	ck_assert_int_eq(h5_unmounter_start(session, &options, &ours, &u), rc);
	scene.there = false;
	ck_assert(!u == !!rc);
	return u;
}

static void stop(struct h5_unmounter *u)
{
	scene.there = true;
	h5_unmounter_stop(u, session);
	scene.there = false;
}

#define STARTS "socketpair fork close-keeper-end read"

START_TEST(a_process_that_cannot_start)
{
	begin();
	scene.fails = "calloc";
	start(-ENOMEM);
	CHECK("", "");
	begin();
	scene.fails = "socketpair";
	scene.error = EMFILE;
	start(-EMFILE);
	CHECK("socketpair", "");
	begin();
	scene.fails = "fork";
	scene.error = EAGAIN;
	scene.forked = -1;
	start(-EAGAIN);
	CHECK("socketpair fork close-keeper-end close-daemon-end", "");
	begin();
	scene.answered = 0;
	start(-ECHILD);
	CHECK(STARTS " close-daemon-end", "");
	begin();
	scene.fails = "read";
	scene.error = EIO;
	start(-ECHILD);
	CHECK(STARTS " close-daemon-end", "");
}
END_TEST

START_TEST(messages_of_the_daemon)
{
	struct h5_unmounter *u;

	begin();
	scene.fails = "read";
	scene.error = EINTR;
	scene.times = 2;
	u = start(0);
	scene.there = true;
	h5_unmounter_detach(u);
	h5_unmounter_try(u);
	h5_unmounter_abort(u);
	scene.there = false;
	stop(u);
	CHECK(STARTS " read read log-through send-d read send-t send-a send-u waitpid log-itself "
		     "close-daemon-end pipe close-pipe-read pipe-write-as-device session-unmount "
		     "close-pipe-write",
	      "");
	/* It does not answer if it has got nothing. */
	begin();
	u = start(0);
	scene.fails = "send";
	scene.error = EPIPE;
	scene.there = true;
	h5_unmounter_detach(u);
	scene.there = false;
	stop(u);
	CHECK(STARTS " log-through send-d send-u waitpid log-itself close-daemon-end session-unmount", "");
	begin();
	scene.there = true;
	h5_unmounter_detach(NULL);
	h5_unmounter_try(NULL);
	h5_unmounter_abort(NULL);
	h5_unmounter_stop(NULL, session);
	CHECK("session-unmount", "");
}
END_TEST

/* If it is unmounted already, the process only ends. */
START_TEST(the_device_tells)
{
	static const struct {
		short revents;
		char message;
	} cases[] = {{0, 'u'}, {POLLIN, 'u'}, {POLLERR, 'l'}, {POLLIN | POLLERR, 'l'}, {POLLHUP, 'u'}};
	char expected[256];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		snprintf(expected, sizeof expected,
			 STARTS " log-through send-%c waitpid waitpid log-itself close-daemon-end pipe "
				"close-pipe-read pipe-write-as-device session-unmount close-pipe-write",
			 cases[i].message);
		scene.revents = cases[i].revents;
		scene.fails = "waitpid";
		scene.error = EINTR;
		scene.times = 1;
		stop(start(0));
		CHECK(expected, "");
	}
}
END_TEST

/* What libfuse would unmount may be another mount by now. */
START_TEST(libfuse_must_not_unmount)
{
	begin();
	scene.fails = "pipe2";
	scene.error = EMFILE;
	stop(start(0));
	CHECK(STARTS " log-through send-u waitpid log-itself close-daemon-end pipe", "");
	begin();
	scene.fails = "dup3";
	scene.error = EMFILE;
	stop(start(0));
	CHECK(STARTS " log-through send-u waitpid log-itself close-daemon-end pipe close-pipe-read "
		     "pipe-write-as-device close-pipe-write",
	      "");
}
END_TEST

/* ---- commands ---- */

static int unmount_command(void)
{
	int rc;

	scene.there = true;
	rc = h5_unmount_command(&options);
	scene.there = false;
	return rc;
}

#define FINDS  "top pid pid pidfd-77 /proc/77/comm pid open fsync close-root"
#define UNSEEN PLACE ": unmounted; its daemon is out of sight, and may not have closed the file yet"
#define BUSY   PLACE ": in use: a file of it is open, or a program is in a directory of it"

START_TEST(the_command_waits)
{
	static const struct {
		int polls[3];
		const char *trace, *said;
	} cases[] = {
		{{1}, " poll-5000", ""},
		{{-EINTR, 1}, " poll-5000 poll-5000", ""},
		{{0, 1}, " poll-5000 poll--1", PLACE ": unmounted; waiting for its daemon to close the file"},
		{{0, -EINTR, 1},
		 " poll-5000 poll--1 poll--1",
		 PLACE ": unmounted; waiting for its daemon to close the file"},
		{{-ENOMEM}, " poll-5000", ""},
	};
	char expected[256];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		memcpy(scene.polls, cases[i].polls, sizeof scene.polls);
		ck_assert_int_eq(unmount_command(), 0);
		snprintf(expected, sizeof expected, FINDS " umount place%s close-pidfd", cases[i].trace);
		CHECK(expected, cases[i].said);
	}
}
END_TEST

/* A process that is none of ours is not waited for. */
START_TEST(who_is_the_daemon)
{
	static const struct {
		const char *comm;
		bool is_ours;
	} cases[] = {{"h5fs\n", true},	     {"h5fs", true},	 {"h5fs-workers\n", true},
		     {"mount.h5fs\n", true}, {"mount\n", false}, {"bash\n", false},
		     {"h5f\n", false},	     {"", false},	 {NULL, false}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		scene.comm = cases[i].comm;
		ck_assert_int_eq(unmount_command(), cases[i].is_ours ? 0 : EXIT_MOUNT);
		if (cases[i].is_ours)
			CHECK(FINDS " umount place poll-5000 close-pidfd", "");
		else
			CHECK("top pid pid pidfd-77 /proc/77/comm close-pidfd open fsync close-root umount "
			      "place",
			      UNSEEN);
	}
	/* Another daemon has taken its number. */
	begin();
	scene.pid[2] = "78";
	ck_assert_int_eq(unmount_command(), EXIT_MOUNT);
	CHECK("top pid pid pidfd-77 /proc/77/comm pid close-pidfd open fsync close-root umount place",
	      UNSEEN);
	/* A number of more digits than any process has. */
	for (unsigned i = 0; i < 2; i++) {
		begin();
		scene.pid[0] = scene.pid[1] = scene.pid[2] =
			i ? "00000000000000000000000000000077" : "0000000000000000000000000000077";
		ck_assert_int_eq(unmount_command(), i ? EXIT_MOUNT : 0);
		if (i)
			CHECK("top pid pid open fsync close-root umount place", UNSEEN);
		else
			CHECK(FINDS " umount place poll-5000 close-pidfd", "");
	}
	begin();
	scene.pid[0] = scene.pid[1] = scene.pid[2] = NULL;
	ck_assert_int_eq(unmount_command(), EXIT_MOUNT);
	CHECK("top pid pid open fsync close-root umount place", UNSEEN);
	begin();
	scene.pid[0] = scene.pid[1] = scene.pid[2] = "-1";
	ck_assert_int_eq(unmount_command(), EXIT_MOUNT);
	CHECK("top pid pid open fsync close-root umount place", UNSEEN);
	begin();
	scene.fails = "pidfd_open";
	scene.error = ENOSYS;
	ck_assert_int_eq(unmount_command(), EXIT_MOUNT);
	CHECK("top pid pid pidfd-77 open fsync close-root umount place", UNSEEN);
}
END_TEST

START_TEST(a_daemon_that_has_died)
{
	begin();
	scene.fails = "getxattr";
	scene.error = ENOTCONN;
	ck_assert_int_eq(unmount_command(), 0);
	CHECK("top pid umount", "");
	begin();
	scene.fails = "getxattr";
	scene.error = ENOTCONN;
	scene.user = 1000;
	scene.status = 1 << 8;
	ck_assert_int_eq(unmount_command(), EXIT_MOUNT);
	CHECK("top pid fork waitpid", PLACE ": cannot be unmounted, for the reason above");
}
END_TEST

START_TEST(commands_that_fail)
{
	static const struct {
		const char *fails;
		int error, status;
		const char *type, *elsewhere;
		bool user, quiet;
		const char *trace, *said;
	} cases[] = {
		{"top", EMFILE, EXIT_MOUNT, "fuse.h5fs", NULL, false, false, "top",
		 "/proc/self/mountinfo: Too many open files"},
		{NULL, 0, EXIT_MOUNT, NULL, NULL, false, false, "top", PLACE ": nothing is mounted there"},
		{NULL, 0, EXIT_MOUNT, "ext4", NULL, false, false, "top", PLACE ": this is no mount of h5fs"},
		{"open", EACCES, EXIT_MOUNT, "fuse.h5fs", NULL, false, false,
		 "top pid pid pidfd-77 /proc/77/comm pid open close-pidfd", PLACE ": Permission denied"},
		{"fsync", EIO, EXIT_COMMIT, "fuse.h5fs", NULL, false, false, FINDS " close-pidfd",
		 PLACE ": what was changed last cannot be committed: Input/output error; it stays mounted"},
		{"umount2", EBUSY, EXIT_MOUNT, "fuse.h5fs", NULL, false, false, FINDS " umount close-pidfd",
		 BUSY},
		{"umount2", EINVAL, EXIT_MOUNT, "fuse.h5fs", NULL, false, false, FINDS " umount close-pidfd",
		 PLACE ": cannot be unmounted: Invalid argument"},
		{"umount2", EINVAL, EXIT_MOUNT, "fuse.h5fs", NULL, false, true, FINDS " umount close-pidfd",
		 PLACE ": cannot be unmounted: Invalid argument"},
		{"fork", EAGAIN, EXIT_MOUNT, "fuse.h5fs", NULL, true, true, FINDS " fork close-pidfd",
		 PLACE ": cannot be unmounted: Resource temporarily unavailable"},
		{"fork", EAGAIN, EXIT_MOUNT, "fuse.h5fs", NULL, true, false, FINDS " fork close-pidfd",
		 PLACE ": cannot be unmounted, for the reason above"},
		{NULL, 0, EXIT_MOUNT, "fuse.h5fs", "/other", false, false, FINDS " umount place close-pidfd",
		 PLACE ": unmounted; it is still mounted at /other, and the file open"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		scene.fails = cases[i].fails;
		scene.error = cases[i].error;
		scene.type = cases[i].type;
		scene.elsewhere = cases[i].elsewhere;
		scene.user = cases[i].user ? 1000 : 0;
		options.quiet = cases[i].quiet;
		ck_assert_int_eq(unmount_command(), cases[i].status);
		CHECK(cases[i].trace, cases[i].said);
	}
	begin();
	options.mountpoint = (char *)"/none/such";
	ck_assert_int_eq(unmount_command(), EXIT_MOUNT);
	CHECK("", "/none/such: No such file or directory");
}
END_TEST

START_TEST(another_way_to_mount)
{
	static const struct {
		bool writable;
		mode_t mode;
		const char *fails;
		int error, status;
		const char *type, *trace, *said;
	} cases[] = {
		{true, 0755, NULL, 0, 0, "fuse.h5fs", "top stat mount-rw", ""},
		{true, 0557, NULL, 0, 0, "fuse.h5fs", "top stat mount-rw", ""},
		{true, 0555, NULL, 0, EXIT_MOUNT, "fuse.h5fs", "top stat",
		 PLACE ": was mounted for reading; unmount it, and mount it anew"},
		{true, 0755, "stat", EIO, EXIT_MOUNT, "fuse.h5fs", "top stat", PLACE ": Input/output error"},
		{true, 0755, "mount", EPERM, EXIT_MOUNT, "fuse.h5fs", "top stat mount-rw",
		 PLACE ": Operation not permitted"},
		{false, 0555, NULL, 0, 0, "fuse.h5fs", "top mount-ro open fsync close-root", ""},
		{false, 0755, "mount", EBUSY, EXIT_MOUNT, "fuse.h5fs", "top mount-ro",
		 PLACE ": in use: a file of it is open for writing"},
		{false, 0755, "fsync", ENOSPC, EXIT_COMMIT, "fuse.h5fs", "top mount-ro open fsync close-root",
		 PLACE ": what was changed last cannot be committed: No space left on device; it stays "
		       "mounted"},
		{false, 0755, NULL, 0, EXIT_MOUNT, "ext4", "top", PLACE ": this is no mount of h5fs"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		options.set.writable = cases[i].writable;
		scene.mode = S_IFDIR | cases[i].mode;
		scene.fails = cases[i].fails;
		scene.error = cases[i].error;
		scene.type = cases[i].type;
		scene.there = true;
		ck_assert_int_eq(h5_remount_command(&options), cases[i].status);
		CHECK(cases[i].trace, cases[i].said);
	}
}
END_TEST

UNIT_MAIN("unmount", root_unmounts_itself, others_have_it_unmounted, messages_to_the_process,
	  whose_mount_it_is, libfuse_gets_no_other_descriptor, a_process_that_cannot_start,
	  messages_of_the_daemon, the_device_tells, libfuse_must_not_unmount, the_command_waits,
	  who_is_the_daemon, a_daemon_that_has_died, commands_that_fail, another_way_to_mount)
