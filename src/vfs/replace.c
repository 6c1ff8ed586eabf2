#include "vfs/replace.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/transaction.h"
#include "vfs/input.h"
#include "vfs/paths.h"

#include <stdlib.h>

enum { PIECE = 1 << 20 }; /* bytes that are copied at once */

/* What the bytes are written to. */
struct target {
	struct h5_dataset_writer *writer;
	struct h5_replacement *replacement; /* NULL: they are written in place */
};

/* Makes room for `size` bytes. A dataset that is written in place keeps its size. */
static int fit(const struct target *to, uint64_t size)
{
	if (to->replacement)
		return h5_replacement_expect(to->replacement, size);
	if (size == h5_dataset_writer_size(to->writer))
		return 0;
	return h5_fail(-EINVAL, h5_dataset_writer_participant(to->writer)->address,
		       "%ju bytes do not fit the type and shape of the dataset", (uintmax_t)size);
}

static int write_piece(const struct target *to, uint64_t at, const uint8_t *piece, size_t n)
{
	return to->replacement ? h5_replacement_write(to->replacement, at, piece, n)
			       : h5_dataset_writer_write(to->writer, at, piece, n);
}

static int copy(struct h5_vfs *vfs, const struct h5_dataset *from, const struct target *to, uint8_t *piece)
{
	int rc = fit(to, from->size);

	for (uint64_t at = 0; at < from->size && !rc; at += PIECE) {
		size_t n = (size_t)h5_min(PIECE, from->size - at);

		rc = h5_dataset_read(from, at, piece, n);
		if (!rc)
			rc = write_piece(to, at, piece, n);
		if (!rc && h5_tx_held(vfs->file) > vfs->options.gather)
			rc = h5_tx_settle(vfs->file);
	}
	return rc;
}

/* ---- text ---- */

static int write_lines(struct h5_view_input *input, const char *text, size_t n)
{
	size_t written;
	int rc = 0;

	for (size_t done = 0; done < n && !rc; done += written) {
		rc = input->ops->write(input, 0, text + done, n - done, true, &written);
		if (written)
			rc = 0;
	}
	return rc;
}

/* The bytes become the lines of text. */
static int copy_lines(struct h5_vfs *vfs, const struct h5_dataset *from, struct h5_view_input *input,
		      uint8_t *piece)
{
	int rc = 0;

	for (uint64_t at = 0; at < from->size && !rc; at += PIECE) {
		size_t n = (size_t)h5_min(PIECE, from->size - at);

		rc = h5_dataset_read(from, at, piece, n);
		if (!rc)
			rc = write_lines(input, (const char *)piece, n);
		if (!rc && h5_tx_held(vfs->file) > vfs->options.gather)
			rc = h5_tx_settle(vfs->file);
	}
	if (!rc && input->filled)
		rc = input->ops->finish(input);
	return rc;
}

static int replace_text(struct h5_vfs *vfs, const struct h5_dataset *from, struct h5_view_input *input,
			uint8_t *piece, const struct h5_also *also)
{
	int rc = h5_replacement_begin_rows(vfs->file, input->address, &input->replacement);

	if (!rc)
		rc = copy_lines(vfs, from, input, piece);
	if (!rc)
		rc = h5_replacement_finish_with(input->replacement, also->run, also->arg);
	if (rc == -EFBIG)
		rc = h5_fail_in(-EINVAL, "more lines than elements");
	if (rc == -EINVAL)
		h5_log_about(vfs, input->address, "refused: %s", h5_error_last()->text);
	h5_replacement_end(input->replacement);
	return rc;
}

/* ---- bytes ---- */

/* False: its elements are in other files, or it has none and never will. Neither can be resized. */
static bool is_replaceable(const struct h5_dataset_writer *writer)
{
	return !h5_dataset_writer_dataset(writer)->external &&
	       (h5_dataset_writer_size(writer) || h5_dataset_writer_max_rows(writer));
}

static int run_alone(struct h5_file *file, const struct h5_also *also)
{
	if (!also->run)
		return 0;
	h5_unit_begin(file);
	return h5_unit_end(file, also->run(also->arg));
}

static int replace_bytes(struct h5_vfs *vfs, const struct h5_dataset *from, const struct h5_view_input *input,
			 uint8_t *piece, const struct h5_also *also)
{
	struct target target = {.writer = input->writer};
	int rc = 0;

	if (is_replaceable(target.writer))
		rc = h5_replacement_begin_rows(vfs->file, input->address, &target.replacement);
	if (!rc)
		rc = copy(vfs, from, &target, piece);
	if (!rc)
		rc = target.replacement ? h5_replacement_finish_with(target.replacement, also->run, also->arg)
					: run_alone(vfs->file, also);
	h5_replacement_end(target.replacement);
	return rc;
}

static int copy_from(struct h5_vfs *vfs, const struct h5_dataset *from, uint64_t to,
		     const struct h5_also *also)
{
	struct h5_view_input input;
	uint8_t *piece = malloc(PIECE);
	int rc = piece ? h5_input_open_dataset(vfs, to, &input) : h5_fail(-ENOMEM, to, "out of memory");

	if (!rc) {
		rc = input.ops->is_text ? replace_text(vfs, from, &input, piece, also)
					: replace_bytes(vfs, from, &input, piece, also);
		h5_input_close(&input);
	}
	free(piece);
	return rc;
}

int h5_replace_contents(struct h5_vfs *vfs, uint64_t from, uint64_t to, const struct h5_also *also)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc = h5_tx_settle(vfs->file);

	if (!rc)
		rc = h5_dataset_get(vfs->file, from, &ref, &dataset);
	if (rc)
		return rc;
	rc = copy_from(vfs, dataset, to, also ? also : &(struct h5_also){0});
	h5_file_put(vfs->file, ref);
	return rc;
}
