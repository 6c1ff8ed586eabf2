#include "format/virtual_mapping.h"

#include "base/checked.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/lookup3.h"

#include <stdlib.h>
#include <string.h>

enum {
	FLAG_SHARED_FILE = 1,
	FLAG_SHARED_DATASET = 2,
	FLAG_SAME_FILE = 4,
	CHECKSUM_SIZE = 4,
	/* Two names and two selections; or flags, a name and two selections. */
	MAPPING_LEAST = 34,
};

static int damaged(const struct h5_reader *r, const char *what)
{
	return h5_fail(-EUCLEAN, r->address, "virtual dataset mappings: %s", what);
}

/* The last four bytes are the checksum of all before them. */
static int check_sum(struct h5_reader *r)
{
	size_t n = h5_reader_left(r);

	if (n < CHECKSUM_SIZE)
		return damaged(r, "truncated");
	n -= CHECKSUM_SIZE;
	if (!h5_checksum_matches(h5_uint_from(r->p + n, CHECKSUM_SIZE), h5_lookup3(r->p, n, 0)))
		return damaged(r, "wrong checksum");
	r->end -= CHECKSUM_SIZE;
	return 0;
}

/* offset  size  field
 *      0     1  version
 *      1     L  number of mappings
 *               mappings
 *            4  checksum        */
int h5_virtual_block_open(struct h5_reader *r, struct h5_virtual_block *block)
{
	int rc = check_sum(r);

	memset(block, 0, sizeof *block);
	if (rc)
		return rc;
	block->version = h5_read_u8(r);
	block->count = h5_read_length(r);
	rc = h5_reader_check(r, "virtual dataset mappings");
	if (rc)
		return rc;
	if (block->version > 1)
		return h5_fail(-ENOTSUP, r->address, "virtual dataset mappings: version %u is not supported",
			       block->version);
	if (block->count > h5_reader_left(r) / MAPPING_LEAST)
		return damaged(r, "more of them than bytes");
	block->reader = *r;
	if (!block->version)
		return 0;
	block->files = h5_calloc(block->count + 1, sizeof *block->files);
	block->datasets = h5_calloc(block->count + 1, sizeof *block->datasets);
	if (!block->files || !block->datasets) {
		h5_virtual_block_release(block);
		return h5_fail(-ENOMEM, r->address, "virtual dataset mappings: out of memory");
	}
	return 0;
}

void h5_virtual_block_release(struct h5_virtual_block *block)
{
	free(block->files);
	free(block->datasets);
	block->files = block->datasets = NULL;
}

static const char *read_name(struct h5_reader *r)
{
	const char *name = (const char *)r->p;
	const char *end = memchr(name, 0, h5_reader_left(r));

	if (!end) {
		r->err = true;
		return NULL;
	}
	h5_reader_skip(r, (size_t)(end - name) + 1);
	return name;
}

/* A name, or the number of an earlier mapping that has the same name. */
static int read_shared(struct h5_virtual_block *block, bool shared, const char **names, const char **name)
{
	uint64_t origin;

	if (!shared) {
		*name = read_name(&block->reader);
		return 0;
	}
	origin = h5_read_length(&block->reader);
	if (!block->reader.err && origin >= block->at)
		return damaged(&block->reader, "a name shared with no earlier one");
	*name = block->reader.err ? NULL : names[origin];
	return 0;
}

static int read_names(struct h5_virtual_block *block, struct h5_virtual_mapping *m)
{
	uint8_t flags = block->version ? h5_read_u8(&block->reader) : 0;
	int rc = 0;

	if (flags & ~(FLAG_SHARED_FILE | FLAG_SHARED_DATASET | FLAG_SAME_FILE))
		return h5_fail(-ENOTSUP, block->reader.address,
			       "virtual dataset mappings: unknown flags 0x%02x", flags);
	if (flags & FLAG_SAME_FILE)
		m->file = ".";
	else
		rc = read_shared(block, flags & FLAG_SHARED_FILE, block->files, &m->file);
	if (!rc)
		rc = read_shared(block, flags & FLAG_SHARED_DATASET, block->datasets, &m->dataset);
	if (rc || !block->version)
		return rc;
	block->files[block->at] = m->file;
	block->datasets[block->at] = m->dataset;
	return 0;
}

/*    size  field
 *       1  flags, version 1 only: 1 shared file name, 2 shared dataset name, 4 the file is that of the
 *          virtual dataset
 *          source file name, with its NUL; shared: number of the mapping that has it L; same file: nothing
 *          source dataset name, with its NUL; shared: number of the mapping that has it L
 *          source selection
 *          virtual selection */
int h5_virtual_block_next(struct h5_virtual_block *block, struct h5_virtual_mapping *m)
{
	int rc;

	memset(m, 0, sizeof *m);
	if (block->at == block->count)
		return h5_reader_left(&block->reader) ? damaged(&block->reader, "bytes after the last") : 0;
	rc = read_names(block, m);
	if (!rc)
		rc = h5_reader_check(&block->reader, "virtual dataset mappings");
	if (!rc)
		rc = h5_selection_decode(&block->reader, &m->source);
	if (!rc)
		rc = h5_selection_decode(&block->reader, &m->virtual);
	if (rc) {
		h5_virtual_mapping_release(m);
		return rc;
	}
	block->at++;
	return 1;
}

void h5_virtual_mapping_release(struct h5_virtual_mapping *m)
{
	h5_selection_release(&m->source);
	h5_selection_release(&m->virtual);
}
