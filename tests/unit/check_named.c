/* Files that are opened by names that may lead anywhere: where each link and each dot leads. */
#include "io/named.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder "in" with files and links, and a file beside it. Each file holds its own name. */
struct scene {
	char top[128], in[160];
	int fd; /* of "in" */
};

static void make_file(const struct scene *s, const char *path)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof full, "%s/%s", s->top, path);
	f = fopen(full, "w");
	ck_assert_ptr_nonnull(f);
	fputs(path, f);
	ck_assert_int_eq(fclose(f), 0);
}

static void make_folder(const struct scene *s, const char *path)
{
	char full[512];

	snprintf(full, sizeof full, "%s/%s", s->top, path);
	ck_assert_int_eq(mkdir(full, 0700), 0);
}

static void make_link(const struct scene *s, const char *path, const char *target)
{
	char full[512];

	snprintf(full, sizeof full, "%s/%s", s->top, path);
	ck_assert_int_eq(symlink(target, full), 0);
}

static void begin(struct scene *s)
{
	char absolute[512];

	snprintf(s->top, sizeof s->top, "%s/named", scratch_folder());
	snprintf(s->in, sizeof s->in, "%s/in", s->top);
	ck_assert_int_eq(mkdir(s->top, 0700), 0);
	make_folder(s, "in");
	make_folder(s, "in/deep");
	make_file(s, "beside");
	make_file(s, "in/file");
	make_file(s, "in/deep/file");
	make_link(s, "in/relative", "file");
	make_link(s, "in/to_folder", "deep");
	make_link(s, "in/deep/up", "../relative");
	make_link(s, "in/out", "../beside");
	make_link(s, "in/loop", "loop");
	snprintf(absolute, sizeof absolute, "%s/in/file", s->top);
	make_link(s, "in/absolute", absolute);
	s->fd = open(s->in, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(s->fd, 0);
}

static void end(struct scene *s)
{
	close(s->fd);
	scratch_run("rm -r %s", s->top);
}

/* `expected`: what the file holds; NULL: the error is `code`. */
static void opens(int fd, const char *path, const char *expected, int code)
{
	char found[64] = "";

	if (!expected) {
		ck_assert_msg(fd == code, "%s: %d", path, fd);
		return;
	}
	ck_assert_msg(fd >= 0, "%s: %d", path, fd);
	ck_assert_int_ge(read(fd, found, sizeof found - 1), 0);
	close(fd);
	ck_assert_msg(!strcmp(found, expected), "%s leads to %s", path, found);
}

START_TEST(names_that_may_lead_anywhere)
{
	static const struct {
		const char *path, *expected;
		int code;
	} names[] = {{"file", "in/file", 0},
		     {"./deep//file", "in/deep/file", 0},
		     {"deep/../file", "in/file", 0},
		     {"relative", "in/file", 0},
		     {"to_folder/file", "in/deep/file", 0},
		     {"to_folder/../file", "in/file", 0},
		     {"deep/up", "in/file", 0},
		     {"to_folder/up", "in/file", 0},
		     {"absolute", "in/file", 0},
		     {"../beside", "beside", 0},
		     {"out", "beside", 0},
		     {"deep/../../in/relative", "in/file", 0},
		     {"none", NULL, -ENOENT},
		     {"", NULL, -ENOENT},
		     {"deep", NULL, -EISDIR},
		     {"to_folder", NULL, -EISDIR},
		     {"file/", NULL, -ENOTDIR},
		     {"relative/none", NULL, -ENOTDIR},
		     {"loop", NULL, -ELOOP}};
	char absolute[512];
	struct scene s;

	begin(&s);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		opens(h5_named_open_anywhere(s.fd, s.in, names[i].path, O_RDONLY), names[i].path,
		      names[i].expected, names[i].code);
		snprintf(absolute, sizeof absolute, "%s/%s", s.in, names[i].path);
		if (*names[i].path)
			opens(h5_named_open_anywhere(s.fd, s.in, absolute, O_RDONLY), absolute,
			      names[i].expected, names[i].code);
	}
	end(&s);
}
END_TEST

START_TEST(names_that_stay_beneath)
{
	char absolute[512];
	struct scene s;

	begin(&s);
	snprintf(absolute, sizeof absolute, "%s/file", s.in);
	opens(h5_named_open_beneath(s.fd, "relative", O_RDONLY), "relative", "in/file", 0);
	opens(h5_named_open_beneath(s.fd, "to_folder/up", O_RDONLY), "to_folder/up", "in/file", 0);
	opens(h5_named_open_beneath(s.fd, "out", O_RDONLY), "out", NULL, -EXDEV);
	opens(h5_named_open_beneath(s.fd, "absolute", O_RDONLY), "absolute", NULL, -EXDEV);
	opens(h5_named_open_beneath(s.fd, absolute, O_RDONLY), absolute, NULL, -EXDEV);
	opens(h5_named_open_without_links(s.fd, "deep/file", O_RDONLY), "deep/file", "in/deep/file", 0);
	opens(h5_named_open_without_links(s.fd, "relative", O_RDONLY), "relative", NULL, -ELOOP);
	opens(h5_named_open_without_links(s.fd, "to_folder/file", O_RDONLY), "to_folder/file", NULL, -ELOOP);
	end(&s);
}
END_TEST

UNIT_MAIN("named", names_that_may_lead_anywhere, names_that_stay_beneath)
