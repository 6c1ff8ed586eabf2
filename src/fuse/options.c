#include "fuse/options.h"

#include "base/checked.h"
#include "base/error.h"

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
	MAX_WORK = 2,	 /* seconds */
	WAIT = 2,	 /* seconds */
	INDEX_SHARE = 4, /* of the cache for chunks */
	WORKERS_MAX = 64,
	GATHER = 32 << 20, /* of chunks that small writes fill */
};

/* The values as they were written, NULL where not given. */
struct texts {
	struct h5_options *options;
	char *external, *locking, *order, *xattr, *sandbox;
	char *uid, *gid, *fmask, *dmask;
	char *cache, *index_cache, *max_chunk, *max_work, *workers;
	char *sync, *journal;
	char *subdir, *offset, *userblock, *timeout, *wait, *log;
	int writable, swmr, force, external_write;
	int allow_other, nonempty, foreground, debug, single_thread, quiet, verbose, help, version;
	int command; /* enum h5_command */
};

#define TEXT(name)                                                                                           \
	{                                                                                                    \
#name "=%s", offsetof(struct texts, name), 0                                                 \
	}
#define FLAG(text, name)                                                                                     \
	{                                                                                                    \
		text, offsetof(struct texts, name), 1                                                        \
	}
#define COMMAND(text, value)                                                                                 \
	{                                                                                                    \
		text, offsetof(struct texts, command), value                                                 \
	}

/* FUSE_OPT_KEY(), but for a conversion that Clang warns of. */
#define IGNORED(text)                                                                                        \
	{                                                                                                    \
		text, (unsigned long)-1U, FUSE_OPT_KEY_DISCARD                                               \
	}

#define HELP " (h5fs -h tells more)"

static const struct fuse_opt known[] = {
	FLAG("-f", foreground),
	FLAG("-d", debug),
	FLAG("debug", debug),
	FLAG("-s", single_thread),
	FLAG("-h", help),
	FLAG("--help", help),
	FLAG("-V", version),
	FLAG("--version", version),
	FLAG("allow_other", allow_other),
	FLAG("nonempty", nonempty),
	TEXT(external),
	TEXT(locking),
	TEXT(order),
	TEXT(xattr),
	TEXT(sandbox),
	TEXT(uid),
	TEXT(gid),
	TEXT(fmask),
	TEXT(dmask),
	TEXT(cache),
	TEXT(index_cache),
	TEXT(max_chunk),
	TEXT(max_work),
	TEXT(workers),
	TEXT(sync),
	TEXT(journal),
	/* As for mount(8), the last one counts. */
	FLAG("rw", writable),
	{"ro", offsetof(struct texts, writable), 0},
	FLAG("swmr", swmr),
	FLAG("force", force),
	FLAG("external-write", external_write),
	TEXT(subdir),
	TEXT(offset),
	TEXT(userblock),
	TEXT(timeout),
	TEXT(wait),
	TEXT(log),
	FLAG("quiet", quiet),
	FLAG("verbose", verbose),
	/* What fstab(5) may say beside, to others or in general. */
	IGNORED("defaults"),
	IGNORED("auto"),
	IGNORED("noauto"),
	IGNORED("nofail"),
	IGNORED("_netdev"),
	IGNORED("user"),
	IGNORED("user="),
	IGNORED("users"),
	IGNORED("nouser"),
	IGNORED("noatime"),
	IGNORED("relatime"),
	IGNORED("nodiratime"),
	IGNORED("atime"),
	IGNORED("diratime"),
	IGNORED("strictatime"),
	IGNORED("lazytime"),
	IGNORED("async"),
	IGNORED("group"),
	IGNORED("owner"),
	IGNORED("silent"),
	IGNORED("loud"),
	IGNORED("suid"), /* nosuid, nodev and noexec are in force anyway */
	IGNORED("dev"),
	IGNORED("exec"),
	IGNORED("nosuid"),
	IGNORED("nodev"),
	IGNORED("noexec"),
	COMMAND("--check", H5_COMMAND_CHECK),
	COMMAND("--list", H5_COMMAND_LIST),
	COMMAND("--recover", H5_COMMAND_RECOVER),
	FUSE_OPT_END,
};

void h5_options_usage(const char *program)
{
	printf("usage: %s [options] FILE [MOUNTPOINT]\n"
	       "       %s --check|--list FILE\n"
	       "       %s --recover [-o journal=DIR] FILE\n"
	       "Mounts an HDF5 file: groups are directories, datasets files, attributes extended "
	       "attributes.\n"
	       "\n"
	       "    -f                     stay in the foreground\n"
	       "    -d                     debug output of libfuse (implies -f)\n"
	       "    -s                     serve one request at a time\n"
	       "    --check                verify all that the file holds; no mount\n"
	       "    --list                 print what a mount would show; no mount\n"
	       "    --recover              deal with the journal that a killed mount has left; no mount\n"
	       "    -h, --help             this text\n"
	       "    -V, --version          versions\n"
	       "    -o OPTION[,OPTION...]  mount options\n"
	       "\n"
	       "    ro                     read-only (the default)\n"
	       "    rw                     datasets can be appended to and overwritten\n"
	       "    swmr                   rw: HDF5 programs read along; ro: another program writes along\n"
	       "    force                  rw in spite of marks in the file, or of several hard links to it\n"
	       "    external-write         rw: external raw files, too\n"
	       "    sync=WHEN              what is written is durable after: close (the default), fsync\n"
	       "    journal=DIR            where the journal of the file is (its own directory)\n"
	       "    external=RULE          other files that may be opened: none, beneath (the file's "
	       "directory), any\n"
	       "    locking=HOW            yes, no, best-effort; also HDF5_USE_FILE_LOCKING\n"
	       "    order=ORDER            of listings: name, creation\n"
	       "    xattr=FORM             of attributes: text, raw\n"
	       "    uid=N                  owner of all files\n"
	       "    gid=N                  group of all files\n"
	       "    fmask=OCTAL            mode bits taken out of files\n"
	       "    dmask=OCTAL            mode bits taken out of directories\n"
	       "    subdir=/GROUP          mount only this group\n"
	       "    offset=N               the size of the user block: where the HDF5 file begins\n"
	       "    userblock=N            the same; mount(8) takes offset= for itself\n"
	       "    timeout=SECONDS        unmount when nothing was asked for so long\n"
	       "    wait=SECONDS           wait so long for a file that another program has locked (2; 0: "
	       "not)\n"
	       "    log=WHERE              a file, or syslog, instead of standard error\n"
	       "    quiet                  log only what ends the mount or loses data\n"
	       "    verbose                log also what is done\n"
	       "    allow_other            other users may look, too\n"
	       "    nonempty               the mount point may have files, which are hidden meanwhile\n"
	       "    sandbox=WHETHER        the daemon gives up what it does not need: yes (the default), no\n"
	       "    cache=SIZE             of decoded chunks (64M and a 32nd of the memory, at most 640M)\n"
	       "    index_cache=SIZE       of decoded metadata blocks (a quarter of that)\n"
	       "    max_chunk=SIZE         of a decoded chunk, at most (an 8th of the memory, but 256M to "
	       "1G)\n"
	       "    max_work=SECONDS       that a request may work, beyond what the file's bytes call for "
	       "(2; 0: any)\n"
	       "    workers=N              threads that decode and encode chunks (the processors; 0 to 64)\n",
	       program, program, program);
}

/* ---- values ---- */

static int wrong(const char *option, const char *value, const char *allowed)
{
	fprintf(stderr, "h5fs: -o %s=%s: must be %s\n", option, value, allowed);
	return -EINVAL;
}

/* Index of the value among the n words; `deflt` where there is none, -EINVAL for another one. */
static int choose(const char *option, const char *value, const char *const *words, int n, int deflt,
		  const char *allowed)
{
	if (!value)
		return deflt;
	for (int i = 0; i < n; i++)
		if (!strcmp(value, words[i]))
			return i;
	return wrong(option, value, allowed);
}

/* A number in the base, up to max. */
static int parse_number(const char *option, const char *value, int base, uint64_t max, uint64_t *number)
{
	char allowed[64], *end;

	errno = 0;
	*number = strtoull(value, &end, base);
	if (!errno && !*end && isdigit((unsigned char)*value) && *number <= max)
		return 0;
	snprintf(allowed, sizeof allowed,
		 base == 8 ? "an octal number from 0 to %#jo" : "a number from 0 to %ju", (uintmax_t)max);
	return wrong(option, value, allowed);
}

/* Bytes, with K, M, G for powers of 1024. */
static int parse_size(const char *option, const char *value, size_t *size)
{
	static const char units[] = "KMG";
	const char *allowed = "a size such as 64M";
	const char *unit;
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(value, &end, 10);
	if (errno || !isdigit((unsigned char)*value))
		return wrong(option, value, allowed);
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (*end && (!unit || end[1]))
		return wrong(option, value, allowed);
	for (const char *u = units; unit && u <= unit; u++)
		if (__builtin_mul_overflow(n, 1024, &n))
			return wrong(option, value, allowed);
	if (n > SIZE_MAX)
		return wrong(option, value, "a size that fits in this machine's address space");
	*size = (size_t)n;
	return 0;
}

/* HDF5_USE_FILE_LOCKING says what locking= does not. */
static enum h5_lock_mode lock_by_environment(void)
{
	const char *value = getenv("HDF5_USE_FILE_LOCKING");

	if (value && (!strcasecmp(value, "FALSE") || !strcmp(value, "0")))
		return H5_LOCK_NONE;
	return value && !strcasecmp(value, "BEST_EFFORT") ? H5_LOCK_BEST_EFFORT : H5_LOCK_ALWAYS;
}

static int parse_words(const struct texts *t, struct h5_options *o)
{
	static const char *const rules[] = {"none", "beneath", "any"};
	static const char *const locks[] = {"no", "yes", "best-effort"};
	static const char *const orders[] = {"name", "creation"};
	static const char *const forms[] = {"text", "raw"};
	static const char *const syncs[] = {"close", "fsync"};
	static const char *const whether[] = {"no", "yes"};
	int external =
		choose("external", t->external, rules, 3,
		       t->allow_other ? H5_EXTERNAL_NONE : H5_EXTERNAL_BENEATH, "none, beneath or any");
	int lock =
		choose("locking", t->locking, locks, 3, (int)lock_by_environment(), "yes, no or best-effort");
	int order = choose("order", t->order, orders, 2, 0, "name or creation");
	int form = choose("xattr", t->xattr, forms, 2, 0, "text or raw");
	int sync = choose("sync", t->sync, syncs, 2, 0, "close or fsync");
	int sandbox = choose("sandbox", t->sandbox, whether, 2, 1, "yes or no");

	if (external < 0 || lock < 0 || order < 0 || form < 0 || sync < 0 || sandbox < 0)
		return -EINVAL;
	o->set.external = (enum h5_external)external;
	o->set.lock = (enum h5_lock_mode)lock;
	o->vfs.order_by_creation = order;
	o->vfs.raw_attributes = form;
	o->vfs.commit_at_close = !sync;
	o->sandbox = sandbox;
	return 0;
}

/* Bytes; 0: nobody knows. */
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

static int parse_engine(const struct texts *t, struct h5_file_set_options *set)
{
	uint64_t workers = default_workers();
	int rc = 0;

	set->chunk_cache = default_cache();
	set->block_cache = set->chunk_cache / INDEX_SHARE;
	if (t->cache)
		rc = parse_size("cache", t->cache, &set->chunk_cache);
	if (!rc && t->index_cache)
		rc = parse_size("index_cache", t->index_cache, &set->block_cache);
	set->max_chunk = default_max_chunk();
	if (!rc && t->max_chunk)
		rc = parse_size("max_chunk", t->max_chunk, &set->max_chunk);
	if (!rc && (!set->max_chunk || set->max_chunk > H5_MAX_CHUNK_LIMIT))
		rc = wrong("max_chunk", t->max_chunk, "a size from 1 to 1G");
	if (!rc && t->workers)
		rc = parse_number("workers", t->workers, 10, WORKERS_MAX, &workers);
	set->workers = (unsigned)workers;
	return rc;
}

static int parse_numbers(const struct texts *t, struct h5_options *o)
{
	uint64_t uid = getuid(), gid = getgid(), fmask = 0, dmask = 0, timeout = 0, offset = 0,
		 max_work = MAX_WORK, wait = WAIT;
	int rc = 0;

	if (t->uid)
		rc = parse_number("uid", t->uid, 10, UINT32_MAX - 1, &uid);
	if (!rc && t->gid)
		rc = parse_number("gid", t->gid, 10, UINT32_MAX - 1, &gid);
	if (!rc && t->fmask)
		rc = parse_number("fmask", t->fmask, 8, 0777, &fmask);
	if (!rc && t->dmask)
		rc = parse_number("dmask", t->dmask, 8, 0777, &dmask);
	if (!rc && t->timeout)
		rc = parse_number("timeout", t->timeout, 10, INT32_MAX, &timeout);
	if (!rc && t->wait)
		rc = parse_number("wait", t->wait, 10, INT32_MAX, &wait);
	if (!rc && t->offset)
		rc = parse_number("offset", t->offset, 10, INT64_MAX, &offset);
	if (!rc && t->userblock)
		rc = parse_number("userblock", t->userblock, 10, INT64_MAX, &offset);
	if (!rc && t->max_work)
		rc = parse_number("max_work", t->max_work, 10, UINT16_MAX, &max_work);
	if (!rc)
		rc = parse_engine(t, &o->set);
	o->timeout = (unsigned)timeout;
	o->set.wait = (unsigned)wait;
	o->set.offset = offset;
	o->vfs.max_work = (unsigned)max_work;
	o->vfs.uid = (uid_t)uid;
	o->vfs.gid = (gid_t)gid;
	o->vfs.fmask = (mode_t)fmask;
	o->vfs.dmask = (mode_t)dmask;
	return rc;
}

/* ---- the command line ---- */

static int take_argument(void *data, const char *arg, int key, struct fuse_args *args)
{
	struct h5_options *o = ((struct texts *)data)->options;
	char **place;

	(void)args;
	/* As mount(8) has it, options for others than who mounts, and empty ones. */
	if (key == FUSE_OPT_KEY_OPT && (!*arg || !strncmp(arg, "x-", 2) || !strncmp(arg, "comment=", 8)))
		return 0;
	if (key == FUSE_OPT_KEY_OPT && !strcmp(arg, "remount")) {
		fprintf(stderr, "h5fs: -o remount: not possible; unmount it, and mount it anew\n");
		return -1;
	}
	if (key != FUSE_OPT_KEY_NONOPT) {
		fprintf(stderr, "h5fs: unknown option %s%s" HELP "\n", *arg == '-' ? "" : "-o ", arg);
		return -1;
	}
	place = !o->file ? &o->file : !o->mountpoint ? &o->mountpoint : NULL;
	if (!place) {
		fprintf(stderr, "h5fs: too many arguments: %s\n", arg);
		return -1;
	}
	*place = strdup(arg);
	return *place ? 0 : -1;
}

/* What libfuse has to say of it. */
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

/* What libfuse shall tell the kernel. */
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

/* Before anything can go wrong, so that it can be said there. */
static int open_log(struct texts *t, struct h5_options *o)
{
	int rc;

	if (!t->log)
		return 0;
	if (!strcmp(t->log, "syslog")) {
		o->to_syslog = true;
		return 0;
	}
	rc = h5_log_open(t->log, o->file);
	if (rc) {
		fprintf(stderr, "h5fs: -o log=%s: %s\n", t->log, h5_error_last()->text);
		return -EINVAL;
	}
	o->log = t->log;
	t->log = NULL;
	return 0;
}

static void take_flags(struct texts *t, struct h5_options *o)
{
	o->set.writable = o->vfs.writable = t->writable || o->command == H5_COMMAND_RECOVER;
	o->set.swmr = t->swmr;
	o->set.force = t->force;
	o->set.journal = o->journal = t->journal;
	t->journal = NULL;
	o->vfs.subdir = o->subdir = t->subdir;
	t->subdir = NULL;
	o->level = t->quiet ? H5_LOG_QUIET : t->verbose ? H5_LOG_VERBOSE : H5_LOG_NORMAL;
	o->vfs.external_write = t->external_write;
	o->vfs.gather = GATHER;
}

static int interpret(struct texts *t, struct h5_options *o)
{
	int rc;

	o->foreground = t->foreground || t->debug;
	o->debug = t->debug;
	o->single_thread = t->single_thread;
	o->help = t->help;
	o->version = t->version;
	o->command = (enum h5_command)t->command;
	o->allow_other = t->allow_other;
	o->nonempty = t->nonempty;
	take_flags(t, o);
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
	rc = parse_words(t, o);
	if (!rc)
		rc = parse_numbers(t, o);
	if (!rc)
		rc = open_log(t, o);
	return rc ? rc : mount_arguments(o);
}

/* mount(8) calls /sbin/mount.fuse.h5fs FILE DIR -o OPTIONS, with options of its own before or behind. */
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
	struct texts t = {.options = options};
	int rc;

	*options = (struct h5_options){.args = FUSE_ARGS_INIT(argc, argv), .is_helper = is_helper(argv[0])};
	fuse_set_log_func(say);
	rc = options->is_helper ? take_out(&options->args) : 0;
	if (!rc)
		rc = fuse_opt_parse(&options->args, &t, known, take_argument) ? -EINVAL
									      : interpret(&t, options);
	fuse_set_log_func(NULL);
	free(t.external);
	free(t.locking);
	free(t.order);
	free(t.xattr);
	free(t.sandbox);
	free(t.uid);
	free(t.gid);
	free(t.fmask);
	free(t.dmask);
	free(t.cache);
	free(t.index_cache);
	free(t.max_chunk);
	free(t.max_work);
	free(t.workers);
	free(t.sync);
	free(t.journal);
	free(t.subdir);
	free(t.offset);
	free(t.userblock);
	free(t.timeout);
	free(t.wait);
	free(t.log);
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
	options->file = options->mountpoint = options->journal = options->log = options->subdir = NULL;
}
