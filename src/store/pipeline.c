#include "store/pipeline.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/room.h"
#include "filter/filter.h"
#include "store/statistics.h"

#include <stdlib.h>

enum {
	OVERHEAD = 1 << 16,
	/* Compression that gains nothing makes a large chunk only a little larger. */
	OVERHEAD_MAX = 64 << 20,
	/* Most bytes of an element that is left shuffled; the bytes of a larger one lie too far apart. */
	SHUFFLED_MAX = 16,
	FILTERS = 8, /* most filters of a chunk of max_chunk bytes; a chunk with more must be smaller */
};

/* Between two filters, and in the file, the data may be larger than without filters: by checksums, headers,
 * and compression that gains nothing. No filter makes more than twice its input and a constant. */
static uint64_t encoded_max(uint64_t size)
{
	return size + h5_min(size, OVERHEAD_MAX) + OVERHEAD;
}

/* At most two buffers exist at a time, the input and the output of a filter: this is the largest such pair.
 */
uint64_t h5_pipeline_need(const struct h5_pipeline *pipeline, uint64_t stored, uint64_t size)
{
	unsigned count = pipeline ? pipeline->count : 0;
	uint64_t first = h5_min(stored, encoded_max(size));

	if (count < 2)
		return first + size;
	return encoded_max(size) + h5_max(size, count > 2 ? encoded_max(size) : first);
}

int h5_pipeline_check_size(struct h5_file *file, unsigned filters, uint64_t address, uint64_t size)
{
	uint64_t max = h5_file_shared(file)->max_chunk;

	if (size > max)
		return h5_fail(-EFBIG, address, "a chunk of %ju bytes; max_chunk is %ju", (uintmax_t)size,
			       (uintmax_t)max);
	if (size * filters > max * FILTERS)
		return h5_fail(-EFBIG, address, "a chunk of %ju bytes with %u filters; max_chunk is %ju",
			       (uintmax_t)size, filters, (uintmax_t)max);
	return 0;
}

static int missing(const struct h5_filter_info *info, const char *what)
{
	const char *known = h5_filter_name(info->id),
		   *name = info->name && *info->name ? info->name : "unknown";

	return h5_fail(-ENOTSUP, H5_UNDEF, "filter %u (%s) %s", info->id, known ? known : name, what);
}

/* What is to be done to the stored bytes. */
struct steps {
	unsigned count, moving; /* moving: filters that write into another buffer */
	struct step {
		const struct h5_filter_info *info;
		const struct h5_filter_ops *ops;
		bool in_place;
	} steps[H5_FILTERS_MAX];
};

static int plan(const struct h5_pipeline *pipeline, uint32_t mask, struct steps *all)
{
	all->count = all->moving = 0;
	for (unsigned i = pipeline ? pipeline->count : 0; i-- > 0;) {
		const struct h5_filter_info *info = &pipeline->filters[i];
		struct step *step = &all->steps[all->count];

		if (mask >> i & 1)
			continue;
		*step = (struct step){.info = info, .ops = h5_filter_find(info->id)};
		if (!step->ops || !step->ops->decode)
			return missing(info, "is not available");
		step->in_place =
			step->ops->decodes_in_place && step->ops->decodes_in_place(info->values, info->count);
		all->count++;
		all->moving += !step->in_place;
	}
	return 0;
}

/* Filters that do not work in place write to and fro between two buffers; the last of them writes to *out, at
 * most `room` bytes. */
static int undo(const struct steps *all, size_t room, struct h5_filter_buf scratch[2],
		struct h5_filter_buf *in, struct h5_filter_buf *out)
{
	unsigned moving = all->moving;
	int rc = 0;

	for (unsigned i = 0; i < all->count && !rc; i++) {
		const struct step *step = &all->steps[i];
		size_t limit = i + 1 < all->count ? (size_t)encoded_max(room) : room;
		struct h5_filter_buf *next = in;

		if (!step->in_place) {
			next = --moving ? &scratch[in == scratch] : out;
			next->size = 0;
			if (next == out)
				h5_filter_buf_release(&scratch[in == scratch]);
		}
		rc = h5_interrupt_check();
		if (rc)
			break;
		rc = step->ops->decode(step->info->values, step->info->count, in, next, limit);
		in = next;
	}
	return rc;
}

static void release(struct h5_filter_buf scratch[2])
{
	h5_filter_buf_release(&scratch[0]);
	h5_filter_buf_release(&scratch[1]);
}

/* Filters don't know where their bytes come from. */
static int fail_at(uint64_t address, int rc)
{
	struct h5_error cause = *h5_error_last();

	return h5_fail(rc, address, "chunk: %s", cause.text);
}

/* Gives back what a filter reserved and did not need: a cache counts the data alone. */
static uint8_t *take_data(const struct h5_filter_buf *buf)
{
	uint8_t *data = buf->capacity > buf->size ? realloc(buf->data, buf->size ? buf->size : 1) : NULL;

	return data ? data : buf->data;
}

static int read_and_undo(struct h5_file *file, const struct steps *all, uint64_t address, size_t stored,
			 size_t room, struct h5_filter_buf scratch[2], struct h5_filter_buf *out)
{
	/* If no filter writes into another buffer, the stored bytes are read straight into *out. */
	struct h5_filter_buf *in = all->moving ? &scratch[0] : out;
	struct timespec begin;
	int rc = h5_filter_buf_reserve(in, stored);

	if (!rc)
		rc = h5_file_read(file, address, in->data, stored);
	if (rc)
		return rc;
	in->size = stored;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	rc = undo(all, room, scratch, in, out);
	if (rc)
		return fail_at(address, rc);
	if (out->size > room)
		return h5_fail(-EOVERFLOW, address, "chunk: %zu bytes instead of %zu", out->size, room);
	if (all->count)
		h5_count_filtered(&h5_file_shared(file)->statistics->decoded, out->size, &begin);
	return 0;
}

/* The shuffle that is undone last, if it can be left to those who read a few bytes. */
static const struct step *left_shuffle(const struct steps *all)
{
	const struct step *last = all->count ? &all->steps[all->count - 1] : NULL;

	return last && last->info->id == H5_FILTER_SHUFFLE && !last->in_place && last->info->count &&
			       last->info->values[0] && last->info->values[0] <= SHUFFLED_MAX
		       ? last
		       : NULL;
}

/* Unshuffles a chunk that should have stayed shuffled, but has not the expected size, on which the planes
 * depend. */
static int undo_left(const struct step *shuffle, size_t room, struct h5_filter_buf *out)
{
	struct h5_filter_buf whole = {0};
	int rc = shuffle->ops->decode(shuffle->info->values, shuffle->info->count, out, &whole, room);

	h5_filter_buf_release(out);
	*out = whole;
	return rc;
}

static int check_sizes(struct h5_file *file, const struct h5_pipeline *pipeline, uint64_t address,
		       uint64_t stored, uint64_t size, uint64_t room)
{
	int rc = h5_pipeline_check_size(file, pipeline ? pipeline->count : 0, address,
					pipeline ? size : h5_min(stored, size));

	if (rc)
		return rc;
	if (address >= h5_file_end(file) || stored > h5_file_end(file) - address)
		return h5_fail(-EUCLEAN, address, "chunk: its %ju bytes reach beyond the end of the file",
			       (uintmax_t)stored);
	if (stored > encoded_max(room))
		return h5_fail(-EOVERFLOW, address, "a chunk of %ju bytes, stored in %ju", (uintmax_t)room,
			       (uintmax_t)stored);
	return 0;
}

int h5_pipeline_read_chunk(struct h5_file *file, const struct h5_pipeline *pipeline, uint32_t mask,
			   uint64_t address, uint64_t stored, uint64_t size, uint64_t room,
			   struct h5_pipeline_data *data)
{
	size_t limit = (size_t)h5_min(room, SIZE_MAX);
	struct h5_filter_buf scratch[2] = {{0}}, out = {0};
	const struct step *left;
	struct steps all;
	int rc = check_sizes(file, pipeline, address, stored, size, room);

	if (rc)
		return rc;
	rc = plan(pipeline, mask, &all);
	if (rc)
		return fail_at(address, rc);
	left = data->may_stay_shuffled ? left_shuffle(&all) : NULL;
	all.count -= !!left;
	all.moving -= !!left;
	rc = read_and_undo(file, &all, address, (size_t)stored, limit, scratch, &out);
	release(scratch);
	if (!rc && left && out.size != size) {
		rc = undo_left(left, limit, &out);
		left = NULL;
	}
	if (rc) {
		h5_filter_buf_release(&out);
		return rc;
	}
	out.size = (size_t)h5_min(out.size, size);
	data->bytes = take_data(&out);
	data->size = out.size;
	data->element_size = left ? left->info->values[0] : 1;
	return 0;
}

uint64_t h5_pipeline_more_room(struct h5_file *file, uint64_t room)
{
	uint64_t most = h5_file_shared(file)->max_chunk;

	return room >= most ? 0 : h5_min(encoded_max(room), most);
}

int h5_pipeline_read(struct h5_file *file, const struct h5_pipeline *pipeline, uint32_t mask,
		     uint64_t address, uint64_t stored, uint64_t size, uint8_t **bytes)
{
	struct h5_pipeline_data data = {0};
	struct h5_charge charge = {0};
	struct h5_error cause;
	/* Sizes that are never allowed are reported before a lack of memory. */
	int rc = check_sizes(file, pipeline, address, stored, size, size);

	if (!rc)
		rc = h5_charge_set(&charge,
				   (size_t)h5_min(h5_pipeline_need(pipeline, stored, size), SIZE_MAX));
	if (!rc)
		rc = h5_pipeline_read_chunk(file, pipeline, mask, address, stored, size, size, &data);
	h5_charge_release(&charge);
	cause = *h5_error_last();
	if (rc)
		return rc == -EOVERFLOW ? h5_fail(-EUCLEAN, cause.address, "%s", cause.text) : rc;
	if (data.size != size) {
		free(data.bytes);
		return h5_fail(-EUCLEAN, address, "chunk: %zu bytes instead of %ju", data.size,
			       (uintmax_t)size);
	}
	*bytes = data.bytes;
	return 0;
}

/* Runs one filter; without bytes, tells if it can be run. */
static int run(const struct h5_filter_info *info, const uint8_t *data, size_t size, struct h5_filter_buf *out)
{
	const struct h5_filter_ops *ops = h5_filter_find(info->id);
	int rc;

	if (!ops || !ops->encode)
		return missing(info, "cannot be written");
	rc = ops->encode(info->values, info->count, data, size, out);
	if (!rc && size && info->optional && ops->must_gain && out->size >= size)
		rc = -E2BIG;
	return rc;
}

int h5_pipeline_can_encode(const struct h5_pipeline *pipeline)
{
	int rc = 0;

	for (unsigned i = 0; i < pipeline->count && !rc; i++) {
		struct h5_filter_buf nothing = {0};

		rc = run(&pipeline->filters[i], (const uint8_t *)"", 0, &nothing);
		h5_filter_buf_release(&nothing);
	}
	return rc;
}

/* Runs the filters. *at: the one of the buffers that has the result; NULL: no filter has run. */
static int run_all(const struct h5_pipeline *pipeline, const uint8_t *data, size_t size,
		   struct h5_filter_buf scratch[2], struct h5_filter_buf **at, uint32_t *skipped)
{
	for (unsigned i = 0; i < pipeline->count; i++) {
		const struct h5_filter_info *info = &pipeline->filters[i];
		struct h5_filter_buf *next = &scratch[*at == scratch];
		int rc;

		next->size = 0;
		rc = run(info, *at ? (*at)->data : data, *at ? (*at)->size : size, next);
		if (!rc && next->size > encoded_max(size))
			rc = h5_fail(-EFBIG, H5_UNDEF, "a chunk of %zu bytes takes %zu after filter %u", size,
				     next->size, info->id);
		if (!rc)
			*at = next;
		else if (info->optional && rc != -ENOMEM)
			*skipped |= UINT32_C(1) << i;
		else
			return rc;
	}
	return 0;
}

int h5_pipeline_encode(const struct h5_pipeline *pipeline, const uint8_t *data, size_t size, uint8_t **out,
		       size_t *stored, uint32_t *mask)
{
	struct h5_filter_buf scratch[2] = {{0}}, buf = {0}, *at = NULL;
	uint32_t skipped = 0;
	int rc;

	if (pipeline->count && size > H5_MAX_CHUNK_LIMIT)
		return h5_fail(-EFBIG, H5_UNDEF, "a filtered chunk of %zu bytes", size);
	rc = run_all(pipeline, data, size, scratch, &at, &skipped);
	if (!rc && at) {
		buf = *at;
		*at = (struct h5_filter_buf){0};
	} else if (!rc) {
		rc = h5_filter_buf_copy(&buf, data, size);
	}
	release(scratch);
	if (rc) {
		h5_filter_buf_release(&buf);
		return rc;
	}
	*out = buf.data;
	*stored = buf.size;
	*mask = skipped;
	return 0;
}
