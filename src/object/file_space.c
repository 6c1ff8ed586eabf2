#include "object/file_space.h"

#include "base/checked.h"
#include "base/error.h"
#include "format/free_space.h"
#include "store/extension.h"
#include "store/free_sections.h"

#include <stdlib.h>

static int read_info(struct h5_file *file, struct h5_file_space_info *info)
{
	int rc = h5_extension_file_space(file, info);

	return rc || info->persist ? rc : -ENODATA;
}

int h5_file_space_free(struct h5_file *file, uint64_t *bytes)
{
	struct h5_free_space_header header;
	struct h5_file_space_info info;
	int rc = read_info(file, &info);

	*bytes = 0;
	for (unsigned i = 0; !rc && i < info.count; i++) {
		if (info.managers[i] == H5_UNDEF)
			continue;
		rc = h5_free_manager_header(file, info.managers[i], &header);
		if (!rc && !h5_add(*bytes, header.total, bytes))
			rc = h5_fail(-EUCLEAN, info.managers[i],
				     "free-space managers: more than 2^64 bytes are free");
	}
	return rc;
}

int h5_free_space_check(struct h5_file *file, uint64_t address, struct h5_damage *damage)
{
	struct h5_free_space_header header;
	struct h5_reader r;
	void *data;
	int rc = h5_free_manager_header(file, address, &header);

	if (!rc && header.list != H5_UNDEF) {
		rc = h5_free_list_open(file, address, &header, &data, &r);
		if (!rc)
			free(data);
	}
	return h5_damage_note(damage, rc);
}

int h5_file_space_check(struct h5_file *file, struct h5_damage *damage)
{
	struct h5_file_space_info info;
	int rc = read_info(file, &info);

	if (rc)
		return rc == -ENODATA ? 0 : h5_damage_note(damage, rc);
	for (unsigned i = 0; i < info.count && !rc; i++)
		if (info.managers[i] != H5_UNDEF)
			rc = h5_free_space_check(file, info.managers[i], damage);
	return rc;
}

static int manager_extents(struct h5_file *file, uint64_t address, h5_extent_visit *visit, void *arg)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	struct h5_free_space_header header;
	int rc = h5_free_manager_header(file, address, &header);

	if (!rc)
		rc = visit(arg, address, h5_free_space_header_size(sb->size_of_offsets, sb->size_of_lengths));
	return rc || header.list == H5_UNDEF ? rc : visit(arg, header.list, header.list_room);
}

int h5_file_space_sections(struct h5_file *file, h5_free_section_visit *visit, void *arg)
{
	struct h5_file_space_info info;
	int rc = read_info(file, &info);

	if (rc)
		return rc == -ENODATA ? 0 : rc;
	return h5_free_sections_each(file, &info, visit, arg);
}

int h5_file_space_extents(struct h5_file *file, h5_extent_visit *visit, void *arg)
{
	struct h5_file_space_info info;
	int rc = read_info(file, &info);

	if (rc)
		return rc == -ENODATA ? 0 : rc;
	for (unsigned i = 0; i < info.count && !rc; i++)
		if (info.managers[i] != H5_UNDEF)
			rc = manager_extents(file, info.managers[i], visit, arg);
	return rc;
}
