#include "store/members.h"

#include "base/checked.h"
#include "base/error.h"
#include "format/superblock.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last component of a path. */
static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Opens the file of that name beside the first member. */
static int open_beside(const struct h5_members *members, const char *name, bool writable, struct h5_io **io)
{
	return h5_folder_open_beside(members->folder, members->path, name,
				     members->guarded ? members->first : NULL, writable, io);
}

/* True: after this failure the member counts as missing. Without memory or descriptors, or if it is locked,
 * it does not. */
static bool is_missing(int rc)
{
	return rc && rc != -EWOULDBLOCK && rc != -EMFILE && rc != -ENFILE && rc != -ENOMEM;
}

int h5_members_note_missing(struct h5_members *members, const struct h5_io_member *list, unsigned count)
{
	const char *first = NULL;
	char more[32] = "";
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++)
		if (!list[i].io && !n++)
			first = list[i].name;
	if (!n)
		return 0;
	if (n > 1)
		snprintf(more, sizeof more, " and %u more", n - 1);
	return asprintf(&members->missing, "%s%s", first, more) < 0 ? -ENOMEM : 0;
}

/* ---- family ---- */

/* Name of a member: prefix, number, suffix. */
struct numbering {
	char prefix[NAME_MAX + 1], suffix[NAME_MAX + 1];
	int width;
	bool zeros; /* fill the width up with zeros, not with spaces */
};

static char *name_of(const struct numbering *n, unsigned number)
{
	const char *format = n->zeros ? "%s%0*u%s" : "%s%*u%s";
	char *name;

	return asprintf(&name, format, n->prefix, n->width, number, n->suffix) < 0 ? NULL : name;
}

/* The numbering of a name in which the `width` zeros at `at` are the number. */
static void numbering_from_zeros(struct numbering *n, const char *name, size_t at, size_t width)
{
	*n = (struct numbering){.width = (int)width, .zeros = true};
	memcpy(n->prefix, name, at);
	strcpy(n->suffix, name + at + width);
}

/* The numbering of a printf pattern with one %d (%5d, %05d); %% stands for %. False: it is no such pattern.
 */
static bool numbering_from_pattern(struct numbering *n, const char *pattern)
{
	char *out = n->prefix;
	bool seen = false;

	*n = (struct numbering){0};
	if (strlen(pattern) > NAME_MAX)
		return false;
	for (const char *p = pattern; *p; p++) {
		if (*p != '%') {
			*out++ = *p;
		} else if (p[1] == '%') {
			*out++ = *p++;
		} else if (seen) {
			return false;
		} else {
			n->zeros = p[1] == '0';
			for (p++; isdigit((unsigned char)*p); p++)
				n->width = n->width > NAME_MAX ? n->width : 10 * n->width + (*p - '0');
			if (*p != 'd' || n->width > NAME_MAX)
				return false;
			seen = true;
			out = n->suffix;
		}
	}
	return seen;
}

int h5_members_first_path(const char *path, char **first)
{
	const char *base = base_name(path);
	struct numbering n;
	char *name;

	*first = NULL;
	if (!numbering_from_pattern(&n, base))
		return 0;
	name = name_of(&n, 0);
	if (!name || asprintf(first, "%.*s%s", (int)(base - path), path, name) < 0)
		*first = NULL;
	free(name);
	return *first ? 0 : -ENOMEM;
}

static bool has_signature(struct h5_io *io)
{
	char begin[sizeof H5_SIGNATURE - 1];
	size_t got;

	return !h5_io_read_some(io, 0, begin, sizeof begin, &got) && got == sizeof begin &&
	       !memcmp(begin, H5_SIGNATURE, sizeof begin);
}

static int open_numbered(const struct h5_members *members, const struct numbering *n, unsigned number,
			 struct h5_io_member *member)
{
	int rc;

	member->name = name_of(n, number);
	rc = member->name ? open_beside(members, member->name, members->writable, &member->io) : -ENOMEM;
	if (rc || !members->guarded || !has_signature(member->io))
		return rc;
	h5_io_close(member->io);
	member->io = NULL;
	return h5_fail(-EACCES, H5_UNDEF, "%s: no member but a file of its own", member->name);
}

/* Finds which zeros in the first member's name are its number. Tries runs of zeros from the end of the name,
 * and takes the first for which member 1 exists; if none has one, the last run in the name. False: the name
 * has no zeros. */
static bool find_numbering(const struct h5_members *members, struct numbering *n)
{
	const char *name = base_name(members->path);
	size_t end = strlen(name), last = 0;

	if (members->pattern)
		return numbering_from_pattern(n, members->pattern);
	if (end > NAME_MAX)
		return false;
	while (end) {
		struct h5_io_member second = {0};
		size_t at = end;
		int rc;

		while (at && name[at - 1] == '0')
			at--;
		if (at == end) {
			end--;
			continue;
		}
		numbering_from_zeros(n, name, at, end - at);
		rc = open_numbered(members, n, 1, &second);
		h5_io_members_release(&second, 1);
		if (!is_missing(rc))
			return true;
		last = last ? last : end;
		end = at;
	}
	if (!last)
		return false;
	for (end = last; last && name[last - 1] == '0';)
		last--;
	numbering_from_zeros(n, name, last, end - last);
	return true;
}

/* Opens the members from the second on. */
static int open_numbers(const struct h5_members *members, const struct numbering *n, uint64_t size,
			struct h5_io_member *list, unsigned count)
{
	int rc = 0;

	for (unsigned i = 1; i < count && !rc; i++) {
		list[i].start = i * size;
		rc = open_numbered(members, n, i, &list[i]);
		if (is_missing(rc) && !members->writable)
			rc = 0;
		else if (rc)
			rc = h5_fail_in(rc, "%s", list[i].name);
	}
	return rc;
}

/* Opens what follows the last member that is in use: a commit that was cut off may have made it, or the file
 * was longer. An HDF5 file is no such member. */
static int open_unused(const struct h5_members *members, const struct numbering *n, uint64_t size,
		       struct h5_io_member *list, unsigned *count)
{
	int rc = 0;

	while (!rc && *count < H5_MEMBERS_MAX) {
		struct h5_io_member *next = &list[*count];

		rc = open_numbered(members, n, *count, next);
		if (!rc && has_signature(next->io))
			rc = -ENOENT;
		if (!rc) {
			next->start = *count * size;
			++*count;
		} else {
			h5_io_members_release(next, 1);
		}
	}
	return is_missing(rc) ? 0 : rc;
}

/* Without locks, one file may be opened as two members, by a link. */
static int check_different(const struct h5_io_member *list, unsigned count)
{
	struct h5_io_stat *st = calloc(count, sizeof *st);
	int rc = st ? 0 : -ENOMEM;

	for (unsigned i = 0; i < count && !rc; i++) {
		rc = h5_io_stat(list[i].io, &st[i]);
		for (unsigned j = 0; j < i && !rc; j++)
			if (st[i].device == st[j].device && st[i].inode == st[j].inode)
				rc = h5_fail(-EINVAL, H5_UNDEF, "%s and %s are one file", list[j].name,
					     list[i].name);
	}
	free(st);
	return rc;
}

/* What makes the next members. */
struct maker {
	const struct h5_folder *folder; /* borrowed */
	struct h5_io *first;		/* borrowed */
	struct numbering numbering;
};

static int make_member(void *arg, unsigned number, struct h5_io_member *member)
{
	const struct maker *maker = arg;
	int rc;

	member->name = name_of(&maker->numbering, number);
	rc = member->name ? h5_folder_make_member(maker->folder, member->name, maker->first, &member->io)
			  : -ENOMEM;
	if (rc)
		h5_io_members_release(member, 1);
	return rc;
}

/* *io becomes one that can be written and takes over what is in the list. */
static int join_writable(const struct h5_members *members, const struct numbering *n, uint64_t size,
			 struct h5_io_member *list, unsigned count, struct h5_io **io)
{
	struct h5_io_family family = {
		.size = size, .most = H5_MEMBERS_MAX, .make = make_member, .release = free};
	struct maker *maker = malloc(sizeof *maker);
	int rc = maker ? open_unused(members, n, size, list, &count) : -ENOMEM;

	if (!rc)
		rc = check_different(list, count);
	if (!rc) {
		*maker = (struct maker){.folder = members->folder, .first = list[0].io, .numbering = *n};
		family.arg = maker;
		rc = h5_io_open_family(list, count, &family, io);
	}
	if (rc) {
		free(maker);
		list[0].io = NULL; /* stays the caller's */
		h5_io_members_release(list, count);
	}
	return rc;
}

/* True: all members are there, all but the last have that size, and none is a file of its own. */
static bool is_whole_family(const struct h5_members *members, const struct h5_io_member *list, unsigned count,
			    uint64_t size)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < count; i++) {
		struct h5_io_stat st;

		if (!list[i].io || h5_io_stat(list[i].io, &st) || st.size > size ||
		    (i + 1 < count && st.size < size) || (i && has_signature(list[i].io)))
			return false;
		all += st.size;
	}
	return all >= members->end;
}

/* Opens the members in the list, which has room for H5_MEMBERS_MAX, and joins them. */
static int join_numbers(struct h5_members *members, const struct numbering *n, uint64_t size, bool sure,
			struct h5_io_member *list, unsigned count, struct h5_io **io)
{
	int rc;

	list[0].io = *io;
	list[0].name = strdup(base_name(members->path));
	rc = list[0].name ? open_numbers(members, n, size, list, count) : -ENOMEM;
	if (!rc && members->writable && sure)
		return join_writable(members, n, size, list, count, io);
	if (!rc && (sure || is_whole_family(members, list, count, size))) {
		rc = h5_members_note_missing(members, list, count);
		if (!rc)
			rc = h5_io_open_members(list, count, io);
		if (!rc)
			return 0;
	}
	list[0].io = NULL; /* stays the caller's */
	h5_io_members_release(list, count);
	return rc;
}

static int refuse_nameless(struct h5_members *members)
{
	static const char what[] = "all members but this one (its name has no number 0)";

	if (members->writable)
		return h5_fail(-ENOTSUP, H5_UNDEF, "the name of the first member has no number 0");
	members->missing = strdup(what);
	return members->missing ? 0 : -ENOMEM;
}

static int open_family(struct h5_members *members, uint64_t size, bool sure, struct h5_io **io)
{
	uint64_t count = members->end / size + (members->end % size != 0);
	struct h5_io_member *list;
	struct numbering n;
	int rc;

	if (members->end == H5_UNDEF || (count < 2 && !(members->writable && sure)))
		return 0;
	if (!find_numbering(members, &n))
		return sure ? refuse_nameless(members) : 0;
	if (count > H5_MEMBERS_MAX)
		return !sure ? 0
			     : h5_fail(-ENOTSUP, H5_UNDEF, "a family of more than %d members",
				       H5_MEMBERS_MAX);
	list = h5_calloc(H5_MEMBERS_MAX, sizeof *list);
	if (!list)
		return -ENOMEM;
	rc = join_numbers(members, &n, size, sure, list, (unsigned)h5_max(count, 1), io);
	free(list);
	return sure || h5_is_passing(rc) ? rc : 0;
}

/* ---- multi ---- */

/* Finds the text for %s by which the template becomes the name; false: there is none. */
static bool match_template(const char *template, const char *name, char stem[NAME_MAX + 1])
{
	const char *hole = strstr(template, "%s"), *suffix = hole ? hole + 2 : NULL;
	size_t before = hole ? (size_t)(hole - template) : 0;
	size_t after = hole ? strlen(suffix) : 0, n = strlen(name);

	if (!hole || n > NAME_MAX || n < before + after || memcmp(name, template, before) ||
	    strcmp(name + n - after, suffix))
		return false;
	memcpy(stem, name + before, n - before - after);
	stem[n - before - after] = 0;
	return true;
}

/* The template with %s replaced, if it has one. */
static char *fill_template(const char *template, const char *stem)
{
	const char *hole = strstr(template, "%s");
	char *name;

	if (!hole || !stem)
		return strdup(template);
	return asprintf(&name, "%.*s%s%s", (int)(hole - template), template, stem, hole + 2) < 0 ? NULL
												 : name;
}

/* True: the members have the names that libhdf5 or h5py give them by default, so whoever made the file has
 * not chosen them. */
static bool has_default_names(const struct h5_driver_info *info)
{
	static const char *const names[] = {"%s-s.h5", "%s-b.h5", "%s-r.h5", "%s-g.h5", "%s-l.h5",
					    "%s-o.h5", "%s-m.h5", "%s.meta", "%s.raw"};

	for (unsigned i = 0; i < info->members; i++) {
		bool found = false;

		for (unsigned j = 0; j < sizeof names / sizeof *names && !found; j++)
			found = !strcmp(info->member[i].name, names[j]);
		if (!found)
			return false;
	}
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct h5_io_member *x = a, *y = b;

	return h5_compare(x->start, y->start);
}

/* Joins the members, of which some may be missing. */
static int join_multi(struct h5_members *members, struct h5_io_member *list, unsigned count,
		      struct h5_io **io)
{
	int rc;

	if (!members->writable) {
		rc = h5_members_note_missing(members, list, count);
		return rc ? rc : h5_io_open_members(list, count, io);
	}
	rc = check_different(list, count);
	return rc ? rc : h5_io_open_multi(list, count, io);
}

_Static_assert((int)H5_DRIVER_MEMBERS_MAX <= (int)H5_IO_MEMBERS_MAX,
	       "all members of a multi file can be open");

static int open_multi(struct h5_members *members, const struct h5_driver_info *info, struct h5_io **io)
{
	struct h5_io_member list[H5_DRIVER_MEMBERS_MAX] = {{.io = *io}};
	const char *name = base_name(members->path);
	char stem[NAME_MAX + 1];
	bool known = match_template(info->member[0].name, name, stem);
	bool allowed = !members->guarded || (known && has_default_names(info));
	int rc = 0;

	if (info->member[0].start)
		return h5_fail(-EUCLEAN, H5_UNDEF,
			       "driver information: the superblock's member starts at %llu",
			       (unsigned long long)info->member[0].start);
	list[0].name = strdup(name);
	if (!list[0].name)
		rc = -ENOMEM;
	for (unsigned i = 1; i < info->members && !rc; i++) {
		list[i].start = info->member[i].start;
		list[i].name = fill_template(info->member[i].name, known ? stem : NULL);
		rc = !list[i].name ? -ENOMEM
		     : allowed	   ? open_beside(members, list[i].name, members->writable, &list[i].io)
				   : h5_fail(-EACCES, H5_UNDEF, "external=none forbids it");
		if (is_missing(rc) && !members->writable)
			rc = 0;
		else if (rc)
			rc = h5_fail_in(rc, "%s", list[i].name);
	}
	qsort(list, info->members, sizeof *list, by_start);
	for (unsigned i = 1; i < info->members && !rc; i++)
		if (list[i].start == list[i - 1].start)
			rc = h5_fail(-EUCLEAN, H5_UNDEF, "driver information: two members start at %llu",
				     (unsigned long long)list[i].start);
	if (!rc)
		rc = join_multi(members, list, info->members, io);
	for (unsigned i = 0; rc && i < info->members; i++) {
		if (list[i].io == *io)
			list[i].io = NULL; /* stays the caller's */
		h5_io_members_release(&list[i], 1);
	}
	return rc;
}

int h5_members_open(struct h5_members *members, const struct h5_driver_info *info, bool sure,
		    struct h5_io **io)
{
	members->first = *io;
	members->guarded = !members->pattern && members->folder->external == H5_EXTERNAL_NONE;
	return info->driver == H5_DRIVER_MULTI ? open_multi(members, info, io)
					       : open_family(members, info->member_size, sure, io);
}
