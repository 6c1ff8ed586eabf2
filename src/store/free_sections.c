#include "store/free_sections.h"

#include "base/error.h"
#include "store/block.h"

#include <stdlib.h>

static int decode_header(struct h5_reader *r, void *header)
{
	return h5_free_space_header_decode(r, header);
}

int h5_free_manager_header(struct h5_file *file, uint64_t address, struct h5_free_space_header *header)
{
	return h5_block_decode_header(file, address, H5_FREE_SPACE_HEADER_MAX, decode_header, header);
}

int h5_free_list_open(struct h5_file *file, uint64_t address, const struct h5_free_space_header *header,
		      void **data, struct h5_reader *r)
{
	int rc = h5_block_open(file, header->list, header->list_size, "free-space section list", data, r);

	if (rc)
		return rc;
	rc = h5_free_space_list_check(r, address);
	r->p = r->begin;
	if (rc)
		free(*data);
	return rc;
}

/* `r`: over the list of the sections. */
static int visit_list(struct h5_reader r, const struct h5_free_space_header *header, unsigned manager,
		      h5_free_section_visit *visit, void *arg)
{
	struct h5_free_space_walk walk;
	struct h5_free_section section;
	int rc;

	h5_free_space_walk_begin(&walk, r, header);
	while ((rc = h5_free_space_walk_next(&walk, &section)) > 0) {
		rc = section.size ? visit(arg, manager, &section) : 0;
		if (rc)
			return rc;
	}
	return rc;
}

static int visit_manager(struct h5_file *file, uint64_t address, unsigned manager,
			 h5_free_section_visit *visit, void *arg)
{
	struct h5_free_space_header header;
	struct h5_reader r;
	void *data;
	int rc = h5_free_manager_header(file, address, &header);

	if (!rc && header.client != H5_FREE_SPACE_FILE)
		rc = h5_fail(-EUCLEAN, address, "free-space manager: it is none of a file");
	if (rc || header.list == H5_UNDEF)
		return rc;
	rc = h5_free_list_open(file, address, &header, &data, &r);
	if (rc)
		return rc;
	rc = visit_list(r, &header, manager, visit, arg);
	free(data);
	return rc;
}

int h5_free_sections_each(struct h5_file *file, const struct h5_file_space_info *info,
			  h5_free_section_visit *visit, void *arg)
{
	int rc = 0;

	for (unsigned i = 0; i < info->count && !rc; i++)
		if (info->managers[i] != H5_UNDEF)
			rc = visit_manager(file, info->managers[i], i, visit, arg);
	return rc;
}
