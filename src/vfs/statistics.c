/* Statistics of a mount, as JSON: the property h5fs.stats of the root. */
#include "vfs/private.h"

#include "store/statistics.h"

#include <inttypes.h>

static uint64_t value(const atomic_uint_fast64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_cache(struct h5_buf *out, const char *name, struct h5_lru *cache, size_t limit)
{
	struct h5_lru_stats s;

	h5_lru_stats(cache, &s);
	h5_buf_printf(out,
		      "\"%s\":{\"hits\":%" PRIu64 ",\"misses\":%" PRIu64 ",\"evictions\":%" PRIu64
		      ",\"entries\":%zu,\"bytes\":%zu,\"limit\":%zu},",
		      name, s.hits, s.misses, s.evictions, s.entries, s.bytes, limit);
}

static void add_filtered(struct h5_buf *out, const char *name, const struct h5_filter_statistics *s)
{
	h5_buf_printf(out, "\"%s\":{\"chunks\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"seconds\":%.6f},", name,
		      value(&s->chunks), value(&s->bytes), (double)value(&s->time) / 1e9);
}

int h5_vfs_statistics(struct h5_vfs *vfs, struct h5_buf *out)
{
	const struct h5_file_set_options *limits = h5_file_set_options(vfs->set);
	const struct h5_statistics *s = h5_file_set_statistics(vfs->set);

	h5_buf_printf(out, "{\"served\":{\"read\":%" PRIu64 ",\"written\":%" PRIu64 "},",
		      value(&vfs->bytes_read), value(&vfs->bytes_written));
	h5_buf_printf(out, "\"file\":{\"reads\":%" PRIu64 ",\"bytes\":%" PRIu64 "},", value(&s->reads),
		      value(&s->bytes));
	add_cache(out, "chunk_cache", h5_file_set_chunks(vfs->set), limits->chunk_cache);
	add_cache(out, "index_cache", h5_file_set_blocks(vfs->set), limits->block_cache);
	add_filtered(out, "decoded", &s->decoded);
	add_filtered(out, "encoded", &s->encoded);
	h5_buf_printf(out, "\"commits\":%" PRIu64 ",", value(&s->commits));
	h5_buf_printf(out, "\"dropped\":{\"incomplete_rows\":%" PRIu64 ",\"refused_changes\":%" PRIu64 "}}",
		      value(&vfs->dropped_rows), value(&vfs->lost_changes));
	return out->err;
}
