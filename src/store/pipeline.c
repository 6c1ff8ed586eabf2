#include "store/pipeline.h"

#include "base/error.h"
#include "filter/filter.h"

#include <stdlib.h>

enum {
	SIZE_MAX_FILTERED = 1 << 30, /* bytes of a chunk that filters yield; they work on it as a whole */
	OVERHEAD = 1 << 16,
};

/* What stands between two filters, and in the file, may be larger than the data: checksums, headers, and
 * compression that gains nothing. No filter doubles its input beyond a constant. */
static uint64_t encoded_max(size_t size)
{
	return 2 * (uint64_t)size + OVERHEAD;
}

static int missing(const struct h5_filter_info *info, const struct h5_filter_ops *ops, const char *what)
{
	return h5_fail(-ENOTSUP, H5_UNDEF, "filter %u (%s) %s", info->id,
		       ops	    ? ops->name
		       : info->name ? info->name
				    : "unknown",
		       what);
}

static int undo(const struct h5_filter_info *info, struct h5_filter_buf *buf, size_t limit)
{
	const struct h5_filter_ops *ops = h5_filter_find(info->id);

	if (!ops || !ops->decode)
		return missing(info, ops, "is not available");
	return ops->decode(info->values, info->count, buf, limit);
}

static int undo_all(const struct h5_pipeline *pipeline, uint32_t mask, size_t size, struct h5_filter_buf *buf)
{
	int rc = 0;

	for (unsigned i = pipeline->count; i-- > 0 && !rc;)
		if (!(mask >> i & 1))
			rc = undo(&pipeline->filters[i], buf, (size_t)encoded_max(size));
	return rc;
}

/* Gives back what a filter reserved and did not need: a cache counts the data alone. */
static uint8_t *take_data(const struct h5_filter_buf *buf)
{
	uint8_t *data = buf->capacity > buf->size ? realloc(buf->data, buf->size ? buf->size : 1) : NULL;

	return data ? data : buf->data;
}

int h5_pipeline_read(struct h5_file *file, const struct h5_pipeline *pipeline, uint32_t mask,
		     uint64_t address, uint64_t stored, size_t size, uint8_t **data)
{
	struct h5_filter_buf buf = {0};
	struct h5_error cause;
	int rc;

	if (pipeline && size > SIZE_MAX_FILTERED)
		return h5_fail(-ENOTSUP, address, "a filtered chunk of %zu bytes", size);
	if (stored > encoded_max(size) || address >= h5_file_end(file) ||
	    stored > h5_file_end(file) - address)
		return h5_fail(-EUCLEAN, address, "a chunk of %llu bytes, stored in %llu",
			       (unsigned long long)size, (unsigned long long)stored);
	rc = h5_filter_buf_reserve(&buf, (size_t)stored);
	if (!rc)
		rc = h5_file_read(file, address, buf.data, (size_t)stored);
	buf.size = (size_t)stored;
	if (!rc && pipeline) {
		rc = undo_all(pipeline, mask, size, &buf);
		if (rc) {
			/* Filters don't know where their bytes come from. */
			cause = *h5_error_last();
			rc = h5_fail(rc, address, "chunk: %s", cause.text);
		}
	}
	if (!rc && buf.size != size)
		rc = h5_fail(-EUCLEAN, address, "chunk: %zu bytes instead of %zu", buf.size, size);
	if (rc)
		h5_filter_buf_release(&buf);
	else
		*data = take_data(&buf);
	return rc;
}

/* One filter. Without bytes: whether it can be run. */
static int run(const struct h5_filter_info *info, const uint8_t *data, size_t size, struct h5_filter_buf *out)
{
	const struct h5_filter_ops *ops = h5_filter_find(info->id);
	int rc;

	if (!ops || !ops->encode)
		return missing(info, ops, "cannot be written");
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

int h5_pipeline_encode(const struct h5_pipeline *pipeline, const uint8_t *data, size_t size, uint8_t **out,
		       size_t *stored, uint32_t *mask)
{
	struct h5_filter_buf buf = {0}; /* empty until a filter has run */
	uint32_t skipped = 0;
	int rc = 0;

	if (pipeline->count && size > SIZE_MAX_FILTERED)
		return h5_fail(-ENOTSUP, H5_UNDEF, "a filtered chunk of %zu bytes", size);
	for (unsigned i = 0; i < pipeline->count && !rc; i++) {
		const struct h5_filter_info *info = &pipeline->filters[i];
		struct h5_filter_buf next = {0};

		rc = run(info, buf.data ? buf.data : data, buf.data ? buf.size : size, &next);
		if (!rc && next.size > encoded_max(size))
			rc = h5_fail(-EFBIG, H5_UNDEF, "a chunk of %zu bytes takes %zu after filter %u", size,
				     next.size, info->id);
		if (!rc) {
			h5_filter_buf_release(&buf);
			buf = next;
			continue;
		}
		h5_filter_buf_release(&next);
		if (info->optional) {
			skipped |= UINT32_C(1) << i;
			rc = 0;
		}
	}
	if (!rc && !buf.data)
		rc = h5_filter_buf_copy(&buf, data, size);
	if (rc) {
		h5_filter_buf_release(&buf);
		return rc;
	}
	*out = buf.data;
	*stored = buf.size;
	*mask = skipped;
	return 0;
}
