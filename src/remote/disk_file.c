#include "remote/disk_file.h"

#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"

#include <assert.h>
#include <errno.h>

int h5_disk_file_start(struct h5_disk_file *file)
{
	uint8_t bytes[H5_DISK_HEADER];
	struct h5_io_stat st;
	uint64_t size;
	int rc = h5_io_read(file->io, 0, bytes, sizeof bytes);

	if (!rc)
		rc = h5_disk_decode(bytes, &file->header);
	if (!rc)
		rc = h5_io_stat(file->io, &st);
	if (!rc && (!h5_disk_file_size(file->header.size, &size) || st.size != size))
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "it does not have its size");
	if (!rc)
		file->seed = h5_disk_seed(&file->header);
	return rc;
}

int h5_disk_file_make(struct h5_disk_file *file)
{
	uint8_t bytes[H5_DISK_HEADER];
	uint64_t size;
	int rc;

	if (!h5_disk_file_size(file->header.size, &size))
		return h5_fail(-EFBIG, H5_UNDEF, "the file is too large");
	h5_disk_encode(&file->header, bytes);
	file->seed = h5_disk_seed(&file->header);
	rc = h5_io_write(file->io, 0, bytes, sizeof bytes);
	return rc ? rc : h5_io_resize(file->io, size);
}

static uint64_t entry_offset(uint64_t block)
{
	return H5_DISK_MAP + block * H5_DISK_SUM;
}

int h5_disk_file_look(const struct h5_disk_file *file, uint64_t first, uint32_t count, uint64_t *sums)
{
	uint8_t *bytes = (uint8_t *)sums;
	int rc = h5_io_read(file->io, entry_offset(first), bytes, (size_t)count * H5_DISK_SUM);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < count; i++)
		sums[i] = h5_uint_from(bytes + (size_t)i * H5_DISK_SUM, H5_DISK_SUM);
	return 0;
}

/* Bytes of the blocks. */
static size_t size_of(const struct h5_disk_file *file, uint64_t first, uint32_t count)
{
	assert(count && first + count <= h5_disk_blocks(file->header.size));
	return (size_t)(count - 1) * H5_DISK_BLOCK + h5_disk_block_size(file->header.size, first + count - 1);
}

static uint64_t sum_of(const struct h5_disk_file *file, uint64_t block, const uint8_t *data)
{
	return h5_disk_sum(file->seed, block, data, h5_disk_block_size(file->header.size, block));
}

int h5_disk_file_read(const struct h5_disk_file *file, uint64_t first, uint32_t count, const uint64_t *sums,
		      uint8_t *data)
{
	int rc = h5_io_read(file->io, h5_disk_offset(file->header.size, first), data,
			    size_of(file, first, count));

	for (uint32_t i = 0; i < count && !rc; i++)
		if (sum_of(file, first + i, data + (size_t)i * H5_DISK_BLOCK) != sums[i])
			rc = h5_fail(-EUCLEAN, H5_UNDEF, "block %ju is damaged", (uintmax_t)(first + i));
	return rc;
}

int h5_disk_file_write(const struct h5_disk_file *file, uint64_t first, uint32_t count, const uint8_t *data)
{
	uint8_t entries[H5_DISK_WRITE * H5_DISK_SUM];
	int rc;

	assert(count <= H5_DISK_WRITE);
	for (uint32_t i = 0; i < count; i++)
		h5_uint_to(entries + (size_t)i * H5_DISK_SUM,
			   sum_of(file, first + i, data + (size_t)i * H5_DISK_BLOCK), H5_DISK_SUM);
	/* If this process is killed between the two, the blocks do not count as here. */
	rc = h5_io_write(file->io, h5_disk_offset(file->header.size, first), data,
			 size_of(file, first, count));
	return rc ? rc : h5_io_write(file->io, entry_offset(first), entries, (size_t)count * H5_DISK_SUM);
}
