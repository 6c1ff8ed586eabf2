#include "fuse/options.h"

#include "base/checked.h"
#include "base/error.h"

#include <assert.h>
#include <ctype.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The caches are a part of the machine's memory, within bounds that suit a laptop and a server. */
#define CACHE_SHARE	32
#define CHUNK_CACHE_MIN ((uint64_t)64 << 20)
#define CHUNK_CACHE_MAX ((uint64_t)640 << 20)
#define MAX_CHUNK_SHARE 8

enum {
	MAX_WORK = 2,	 /* seconds, if -o max_work= is not given */
	WAIT = 2,	 /* seconds, if -o wait= is not given */
	INDEX_SHARE = 4, /* of the cache for chunks */
	WORKERS_MAX = 64,
	GATHER = 32 << 20, /* most bytes of chunks in which small writes gather */
};

#define HELP " (h5fs -h tells more)"

/* ---- the table ---- */

/* The values of an option, and what they set in struct h5_options. */
enum kind {
	FLAG,	/* no value: the member becomes `most` */
	NUMBER, /* decimal, from 0 to `most` */
	OCTAL,	/* octal, from 0 to `most` */
	SIZE,	/* bytes, with K, M, G for powers of 1024, from `least` to `most` */
	WORD,	/* one of `words` */
	TEXT,	/* any text, an owned char * */
};

/* A word that an option can be set to; the last of a list has no text. */
struct word {
	const char *text;
	unsigned value;
};

struct option {
	const char *name;
	const char *rest; /* what follows the name in the help */
	enum kind kind;
	size_t member, size; /* where the value is in struct h5_options, in bytes */
	uint64_t most, least;
	const struct word *words;
	const char *help; /* NULL: another name for the option before */
};

static const struct word external_words[] = {
	{"none", H5_EXTERNAL_NONE}, {"beneath", H5_EXTERNAL_BENEATH}, {"any", H5_EXTERNAL_ANY}, {0}};
static const struct word locking_words[] = {
	{"yes", H5_LOCK_ALWAYS}, {"no", H5_LOCK_NONE}, {"best-effort", H5_LOCK_BEST_EFFORT}, {0}};
static const struct word order_words[] = {{"name", false}, {"creation", true}, {0}};
static const struct word xattr_words[] = {{"text", false}, {"raw", true}, {0}};
static const struct word sync_words[] = {{"close", true}, {"fsync", false}, {0}};
static const struct word create_words[] = {{"v18", H5_CREATE_V18}, {0}};
static const struct word sandbox_words[] = {{"yes", true}, {"no", false}, {0}};

#define INTO(name)	 offsetof(struct h5_options, name), sizeof(((struct h5_options *)0)->name)
#define SET(name, value) FLAG, INTO(name), .most = value

/* In the order of the help. */
static const struct option known[] = {
	{"-f", "", SET(foreground, true), .help = "stay in the foreground"},
	{"-d", "", SET(debug, true), .help = "debug output of libfuse (implies -f)"},
	{"debug", "", SET(debug, true)},
	{"-s", "", SET(single_thread, true), .help = "serve one request at a time"},
	{"--check", "", SET(command, H5_COMMAND_CHECK), .help = "verify all that the file holds; no mount"},
	{"--list", "", SET(command, H5_COMMAND_LIST), .help = "print what a mount would show; no mount"},
	{"--reclaim", "", SET(command, H5_COMMAND_RECLAIM),
	 .help = "give space that nothing refers to back to the file system; no mount"},
	{"--recover", "", SET(command, H5_COMMAND_RECOVER),
	 .help = "deal with the journal that a killed mount has left; no mount"},
	{"-h", ", --help", SET(help, true), .help = "this text"},
	{"--help", "", SET(help, true)},
	{"-V", ", --version", SET(version, true), .help = "versions"},
	{"--version", "", SET(version, true)},
	/* As for mount(8), the last of these two counts. */
	{"ro", "", SET(set.writable, false), .help = "read-only (the default)"},
	{"rw", "", SET(set.writable, true), .help = "datasets can be appended to and overwritten"},
	{"create", "", SET(create, H5_CREATE_V110),
	 .help = "rw; makes a file that is not there (create=v18: for libhdf5 1.8, too)"},
	{"create", "=v18", WORD, INTO(create), .words = create_words},
	{"filters", "=LIST", TEXT, INTO(filters), .help = "rw: of new datasets, such as shuffle,deflate(4)"},
	{"swmr", "", SET(set.swmr, true),
	 .help = "rw: HDF5 programs read along; ro: another program writes along"},
	{"force", "", SET(set.force, true),
	 .help = "rw in spite of marks in the file, or of several hard links to it"},
	{"external-write", "", SET(vfs.external_write, true), .help = "rw: external raw files, too"},
	{"sync", "=WHEN", WORD, INTO(vfs.commit_at_close), .words = sync_words,
	 .help = "what is written is durable after: close (the default), fsync"},
	{"journal", "=DIR", TEXT, INTO(journal),
	 .help = "where the journal of the file is (its own directory)"},
	{"external", "=RULE", WORD, INTO(set.external), .words = external_words,
	 .help = "other files that may be opened: none, beneath (the file's directory), any"},
	{"locking", "=HOW", WORD, INTO(set.lock), .words = locking_words,
	 .help = "yes, no, best-effort; also HDF5_USE_FILE_LOCKING"},
	{"order", "=ORDER", WORD, INTO(vfs.order_by_creation), .words = order_words,
	 .help = "of listings: name, creation"},
	{"xattr", "=FORM", WORD, INTO(vfs.raw_attributes), .words = xattr_words,
	 .help = "of attributes: text, raw"},
	{"uid", "=N", NUMBER, INTO(vfs.uid), .most = UINT32_MAX - 1, .help = "owner of all files"},
	{"gid", "=N", NUMBER, INTO(vfs.gid), .most = UINT32_MAX - 1, .help = "group of all files"},
	{"fmask", "=OCTAL", OCTAL, INTO(vfs.fmask), .most = 0777, .help = "mode bits taken out of files"},
	{"dmask", "=OCTAL", OCTAL, INTO(vfs.dmask), .most = 0777,
	 .help = "mode bits taken out of directories"},
	{"subdir", "=/GROUP", TEXT, INTO(subdir), .help = "mount only this group"},
	{"offset", "=N", NUMBER, INTO(set.offset), .most = INT64_MAX,
	 .help = "the size of the user block: where the HDF5 file begins"},
	{"userblock", "=N", NUMBER, INTO(set.offset), .most = INT64_MAX,
	 .help = "the same; mount(8) takes offset= for itself"},
	{"timeout", "=SECONDS", NUMBER, INTO(timeout), .most = INT32_MAX,
	 .help = "unmount when nothing was asked for so long"},
	{"wait", "=SECONDS", NUMBER, INTO(set.wait), .most = INT32_MAX,
	 .help = "wait so long for a file that another program has locked (2; 0: not)"},
	{"log", "=WHERE", TEXT, INTO(log), .help = "a file, or syslog, instead of standard error"},
	{"quiet", "", SET(quiet, true), .help = "log only what ends the mount or loses data"},
	{"verbose", "", SET(verbose, true), .help = "log also what is done"},
	{"allow_other", "", SET(allow_other, true), .help = "other users may look, too"},
	{"nonempty", "", SET(nonempty, true),
	 .help = "the mount point may have files, which are hidden meanwhile"},
	{"sandbox", "=WHETHER", WORD, INTO(sandbox), .words = sandbox_words,
	 .help = "the daemon gives up what it does not need: yes (the default), no"},
	{"cache", "=SIZE", SIZE, INTO(set.chunk_cache), .most = SIZE_MAX,
	 .help = "of decoded chunks (64M and a 32nd of the memory, at most 640M)"},
	{"index_cache", "=SIZE", SIZE, INTO(set.block_cache), .most = SIZE_MAX,
	 .help = "of decoded metadata blocks (a quarter of that)"},
	{"max_chunk", "=SIZE", SIZE, INTO(set.max_chunk), .least = 1, .most = H5_MAX_CHUNK_LIMIT,
	 .help = "of a decoded chunk, at most (an 8th of the memory, but 256M to 1G)"},
	{"max_work", "=SECONDS", NUMBER, INTO(vfs.max_work), .most = UINT16_MAX,
	 .help = "that a request may work, beyond what the file's bytes call for (2; 0: any)"},
	{"workers", "=N", NUMBER, INTO(set.workers), .most = WORKERS_MAX,
	 .help = "threads that decode and encode chunks (the processors; 0 to 64)"},
};

enum { KNOWN = sizeof known / sizeof *known };

/* Words of fstab(5) that other programs heed. nosuid, nodev and noexec are in force anyway. */
static const char *const ignored[] = {
	"defaults",    "auto",	     "noauto", "nofail",   "_netdev", "user",	"users", "nouser", "noatime",
	"relatime",    "nodiratime", "atime",  "diratime", "async",   "group",	"owner", "silent", "loud",
	"strictatime", "lazytime",   "suid",   "dev",	   "exec",    "nosuid", "nodev", "noexec",
};

/* Options that begin so are ignored, too. */
static const char *const ignored_prefixes[] = {"x-", "comment=", "user="};

static void print_help(bool of_mount)
{
	for (size_t i = 0; i < KNOWN; i++) {
		char left[64];

		if (!known[i].help || (*known[i].name != '-') != of_mount)
			continue;
		snprintf(left, sizeof left, "%s%s", known[i].name, known[i].rest);
		printf("    %-23s%s\n", left, known[i].help);
	}
}

void h5_options_usage(const char *program)
{
	printf("usage: %s [options] FILE [MOUNTPOINT]\n"
	       "       %s --check|--list FILE\n"
	       "       %s --reclaim|--recover [-o journal=DIR] FILE\n"
	       "Mounts an HDF5 file: groups are directories, datasets files, attributes extended "
	       "attributes.\n\n",
	       program, program, program);
	print_help(false);
	printf("    -o OPTION[,OPTION...]  mount options\n\n");
	print_help(true);
}

/* ---- values ---- */

/* The values as they were written, by the number of the option in the table; NULL: not given. Of several
 * values of an option the last one counts. */
struct command_line {
	struct h5_options *options;
	size_t last;	     /* the option that was taken last */
	char *values[KNOWN]; /* owned */
};

static int wrong(const struct option *option, const char *value, const char *allowed)
{
	fprintf(stderr, "h5fs: -o %s=%s: must be %s\n", option->name, value, allowed);
	return -EINVAL;
}

static int parse_word(const struct option *option, const char *value, uint64_t *number)
{
	const struct word *word = option->words;
	char allowed[64] = "";
	size_t used = 0;

	for (; word->text; word++) {
		const char *before = word == option->words ? "" : word[1].text ? ", " : " or ";

		*number = word->value;
		if (!strcmp(value, word->text))
			return 0;
		used += (size_t)snprintf(allowed + used, sizeof allowed - used, "%s%s", before, word->text);
		assert(used < sizeof allowed);
	}
	return wrong(option, value, allowed);
}

static int parse_number(const struct option *option, const char *value, uint64_t *number)
{
	bool octal = option->kind == OCTAL;
	char allowed[64], *end;

	errno = 0;
	*number = strtoull(value, &end, octal ? 8 : 10);
	if (!errno && !*end && isdigit((unsigned char)*value) && *number <= option->most)
		return 0;
	snprintf(allowed, sizeof allowed, octal ? "an octal number from 0 to %#jo" : "a number from 0 to %ju",
		 (uintmax_t)option->most);
	return wrong(option, value, allowed);
}

static int parse_size(const struct option *option, const char *value, uint64_t *size)
{
	static const char units[] = "KMG";
	const char *allowed = "a size such as 64M", *unit;
	char bounds[64], *end;

	errno = 0;
	*size = strtoull(value, &end, 10);
	if (errno || !isdigit((unsigned char)*value))
		return wrong(option, value, allowed);
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (*end && (!unit || end[1]))
		return wrong(option, value, allowed);
	for (const char *u = units; unit && u <= unit; u++)
		if (!h5_mul(*size, 1024, size))
			return wrong(option, value, allowed);
	if (*size >= option->least && *size <= option->most)
		return 0;
	snprintf(bounds, sizeof bounds, "a size from %ju to %juG", (uintmax_t)option->least,
		 (uintmax_t)option->most >> 30);
	return wrong(option, value,
		     option->most == SIZE_MAX ? "a size that fits in this machine's address space" : bounds);
}

/* Sets the member of the option. It may have any type of whole numbers: bool, enum, uid_t, size_t, ... */
static void set_member(struct h5_options *o, const struct option *option, uint64_t value)
{
	void *member = (char *)o + option->member;
	uint32_t number = (uint32_t)value;
	bool truth = value;

	assert(option->size == sizeof value || option->size == sizeof number || option->size == sizeof truth);
	if (option->size == sizeof value)
		memcpy(member, &value, sizeof value);
	else if (option->size == sizeof number)
		memcpy(member, &number, sizeof number);
	else
		memcpy(member, &truth, sizeof truth);
}

static int take_value(struct command_line *line, size_t i)
{
	const struct option *option = &known[i];
	uint64_t number = 0;
	int rc;

	if (!line->values[i])
		return 0;
	switch (option->kind) {
	case TEXT:
		*(char **)((char *)line->options + option->member) = line->values[i];
		line->values[i] = NULL;
		return 0;
	case WORD:
		rc = parse_word(option, line->values[i], &number);
		break;
	case SIZE:
		rc = parse_size(option, line->values[i], &number);
		break;
	default:
		rc = parse_number(option, line->values[i], &number);
	}
	if (!rc)
		set_member(line->options, option, number);
	return rc;
}

/* ---- defaults ---- */

/* HDF5_USE_FILE_LOCKING counts if locking= was not given. */
static enum h5_lock_mode lock_by_environment(void)
{
	const char *value = getenv("HDF5_USE_FILE_LOCKING");

	if (value && (!strcasecmp(value, "FALSE") || !strcmp(value, "0")))
		return H5_LOCK_NONE;
	return value && !strcasecmp(value, "BEST_EFFORT") ? H5_LOCK_BEST_EFFORT : H5_LOCK_ALWAYS;
}

/* Memory of the machine in bytes; 0: not known. */
static uint64_t memory_size(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

static size_t default_cache(void)
{
	return (size_t)h5_min(memory_size() / CACHE_SHARE + CHUNK_CACHE_MIN, CHUNK_CACHE_MAX);
}

static size_t default_max_chunk(void)
{
	return (size_t)h5_min(h5_max(memory_size() / MAX_CHUNK_SHARE, H5_MAX_CHUNK), H5_MAX_CHUNK_LIMIT);
}

/* The processors that this process may use. */
static unsigned default_workers(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);

	return n < WORKERS_MAX ? (unsigned)n : WORKERS_MAX;
}

/* Sets the options that take values. */
static void set_defaults(struct h5_options *o)
{
	o->set.external = o->allow_other ? H5_EXTERNAL_NONE : H5_EXTERNAL_BENEATH;
	o->set.lock = lock_by_environment();
	o->set.wait = WAIT;
	o->set.chunk_cache = default_cache();
	o->set.block_cache = o->set.chunk_cache / INDEX_SHARE;
	o->set.max_chunk = default_max_chunk();
	o->set.workers = default_workers();
	o->vfs.commit_at_close = true;
	o->vfs.uid = getuid();
	o->vfs.gid = getgid();
	o->vfs.max_work = MAX_WORK;
	o->vfs.gather = GATHER;
	o->sandbox = true;
}

/* ---- the command line ---- */

/* True: the option is for others, and means nothing here. */
static bool is_ignored(const char *arg)
{
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		if (!strcmp(arg, ignored[i]))
			return true;
	for (size_t i = 0; i < sizeof ignored_prefixes / sizeof *ignored_prefixes; i++)
		if (!strncmp(arg, ignored_prefixes[i], strlen(ignored_prefixes[i])))
			return true;
	return !*arg; /* mount(8) takes empty ones, too */
}

/* A list of filters has commas, too, so libfuse has split it. If this belongs to the list before, appends
 * it. */
static bool continues_list(struct command_line *line, const char *arg)
{
	char **value = &line->values[line->last], *longer;
	struct h5_filter_list list;

	if (known[line->last].member != offsetof(struct h5_options, filters) || !*value || !*arg ||
	    h5_filter_list_parse(arg, strlen(arg), &list) || asprintf(&longer, "%s,%s", *value, arg) < 0)
		return false;
	free(*value);
	*value = longer;
	return true;
}

static int take_option(struct command_line *line, const char *arg)
{
	if (continues_list(line, arg))
		return 0;
	for (size_t i = 0; i < KNOWN; i++) {
		size_t n = strlen(known[i].name);

		if (strncmp(arg, known[i].name, n))
			continue;
		line->last = i;
		if (known[i].kind == FLAG && !arg[n]) {
			set_member(line->options, &known[i], known[i].most);
			return 0;
		}
		if (known[i].kind != FLAG && arg[n] == '=') {
			free(line->values[i]);
			line->values[i] = strdup(arg + n + 1);
			return line->values[i] ? 0 : -1;
		}
	}
	if (is_ignored(arg))
		return 0;
	if (!strcmp(arg, "remount"))
		fprintf(stderr, "h5fs: -o remount: not possible; unmount it, and mount it anew\n");
	else
		fprintf(stderr, "h5fs: unknown option %s%s" HELP "\n", *arg == '-' ? "" : "-o ", arg);
	return -1;
}

/* libfuse has split lists of options. */
static int take_argument(void *data, const char *arg, int key, struct fuse_args *args)
{
	struct command_line *line = data;
	struct h5_options *o = line->options;
	char **name;

	(void)args;
	if (key != FUSE_OPT_KEY_NONOPT)
		return take_option(line, arg);
	name = !o->file ? &o->file : !o->mountpoint ? &o->mountpoint : NULL;
	if (!name) {
		fprintf(stderr, "h5fs: too many arguments: %s\n", arg);
		return -1;
	}
	*name = strdup(arg);
	return *name ? 0 : -1;
}

/* Prints libfuse's errors in our form. */
static void say(enum fuse_log_level level, const char *format, va_list args)
{
	char line[256];

	(void)level;
	vsnprintf(line, sizeof line, format, args);
	line[strcspn(line, "\n")] = 0;
	fprintf(stderr, "h5fs: %s" HELP "\n", line + (strncmp(line, "fuse: ", 6) ? 0 : 6));
}

static int add_argument(struct fuse_args *args, const char *arg)
{
	return fuse_opt_add_arg(args, arg) ? -ENOMEM : 0;
}

/* Leaves the options for libfuse in o->args. */
static int mount_arguments(struct h5_options *o)
{
	char *name = NULL, *list = NULL;
	int rc = asprintf(&name, "fsname=%s", o->file) < 0 ? -ENOMEM : 0;

	if (rc)
		return rc;
	/* Escaped: a comma in the file's name does not end the option. */
	if (fuse_opt_add_opt_escaped(&list, name) ||
	    fuse_opt_add_opt(&list, "subtype=h5fs,nosuid,nodev,noexec,default_permissions") ||
	    fuse_opt_add_opt(&list, o->set.writable ? "rw" : "ro") ||
	    (o->allow_other && fuse_opt_add_opt(&list, "allow_other")))
		rc = -ENOMEM;
	if (!rc)
		rc = add_argument(&o->args, "-o");
	if (!rc)
		rc = add_argument(&o->args, list);
	if (!rc && o->debug)
		rc = add_argument(&o->args, "-d");
	free(list);
	free(name);
	return rc;
}

/* Opens the log before anything that may fail and be logged. */
static int open_log(struct h5_options *o)
{
	int rc;

	if (!o->log)
		return 0;
	if (!strcmp(o->log, "syslog")) {
		free(o->log);
		o->log = NULL;
		o->to_syslog = true;
		return 0;
	}
	rc = h5_log_open(o->log, o->file);
	if (rc) {
		fprintf(stderr, "h5fs: -o log=%s: %s\n", o->log, h5_error_last()->text);
		return -EINVAL;
	}
	return 0;
}

static int parse_filters(struct h5_options *o)
{
	const char *text = o->filters ? o->filters : "";

	if (!h5_filter_list_parse(text, strlen(text), &o->vfs.filters))
		return 0;
	fprintf(stderr, "h5fs: -o filters=%s: %s\n", text, h5_error_last()->text);
	return -EINVAL;
}

/* Sets members that follow from others. */
static void complete(struct h5_options *o)
{
	o->foreground |= o->debug;
	o->set.writable |= o->command == H5_COMMAND_RECOVER || o->create;
	if (o->command == H5_COMMAND_CHECK || o->command == H5_COMMAND_LIST)
		o->set.writable = false;
	o->set.reclaims = o->command == H5_COMMAND_RECLAIM;
	o->set.writable |= o->set.reclaims;
	o->set.swmr &= !o->set.reclaims;
	o->vfs.writable = o->set.writable;
	o->set.journal = o->journal;
	o->vfs.subdir = o->subdir;
}

static int interpret(struct command_line *line)
{
	struct h5_options *o = line->options;
	int rc = 0;

	if (o->help || o->version)
		return 0;
	if (!o->file) {
		fprintf(stderr, "h5fs: the HDF5 file is missing: h5fs [options] FILE [MOUNTPOINT]" HELP "\n");
		return -EINVAL;
	}
	if (o->mountpoint && o->command != H5_COMMAND_MOUNT) {
		fprintf(stderr, "h5fs: too many arguments: %s\n", o->mountpoint);
		return -EINVAL;
	}
	set_defaults(o);
	for (size_t i = 0; i < KNOWN && !rc; i++)
		rc = take_value(line, i);
	if (rc)
		return rc;
	complete(o);
	rc = parse_filters(o);
	if (!rc)
		rc = open_log(o);
	return rc ? rc : mount_arguments(o);
}

/* mount(8) calls /sbin/mount.fuse.h5fs FILE DIR -o OPTIONS, with more options before or after. */
static bool is_helper(const char *program)
{
	const char *slash = strrchr(program, '/');

	return !strncmp(slash ? slash + 1 : program, "mount.", 6);
}

/* Takes mount(8)'s own options out: -n, -s, -v; -N and -t with what follows. */
static int take_out(struct fuse_args *args)
{
	struct fuse_args left = FUSE_ARGS_INIT(0, NULL);
	int rc = 0;

	for (int i = 0; i < args->argc && !rc; i++) {
		const char *arg = args->argv[i];

		if (!strcmp(arg, "-t") || !strcmp(arg, "-N"))
			i++;
		else if (strcmp(arg, "-n") && strcmp(arg, "-s") && strcmp(arg, "-v"))
			rc = add_argument(&left, arg);
	}
	if (rc) {
		fuse_opt_free_args(&left);
		return rc;
	}
	*args = left;
	return 0;
}

int h5_options_parse(int argc, char **argv, struct h5_options *options)
{
	struct command_line line = {.options = options};
	int rc;

	*options = (struct h5_options){.args = FUSE_ARGS_INIT(argc, argv), .is_helper = is_helper(argv[0])};
	fuse_set_log_func(say);
	rc = options->is_helper ? take_out(&options->args) : 0;
	if (!rc)
		rc = fuse_opt_parse(&options->args, &line, NULL, take_argument) ? -EINVAL : interpret(&line);
	fuse_set_log_func(NULL);
	for (size_t i = 0; i < KNOWN; i++)
		free(line.values[i]);
	if (rc)
		h5_options_release(options);
	return rc;
}

void h5_options_release(struct h5_options *options)
{
	fuse_opt_free_args(&options->args);
	free(options->file);
	free(options->mountpoint);
	free(options->journal);
	free(options->log);
	free(options->subdir);
	free(options->filters);
	options->filters = NULL;
	options->file = options->mountpoint = options->journal = options->log = options->subdir = NULL;
}
