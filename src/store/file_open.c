#include "store/file_open.h"

#include "base/checked.h"
#include "base/error.h"
#include "format/onion.h"
#include "store/cache_image.h"
#include "store/extension.h"
#include "store/members.h"
#include "store/subfiles.h"

#include <stdlib.h>
#include <string.h>

int h5_file_driver_info(struct h5_file *file, const struct h5_header *extension,
			struct h5_driver_info *driver, uint64_t *address)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	uint8_t block[H5_DRIVER_BLOCK_MAX];
	struct h5_reader r;
	size_t got;
	int rc;

	*driver = (struct h5_driver_info){0};
	*address = H5_UNDEF;
	if (sb->extension != H5_UNDEF) {
		rc = h5_extension_driver_info(file, extension, driver, address);
		return rc == -ENODATA ? 0 : rc;
	}
	/* Address 0 is that of the superblock: some writers mean "none" by it. */
	if (sb->driver_info == H5_UNDEF || !sb->driver_info)
		return 0;
	rc = h5_file_read_some(file, sb->driver_info, block, sizeof block, &got);
	if (rc)
		return h5_fail_in(rc, "driver information block");
	*address = sb->driver_info + H5_DRIVER_BLOCK_HEAD;
	r = h5_file_reader(file, block, got, sb->driver_info);
	return h5_driver_info_block_decode(&r, driver);
}

/* Loads the extension, and decodes what the file says of its driver. */
static int read_extension(struct h5_file *file, struct h5_header *extension, struct h5_driver_info *driver)
{
	int rc = h5_extension_load(file, extension);
	uint64_t address;

	if (rc)
		return rc;
	rc = h5_file_driver_info(file, extension, driver, &address);
	if (rc)
		h5_header_release(extension);
	return rc;
}

/* How the addresses of the file are spread over files. */
struct division {
	struct h5_driver_info driver; /* family or multi; else the file is one */
	/* False: only the file's size suggests a family. */
	bool sure;
	/* The driver information may lie in a later member, but it is what says where members begin. So it
	 * was guessed: the real one is read with the guess, and compared. */
	bool guessed;
	bool said;  /* the files say so */
	bool alone; /* the only member of a family, which has others when it grows */
};

static void guess(const struct h5_superblock *sb, uint64_t size, struct division *division)
{
	h5_driver_info_multi_default(&division->driver);
	if (sb->extension == H5_UNDEF || sb->extension < division->driver.member[1].start) {
		memset(&division->driver, 0, sizeof division->driver);
		division->driver.driver = H5_DRIVER_FAMILY;
		division->driver.member_size = size;
	}
	division->sure = division->guessed = true;
}

/* True: the first member, or a stub, has not all of the file's addresses. */
static bool is_cut(const struct h5_file *file)
{
	const struct h5_superblock *sb = h5_file_superblock(file);

	return sb->end != H5_UNDEF && sb->end > sb->base + h5_file_size(file);
}

/* Opens the subfiles of the file, in which all of it is: a stub has the superblock, and may lack the driver
 * information. *io becomes the whole file, of which *said is told; it stays if there are none. */
static int find_subfiles(struct h5_file *file, struct h5_members *members, struct h5_driver_info *said,
			 struct h5_io **io)
{
	struct h5_header extension = {0};
	struct h5_driver_info driver;
	int rc;

	if (!is_cut(file))
		return 0;
	rc = read_extension(file, &extension, &driver);
	h5_header_release(&extension);
	if (rc && rc != -EUCLEAN)
		return rc;
	if (rc)
		driver = (struct h5_driver_info){0};
	if (driver.driver != H5_DRIVER_NONE && driver.driver != H5_DRIVER_SUBFILING)
		return 0;
	return h5_subfiles_open(members, &driver, said, io);
}

/* The file is read through its subfiles. Loads the extension. */
static int settle_subfiles(struct h5_file *file, const struct h5_driver_info *said,
			   struct h5_header *extension)
{
	struct h5_driver_info of_whole;
	int rc = read_extension(file, extension, &of_whole);

	h5_file_fix(file, "a file of the subfiling driver");
	if (!rc && of_whole.driver != H5_DRIVER_NONE &&
	    (of_whole.driver != H5_DRIVER_SUBFILING || of_whole.stripe_size != said->stripe_size ||
	     of_whole.subfiles != said->subfiles))
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "driver information: not that of these subfiles");
	return rc;
}

/* Finds out from the first member. On success the extension is loaded, unless the division was guessed. */
static int find_division(struct h5_file *file, const struct h5_members *members, struct h5_header *extension,
			 struct division *division)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	uint64_t size = sb->base + h5_file_size(file);
	bool cut = is_cut(file);
	bool elsewhere = sb->extension != H5_UNDEF && sb->extension >= h5_file_end(file);
	struct h5_driver_info *driver = &division->driver;
	int rc = read_extension(file, extension, driver);

	division->sure = true;
	division->guessed = division->alone = false;
	division->said = driver->driver != H5_DRIVER_NONE;
	if (rc == -EUCLEAN && (cut || elsewhere || members->pattern)) {
		guess(sb, size, division);
		return 0;
	}
	if (rc || driver->driver == H5_DRIVER_MULTI)
		return rc;
	if (driver->driver == H5_DRIVER_SUBFILING) {
		*driver = (struct h5_driver_info){0};
		return 0;
	}
	/* A file that holds all of its addresses is complete, even if it says that it belongs to a family:
	 * its members may have been joined. */
	if (!cut && !members->pattern) {
		division->alone = driver->driver == H5_DRIVER_FAMILY && size <= driver->member_size;
		if (!division->alone)
			*driver = (struct h5_driver_info){0};
	} else if (driver->driver == H5_DRIVER_NONE) {
		/* Members of old families don't say so. */
		driver->driver = H5_DRIVER_FAMILY;
		driver->member_size = size;
		division->sure = members->pattern;
	}
	return 0;
}

/* True: both name the same files. The ends of members change as the file is written. */
static bool are_same_files(const struct h5_driver_info *a, struct h5_driver_info b)
{
	for (unsigned i = 0; i < H5_DRIVER_MEMBERS_MAX; i++)
		b.member[i].end = a->member[i].end;
	return !memcmp(a, &b, sizeof b);
}

static int by_start(const void *a, const void *b)
{
	const struct h5_file_area *x = a, *y = b;

	return h5_compare(x->start, y->start);
}

/* The areas of the members of a multi file; false: they reach into each other. If libhdf5 1.6
 * wrote the file, its superblock states the end of the last member; later versions state that of the first
 * member. */
static bool find_areas(const struct h5_file *file, const struct h5_driver_info *driver,
		       struct h5_file_area areas[H5_FILE_AREAS_MAX])
{
	const struct h5_superblock *sb = h5_file_superblock(file);

	for (unsigned i = 0; i < driver->members; i++) {
		areas[i] = (struct h5_file_area){
			.start = driver->member[i].start, .raw = i == driver->raw, .member = i};
		if (!h5_add(areas[i].start, driver->member[i].end, &areas[i].end))
			return false;
	}
	if (sb->end != H5_UNDEF)
		areas[0].end = h5_max(areas[0].end, sb->end);
	qsort(areas, driver->members, sizeof *areas, by_start);
	for (unsigned i = 1; i < driver->members; i++)
		if (areas[i - 1].end >= areas[i].start)
			return false;
	return !areas[0].member;
}

/* Why such a file cannot be written, in words; NULL: it can. */
static const char *why_fixed(struct h5_file *file, const struct division *division)
{
	struct h5_file_area areas[H5_FILE_AREAS_MAX];

	if (!division->said)
		return "a family whose files do not say so";
	if (division->driver.driver != H5_DRIVER_MULTI)
		return NULL;
	/* libhdf5 reads more than a block has, up to the end of the member that its kind of metadata goes to.
	 */
	if (division->driver.spread)
		return "a file of the multi driver whose metadata are in several members";
	if (h5_file_superblock(file)->base)
		return "a file of the split or multi driver with a user block";
	if (!find_areas(file, &division->driver, areas))
		return "a file of the multi driver whose members reach into each other, or of HDF5 1.6";
	h5_file_set_areas(file, areas, division->driver.members);
	return NULL;
}

/* Reads with all members what was guessed without them, or before the journal was replayed. Loads the
 * extension. */
static int check_driver(struct h5_file *file, struct division *division, struct h5_header *extension)
{
	struct h5_driver_info said;
	int rc = read_extension(file, extension, &said);

	if (!rc && !are_same_files(&division->driver, said))
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "driver information: not that of these files");
	if (!rc)
		division->driver = said;
	division->said = true;
	return rc;
}

/* The file is read through all its members. Loads the extension, unless `loaded`. */
static int settle(struct h5_file *file, struct division division, bool loaded, struct h5_header *extension)
{
	const char *why;
	int rc = 0;

	if (division.guessed || (!loaded && division.driver.driver == H5_DRIVER_MULTI))
		rc = check_driver(file, &division, extension);
	else if (!loaded)
		rc = h5_extension_load(file, extension);
	if (rc)
		return rc;
	why = why_fixed(file, &division);
	if (why)
		h5_file_fix(file, why);
	h5_file_set_in_pieces(file);
	return 0;
}

/* Puts the pieces of the file together, if it has several, and loads its extension. */
static int open_members(struct h5_file *file, struct h5_members *members, struct h5_header *extension)
{
	struct h5_io *io = h5_file_io(file);
	struct h5_driver_info said;
	struct division division;
	int rc = find_subfiles(file, members, &said, &io);

	if (rc)
		return rc;
	if (io != h5_file_io(file)) {
		rc = h5_file_read_whole(file, io);
		return rc ? rc : settle_subfiles(file, &said, extension);
	}
	rc = find_division(file, members, extension, &division);
	if (rc || division.driver.driver == H5_DRIVER_NONE)
		return rc;
	if (division.alone)
		h5_file_set_in_pieces(file);
	rc = h5_members_open(members, &division.driver, division.sure, &io);
	if (rc)
		return rc;
	if (io != h5_file_io(file)) {
		rc = h5_file_read_through(file, io);
		return rc ? rc : settle(file, division, true, extension);
	}
	return division.guessed ? check_driver(file, &division, extension) : 0;
}

static struct h5_members members_of(const struct h5_file_place *place, const struct h5_file *file)
{
	return (struct h5_members){.folder = place->folder,
				   .path = place->path,
				   .pattern = place->pattern,
				   .end = h5_file_superblock(file)->end};
}

struct h5_joined {
	struct division division;
	struct h5_driver_info subfiles; /* H5_DRIVER_NONE: there are none; else `division` is not known */
	char *missing;
};

void h5_joined_free(struct h5_joined *joined)
{
	if (joined)
		free(joined->missing);
	free(joined);
}

/* Joins the members of the file. */
static int join(struct h5_file *file, struct h5_members *members, struct h5_joined **joined)
{
	struct h5_joined *new = calloc(1, sizeof *new);
	struct h5_io *first = h5_file_io(file), *io = first;
	struct h5_header extension = {0};
	int rc = new ? find_subfiles(file, members, &new->subfiles, &io) : -ENOMEM;

	if (!rc && io == first)
		rc = find_division(file, members, &extension, &new->division);
	h5_header_release(&extension);
	/* If the file is damaged, its journal may mend it. */
	if (rc == -EUCLEAN)
		rc = 0;
	else if (!rc && io == first && new->division.driver.driver != H5_DRIVER_NONE)
		rc = h5_members_open(members, &new->division.driver, new->division.sure, &io);
	if (rc || io == first) {
		free(members->missing);
		free(new);
		return rc;
	}
	new->missing = members->missing;
	*joined = new;
	return h5_file_read_through(file, io);
}

int h5_file_join(const struct h5_file_shared *shared, const struct h5_file_place *place, bool writable,
		 struct h5_io **io, struct h5_joined **joined)
{
	struct h5_members members;
	struct h5_file *file;
	int rc;

	*joined = NULL;
	if (h5_io_begins_with(*io, H5_ONION_STUB, sizeof H5_ONION_STUB - 1))
		return 0;
	rc = h5_file_new(shared, *io, place->offset, &file);
	if (rc) {
		*io = NULL;
		return rc;
	}
	members = members_of(place, file);
	members.writable = writable;
	rc = join(file, &members, joined);
	*io = h5_file_leave_io(file);
	return rc;
}

int h5_file_open(const struct h5_file_shared *shared, const struct h5_file_place *place, struct h5_io *io,
		 const struct h5_joined *joined, struct h5_file **out)
{
	struct h5_header extension = {0};
	struct h5_members members;
	struct h5_file *file;
	int rc = h5_file_new(shared, io, place->offset, &file);

	if (rc)
		return rc;
	members = members_of(place, file);
	if (!joined)
		rc = open_members(file, &members, &extension);
	else if (joined->missing && !(members.missing = strdup(joined->missing)))
		rc = -ENOMEM;
	else if (joined->subfiles.driver != H5_DRIVER_NONE)
		rc = settle_subfiles(file, &joined->subfiles, &extension);
	else
		rc = settle(file, joined->division, false, &extension);
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
