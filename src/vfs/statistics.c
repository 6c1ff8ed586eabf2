/* Statistics of a mount, as JSON: the property h5fs.stats of the root. */
#include "vfs/private.h"

#include "io/remote.h"
#include "object/json.h"
#include "store/statistics.h"

static uint64_t value(const atomic_uint_fast64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add(struct h5_json *object, const char *name, uint64_t number)
{
	h5_json_number(h5_json_key(object, name), number);
}

/* An object of two counters. */
static void add_pair(struct h5_json *all, const char *name, const char *first, uint64_t first_value,
		     const char *second, uint64_t second_value)
{
	struct h5_json pair = h5_json_object(h5_json_key(all, name));

	add(&pair, first, first_value);
	add(&pair, second, second_value);
	h5_json_close(&pair);
}

static void add_cache(struct h5_json *all, const char *name, struct h5_lru *lru, size_t limit)
{
	struct h5_json cache = h5_json_object(h5_json_key(all, name));
	struct h5_lru_stats s;

	h5_lru_stats(lru, &s);
	add(&cache, "hits", s.hits);
	add(&cache, "misses", s.misses);
	add(&cache, "evictions", s.evictions);
	add(&cache, "entries", s.entries);
	add(&cache, "bytes", s.bytes);
	add(&cache, "limit", limit);
	h5_json_close(&cache);
}

static void add_filtered(struct h5_json *all, const char *name, const struct h5_filter_statistics *s)
{
	struct h5_json filtered = h5_json_object(h5_json_key(all, name));

	add(&filtered, "chunks", value(&s->chunks));
	add(&filtered, "bytes", value(&s->bytes));
	h5_buf_printf(h5_json_key(&filtered, "seconds"), "%.6f", (double)value(&s->time) / 1e9);
	h5_json_close(&filtered);
}

void h5_vfs_remote_statistics(struct h5_json *all, struct h5_remote *link)
{
	struct h5_json remote = h5_json_object(h5_json_key(all, "remote"));
	struct h5_remote_statistics s;

	h5_remote_statistics(link, &s);
	add(&remote, "requests", s.requests);
	add(&remote, "repeated", s.repeated);
	add(&remote, "bytes", s.bytes);
	add(&remote, "disk", s.from_disk);
	add(&remote, "unused", s.unused);
	h5_json_close(&remote);
}

int h5_vfs_statistics(struct h5_vfs *vfs, struct h5_buf *out)
{
	const struct h5_file_set_options *limits = h5_file_set_options(vfs->set);
	const struct h5_statistics *s = h5_file_set_statistics(vfs->set);
	struct h5_json all = h5_json_object(out);

	add_pair(&all, "served", "read", value(&vfs->bytes_read), "written", value(&vfs->bytes_written));
	add_pair(&all, "file", "reads", value(&s->reads), "bytes", value(&s->bytes));
	if (limits->remote)
		h5_vfs_remote_statistics(&all, limits->remote);
	add_cache(&all, "chunk_cache", vfs->chunks, limits->chunk_cache);
	add_cache(&all, "index_cache", vfs->blocks, limits->block_cache);
	add_filtered(&all, "decoded", &s->decoded);
	add_filtered(&all, "encoded", &s->encoded);
	add(&all, "commits", value(&s->commits));
	add_pair(&all, "dropped", "incomplete_rows", value(&vfs->dropped_rows), "refused_changes",
		 value(&vfs->lost_changes));
	h5_json_close(&all);
	return out->err;
}
