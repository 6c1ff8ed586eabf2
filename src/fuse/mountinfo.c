#include "fuse/mountinfo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
	struct h5_mounted mounted;
	char *path; /* owned */
	char type[H5_MOUNTINFO_TYPE];
};

/* Replaces the octal escapes of blanks and backslashes in place. */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++, out++) {
		unsigned value;

		if (*s == '\\' && sscanf(s + 1, "%3o", &value) == 1) {
			*out = (char)value;
			s += 3;
		} else {
			*out = *s;
		}
	}
	*out = 0;
}

/* Reads the next line: proc(5), /proc/[pid]/mountinfo. False: there is none. The caller frees line->path. */
static bool read_line(FILE *f, struct line *line)
{
	const char *behind;
	char *text = NULL;
	size_t size = 0;
	bool found = false;

	while (!found && getline(&text, &size, f) > 0) {
		struct h5_mounted *m = &line->mounted;

		if (sscanf(text, "%" SCNu64 " %*u %u:%u %*s %ms", &m->id, &m->major, &m->minor,
			   &line->path) != 4)
			continue;
		unescape(line->path);
		behind = strstr(text, " - ");
		*line->type = 0;
		if (behind)
			sscanf(behind, " - %63s", line->type);
		found = true;
	}
	free(text);
	return found;
}

int h5_mountinfo_top(const char *path, struct h5_mounted *top, char type[H5_MOUNTINFO_TYPE])
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	int rc = -ENOENT;
	struct line line;

	if (!f)
		return -errno;
	while (read_line(f, &line)) {
		if (!strcmp(line.path, path)) {
			*top = line.mounted;
			memcpy(type, line.type, sizeof line.type);
			rc = 0;
		}
		free(line.path);
	}
	fclose(f);
	return rc;
}

char *h5_mountinfo_place(const struct h5_mounted *mounted)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *place = NULL;
	struct line line;

	while (f && !place && read_line(f, &line)) {
		if (line.mounted.major == mounted->major && line.mounted.minor == mounted->minor)
			place = line.path;
		else
			free(line.path);
	}
	if (f)
		fclose(f);
	return place;
}
