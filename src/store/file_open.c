#include "store/file_open.h"

#include "base/error.h"
#include "store/cache_image.h"
#include "store/extension.h"
#include "store/members.h"

#include <string.h>

/* What the file says of its driver. If it says nothing, there is none. */
static int read_driver_info(struct h5_file *file, const struct h5_header *extension,
			    struct h5_driver_info *driver)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	uint8_t block[H5_DRIVER_BLOCK_MAX];
	struct h5_reader r;
	size_t got;
	int rc;

	*driver = (struct h5_driver_info){0};
	if (sb->extension != H5_UNDEF) {
		rc = h5_extension_driver_info(file, extension, driver);
		return rc == -ENODATA ? 0 : rc;
	}
	/* Address 0 is that of the superblock: some writers mean "none" by it. */
	if (sb->driver_info == H5_UNDEF || !sb->driver_info)
		return 0;
	rc = h5_file_read_some(file, sb->driver_info, block, sizeof block, &got);
	if (rc)
		return h5_fail_in(rc, "driver information block");
	r = h5_file_reader(file, block, got, sb->driver_info);
	return h5_driver_info_block_decode(&r, driver);
}

/* Loads the extension, and decodes what the file says of its driver. */
static int read_extension(struct h5_file *file, struct h5_header *extension, struct h5_driver_info *driver)
{
	int rc = h5_extension_load(file, extension);

	if (rc)
		return rc;
	rc = read_driver_info(file, extension, driver);
	if (rc)
		h5_header_release(extension);
	return rc;
}

static const char in_pieces[] = "a file in several pieces";

/* True: the file, of so many bytes, is the only member of a family, which has others when it grows. */
static bool may_get_more(const struct h5_driver_info *driver, uint64_t size)
{
	return driver->driver == H5_DRIVER_FAMILY && size <= driver->member_size;
}

/* Opens the members beside the first one. */
static int join_members(struct h5_file *file, struct h5_members *members, const struct h5_driver_info *driver,
			bool sure)
{
	struct h5_io *io = h5_file_io(file);
	int rc = h5_members_open(members, driver, sure, &io);

	if (rc || io == h5_file_io(file))
		return rc;
	h5_file_fix(file, in_pieces);
	return h5_file_read_through(file, io);
}

/* The driver information may lie in a later member, but it is what says where members begin. So we guess it,
 * read the real one with the guess, and compare. `size`: bytes of the first member. */
static int open_guessed(struct h5_file *file, struct h5_members *members, uint64_t size,
			struct h5_header *extension)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	struct h5_driver_info guess, driver;
	int rc;

	h5_driver_info_multi_default(&guess);
	if (sb->extension == H5_UNDEF || sb->extension < guess.member[1].start) {
		memset(&guess, 0, sizeof guess);
		guess.driver = H5_DRIVER_FAMILY;
		guess.member_size = size;
	}
	rc = join_members(file, members, &guess, true);
	if (!rc)
		rc = read_extension(file, extension, &driver);
	if (!rc && memcmp(&guess, &driver, sizeof driver))
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "driver information: not that of these files");
	return rc;
}

/* Puts the pieces of the file together, if it has several, and loads its extension. */
static int open_members(struct h5_file *file, struct h5_members *members, struct h5_header *extension)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	uint64_t size = sb->base + h5_file_size(file);
	bool cut = sb->end != H5_UNDEF && sb->end > size;
	bool elsewhere = sb->extension != H5_UNDEF && sb->extension >= h5_file_end(file);
	struct h5_driver_info driver;
	int rc = read_extension(file, extension, &driver);

	if (rc == -EUCLEAN && (cut || elsewhere || members->pattern))
		return open_guessed(file, members, size, extension);
	if (rc)
		return rc;
	/* A file that holds all of its addresses is complete, even if it says that it belongs to a family:
	 * its members may have been joined. */
	if (driver.driver != H5_DRIVER_MULTI && !cut && !members->pattern) {
		if (may_get_more(&driver, size))
			h5_file_fix(file, in_pieces);
		return 0;
	}
	if (driver.driver != H5_DRIVER_NONE)
		return join_members(file, members, &driver, true);
	/* Members of old families don't say so. */
	driver.member_size = size;
	return join_members(file, members, &driver, members->pattern);
}

int h5_file_open(const struct h5_file_shared *shared, const struct h5_folder *folder, struct h5_io *io,
		 const char *path, const char *pattern, uint64_t offset, struct h5_file **out)
{
	struct h5_members members = {.folder = folder, .path = path, .pattern = pattern};
	struct h5_header extension = {0};
	struct h5_file *file;
	int rc = h5_file_new(shared, io, offset, &file);

	if (rc)
		return rc;
	members.end = h5_file_superblock(file)->end;
	rc = open_members(file, &members, &extension);
	h5_file_set_missing(file, members.missing);
	if (!rc)
		rc = h5_cache_image_lay_over(file, &extension);
	h5_header_release(&extension);
	if (rc)
		h5_file_close(file);
	else
		*out = file;
	return rc;
}
