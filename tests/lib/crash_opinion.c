#include "crash_opinion.h"

#include "base/error.h"
#include "format/superblock.h"
#include "store/file_set.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SECTOR = 512,
	SOME = 40, /* of so many images the judges of other releases see one, but for `make judge-newer` */
};

void crash_wrong(const struct crash_opinion *o, const struct crash_dataset *d, const char *what)
{
	const char *path = getenv("H5FS_CRASH_IMAGE");

	if (path)
		crash_image_save(&o->judges->sent, path);
	CRASH_FAILED("%s: %s: %s: %s", o->run->name, o->label, d ? d->name : "file", what);
}

/* ---- libhdf5's opinion ---- */

static const char *source_folder(void)
{
	const char *source = getenv("srcdir");

	return source ? source : ".";
}

/* name NULL: this machine's own libhdf5. */
static void judge_program(const char *name)
{
	char path[512], judges[512];

	snprintf(path, sizeof path, "%s/tests/judge/crash_judge.py", source_folder());
	snprintf(judges, sizeof judges, "%s/contrib/judges", source_folder());
	if (name)
		execl(judges, judges, "run", name, "/usr/bin/python3", "-X", "faulthandler", path,
		      (char *)NULL);
	else /* by another name it would be taken for the first one in PATH */
		execl("/usr/bin/python3", "/usr/bin/python3", "-X", "faulthandler", path, (char *)NULL);
	_exit(127);
}

static void start_judge(struct crash_opinion *o, const char *name)
{
	struct crash_judge *j = &o->judges[o->count++];
	int to[2], from[2];

	/* What is for one judge, another one must not hold open. */
	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		CRASH_FAILED("no pipe");
	fflush(stdout);
	j->pid = fork();
	if (!j->pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		judge_program(name);
	}
	close(to[0]);
	close(from[1]);
	j->to = fdopen(to[1], "wb");
	j->from = fdopen(from[0], "r");
	if (j->pid < 0 || !j->to || !j->from)
		CRASH_FAILED("no judge");
}

void crash_opinion_start(struct crash_opinion *o)
{
	const char *asked = getenv("H5FS_JUDGE");
	char line[512];
	FILE *names;

	o->each = asked && !strcmp(asked, "all") ? 1 : SOME;
	start_judge(o, NULL);
	snprintf(line, sizeof line, "%s/contrib/judges list", source_folder());
	names = popen(line, "r");
	if (!names)
		CRASH_FAILED("no list of judges");
	while (o->count < CRASH_JUDGES_MAX && fgets(line, sizeof line, names)) {
		line[strcspn(line, "\n")] = 0;
		start_judge(o, line);
	}
	if (pclose(names))
		CRASH_FAILED("no list of judges");
}

/* True: it has found nothing wrong. */
static bool end_judge(struct crash_judge *j)
{
	int status;

	fclose(j->to);
	fclose(j->from);
	free(j->sent.data);
	return waitpid(j->pid, &status, 0) == j->pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

bool crash_opinion_end(struct crash_opinion *o)
{
	bool good = true;

	for (unsigned i = 0; i < o->count; i++)
		good &= end_judge(&o->judges[i]);
	free(o->cleared.data);
	return good;
}

static void send(struct crash_judge *j, const void *data, size_t n)
{
	if (fwrite(data, 1, n, j->to) != n)
		CRASH_FAILED("the judge is gone");
}

static void send_number(struct crash_judge *j, uint64_t value, size_t n)
{
	send(j, &value, n); /* little-endian, as the judge's numbers */
}

static void send_text(struct crash_judge *j, const char *text)
{
	send_number(j, strlen(text), 4);
	send(j, text, strlen(text));
}

static void send_contents(struct crash_judge *j, const struct crash_run *run, unsigned d)
{
	const struct crash_dataset *dataset = &run->datasets[d];

	send(j, "D", 1);
	send_number(j, dataset->columns, 4);
	send_number(j, dataset->first, 4);
	send_text(j, dataset->name);
	for (size_t i = 0; i < dataset->count; i++) {
		const struct crash_content *c = &dataset->contents[i];

		send(j, "S", 1);
		send_number(j, d, 4);
		send_number(j, c->state, 4);
		send_number(j, c->overwritten, 1);
		send_number(j, c->rows, 8);
		send(j, c->values, crash_elements(dataset, c->rows) * sizeof *c->values);
	}
}

void crash_opinion_begin(struct crash_opinion *o)
{
	for (unsigned i = 0; i < o->count && !o->run->is_ours; i++) {
		struct crash_judge *j = &o->judges[i];

		send(j, "W", 1);
		send_text(j, o->run->name);
		crash_image_resize(&j->sent, 0);
		for (unsigned d = 0; d < o->run->count; d++)
			send_contents(j, o->run, d);
	}
}

static bool is_changed(const struct crash_judge *j, const struct crash_image *image, size_t at)
{
	size_t n = image->size - at < SECTOR ? image->size - at : SECTOR;

	return at + n > j->sent.size || memcmp(image->data + at, j->sent.data + at, n);
}

/* Runs of changed sectors, as pieces; their number. */
static unsigned send_pieces(struct crash_judge *j, const struct crash_image *image, bool count_only)
{
	unsigned pieces = 0;

	for (size_t at = 0, end; at < image->size; at = end) {
		end = at + SECTOR;
		if (!is_changed(j, image, at))
			continue;
		while (end < image->size && is_changed(j, image, end))
			end += SECTOR;
		end = end < image->size ? end : image->size;
		pieces++;
		if (!count_only) {
			send_number(j, at, 8);
			send_number(j, end - at, 4);
			send(j, image->data + at, end - at);
		}
	}
	return pieces;
}

static void send_image(struct crash_judge *j, const struct crash_image *image)
{
	send(j, "B", 1);
	send_number(j, image->size, 8);
	send_number(j, send_pieces(j, image, true), 4);
	send_pieces(j, image, false);
	crash_image_copy(&j->sent, image);
}

/* ---- our own ---- */

/* As crash_judge.py does it. */
static void compare(const struct crash_opinion *o, const struct crash_dataset *d, const uint32_t *found,
		    size_t rows)
{
	size_t begin = 0, end, n = crash_elements(d, rows) * sizeof *found;
	const uint8_t *bytes = (const uint8_t *)found;
	bool overwritten = false, has_rows = false;

	for (end = 0; end < d->count && d->contents[end].state <= o->last; end++) {
		if (d->contents[end].state <= o->first)
			begin = end;
		else
			overwritten |= d->contents[end].overwritten;
	}
	for (size_t i = begin; i < end; i++) {
		if (d->contents[i].rows != rows)
			continue;
		has_rows = true;
		if (!n || !memcmp(d->contents[i].values, found, n))
			return;
	}
	if (!has_rows)
		crash_wrong(o, d, "a number of rows that it never had");
	if (!overwritten)
		crash_wrong(o, d, "values that it never had");
	for (size_t at = 0; at < n; at++) {
		bool good = false;

		for (size_t i = begin; i < end && !good; i++) {
			const struct crash_content *c = &d->contents[i];

			good = at < crash_elements(d, c->rows) * sizeof *found &&
			       ((const uint8_t *)c->values)[at] == bytes[at];
		}
		if (!good)
			crash_wrong(o, d, "overwritten values that it never had");
	}
}

static void read_dataset(const struct crash_opinion *o, struct h5_file *file, const struct crash_dataset *d)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref = NULL;
	size_t skipped = d->first * d->columns * sizeof(uint32_t);
	uint32_t *found = NULL;
	int rc = h5_dataset_get(file, d->address, &ref, &dataset);

	if (!rc && (dataset->size > UINT32_MAX || dataset->size < skipped))
		crash_wrong(o, d, "a size that it never had");
	if (!rc) {
		found = malloc((size_t)dataset->size - skipped + 1);
		rc = h5_dataset_read(dataset, skipped, found, (size_t)dataset->size - skipped);
	}
	if (rc)
		crash_wrong(o, d, h5_error_last()->text);
	compare(o, d, found, (size_t)dataset->size / d->columns / sizeof *found);
	free(found);
	h5_file_put(file, ref);
}

/* As h5clear does it. */
void crash_clear_marks(struct crash_image *image, const struct crash_run *run)
{
	struct h5_superblock sb;
	size_t at = 0, offset, n;

	while (memcmp(run->before + at, H5_SIGNATURE, 8) != 0)
		at = at ? 2 * at : SECTOR;
	if (h5_superblock_decode(image->data + at, image->size - at, at, &sb))
		return;
	sb.consistency = 0;
	h5_superblock_update(image->data + at, image->size - at, &sb, &offset, &n);
}

static void send_check(const struct crash_opinion *o, struct crash_judge *j, const struct crash_image *image)
{
	send_image(j, image);
	send(j, "C", 1);
	send_number(j, o->first, 4);
	send_number(j, o->last, 4);
	send_text(j, o->label);
}

/* All opinions of a file. */
void crash_opinion_check(struct crash_opinion *o, const struct crash_image *image)
{
	static const struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};
	struct h5_file_set *set;

	if (o->run->swmr) {
		crash_image_copy(&o->cleared, image);
		crash_clear_marks(&o->cleared, o->run);
		image = &o->cleared;
	}
	o->checks++;
	for (unsigned i = 0; i < o->count && !o->run->is_ours; i++)
		if (!i || o->checks % o->each == 0)
			send_check(o, &o->judges[i], image);
	if (h5_file_set_open_memory(image->data, image->size, &options, &set))
		crash_wrong(o, NULL, h5_error_last()->text);
	for (unsigned d = 0; d < o->run->count; d++)
		read_dataset(o, h5_file_set_root(set), &o->run->datasets[d]);
	h5_file_set_close(set);
}

/* ---- changes by libhdf5 ---- */

bool crash_opinion_change(struct crash_opinion *o, const struct crash_image *image, char kind,
			  const char *path)
{
	struct crash_judge *j = o->judges;
	char answer[512];

	send_image(j, image);
	send(j, "F", 1);
	send(j, &kind, 1);
	send_number(j, o->first, 4);
	send_number(j, o->last, 4);
	send_text(j, path);
	fflush(j->to);
	if (!fgets(answer, sizeof answer, j->from))
		CRASH_FAILED("the judge is gone");
	return !strcmp(answer, "ok\n");
}

void crash_opinion_verify(struct crash_opinion *o, const struct crash_image *image)
{
	struct crash_judge *j = o->judges;

	send_image(j, image);
	send(j, "V", 1);
	send_text(j, o->label);
}
