#include "io/overlay.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/lower_bound.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- patches ---- */

static uint64_t end_of(const struct h5_patch *patch)
{
	return patch->offset + patch->n;
}

void h5_patches_release(struct h5_patches *patches)
{
	free(patches->list);
	*patches = (struct h5_patches){0};
}

int h5_patches_reserve(struct h5_patches *patches, size_t n)
{
	return h5_array_reserve(&patches->list, &patches->capacity, patches->count + n, NULL);
}

void h5_patches_insert(struct h5_patches *patches, size_t i, struct h5_patch *patch)
{
	struct h5_patch **at = patches->list + i;

	assert(patches->count < patches->capacity && i <= patches->count && patch->n);
	assert(!i || end_of(at[-1]) <= patch->offset);
	assert(i == patches->count || end_of(patch) <= at[0]->offset);
	memmove(at + 1, at, (patches->count - i) * sizeof *at);
	*at = patch;
	patches->count++;
}

void h5_patches_remove(struct h5_patches *patches, size_t i, size_t n)
{
	struct h5_patch **at;

	assert(i + n <= patches->count);
	if (!n)
		return;
	at = patches->list + i;
	memmove(at, at + n, (patches->count - i - n) * sizeof *at);
	patches->count -= n;
}

size_t h5_patches_find(const struct h5_patches *patches, uint64_t offset)
{
	return h5_lower_bound(i, patches->count, end_of(patches->list[i]) <= offset);
}

bool h5_patches_cover(const struct h5_patches *patches, uint64_t offset, size_t n)
{
	size_t i = h5_patches_find(patches, offset);

	return i < patches->count && patches->list[i]->offset <= offset &&
	       end_of(patches->list[i]) - offset >= n;
}

void h5_patches_apply(const struct h5_patches *patches, uint64_t offset, void *buf, size_t n)
{
	uint8_t *to = buf;

	for (size_t i = h5_patches_find(patches, offset);
	     i < patches->count && patches->list[i]->offset < offset + n; i++) {
		const struct h5_patch *patch = patches->list[i];
		uint64_t begin = h5_max(patch->offset, offset);
		uint64_t end = h5_min(end_of(patch), offset + n);

		memcpy(to + (begin - offset), patch->bytes + (begin - patch->offset), (size_t)(end - begin));
	}
}

/* ---- the io ---- */

int h5_overlay_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct h5_overlay *overlay = (struct h5_overlay *)io;
	int rc = 0;

	*got = n;
	/* The io beneath need not be asked then, whether it reaches as far or not. */
	if (!overlay->endless || !h5_patches_cover(&overlay->patches, offset, n))
		rc = h5_io_read_some(overlay->beneath, offset, buf, n, got);
	if (rc)
		return rc;
	if (overlay->endless && *got < n) {
		memset((char *)buf + *got, 0, n - *got);
		*got = n;
	}
	h5_patches_apply(&overlay->patches, offset, buf, *got);
	return 0;
}

int h5_overlay_readv(struct h5_io *io, uint64_t offset, const struct iovec *buffers, unsigned count,
		     size_t *got)
{
	const struct h5_overlay *overlay = (struct h5_overlay *)io;
	size_t left, all = 0;
	int rc = h5_io_readv(overlay->beneath, offset, buffers, count, got);

	if (rc)
		return rc;
	left = *got;
	for (unsigned i = 0; i < count; i++) {
		size_t n = buffers[i].iov_len, there = (size_t)h5_min(left, n);

		left -= there;
		if (overlay->endless) {
			memset((char *)buffers[i].iov_base + there, 0, n - there);
			there = n;
		}
		h5_patches_apply(&overlay->patches, offset + all, buffers[i].iov_base, there);
		all += there;
	}
	*got = all;
	return 0;
}

uint64_t h5_overlay_want(struct h5_io *io, const struct h5_io_range *ranges, size_t count,
			 enum h5_wanted when)
{
	return h5_io_want(((struct h5_overlay *)io)->beneath, ranges, count, when);
}

int h5_overlay_stat(struct h5_io *io, struct h5_io_stat *st)
{
	return h5_io_stat(((struct h5_overlay *)io)->beneath, st);
}

int h5_overlay_unlock(struct h5_io *io)
{
	return h5_io_unlock(((struct h5_overlay *)io)->beneath);
}

void h5_overlay_release(struct h5_overlay *overlay)
{
	h5_io_close(overlay->beneath);
	h5_patches_release(&overlay->patches);
}
