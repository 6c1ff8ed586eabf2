/* What the daemon does, in which order, and what is left undone after a step that fails. */
#include "daemon_scene.h"

/* ---- mounts ---- */

enum {
	WRITES = 1,
	FRONT = 2,
	IS_FOLDER = 4,
	URL = 8,
	NO_SANDBOX_AT_ALL = 16,
	RINGS = 32,
	DEBUG_OUTPUT = 64,
	ALONE = 128,
	CREATES = 256,
	HAS_JOURNALS = 512,
	RAW_WRITES = 1024,
	ANY = 2048,
	BENEATH = 4096,
	SWMR = 8192,
	LOGS = 1 << 14,
	SYSLOG = 1 << 15,
	LOCKED = 1 << 16,
	MARKED = 1 << 17,
	GROWS = 1 << 18,
	REFUSES_RINGS = 1 << 19,
	NO_OPTION = 1 << 20, /* that libfuse knows */
	RINGS_IF_THEY_ARE = 1 << 21,
};

static void set_options(unsigned what)
{
	static char *known[] = {(char *)"h5fs", NULL},
		    *unknown[] = {(char *)"h5fs", (char *)"-o", (char *)"none_such", NULL};

	memset(&options, 0, sizeof options);
	options = (struct h5_options){.file = (char *)"x.h5",
				      .mountpoint = (char *)"/m",
				      .url = what & URL ? (char *)"http://server/x.h5" : NULL,
				      .is_folder = what & IS_FOLDER,
				      .foreground = what & FRONT,
				      .debug = what & DEBUG_OUTPUT,
				      .single_thread = what & ALONE,
				      .sandbox = !(what & NO_SANDBOX_AT_ALL),
				      .io_uring = what & RINGS		     ? H5_IO_URING_YES
						  : what & RINGS_IF_THEY_ARE ? H5_IO_URING_AUTO
									     : H5_IO_URING_NO,
				      .create = what & CREATES ? 3 : 0,
				      .journal = what & HAS_JOURNALS ? (char *)"/journals" : NULL,
				      .log = what & LOGS ? (char *)"log" : NULL,
				      .to_syslog = what & SYSLOG,
				      .timeout = 60,
				      .set.writable = what & WRITES,
				      .set.swmr = what & SWMR,
				      .set.external = what & ANY       ? H5_EXTERNAL_ANY
						      : what & BENEATH ? H5_EXTERNAL_BENEATH
								       : H5_EXTERNAL_NONE,
				      .vfs.external_write = what & RAW_WRITES,
				      .vfs.file_fd = -1};
	options.args = what & NO_OPTION ? (struct fuse_args)FUSE_ARGS_INIT(3, unknown)
					: (struct fuse_args)FUSE_ARGS_INIT(1, known);
	scene.locked = what & LOCKED;
	scene.marked = what & MARKED;
	scene.grows = what & GROWS;
	scene.refuses_rings = what & REFUSES_RINGS;
}

static void begin(unsigned what, const char *step, int error)
{
	memset(&scene, 0, sizeof scene);
	memset(trace, 0, sizeof trace);
	memset(said, 0, sizeof said);
	h5_error_clear();
	shared.root = (struct h5_file *)&shared;
	scene.fails = step;
	scene.error = error;
	set_options(what);
}

static int run_daemon(void)
{
	int rc = h5_daemon_run(&options);

	fuse_opt_free_args(&options.args);
	return rc;
}

static void run(unsigned what, int status, const char *expected, const char *told)
{
	int rc = run_daemon();

	ck_assert_msg(!strcmp(trace, expected), "%x, %s: %s", what,
		      scene.fails ? scene.fails : "nothing fails", trace);
	ck_assert_msg(rc == status, "%x, %s: %d", what, scene.fails ? scene.fails : "nothing fails", rc);
	ck_assert_str_eq(said, told);
}

#define IN_FRONT "find signals-in-front all-descriptors keep trim one-arena "
#define BEHIND	 "find signals background all-descriptors keep trim one-arena "
#define MOUNTS	 "warnings handlers mount quiet leave syslog detach-log unmounter readahead "
#define WRITABLE "warnings handlers mount negotiate quiet leave syslog detach-log unmounter readahead "
#define NOTHING	 "files(-,-,-,-,-,-,-,-) start-rings calls "
#define JOURNAL	 "files(-,-,-,journals,-,-,-,-) start-rings calls "
#define DONE	 "remove-handlers destroy close-vfs close-set remove"
#define READING	 "x.h5: mounted at /m for reading; "
#define WRITING	 "x.h5: mounted at /m for writing; "
#define END	 "x.h5: unmounted; "

/* ---- the order ---- */

START_TEST(a_file_for_reading)
{
	begin(0, NULL, 0);
	run(0, 0,
	    BEHIND "open vfs " MOUNTS "no-rings " NOTHING
		   "watch () apart ready serve end-watch commit end-unmounter " DONE,
	    READING END);
	begin(FRONT, NULL, 0);
	run(FRONT, 0,
	    IN_FRONT "open vfs warnings handlers mount quiet stay detach-log unmounter readahead "
		     "no-rings " NOTHING
		     "watch () apart ready-in-front serve end-watch commit end-unmounter " DONE,
	    READING END);
}
END_TEST

START_TEST(a_file_for_writing)
{
	begin(WRITES, NULL, 0);
	run(WRITES, 0,
	    BEHIND "open open-statfs vfs " WRITABLE "no-rings " JOURNAL
		   "committer invalidator watch () apart ready serve end-watch end-invalidator end-committer "
		   "commit end-unmounter " DONE,
	    WRITING END);
}
END_TEST

START_TEST(a_folder)
{
	begin(IS_FOLDER, NULL, 0);
	run(IS_FOLDER, 0,
	    BEHIND "tree handlers mount quiet leave syslog detach-log unmounter readahead no-rings "
		   "files(folder,folder,-,-,-,-,-,-) start-rings calls closer watch () apart ready serve "
		   "end-watch end-closer finish end-unmounter remove-handlers destroy close-tree close-none "
		   "remove",
	    READING END);
	begin(IS_FOLDER | WRITES, NULL, 0);
	run(IS_FOLDER | WRITES, 0,
	    BEHIND
	    "tree handlers mount negotiate quiet leave syslog detach-log unmounter readahead no-rings "
	    "files(folder,folder,-,-,-,folder,-,-) start-rings calls closer invalidator watch () apart "
	    "ready serve end-watch end-invalidator end-closer finish end-unmounter remove-handlers "
	    "destroy close-tree close-none remove",
	    WRITING END);
	begin(IS_FOLDER | URL, NULL, 0);
	run(IS_FOLDER | URL, 0,
	    BEHIND "fetcher tree handlers mount quiet leave syslog detach-log unmounter readahead no-rings "
		   "files(-,-,-,-,-,-,-,-) start-rings calls closer watch () apart ready serve end-watch "
		   "end-closer finish end-unmounter remove-handlers destroy end-remote close-tree close-none "
		   "remove",
	    READING END);
}
END_TEST

/* ---- steps that fail ---- */

static const struct {
	unsigned what;
	const char *fails;
	int error, status;
	const char *trace, *said;
} failing[] = {
	{0, "find", EXIT_STALE, EXIT_STALE, "find", ""},
	{0, "background", -EAGAIN, EXIT_FILE, "find signals background refusal remove",
	 "Resource temporarily unavailable"},
	{FRONT, "limit", -EPERM, 0,
	 "find signals-in-front keep trim one-arena open vfs warnings handlers mount quiet stay detach-log "
	 "unmounter readahead no-rings " NOTHING
	 "watch () apart ready-in-front serve end-watch commit end-unmounter " DONE,
	 READING END},
	{CREATES | WRITES, "make", -ENOSPC, EXIT_FILE, BEHIND "make refusal close-none remove",
	 "No space left on device"},
	{HAS_JOURNALS | WRITES, "journals", -1, EXIT_FILE, BEHIND "journals refusal close-none remove",
	 "/journals: no place for a journal: Read-only file system"},
	{0, "open", -EUCLEAN, EXIT_FILE, BEHIND "open refusal close-none remove", "Structure needs cleaning"},
	{WRITES, "open-statfs", -EMFILE, EXIT_FILE, BEHIND "open open-statfs refusal close-set remove",
	 "Too many open files"},
	{0, "stat", -EIO, EXIT_FILE, BEHIND "open refusal close-set remove", "Input/output error"},
	{0, "vfs", -ENOMEM, EXIT_FILE, BEHIND "open vfs refusal close-set remove", "Cannot allocate memory"},
	{0, "handlers", -1, EXIT_MOUNT,
	 BEHIND "open vfs warnings handlers destroy close-vfs close-set remove", ""},
	{0, "mount", EXIT_MOUNT, EXIT_MOUNT, BEHIND "open vfs warnings handlers mount " DONE, ""},
	{WRITES, "negotiate", -EMFILE, EXIT_MOUNT,
	 BEHIND "open open-statfs vfs warnings handlers mount negotiate unmount " DONE,
	 "x.h5: cannot answer the kernel's first request: Too many open files"},
	{0, "unmounter", -ENOMEM, EXIT_MOUNT, BEHIND "open vfs " MOUNTS "end-no-unmounter " DONE,
	 "x.h5: cannot start a process: Cannot allocate memory" END},
	{0, "watch", -EAGAIN, EXIT_MOUNT,
	 BEHIND "open vfs " MOUNTS "no-rings " NOTHING "watch () end-unmounter " DONE,
	 "x.h5: cannot start a thread: Resource temporarily unavailable" END},
	{WRITES, "committer", -EAGAIN, EXIT_MOUNT,
	 BEHIND "open open-statfs vfs " WRITABLE "no-rings " JOURNAL "committer end-unmounter " DONE,
	 "x.h5: cannot start a thread: Resource temporarily unavailable" END},
	{WRITES, "invalidator", -EAGAIN, EXIT_MOUNT,
	 BEHIND "open open-statfs vfs " WRITABLE "no-rings " JOURNAL
		"committer invalidator end-committer end-unmounter " DONE,
	 "x.h5: cannot start a thread: Resource temporarily unavailable" END},
	{WRITES, "watch", -EAGAIN, EXIT_MOUNT,
	 BEHIND "open open-statfs vfs " WRITABLE "no-rings " JOURNAL
		"committer invalidator watch () end-invalidator end-committer end-unmounter " DONE,
	 "x.h5: cannot start a thread: Resource temporarily unavailable" END},
	{0, "commit", -EIO, EXIT_COMMIT,
	 BEHIND "open vfs " MOUNTS "no-rings " NOTHING
		"watch () apart ready serve end-watch commit end-unmounter " DONE,
	 READING END},
	{IS_FOLDER | URL, "fetcher", -EAGAIN, EXIT_FILE, BEHIND "fetcher refusal close-none remove",
	 "Resource temporarily unavailable"},
	{IS_FOLDER, "tree", -ENOENT, EXIT_FILE, BEHIND "tree refusal close-none remove",
	 "No such file or directory"},
	{IS_FOLDER, "closer", -EAGAIN, EXIT_MOUNT,
	 BEHIND "tree handlers mount quiet leave syslog detach-log unmounter readahead no-rings "
		"files(folder,folder,-,-,-,-,-,-) start-rings calls closer end-unmounter remove-handlers "
		"destroy close-tree close-none remove",
	 "x.h5: cannot start a thread: Resource temporarily unavailable" END},
	{IS_FOLDER, "unmounter", -EAGAIN, EXIT_MOUNT,
	 BEHIND "tree handlers mount quiet leave syslog detach-log unmounter readahead end-no-unmounter "
		"remove-handlers destroy close-tree close-none remove",
	 "x.h5: cannot start a process: Resource temporarily unavailable" END},
	{IS_FOLDER, "watch", -EAGAIN, EXIT_MOUNT,
	 BEHIND "tree handlers mount quiet leave syslog detach-log unmounter readahead no-rings "
		"files(folder,folder,-,-,-,-,-,-) start-rings calls closer watch () end-closer end-unmounter "
		"remove-handlers destroy close-tree close-none remove",
	 "x.h5: cannot start a thread: Resource temporarily unavailable" END},
	{IS_FOLDER, "finish", -EIO, EXIT_COMMIT,
	 BEHIND "tree handlers mount quiet leave syslog detach-log unmounter readahead no-rings "
		"files(folder,folder,-,-,-,-,-,-) start-rings calls closer watch () apart ready serve "
		"end-watch end-closer finish end-unmounter remove-handlers destroy close-tree close-none "
		"remove",
	 READING END},
};

START_TEST(what_comes_after_a_failure)
{
	for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
		begin(failing[i].what, failing[i].fails, failing[i].error);
		run(failing[i].what, failing[i].status, failing[i].trace, failing[i].said);
	}
}
END_TEST

/* An option that libfuse does not know. */
START_TEST(no_session)
{
	begin(NO_OPTION, NULL, 0);
	run(NO_OPTION, EXIT_MOUNT, BEHIND "open vfs warnings close-vfs close-set remove", "");
}
END_TEST

/* A file that is there is none that is made, and no failure. */
START_TEST(a_file_that_is_made)
{
	static const char trace_of_both[] =
		BEHIND "make open open-statfs vfs " WRITABLE "no-rings " JOURNAL
		       "committer invalidator watch () apart ready serve end-watch end-invalidator "
		       "end-committer commit end-unmounter " DONE;

	begin(CREATES | WRITES, NULL, 0);
	run(CREATES | WRITES, 0, trace_of_both, WRITING END);
	begin(CREATES | WRITES, "make", -EEXIST);
	run(CREATES | WRITES, 0, trace_of_both, WRITING END);
}
END_TEST

START_TEST(how_serving_ends)
{
	static const struct {
		int rc, status;
		bool aborts;
		const char *said;
	} ends[] = {{0, 0, false, READING END},
		    {SIGTERM, 0, false, READING END},
		    {-ECONNABORTED, 0, false, READING END},
		    {-EIO, EXIT_MOUNT, true,
		     READING "x.h5: the kernel's requests cannot be read: Input/output error" END}};

	for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++)
		for (unsigned alone = 0; alone < 2; alone++) {
			char expected[sizeof trace];

			snprintf(expected, sizeof expected,
				 BEHIND "open vfs " MOUNTS "no-rings " NOTHING
					"watch () apart ready %s %send-watch commit end-unmounter " DONE,
				 alone ? "serve-alone" : "serve", ends[i].aborts ? "abort " : "");
			begin(alone * ALONE, NULL, 0);
			scene.served = ends[i].rc;
			run(alone * ALONE, ends[i].status, expected, ends[i].said);
		}
	begin(0, "commit", -EIO);
	scene.served = -EIO;
	run(0, EXIT_COMMIT,
	    BEHIND "open vfs " MOUNTS "no-rings " NOTHING
		   "watch () apart ready serve abort end-watch commit end-unmounter " DONE,
	    ends[3].said);
}
END_TEST

/* ---- logs ---- */

START_TEST(where_lines_go)
{
	static const struct {
		unsigned what;
		bool to_syslog;
	} cases[] = {{0, true},	     {FRONT, false},	     {LOGS, false},	   {FRONT | LOGS, false},
		     {SYSLOG, true}, {FRONT | SYSLOG, true}, {LOGS | SYSLOG, true}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(cases[i].what, NULL, 0);
		ck_assert_int_eq(run_daemon(), 0);
		ck_assert_msg(!strstr(trace, "syslog") == !cases[i].to_syslog, "%x: %s", cases[i].what,
			      trace);
		ck_assert_ptr_nonnull(strstr(trace, " detach-log unmounter "));
	}
}
END_TEST

static void call_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_function(FUSE_LOG_ERR, format, args);
	va_end(args);
}

/* libfuse says nothing, unless it shall. */
START_TEST(lines_of_libfuse)
{
	FILE *f = tmpfile();
	const int before = dup(STDERR_FILENO);

	begin(DEBUG_OUTPUT | FRONT, NULL, 0);
	ck_assert_int_eq(run_daemon(), 0);
	ck_assert_ptr_null(strstr(trace, "quiet"));
	begin(FRONT, NULL, 0);
	ck_assert_int_eq(run_daemon(), 0);
	ck_assert_ptr_nonnull(strstr(trace, "quiet"));
	fflush(stderr);
	dup2(fileno(f), STDERR_FILENO);
	call_log("%s\n", "a text");
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
	ck_assert_int_eq(ftell(f), 0);
	fclose(f);
}
END_TEST

/* ---- what the mount is told ---- */

START_TEST(files_that_others_may_change)
{
	static const struct {
		unsigned what;
		const char *flags;
	} cases[] = {{0, " () "},
		     {LOCKED, " (locked kept) "},
		     {MARKED, " () "},
		     {LOCKED | MARKED, " () "},
		     {LOCKED | WRITES, " (locked kept) "},
		     {LOCKED | MARKED | WRITES, " (locked kept) "},
		     {LOCKED | SWMR, " () "},
		     {LOCKED | SWMR | WRITES, " () "},
		     {URL, " ( remote) "},
		     {URL | LOCKED, " (locked remote kept) "}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(cases[i].what, NULL, 0);
		options.allow_other = i % 2;
		ck_assert_int_eq(run_daemon(), 0);
		ck_assert_msg(strstr(trace, cases[i].flags), "%x: %s", cases[i].what, trace);
	}
}
END_TEST

/* ---- the sandbox ---- */

/* It is entered when what it forbids has been done. */
static const struct {
	unsigned what;
	const char *part;
} sandboxes[] = {
	{BENEATH, "readahead no-rings files(folder,-,-,-,-,-,-,-) start-rings calls watch"},
	{ANY, "readahead open-root no-rings files(root,-,-,-,-,-,-,-) start-rings calls close-root watch"},
	{RAW_WRITES | BENEATH, "files(folder,-,-,-,-,-,-,-)"},
	{WRITES | BENEATH, "files(folder,-,-,journals,-,-,-,-)"},
	{WRITES | RAW_WRITES, "files(-,-,-,journals,-,-,-,-)"},
	{WRITES | RAW_WRITES | BENEATH, "files(folder,-,folder,journals,-,-,-,-)"},
	{WRITES | RAW_WRITES | ANY, "files(root,-,root,journals,-,-,-,-)"},
	{HAS_JOURNALS, "files(-,-,-,-,-,-,-,-)"},
	{WRITES | HAS_JOURNALS, "files(-,-,-,journals,folder,-,-,-)"},
	{GROWS, "files(-,-,-,-,-,-,-,-)"},
	{WRITES | GROWS, "files(-,-,-,journals,-,folder,-,-)"},
	{IS_FOLDER | ANY,
	 "readahead open-root no-rings files(root,folder,-,-,-,-,-,-) start-rings calls close-root closer"},
	{IS_FOLDER | ANY | URL, "readahead no-rings files(-,-,-,-,-,-,-,-) start-rings calls closer"},
	{IS_FOLDER | BENEATH | URL, "readahead no-rings files(-,-,-,-,-,-,-,-) start-rings calls closer"},
	{IS_FOLDER | BENEATH | WRITES | RAW_WRITES, "files(folder,folder,-,-,-,folder,-,-)"},
	{IS_FOLDER | ANY | WRITES, "files(root,folder,-,-,-,folder,-,-)"},
	{IS_FOLDER | ANY | WRITES | RAW_WRITES, "files(root,folder,root,-,-,folder,-,-)"},
	{IS_FOLDER | ANY | RAW_WRITES, "files(root,folder,-,-,-,-,-,-)"},
	{NO_SANDBOX_AT_ALL, "readahead no-rings start-rings watch"},
	{NO_SANDBOX_AT_ALL | ANY, "readahead open-root no-rings start-rings close-root watch"},
};

START_TEST(what_is_allowed)
{
	for (size_t i = 0; i < sizeof sandboxes / sizeof *sandboxes; i++) {
		begin(sandboxes[i].what, NULL, 0);
		ck_assert_int_eq(run_daemon(), 0);
		ck_assert_msg(strstr(trace, sandboxes[i].part), "%x: %s", sandboxes[i].what, trace);
		ck_assert_msg(!strstr(trace, "close-another"), "%x: %s", sandboxes[i].what, trace);
	}
}
END_TEST

/* Without the root only what it was opened for cannot be opened. */
START_TEST(no_descriptor_for_the_root)
{
	begin(ANY, "open-root", -EMFILE);
	ck_assert_int_eq(run_daemon(), 0);
	ck_assert_ptr_nonnull(
		strstr(trace, " open-root no-rings files(-,-,-,-,-,-,-,-) start-rings calls watch "));
	begin(ANY | IS_FOLDER, "open-root", -EMFILE);
	ck_assert_int_eq(run_daemon(), 0);
	ck_assert_ptr_nonnull(strstr(
		trace, " open-root no-rings files(folder,folder,-,-,-,-,-,-) start-rings calls closer "));
	ck_assert_ptr_null(strstr(trace, "close-root"));
}
END_TEST

START_TEST(commands_without_a_mount)
{
	const struct h5_opened opened = {.journal_directory = JOURNALS};

	begin(BENEATH, NULL, 0);
	options.command = H5_COMMAND_LIST;
	h5_daemon_enter_sandbox(&options, set, &opened, -1);
	ck_assert_str_eq(trace, "no-rings files(folder,-,-,-,-,-,-,-)+terminal start-rings calls");
	begin(0, NULL, 0);
	options.command = H5_COMMAND_EXTRACT;
	h5_daemon_enter_sandbox(&options, set, &opened, MADE);
	ck_assert_str_eq(trace, "no-rings files(-,-,-,-,-,-,-,made)+terminal start-rings calls");
	begin(WRITES, NULL, 0);
	options.command = H5_COMMAND_RECLAIM;
	h5_daemon_enter_sandbox(&options, set, &opened, -1);
	ck_assert_str_eq(trace, "no-rings files(-,-,-,journals,-,-,-,-)+terminal start-rings calls");
}
END_TEST

/* ---- io_uring ---- */

START_TEST(rings)
{
	static const char used[] =
		" rings open-devices files(-,-,-,-,-,-,devices,-) close-devices start-rings calls-with-rings "
		"watch () apart ready serve-rings end-watch ";

	begin(RINGS, NULL, 0);
	ck_assert_int_eq(run_daemon(), 0);
	ck_assert_msg(strstr(trace, used), "%s", trace);
	begin(RINGS_IF_THEY_ARE, NULL, 0);
	ck_assert_int_eq(run_daemon(), 0);
	ck_assert_msg(strstr(trace, used), "%s", trace);
	begin(RINGS_IF_THEY_ARE, "open-devices", -EMFILE);
	ck_assert_int_eq(run_daemon(), 0);
	ck_assert_msg(
		strstr(trace, " rings open-devices files(-,-,-,-,-,-,-,-) start-rings calls-with-rings "),
		"%s", trace);
	begin(RINGS_IF_THEY_ARE | REFUSES_RINGS, NULL, 0);
	ck_assert_int_eq(run_daemon(), 0);
	ck_assert_msg(strstr(trace, " close-devices start-rings calls watch () apart ready serve end-watch "),
		      "%s", trace);
	begin(RINGS | REFUSES_RINGS, NULL, 0);
	run(RINGS | REFUSES_RINGS, EXIT_MOUNT,
	    BEHIND "open vfs " MOUNTS
		   "rings open-devices files(-,-,-,-,-,-,devices,-) close-devices start-rings calls "
		   "end-unmounter " DONE,
	    "x.h5: -o io_uring=yes: the kernel or libfuse has refused it" END);
}
END_TEST

/* ---- files of a folder ---- */

START_TEST(options_of_a_folder)
{
	begin(IS_FOLDER, NULL, 0);
	options.vfs.uid = 7;
	options.vfs.gid = 8;
	ck_assert_int_eq(run_daemon(), 0);
	ck_assert_str_eq(tree_options.match, H5_TREE_MATCH);
	ck_assert_uint_eq(tree_options.open_files, 64);
	ck_assert(tree_options.keeps_uid && tree_options.keeps_gid);
	ck_assert_ptr_null(tree_options.set.remote);
	begin(IS_FOLDER | URL | ANY, NULL, 0);
	options.match = (char *)"*.nc";
	options.open_files = 3;
	options.vfs.uid = 70;
	options.vfs.gid = 8;
	options.vfs.fmask = 022;
	ck_assert_int_eq(run_daemon(), 0);
	ck_assert_str_eq(tree_options.match, "*.nc");
	ck_assert_uint_eq(tree_options.open_files, 3);
	ck_assert(!tree_options.keeps_uid && tree_options.keeps_gid);
	ck_assert_ptr_eq(tree_options.set.remote, (struct h5_remote *)&scene);
	ck_assert_uint_eq(tree_options.set.external, H5_EXTERNAL_ANY);
	ck_assert_uint_eq(tree_options.vfs.fmask, 022);
	begin(IS_FOLDER, NULL, 0);
	options.vfs.uid = 7;
	options.vfs.gid = 80;
	ck_assert_int_eq(run_daemon(), 0);
	ck_assert(tree_options.keeps_uid && !tree_options.keeps_gid);
}
END_TEST

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static void let_others_go_on(void)
{
	note("others");
}

/* Each has a committer as long as it is open for writing. When it closes, the request that it closes for goes
 * on as it was. */
START_TEST(files_that_open_and_close)
{
	const struct h5_opened opened = {.journal_directory = JOURNALS};
	struct h5_interrupt before, after;
	void *own = NULL;

	begin(IS_FOLDER | WRITES, NULL, 0);
	ck_assert_int_eq(run_daemon(), 0);
	memset(trace, 0, sizeof trace);
	ck_assert_ptr_eq(tree_options.arg, &options);
	ck_assert_int_eq(tree_options.opened(&options, "x.h5", set, &opened, vfs, &own), 0);
	ck_assert_ptr_eq(own, committer);
	ck_assert_str_eq(trace, "committer warnings");
	h5_interrupt_begin(never, &scene);
	h5_wait_set(let_others_go_on);
	h5_interrupt_get(&before);
	ck_assert_int_eq(tree_options.closing(&options, "x.h5", vfs, own), 0);
	h5_interrupt_get(&after);
	ck_assert(after.ask == never && after.arg == &scene);
	ck_assert(after.begin.tv_sec == before.begin.tv_sec && after.begin.tv_nsec == before.begin.tv_nsec);
	h5_interrupt_begin(NULL, NULL);
	ck_assert_str_eq(trace, "committer warnings others end-committer commit");
	scene.fails = "committer";
	scene.error = -EAGAIN;
	own = NULL;
	ck_assert_int_eq(tree_options.opened(&options, "x.h5", set, &opened, vfs, &own), -EAGAIN);
	ck_assert_ptr_null(own);
	scene.fails = "commit";
	ck_assert_int_eq(tree_options.closing(&options, "x.h5", vfs, committer), -EAGAIN);
	ck_assert_str_eq(trace,
			 "committer warnings others end-committer commit committer end-committer commit");
	begin(IS_FOLDER, NULL, 0);
	own = &scene;
	ck_assert_int_eq(tree_options.opened(&options, "x.h5", set, &opened, vfs, &own), 0);
	ck_assert_ptr_null(own);
	ck_assert_str_eq(trace, "warnings");
	h5_wait_set(NULL);
}
END_TEST

UNIT_MAIN("daemon", a_file_for_reading, a_file_for_writing, a_folder, what_comes_after_a_failure, no_session,
	  a_file_that_is_made, how_serving_ends, where_lines_go, lines_of_libfuse,
	  files_that_others_may_change, what_is_allowed, no_descriptor_for_the_root, commands_without_a_mount,
	  rings, options_of_a_folder, files_that_open_and_close)
