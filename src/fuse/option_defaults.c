#include "fuse/option_defaults.h"

#include "base/checked.h"
#include "base/thread.h"
#include "fuse/option_table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The caches are a part of the machine's memory, within bounds that suit a laptop and a server. */
#define CACHE_SHARE	32
#define CHUNK_CACHE_MIN ((uint64_t)64 << 20)
#define CHUNK_CACHE_MAX ((uint64_t)640 << 20)
#define MAX_CHUNK_SHARE 8

enum {
	MAX_WORK = 2, /* seconds, if -o max_work= is not given */
	WAIT = 2,     /* seconds, if -o wait= is not given */
	/* HTTP requests to servers at once. More are faster where each connection is slow, and are too many
	 * for some servers. */
	CONNECTIONS = 64,
	TRIES = 10,		  /* of a request to a server */
	TIMEOUT = 30,		  /* seconds without an answer */
	REMOTE_CACHE = 256 << 20, /* bytes */
	INDEX_SHARE = 4,	  /* of the cache for chunks */
	GATHER = 32 << 20,	  /* most bytes of chunks in which small writes gather */
};

/* HDF5_USE_FILE_LOCKING counts if locking= was not given. */
static enum h5_lock_mode lock_by_environment(void)
{
	const char *value = getenv("HDF5_USE_FILE_LOCKING");

	if (value && (!strcasecmp(value, "FALSE") || !strcmp(value, "0")))
		return H5_LOCK_NONE;
	return value && !strcasecmp(value, "BEST_EFFORT") ? H5_LOCK_BEST_EFFORT : H5_LOCK_ALWAYS;
}

/* Memory of the machine in bytes; 0: not known. */
static uint64_t memory_size(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

static size_t default_cache(void)
{
	return (size_t)h5_min(memory_size() / CACHE_SHARE + CHUNK_CACHE_MIN, CHUNK_CACHE_MAX);
}

static size_t default_max_chunk(void)
{
	return (size_t)h5_min(h5_max(memory_size() / MAX_CHUNK_SHARE, H5_MAX_CHUNK), H5_MAX_CHUNK_LIMIT);
}

void h5_option_defaults(struct h5_options *o)
{
	o->set.external = o->allow_other ? H5_EXTERNAL_NONE : H5_EXTERNAL_BENEATH;
	o->set.lock = lock_by_environment();
	o->set.wait = WAIT;
	o->revision = UINT64_MAX;
	o->fetcher.cache = REMOTE_CACHE;
	o->fetcher.connections = CONNECTIONS;
	o->fetcher.tries = TRIES;
	o->fetcher.timeout = TIMEOUT;
	o->set.chunk_cache = default_cache();
	o->set.block_cache = o->set.chunk_cache / INDEX_SHARE;
	o->set.max_chunk = default_max_chunk();
	o->set.workers = (unsigned)h5_min(h5_processors(), H5_WORKERS_MAX);
	o->vfs.commit_at_close = true;
	o->vfs.uid = getuid();
	o->vfs.gid = getgid();
	o->vfs.max_work = MAX_WORK;
	o->vfs.gather = GATHER;
	o->sandbox = true;
}
