#include "crash_opinion.h"

#include "base/error.h"
#include "format/superblock.h"
#include "store/file_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECTOR = 512 };

void crash_wrong(const struct crash_opinion *o, const struct crash_dataset *d, const char *what)
{
	const char *path = getenv("H5FS_CRASH_IMAGE");

	if (path)
		crash_image_save(&o->sent, path);
	CRASH_FAILED("%s: %s: %s: %s", o->run->name, o->label, d ? d->name : "file", what);
}

/* ---- libhdf5's opinion ---- */

void crash_opinion_start(struct crash_opinion *o)
{
	const char *source = getenv("srcdir") ? getenv("srcdir") : ".";
	char path[512];
	int to[2], from[2];

	snprintf(path, sizeof path, "%s/tests/crash_judge.py", source);
	if (pipe(to) || pipe(from))
		CRASH_FAILED("no pipe");
	o->judge = fork();
	if (!o->judge) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		execl("/usr/bin/python3", "python3", "-X", "faulthandler", path, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	o->to_judge = fdopen(to[1], "wb");
	o->from_judge = fdopen(from[0], "r");
	if (o->judge < 0 || !o->to_judge || !o->from_judge)
		CRASH_FAILED("no judge");
}

/* True: it has found nothing wrong. */
bool crash_opinion_end(struct crash_opinion *o)
{
	int status;

	fclose(o->to_judge);
	fclose(o->from_judge);
	free(o->sent.data);
	free(o->cleared.data);
	return waitpid(o->judge, &status, 0) == o->judge && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void send(struct crash_opinion *o, const void *data, size_t n)
{
	if (fwrite(data, 1, n, o->to_judge) != n)
		CRASH_FAILED("the judge is gone");
}

static void send_number(struct crash_opinion *o, uint64_t value, size_t n)
{
	send(o, &value, n); /* little-endian, as the judge's numbers */
}

static void send_text(struct crash_opinion *o, const char *text)
{
	send_number(o, strlen(text), 4);
	send(o, text, strlen(text));
}

void crash_opinion_begin(struct crash_opinion *o)
{
	send(o, "W", 1);
	send_text(o, o->run->name);
	crash_image_resize(&o->sent, 0);
	for (unsigned d = 0; d < o->run->count; d++) {
		const struct crash_dataset *dataset = &o->run->datasets[d];

		send(o, "D", 1);
		send_number(o, dataset->columns, 4);
		send_number(o, dataset->first, 4);
		send_text(o, dataset->name);
		for (size_t i = 0; i < dataset->count; i++) {
			const struct crash_content *c = &dataset->contents[i];

			send(o, "S", 1);
			send_number(o, d, 4);
			send_number(o, c->state, 4);
			send_number(o, c->overwritten, 1);
			send_number(o, c->rows, 8);
			send(o, c->values, crash_elements(dataset, c->rows) * sizeof *c->values);
		}
	}
}

static bool is_changed(const struct crash_opinion *o, const struct crash_image *image, size_t at)
{
	size_t n = image->size - at < SECTOR ? image->size - at : SECTOR;

	return at + n > o->sent.size || memcmp(image->data + at, o->sent.data + at, n);
}

/* Runs of changed sectors, as pieces; their number. */
static unsigned send_pieces(struct crash_opinion *o, const struct crash_image *image, bool count_only)
{
	unsigned pieces = 0;

	for (size_t at = 0, end; at < image->size; at = end) {
		end = at + SECTOR;
		if (!is_changed(o, image, at))
			continue;
		while (end < image->size && is_changed(o, image, end))
			end += SECTOR;
		end = end < image->size ? end : image->size;
		pieces++;
		if (!count_only) {
			send_number(o, at, 8);
			send_number(o, end - at, 4);
			send(o, image->data + at, end - at);
		}
	}
	return pieces;
}

static void send_image(struct crash_opinion *o, const struct crash_image *image)
{
	send(o, "B", 1);
	send_number(o, image->size, 8);
	send_number(o, send_pieces(o, image, true), 4);
	send_pieces(o, image, false);
	crash_image_copy(&o->sent, image);
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

/* Both opinions of a file. */
void crash_opinion_check(struct crash_opinion *o, const struct crash_image *image)
{
	static const struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};
	struct h5_file_set *set;

	if (o->run->swmr) {
		crash_image_copy(&o->cleared, image);
		crash_clear_marks(&o->cleared, o->run);
		image = &o->cleared;
	}
	send_image(o, image);
	send(o, "C", 1);
	send_number(o, o->first, 4);
	send_number(o, o->last, 4);
	send_text(o, o->label);
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
	char answer[512];

	send_image(o, image);
	send(o, "F", 1);
	send(o, &kind, 1);
	send_number(o, o->first, 4);
	send_number(o, o->last, 4);
	send_text(o, path);
	fflush(o->to_judge);
	if (!fgets(answer, sizeof answer, o->from_judge))
		CRASH_FAILED("the judge is gone");
	return !strcmp(answer, "ok\n");
}

void crash_opinion_verify(struct crash_opinion *o, const struct crash_image *image)
{
	send_image(o, image);
	send(o, "V", 1);
	send_text(o, o->label);
}
