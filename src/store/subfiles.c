#include "store/subfiles.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "format/subfiling.h"
#include "io/stripes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK   ".subfile_" /* stands between the name of the file and the inode number */
#define CONFIG ".config"

/* The subfiles of one file. */
struct set {
	struct h5_members *members;
	const char *base;   /* name of the file; borrowed */
	struct h5_io *stub; /* borrowed */
	const char *folder; /* that the stub names: of the configuration; "": none; borrowed */
	uint64_t number;    /* inode number in the names */
	struct h5_subfiling_config config;
};

/* True: after this failure the file counts as missing. */
static bool is_missing(int rc)
{
	return rc && rc != -EWOULDBLOCK && !h5_is_passing(rc);
}

static bool is_guarded(const struct set *set)
{
	return set->members->folder->external == H5_EXTERNAL_NONE;
}

/* ---- names ---- */

static char *config_name(const struct set *set, uint64_t number)
{
	char *name;

	return asprintf(&name, "%s" MARK "%ju" CONFIG, set->base, (uintmax_t)number) < 0 ? NULL : name;
}

/* The name of a subfile, from 0. In the name they count from 1, with as many digits as their number has. */
static char *subfile_name(const struct set *set, unsigned i, unsigned count)
{
	int width = snprintf(NULL, 0, "%u", count);
	char *name;

	return asprintf(&name, "%s" MARK "%ju_%0*u_of_%u", set->base, (uintmax_t)set->number, width, i + 1,
			count) < 0
		       ? NULL
		       : name;
}

/* Passes over the digits of a number, of which there is at least one; NULL: there is none, or it is too
 * large. */
static const char *read_number(const char *text, uint64_t *number)
{
	const char *p = text;

	for (*number = 0; isdigit((unsigned char)*p); p++)
		if (!h5_mul(*number, 10, number) || !h5_add(*number, (uint64_t)(*p - '0'), number))
			return NULL;
	return p > text ? p : NULL;
}

/* True: the text is the end of a name behind the mark; *number: the inode number in it. */
static bool match_end(const char *text, bool *is_config, uint64_t *number)
{
	const char *p = read_number(text, number);
	uint64_t i, count;

	*is_config = p && !strcmp(p, CONFIG);
	if (!p || *is_config)
		return p;
	p = *p == '_' ? read_number(p + 1, &i) : NULL;
	p = p && !strncmp(p, "_of_", 4) ? read_number(p + 4, &count) : NULL;
	return p && !*p;
}

/* True: it is a name of a subfile or a configuration of this file; *number: the inode number in it. */
static bool match_name(const struct set *set, const char *name, uint64_t *number)
{
	size_t n = strlen(set->base), mark = sizeof MARK - 1;
	bool is_config;

	return !strncmp(name, set->base, n) && !strncmp(name + n, MARK, mark) &&
	       match_end(name + n + mark, &is_config, number);
}

/* Finds MARK in the name of a subfile; NULL: this is no such name. */
static const char *find_mark(const char *name)
{
	const char *mark = strstr(name, MARK);
	bool is_config;
	uint64_t number;

	return mark && match_end(mark + sizeof MARK - 1, &is_config, &number) && !is_config ? mark : NULL;
}

/* ---- which set ---- */

/* Opens the file of that name beside the stub. */
static int open_beside(const struct set *set, const char *name, struct h5_io **io)
{
	return h5_folder_open_beside(set->members->folder, set->members->path, name,
				     is_guarded(set) ? set->stub : NULL, false, io);
}

/* Finds the inode number of all files beside the stub that have names of its set. -ENOENT: there are none, or
 * they cannot be listed; -ENOTSUP: there are several. */
static int find_number(struct set *set, DIR *dir)
{
	const struct dirent *entry;
	bool found = false;
	int rc = 0;

	while (!rc && (entry = readdir(dir))) {
		uint64_t number;

		rc = h5_interrupt_check();
		if (rc || !match_name(set, entry->d_name, &number))
			continue;
		if (found && number != set->number)
			rc = h5_fail(-ENOTSUP, H5_UNDEF,
				     "several sets of subfiles beside it (%s" MARK "%ju, %s" MARK
				     "%ju): which one is its own?",
				     set->base, (uintmax_t)set->number, set->base, (uintmax_t)number);
		else
			set->number = number;
		found = true;
	}
	return rc || found ? rc : -ENOENT;
}

/* Only the folder of the mounted file is listed. */
static int list_numbers(struct set *set)
{
	const struct h5_members *members = set->members;
	int fd = members->folder->fd < 0 || strchr(members->path, '/')
			 ? -1
			 : openat(members->folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int rc = dir ? find_number(set, dir) : -ENOENT;

	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return rc;
}

/* Opens a file of the set in a folder that a file names, as other files that a file names; "": in none. */
static int open_elsewhere(const struct set *set, const char *folder, const char *name, struct h5_io **io)
{
	const char *path = set->members->path;
	int before = folder[0] == '/' ? 0 : (int)(set->base - path), rc;
	char *all;

	if (!folder[0] || is_guarded(set))
		return -ENOENT;
	if (asprintf(&all, "%.*s%s/%s", before, path, folder, name) < 0)
		return -ENOMEM;
	rc = h5_folder_open_member(set->members->folder, all, false, io);
	free(all);
	return rc;
}

/* Opens it beside the stub, or else in that folder. */
static int open_in_either(const struct set *set, const char *folder, const char *name, struct h5_io **io)
{
	int rc = open_beside(set, name, io);

	return is_missing(rc) ? open_elsewhere(set, folder, name, io) : rc;
}

/* True: the set of that inode number is there, by its configuration or by its first subfile. */
static int is_there(struct set *set, uint64_t subfiles, bool *there)
{
	struct h5_io *io = NULL;
	char *name = config_name(set, set->number);
	int rc = name ? open_in_either(set, set->folder, name, &io) : -ENOMEM;

	free(name);
	if (is_missing(rc) && subfiles && subfiles <= H5_MEMBERS_MAX) {
		name = subfile_name(set, 0, (unsigned)subfiles);
		rc = name ? open_beside(set, name, &io) : -ENOMEM;
		free(name);
	}
	*there = !rc;
	h5_io_close(io);
	return is_missing(rc) ? 0 : rc;
}

/* Finds the inode number in the names. -ENOENT: there is no set. */
static int choose_set(struct set *set, uint64_t subfiles)
{
	struct h5_io_stat st;
	bool there;
	int rc = h5_io_stat(set->stub, &st);

	if (rc)
		return rc;
	set->number = st.inode;
	rc = is_there(set, subfiles, &there);
	return rc || there ? rc : list_numbers(set);
}

/* ---- the configuration ---- */

static int read_config(struct set *set, struct h5_io *io)
{
	char *text = malloc(H5_SUBFILING_TEXT_MAX);
	size_t n = 0;
	int rc = text ? h5_io_read_some(io, 0, text, H5_SUBFILING_TEXT_MAX, &n) : -ENOMEM;

	if (!rc)
		rc = h5_subfiling_config_decode(text, n, &set->config);
	free(text);
	return rc;
}

/* Reads the configuration, if it is there, and compares it with what the stub says. */
static int load_config(struct set *set, const struct h5_driver_info *info)
{
	bool sure = info->driver == H5_DRIVER_SUBFILING;
	struct h5_io *io = NULL;
	char *name = config_name(set, set->number);
	int rc = name ? open_in_either(set, set->folder, name, &io) : -ENOMEM;

	if (is_missing(rc))
		rc = sure ? 0 : h5_fail(-EIO, H5_UNDEF, "the size of the stripes is not known");
	else if (!rc)
		rc = read_config(set, io);
	if (!rc && io && sure &&
	    (set->config.stripe_size != info->stripe_size || set->config.subfiles != info->subfiles))
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "it contradicts the driver information of the file");
	if (!rc && sure) {
		set->config.stripe_size = info->stripe_size;
		set->config.subfiles = info->subfiles;
	}
	h5_io_close(io);
	rc = rc && name ? h5_fail_in(rc, "%s", name) : rc;
	free(name);
	return rc;
}

/* ---- the subfiles ---- */

static int open_one(const struct set *set, struct h5_io_member *subfile)
{
	int rc = open_in_either(set, set->config.folder, subfile->name, &subfile->io);

	return is_missing(rc) ? 0 : h5_fail_in(rc, "%s", subfile->name);
}

static int open_all(const struct set *set, struct h5_io_member *list, unsigned count)
{
	bool there = false;
	int rc = 0;

	for (unsigned i = 0; i < count && !rc; i++) {
		list[i].name = subfile_name(set, i, count);
		rc = list[i].name ? open_one(set, &list[i]) : -ENOMEM;
		there |= list[i].io != NULL;
	}
	return rc || there ? rc
			   : h5_fail(-EIO, H5_UNDEF,
				     "a stub of the subfiling driver, whose subfiles (%s%s) are missing",
				     list[0].name, count > 1 ? ", ..." : "");
}

static int join_subfiles(const struct set *set, struct h5_io **io)
{
	uint64_t count = set->config.subfiles;
	struct h5_io_member *list;
	int rc;

	if (count > H5_MEMBERS_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "more than %d subfiles", H5_MEMBERS_MAX);
	list = h5_calloc(count, sizeof *list);
	if (!list)
		return -ENOMEM;
	rc = open_all(set, list, (unsigned)count);
	if (!rc)
		rc = h5_members_note_missing(set->members, list, (unsigned)count);
	if (!rc)
		rc = h5_io_open_stripes(set->stub, list, (unsigned)count, set->config.stripe_size, io);
	if (rc)
		h5_io_members_release(list, (unsigned)count);
	free(list);
	return rc;
}

/* No subfiles are beside the file, which is cut off or `sure` to be a stub. */
static int fail_without(const struct set *set, bool sure)
{
	const char *mark = find_mark(set->base);

	if (mark)
		return h5_fail(-ENOTSUP, H5_UNDEF, "one of the subfiles of a file: %.*s stands for all",
			       (int)(mark - set->base), set->base);
	return sure ? h5_fail(-EIO, H5_UNDEF,
			      "a stub of the subfiling driver, without its subfiles (%s" MARK
			      "...) beside it%s%s",
			      set->base, set->folder[0] ? ", or their configuration in " : "", set->folder)
		    : 0;
}

int h5_subfiles_open(struct h5_members *members, const struct h5_driver_info *info,
		     struct h5_driver_info *said, struct h5_io **io)
{
	const char *slash = strrchr(members->path, '/');
	struct set set = {.members = members,
			  .base = slash ? slash + 1 : members->path,
			  .stub = *io,
			  .folder = info->folder};
	bool sure = info->driver == H5_DRIVER_SUBFILING;
	int rc;

	if (members->folder->remote)
		return sure ? h5_fail(-ENOTSUP, H5_UNDEF,
				      "a stub of the subfiling driver: behind a URL its subfiles are not "
				      "read")
			    : 0;
	rc = choose_set(&set, info->subfiles);
	if (rc == -ENOENT)
		return fail_without(&set, sure);
	if (!rc)
		rc = load_config(&set, info);
	if (!rc)
		rc = join_subfiles(&set, io);
	if (rc)
		return rc;
	*said = (struct h5_driver_info){.driver = H5_DRIVER_SUBFILING,
					.stripe_size = set.config.stripe_size,
					.subfiles = set.config.subfiles};
	return 0;
}
