/* A committed datatype as HDF5 DDL, indented as h5dump does it. */
#include "view/views.h"

#include "base/error.h"
#include "object/object.h"

static int ddl_shows(const struct h5_view *v)
{
	return v->object && v->object->kind == H5_OBJECT_DATATYPE ? 0 : -ENOENT;
}

static int ddl_open(struct h5_view *v, bool reading)
{
	struct h5_datatype *type = NULL;
	int rc = h5_object_datatype(v->file, v->object, &type);

	(void)reading;
	if (rc)
		return rc == -ENODATA ? h5_fail(-EUCLEAN, v->address, "no datatype message") : rc;
	h5_buf_init(&v->head, SIZE_MAX);
	h5_datatype_ddl(type, false, &v->head);
	h5_buf_byte(&v->head, '\n');
	v->size = v->head.size;
	h5_datatype_free(type);
	return v->head.err;
}

const struct h5_view_ops h5_view_ddl = {
	.name = "ddl", .is_sized = true, .shows = ddl_shows, .open = ddl_open};
