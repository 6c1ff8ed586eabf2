#include "fuse/options.h"

#include "base/error.h"
#include "fuse/helper.h"
#include "fuse/io_uring.h"
#include "fuse/libfuse_arguments.h"
#include "fuse/option_defaults.h"
#include "fuse/option_table.h"
#include "fuse/option_values.h"
#include "remote/url.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DISK_CACHE ((uint64_t)10 << 30) /* bytes, if -o disk_cache_size= is not given */

enum { NAMES_MAX = 3 }; /* that a command takes */

#define HELP " (h5fs -h tells more)"

void h5_options_usage(const char *program)
{
	printf("usage: %s [options] FILE [MOUNTPOINT]\n"
	       "       %s [options] FOLDER MOUNTPOINT\n"
	       "       %s -u MOUNTPOINT\n"
	       "       %s --check|--kerchunk FILE\n"
	       "       %s --list [--json] FILE [PATH]\n"
	       "       %s --cat FILE PATH\n"
	       "       %s --extract FILE [PATH] DIR\n"
	       "       %s --reclaim|--recover [-o journal=DIR] FILE\n"
	       "Mounts an HDF5 file: groups are directories, datasets files, attributes extended "
	       "attributes.\n\n",
	       program, program, program, program, program, program, program, program);
	h5_option_help(false);
	printf("    -o OPTION[,OPTION...]  mount options\n\n");
	h5_option_help(true);
}

/* The values as they were written, by the number of the option in the table; NULL: not given. Of several
 * values of an option the last one counts. */
struct command_line {
	struct h5_options *options;
	size_t last;		      /* the option that was taken last */
	char *names[NAMES_MAX];	      /* owned: what is no option */
	unsigned count;		      /* of the names */
	char *values[H5_OPTIONS_MAX]; /* owned */
};

/* A list of filters has commas, too, so libfuse has split it. If this belongs to the list before, appends
 * it. */
static bool continues_list(struct command_line *line, const char *arg)
{
	char **value = &line->values[line->last], *longer;
	struct h5_filter_list list;

	if (h5_option_table[line->last].member != offsetof(struct h5_options, filters) || !*value || !*arg ||
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
	for (size_t i = 0; h5_option_table[i].name; i++) {
		size_t n = strlen(h5_option_table[i].name);

		if (strncmp(arg, h5_option_table[i].name, n))
			continue;
		line->last = i;
		if (h5_option_table[i].kind == H5_OPTION_FLAG && !arg[n]) {
			h5_option_set_flag(line->options, &h5_option_table[i]);
			return 0;
		}
		if (h5_option_table[i].kind != H5_OPTION_FLAG && arg[n] == '=') {
			free(line->values[i]);
			line->values[i] = strdup(arg + n + 1);
			return line->values[i] ? 0 : -1;
		}
	}
	if (h5_option_is_ignored(arg))
		return 0;
	if (line->options->sloppy)
		return 0;
	fprintf(stderr, "h5fs: unknown option %s%s" HELP "\n", *arg == '-' ? "" : "-o ", arg);
	return -1;
}

static int too_many(const char *arg)
{
	fprintf(stderr, "h5fs: too many arguments: %s\n", arg);
	return -EINVAL;
}

/* libfuse has split lists of options. */
static int take_argument(void *data, const char *arg, int key, struct fuse_args *args)
{
	struct command_line *line = data;

	(void)args;
	if (key != FUSE_OPT_KEY_NONOPT)
		return take_option(line, arg);
	if (line->count == NAMES_MAX) {
		too_many(arg);
		return -1; /* libfuse knows no other error */
	}
	line->names[line->count] = strdup(arg);
	return line->names[line->count++] ? 0 : -1;
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
	struct stat st;

	o->foreground |= o->debug;
	o->set.writable |= o->command == H5_COMMAND_RECOVER || o->create;
	if (o->command != H5_COMMAND_MOUNT && o->command != H5_COMMAND_RECOVER &&
	    o->command != H5_COMMAND_REMOUNT)
		o->set.writable = false;
	o->set.reclaims = o->command == H5_COMMAND_RECLAIM;
	o->set.writable |= o->set.reclaims;
	o->set.swmr &= !o->set.reclaims;
	o->vfs.writable = o->set.writable;
	o->set.journal = o->journal;
	o->is_folder = o->command == H5_COMMAND_MOUNT &&
		       (o->url ? h5_url_is_prefix(o->url) : !stat(o->file, &st) && S_ISDIR(st.st_mode));
	o->vfs.subdir = o->subdir;
	o->set.revision = o->revision;
	o->set.has_revision = o->revision != UINT64_MAX;
}

static int missing(const char *what)
{
	fprintf(stderr, "h5fs: %s" HELP "\n", what);
	return -EINVAL;
}

static int wrong_text(const char *option, const char *value, const char *why)
{
	fprintf(stderr, "h5fs: -o %s%s%s: %s\n", option, value ? "=" : "", value ? value : "", why);
	return -EINVAL;
}

/* Header lines may be secrets, which a command line shows to all. */
static int take_header(struct h5_options *o)
{
	o->fetcher.s3_endpoint = o->s3_endpoint;
	if (o->s3_endpoint && (!h5_url_is_remote(o->s3_endpoint) || h5_url_is_bucket(o->s3_endpoint)))
		return wrong_text("s3_endpoint", o->s3_endpoint, "must be a URL, https://HOST");
	if (!o->http_header)
		return 0;
	if (*o->http_header != '@' || !o->http_header[1])
		return wrong_text("http_header", "", "must be @FILE, a file of header lines");
	if (!o->url)
		return wrong_text("http_header", o->http_header, "only for a file behind a URL");
	o->fetcher.headers = o->http_header + 1;
	return 0;
}

static int take_disk_cache(struct h5_options *o)
{
	if (o->disk_cache && !o->url)
		return wrong_text("disk_cache", o->disk_cache, "only for a file behind a URL");
	if (o->fetcher.disk_cache_size && !o->disk_cache)
		return wrong_text("disk_cache_size", NULL, "only with disk_cache=DIR");
	if (!o->fetcher.disk_cache_size)
		o->fetcher.disk_cache_size = DISK_CACHE;
	return 0;
}

/* If the file is behind a URL, keeps that apart from what the log and the list of mounts show. */
static int take_url(struct h5_options *o)
{
	if (!h5_url_is_remote(o->file))
		return 0;
	o->url = h5_url_complete(o->file);
	explicit_bzero(o->file, strlen(o->file));
	free(o->file);
	o->file = o->url ? h5_url_shown(o->url) : NULL;
	if (!o->file)
		return -ENOMEM;
	if (h5_url_check(o->url)) {
		fprintf(stderr, "h5fs: %s\n", h5_error_last()->text);
		return -EINVAL;
	}
	if (h5_url_is_prefix(o->url) && o->command != H5_COMMAND_MOUNT && o->command != H5_COMMAND_REMOUNT)
		return missing("a prefix can only be mounted: the URL names no object");
	o->fetcher.url = o->url;
	return 0;
}

/* Where the command has its names. */
static void find_places(struct h5_options *o, unsigned count, char **to[NAMES_MAX])
{
	to[0] = &o->file;
	to[1] = to[2] = NULL;
	switch (o->command) {
	case H5_COMMAND_UNMOUNT:
		to[0] = &o->mountpoint;
		break;
	case H5_COMMAND_MOUNT:
	case H5_COMMAND_REMOUNT:
		to[1] = &o->mountpoint;
		break;
	case H5_COMMAND_CAT:
	case H5_COMMAND_LIST:
		to[1] = &o->path;
		break;
	case H5_COMMAND_EXTRACT:
		to[1] = count > 2 ? &o->path : &o->target;
		to[2] = &o->target;
		break;
	default:
		break;
	}
}

static int take_names(struct command_line *line)
{
	struct h5_options *o = line->options;
	char **to[NAMES_MAX];

	find_places(o, line->count, to);
	for (unsigned i = 0; i < line->count; i++) {
		if (!to[i])
			return too_many(line->names[i]);
		*to[i] = line->names[i];
		line->names[i] = NULL;
	}
	if (o->command == H5_COMMAND_UNMOUNT)
		return o->mountpoint ? 0 : missing("the mount point is missing: h5fs -u MOUNTPOINT");
	if (!o->file)
		return missing("the HDF5 file is missing: h5fs [options] FILE [MOUNTPOINT]");
	if (o->command == H5_COMMAND_REMOUNT && !o->mountpoint)
		return missing("the mount point is missing: h5fs -o remount,ro FILE MOUNTPOINT");
	if (o->command == H5_COMMAND_CAT && !o->path)
		return missing("the path is missing: h5fs --cat FILE PATH");
	if (o->command == H5_COMMAND_EXTRACT && !o->target)
		return missing("the directory is missing: h5fs --extract FILE [PATH] DIR");
	if (o->json && o->command != H5_COMMAND_LIST)
		return missing("--json: only with --list");
	return 0;
}

/* The URL of the file, without what may be secret; of a local one its path from the root on, since programs
 * that read kerchunk.json are anywhere. */
static int find_kerchunk_url(struct h5_options *o)
{
	char *given = o->kerchunk_url, *path = NULL;

	if (given && h5_url_is_remote(given)) {
		o->kerchunk_url = h5_url_shown(given);
		free(given);
	} else if (!given && o->url) {
		o->kerchunk_url = strdup(o->file);
	} else if (!given) {
		/* A file that is not there has no path; if it is made, it is empty. */
		path = realpath(o->file, NULL);
		if (asprintf(&o->kerchunk_url, "file://%s", path ? path : o->file) < 0)
			o->kerchunk_url = NULL;
		free(path);
	}
	o->vfs.url = o->kerchunk_url;
	return o->kerchunk_url ? 0 : -ENOMEM;
}

static int interpret(struct command_line *line)
{
	struct h5_options *o = line->options;
	const char *why;
	int rc = 0;

	if (o->help || o->version)
		return 0;
	rc = take_names(line);
	if (rc || o->command == H5_COMMAND_UNMOUNT)
		return rc;
	h5_option_defaults(o);
	rc = take_url(o);
	for (size_t i = 0; h5_option_table[i].name && !rc; i++)
		rc = line->values[i] ? h5_option_set(o, &h5_option_table[i], &line->values[i]) : 0;
	if (rc)
		return rc;
	complete(o);
	if (o->url && o->set.swmr && !o->set.writable)
		return wrong_text("swmr", NULL, "not for a file behind a URL");
	rc = parse_filters(o);
	if (!rc)
		rc = take_header(o);
	if (!rc)
		rc = take_disk_cache(o);
	why = rc ? NULL : h5_io_uring_settle(o);
	if (why)
		rc = wrong_text("io_uring", "yes", why);
	if (!rc)
		rc = find_kerchunk_url(o);
	if (!rc)
		rc = open_log(o);
	return rc ? rc : h5_libfuse_arguments(o);
}

/* Takes the queries of URLs out of the command line that /proc shows. */
static void hide_queries(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (h5_url_is_remote(argv[i])) {
			char *query = argv[i] + strcspn(argv[i], "?#");

			explicit_bzero(query, strlen(query));
		}
}

int h5_options_parse(int argc, char **argv, struct h5_options *options)
{
	struct command_line line = {.options = options};
	int rc;

	*options =
		(struct h5_options){.args = FUSE_ARGS_INIT(argc, argv), .is_helper = h5_helper_is(argv[0])};
	fuse_set_log_func(say);
	rc = options->is_helper ? h5_helper_take_out(options) : 0;
	if (!rc)
		rc = fuse_opt_parse(&options->args, &line, NULL, take_argument) ? -EINVAL : interpret(&line);
	fuse_set_log_func(NULL);
	hide_queries(argc, argv);
	for (size_t i = 0; h5_option_table[i].name; i++)
		free(line.values[i]);
	for (size_t i = 0; i < NAMES_MAX; i++)
		free(line.names[i]);
	if (rc)
		h5_options_release(options);
	return rc;
}

void h5_options_release(struct h5_options *options)
{
	fuse_opt_free_args(&options->args);
	free(options->file);
	free(options->mountpoint);
	free(options->path);
	free(options->target);
	free(options->journal);
	free(options->log);
	free(options->match);
	free(options->subdir);
	free(options->filters);
	free(options->kerchunk_url);
	free(options->http_header);
	free(options->disk_cache);
	free(options->s3_endpoint);
	if (options->url)
		explicit_bzero(options->url, strlen(options->url));
	free(options->url);
	options->kerchunk_url = options->filters = options->http_header = options->url = NULL;
	options->s3_endpoint = options->disk_cache = NULL;
	options->file = options->mountpoint = options->journal = options->log = options->subdir = NULL;
	options->match = options->path = options->target = NULL;
}
