/* Free space that a file keeps track of: the File Space Info message (0x0017, in the superblock extension),
 * and header and section list of a free-space manager. Sources: specification III.H; for the message
 * libhdf5's public documentation. */
#ifndef H5_FORMAT_FREE_SPACE_H
#define H5_FORMAT_FREE_SPACE_H

#include "base/reader.h"
#include "base/writer.h"

#include <stdbool.h>
#include <stdint.h>

enum { H5_FREE_SPACE_MANAGERS = 12, H5_FREE_SPACE_HEADER_MAX = 82 };

struct h5_file_space_info {
	unsigned version;
	bool persist;	    /* the file keeps track of its free space */
	uint64_t threshold; /* bytes of the smallest section that is kept track of */
	uint64_t page_size; /* bytes of a page of the file space; 0: the file is not paged */
	unsigned count;
	uint64_t managers[H5_FREE_SPACE_MANAGERS]; /* addresses of headers; H5_UNDEF: none for that kind */
};

int h5_file_space_info_decode(struct h5_reader *r, struct h5_file_space_info *info);

/* What changes in a message of version 1: the managers, and where the file ends. Some versions of libhdf5
 * take all that lies behind that end for the space of managers, and drop it. */
struct h5_file_space_change {
	unsigned size_of_offsets, size_of_lengths;
	uint64_t managers[H5_FREE_SPACE_MANAGERS];
	uint64_t end;
};

/* Makes the change in the n bytes of the message. -ENOTSUP: it is none of version 1 with managers. */
int h5_file_space_info_update(const struct h5_file_space_change *change, uint8_t *body, size_t n);

/* Which manager has which space. Files that are not paged have one for metadata and one for raw data; paged
 * files have these for what is smaller than a page, and a third one for all that is larger. */
enum h5_file_manager { H5_MANAGER_METADATA = 0, H5_MANAGER_RAW = 2, H5_MANAGER_LARGE = 6 };

enum h5_free_space_client { H5_FREE_SPACE_HEAP = 0, H5_FREE_SPACE_FILE = 1 };

struct h5_free_space_header {
	uint8_t client; /* enum h5_free_space_client */
	uint64_t total; /* bytes of free space that it tracks */
	uint64_t sections;
	uint64_t serialized;   /* sections that the list has */
	uint16_t address_bits; /* log2 of the space that sections are in */
	uint64_t section_max;  /* bytes of the largest section */
	uint64_t list;	       /* address of the section list; H5_UNDEF: none */
	uint64_t list_size;    /* bytes of it that are used */
	uint64_t list_room;    /* bytes of it that are allocated */
};

int h5_free_space_header_decode(struct h5_reader *r, struct h5_free_space_header *header);
/* Encodes the header of a manager all of whose sections are serialized. */
int h5_free_space_header_encode(struct h5_writer *w, const struct h5_free_space_header *header);
size_t h5_free_space_header_size(unsigned size_of_offsets, unsigned size_of_lengths);

/* Verifies a section list, but not the sections in it. `header`: address of the manager's. */
int h5_free_space_list_check(struct h5_reader *r, uint64_t header);

/* Types of the sections of a file. */
enum h5_file_section { H5_SECTION_SIMPLE = 0, H5_SECTION_SMALL = 1, H5_SECTION_LARGE = 2 };

/* A piece of free space: of a fractal heap, inside one direct block; or of a file. */
struct h5_free_section {
	uint64_t offset; /* in the heap's address space; the address in the file */
	uint64_t size;
};

/* Goes through the sections of a list:
 *
 *   h5_free_space_walk_begin(&walk, data, &header);
 *   while ((rc = h5_free_space_walk_next(&walk, &section)) > 0)
 *           ...
 *
 * Rows of blocks of a heap that are not allocated are passed over. */
struct h5_free_space_walk {
	struct h5_reader r; /* over the sections */
	const struct h5_free_space_header *header;
	uint64_t left, size; /* of the current set: sections to come, bytes of each */
};

/* `r` is over a list that h5_free_space_list_check() has found sound. */
void h5_free_space_walk_begin(struct h5_free_space_walk *walk, struct h5_reader r,
			      const struct h5_free_space_header *header);
int h5_free_space_walk_next(struct h5_free_space_walk *walk, struct h5_free_section *section);

/* Encodes a list of the sections, which are sorted by size and all of one type: in a heap 0, in a file one of
 * enum h5_file_section. `address`: of the manager's header. */
int h5_free_space_list_encode(struct h5_writer *w, const struct h5_free_space_header *header,
			      uint64_t address, const struct h5_free_section *sections, uint8_t type);
/* Bytes of that list. */
size_t h5_free_space_list_size(const struct h5_free_space_header *header,
			       const struct h5_free_section *sections, unsigned size_of_offsets);

/* ---- removed objects ----
 *
 * A note of ours right behind the section list of a heap, where nobody else looks: the objects that were
 * removed by the change that wrote the list. Their space is free only when that change is certain, so the
 * section list has it later. */

struct h5_removed_object {
	bool is_huge;
	uint64_t offset; /* managed: in the heap; huge: its key, or its address if IDs hold that */
	uint64_t size;
};

enum { H5_REMOVED_STATE = 4 };

struct h5_removed_note {
	uint32_t list;			  /* checksum of the section list before it */
	uint64_t state[H5_REMOVED_STATE]; /* numbers of the heap's header, which change with the heap */
	uint16_t room;			  /* bytes that are allocated for the note */
	uint16_t count;			  /* of objects */
};

enum { H5_REMOVED_NOTE_SIZE = 48, H5_REMOVED_OBJECT_SIZE = 17 }; /* bytes: without objects; of each */

int h5_removed_note_encode(struct h5_writer *w, const struct h5_removed_note *note,
			   const struct h5_removed_object *objects);
/* Decodes a note of at most `most` objects. False: there is no such note. */
bool h5_removed_note_decode(struct h5_reader *r, struct h5_removed_note *note,
			    struct h5_removed_object *objects, unsigned most);

#endif
