/* The bytes of a file as a crash may leave it, in memory. */
#ifndef H5_TESTS_CRASH_IMAGE_H
#define H5_TESTS_CRASH_IMAGE_H

#include "fault_io.h"
#include "store/file.h"

/* All zero: empty. */
struct crash_image {
	uint8_t *data;
	size_t size, capacity;
};

/* What is added is zero. */
void crash_image_resize(struct crash_image *image, size_t size);
void crash_image_write(struct crash_image *image, uint64_t offset, const void *data, size_t n);
void crash_image_copy(struct crash_image *to, const struct crash_image *from);
/* Does what was recorded; of a write the first n bytes. */
void crash_image_apply(struct crash_image *image, const struct fault_event *event, size_t n);
void crash_image_save(const struct crash_image *image, const char *path);
void crash_image_load(struct crash_image *image, const char *path);
/* Does all that was recorded of the file itself. Saves the states between which a kill can happen, as
 * PREFIX-000.h5, PREFIX-001.h5, ...: before each write over bytes that were there, each hole, each change of
 * the size, and in the end. Returns how many. */
unsigned crash_image_save_states(struct crash_image *image, const struct fault_io *record,
				 const char *prefix);
/* Does all that was recorded of the file itself. After each of it looks at what another program would see.
 * Returns how many, and empties the record. */
unsigned crash_image_look(struct crash_image *image, struct fault_io *record,
			  void (*look)(const void *arg, struct h5_file *file), const void *arg);
/* An h5_io over it, which borrows it. */
struct h5_io *crash_image_open(struct crash_image *image);

#endif
