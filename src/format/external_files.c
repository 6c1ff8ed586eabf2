#include "format/external_files.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/*   offset  size  field
 *        0     1  version, 1
 *        1     3  reserved
 *        4     2  allocated slots
 *        6     2  used slots
 *        8     O  heap address
 *           3L*n  slots: name offset, offset in the external file, size: L each */
int h5_external_files_decode(struct h5_reader *r, struct h5_external_files *files)
{
	unsigned version = h5_read_u8(r);
	unsigned allocated, used;
	int rc;

	memset(files, 0, sizeof *files);
	h5_reader_skip(r, 3);
	allocated = h5_read_u16(r);
	used = h5_read_u16(r);
	files->heap = h5_read_offset(r);
	rc = h5_reader_check(r, "external file list");
	if (rc)
		return rc;
	if (version != 1)
		return h5_fail(-ENOTSUP, r->address, "external file list: version %u is not supported",
			       version);
	if (!used || used > allocated || (size_t)used * 3 * r->size_of_lengths > h5_reader_left(r))
		return h5_fail(-EUCLEAN, r->address, "external file list: %u slots of %u", used, allocated);
	files->slots = calloc(used, sizeof *files->slots);
	if (!files->slots)
		return h5_fail(-ENOMEM, r->address, "external file list: out of memory");
	files->count = used;
	for (unsigned i = 0; i < used; i++) {
		files->slots[i].name = h5_read_length(r);
		files->slots[i].offset = h5_read_length(r);
		files->slots[i].size = h5_read_length(r);
	}
	return 0;
}
