#include "vfs/plain.h"

#include "base/checked.h"
#include "dataset/rechunk.h"
#include "dataset/writer.h"
#include "vfs/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	FILES_MAX = 1 << 20, /* that are remembered */
	CHUNK_LEAST = 256,
	CHUNKS_MANY = 16,
	MOVED_MAX = 4 << 20, /* bytes of a file that get larger chunks */
};

struct h5_plain {
	uint64_t address;
	struct h5_changed_name *released; /* the last name that was to be moved onto a dataset; NULL: none */
	UT_hash_handle hh;
};

static struct h5_plain *find(const struct h5_vfs *vfs, uint64_t address)
{
	struct h5_plain *plain;

	HASH_FIND(hh, vfs->plain, &address, sizeof address, plain);
	return plain;
}

static void forget(struct h5_vfs *vfs, struct h5_plain *plain)
{
	HASH_DEL(vfs->plain, plain);
	free(plain->released);
	free(plain);
}

void h5_plain_add(struct h5_vfs *vfs, uint64_t address)
{
	struct h5_plain *plain;

	if (find(vfs, address))
		return;
	while (HASH_COUNT(vfs->plain) >= FILES_MAX)
		forget(vfs, vfs->plain);
	plain = calloc(1, sizeof *plain);
	if (!plain)
		return;
	plain->address = address;
	HASH_ADD(hh, vfs->plain, address, sizeof plain->address, plain);
	if (!plain->hh.tbl)
		free(plain);
}

void h5_plain_remove(struct h5_vfs *vfs, uint64_t address)
{
	struct h5_plain *plain = find(vfs, address);

	if (plain)
		forget(vfs, plain);
}

bool h5_plain_find(const struct h5_vfs *vfs, uint64_t address)
{
	return find(vfs, address);
}

void h5_plain_free(struct h5_vfs *vfs)
{
	struct h5_plain *plain, *next;

	HASH_ITER(hh, vfs->plain, plain, next)
	forget(vfs, plain);
}

int h5_plain_release_name(struct h5_vfs *vfs, uint64_t address, const struct h5_node *directory,
			  const char *name)
{
	struct h5_plain *plain = find(vfs, address);
	struct h5_changed_name *note;

	if (plain->released && plain->released->directory == directory->id &&
	    !strcmp(plain->released->name, name))
		return 0;
	note = h5_names_note(directory, name);
	if (!note)
		return -ENOMEM;
	free(plain->released);
	plain->released = note;
	return -ESTALE;
}

bool h5_plain_is_released(const struct h5_vfs *vfs, uint64_t address)
{
	const struct h5_plain *plain = vfs->plain ? find(vfs, address) : NULL;

	return plain && plain->released;
}

/* ---- chunks ---- */

/* Bytes of the file and of a chunk. False: it is no plain file, or cannot be read. */
static bool measure(struct h5_vfs *vfs, struct h5_dataset_writer *writer, uint64_t *size, uint64_t *chunk)
{
	const uint64_t address = h5_dataset_writer_participant(writer)->address;
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	bool is_plain;

	if (!find(vfs, address) || h5_dataset_writer_ready(writer) ||
	    h5_dataset_get(vfs->file, address, &ref, &dataset))
		return false;
	is_plain = dataset->type->size == 1 && dataset->space.rank == 1 && h5_dataset_chunks(dataset);
	if (is_plain) {
		*size = h5_dataset_writer_size(writer);
		*chunk = dataset->layout.chunked.dims[0];
	}
	h5_file_put(vfs->file, ref);
	return is_plain;
}

static int rechunk(struct h5_vfs *vfs, struct h5_dataset_writer *writer, uint64_t chunk)
{
	int rc = h5_dataset_rechunk(vfs->file, h5_dataset_writer_participant(writer)->address, &chunk);

	return rc ? rc : h5_dataset_writer_ready(writer);
}

static uint64_t chunk_for(uint64_t size)
{
	if (size <= 64 << 10)
		return H5_PLAIN_CHUNK;
	return size <= 1 << 20 ? 64 << 10 : 256 << 10;
}

int h5_plain_grow(struct h5_vfs *vfs, struct h5_dataset_writer *writer, uint64_t size)
{
	const uint64_t wanted = chunk_for(size);
	uint64_t now = 0, chunk = 0;

	if (!measure(vfs, writer, &now, &chunk) || size / CHUNKS_MANY <= chunk || wanted <= chunk ||
	    now > MOVED_MAX)
		return 0;
	return rechunk(vfs, writer, wanted);
}

int h5_plain_fit(struct h5_vfs *vfs, struct h5_dataset_writer *writer)
{
	uint64_t size, chunk, wanted, unused;

	if (!measure(vfs, writer, &size, &chunk))
		return 0;
	wanted = h5_max(size, CHUNK_LEAST);
	unused = (chunk - size % chunk) % chunk;
	if (!size || size > H5_PLAIN_CHUNK || wanted == chunk || unused <= size / 4 + CHUNK_LEAST)
		return h5_dataset_writer_settle(writer);
	return rechunk(vfs, writer, wanted);
}
