#include "chunk_index/private.h"

#include <assert.h>

void h5_chunk_cursor_release(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor)
{
	h5_file_put(index->file, cursor->ref);
	cursor->ref = NULL;
	cursor->block = NULL;
	cursor->held = false;
	cursor->next = 0;
}

bool h5_chunk_cursor_covers(const struct h5_chunk_cursor *cursor, const uint64_t *key, unsigned n)
{
	return cursor->held && h5_chunk_compare(key, cursor->low, n) >= 0 &&
	       h5_chunk_compare(key, cursor->high, n) < 0;
}

int h5_chunk_cursor_move(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
			 const uint64_t *key, unsigned n, h5_chunk_seek *seek)
{
	int rc;

	if (h5_chunk_cursor_covers(cursor, key, n))
		return 0;
	h5_chunk_cursor_release(index, cursor);
	rc = seek(index, key, cursor);
	if (rc) {
		h5_chunk_cursor_release(index, cursor);
		return rc;
	}
	assert(!cursor->block || cursor->ref);
	cursor->held = true;
	return 0;
}
