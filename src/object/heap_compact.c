#include "object/heap_compact.h"

#include "base/error.h"
#include "change/transaction.h"
#include "change/watch.h"
#include "format/global_heap.h"

#include <assert.h>
#include <stdlib.h>

/* The bytes that change: from the first object that goes to behind the header of the new free space. */
struct change {
	struct h5_file *file;
	uint64_t address, size;		  /* of the collection */
	const struct h5_heap_part *parts; /* borrowed: from the first one that goes on */
	size_t count;
	uint64_t live; /* bytes of those that stay */
};

static size_t header_size(const struct h5_file *file)
{
	return h5_global_heap_header(h5_file_superblock(file)->size_of_lengths);
}

/* Finds the largest change that is one write. False: there is none. */
static bool find_change(struct change *change, const struct h5_heap_part *parts, size_t count)
{
	const size_t header = header_size(change->file);
	uint64_t live = 0;

	for (size_t i = count; i-- > 0;) {
		if (!parts[i].goes) {
			live += parts[i].size;
			continue;
		}
		/* The header of the free space fits where this object was. */
		assert(parts[i].size >= header && parts[i].begin + parts[i].size + live <= change->size);
		if (!h5_tx_is_safe(change->file, change->address + parts[i].begin, (size_t)live + header))
			continue;
		change->parts = parts + i;
		change->count = count - i;
		change->live = live;
	}
	return change->parts;
}

/* Makes the bytes as they will be. */
static int encode(const struct change *change, uint8_t *bytes)
{
	const struct h5_superblock *sb = h5_file_superblock(change->file);
	const size_t live = (size_t)change->live;
	struct h5_writer w = h5_writer_init(bytes + live, header_size(change->file), sb->size_of_offsets,
					    sb->size_of_lengths);
	size_t at = 0;
	int rc = 0;

	for (size_t i = 0; i < change->count && !rc; i++) {
		const struct h5_heap_part *part = &change->parts[i];

		if (part->goes)
			continue;
		rc = h5_file_read(change->file, change->address + part->begin, bytes + at,
				  (size_t)part->size);
		at += (size_t)part->size;
	}
	h5_global_heap_encode_free(&w, change->size - change->parts->begin - change->live);
	return rc ? rc : h5_writer_check(&w, "global heap collection");
}

static int make_change(const struct change *change)
{
	const uint64_t address = change->address + change->parts->begin;
	const size_t n = (size_t)change->live + header_size(change->file);
	uint8_t *bytes = malloc(n);
	int rc = bytes ? encode(change, bytes)
		       : h5_fail(-ENOMEM, address, "global heap collection: out of memory");

	/* In new space some were perhaps written as raw data. */
	if (!rc && h5_tx_is_new(change->file, address))
		h5_tx_uncover(change->file, address, n);
	if (!rc)
		rc = h5_tx_patch(change->file, address, bytes, n, H5_STAGE_DEAD);
	h5_tx_forget(change->file, change->address);
	h5_tx_tell_watches(change->file, change->address, change->size);
	free(bytes);
	return rc;
}

int h5_heap_compact(struct h5_file *file, uint64_t address, uint64_t size, const struct h5_heap_part *parts,
		    size_t count)
{
	struct change change = {.file = file, .address = address, .size = size};

	if (!h5_tx_is_new(file, address) && h5_tx_changes_before(file, address, size, H5_STAGE_DEAD))
		return 0;
	return find_change(&change, parts, count) ? make_change(&change) : 0;
}
