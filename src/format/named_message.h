/* Links and attributes: their messages, the messages that tell where an object keeps them, and the records of
 * their indexes. Specification IV.A.2.c, IV.A.2.g, IV.A.2.m, IV.A.2.v, III.A.2 (record types 5, 6, 8 and 9).
 */
#ifndef H5_FORMAT_NAMED_MESSAGE_H
#define H5_FORMAT_NAMED_MESSAGE_H

#include "base/reader.h"
#include "base/writer.h"
#include "format/object_header.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- links ---- */

enum h5_link_type { H5_LINK_HARD = 0, H5_LINK_SOFT = 1, H5_LINK_EXTERNAL = 64 }; /* 65 to 255: user-defined */

/* A link. Its texts have no NUL, and may hold any byte. */
struct h5_link {
	uint8_t type; /* enum h5_link_type, or a user-defined class */
	const char *name;
	size_t name_size;
	bool has_order;
	int64_t order;	    /* of creation */
	uint64_t address;   /* hard: of the object header */
	const char *target; /* soft: the path; external: the path in the other file */
	size_t target_size;
	const char *file; /* external */
	size_t file_size;
	/* hard: the kind of its object, if the entry of a symbol table tells it; else UNKNOWN */
	enum h5_object_kind cached_kind;
	void *owned; /* memory of the texts; NULL: they are borrowed */
};

/* The texts are borrowed from the message. */
int h5_link_decode(struct h5_reader *r, struct h5_link *link);

/* Bytes that the message of a link takes at most. */
size_t h5_link_room(const struct h5_link *link);
/* Writes the message; the names are stated to be UTF-8 unless they are ASCII. -ENAMETOOLONG: the target has
 * more bytes than a message can state. */
int h5_link_encode(struct h5_writer *w, const struct h5_link *link);

/* Makes a link with texts of its own. */
int h5_link_copy(const struct h5_link *from, struct h5_link *to);
void h5_link_release(struct h5_link *link); /* may run twice */
/* The same link under another name. Its texts, and the name, are borrowed. */
struct h5_link h5_link_renamed(const struct h5_link *link, const char *name, size_t name_size);

/* ---- attributes: versions 1 to 3 of the message ---- */

/* The parts of a message. If only the name is whole, the readers of the other parts have their error set.
 */
struct h5_attribute_message {
	const char *name; /* borrowed from the message, without NUL */
	size_t name_size;
	bool type_shared, space_shared; /* the part holds a shared message */
	struct h5_reader type, space;
	struct h5_reader data; /* and whatever follows */
};

/* Fails only if the name cannot be read. */
int h5_attribute_decode(struct h5_reader *r, struct h5_attribute_message *attribute);

enum { H5_ATTRIBUTE_HEAD = 9 }; /* bytes of a message of version 3 before the name */

/* Writes the beginning of an attribute message. The name, the datatype, the dataspace and the data follow it,
 * in this order, without padding; name_size includes the NUL. The name is UTF-8, and no part is shared. */
void h5_attribute_head_encode(uint8_t head[H5_ATTRIBUTE_HEAD], size_t name_size, size_t type_size,
			      size_t space_size);

/* ---- where they are stored ---- */

struct h5_named_info {
	bool tracks_order;    /* of creation */
	bool indexes_order;   /* when the storage is dense, there is an index by it */
	uint64_t next_order;  /* order of creation of the next message, larger than all in use; 0 if none is
				 tracked */
	uint64_t heap;	      /* fractal heap of the messages; H5_UNDEF: they are in the object header */
	uint64_t name_index;  /* version 2 B-tree by name */
	uint64_t order_index; /* version 2 B-tree by creation order; H5_UNDEF: none */
};

int h5_link_info_decode(struct h5_reader *r, struct h5_named_info *info);
int h5_attribute_info_decode(struct h5_reader *r, struct h5_named_info *info);

enum { H5_NAMED_INFO_MAX = 2 + 8 + 3 * 8 }; /* most bytes of such a message */

void h5_link_info_encode(struct h5_writer *w, const struct h5_named_info *info);
void h5_attribute_info_encode(struct h5_writer *w, const struct h5_named_info *info);

struct h5_named_record {
	uint32_t hash;	   /* lookup3 of the name */
	const uint8_t *id; /* borrowed: of the heap object, which is the message */
	size_t id_size;
	bool is_shared; /* the ID is one of the file's heap of shared messages */
	int64_t order;	/* of creation; not in records of links by name */
};

/* Bytes that a record has at least. */
enum { H5_LINK_RECORD_MIN = 5, H5_ATTRIBUTE_RECORD_MIN = 17 };

int h5_link_record_decode(struct h5_reader *r, struct h5_named_record *record);
int h5_attribute_record_decode(struct h5_reader *r, struct h5_named_record *record);
int h5_link_record_encode(struct h5_writer *w, const struct h5_named_record *record);
int h5_attribute_record_encode(struct h5_writer *w, const struct h5_named_record *record);

/* Records of the indexes by creation order: without hash. */
int h5_link_order_record_decode(struct h5_reader *r, struct h5_named_record *record);
int h5_attribute_order_record_decode(struct h5_reader *r, struct h5_named_record *record);
int h5_link_order_record_encode(struct h5_writer *w, const struct h5_named_record *record);
int h5_attribute_order_record_encode(struct h5_writer *w, const struct h5_named_record *record);

#endif
